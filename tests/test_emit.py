"""Emitting: reading the written bytes back gives the same turn, at any chunking on both sides, and never a better end."""

from __future__ import annotations

import asyncio
import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire as tw
from emit_helpers import FIXTURES, GOOD, emitted, load, name, read
from helpers import NO_SHARED, SHARED
from toolwire.emit import TARGETS, Emitter, aemit_events, emit_events
from toolwire.emit._usage import Usage, read_usage
from toolwire.ledger import MemoryLedger
from turn_helpers import GOOD as GOOD_CALL
from turn_helpers import chat, chunk, entry, named, sse

Outcome = tw.Outcome

#: What an outcome that is no good end comes back as, where it is not the same again.
OTHERWISE: dict[tuple[str, tw.Outcome], tw.Outcome] = {
    **{(target, Outcome.CUT): Outcome.ERROR for target in TARGETS},
    ("anthropic", Outcome.FILTERED): Outcome.REFUSED,
}
#: Good ends that leave as an error: a reader of the target could not know what the source's gate knows.
CALLED_OFF = {
    ("anthropic/end_tool_use_fallback", "openai-chat"): "superseded",
    ("anthropic/end_tool_use_fallback", "openai-responses"): "superseded",
    ("openai-chat/end_tool_calls_refusal", "openai-responses"): "not_expressible",
}


def carried(result: tw.TurnResult, target: str) -> list[tw.ToolCall]:
    """The calls that the target has a place for."""
    calls = [call for call in result.calls if target == "openai-chat" or not call.choice]
    return [call for call in calls if target != "openai-chat" or call.runs_on == "client"]


def arguments_in(call: tw.ToolCall, target: str, *, good: bool) -> tuple[str, str]:
    """Kind and argument text as the target has them."""
    if target == "anthropic" and call.kind == "text":
        return "json", json.dumps({"input": call.text}, ensure_ascii=False, separators=(",", ":"))
    if good and not call.text and call.kind == "json" and target != "anthropic":
        return call.kind, "{}"
    return call.kind, call.text


def ran(decision: tw.GateDecision, target: str, calls: list[tw.ToolCall] | None = None) -> list[tuple[str, str]]:
    """Names and arguments of the released calls (of ``calls``), as the target has them."""
    released = [c for c in decision.runnable if calls is None or c.call in calls]
    return [(c.name, repr({"input": c.arguments} if target == "anthropic" and c.call.kind == "text" else c.arguments)) for c in released]


def outcome_in(result: tw.TurnResult, target: str) -> tw.Outcome:
    """What the outcome of the source has to come back as."""
    outcome = result.outcome
    if outcome is Outcome.REFUSED and target != "anthropic" and any(call.runs_on == "client" for call in result.calls):
        return Outcome.FILTERED
    if not result.ended:
        return Outcome.ERROR
    return OTHERWISE.get((target, outcome), outcome)


def check(result: tw.TurnResult, back: tw.TurnResult, target: str, case: str = "") -> None:
    """The turn that came back against the one that went out."""
    decision, second = tw.TurnGate().decide(result), tw.TurnGate().decide(back)
    doubted = any(call.doubts.keys() - {"superseded"} for call in result.calls)
    if result.outcome in GOOD:
        called_off = (case, target) in CALLED_OFF
        untellable = doubted or ("turn_not_for_tools" in decision.reasons and target != "anthropic")
        if called_off or (untellable and back.outcome not in GOOD):
            assert back.outcome is Outcome.ERROR
            assert isinstance(back.error, tw.ProviderError)
            assert back.error.type == (CALLED_OFF[case, target] if called_off else decision.reason)
            assert not second.runnable
        else:
            assert back.outcome in GOOD, back.error
            assert second.action == decision.action
    else:
        assert back.outcome is outcome_in(result, target), back.error
        assert not second.runnable
        assert second.action == decision.action == "refuse"
    good = back.outcome in GOOD
    calls = carried(result, target)
    assert [(call.name, call.runs_on) for call in back.calls] == [(call.name, call.runs_on) for call in calls]
    for call, again in zip(calls, back.calls, strict=True):
        if not call.id_is_synthetic and "item_id_changed" not in call.marks:
            assert again.id == call.id
        if good or call.kind == "json" or target != "anthropic":
            assert (again.kind, again.text) == arguments_in(call, target, good=good)
        if good and call.kind == "json" and call.error is None:
            assert repr(again.value) == repr(call.value)
    if good:
        assert ran(second, "") == ran(decision, target, calls)
    refusal = result.texts.get((0, "refusal"), "")
    if target == "anthropic" and refusal:
        assert back.text in (result.text + refusal, refusal + result.text)
    else:
        assert back.text == result.text
        if refusal:
            assert back.texts[0, "refusal"] == refusal
    assert back.texts.get((0, "reasoning"), "") == result.texts.get((0, "reasoning"), "")
    if target == "openai-chat":
        assert {k: v for k, v in back.texts.items() if k[1] == "text"} == {k: v for k, v in result.texts.items() if k[1] == "text" and v}


def ways(body: bytes, rng: random.Random, *, per_byte: bool = True) -> Iterator[list[bytes]]:
    """Whole, byte by byte (long bodies: by some bytes), and at random places."""
    yield [body]
    step = 1 if len(body) < 30_000 else 61
    if per_byte:
        yield [body[i : i + step] for i in range(0, len(body), step)]
    edges = [0, *sorted(rng.randint(0, len(body)) for _ in range(9)), len(body)]
    yield [body[a:b] for a, b in zip(edges, edges[1:], strict=False)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", FIXTURES, ids=name)
def test_what_is_read_back_is_the_same_turn_at_any_chunking(path: Path, target: str) -> None:
    expect, body = load(path)
    rng = random.Random(name(path))
    written: set[bytes] = set()
    for chunks in ways(body, rng):
        data, result = emitted(expect["provider"], chunks, target)
        written.add(data)
    assert len(written) == 1, "the bytes do not depend on the chunks of the source"
    first = None
    for chunks in ways(data, rng):
        back = read(target, chunks)
        check(result, back, target, name(path))
        facts = [(c.id, c.name, c.text, c.doubts) for c in back.calls], back.texts, back.outcome, back.reason, back.usage
        first = first or facts
        assert facts == first


SOURCES = [
    "anthropic/parallel",
    "anthropic/text_and_reasoning",
    "anthropic/end_tool_use_fallback",
    "bedrock/parallel",
    "cohere/parallel",
    "google-generate/parallel_streamed",
    "google-interactions/parallel",
    "mistral/parallel",
    "ollama/parallel",
    "openai-chat/parallel",
    "quirks/15_arguments_cumulative",
    "openai-chat/end_two_choices",
    "openai-responses/parallel",
    "openai-responses/snapshot_only",
    "openai-responses/custom_tool",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_cut_of_the_source_lets_the_target_release_more(source: str, target: str, exhaustive: bool) -> None:
    (path,) = [path for path in FIXTURES if name(path) == source]
    expect, body = load(path)
    step = 1 if exhaustive else max(1, len(body) // 400)
    for end in sorted({*range(0, len(body), step), *range(max(0, len(body) - 40), len(body) + 1)}):
        data, result = emitted(expect["provider"], [body[:end]], target)
        back = read(target, [data])
        allowed = ran(tw.TurnGate().decide(result), target)
        assert all(call in allowed for call in ran(tw.TurnGate().decide(back), "")), end
        if not result.ended:
            assert back.outcome is Outcome.ERROR, end
        if end == len(body):
            check(result, back, target, source)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_beginning_of_the_written_bytes_releases_a_call(source: str, target: str) -> None:
    """A reader whose connection breaks is as safe as one of the provider itself."""
    (path,) = [path for path in FIXTURES if name(path) == source]
    expect, body = load(path)
    data, _ = emitted(expect["provider"], [body], target)
    end = {"openai-chat": b"data: [DONE]", "openai-responses": b"event: response.", "anthropic": b"event: message_stop"}[target]
    good = data.rindex(end) if end in data else len(data)
    if target == "openai-chat":
        good = data.index(b'"finish_reason":"tool_calls"') if b'"finish_reason":"tool_calls"' in data else len(data)
    for stop in {*range(0, good, 37), *range(max(0, good - 30), good)}:
        assert not tw.TurnGate().decide(read(target, [data[:stop]])).runnable, stop


RECORDINGS = SHARED / "corpora" / "recordings"
APIS = {"anthropic-messages": "anthropic", "openai-chat": "openai-chat", "openai-responses": "openai-responses"}


def recordings() -> list[Any]:
    index = RECORDINGS / "index.jsonl"
    if not index.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=NO_SHARED))]
    lines = [json.loads(line) for line in index.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(line, id=line["file"]) for line in lines if line["framing"] != "json-error-body" and not line["api"].startswith("mcp")]


@pytest.mark.parametrize("about", recordings())
def test_a_recording_comes_back_the_same(about: dict[str, Any]) -> None:
    body = (RECORDINGS / about["file"]).read_bytes()
    if about["framing"].startswith("jsonl"):
        payloads = [line for line in body.split(b"\n") if line.strip()]
        body = sse(*payloads, *(["[DONE]"] if about["api"] == "openai-chat" else []))
    framing = "ndjson" if about["framing"] in ("ndjson", "eventstream-decoded") else None
    rng = random.Random(about["file"])
    for target in TARGETS:
        for chunks in ways(body, rng, per_byte=False):
            data, result = emitted(APIS.get(about["api"], "auto"), chunks, target, framing=framing)
            check(result, read(target, [data]), target)


PIECES = ["{", "}", "[", "]", '"', ":", ",", "1", " ", '{"a":', '{"a":1}', '{"a":1,', '"a":1}', '"a":', "\\ud800", "\x01", "é", "NaN", "[1]", "{}"]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(PIECES)), max_size=12), st.sampled_from(["openai-chat", "anthropic"]))
def test_whatever_the_argument_text_is_the_target_runs_what_the_source_would(fragments: list[tuple[int, str]], source: str) -> None:
    if source == "openai-chat":
        starts = [entry(i, f"c{i}", f"f{i}", "") for i in range(3)]
        body = chat(*starts, *(entry(i, arguments=piece) for i, piece in fragments))
    else:
        body = named(
            {"type": "message_start", "message": {"id": "m", "content": []}},
            *({"type": "content_block_start", "index": i, "content_block": {"type": "tool_use", "id": f"c{i}", "name": f"f{i}"}} for i in range(3)),
            *({"type": "content_block_delta", "index": i, "delta": {"type": "input_json_delta", "partial_json": piece}} for i, piece in fragments),
            *({"type": "content_block_stop", "index": i} for i in range(3)),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        )
    for target in TARGETS:
        data, result = emitted(source, [body], target)
        back = read(target, [data])
        decision, second = tw.TurnGate().decide(result), tw.TurnGate().decide(back)
        assert ran(second, "") == (ran(decision, target) if back.outcome in GOOD else [])
        if back.outcome not in GOOD:
            assert decision.refused, "a turn that runs whole is never called off"


# -- one thing at a time ------------------------------------------------------------------------------------------------

DEMO = chat(*GOOD_CALL)


def frames(data: bytes) -> list[Any]:
    out = []
    for frame in tw.SSEFramer().feed(data):
        out.append(json.loads(frame.data) if frame.data != "[DONE]" else frame.data)
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_is_announced_in_the_feed_that_brought_its_name(target: str) -> None:
    turn, emitter = tw.Turn("openai-chat"), Emitter(target, response_id="r")
    first = emitter.emit(turn.feed(sse(json.loads(DEMO.split(b"\n")[0][6:]))))
    assert b'"get_tide"' in first
    assert b'"c1"' in first
    assert b"Brest" not in first
    assert b"Brest" in emitter.emit(turn.feed(DEMO[DEMO.index(b"\n\n") + 2 :]))


def test_a_whole_object_is_one_fragment() -> None:
    payload = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"a": [1, 2]}}}]}, "finishReason": "STOP"}]}
    data, _ = emitted("google-generate", [sse(payload)], "openai-chat")
    pieces = [c["choices"][0]["delta"]["tool_calls"][0] for c in frames(data)[:-1] if c["choices"] and "tool_calls" in c["choices"][0]["delta"]]
    assert [piece["function"]["arguments"] for piece in pieces] == ["", '{"a":[1,2]}']
    assert [c["choices"][0]["finish_reason"] for c in frames(data)[:-1]][-1] == "tool_calls"


def test_a_synthetic_id_differs_between_responses() -> None:
    payload = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}, "finishReason": "STOP"}]}
    ids = {read("openai-chat", [emitted("google-generate", [sse(payload)], "openai-chat", response_id=id)[0]]).calls[0].id for id in (None, None, "r", "r")}
    assert len(ids) == 3


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_without_arguments_runs_with_an_empty_object(target: str) -> None:
    data, _ = emitted("openai-chat", [chat(entry(0, "c1", "now", ""))], target)
    back = read(target, [data])
    assert [c.arguments for c in tw.TurnGate().decide(back).runnable] == [{}]
    assert back.calls[0].text == ("" if target == "anthropic" else "{}")


@pytest.mark.parametrize("target", TARGETS)
def test_text_that_only_looks_repeated_to_a_lenient_reader_is_not_released(target: str) -> None:
    """Chat readers drop a repetition that this source's gate refuses as two values."""
    block = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}}
    body = named(
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
        block,
        block,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    data, result = emitted("anthropic", [body], target)
    assert tw.TurnGate().decide(result).reasons == ("args_invalid_json",)
    back = read(target, [data])
    assert not tw.TurnGate().decide(back).runnable
    assert (back.outcome is Outcome.ERROR) == (target == "openai-chat")


@pytest.mark.parametrize("target", TARGETS)
def test_arguments_that_were_put_together_anew_end_in_an_error(target: str) -> None:
    """What was sent can not be taken back."""
    pieces = [("$.a.b", 1), ("$.c", 2), ("$.a.d", 3)]
    parts: list[dict[str, Any]] = [{"name": "f", "willContinue": True}]
    parts += [{"partialArgs": [{"jsonPath": path, "numberValue": value}], "willContinue": True} for path, value in pieces]
    payloads = [{"candidates": [{"content": {"parts": [{"functionCall": part}]}}]} for part in [*parts, {}]]
    data, result = emitted("google-generate", [sse(*payloads, {"candidates": [{"finishReason": "STOP"}]})], target)
    assert "args_out_of_order" in result.calls[0].marks
    back = read(target, [data])
    assert back.outcome is Outcome.ERROR
    assert isinstance(back.error, tw.ProviderError)
    assert back.error.type == "not_expressible"


def test_half_a_surrogate_pair_in_text_is_escaped() -> None:
    written = Emitter("anthropic", response_id="r").emit([tw.TextDelta("x\ud83dy", "text", 0)])
    assert rb"x\ud83dy" in written
    turn = tw.Turn("anthropic")
    turn.feed(written)
    assert turn.abort("aborted").text == "x\ufffdy"


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_last_events_had_comes_with_the_result(target: str) -> None:
    turn, emitter = tw.Turn("openai-chat"), Emitter(target, response_id="r")
    body = chat(*GOOD_CALL, entry(1, None, None, '{"x":1}'))
    turn.feed(body)
    data = emitter.finish(turn.finish())  # no event was given
    back = read(target, [data])
    assert [(c.id, c.name, c.text) for c in back.calls[:1]] == [("c1", "get_tide", '{"port":"Brest"}')]
    assert back.calls[1].text == '{"x":1}'
    assert not tw.TurnGate().decide(back).runnable, "a call was never named, here as there"
    assert emitter.ended
    assert emitter.finish(turn.finish()) == b""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("cause", "word"), [("aborted", "aborted"), ("idle_timeout", "idle_timeout"), (OSError("reset"), "turn_not_ended")])
def test_a_turn_ended_from_outside_leaves_as_an_error(target: str, cause: Any, word: str) -> None:
    data, result = emitted("openai-chat", [DEMO[: DEMO.index(b"Brest") + 20]], target, abort=cause)
    back = read(target, [data])
    assert not result.ended
    assert back.outcome is Outcome.ERROR
    assert isinstance(back.error, tw.ProviderError)
    assert back.error.type == word


@pytest.mark.parametrize("target", TARGETS)
def test_an_error_keeps_its_type_and_sentence(target: str) -> None:
    body = named({"type": "error", "error": {"type": "overloaded_error", "message": "Come back later"}})
    data, _ = emitted("anthropic", [body], target)
    back = read(target, [data])
    assert isinstance(back.error, tw.ProviderError)
    assert (back.error.type, back.error.message) == ("overloaded_error", "Come back later")
    assert back.reason in ("overloaded_error", "failed")


@pytest.mark.parametrize("target", TARGETS)
def test_an_unknown_word_is_never_one_of_the_targets_good_words(target: str) -> None:
    for word in ("stop", "tool_calls", "completed", "end_turn", "tool_use"):
        body = named(
            {"type": "message_start", "message": {"id": "m", "content": []}},
            {"type": "message_delta", "delta": {"stop_reason": word}},
            {"type": "message_stop"},
        )
        data, result = emitted("anthropic", [body], target)
        if result.outcome is Outcome.UNKNOWN:
            assert read(target, [data]).outcome is Outcome.UNKNOWN


def test_a_refusal_without_words_of_its_own_gets_some() -> None:
    body = named(
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
        {"type": "message_stop"},
    )
    for target in TARGETS:
        back = read(target, [emitted("anthropic", [body], target)[0]])
        assert back.outcome is Outcome.REFUSED
        assert back.text == ""


def test_two_choices_keep_their_places() -> None:
    body = sse(
        chunk({"content": "one"}, index=1),
        chunk({"tool_calls": [entry(0, "c1", "f", "{}")]}, index=0),
        chunk({"tool_calls": [entry(0, "c1", "f", "{}")]}, index=1),
        chunk(finish="tool_calls", index=0),
        chunk(finish="tool_calls", index=1),
        "[DONE]",
    )
    data, _ = emitted("openai-chat", [body], "openai-chat")
    back = read("openai-chat", [data])
    assert [(c.choice, c.id) for c in back.calls] == [(0, "c1"), (1, "c1")]
    assert back.texts == {(1, "text"): "one"}
    for target in ("anthropic", "openai-responses"):
        back = read(target, [emitted("openai-chat", [body], target)[0]])
        assert [(c.choice, c.id) for c in back.calls] == [(0, "c1")]


@pytest.mark.parametrize("size", [1, 40, 10_000])
@pytest.mark.parametrize("target", TARGETS)
def test_a_name_that_comes_with_the_last_object_goes_out_with_its_call(target: str, size: int) -> None:
    item = {"type": "function_call", "id": "fc_1", "status": "completed", "arguments": '{"a":1}'}
    body = sse(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress", "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": '{"a":1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item | {"name": "f", "call_id": "c1"}]}},
    )
    data, result = emitted("openai-responses", [body[i : i + size] for i in range(0, len(body), size)], target)
    expected = [("f", "{'a': 1}")]
    assert ran(tw.TurnGate().decide(result), target) == expected
    back = read(target, [data])
    assert back.calls[0].id == "c1"
    assert ran(tw.TurnGate().decide(back), "") == expected


@pytest.mark.parametrize("target", TARGETS)
def test_calls_stand_as_they_were_announced(target: str) -> None:
    late = [{"index": 0, "id": "c1", "function": {"arguments": "{}"}}, entry(1, "c2", "g", "{}"), {"index": 0, "function": {"name": "f"}}]
    data, result = emitted("openai-chat", [chat(*late)], target)
    assert [call.name for call in result.calls] == ["f", "g"]
    back = read(target, [data])
    assert [(call.id, call.name) for call in back.calls] == [("c2", "g"), ("c1", "f")]
    assert tw.TurnGate().decide(back).action == "run"


@pytest.mark.parametrize("index", [-1, 128, 1_000_000])
def test_a_choice_far_off_is_left_out_and_costs_nothing(index: int) -> None:
    body = sse(
        chunk({"content": "one"}, index=0),
        chunk({"tool_calls": [entry(0, "c1", "f", "{}")]}, index=index),
        chunk({"content": "far"}, index=index),
        chunk(finish="stop", index=0),
        chunk(finish="tool_calls", index=index),
        "[DONE]",
    )
    data, result = emitted("openai-chat", [body], "openai-chat")
    assert [call.choice for call in result.calls] == [index]
    back = read("openai-chat", [data])
    assert (back.outcome, back.calls, back.texts) == (Outcome.STOP, (), {(0, "text"): "one"})
    assert len(data) < 2 * len(body)


def test_the_last_of_the_choices_has_its_place() -> None:
    body = sse(*(chunk({"content": "x"}, index=i) for i in range(128)), *(chunk(finish="stop", index=i) for i in range(128)), "[DONE]")
    back = read("openai-chat", [emitted("openai-chat", [body], "openai-chat")[0]])
    assert back.outcome is Outcome.STOP
    assert back.texts == {(i, "text"): "x" for i in range(128)}


def test_what_has_to_be_sent_back_with_a_call_goes_out_as_extra_content() -> None:
    part = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    body = sse({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    data, result = emitted("google-generate", [body], "openai-chat")
    assert result.calls[0].extra
    assert read("openai-chat", [data]).calls[0].extra == result.calls[0].extra


# -- hold="gate" --------------------------------------------------------------------------------------------------------


def only(port: str) -> Any:
    def check_(arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments.get("port") != port:
            raise ValueError("another port")
        return arguments

    return check_


@pytest.mark.parametrize("target", TARGETS)
def test_a_held_end_comes_only_if_the_gate_would_release_the_call(target: str) -> None:
    gate = tw.TurnGate({"get_tide": only("Brest")})
    data, result = emitted("openai-chat", [DEMO], target, hold="gate", gate=gate)
    assert read(target, [data]).outcome in GOOD
    assert gate.decide(result).action == "run", "asking released nothing"
    for refusing in (tw.TurnGate({"get_tide": only("Nantes")}), tw.TurnGate({})):
        data, _ = emitted("openai-chat", [DEMO], target, hold="gate", gate=refusing)
        back = read(target, [data])
        assert back.outcome is Outcome.ERROR
        assert back.calls[0].text == '{"port":"Brest"}', "what was shown stays"
    data, _ = emitted("openai-chat", [DEMO], target, hold="gate", gate=gate)
    back = read(target, [data])
    assert isinstance(back.error, tw.ProviderError)
    assert back.error.type == "already_released"


@pytest.mark.parametrize("target", TARGETS)
def test_a_held_end_asks_about_every_call_that_a_reader_would_run(target: str) -> None:
    body = chat(*GOOD_CALL, entry(1, "c2", "get_tide", '{"port":"Nantes"}'))
    data, _ = emitted("openai-chat", [body], target, hold="gate", gate=tw.TurnGate({"get_tide": only("Brest")}))
    back = read(target, [data])
    assert back.outcome is Outcome.ERROR
    assert isinstance(back.error, tw.ProviderError)
    assert back.error.type == "args_schema"


@pytest.mark.parametrize("target", TARGETS)
def test_a_held_end_is_an_error_where_all_readers_would_refuse_by_themselves(target: str) -> None:
    body = chat(entry(0, "c1", "get_tide", '{"port":'))
    assert read(target, [emitted("openai-chat", [body], target)[0]]).outcome in GOOD
    back = read(target, [emitted("openai-chat", [body], target, hold="gate")[0]])
    assert back.outcome is Outcome.ERROR
    assert isinstance(back.error, tw.ProviderError)
    assert back.error.type == "args_incomplete"


@pytest.mark.parametrize("target", TARGETS)
def test_a_held_turn_without_calls_ends_well(target: str) -> None:
    body = sse(chunk({"content": "hello"}), chunk(finish="stop"), "[DONE]")
    back = read(target, [emitted("openai-chat", [body], target, hold="gate", gate=tw.TurnGate({}))[0]])
    assert (back.outcome, back.text) == (Outcome.STOP, "hello")


@pytest.mark.parametrize("target", TARGETS)
def test_a_held_end_obeys_the_policy_of_the_gate_without_calls_too(target: str) -> None:
    body = sse(chunk({"content": "hello"}), chunk(finish="stop"))
    gate = tw.TurnGate(policy=tw.GatePolicy(require_end_marker=True))
    assert read(target, [emitted("openai-chat", [body], target)[0]]).outcome is Outcome.STOP
    back = read(target, [emitted("openai-chat", [body], target, hold="gate", gate=gate)[0]])
    assert isinstance(back.error, tw.ProviderError)
    assert back.error.type == "turn_not_ended"


@pytest.mark.parametrize("target", TARGETS)
def test_a_ledger_that_does_not_answer_lets_no_good_end_out(target: str) -> None:
    class Silent(MemoryLedger):
        def fates(self, keys: Any) -> Any:
            raise tw.LedgerError("no answer")

    data, result = emitted("openai-chat", [DEMO], target, hold="gate", gate=tw.TurnGate(ledger=Silent()))
    assert result.outcome in GOOD
    back = read(target, [data])
    assert back.outcome is Outcome.ERROR
    assert isinstance(back.error, tw.ProviderError)
    assert back.error.type == "ledger_error"
    assert back.calls[0].text == '{"port":"Brest"}', "what came in the same feed as the end is written too"


# -- usage --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "usage", "expected"),
    [
        (
            "openai-chat",
            {
                "prompt_tokens": 50,
                "completion_tokens": 7,
                "total_tokens": 57,
                "prompt_tokens_details": {"cached_tokens": 20},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(50, 7, 20, 0, 3),
        ),
        ("openai-responses", {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 20}, "output_tokens": 7}, Usage(50, 7, 20, 0, 0)),
        ("anthropic", {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 25, "output_tokens": 7}, Usage(50, 7, 20, 25, 0)),
        ("bedrock", {"inputTokens": 5, "cacheReadInputTokens": 45, "outputTokens": 7}, Usage(50, 7, 45, 0, 0)),
        (
            "google-generate",
            {"promptTokenCount": 50, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "cachedContentTokenCount": 9},
            Usage(50, 7, 9, 0, 3),
        ),
        ("google-interactions", {"total_input_tokens": 50, "total_output_tokens": 4, "total_thought_tokens": 3}, Usage(50, 7, 0, 0, 3)),
        ("cohere", {"tokens": {"input_tokens": 50.0, "output_tokens": 7.0}, "cached_tokens": 9}, Usage(50, 7, 9, 0, 0)),
        ("ollama", {"prompt_eval_count": 50, "eval_count": 7}, Usage(50, 7, 0, 0, 0)),
    ],
)
def test_usage_is_told_in_the_names_of_the_target(provider: str, usage: dict[str, Any], expected: Usage) -> None:
    assert read_usage(usage, provider) == expected
    assert read_usage(None, provider) is None


@pytest.mark.parametrize("target", TARGETS)
def test_usage_of_a_turn_comes_back_in_the_targets_names(target: str) -> None:
    counts = {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 7}
    body = named(
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": counts}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    usage = read(target, [emitted("anthropic", [body], target)[0]]).usage
    assert usage is not None
    if target == "anthropic":
        assert usage == counts | {"output_tokens": 9}
    elif target == "openai-chat":
        assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (25, 9, 34)
        assert usage["prompt_tokens_details"] == {"cached_tokens": 20}
    else:
        assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (25, 9, 34)


# -- ways to use it -----------------------------------------------------------------------------------------------------


def test_closing_the_bytes_closes_the_events() -> None:
    stream = tw.iter_events([DEMO[: len(DEMO) // 2], DEMO[len(DEMO) // 2 :]], "openai-chat")
    given = emit_events(stream, "anthropic")
    next(given)
    given.close()
    assert stream.result is not None
    assert stream.result.outcome is tw.Outcome.CANCELLED

    async def body() -> Any:
        yield DEMO[: len(DEMO) // 2]
        yield DEMO[len(DEMO) // 2 :]

    async def leave() -> Any:
        stream = tw.aiter_events(body(), "openai-chat")
        given = aemit_events(stream, "anthropic")
        await anext(given)
        await given.aclose()
        return stream.result

    assert asyncio.run(leave()).outcome is tw.Outcome.CANCELLED
    *_, last = emit_events(list(tw.iter_events([DEMO], "openai-chat")), "anthropic")
    assert b"message_stop" in last


@pytest.mark.parametrize("target", TARGETS)
def test_emit_events_gives_the_bytes_of_the_emitter(target: str) -> None:
    expected, _ = emitted("openai-chat", [DEMO], target)
    pieces = [DEMO[i : i + 50] for i in range(0, len(DEMO), 50)]
    assert b"".join(emit_events(tw.iter_events(pieces, "openai-chat"), target, response_id="r_1")) == expected

    async def body() -> Any:
        for piece in pieces:
            yield piece

    async def collect() -> bytes:
        return b"".join([data async for data in aemit_events(tw.aiter_events(body(), "openai-chat"), target, response_id="r_1")])

    assert asyncio.run(collect()) == expected


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", ["openai-chat/parallel", "openai-responses/parallel", "anthropic/text_and_reasoning"])
def test_a_pickled_emitter_goes_on_where_it_was(source: str, target: str, together: bool) -> None:
    (path,) = [path for path in FIXTURES if name(path) == source]
    expect, body = load(path)
    expected, _ = emitted(expect["provider"], [body], target)
    for cut in range(0, len(body), max(1, len(body) // 20)):
        turn, emitter = tw.Turn(expect["provider"]), Emitter(target, response_id="r_1")
        written = emitter.emit(turn.feed(body[:cut]))
        if together:
            turn, emitter = pickle.loads(pickle.dumps((turn, emitter)))
        else:
            turn, emitter = pickle.loads(pickle.dumps(turn)), pickle.loads(pickle.dumps(emitter))
        written += emitter.emit(turn.feed(body[cut:]))
        result = turn.finish()
        assert written + emitter.emit(turn.take_events()) + emitter.finish(result) == expected, cut


@pytest.mark.parametrize("target", TARGETS)
def test_a_turn_of_two_responses_leaves_as_one(target: str) -> None:
    def message(id: str, said: str, call: str, reason: str) -> bytes:
        return named(
            {"type": "message_start", "message": {"id": id, "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": call, "name": "f", "input": {}}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": reason}},
            {"type": "message_stop"},
        )

    turn, emitter = tw.Turn("anthropic"), Emitter(target, response_id="r_1")
    data = emitter.emit(turn.feed(message("m1", "one ", "c1", "pause_turn")))
    turn.finish()
    turn.hop()
    assert not tw.TurnGate().decide(read(target, [data])).runnable
    data += emitter.emit(turn.feed(message("m2", "two", "c2", "tool_use")))
    result = turn.finish()
    back = read(target, [data + emitter.finish(result)])
    assert [(call.id, call.text) for call in back.calls] == [("c1", '{"a":1}'), ("c2", '{"a":1}')]
    check(result, back, target)


def test_wrong_use_is_a_usage_error() -> None:
    for options in ({"hold": "always"}, {"gate": tw.TurnGate()}, {"hold": "gate", "gate": tw.GatePolicy()}, {"response_id": " "}):
        with pytest.raises(tw.UsageError):
            Emitter("openai-chat", **options)
    with pytest.raises(tw.UsageError, match="unknown target 'cohere'"):
        emit_events([], "cohere")
    emitter = Emitter("openai-chat")
    assert (emitter.target, emitter.ended) == ("openai-chat", False)
    turn = tw.Turn("openai-chat")
    events = turn.feed(DEMO)
    with pytest.raises(tw.UsageError, match="takes all events"):
        emitter.emit([event for event in events if isinstance(event, tw.ArgumentsDelta)])
    with pytest.raises(tw.UsageError):
        emitter.finish(turn)  # type: ignore[arg-type]
    emitter = Emitter("openai-chat")
    emitter.emit(events)
    emitter.finish(turn.finish())
    with pytest.raises(tw.UsageError, match="after the end"):
        emitter.emit(events)
    assert emitter.emit([]) == b""
