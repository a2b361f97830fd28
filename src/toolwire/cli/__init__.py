"""The command line. ``main`` reads it and turns everything that can go wrong into one line and an exit status.

======  ================================================================================================================
status  meaning
======  ================================================================================================================
0       every turn may run its calls, or has none to run
3       the gate refused at least one turn as a whole
2       an input can not be read or is no event stream, or the command line is wrong; one line on standard error each
130     interrupted: Ctrl-C, or whoever read the output has gone
======  ================================================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from ..errors import UsageError
from ..serve.cuts import Cut
from ..turn import FRAMINGS, PROVIDERS
from . import replay
from .shown import shown

WRONG: Final = 2
INTERRUPTED: Final = 130


class _Parser(argparse.ArgumentParser):
    """An ``ArgumentParser`` that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"{self.prog}: {shown(message)}; see {self.prog} --help\n")


def _parser() -> _Parser:
    parser = _Parser(prog="toolwire", description="Streamed LLM tool calls, from raw bytes to calls that may run.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    command = commands.add_parser(
        "replay",
        help="show a recorded body as it would arrive, then what the gate decides",
        description="Show a recorded body as it would arrive: calls building up, then the gate's decision with its reasons.",
        epilog="Exit status: 0 run or nothing to run, 3 refused, 2 the input can not be read or is no event stream.",
    )
    command.add_argument("files", nargs="+", metavar="FILE", help="a recorded body, each file one turn; - reads standard input")
    command.add_argument("--provider", default="auto", choices=("auto", *PROVIDERS), metavar="NAME", help=f"auto (default), {', '.join(PROVIDERS)}")
    command.add_argument("--framing", choices=tuple(FRAMINGS), metavar="F", help=f"{', '.join(FRAMINGS)}; follows from the provider unless given")
    command.add_argument("--chunk", type=_cut, metavar="HOW", help="whole, a number of bytes, or random:SEED (default: whole with --json, else 256)")
    command.add_argument("--tools", metavar="TOOLS.json", help="tool name to JSON Schema: what may run, and with which arguments")
    command.add_argument("--speed", type=_speed, metavar="X", help=f"pause between chunks: X times {replay.BYTES_A_SECOND:,} bytes a second".replace("%", "%%"))
    command.add_argument("--json", action="store_true", help="one JSON object a line: the events, and last the result and the decision")
    command.set_defaults(run=replay.run)
    command = commands.add_parser(
        "serve",
        help="serve recorded bodies as the providers' own endpoints, with faults on request",
        description="Serve recorded bodies as the providers' own endpoints, with the faults that a request asks for: see docs/faults.md.",
    )
    command.add_argument("folder", metavar="DIR", help="a folder of recorded bodies; folders named after a provider hold that provider's")
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    command.add_argument("--port", default=0, type=_port, help="the port (default: a free one, which is printed)")
    command.add_argument("--faults", default="", metavar="OPTIONS", help='faults of every request that does not say otherwise, such as "chunk=7&delay=0.05"')
    command.set_defaults(run=_serve)
    return parser


def _serve(arguments: argparse.Namespace) -> int:
    from .serve import run  # the rest of the command line needs nothing of it

    return run(arguments)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _cut(text: str) -> Cut:
    try:
        return Cut.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not speed > 0 or math.isinf(speed):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return speed


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the command line without the program's name; that of the process by default.

    Returns:
        The exit status.
    """
    streams: Any = sys  # whose streams are None where whoever started this has closed them
    if streams.stderr is None:  # print would take standard output
        streams.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        arguments = _parser().parse_args(argv)
        if streams.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except SystemExit as error:  # argparse: --help, or a wrong command line
        return error.code if isinstance(error.code, int) else WRONG
    except UsageError as error:
        print(f"toolwire: {shown(str(error))}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output once more on its way out and would complain.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return INTERRUPTED
    except OSError as error:  # reading is handled where it happens: this is the output
        print(f"toolwire: can not write: {error.strerror or error}", file=sys.stderr)
        return WRONG
