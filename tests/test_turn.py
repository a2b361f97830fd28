"""``Turn``: its events and their order, its ends, its errors, its limits, and what it finds out by itself."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import pytest

import toolwire as tw
from turn_helpers import GOOD, Played, calls, chat, chunk, dumps, entry, error_facts, event_facts, every_way, named, play, sse

TIDE = '{"port":"Brest"}'
END = (chunk(finish="tool_calls"), "[DONE]")
TEXT = sse(chunk({"content": "a"}), chunk(finish="stop"), "[DONE]")

ANTHROPIC = named(
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 9, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "get_tide", "input": {}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"port":'}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '"Brest"}'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 31}},
    {"type": "message_stop"},
)
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "get_tide"}
RESPONSES = named(
    {"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {**ITEM, "arguments": "", "status": "in_progress"}},
    {"type": "response.function_call_arguments.delta", "sequence_number": 2, "output_index": 0, "item_id": "fc_1", "delta": '{"port":'},
    {"type": "response.function_call_arguments.delta", "sequence_number": 3, "output_index": 0, "item_id": "fc_1", "delta": '"Brest"}'},
    {"type": "response.function_call_arguments.done", "sequence_number": 4, "output_index": 0, "item_id": "fc_1", "arguments": TIDE},
    {"type": "response.output_item.done", "sequence_number": 5, "output_index": 0, "item": {**ITEM, "arguments": TIDE, "status": "completed"}},
    {
        "type": "response.completed",
        "sequence_number": 6,
        "response": {"id": "resp_1", "status": "completed", "output": [{**ITEM, "arguments": TIDE, "status": "completed"}], "usage": {"total_tokens": 3}},
    },
)
INTERACTIONS = named(
    {"event_type": "interaction.created", "event_id": "e1", "interaction": {"id": "int_1", "status": "in_progress"}},
    {"event_type": "step.start", "event_id": "e2", "index": 0, "step": {"type": "function_call", "id": "c1", "name": "get_tide", "arguments": {}}},
    {"event_type": "step.delta", "event_id": "e3", "index": 0, "delta": {"type": "arguments_delta", "arguments": '{"port":'}},
    {"event_type": "step.delta", "event_id": "e4", "index": 0, "delta": {"type": "arguments_delta", "arguments": '"Brest"}'}},
    {"event_type": "step.stop", "event_id": "e5", "index": 0},
    {"event_type": "interaction.completed", "event_id": "e6", "interaction": {"id": "int_1", "status": "requires_action", "usage": {"total_tokens": 61}}},
    key="event_type",
)
CANDIDATE = {
    "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "get_tide", "args": {"port": "Brest"}}}]}}]
}
STOP = {"candidates": [{"index": 0, "content": {"role": "model", "parts": []}, "finishReason": "STOP"}]}
GENERATE = sse(CANDIDATE, STOP)

#: One good turn of each protocol, all with the same call.
BODIES = {
    "openai-chat": chat(*GOOD),
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "google-generate": GENERATE,
    "google-interactions": INTERACTIONS,
    "mistral": chat(*GOOD),
}


def fed(body: bytes, provider: str = "openai-chat", **options: Any) -> tuple[tw.Turn, list[tw.Event]]:
    turn = tw.Turn(provider, **options)
    return turn, turn.feed(body)


# Events and their order.


def test_events_of_an_ordinary_turn() -> None:
    body = sse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "So"}),
        calls(entry(0, "c1", "f", "")),
        calls(entry(0, arguments='{"a"'), entry(1, "c2", "g", "{")),
        calls(entry(1, arguments="}"), entry(0, arguments=":1}")),
        chunk({"content": "."}),
        END[0],
        {"choices": [], "usage": {"total_tokens": 3}},
        "[DONE]",
    )
    played = every_way(body)
    f, g = (c.key for c in played.calls)
    assert f != g
    assert [e for e in played.events if e[0] != "end"] == [
        ("text", "text", 0, "So"),
        ("start", f, "f"),
        ("arguments", f, '{"a"'),
        ("start", g, "g"),
        ("arguments", g, "{"),
        ("arguments", g, "}"),
        ("arguments", f, ":1}"),
        ("text", "text", 0, "."),
        ("usage", "{'total_tokens': 3}"),
        ("turn", "TOOL_CALLS"),
    ]
    # Nothing on the wire closes a chat call, so nothing may be made up before the turn ends.
    ends = [n for n, e in enumerate(played.events) if e[0] == "end"]
    assert all(n > played.events.index(("text", "text", 0, ".")) for n in ends)


def test_text_before_the_name_comes_right_after_the_start() -> None:
    body = chat(entry(0, arguments='{"a"'), entry(0, "c1", arguments=":"), entry(1, "c2", "g", "{}"), entry(0, name="f", arguments="1}"))
    played = every_way(body)
    f, g = (c.key for c in played.calls)
    assert [e for e in played.events if e[0] in ("start", "arguments") and e[1] == f] in (
        [("start", f, "f"), ("arguments", f, '{"a":1}')],
        [("start", f, "f"), ("arguments", f, '{"a":'), ("arguments", f, "1}")],
    )
    start = played.events.index(("start", f, "f"))
    assert played.events[start + 1][:2] == ("arguments", f)
    assert played.events.index(("start", g, "g")) < start
    turn, events = fed(sse(calls(entry(0, arguments='{"a"')), calls(entry(0, "c1", arguments=":"))))
    assert events == []
    assert [(c.name, c.text) for c in turn.calls] == [(None, '{"a":')]
    assert [c.value for c in turn.calls] == [{}]


def test_a_call_without_a_name_is_announced_at_the_end_only() -> None:
    turn, events = fed(chat(entry(0, "c1", arguments="{}"), entry(1, "c2", "g", "{}")))
    assert [e.call.name for e in events if isinstance(e, tw.CallStart)] == ["g"]
    result = turn.finish()
    late = turn.take_events()
    assert not any(e.call.name for e in late if isinstance(e, tw.CallStart))
    assert isinstance(late[-1], tw.TurnEnd) and late[-1].result is result


def test_deltas_and_live_values_grow_together() -> None:
    turn = tw.Turn("openai-chat")
    (start,) = turn.feed(sse(calls(entry(0, "c1", "f", ""))))
    assert isinstance(start, tw.CallStart)
    call = start.call
    assert (call.id, call.name, call.text, call.value, call.complete) == ("c1", "f", "", tw.MISSING, False)
    seen = []
    for piece in ('{"a":"x', "y", '","b":[1', "2,3", '],"c":tr', "ue}"):
        (delta,) = turn.feed(sse(calls(entry(0, arguments=piece))))
        assert isinstance(delta, tw.ArgumentsDelta) and delta.call is call and delta.text == piece
        seen.append(call.snapshot())
    assert seen == [{"a": "x"}, {"a": "xy"}, {"a": "xy", "b": []}, {"a": "xy", "b": [12]}, {"a": "xy", "b": [12, 3]}, {"a": "xy", "b": [12, 3], "c": True}]
    assert call.complete and call.value == seen[-1]
    assert turn.calls == (call,)
    turn.feed(sse(*END))
    assert turn.finish().calls == (call,)


def test_two_calls_to_one_function_never_meet() -> None:
    played = every_way(chat(entry(0, "c1", "f", '{"a":'), entry(1, "c2", "f", '{"a":'), entry(1, arguments="2}"), entry(0, arguments="1}")))
    assert [(c.id, c.value) for c in played.calls] == [("c1", {"a": 1}), ("c2", {"a": 2})]
    assert played.calls[0].key != played.calls[1].key
    assert not any(c.name in c.key.split() for c in played.calls)


def test_calls_stand_in_order_of_first_sight() -> None:
    played = every_way(chat(entry(5, arguments="{"), entry(2, "c2", "g", "{}"), entry(5, "c5", "f", "}")))
    assert [c.id for c in played.calls] == ["c5", "c2"]


def test_events_come_with_the_byte_that_completes_their_frame() -> None:
    body = sse(chunk({"content": "a"}))
    turn = tw.Turn("openai-chat")
    for n in range(len(body) - 1):
        assert turn.feed(body[n : n + 1]) == []
    assert [event_facts(e) for e in turn.feed(body[-1:])] == [("text", "text", 0, "a")]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_chunks_are_bytes_like(kind: Any) -> None:
    turn = tw.Turn("openai-chat")
    assert turn.feed(kind(b"")) == []
    events = turn.feed(kind(TEXT))
    assert [event_facts(e) for e in events][:1] == [("text", "text", 0, "a")]


# The result, for every protocol.


@pytest.mark.parametrize("provider", BODIES)
def test_one_good_turn_of_each_protocol(provider: str) -> None:
    played = every_way(BODIES[provider], provider)
    result = played.result
    assert played.error is None
    assert (result.provider, result.ended, result.truncated, result.cause, result.error, result.text) == (provider, True, False, None, None, "")
    (call,) = result.calls
    assert (call.id, call.id_is_synthetic, call.name, call.kind, call.text, call.value, call.complete, call.runs_on) == (
        "c1",
        False,
        "get_tide",
        "json",
        TIDE,
        {"port": "Brest"},
        True,
        "client",
    )
    assert (played.action, played.decision.reason, played.ran) == ("run", "ended", [("c1", "get_tide", {"port": "Brest"})])
    assert result.outcome in ("TOOL_CALLS", "STOP")
    assert call.doubts == {}


@pytest.mark.parametrize("provider", BODIES)
def test_no_beginning_of_a_body_runs_unless_it_ends_well(provider: str) -> None:
    body = BODIES[provider]
    first = None
    for size in range(len(body) + 1):
        played = play([body[:size]], provider)
        if played.action == "run":
            first = size if first is None else first
            assert played.ran == [("c1", "get_tide", {"port": "Brest"})]
            assert played.result.ended
        else:
            assert played.action == "refuse"
    assert first is not None
    # Nothing may run before the last frame that speaks of the end is whole.
    last = {
        "openai-chat": b'finish_reason":"tool_calls"}]}',
        "mistral": b'finish_reason":"tool_calls"}]}',
        "openai-responses": b"response.completed",
        "anthropic": b"message_stop",
        "google-generate": b"STOP",
        "google-interactions": b"interaction.completed",
    }[provider]
    assert first >= body.index(last) + len(last)


RESULT_FIELDS = ("provider", "calls", "text", "texts", "outcome", "reason", "truncated", "error", "usage", "marks", "resume_point", "response_id")


def test_result_fields() -> None:
    body = sse(chunk({"content": "a"}), chunk({"content": "b"}), chunk(finish="stop"), {"choices": [], "usage": {"total_tokens": 3}}, "[DONE]")
    result = every_way(body).result
    assert {name: getattr(result, name) for name in RESULT_FIELDS} == {
        "provider": "openai-chat",
        "calls": (),
        "text": "ab",
        "texts": {(0, "text"): "ab"},
        "outcome": tw.Outcome.STOP,
        "reason": "stop",
        "truncated": False,
        "error": None,
        "usage": {"total_tokens": 3},
        "marks": (),
        "resume_point": None,
        "response_id": "cc_1",
    }
    assert isinstance(result.calls, tuple) and isinstance(result.marks, tuple)
    assert result.outcome == "STOP" and str(result.outcome) == "STOP"


def test_reason_is_the_providers_own_word() -> None:
    assert every_way(sse(chunk(finish="eos"), "[DONE]")).result.reason == "eos"
    assert every_way(sse(chunk(finish="tool_calls"), chunk(finish="length"), "[DONE]")).result.reason == "length"
    assert every_way(sse(chunk(finish="length"), chunk(finish="tool_calls"), "[DONE]")).result.reason == "length"
    assert every_way(sse(chunk())).result.reason is None


def test_outcome_and_result_of_a_cut() -> None:
    played = every_way(sse(chunk({"content": "half"}), calls(*GOOD[:2])))
    result = played.result
    assert (result.outcome, result.ended, result.truncated, result.reason, result.text) == ("CUT", False, True, None, "half")
    assert isinstance(result.error, tw.TurnTruncated) and result.error.code == "turn.cut"
    assert result.error.result is result
    assert [(c.name, c.text, c.value, c.complete) for c in result.calls] == [("get_tide", '{"port":', {}, False)]
    assert played.reasons[0] == "turn_not_ended"
    assert "args_incomplete" in played.reasons


# Ends.


def test_finish_twice_gives_the_same_result() -> None:
    turn, _ = fed(chat(*GOOD))
    result = turn.finish()
    assert turn.finish() is result
    assert turn.abort("aborted") is result
    assert [type(e) for e in turn.take_events()][-1:] == [tw.TurnEnd]
    assert turn.take_events() == []


def test_nothing_can_be_fed_after_the_end() -> None:
    for end in (lambda t: t.finish(), lambda t: t.abort("aborted"), lambda t: t.abort(OSError("gone"))):
        turn, _ = fed(chat(*GOOD))
        result = end(turn)
        before = [(c.text, c.id) for c in result.calls]
        for data in (b"data: x\n\n", b"", sse(calls(entry(0, arguments="x")))):
            with pytest.raises(tw.UsageError):
                turn.feed(data)
        assert [(c.text, c.id) for c in turn.finish().calls] == before


def test_a_good_end_is_not_undone_by_an_abort() -> None:
    for cause in ("aborted", "idle_timeout", ConnectionResetError("reset")):
        for provider in ("openai-chat", "anthropic", "openai-responses", "google-interactions"):
            played = play([BODIES[provider]], provider, abort=cause)
            good = play([BODIES[provider]], provider)
            assert played.facts() == good.facts(), (provider, cause)
            assert played.action == "run"


@pytest.mark.parametrize("cause", ["aborted", "idle_timeout"])
def test_abort_by_a_word(cause: str) -> None:
    body = chat(*GOOD, done=False)
    played = every_way(body, abort=cause)
    assert (played.action, played.ran, played.result.cause) == ("refuse", [], cause)
    assert {"turn_not_ended", cause} <= set(played.reasons)
    assert (played.result.ended, played.result.truncated) == (False, True)
    assert played.result.outcome in ("CANCELLED", "CUT")
    assert played.calls[0].text == TIDE


def test_abort_by_an_exception() -> None:
    cause = ConnectionResetError("reset by peer")
    turn, _ = fed(sse(calls(*GOOD)))
    result = turn.abort(cause)
    assert result.error is cause
    assert (result.outcome, result.truncated) == ("CUT", True)
    assert tw.TurnGate().decide(result).reason == "turn_not_ended"
    assert turn.abort("aborted") is result


def test_an_abort_inside_a_frame_leaves_the_frame_out() -> None:
    body = chat(*GOOD[:2], finish=None, done=False)
    turn, _ = fed(body + sse(calls(GOOD[2]))[:-2])
    result = turn.abort("aborted")
    assert [c.text for c in result.calls] == ['{"port":']


def test_an_abort_before_the_first_byte() -> None:
    result = tw.Turn("openai-chat").abort("idle_timeout")
    assert (result.ended, result.calls, result.text) == (False, (), "")
    assert tw.TurnGate().decide(result).action == "refuse"


def test_take_events_brings_what_only_the_end_brought() -> None:
    body = sse(chunk({"content": "a"}), chunk(finish="stop")) + b"data: " + dumps(chunk({"content": "b"})).encode()
    turn, events = fed(body)
    assert [event_facts(e) for e in events] == [("text", "text", 0, "a")]
    assert turn.take_events() == []
    result = turn.finish()
    assert [event_facts(e) for e in turn.take_events()] == [("text", "text", 0, "b"), ("turn", "STOP")]
    assert turn.take_events() == []
    assert result.text == "ab"


@pytest.mark.parametrize("provider", BODIES)
def test_on_cut(provider: str) -> None:
    body = BODIES[provider]
    half = body[: body.index(b"\n\n") + 2]
    raises = provider in ("google-generate", "google-interactions")
    for on_cut, raising in ((None, raises), ("raise", True), ("return", False)):
        turn, _ = fed(half, provider, on_cut=on_cut)
        if raising:
            with pytest.raises(tw.TurnTruncated) as info:
                turn.finish()
            assert info.value.code == "turn.cut"
            result = info.value.result
            with pytest.raises(tw.TurnTruncated) as again:
                turn.finish()
            assert again.value is info.value
            decided = tw.TurnGate().decide(info.value)
        else:
            result = turn.finish()
            decided = tw.TurnGate().decide(result)
        assert (result.truncated, result.outcome) == (True, "CUT")
        assert (decided.action, decided.reason) == ("refuse", "turn_not_ended")
        assert turn.abort("aborted") is result
        assert isinstance(turn.take_events()[-1], tw.TurnEnd)
    for on_cut in (None, "raise", "return"):
        assert tw.TurnGate().decide(fed(body, provider, on_cut=on_cut)[0].finish()).action == "run"


def test_an_error_object_is_no_cut() -> None:
    for provider, body in (
        ("google-interactions", named({"event_type": "error", "error": {"code": "x", "message": "m"}}, key="event_type")),
        ("google-generate", sse({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}})),
    ):
        result = fed(body, provider)[0].finish()
        assert (result.outcome, result.truncated) == ("ERROR", False)
        assert isinstance(result.error, tw.ProviderError) and result.error.message == "m"


# While it arrives.


def test_ended() -> None:
    turn = tw.Turn("openai-chat")
    states = [turn.ended]
    for frame in (calls(*GOOD), *END):
        turn.feed(sse(frame))
        states.append(turn.ended)
    assert states == [False, False, False, True]
    for provider in ("anthropic", "openai-responses", "google-interactions"):
        body = BODIES[provider]
        turn = tw.Turn(provider)
        flips = [turn.ended]
        for n in range(len(body)):
            turn.feed(body[n : n + 1])
            flips.append(turn.ended)
        assert flips == sorted(flips) and flips[-1] and not flips[-2], provider


def test_an_error_object_ends_the_turn() -> None:
    turn, _ = fed(sse({"error": {"message": "m"}}))
    assert turn.ended


def test_progress_counts_text_only() -> None:
    turn = tw.Turn("openai-chat")
    assert turn.progress == 0
    turn.feed(sse(chunk({"role": "assistant"})) + b": ping\n\n" + sse("", ": x", chunk(usage={"total_tokens": 1})))
    assert turn.progress == 0
    turn.feed(sse(chunk({"content": "abc"})))
    assert turn.progress == 3
    turn.feed(sse(calls(entry(0, "c1", "f", '{"a"'))))
    assert turn.progress == 7
    turn.feed(sse(chunk({"reasoning_content": "é", "refusal": "🛶"})))
    assert turn.progress == 9


def test_provider_and_calls_before_the_first_byte() -> None:
    turn = tw.Turn("auto")
    assert (turn.provider, turn.calls, turn.ended, turn.resume_point) == ("auto", (), False, None)


def test_resume_point() -> None:
    frames = RESPONSES.split(b"\n\n")
    turn, _ = fed(b"\n\n".join(frames[:3]) + b"\n\n", "openai-responses")
    assert turn.resume_point == 2
    assert turn.finish().resume_point == 2
    frames = INTERACTIONS.split(b"\n\n")
    turn, _ = fed(b"\n\n".join(frames[:3]) + b"\n\n", "google-interactions", on_cut="return")
    assert turn.resume_point == "e3"
    assert turn.finish().resume_point == "e3"
    assert fed(chat(*GOOD))[0].finish().resume_point is None


# Options.


@pytest.mark.parametrize(
    "make",
    [
        lambda: tw.Turn("openai"),
        lambda: tw.Turn(""),
        lambda: tw.Turn("OpenAI-Chat"),
        lambda: tw.Turn(None),
        lambda: tw.Turn("openai-chat", framing="csv"),
        lambda: tw.Turn("openai-chat", profile="lenient"),
        lambda: tw.Turn("openai-chat", on_cut="ignore"),
        lambda: tw.Turn("openai-chat", limits={"max_depth": 3}),
        lambda: tw.Turn("openai-chat").abort("bored"),
        lambda: tw.Turn("openai-chat").abort(None),
        lambda: tw.Turn("openai-chat").feed("data: x\n\n"),
        lambda: tw.Turn("openai-chat").feed(None),
        lambda: tw.Turn("openai-chat").feed([1]),
        lambda: tw.Turn("openai-chat").feed(5),
    ],
)
def test_wrong_use_is_said(make: Any) -> None:
    with pytest.raises(tw.UsageError) as info:
        make()
    assert str(info.value)


def test_wrong_use_changes_nothing() -> None:
    turn, _ = fed(chat(*GOOD[:2], finish=None, done=False))
    for wrong in ("x", None):
        with pytest.raises(tw.UsageError):
            turn.feed(wrong)  # type: ignore[arg-type]
    with pytest.raises(tw.UsageError):
        turn.abort("bored")  # type: ignore[arg-type]
    turn.feed(sse(calls(GOOD[2]), *END))
    assert tw.TurnGate().decide(turn.finish()).action == "run"


def test_every_provider_has_a_turn() -> None:
    assert set(BODIES) <= set(tw.PROVIDERS)
    for provider in (*tw.PROVIDERS, "auto"):
        assert tw.Turn(provider).calls == ()


def test_framing_ndjson() -> None:
    body = b"".join(dumps(f).encode() + b"\n" for f in (calls(*GOOD), END[0]))
    played = every_way(body, framing="ndjson")
    assert played.ran == [("c1", "get_tide", {"port": "Brest"})]


def test_framing_message() -> None:
    for convert in (lambda d: d, lambda d: d.decode()):
        turn = tw.Turn("openai-responses", framing="message")
        for frame in RESPONSES.split(b"\n\n")[:-1]:
            turn.feed(convert(frame.partition(b"data: ")[2]))
        assert tw.TurnGate().decide(turn.finish()).action == "run"


def test_framing_json_array() -> None:
    body = json.dumps([CANDIDATE, STOP], indent=1).encode()
    for options in ({}, {"framing": "json-array"}):
        played = every_way(body, "google-generate", **options)
        assert played.ran == [("c1", "get_tide", {"port": "Brest"})]
        assert every_way(body.rstrip()[:-1], "google-generate", **options).action == "refuse"


# Errors.

BAD = b'data: {"choices":[{]}\n\n'


def test_good_events_first_then_the_error_and_always_the_same() -> None:
    good = sse(chunk({"content": "a"}), calls(*GOOD[:2]))
    turn, events = fed(good + BAD + sse(chunk({"content": "never"})))
    assert [event_facts(e)[0] for e in events] == ["text", "start", "arguments"]
    errors = []
    for act in (lambda: turn.feed(b"x"), lambda: turn.feed(b""), turn.finish, turn.finish, lambda: turn.feed(sse(chunk()))):
        with pytest.raises(tw.MalformedJSON) as info:
            act()
        errors.append(info.value)
    assert all(e is errors[0] for e in errors)
    assert errors[0].code == "json.unexpected_byte"
    assert errors[0].offset is not None and len(good) <= errors[0].offset <= len(good) + BAD.index(b"]")
    result = turn.abort(errors[0])
    assert result.error is errors[0]
    assert (result.text, [c.text for c in result.calls], result.truncated) == ("a", ['{"port":'], True)
    assert tw.TurnGate().decide(result).action == "refuse"
    with pytest.raises(tw.UsageError):
        turn.feed(b"")


@pytest.mark.parametrize("noise", [b"", b": ping\n\n", b"event: x\n", b"\xef\xbb\xbf"])
def test_the_offset_is_that_of_the_guilty_byte(noise: bytes) -> None:
    body = noise + BAD
    played = every_way(body)
    assert played.error is not None
    assert played.error.offset == body.index(b"]")


def test_the_error_is_the_same_for_every_cut() -> None:
    played = every_way(sse(chunk({"content": "a"})) + BAD)
    assert played.error is not None
    assert played.events[0] == ("text", "text", 0, "a")


def test_abort_before_the_error_was_raised_still_knows_it() -> None:
    """The bytes went wrong, though nobody was told yet: that is no good end."""
    turn, _ = fed(chat(*GOOD)[: -len(sse("[DONE]"))] + BAD)
    result = turn.abort("aborted")
    assert tw.TurnGate().decide(result).action == "refuse"


def test_bad_bytes_after_the_end_marker_are_not_read() -> None:
    played = every_way(chat(*GOOD) + BAD)
    assert (played.action, set(played.result.marks)) == ("run", {"data_after_end"})


@pytest.mark.parametrize("junk", ["x", "{", "data: {", "tru", '{"a":1} x', "[DONE", "[DONE]x", "<html>"])
def test_a_payload_that_is_no_json(junk: str) -> None:
    played = every_way(sse(calls(*GOOD), junk, *END))
    assert isinstance(played.error, (tw.MalformedJSON, tw.TruncatedJSON)), played.error
    assert played.error.code.startswith("json.")
    start = len(sse(calls(*GOOD)))
    assert played.error.offset is not None and start <= played.error.offset <= start + len(sse(junk))
    assert (played.action, played.calls[0].text) == ("refuse", TIDE)


def test_errors_survive_pickling() -> None:
    error = every_way(sse(chunk({"content": "a"})) + BAD).error
    assert error_facts(pickle.loads(pickle.dumps(error))) == error_facts(error)


# Limits: each is hit, named, and leaves readable what came before.

LIMITS: dict[str, tuple[int, bytes, str]] = {
    "max_frame_bytes": (1000, sse(chunk({"content": "x" * 1000})), "frame.too_large"),
    "max_depth": (20, sse(chunk({"content": "x", "deep": json.loads("[" * 30 + "]" * 30)})), "json.too_deep"),
    "max_calls": (2, sse(calls(*(entry(n, f"c{n}", "f", "{}") for n in range(1, 4)))), "turn.too_many_calls"),
    "max_text_chars": (100, sse(chunk({"content": "x" * 60}), chunk({"refusal": "x" * 60})), "turn.too_much_text"),
    "max_argument_chars": (100, sse(calls(entry(0, arguments='{"a":"' + "x" * 60)), calls(entry(0, arguments="x" * 60 + '"}'))), "turn.args_too_long"),
    "max_stray_bytes": (100, b'{"a":"' + b"x" * 200, "frame.too_large"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_each_limit(limit: str) -> None:
    value, too_much, code = LIMITS[limit]
    before = sse(chunk({"content": "so"}), calls(entry(0, "c0", "f", ""))) if limit != "max_stray_bytes" else b""
    body = before + too_much + (sse(*END) if before else b"")
    assert every_way(body).error is None or limit == "max_stray_bytes", "the defaults allow it"
    played = every_way(body, limits=tw.Limits(**{limit: value}))
    assert (played.action, played.ran) == ("refuse", [])
    error = played.error or next(c.error for c in played.calls if c.error)
    assert isinstance(error, tw.LimitExceeded)
    assert (error.limit, error.value) == (limit, value)
    assert limit in error.option and "Limits" in error.option
    assert limit in str(error) or str(value) in str(error)
    if limit != "max_stray_bytes":
        assert error.code == code
        assert played.result.text.startswith("so")
        assert played.calls[0].name == "f"


def test_depth_of_arguments_refuses_the_call_with_the_limit_in_the_detail() -> None:
    deep = '{"a":' * 30 + "1" + "}" * 30
    played = every_way(chat(entry(0, "c1", "f", deep), entry(1, "c2", "g", "{}")), limits=tw.Limits(max_depth=20))
    assert played.error is None
    assert played.calls[0].text == deep
    assert list(played.refused.values()) == [("args_invalid_json",)]
    assert "max_depth" in played.decision.refused[0].detail
    assert [r[1] for r in played.ran] == ["g"]


def test_limits_allow_what_they_say() -> None:
    limits = tw.Limits(max_calls=2, max_text_chars=4, max_argument_chars=2)
    played = every_way(sse(chunk({"content": "abcd"}), calls(entry(0, "c1", "f", "{}"), entry(1, "c2", "f", "{}")), *END), limits=limits)
    assert (played.error, played.action, len(played.ran)) == (None, "run", 2)


def test_marks_are_bounded() -> None:
    twice = "{" + ",".join(f'"a{n}":1,"a{n}":2' for n in range(50)) + "}"
    played = every_way(chat(entry(0, "c1", "f", twice)), rounds=2)
    assert len(played.calls[0].marks) <= 101
    played = every_way(sse(*(["null"] * 200), *END))
    assert len(played.result.marks) <= 6


def test_limits_are_a_value() -> None:
    assert dataclasses.replace(tw.Limits(), max_depth=3).max_depth == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        tw.Limits().max_depth = 3  # type: ignore[misc]


# "auto".


@pytest.mark.parametrize("provider", [p for p in BODIES if p != "mistral"])
def test_auto_finds(provider: str) -> None:
    auto, told = every_way(BODIES[provider], "auto"), every_way(BODIES[provider], provider)
    assert auto.result.provider == provider
    assert auto.facts() == told.facts()
    turn, _ = fed(BODIES[provider], "auto")
    assert turn.provider == provider


def test_auto_finds_an_array() -> None:
    body = json.dumps([CANDIDATE, STOP]).encode()
    played = every_way(body, "auto")
    assert (played.result.provider, played.action) == ("google-generate", "run")


@pytest.mark.parametrize(
    "noise", [b": hello\n\n", b"\xef\xbb\xbf", b"retry: 5\n\n", b"data:\n\n", b"data: null\n\n", b"event: ping\ndata: {}\n\n", b"\r\n\r\n"]
)
@pytest.mark.parametrize("provider", ["openai-chat", "anthropic", "openai-responses"])
def test_auto_looks_past_noise(provider: str, noise: bytes) -> None:
    played = every_way(noise + BODIES[provider], "auto", rounds=2)
    assert (played.result.provider, played.action) == (provider, "run")


def test_auto_waits_for_the_frame_that_tells() -> None:
    body = b'event: ping\ndata: {"type":"ping"}\n\n' + ANTHROPIC
    assert every_way(body, "auto").result.provider == "anthropic"
    turn, events = fed(b"data: " + dumps(chunk({"content": "a"})).encode()[:30], "auto")
    assert (turn.provider, events) == ("auto", [])


def test_auto_gives_up() -> None:
    played = every_way(sse({"hello": 1}, {"world": 2}), "auto")
    assert played.action == "refuse"
    error = played.error or played.result.error
    assert isinstance(error, tw.StreamError) and error.code == "frame.unknown_protocol"


# Bodies that are none, told and found out.

NO_STREAM: dict[str, bytes] = {
    "html": b"<!DOCTYPE html>\n<html><head><title>502</title></head>\n<body>Bad Gateway: try again</body></html>\n",
    "binary": bytes(range(256)) * 4,
    "gzip": b"\x1f\x8b\x08\x00" + bytes(range(200, 256)) * 3,
    "text": b"upstream connect error or disconnect/reset before headers\n",
}


@pytest.mark.parametrize("provider", ["auto", "openai-chat", "anthropic", "openai-responses", "google-interactions", "google-generate"])
@pytest.mark.parametrize("name", NO_STREAM)
def test_a_body_that_is_no_stream(name: str, provider: str) -> None:
    played = every_way(NO_STREAM[name], provider)
    assert isinstance(played.error, tw.StreamError)
    assert played.error.code == "frame.not_event_stream"
    assert played.error.offset is not None
    assert (played.action, played.result.ended) == ("refuse", False)


@pytest.mark.parametrize("provider", ["auto", "openai-chat", "anthropic", "openai-responses", "google-interactions", "google-generate"])
@pytest.mark.parametrize("body", [b"", b"\n", b" \r\n\t\n", b": ping\n\n", b"\xef\xbb\xbf", b"event: x\n\n"])
def test_a_body_without_anything(body: bytes, provider: str) -> None:
    played = every_way(body, provider)
    assert (played.action, played.decision.reason, played.result.truncated) == ("refuse", "turn_not_ended", True)
    error = played.error or played.result.error
    assert isinstance(error, tw.StreamError)
    if isinstance(error, tw.TurnTruncated):
        assert error.code == ("turn.cut" if body else "turn.empty")


ERROR_BODY = {"error": {"message": "no key", "type": "auth", "code": "invalid_api_key"}}


@pytest.mark.parametrize("provider", ["auto", "openai-chat", "anthropic", "openai-responses", "google-interactions", "google-generate"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("around", [(b"", b""), (b"\n \n", b"\n")])
def test_an_error_body(around: tuple[bytes, bytes], indent: int | None, provider: str) -> None:
    body = around[0] + json.dumps(ERROR_BODY, indent=indent).encode() + around[1]
    played = every_way(body, provider)
    assert (played.error, played.result.outcome, played.decision.reason) == (None, "ERROR", "turn_error")
    assert isinstance(played.result.error, tw.ProviderError)
    assert (played.result.error.message, played.result.error.raw) in (("no key", ERROR_BODY), ("no key", ERROR_BODY["error"]))


@pytest.mark.parametrize("provider", ["auto", "openai-chat"])
def test_chunks_without_data(provider: str) -> None:
    body = b"".join(dumps(f).encode() + b"\n" for f in (calls(*GOOD), END[0]))
    played = every_way(body, provider)
    assert [(c.name, c.text) for c in played.calls] == [("get_tide", TIDE)]
    assert played.result.provider == "openai-chat"
    assert played.action == "run"


@pytest.mark.parametrize("provider", ["auto", "openai-chat"])
def test_a_completion_that_is_no_stream(provider: str) -> None:
    body = {
        "id": "cc_1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [entry(0, "c1", "get_tide", TIDE)]}, "finish_reason": "tool_calls"}
        ],
        "usage": {"total_tokens": 3},
    }
    for text in (dumps(body), json.dumps(body, indent=2), "\n\n" + dumps(body) + "\n"):
        played = every_way(text.encode(), provider)
        assert [(c.id, c.name, c.text) for c in played.calls] == [("c1", "get_tide", TIDE)]
        assert "whole_completion" in played.result.marks
        assert played.result.usage == {"total_tokens": 3}
        cut_short = play([text.encode()[:-20]], provider)
        assert cut_short.action == "refuse"


# Pickle.


@pytest.mark.parametrize("provider", [*(p for p in BODIES if p != "mistral"), "auto"])
def test_a_pickled_turn_goes_on_elsewhere(provider: str) -> None:
    body = BODIES["openai-chat" if provider == "auto" else provider]
    want = play([body], provider)
    for at in range(0, len(body) + 1, 1 if provider == "openai-chat" else 7):
        turn = tw.Turn(provider)
        events = [event_facts(e) for e in turn.feed(body[:at])]
        other = pickle.loads(pickle.dumps(turn))
        assert [(c.key, c.text) for c in other.calls] == [(c.key, c.text) for c in turn.calls]
        assert (other.ended, other.progress, other.resume_point) == (turn.ended, turn.progress, turn.resume_point)
        for one in (other, turn):
            more = [event_facts(e) for e in one.feed(body[at:])]
            result = one.finish()
            more += [event_facts(e) for e in one.take_events()]
            assert Played(result, tw.TurnGate().decide(result), None, events + more).facts() == want.facts(), at


def test_pickle_inside_a_character_and_with_a_surrogate_half() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"\xf0\x9f\x9b\xb6\\ud83d"},"finish_reason":null}]}\n\n' + sse(
        calls(entry(0, arguments='{"\\ud83d')), calls(entry(0, "c1", "f", '\\udef6":"é"}'))
    )
    body += b'data: {"choices":[{"index":0,"delta":{"content":"\\udef6"},"finish_reason":"tool_calls"}]}\n\n' + sse("[DONE]")
    want = play([body])
    assert (want.result.text, want.calls[0].value) == ("🛶🛶", {"🛶": "é"})
    for at in range(len(body)):
        turn = tw.Turn("openai-chat")
        turn.feed(body[:at])
        turn = pickle.loads(pickle.dumps(turn))
        turn.feed(body[at:])
        result = turn.finish()
        assert (result.text, result.calls[0].text, result.calls[0].value) == ("🛶🛶", want.calls[0].text, {"🛶": "é"}), at


# Settling.


def test_a_number_at_the_root_is_whole_at_a_good_end_only() -> None:
    turn, _ = fed(sse(calls(entry(0, "c1", "f", "3"))))
    (call,) = turn.calls
    assert (call.value, call.complete) == (tw.MISSING, False)
    turn.feed(sse(calls(entry(0, arguments="1"))))
    assert (call.value, call.complete) == (tw.MISSING, False)
    turn.feed(sse(*END))
    result = turn.finish()
    assert (call.value, call.complete, call.text) == (31, True, "31")
    assert tw.TurnGate().decide(result).reason == "args_not_object"
    for body, options in ((chat(entry(0, "c1", "f", "31"), finish=None), {}), (chat(entry(0, "c1", "f", "31"), done=False)[:-3], {})):
        played = every_way(body, **options)
        assert played.result.truncated
        assert not played.calls[0].complete


def test_empty_arguments_are_an_object_at_a_good_end_only() -> None:
    good = every_way(chat(entry(0, "c1", "f", "")))
    assert (good.calls[0].value, good.calls[0].complete, good.calls[0].text) == ({}, True, "")
    bad = every_way(chat(entry(0, "c1", "f", ""), finish=None))
    assert (bad.calls[0].value, bad.calls[0].complete) == (tw.MISSING, False)
    for finish in ("length", "content_filter", "eos"):
        assert not every_way(chat(entry(0, "c1", "f", ""), finish=finish)).ran


def test_the_caller_may_spoil_the_live_value() -> None:
    turn, _ = fed(sse(calls(*GOOD[:2])))
    turn.calls[0].value["port"] = "spoilt"
    turn.feed(sse(calls(GOOD[2]), *END))
    turn.calls[0].value["more"] = 1
    (run,) = tw.TurnGate().decide(turn.finish()).runnable
    assert run.arguments == {"port": "Brest"}


def test_synthetic_ids_are_unique_and_the_same_each_time() -> None:
    body = chat(entry(0, name="f", arguments="{}"), entry(1, name="f", arguments="{}"), entry(2, "c1", "f", "{}"))
    ids = [[c.id for c in play([body]).calls] for _ in range(2)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3
    turn, _ = fed(sse(calls(entry(0, name="f", arguments="{}"))))
    assert turn.calls[0].id is None


# Half a surrogate pair at the edge of a delta.


def escaped(field: str, *pieces: str) -> bytes:
    """Frames whose text stands in escapes, as ASCII-only servers send it."""
    out = b""
    for piece in pieces:
        delta = '{"tool_calls":[{"index":0,"function":{"arguments":"' + piece + '"}}]}' if field == "arguments" else '{"' + field + '":"' + piece + '"}'
        out += ('data: {"choices":[{"index":0,"delta":' + delta + ',"finish_reason":null}]}\n\n').encode()
    return out


@pytest.mark.parametrize(("field", "channel"), [("content", "text"), ("refusal", "refusal"), ("reasoning_content", "reasoning")])
def test_a_pair_over_two_deltas_of_text(field: str, channel: str) -> None:
    body = escaped(field, "a\\ud83d", "\\udef6b") + sse(chunk(finish="stop"), "[DONE]")
    played = every_way(body)
    assert played.result.texts == {(0, channel): "a🛶b"}
    assert "".join(e[3] for e in played.events if e[0] == "text") == "a🛶b"
    for e in played.events:
        if e[0] == "text":
            e[3].encode()


def test_a_pair_over_two_deltas_of_arguments() -> None:
    body = sse(calls(entry(0, "c1", "f", ""))) + escaped("arguments", '{\\"a\\":\\"x\\ud83d', '\\udef6y\\"}') + sse(*END)
    played = every_way(body)
    assert (played.calls[0].text, played.calls[0].value) == ('{"a":"x🛶y"}', {"a": "x🛶y"})
    assert played.ran == [("c1", "f", {"a": "x🛶y"})]
    for e in played.events:
        if e[0] == "arguments":
            e[2].encode()


def test_pairs_of_two_calls_do_not_meet() -> None:
    first = '{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\\"a\\":\\"\\ud83d"}},'
    first += '{"index":1,"id":"c2","function":{"name":"g","arguments":"{\\"a\\":\\"\\ud83c"}}]}'
    second = '{"tool_calls":[{"index":1,"function":{"arguments":"\\udf0a\\"}"}},{"index":0,"function":{"arguments":"\\udef6\\"}"}}]}'
    body = b"".join(f'data: {{"choices":[{{"index":0,"delta":{d},"finish_reason":null}}]}}\n\n'.encode() for d in (first, second)) + sse(*END)
    assert every_way(body).ran == [("c1", "f", {"a": "🛶"}), ("c2", "g", {"a": "🌊"})]


def test_half_a_pair_alone() -> None:
    played = every_way(escaped("content", "a\\ud83d", "b\\udef6") + sse(chunk(finish="stop"), "[DONE]"))
    assert played.result.text == "a�b�"
    played = every_way(escaped("content", "a\\ud83d") + sse(chunk(finish="stop"), "[DONE]"))
    assert played.result.text == "a�"
    body = sse(calls(entry(0, "c1", "f", ""))) + escaped("arguments", '{\\"a\\":\\"\\ud83d', 'x\\"}') + sse(*END)
    played = every_way(body)
    assert (played.action, played.ran) == ("refuse", [])
    assert "args_invalid_unicode" in played.reasons or "args_invalid_json" in played.reasons
    played.calls[0].text.encode()


def test_ill_formed_utf8_in_a_payload() -> None:
    body = sse(chunk({"content": "a@b"}), chunk(finish="stop"), "[DONE]").replace(b"@", b"\xff")
    played = every_way(body)
    assert played.result.text == "a�b"
    body = chat(entry(0, "c1", "f", '{"a":"@"}'), entry(1, "c2", "g", "{}")).replace(b"@", b"\xc3")
    played = every_way(body)
    assert "c1" not in [r[0] for r in played.ran]
    assert "args_invalid_unicode" in played.reasons


# Usage.


def test_usage_of_each_protocol() -> None:
    assert every_way(ANTHROPIC, "anthropic").result.usage == {"input_tokens": 9, "output_tokens": 31}
    assert every_way(RESPONSES, "openai-responses").result.usage == {"total_tokens": 3}
    assert every_way(INTERACTIONS, "google-interactions").result.usage == {"total_tokens": 61}
    assert every_way(chat(*GOOD)).result.usage is None


@pytest.mark.parametrize("odd", [None, 5, "x", [], True])
def test_usage_of_an_odd_shape_is_left_out(odd: Any) -> None:
    played = every_way(sse(calls(*GOOD), chunk(usage=odd), *END))
    assert (played.result.usage, played.action) == (None, "run")


# Refusals.


@pytest.mark.parametrize(
    ("refusal", "finish", "outcome", "action"),
    [
        ("no", "stop", "REFUSED", "refuse"),
        ("no", "tool_calls", "TOOL_CALLS", "run"),
        ("no", "function_call", "TOOL_CALLS", "run"),
        ("no", "length", "LENGTH", "refuse"),
        ("no", "content_filter", "FILTERED", "refuse"),
        ("", "stop", "STOP", "run"),
        (None, "stop", "STOP", "run"),
    ],
)
def test_refusal_beside_a_call(refusal: Any, finish: str, outcome: str, action: str) -> None:
    played = every_way(sse(calls(*GOOD), chunk({"refusal": refusal}, finish), "[DONE]"))
    if (refusal, finish) == ("no", "length"):
        assert played.result.outcome in ("LENGTH", "REFUSED"), "refusal text counts beside stop only, but both refuse"
    else:
        assert played.result.outcome == outcome
    assert played.action == action
    assert ("refusal_with_calls" in played.result.marks) == (outcome == "TOOL_CALLS")


# Text and calls as the gate wants them.


def test_the_same_turn_is_decided_once() -> None:
    gate = tw.TurnGate()
    turn, _ = fed(chat(*GOOD))
    result = turn.finish()
    assert gate.decide(result).action == "run"
    again = gate.decide(result)
    assert (again.action, again.reason) == ("refuse", "already_released")
    other, _ = fed(chat(*GOOD))
    assert gate.decide(other.finish()).reason == "already_released"
    assert tw.TurnGate().decide(result).action == "run"


def test_unknown_frames_are_handed_out() -> None:
    body = named({"type": "message_start", "message": {"id": "m", "content": []}}, {"type": "brand_new", "x": 1}) + b"".join(
        b + b"\n\n" for b in ANTHROPIC.split(b"\n\n")[1:-1]
    )
    played = every_way(body, "anthropic")
    assert [e[0] for e in played.events].count("unknown") == 1
    assert "unknown_events" in played.result.marks
    assert played.action == "run"


def test_turns_are_independent() -> None:
    a, b = tw.Turn("openai-chat"), tw.Turn("openai-chat")
    body = chat(*GOOD)
    for n in range(len(body)):
        a.feed(body[n : n + 1])
        b.feed(body[n : n + 1])
    assert [tw.TurnGate().decide(t.finish()).action for t in (a, b)] == ["run", "run"]


def test_json_error_followed_by_other_text_on_its_line_is_read_as_the_error() -> None:
    turn = tw.Turn("openai-chat")
    turn.feed(b'{"error": {"message": "no key", "type": "auth"}} trailing\n')
    result = turn.finish()
    assert result.outcome is tw.Outcome.ERROR
    assert isinstance(result.error, tw.ProviderError)
    assert (result.error.type, result.error.message) == ("auth", "no key")


def test_auto_holds_no_more_than_one_frames_worth_of_what_it_does_not_know() -> None:
    turn = tw.Turn("auto", limits=tw.Limits(max_frame_bytes=1000))
    frame = b'data: {"nothing": "' + b"x" * 400 + b'"}\n\n'
    turn.feed(frame * 3)
    with pytest.raises(tw.MalformedFrame) as caught:
        turn.finish()
    assert caught.value.code == "frame.unknown_protocol"
