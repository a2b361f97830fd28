"""What the tests of ``toolwire.emit`` share: a turn through an emitter, and what a target has to give back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import toolwire as tw
from toolwire.emit import Emitter

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
FIXTURES = sorted(FOLDER.glob("*/*.expect.json"))
GOOD = (tw.Outcome.STOP, tw.Outcome.TOOL_CALLS)


def load(path: Path) -> tuple[dict[str, Any], bytes]:
    expect = json.loads(path.read_text(encoding="utf-8"))
    return expect, (path.parent / expect["body"]).read_bytes()


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name.removesuffix('.expect.json')}"


def emitted(provider: str, chunks: Iterable[bytes], target: str, *, abort: Any = None, framing: Any = None, **options: Any) -> tuple[bytes, tw.TurnResult]:
    """A body through a turn and an emitter: what was written, and the source's own result."""
    turn = tw.Turn(provider, on_cut="return", framing=framing)
    emitter = Emitter(target, **({"response_id": "r_1"} | options))
    written = b""
    try:
        for chunk in chunks:
            written += emitter.emit(turn.feed(chunk))
        result = turn.finish() if abort is None else turn.abort(abort)
    except tw.StreamError as error:
        result = turn.abort(error)
    return written + emitter.emit(turn.take_events()), result


def read(target: str, chunks: Iterable[bytes]) -> tw.TurnResult:
    """The emitted bytes, read back."""
    turn = tw.Turn(target)
    for chunk in chunks:
        turn.feed(chunk)
    return turn.finish()
