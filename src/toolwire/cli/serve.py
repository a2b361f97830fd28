"""``toolwire serve``: recorded bodies over real sockets, with faults."""

from __future__ import annotations

import argparse
import socket
import sys
from urllib.parse import parse_qsl

from ..errors import UsageError
from ..serve.faults import Faults
from ..serve.recordings import find
from .shown import shown


def run(arguments: argparse.Namespace) -> int:
    """The command: runs until it is interrupted. Returns the exit status.

    Raises:
        UsageError: starlette or uvicorn is missing, there are no recordings, the faults are none, nothing can listen there.
    """
    try:
        from ..serve.app import App
        from ..serve.server import build, url_of
    except ImportError as error:
        raise UsageError('serve needs starlette and uvicorn, which are not installed: pip install "toolwire[serve]"') from error
    try:
        defaults = Faults.parse(dict(parse_qsl(arguments.faults, keep_blank_values=True)))
    except ValueError as error:
        raise UsageError(f"--faults: {error}") from error
    recordings = find(arguments.folder)
    try:
        family = socket.AF_INET6 if ":" in arguments.host else socket.AF_INET
        listener = socket.create_server((arguments.host, arguments.port), family=family)
    except OSError as error:
        raise UsageError(f"can not listen on {arguments.host}, port {arguments.port}: {error.strerror or error}") from error
    with listener:
        print(f"serving {len(recordings)} recordings at {url_of(listener)}", flush=True)
        app = App(recordings, defaults=defaults, report=lambda served: print(shown(str(served)), file=sys.stderr, flush=True))
        build(app).run(sockets=[listener])
    return 0
