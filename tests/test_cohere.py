"""Cohere chat, version 2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cut_helpers import play

START = {"id": "m1", "type": "message-start", "delta": {"message": {"role": "assistant", "tool_calls": []}}}


def sse(*payloads: Any) -> bytes:
    return b"".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n".encode() for p in payloads)


def begin(index: int, id: str) -> dict[str, Any]:
    call = {"id": id, "type": "function", "function": {"name": "get_tide", "arguments": ""}}
    return {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": call}}}


def args(index: int, text: str) -> dict[str, Any]:
    return {"type": "tool-call-delta", "index": index, "delta": {"message": {"tool_calls": {"function": {"arguments": text}}}}}


def close(index: int) -> dict[str, Any]:
    return {"type": "tool-call-end", "index": index}


def end(word: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": word, "usage": {"tokens": {"output_tokens": 4}}, **more}}


CALL = (begin(0, "a"), args(0, '{"port":'), args(0, '"Brest"}'), close(0))


@pytest.mark.parametrize("provider", ["cohere", "auto"])
def test_parallel_calls_a_plan_and_done(provider: str) -> None:
    plan = {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I look"}}}
    body = sse(START, plan, *CALL, begin(1, "b"), close(1), end("TOOL_CALL")) + b"data: [DONE]\n\n"
    result, decision = play(body, provider)
    assert result.provider == "cohere"
    assert result.response_id == "m1"
    assert result.texts == {(0, "reasoning"): "I look"}
    assert [(c.id, c.arguments) for c in decision.runnable] == [("a", {"port": "Brest"}), ("b", {})]
    assert result.usage == {"tokens": {"output_tokens": 4}}


@pytest.mark.parametrize(
    ("word", "outcome", "reason"),
    [
        ("COMPLETE", "STOP", "turn_not_for_tools"),
        ("STOP_SEQUENCE", "STOP", "turn_not_for_tools"),
        ("MAX_TOKENS", "LENGTH", "turn_truncated"),
        ("ERROR", "ERROR", "turn_error"),
        ("TIMEOUT", "ERROR", "turn_error"),
        ("OTHER", "UNKNOWN", "turn_unknown"),
        (None, "CUT", "turn_not_ended"),
    ],
)
def test_only_tool_call_runs(word: Any, outcome: str, reason: str) -> None:
    result, decision = play(sse(START, *CALL, end(word)), "cohere")
    assert (str(result.outcome), decision.action, decision.reason) == (outcome, "refuse", reason)


def test_cut_error_and_open_calls() -> None:
    assert play(sse(START, *CALL), "cohere")[1].reason == "turn_not_ended"
    result, decision = play(sse(START, *CALL, end("TOOL_CALL", error="broke")), "cohere")
    assert (str(result.outcome), decision.action) == ("ERROR", "refuse")
    assert play(sse(START, *CALL[:-1], end("TOOL_CALL")), "cohere")[1].reason == "args_incomplete"
    assert play(sse(START, *CALL, args(0, " "), end("TOOL_CALL")), "cohere")[1].reason == "args_ambiguous"


def test_a_second_start_of_an_open_call_is_a_protocol_error() -> None:
    result, decision = play(sse(START, CALL[0], begin(0, "other"), end("TOOL_CALL")), "cohere")
    assert getattr(result.error, "code", None) == "frame.protocol"
    assert decision.action == "refuse"


def test_a_second_start_with_other_arguments_is_a_conflict() -> None:
    again = begin(0, "a")
    again["delta"]["message"]["tool_calls"]["function"]["arguments"] = '{"port":"Nice"}'
    _, decision = play(sse(START, *CALL[:3], again, CALL[3], end("TOOL_CALL")), "cohere")
    assert decision.reasons == ("args_conflict",)
