"""A server of recorded bodies that does to them what networks do. Needs the extra ``[serve]``; see docs/faults.md.

::

    toolwire serve fixtures --port 8000                 # the command
    with running("fixtures") as server: ...             # in tests: a thread, a free port

Modules, from the bottom: ``cuts`` and ``frames`` take a body apart, ``provider_errors`` has each provider's words for a failure,
``faults`` says what happens to a body, ``recordings`` finds them, ``app`` answers requests, ``server`` owns the sockets.
"""
