"""Ollama's own chat protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cut_helpers import play


def line(message: Any = None, done: bool = False, **more: Any) -> dict[str, Any]:
    return {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "", **(message or {})}, "done": done, **more}


def calls(*arguments: Any, **more: Any) -> dict[str, Any]:
    return line({"tool_calls": [{"function": {"name": "get_tide", "arguments": a}, **more} for a in arguments]})


def body(*lines: Any) -> bytes:
    return b"".join(json.dumps(x).encode() + b"\n" for x in lines)


STOP = line(done=True, done_reason="stop", eval_count=7)


@pytest.mark.parametrize("provider", ["ollama", "auto"])
def test_whole_calls_run_on_stop(provider: str) -> None:
    result, decision = play(body(line({"thinking": "hm"}), calls({"port": "Brest"}, {}), calls({"port": "Brest"}), STOP), provider, framing="ndjson")
    assert result.provider == "ollama"
    assert [c.arguments for c in decision.runnable] == [{"port": "Brest"}, {}, {"port": "Brest"}]
    assert len({c.id for c in result.calls}) == 3
    assert all(c.id_is_synthetic for c in result.calls)
    assert result.texts == {(0, "reasoning"): "hm"}
    assert result.usage == {"eval_count": 7}


@pytest.mark.parametrize(
    ("last", "outcome", "reason"),
    [
        ({"done_reason": "length"}, "LENGTH", "turn_truncated"),
        ({"done_reason": "load"}, "UNKNOWN", "turn_unknown"),
        ({"done_reason": ""}, "CUT", "turn_not_ended"),
        ({}, "CUT", "turn_not_ended"),
    ],
)
def test_nothing_runs_on_other_ends(last: dict[str, Any], outcome: str, reason: str) -> None:
    result, decision = play(body(calls({"port": "Brest"}), line(done=True, **last)), "ollama")
    assert (str(result.outcome), decision.action, decision.reason) == (outcome, "refuse", reason)


def test_cut_error_line_and_ids() -> None:
    assert play(body(calls({"a": 1})), "ollama")[1].reason == "turn_not_ended"
    result, decision = play(body(calls({"a": 1}), {"error": "model runner has stopped"}, STOP), "ollama")
    assert (str(result.outcome), decision.reason) == ("ERROR", "turn_error")
    result, decision = play(body(calls({"a": 1}, {"a": 2}, id="x"), STOP), "ollama")
    assert result.calls[0].id == "x"
    assert result.calls[1].id_is_synthetic
    assert decision.action == "run"
    assert play(body(calls([1]), STOP), "ollama")[1].reason == "args_not_object"


def test_line_sent_again_is_one_call_where_an_id_tells() -> None:
    result, decision = play(body(calls({"a": 1, "b": 2}, id="x"), calls({"b": 2, "a": 1}, id="x"), STOP), "ollama")
    assert [(c.id, c.text) for c in result.calls] == [("x", '{"a":1,"b":2}')]
    assert "call_repeated" in result.calls[0].marks
    assert [c.arguments for c in decision.runnable] == [{"a": 1, "b": 2}]
    result, decision = play(body(calls({"a": 1}), calls({"a": 1}), STOP), "ollama")
    assert len(decision.runnable) == 2
