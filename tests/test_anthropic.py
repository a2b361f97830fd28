"""Anthropic Messages: frames built here in the provider's wire shape, each body fed whole, byte by byte and at random cuts."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

import toolwire as tw

USAGE = {"input_tokens": 9, "output_tokens": 1}


def start(id: str | None = "msg_1", content: Any = (), **more: Any) -> dict[str, Any]:
    message = {"id": id, "type": "message", "role": "assistant", "model": "m", "content": list(content), "stop_reason": None, "usage": USAGE}
    return {"type": "message_start", "message": {**message, **more}}


def block(index: int, type: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type, **members}}


def tool(index: int, id: str, name: str = "open_gate", input: Any = None, type: str = "tool_use", **more: Any) -> dict[str, Any]:
    return block(index, type, id=id, name=name, input={} if input is None else input, **more)


def delta(index: int, type: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **members}}


def args(index: int, text: str) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=text)


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def reason(word: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": None}, "usage": {"output_tokens": 31}, **more}


END = {"type": "message_stop"}
PING = {"type": "ping"}


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    return [block(index, "text", text=""), *(delta(index, "text_delta", text=piece) for piece in pieces), stop(index)]


def call(index: int, id: str, *pieces: str, name: str = "open_gate") -> list[dict[str, Any]]:
    return [tool(index, id, name), *(args(index, piece) for piece in pieces), stop(index)]


def sse(frames: list[Any], *, names: bool = True) -> bytes:
    return b"".join((f"event: {f['type']}\n".encode() if names and "type" in f else b"") + b"data: " + json.dumps(f).encode() + b"\n\n" for f in frames)


def cuts(body: bytes) -> Iterator[list[bytes]]:
    yield [body]
    yield [body[i : i + 1] for i in range(len(body))]
    rng = random.Random(len(body))
    for _ in range(4):
        at = sorted(rng.sample(range(len(body) + 1), min(len(body), 12)))
        yield [body[a:b] for a, b in zip([0, *at], [*at, len(body)], strict=True)]


def merged(events: list[tw.Event]) -> list[Any]:
    """Events without what depends on how a person looks at them."""
    out: list[Any] = []
    for event in events:
        if isinstance(event, tw.TextDelta):
            out.append(["text", event.channel, event.text])
        elif isinstance(event, tw.ArgumentsDelta):
            out.append(["arguments", event.call.key, event.text])
        elif isinstance(event, (tw.CallStart, tw.CallEnd)):
            out.append([type(event).__name__, event.call.key])
        elif not isinstance(event, tw.TurnEnd):
            out.append([type(event).__name__])
    return out


def run(chunks: list[bytes], **options: Any) -> tuple[tw.TurnResult, list[Any], tw.StreamError | None]:
    turn = tw.Turn("anthropic", **options)
    events: list[tw.Event] = []
    error = None
    try:
        for chunk in chunks:
            events += turn.feed(chunk)
        result = turn.finish()
    except tw.StreamError as caught:
        error = caught
        result = turn.abort(caught)
    return result, merged(events + turn.take_events()), error


def same(result: tw.TurnResult, events: list[Any], error: tw.StreamError | None) -> Any:
    calls = [(c.key, c.id, c.name, c.text, c.complete, c.closed, c.runs_on, dict(c.doubts), [*c.marks], c.extra) for c in result.calls]
    marks = [(str(m), m.offset, m.detail) for m in result.marks]
    return result.texts, result.outcome, result.reason, result.truncated, result.usage, marks, calls, events, str(error)


def play(frames: list[Any] | bytes, *, fails: bool = False, **options: Any) -> tuple[tw.TurnResult, list[Any], Any]:
    """The result and events of a body, the same however it is cut."""
    body = frames if isinstance(frames, bytes) else sse(frames)
    seen = [run(chunks, **options) for chunks in cuts(body)]
    first = seen[0]
    for other in seen[1:]:
        assert same(*other) == same(*first)
    assert (first[2] is not None) == fails, first[2]
    return first


def decide(result: tw.TurnResult) -> tw.GateDecision:
    return tw.TurnGate().decide(result)


def reasons(result: tw.TurnResult) -> set[str]:
    decision = decide(result)
    assert decision.action == "refuse"
    return {*decision.reasons, *(r for refusal in decision.refused for r in refusal.reasons)}


# -- the ordinary turn ----------------------------------------------------------------------------------------------------


def test_ordinary_turn_gives_text_call_usage_and_runs() -> None:
    frames = [start(), PING, *text(0, "Let me ", "see."), *call(1, "toolu_1", "", '{"gate": "no', 'rth"}'), reason("tool_use"), END]
    result, events, _ = play(frames)
    assert result.text == "Let me see."
    assert (result.outcome, result.reason, result.response_id) == (tw.Outcome.TOOL_CALLS, "tool_use", "msg_1")
    assert result.usage == {"input_tokens": 9, "output_tokens": 31}
    assert events == [
        ["UsageUpdate"],
        ["text", "text", "Let me "],
        ["text", "text", "see."],
        ["CallStart", "0.0"],
        ["arguments", "0.0", '{"gate": "no'],
        ["arguments", "0.0", 'rth"}'],
        ["CallEnd", "0.0"],
        ["UsageUpdate"],
    ]
    (runnable,) = decide(result).runnable
    assert (runnable.id, runnable.name, runnable.arguments) == ("toolu_1", "open_gate", {"gate": "north"})
    assert result.marks == ()


def test_event_names_are_not_needed() -> None:
    result, _, _ = play(sse([start(), *call(0, "toolu_1", '{"a":1}'), reason("tool_use"), END], names=False))
    assert decide(result).runnable[0].arguments == {"a": 1}


def test_event_name_stands_in_for_a_missing_type() -> None:
    frames = [start(), *call(0, "toolu_1", '{"a":1}'), reason("tool_use"), END]
    body = b"".join(f"event: {f['type']}\ndata: {json.dumps({k: v for k, v in f.items() if k != 'type'})}\n\n".encode() for f in frames)
    result, _, _ = play(body)
    assert decide(result).runnable[0].arguments == {"a": 1}


def test_payload_without_type_or_name_is_skipped() -> None:
    result, events, _ = play(sse([start(), {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 1}}, *text(0, "x"), reason("end_turn"), END], names=False))
    assert result.text == "x"
    assert "ignored_frames" in result.marks
    assert ["UnknownFrame"] not in events


# -- the table of ends ----------------------------------------------------------------------------------------------------

CALL = call(0, "toolu_1", '{"a":1}')


@pytest.mark.parametrize(
    ("word", "outcome", "why"),
    [
        ("end_turn", tw.Outcome.STOP, "turn_not_for_tools"),
        ("stop_sequence", tw.Outcome.STOP, "turn_not_for_tools"),
        ("max_tokens", tw.Outcome.LENGTH, "turn_truncated"),
        ("model_context_window_exceeded", tw.Outcome.LENGTH, "turn_truncated"),
        ("pause_turn", tw.Outcome.PAUSED, "turn_paused"),
        ("compaction", tw.Outcome.PAUSED, "turn_paused"),
        ("refusal", tw.Outcome.REFUSED, "turn_refused"),
        ("a_new_word", tw.Outcome.UNKNOWN, "turn_unknown"),
    ],
)
def test_only_tool_use_runs_tools(word: str | None, outcome: tw.Outcome, why: str) -> None:
    result, _, _ = play([start(), *CALL, reason(word), END])
    assert (result.outcome, result.truncated) == (outcome, False)
    assert why in reasons(result)


def test_parallel_calls_all_run() -> None:
    result, _, _ = play([start(), *call(0, "toolu_1", '{"a":1}'), *call(1, "toolu_2", '{"a":2}'), reason("tool_use"), END])
    assert [(c.id, c.arguments) for c in decide(result).runnable] == [("toolu_1", {"a": 1}), ("toolu_2", {"a": 2})]


def test_invalid_text_of_one_call_refuses_that_call_alone() -> None:
    result, _, _ = play([start(), *call(0, "toolu_1", '{"a":1}'), *call(1, "toolu_2", '{"a":1,}'), reason("tool_use"), END])
    decision = decide(result)
    assert [c.id for c in decision.runnable] == ["toolu_1"]
    assert [r.reasons for r in decision.refused] == [("args_invalid_json",)]


def test_text_that_stops_refuses_the_turn() -> None:
    result, _, _ = play([start(), *call(0, "toolu_1", '{"n":12'), reason("tool_use"), END])
    assert "args_incomplete" in reasons(result)
    assert result.calls[0].text == '{"n":12'


def test_block_left_open_is_incomplete() -> None:
    result, _, _ = play([start(), *call(0, "toolu_1", '{"a":1}')[:-1], reason("tool_use"), END])
    assert "args_incomplete" in reasons(result)


def test_end_of_block_is_not_permission() -> None:
    result, _, _ = play([start(), *call(0, "toolu_1", '{"gate": "no'), reason("max_tokens"), END])
    assert result.calls[0].closed
    assert result.calls[0].text == '{"gate": "no'
    assert "turn_truncated" in reasons(result)


@pytest.mark.parametrize("tail", [[], [reason("tool_use")]])
def test_end_of_body_before_message_stop_is_a_cut(tail: list[Any]) -> None:
    result, _, _ = play([start(), *CALL, *tail])
    assert (result.outcome, result.truncated) == (tw.Outcome.CUT, True)
    assert reasons(result) == {"turn_not_ended"}


def test_only_provider_run_calls_leave_nothing_to_run() -> None:
    frames = [
        start(),
        tool(0, "srvtoolu_1", "web_search", type="server_tool_use"),
        args(0, '{"query":"tides"}'),
        stop(0),
        block(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[{"type": "web_search_result", "title": "x"}]),
        stop(1),
        tool(2, "mcptoolu_1", "echo", type="mcp_tool_use", server_name="srv"),
        args(2, "{}"),
        stop(2),
        *text(3, "done"),
        reason("end_turn"),
        END,
    ]
    result, events, _ = play(frames)
    assert [(c.id, c.name, c.runs_on, c.value) for c in result.calls] == [
        ("srvtoolu_1", "web_search", "provider", {"query": "tides"}),
        ("mcptoolu_1", "echo", "provider", {}),
    ]
    assert result.calls[1].extra == {"server_name": "srv"}
    assert decide(result).action == "nothing_to_run"
    assert result.text == "done"
    assert ["UnknownFrame"] not in events


@pytest.mark.parametrize("where", [0, 1, 3])
def test_error_event_ends_the_turn_wherever_it_comes(where: int) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
    frames = [start(), *CALL]
    result, _, _ = play([*frames[:where], error])
    assert result.outcome is tw.Outcome.ERROR
    assert isinstance(result.error, tw.ProviderError)
    assert (result.error.type, result.error.message) == ("overloaded_error", "Overloaded")
    assert not result.truncated


def test_an_error_is_not_healed_by_a_good_end() -> None:
    error = {"type": "error", "error": {"type": "api_error", "message": "x"}}
    result, _, _ = play([start(), *CALL, error, reason("tool_use"), END])
    assert "turn_error" in reasons(result)


# -- the reason -----------------------------------------------------------------------------------------------------------


def test_later_null_does_not_erase_the_reason() -> None:
    result, _, _ = play([start(), *CALL, reason("tool_use"), reason(None), END])
    assert decide(result).action == "run"


def test_of_two_reasons_the_most_restrictive_counts() -> None:
    result, _, _ = play([start(), *CALL, reason("tool_use"), reason("max_tokens"), END])
    assert (result.outcome, result.reason) == (tw.Outcome.LENGTH, "max_tokens")
    assert "several_finish_reasons" in result.marks


def test_message_stop_without_any_message_delta_runs_nothing() -> None:
    result, _, _ = play([start(), *CALL, END])
    assert (result.outcome, result.truncated) == (tw.Outcome.CUT, True)
    assert "no_finish_reason" in result.marks
    assert "turn_not_ended" in reasons(result)


def test_message_stop_after_a_null_reason_ends_nothing() -> None:
    result, _, _ = play([start(), *CALL, reason(None), END])
    assert (result.outcome, result.truncated) == (tw.Outcome.CUT, True)
    assert decide(result).runnable == ()


def test_frames_after_the_end_are_not_read() -> None:
    result, _, _ = play([start(), *CALL, reason("tool_use"), END, *call(1, "toolu_2", "{}")])
    assert len(result.calls) == 1
    assert "data_after_end" in result.marks


def test_done_marker_of_a_proxy_means_nothing() -> None:
    good, _, _ = play(sse([start(), *CALL, reason("tool_use"), END]) + b"data: [DONE]\n\n")
    cut, _, _ = play(sse([start(), *CALL, reason("tool_use")]) + b"data: [DONE]\n\n")
    assert decide(good).action == "run"
    assert cut.truncated


def test_delta_after_the_reason_still_counts() -> None:
    frames = [start(), tool(0, "toolu_1"), args(0, '{"a":'), reason("tool_use"), args(0, "1}"), stop(0), END]
    result, _, _ = play(frames)
    assert decide(result).runnable[0].arguments == {"a": 1}
    assert "delta_after_finish" in result.marks


# -- message_start --------------------------------------------------------------------------------------------------------


def test_content_of_message_start_holds_whole_calls() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_9"}
    content = [
        {"type": "text", "text": "Rolling."},
        {"type": "tool_use", "id": "toolu_1", "name": "roll", "input": {"player": "a"}, "caller": caller},
        {"type": "tool_use", "id": "toolu_2", "name": "roll", "input": {}, "caller": caller},
    ]
    result, events, _ = play([start(content=content, stop_reason="tool_use"), END])
    assert result.text == "Rolling."
    assert [(c.id, c.text, c.closed, c.extra) for c in result.calls] == [
        ("toolu_1", '{"player":"a"}', True, {"caller": caller}),
        ("toolu_2", "{}", True, {"caller": caller}),
    ]
    assert [(c.id, c.arguments) for c in decide(result).runnable] == [("toolu_1", {"player": "a"}), ("toolu_2", {})]
    assert ["CallEnd", "0.1"] in events


def test_same_message_started_twice_is_marked() -> None:
    result, _, _ = play([start(), start(), *CALL, reason("tool_use"), END])
    assert decide(result).action == "run"
    assert "message_repeated" in result.marks


def test_another_message_while_one_is_open_is_a_protocol_error() -> None:
    result, _, error = play([start("msg_1"), *CALL, start("msg_2"), reason("tool_use"), END], fails=True)
    assert isinstance(error, tw.MalformedFrame)
    assert (error.code, error.offset) == ("frame.protocol", len(sse([start("msg_1"), *CALL])))
    assert "turn_not_ended" in reasons(result)


def test_whole_message_in_place_of_a_stream() -> None:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use", "usage": USAGE}
    content = [{"type": "text", "text": "ok"}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]
    result, _, _ = play(json.dumps({**message, "content": content}).encode())
    assert result.text == "ok"
    assert "whole_completion" in result.marks
    assert decide(result).runnable[0].arguments == {"a": 1}


# -- input ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [(), ("",), ("", "")])
def test_no_argument_text_is_an_empty_object(pieces: tuple[str, ...]) -> None:
    result, _, _ = play([start(), *call(0, "toolu_1", *pieces), reason("tool_use"), END])
    assert result.calls[0].text == ""
    assert decide(result).runnable[0].arguments == {}


def test_missing_input_is_a_placeholder_too() -> None:
    frames = [start(), block(0, "tool_use", id="toolu_1", name="f"), args(0, '{"a":1}'), stop(0), reason("tool_use"), END]
    result, _, _ = play(frames)
    assert decide(result).runnable[0].arguments == {"a": 1}


def test_input_in_the_start_block_is_the_whole_argument() -> None:
    result, _, _ = play([start(), tool(0, "toolu_1", input={"b": [1, 2.5], "a": "é"}), args(0, ""), stop(0), reason("tool_use"), END])
    assert result.calls[0].text == '{"b":[1,2.5],"a":"é"}'
    assert decide(result).runnable[0].arguments == {"b": [1, 2.5], "a": "é"}


def test_input_in_the_start_block_and_deltas_contradict() -> None:
    result, _, _ = play([start(), tool(0, "toolu_1", input={"a": 1}), args(0, '{"a":2}'), stop(0), reason("tool_use"), END])
    assert "args_conflict" in reasons(result)
    assert result.calls[0].text == '{"a":1}'


@pytest.mark.parametrize("value", [["a"], [], 7, False, "[1]"])
def test_input_that_is_no_object_is_refused(value: Any) -> None:
    result, _, _ = play([start(), tool(0, "toolu_1", input=value), stop(0), reason("tool_use"), END])
    assert "args_not_object" in reasons(result)


def test_repeated_key_in_an_input_object_is_refused() -> None:
    body = sse([start(), tool(0, "toolu_1", input={"a": 1}), stop(0), reason("tool_use"), END]).replace(b'{"a": 1}', b'{"a": 1, "a": 2}')
    result, _, _ = play(body)
    assert "args_duplicate_key" in reasons(result)


# -- routing --------------------------------------------------------------------------------------------------------------


def test_interleaved_blocks_keep_their_text() -> None:
    frames = [start(), tool(0, "toolu_1"), tool(1, "toolu_2"), args(1, '{"b"'), args(0, '{"a"'), args(0, ":1}"), args(1, ":2}")]
    result, _, _ = play([*frames, stop(0), stop(1), reason("tool_use"), END])
    assert [c.arguments for c in decide(result).runnable] == [{"a": 1}, {"b": 2}]


def test_argument_delta_in_a_result_block_is_dropped() -> None:
    result, _, _ = play(
        [start(), *CALL, block(1, "web_search_tool_result", tool_use_id="x", content=[]), args(1, '{"query":"x"}'), stop(1), reason("tool_use"), END]
    )
    assert len(result.calls) == 1
    assert "misplaced_delta" in result.marks
    assert decide(result).action == "run"


def test_text_delta_in_a_call_block_is_dropped() -> None:
    result, _, _ = play([start(), tool(0, "toolu_1"), delta(0, "text_delta", text="x"), args(0, "{}"), stop(0), reason("tool_use"), END])
    assert result.text == ""
    assert "misplaced_delta" in result.marks


@pytest.mark.parametrize("kind", [{"partial_json": "{}"}, {"text": "x"}])
def test_delta_before_its_start_is_a_protocol_error(kind: dict[str, str]) -> None:
    frames = [start(), delta(0, "input_json_delta" if "partial_json" in kind else "text_delta", **kind)]
    result, _, error = play([*frames, reason("tool_use"), END], fails=True)
    assert isinstance(error, tw.MalformedFrame)
    assert error.code == "frame.protocol"
    assert result.truncated


def test_second_start_with_another_id_is_a_protocol_error() -> None:
    _, _, error = play([start(), tool(0, "toolu_1"), tool(0, "toolu_2")], fails=True)
    assert isinstance(error, tw.MalformedFrame)
    assert "toolu_2" in str(error)


def test_second_start_with_the_same_id_is_dropped() -> None:
    result, _, _ = play([start(), tool(0, "toolu_1"), tool(0, "toolu_1"), args(0, '{"a":1}'), stop(0), reason("tool_use"), END])
    assert "call_repeated" in result.calls[0].marks
    assert [c.arguments for c in decide(result).runnable] == [{"a": 1}]


def test_second_start_with_another_name_is_ambiguous() -> None:
    result, _, _ = play([start(), tool(0, "toolu_1"), tool(0, "toolu_1", "close_gate"), args(0, "{}"), stop(0), reason("tool_use"), END])
    assert "args_ambiguous" in reasons(result)
    assert result.calls[0].name == "open_gate"


def test_same_id_at_another_index_is_another_call_with_a_synthetic_id() -> None:
    result, _, _ = play([start(), *call(0, "toolu_1", '{"a":1}'), *call(1, "toolu_1", '{"a":2}'), reason("tool_use"), END])
    assert [c.id_is_synthetic for c in result.calls] == [False, True]
    assert "id_repeated" in result.calls[1].marks


def test_argument_text_after_the_stop_is_kept_and_ambiguous() -> None:
    result, _, _ = play([start(), tool(0, "toolu_1"), args(0, '{"a":'), stop(0), args(0, "1}"), reason("tool_use"), END])
    assert result.calls[0].text == '{"a":1}'
    assert "args_ambiguous" in reasons(result)


def test_stops_may_all_come_at_the_end() -> None:
    frames = [start(), block(0, "text", text=""), delta(0, "text_delta", text="x"), tool(1, "toolu_1"), args(1, "{}"), stop(0), stop(1)]
    result, _, _ = play([*frames, reason("tool_use"), END])
    assert decide(result).action == "run"


def test_stop_of_a_block_that_never_started_is_marked() -> None:
    result, _, _ = play([start(), stop(5), *CALL, reason("tool_use"), END])
    assert "orphan_end" in result.marks
    assert decide(result).action == "run"


def test_delta_without_index_belongs_to_the_only_open_block() -> None:
    frames = [start(), *text(0, "x"), tool(1, "toolu_1"), {**args(1, '{"a":1}'), "index": None}, stop(1), reason("tool_use"), END]
    result, _, _ = play(frames)
    assert decide(result).runnable[0].arguments == {"a": 1}
    assert "index_missing" in result.marks


def test_call_without_a_name_is_refused() -> None:
    frames = [start(), block(0, "tool_use", id="toolu_1", name=" ", input={}), args(0, "{}"), stop(0), reason("tool_use"), END]
    result, _, _ = play(frames)
    assert "no_name" in reasons(result)


# -- other blocks ---------------------------------------------------------------------------------------------------------


def test_thinking_is_reasoning_and_never_text() -> None:
    frames = [
        start(),
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        block(1, "redacted_thinking", data="x"),
        stop(1),
        block(2, "text", text="A"),
        delta(2, "citations_delta", citation={"type": "page_location"}),
        delta(2, "text_delta", text="B"),
        stop(2),
        block(3, "container_upload", file_id="f"),
        stop(3),
        block(4, "compaction", content=None),
        delta(4, "compaction_delta", content="c", encrypted_content="e"),
        stop(4),
        reason("end_turn"),
        END,
    ]
    result, events, _ = play(frames)
    assert result.texts == {(0, "reasoning"): "hmm", (0, "text"): "AB"}
    assert ["UnknownFrame"] not in events


def test_fallback_block_supersedes_the_calls_before_it() -> None:
    fallback = block(1, "fallback", **{"from": {"model": "a"}, "to": {"model": "b"}, "trigger": "refusal"})
    frames = [start(), tool(0, "toolu_1"), args(0, '{"a":'), stop(0), fallback, stop(1), *call(2, "toolu_2", '{"a":2}'), reason("tool_use"), END]
    result, _, _ = play(frames)
    decision = decide(result)
    assert [c.id for c in decision.runnable] == ["toolu_2"]
    assert [(r.call.id, r.reasons) for r in decision.refused] == [("toolu_1", ("superseded",))]


def test_unknown_events_blocks_and_deltas_are_reported() -> None:
    frames = [
        start(),
        {"type": "message_mood", "mood": 1},
        block(0, "hologram", id="h"),
        args(0, '{"a":1}'),
        delta(0, "hologram_delta", light="x"),
        stop(0),
        *call(1, "toolu_1", "{}"),
        reason("tool_use"),
        END,
    ]
    result, events, _ = play(frames)
    assert events.count(["UnknownFrame"]) == 3
    assert "unknown_events" in result.marks
    assert [c.id for c in decide(result).runnable] == ["toolu_1"]


def test_what_must_be_sent_back_is_kept() -> None:
    frames = [start(), tool(0, "toolu_1", caller={"type": "direct"}, toolset_name="garden"), args(0, "{}"), stop(0), reason("tool_use"), END]
    result, _, _ = play(frames)
    assert result.calls[0].extra == {"caller": {"type": "direct"}, "toolset_name": "garden"}


def test_half_fed_turn_goes_on_after_pickling() -> None:
    body = sse([start(), *text(0, "hey"), *call(1, "toolu_1", '{"a":', "1}"), reason("tool_use"), END])
    whole, _, _ = play(body)
    for at in range(0, len(body), 37):
        turn = tw.Turn("anthropic")
        turn.feed(body[:at])
        turn = pickle.loads(pickle.dumps(turn))
        turn.feed(body[at:])
        result = turn.finish()
        assert (result.text, result.outcome, [(c.id, c.text) for c in result.calls]) == (whole.text, whole.outcome, [(c.id, c.text) for c in whole.calls])


@pytest.mark.parametrize("junk", [None, 0, "x", [], {}, [{}], {"type": []}, {"index": {}}, True, 1.5])
def test_members_of_the_wrong_kind_never_crash(junk: Any) -> None:
    frames = [start(content=[{"type": "text", "text": "t"}]), *text(0, "x"), *call(1, "toolu_1", "{}"), reason("tool_use"), END]
    for i, frame in enumerate(frames):
        for path in _paths(frame):
            bad = json.loads(json.dumps(frame))
            _set(bad, path, junk)
            result, _, _ = run([sse([*frames[:i], bad, *frames[i + 1 :]], names=False)])
            tw.TurnGate().decide(result)


def _paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from _paths(inner, (*at, key))


def _set(value: Any, path: tuple[Any, ...], junk: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = junk
