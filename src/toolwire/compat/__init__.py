"""The faces of libraries that people already use, on this library's core.

One module for each peer; importing one imports the peer only where its own types are needed. What differs from the peer on purpose is listed
in the documentation's page of each.
"""
