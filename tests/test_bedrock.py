"""Bedrock ConverseStream in both shapes, and Anthropic's payloads inside its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

import aws_messages as aws
import toolwire as tw
from cut_helpers import once, play

Events = list[tuple[str, dict[str, Any]]]


def call(index: int, id: str, *pieces: str, **more: Any) -> Events:
    start = {"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": id, "name": "get_tide", **more}}}
    deltas = [("contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": p}}, "p": "abc"}) for p in pieces]
    return [("contentBlockStart", start), *deltas, ("contentBlockStop", {"contentBlockIndex": index})]


def stop(word: Any) -> Events:
    return [("messageStop", {"stopReason": word}), ("metadata", {"usage": {"outputTokens": 3}})]


TEXT: Events = [("messageStart", {"role": "assistant"}), ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hi"}})]
CALL = [*TEXT, ("contentBlockStop", {"contentBlockIndex": 0}), *call(1, "a", '{"port":', '"Brest"}')]


def binary(events: Events) -> bytes:
    return b"".join(aws.event(name, members) for name, members in events)


def decoded(events: Events) -> bytes:
    return b"".join(json.dumps({name: members}).encode() + b"\n" for name, members in events)


both = pytest.mark.parametrize("encode", [binary, decoded])


@both
def test_calls_run_on_tool_use(encode: Any) -> None:
    body = encode([*CALL, *call(2, "b"), *call(3, "s", "{}", type="server_tool_use"), *stop("tool_use")])
    result, decision = play(body, "bedrock")
    assert result.texts == {(0, "text"): "hi"}
    assert [(c.id, c.arguments) for c in decision.runnable] == [("a", {"port": "Brest"}), ("b", {})]
    assert result.calls[2].runs_on == "provider"
    assert result.usage == {"outputTokens": 3}
    assert result.marks == ()
    found = once([body], "auto", {} if encode is binary else {"framing": "ndjson"})
    assert (found.provider, found.outcome) == ("bedrock", result.outcome)


@both
@pytest.mark.parametrize(
    ("word", "outcome", "reason"),
    [
        ("end_turn", "STOP", "turn_not_for_tools"),
        ("stop_sequence", "STOP", "turn_not_for_tools"),
        ("max_tokens", "LENGTH", "turn_truncated"),
        ("model_context_window_exceeded", "LENGTH", "turn_truncated"),
        ("guardrail_intervened", "FILTERED", "turn_filtered"),
        ("content_filtered", "FILTERED", "turn_filtered"),
        ("malformed_tool_use", "ERROR", "turn_error"),
        ("malformed_model_output", "ERROR", "turn_error"),
        ("other", "UNKNOWN", "turn_unknown"),
        (None, "CUT", "turn_not_ended"),
    ],
)
def test_only_tool_use_runs(encode: Any, word: Any, outcome: str, reason: str) -> None:
    result, decision = play(encode([*CALL, *stop(word)]), "bedrock")
    assert (str(result.outcome), decision.action, decision.reason) == (outcome, "refuse", reason)


def test_exceptions_and_errors_win_whenever_they_come() -> None:
    good = [*CALL, *stop("tool_use")]
    for body in (
        binary(good) + aws.exception("throttlingException", "slow down"),
        binary(CALL) + aws.exception("throttlingException", "slow down") + binary(stop("tool_use")),
        decoded([*good, ("throttlingException", {"message": "slow down"})]),
        binary(good) + aws.error("throttlingException", "slow down"),
    ):
        result, decision = play(body, "bedrock")
        assert isinstance(result.error, tw.ProviderError)
        assert (result.error.type, result.error.message) == ("throttlingException", "slow down")
        assert decision.reason == "turn_error"


def test_no_beginning_and_no_flipped_bit_lets_a_call_run_before_message_stop() -> None:
    before = binary(CALL)
    body = before + binary(stop("tool_use")[:1])
    for end in range(len(body)):
        assert tw.TurnGate().decide(once([body[:end]], "bedrock", {})).action != "run"
    for bit in range(0, 8 * len(body), 3):
        broken = bytearray(body)
        broken[bit // 8] ^= 1 << bit % 8
        assert tw.TurnGate().decide(once([bytes(broken)], "bedrock", {"framing": "aws-eventstream"})).action != "run"


def test_models_own_payloads_inside_chunks() -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "get_tide", "input": {}}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": p}} for p in ('{"port":', '"Br', 'est"}')),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    body = b"".join(aws.chunk(e) for e in events)
    for provider, options in (("anthropic", {"framing": "aws-eventstream"}), ("anthropic", {}), ("auto", {})):
        decision = play(body, provider, **options)[1]
        assert [c.arguments for c in decision.runnable] == [{"port": "Brest"}]
    nova = b"".join(aws.chunk({name: members}) for name, members in [*CALL, *stop("tool_use")])
    assert play(nova, "bedrock")[1].action == "run"
    result, decision = play(body + aws.exception("modelStreamErrorException", "broke"), "anthropic", framing="aws-eventstream")
    assert decision.reason == "turn_error"
    result, decision = play(aws.chunk(events[0]) + aws.event("chunk", {"bytes": "%"}), "anthropic")
    assert getattr(result.error, "code", None) == "frame.bad_payload"


def test_half_a_message_after_the_stop_is_a_cut() -> None:
    """It could be an exception. Nothing after the stop is a good end."""
    good = binary([*CALL, *stop("tool_use")[:1]])
    for tail in (aws.event("metadata", {"usage": {"outputTokens": 3}}), aws.exception("throttlingException", "slow")):
        assert play(good, "bedrock")[1].action == "run"
        for cut in range(1, len(tail)):
            result = once([good + tail[:cut]], "bedrock", {})
            assert (result.truncated, tw.TurnGate().decide(result).reasons) == (True, ("turn_not_ended",))
