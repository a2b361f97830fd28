"""``toolwire replay``: a recorded body, as it would arrive, and what the gate says about it.

With ``--json`` each line is one object. The events, each with the member ``event``:

===================  ===================================================================================================
``call_start``       ``call`` (the call's key), ``id`` (null while none has come), ``name``, ``kind``, ``runs_on``
``arguments_delta``  ``call``, ``text``
``call_end``         ``call``
``text_delta``       ``text``, ``channel``, ``choice``
``usage``            ``usage``
``unknown_frame``    ``frame`` (its event name), ``offset``
===================  ===================================================================================================

and last, for each file, ``{"result": {...}, "gate": {...}}``. A number too large for a double is written ``1e999``, as JSON has no
infinity. All output is ASCII.
"""

from __future__ import annotations

import argparse
import errno
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from .._json import MISSING
from ..drivers import iter_events
from ..errors import MalformedFrame, ProviderError, StreamError, UsageError
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta, TurnEnd, TurnResult, UnknownFrame, UsageUpdate
from ..gate import GateDecision, TurnGate
from ..serve.cuts import Cut
from .shown import shown

OK: Final = 0
REFUSED: Final = 3
UNREADABLE: Final = 2

#: The pace of ``--speed 1``: a fast model's fifty fragments a second, each in an envelope of two hundred bytes.
BYTES_A_SECOND: Final = 10_000

_VIEW_CHUNK: Final = 256
_READ: Final = 1 << 16

#: Codes that say "this is no stream of any turn", as opposed to a turn that went wrong.
_NO_STREAM: Final = frozenset({"frame.not_event_stream", "frame.unknown_protocol"})


def run(arguments: argparse.Namespace) -> int:
    """The command. Returns the exit status.

    Raises:
        UsageError: the tools file is none, rich is missing, standard input is named twice.
    """
    if arguments.files.count("-") > 1:
        raise UsageError("standard input can be read once: give - once")
    tools = None if arguments.tools is None else _tools(arguments.tools)
    try:
        TurnGate(tools)  # a schema that is none is said before anything is shown
    except UsageError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from error
    view = None
    if not arguments.json:
        from .view import View

        view = View(sys.stdout)
    statuses = set()
    for name in arguments.files:
        try:
            chunks = _chunks(name, arguments)
        except OSError as error:
            statuses.add(_complain(name, error.strerror or str(error)))
            continue
        statuses.add(_replay(name, chunks, arguments, tools, view))
    return next((status for status in (REFUSED, UNREADABLE) if status in statuses), OK)


def _replay(name: str, chunks: Iterable[bytes], arguments: argparse.Namespace, tools: dict[str, Any] | None, view: Any) -> int:
    """One file: one turn, one gate."""
    with iter_events(chunks, arguments.provider, framing=arguments.framing) as stream:
        if view is not None:
            view.begin("standard input" if name == "-" else name)
        try:
            for event in stream:
                if view is not None:
                    view.show(event)
                elif not isinstance(event, TurnEnd):
                    _write(_event(event))
                if name == "-" or arguments.speed is not None:
                    sys.stdout.flush()
        finally:
            if view is not None:
                view.stop()
        result = stream.result
    assert result is not None
    if isinstance(result.error, OSError):  # standard input, which is read as it comes
        return _complain(name, result.error.strerror or str(result.error))
    if isinstance(result.error, MalformedFrame) and result.error.code in _NO_STREAM and not result.ended:
        return _complain(name, result.error.message)
    decision = TurnGate(tools).decide(result)
    if view is not None:
        view.verdict(result, decision)
    else:
        _write({"result": _result(result), "gate": _gate(decision)})
        sys.stdout.flush()
    return REFUSED if decision.action == "refuse" else OK


def _complain(name: str, message: str) -> int:
    print(f"toolwire: {shown('standard input' if name == '-' else name)}: {shown(message)}", file=sys.stderr)
    return UNREADABLE


# -- input ----------------------------------------------------------------------------------------------------------------


def _tools(path: str) -> dict[str, Any]:
    hint = 'give one object, such as {"get_weather": {"type": "object"}}'
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"--tools {path}: {error.strerror or error}") from error
    try:
        tools = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--tools {path}: no JSON ({error}); {hint}") from error
    if not isinstance(tools, dict):
        raise UsageError(f"--tools {path}: not an object of tool name to JSON Schema; {hint}")
    for name, schema in tools.items():
        if schema is not None and not isinstance(schema, (dict, bool)):
            raise UsageError(f"--tools {path}: the schema of {name!r} is no object; {hint}")
    return tools


def _chunks(name: str, arguments: argparse.Namespace) -> Iterable[bytes]:
    """The body in chunks.

    Raises:
        OSError: it can not be read.
    """
    chunks: Iterable[bytes]
    stdin: Any = sys.stdin
    if name == "-" and stdin is None:  # closed by whoever started this
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    cut: Cut | None = arguments.chunk
    live = name == "-" and cut is None and arguments.framing != "message"
    if live:
        chunks = iter(lambda: stdin.buffer.read1(_READ), b"")  # as it comes: curl may still be at work
    else:
        data = stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        if arguments.framing == "message":  # recorded messages stand one a line; cutting them would make other messages
            chunks = (line for line in data.split(b"\n") if line.strip())
        elif cut is None:
            chunks = Cut("whole" if arguments.json else "size", _VIEW_CHUNK).apply(data)
        else:
            chunks = cut.apply(data)
    return chunks if arguments.speed is None else _paced(chunks, BYTES_A_SECOND * arguments.speed)


def _paced(chunks: Iterable[bytes], bytes_a_second: float) -> Iterator[bytes]:
    first = True
    for chunk in chunks:
        if not first:
            time.sleep(len(chunk) / bytes_a_second)
        first = False
        yield chunk


# -- JSON lines -----------------------------------------------------------------------------------------------------------


def _event(event: Event) -> dict[str, Any]:
    if isinstance(event, CallStart):
        call = event.call
        return {"event": "call_start", "call": call.key, "id": call.id, "name": call.name, "kind": call.kind, "runs_on": call.runs_on}
    if isinstance(event, ArgumentsDelta):
        return {"event": "arguments_delta", "call": event.call.key, "text": event.text}
    if isinstance(event, CallEnd):
        return {"event": "call_end", "call": event.call.key}
    if isinstance(event, TextDelta):
        return {"event": "text_delta", "text": event.text, "channel": event.channel, "choice": event.choice}
    if isinstance(event, UsageUpdate):
        return {"event": "usage", "usage": event.usage}
    assert isinstance(event, UnknownFrame)
    return {"event": "unknown_frame", "frame": event.frame.event, "offset": event.frame.offset}


def _result(result: TurnResult) -> dict[str, Any]:
    return {
        "provider": result.provider,
        "outcome": str(result.outcome),
        "reason": result.reason,
        "truncated": result.truncated,
        "text": result.text,
        "error": _error(result.error),
        "marks": [str(mark) for mark in result.marks],
        "calls": [
            {
                "id": call.id,
                "name": call.name,
                "text": call.text,
                "arguments": None if call.snapshot() is MISSING else call.snapshot(),
                "complete": call.complete,
                "marks": [str(mark) for mark in call.marks],
            }
            for call in result.calls
        ],
    }


def _error(error: BaseException | None) -> dict[str, Any] | None:
    if error is None:
        return None
    if isinstance(error, ProviderError):
        return {"type": error.type, "code": error.code, "message": error.message}
    code, message = (error.code, error.message) if isinstance(error, StreamError) else (None, str(error))
    return {"type": type(error).__name__, "code": code, "message": message}


def _gate(decision: GateDecision) -> dict[str, Any]:
    return {
        "action": decision.action,
        "reason": decision.reason,
        "runnable": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in decision.runnable],
        "refused": [
            {"id": refusal.call.id, "name": refusal.call.name, "reasons": list(refusal.reasons), "detail": refusal.detail} for refusal in decision.refused
        ],
    }


def _write(line: dict[str, Any]) -> None:
    try:
        text = json.dumps(line, allow_nan=False)
    except ValueError:
        text = _dump(line)
    sys.stdout.write(text + "\n")


def _dump(value: Any) -> str:
    """Like ``json.dumps``, with infinities as numbers that are read as such."""
    parts = []
    if isinstance(value, dict):
        for key, member in value.items():
            parts.append(f"{json.dumps(key)}: {_dump(member)}")
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list):
        for member in value:
            parts.append(_dump(member))
        return f"[{', '.join(parts)}]"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value)
