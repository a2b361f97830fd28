"""Plays a body whole, byte by byte and at every single cut, and asserts that it is the same each time."""

from __future__ import annotations

from typing import Any

import toolwire as tw


def once(chunks: list[bytes], provider: str, options: dict[str, Any]) -> tw.TurnResult:
    turn = tw.Turn(provider, **options)
    try:
        for chunk in chunks:
            turn.feed(chunk)
        return turn.finish()
    except tw.StreamError as error:
        return turn.abort(error)


def facts(result: tw.TurnResult) -> Any:
    calls = [(c.id, c.name, c.text, c.runs_on, c.closed, c.doubts, list(c.marks)) for c in result.calls]
    return result.outcome, result.reason, result.ended, result.texts, result.usage, str(result.error), list(result.marks), calls


def play(body: bytes, provider: str, **options: Any) -> tuple[tw.TurnResult, tw.GateDecision]:
    result = once([body], provider, options)
    assert facts(once([body[i : i + 1] for i in range(len(body))], provider, options)) == facts(result)
    for i in range(1, len(body), max(1, len(body) // 60)):
        assert facts(once([body[:i], body[i:]], provider, options)) == facts(result)
    return result, tw.TurnGate().decide(result)
