"""OpenAI Responses: frames built here in the provider's wire shape, each body fed whole, byte by byte and at random cuts."""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

import toolwire as tw

Json = dict[str, Any]


def response(status: str | None, output: Any = (), id: str = "resp_1", **more: Any) -> Json:
    return {"id": id, "object": "response", "status": status, "output": list(output) if output is not None else None, "error": None, **more}


def ev(type: str, **members: Any) -> Json:
    return {"type": f"response.{type}", **members}


def created(**more: Any) -> Json:
    return ev("created", response=response("in_progress", **more))


def completed(*output: Json, status: str | None = "completed", **more: Any) -> Json:
    return ev("completed", response=response(status, output, usage={"output_tokens": 5}, **more))


def fn(index: int, arguments: Any = "", status: str | None = "completed", name: str | None = "dim_lamp", type: str = "function_call", **more: Any) -> Json:
    item = {"type": type, "id": f"fc_{index}", "call_id": f"call_{index}", "name": name, "status": status, **more}
    return {**item, "arguments": arguments} if arguments is not None else item


def msg(index: int, *texts: str, status: str = "completed") -> Json:
    return {"type": "message", "id": f"msg_{index}", "role": "assistant", "status": status, "content": [{"type": "output_text", "text": t} for t in texts]}


def added(index: int, item: Any) -> Json:
    return ev("output_item.added", output_index=index, item=item)


def done(index: int, item: Any) -> Json:
    return ev("output_item.done", output_index=index, item=item)


def on(type: str, index: int, id: str | None = None, **members: Any) -> Json:
    return ev(type, output_index=index, item_id=f"fc_{index}" if id is None else id, **members)


def args(index: int, text: str, **more: Any) -> Json:
    return {**on("function_call_arguments.delta", index, delta=text, obfuscation="zz"), **more}


def args_done(index: int, text: Any) -> Json:
    return on("function_call_arguments.done", index, arguments=text)


def call(index: int, *pieces: str, final: str | None = None, **more: Any) -> list[Json]:
    whole = "".join(pieces) if final is None else final
    return [
        added(index, fn(index, "", "in_progress", **more)),
        *(args(index, piece) for piece in pieces),
        args_done(index, whole),
        done(index, fn(index, whole, **more)),
    ]


def text(index: int, *pieces: str, final: str | None = None) -> list[Json]:
    whole = "".join(pieces) if final is None else final
    id = f"msg_{index}"
    return [
        added(index, msg(index, status="in_progress")),
        on("content_part.added", index, id, content_index=0, part={"type": "output_text", "text": "", "annotations": []}),
        *(on("output_text.delta", index, id, content_index=0, delta=piece, logprobs=[]) for piece in pieces),
        on("output_text.done", index, id, content_index=0, text=whole),
        on("content_part.done", index, id, content_index=0, part={"type": "output_text", "text": whole}),
        done(index, msg(index, whole)),
    ]


def numbered(frames: list[Json], start: int = 0) -> list[Json]:
    return [{**f, "sequence_number": start + i} for i, f in enumerate(frames)]


def sse(frames: list[Json], *, names: bool = True) -> bytes:
    return b"".join((f"event: {f['type']}\n".encode() if names and "type" in f else b"") + b"data: " + json.dumps(f).encode() + b"\n\n" for f in frames)


def cuts(body: bytes) -> Iterator[list[bytes]]:
    yield [body]
    yield [body[i : i + 1] for i in range(len(body))]
    rng = random.Random(len(body))
    for _ in range(4):
        at = sorted(rng.sample(range(len(body) + 1), min(len(body), 12)))
        yield [body[a:b] for a, b in zip([0, *at], [*at, len(body)], strict=True)]


def plain(events: list[tw.Event]) -> list[Any]:
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
    turn = tw.Turn("openai-responses", **options)
    events: list[tw.Event] = []
    error = None
    try:
        for chunk in chunks:
            events += turn.feed(chunk)
        result = turn.finish()
    except tw.StreamError as caught:
        error = caught
        result = turn.abort(caught)
    return result, plain(events + turn.take_events()), error


def same(result: tw.TurnResult, events: list[Any], error: tw.StreamError | None) -> Any:
    calls = [(c.key, c.id, c.name, c.text, c.complete, c.closed, c.runs_on, dict(c.doubts), [*c.marks], c.extra) for c in result.calls]
    marks = [(str(m), m.offset, m.detail) for m in result.marks]
    return result.texts, result.outcome, result.reason, result.truncated, result.usage, marks, calls, events, str(error), result.resume_point


def play(frames: list[Json] | bytes, *, fails: bool = False, **options: Any) -> tuple[tw.TurnResult, list[Any], Any]:
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


def runs(result: tw.TurnResult) -> list[tuple[Any, Any, Any]]:
    return [(c.id, c.name, c.arguments) for c in decide(result).runnable]


def reasons(result: tw.TurnResult) -> set[str]:
    decision = decide(result)
    assert decision.action == "refuse"
    return {*decision.reasons, *(r for refusal in decision.refused for r in refusal.reasons)}


CALL = call(0, '{"level":', "3}")
FINAL = fn(0, '{"level":3}')
RUNS = [("call_0", "dim_lamp", {"level": 3})]


# -- the ordinary turn ----------------------------------------------------------------------------------------------------


def test_ordinary_turn_gives_text_call_usage_and_runs() -> None:
    frames = [created(), ev("in_progress", response=response("in_progress")), *text(0, "Dim", "ming."), *call(1, '{"level":', "3}")]
    result, events, _ = play(numbered([*frames, completed(msg(0, "Dimming."), fn(1, '{"level":3}'))]))
    assert result.text == "Dimming."
    assert (result.outcome, result.reason, result.response_id, result.truncated) == (tw.Outcome.STOP, "completed", "resp_1", False)
    assert result.usage == {"output_tokens": 5}
    assert events == [
        ["text", "text", "Dim"],
        ["text", "text", "ming."],
        ["CallStart", "0.0"],
        ["arguments", "0.0", '{"level":'],
        ["arguments", "0.0", "3}"],
        ["CallEnd", "0.0"],
        ["UsageUpdate"],
    ]
    assert runs(result) == [("call_1", "dim_lamp", {"level": 3})]
    assert result.calls[0].extra == {"id": "fc_1"}
    assert result.resume_point == len(frames)
    assert result.calls[0].marks == ()


def test_event_names_are_not_needed() -> None:
    result, _, _ = play(sse([created(), *CALL, completed(FINAL)], names=False))
    assert runs(result) == RUNS


def test_event_name_stands_in_for_a_missing_type() -> None:
    frames = [created(), *CALL, completed(FINAL)]
    body = b"".join(f"event: {f['type']}\ndata: {json.dumps({k: v for k, v in f.items() if k != 'type'})}\n\n".encode() for f in frames)
    assert runs(play(body)[0]) == RUNS


def test_messages_of_a_web_socket() -> None:
    turn = tw.Turn("openai-responses", framing="message")
    for frame in [created(), *CALL, completed(FINAL)]:
        turn.feed(json.dumps({**frame, "stream_id": "lane.1"}))  # type: ignore[arg-type]
    assert runs(turn.finish()) == RUNS


def test_all_known_quiet_events_are_not_unknown() -> None:
    names = """output_text.annotation.added reasoning_summary_part.added mcp_call.in_progress mcp_call.completed mcp_call.failed
        mcp_list_tools.in_progress mcp_list_tools.completed mcp_list_tools.failed shell_call_output_content.delta shell_call_output_content.done
        code_interpreter_call.in_progress code_interpreter_call.interpreting code_interpreter_call.completed file_search_call.in_progress
        file_search_call.searching file_search_call.completed web_search_call.in_progress web_search_call.searching web_search_call.completed
        image_generation_call.in_progress image_generation_call.generating image_generation_call.partial_image image_generation_call.completed
        audio.delta audio.done audio.transcript.delta audio.transcript.done compaction.compacting queued"""
    result, events, _ = play([created(), *CALL, *(on(name, 0) for name in names.split()), completed(FINAL)])
    assert ["UnknownFrame"] not in events
    assert runs(result) == RUNS


def test_unknown_events_and_items_are_reported() -> None:
    result, events, _ = play([created(), ev("mood.changed", mood=1), added(1, {"type": "teleport_call", "id": "t"}), *CALL, completed(FINAL)])
    assert events.count(["UnknownFrame"]) == 2
    assert runs(result) == RUNS


# -- the table of ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "outcome", "word", "why"),
    [
        (
            ev("incomplete", response=response("incomplete", incomplete_details={"reason": "max_output_tokens"})),
            "LENGTH",
            "max_output_tokens",
            "turn_truncated",
        ),
        (ev("incomplete", response=response("incomplete", incomplete_details={"reason": "max_messages"})), "LENGTH", "max_messages", "turn_truncated"),
        (ev("incomplete", response=response("incomplete", incomplete_details={"reason": "content_filter"})), "FILTERED", "content_filter", "turn_filtered"),
        (ev("incomplete", response=response("incomplete", incomplete_details={"reason": "steered"})), "CONTINUE", "steered", "turn_continues"),
        (ev("incomplete", response=response("incomplete", incomplete_details={"reason": "boredom"})), "UNKNOWN", "boredom", "turn_unknown"),
        (ev("incomplete", response=response("incomplete", incomplete_details=None)), "LENGTH", "incomplete", "turn_truncated"),
        (ev("incomplete", response=response("completed", [FINAL])), "LENGTH", "incomplete", "turn_truncated"),
        (ev("incomplete"), "LENGTH", "incomplete", "turn_truncated"),
        (completed(FINAL, status="incomplete", incomplete_details={"reason": "content_filter"}), "FILTERED", "content_filter", "turn_filtered"),
        (completed(FINAL, status="incomplete"), "LENGTH", "incomplete", "turn_truncated"),
        (completed(FINAL, status="cancelled"), "CANCELLED", "cancelled", "aborted"),
        (completed(FINAL, status="half_done"), "UNKNOWN", "half_done", "turn_unknown"),
        (ev("queued", response=response("cancelled")), "CANCELLED", "cancelled", "aborted"),
    ],
)
def test_only_completed_runs_tools(end: Json, outcome: str, word: str, why: str) -> None:
    result, _, _ = play([created(), *CALL, end])
    assert (result.outcome, result.reason, result.truncated) == (outcome, word, False)
    assert why in reasons(result)


@pytest.mark.parametrize("status", ["completed", None])
@pytest.mark.parametrize("output", [[FINAL], [], None])
def test_completed_runs_with_or_without_the_snapshot(status: str | None, output: list[Json] | None) -> None:
    result, _, _ = play([created(), *CALL, ev("completed", response=response(status, output))])
    assert runs(result) == RUNS


def test_completed_without_a_response_object_runs() -> None:
    assert runs(play([created(), *CALL, ev("completed")])[0]) == RUNS


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_completed_with_a_status_that_says_otherwise_has_not_ended(status: str) -> None:
    result, _, _ = play([created(), *CALL, completed(FINAL, status=status)])
    assert (result.outcome, result.truncated) == (tw.Outcome.CUT, True)
    assert reasons(result) == {"turn_not_ended"}


@pytest.mark.parametrize("tail", [b"", b"data: [DONE]\n\n"])
def test_end_of_body_or_done_marker_without_terminal_event_is_a_cut(tail: bytes) -> None:
    result, _, _ = play(sse([created(), *CALL]) + tail)
    assert result.truncated
    assert reasons(result) == {"turn_not_ended"}


def test_failed_response_is_an_error_with_the_providers_words() -> None:
    error = {"code": "server_error", "message": "Lamp on fire"}
    result, _, _ = play([created(), *CALL, ev("failed", response={**response("failed", [FINAL]), "error": error})])
    assert (result.outcome, result.reason) == (tw.Outcome.ERROR, "failed")
    assert isinstance(result.error, tw.ProviderError)
    assert (result.error.code, result.error.message, result.error.raw) == ("server_error", "Lamp on fire", error)
    assert "turn_error" in reasons(result)


def test_failed_response_without_an_error_object_is_an_error() -> None:
    result, _, _ = play([created(), *CALL, ev("failed", response=response("failed"))])
    assert isinstance(result.error, tw.ProviderError)
    assert "turn_error" in reasons(result)


def test_error_object_in_a_completed_response_wins() -> None:
    result, _, _ = play([created(), *CALL, completed(FINAL, **{"error": {"code": "x", "message": "y"}})])
    assert "turn_error" in reasons(result)


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down", "param": None},
        {"type": "error", "error": {"type": "x", "code": "rate_limit_exceeded", "message": "Slow down", "param": None}},
    ],
)
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_error_event_flat_or_nested_is_sticky(error: Json, profile: str) -> None:
    frames = numbered([created(), *CALL, error, ev("failed", response={**response("failed"), "error": {"code": "other", "message": "z"}})])
    result, _, _ = play(frames, profile=profile)
    assert isinstance(result.error, tw.ProviderError)
    assert (result.outcome, result.error.code, result.error.message) == (tw.Outcome.ERROR, "rate_limit_exceeded", "Slow down")
    assert "sequence_gap" not in result.marks


def test_refusal_beside_a_plain_completed_is_refused() -> None:
    frames = [
        added(0, msg(0, status="in_progress")),
        on("refusal.delta", 0, "msg_0", content_index=0, delta="I can"),
        on("refusal.delta", 0, "msg_0", content_index=0, delta="not"),
        on("refusal.done", 0, "msg_0", content_index=0, refusal="I cannot"),
        done(0, {**msg(0), "content": [{"type": "refusal", "refusal": "I cannot"}]}),
    ]
    result, events, _ = play([created(), *frames, *call(1, "{}"), completed()])
    assert result.texts == {(0, "refusal"): "I cannot"}
    assert events[:2] == [["text", "refusal", "I can"], ["text", "refusal", "not"]]
    assert result.outcome is tw.Outcome.REFUSED
    assert "turn_refused" in reasons(result)


# -- statuses -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["incomplete", "in_progress", "failed"])
def test_status_of_an_item_is_a_veto(status: str) -> None:
    item = fn(0, '{"level":3}', status)
    result, _, _ = play([created(), *CALL[:-1], done(0, item), completed(item)])
    assert reasons(result) == {"args_incomplete"}


def test_last_status_counts() -> None:
    good, _, _ = play([created(), *CALL[:-1], done(0, fn(0, '{"level":3}', "in_progress")), completed(FINAL)])
    bad, _, _ = play([created(), *CALL, completed(fn(0, '{"level":3}', "in_progress"))])
    assert runs(good) == RUNS
    assert reasons(bad) == {"args_incomplete"}


def test_missing_status_says_nothing() -> None:
    result, _, _ = play([created(), *CALL[:-1], done(0, fn(0, '{"level":3}', None)), completed(fn(0, '{"level":3}', None))])
    assert runs(result) == RUNS


def test_call_of_a_program_may_stay_in_progress() -> None:
    caller = {"type": "program", "caller_id": "call_9"}
    item = fn(0, '{"level":3}', "in_progress", caller=caller)
    result, _, _ = play([created(), *CALL[:-1], done(0, item), completed(item)])
    assert runs(result) == RUNS
    assert "status_in_progress" in result.calls[0].marks
    assert result.calls[0].extra["caller"] == caller


def test_call_of_a_program_may_not_be_incomplete() -> None:
    item = fn(0, '{"level":3}', "incomplete", caller={"type": "program"})
    result, _, _ = play([created(), *CALL[:-1], done(0, item), completed(item)])
    assert reasons(result) == {"args_incomplete"}


def test_call_that_was_never_closed_is_incomplete() -> None:
    result, _, _ = play([created(), *CALL[:-1], completed()])
    assert reasons(result) == {"args_incomplete"}


def test_call_in_the_snapshot_counts_as_closed() -> None:
    result, events, _ = play([created(), *CALL[:-1], completed(FINAL)])
    assert runs(result) == RUNS
    assert ["CallEnd", "0.0"] in events


def test_incomplete_message_in_a_completed_response_is_cut_short() -> None:
    frames = [*text(0, "Dim")[:-1], done(0, msg(0, "Dim", status="incomplete"))]
    result, _, _ = play([created(), *frames, *call(1, "{}"), completed(msg(0, "Dim", status="incomplete"))])
    assert result.outcome is tw.Outcome.LENGTH
    assert "turn_truncated" in reasons(result)


def test_cut_call_keeps_its_text() -> None:
    cut = fn(0, '{"level":', "incomplete")
    end = ev("incomplete", response=response("incomplete", [cut], incomplete_details={"reason": "max_output_tokens"}))
    result, _, _ = play([created(), *CALL[:2], done(0, cut), end])
    assert result.calls[0].text == '{"level":'
    assert {"turn_truncated", "args_incomplete"} <= reasons(result)


# -- the four places of the argument text -----------------------------------------------------------------------------------


@pytest.mark.parametrize("deltas", [[], ['{"le'], ['{"level":', "3}"]])
@pytest.mark.parametrize("place", ["done", "item", "snapshot", "all"])
def test_each_final_text_adds_what_is_missing(deltas: list[str], place: str) -> None:
    whole = '{"level":3}'
    so_far = "".join(deltas)
    frames = [created(), added(0, fn(0, "", "in_progress")), *(args(0, d) for d in deltas)]
    if place in ("done", "all"):
        frames.append(args_done(0, whole))
    frames.append(done(0, fn(0, whole if place in ("item", "all") else None)))
    frames.append(completed(fn(0, whole)))
    result, events, _ = play(frames)
    assert runs(result) == RUNS
    assert "".join(e[2] for e in events if e[0] == "arguments") == whole
    assert ("args_final_only" in result.calls[0].marks) == (0 < len(so_far) < len(whole))


def test_empty_finals_before_a_full_snapshot_are_filled() -> None:
    result, _, _ = play([created(), added(0, fn(0, "", "in_progress")), args_done(0, ""), done(0, fn(0, "")), completed(FINAL)])
    assert runs(result) == RUNS
    assert len(result.calls) == 1


@pytest.mark.parametrize("final", ['{"level":4}', "", '{"lev', '{"level": 3}'])
@pytest.mark.parametrize("place", ["done", "item", "snapshot"])
def test_each_final_text_that_disagrees_is_a_conflict(final: str, place: str) -> None:
    frames = [created(), *CALL, completed(FINAL)]
    if place == "done":
        frames[4] = args_done(0, final)
    elif place == "item":
        frames[5] = done(0, fn(0, final))
    else:
        frames[6] = completed(fn(0, final))
    result, _, _ = play(frames)
    assert reasons(result) == {"args_conflict"}
    assert result.calls[0].text == '{"level":3}'


def test_text_in_the_start_of_an_item_is_the_start_of_its_text() -> None:
    result, _, _ = play([created(), added(0, fn(0, '{"level"', "in_progress")), args(0, ":3}"), done(0, FINAL), completed(FINAL)])
    assert runs(result) == RUNS


def test_text_in_the_start_of_an_item_and_the_same_deltas_conflict() -> None:
    result, _, _ = play([created(), added(0, fn(0, '{"level":3}', "in_progress")), args(0, '{"level":3}'), done(0, FINAL), completed(FINAL)])
    assert "args_conflict" in reasons(result)


def test_empty_object_in_the_start_of_an_item_is_a_placeholder() -> None:
    result, _, _ = play([created(), added(0, fn(0, "{}", "in_progress")), *CALL[1:], completed(FINAL)])
    assert runs(result) == RUNS


def test_arguments_as_an_object_are_taken_and_compared() -> None:
    good, _, _ = play([created(), *CALL[:-1], done(0, fn(0, {"level": 3})), completed(fn(0, {"level": 3}))])
    bad, _, _ = play([created(), *CALL[:-1], done(0, fn(0, {"level": True})), completed()])
    assert runs(good) == RUNS
    assert reasons(bad) == {"args_conflict"}


def test_no_arguments_at_all_are_an_empty_object() -> None:
    result, _, _ = play([created(), added(0, fn(0, "", "in_progress")), done(0, fn(0, "")), completed(fn(0, ""))])
    assert runs(result) == [("call_0", "dim_lamp", {})]


def test_async_call_runs_after_the_end_although_output_goes_on() -> None:
    item = {"async": True, "namespace": "home"}
    frames = [*call(0, '{"level":3}', **item), *text(1, "Meanwhile.")]
    result, _, _ = play([created(), *frames, completed(fn(0, '{"level":3}', **item), msg(1, "Meanwhile."))])
    assert runs(result) == RUNS
    assert result.calls[0].extra == {"id": "fc_0", "async": True, "namespace": "home"}


# -- identity -------------------------------------------------------------------------------------------------------------


def test_interleaved_calls_keep_their_text() -> None:
    frames = [added(0, fn(0)), added(2, fn(2)), args(2, '{"b"'), args(0, '{"a"'), args(0, ":1}"), args(2, ":2}")]
    result, _, _ = play([created(), *frames, done(2, fn(2, '{"b":2}')), done(0, fn(0, '{"a":1}')), completed(fn(0, '{"a":1}'), fn(2, '{"b":2}'))])
    assert runs(result) == [("call_0", "dim_lamp", {"a": 1}), ("call_2", "dim_lamp", {"b": 2})]


def test_item_id_joins_where_there_is_no_output_index() -> None:
    def bare(frame: Json) -> Json:
        return {k: v for k, v in frame.items() if k != "output_index"}

    frames = [*text(0, "Hi"), *call(1, '{"a":', "1}", call_id="fc_fc_1"), *call(2, '{"a":2}', call_id="fc_fc_2")]
    final = [msg(0, "Hi"), fn(1, '{"a":1}', call_id="fc_fc_1"), fn(2, '{"a":2}', call_id="fc_fc_2")]
    result, _, _ = play([created(), *map(bare, frames), completed(*final)])
    assert result.text == "Hi"
    assert runs(result) == [("fc_fc_1", "dim_lamp", {"a": 1}), ("fc_fc_2", "dim_lamp", {"a": 2})]


def test_ids_that_change_are_joined_by_output_index() -> None:
    frames = [created(), *text(0, "He", "y"), *call(1, '{"level":', "3}"), completed(msg(0, "Hey"), fn(1, '{"level":3}'))]
    for i, frame in enumerate(copy.deepcopy(frames)):
        for item in (frame, frame.get("item"), *frame.get("response", {}).get("output", ())):
            for key in ("item_id", "id"):
                if item and key in item:
                    item[key] = f"rotated_{i}_{key}"
        if "response" in frame:
            frame["response"]["id"] = f"rotated_{i}"
        frames[i] = frame
    result, _, _ = play(frames)
    assert result.text == "Hey"
    assert runs(result) == [("call_1", "dim_lamp", {"level": 3})]
    assert {"item_id_changed", "response_id_changed"} <= {*result.marks}
    assert "item_id_changed" in result.calls[0].marks


def test_call_id_that_changes_is_marked_and_the_last_one_counts() -> None:
    result, _, _ = play([created(), *CALL[:-1], done(0, fn(0, '{"level":3}', call_id="call_9")), completed(fn(0, '{"level":3}', call_id="call_9"))])
    assert runs(result) == [("call_9", "dim_lamp", {"level": 3})]
    assert "item_id_changed" in result.calls[0].marks


def test_index_and_item_id_of_two_items_make_both_ambiguous() -> None:
    frames = [added(0, fn(0)), added(1, fn(1)), args(0, "{}", item_id="fc_1"), args(1, "{}"), done(0, fn(0, "{}")), done(1, fn(1, "{}"))]
    result, _, _ = play([created(), *frames, completed()])
    assert [set(c.doubts) for c in result.calls] == [{"args_ambiguous"}, {"args_ambiguous"}]
    assert decide(result).runnable == ()


def test_delta_without_index_and_id_belongs_to_the_only_open_call() -> None:
    bare = {k: v for k, v in args(0, '{"level":3}').items() if k not in ("output_index", "item_id")}
    one, _, _ = play([created(), *call(1, "{}"), added(0, fn(0)), bare, done(0, FINAL), completed()])
    two, _, _ = play([created(), added(1, fn(1)), added(0, fn(0)), bare, done(0, FINAL), done(1, fn(1, "{}")), completed()])
    assert [c[0] for c in runs(one)] == ["call_1", "call_0"]
    assert [set(c.doubts) for c in two.calls] == [{"args_ambiguous"}, {"args_ambiguous"}]


def test_snapshot_with_gaps_is_joined_by_call_id() -> None:
    frames = [added(0, None), *call(1, '{"a":1}'), *call(3, '{"a":3}')]
    result, _, _ = play([created(), *frames, completed(fn(1, '{"a":1}'), fn(3, '{"a":3}'))])
    assert [c[0] for c in runs(result)] == ["call_1", "call_3"]


def test_items_only_in_the_snapshot_become_calls_and_text() -> None:
    result, events, _ = play([created(), completed(msg(0, "Hi"), FINAL)])
    assert result.text == "Hi"
    assert runs(result) == RUNS
    assert events[1:4] == [["CallStart", "0.0"], ["arguments", "0.0", '{"level":3}'], ["CallEnd", "0.0"]]


def test_item_known_from_its_end_only_is_a_call() -> None:
    assert runs(play([done(0, FINAL), completed(FINAL)])[0]) == RUNS


def test_call_without_call_id_goes_by_its_item_id() -> None:
    result, _, _ = play([created(), *call(0, "{}", call_id=None), completed()])
    assert runs(result) == [("fc_0", "dim_lamp", {})]


def test_call_without_any_id_gets_a_synthetic_one() -> None:
    result, _, _ = play([created(), done(0, {"type": "function_call", "name": "f", "arguments": "{}"}), completed()])
    assert result.calls[0].id_is_synthetic
    assert decide(result).action == "run"


def test_second_item_with_a_call_id_already_taken_is_another_call() -> None:
    result, _, _ = play([created(), *call(0, '{"a":1}'), *call(1, '{"a":2}', call_id="call_0"), completed()])
    assert [(c.id_is_synthetic, c.value) for c in result.calls] == [(False, {"a": 1}), (True, {"a": 2})]
    assert "id_repeated" in result.calls[1].marks


def test_function_call_without_a_name_is_refused() -> None:
    result, _, _ = play([created(), *call(0, "{}", name=None), completed()])
    assert "no_name" in reasons(result)


def test_name_that_comes_with_the_finished_item() -> None:
    result, events, _ = play([created(), added(0, fn(0, name=None)), args(0, '{"level":3}'), done(0, FINAL), completed(FINAL)])
    assert runs(result) == RUNS
    assert events[:2] == [["CallStart", "0.0"], ["arguments", "0.0", '{"level":3}']]


def test_two_names_for_one_item_are_ambiguous() -> None:
    result, _, _ = play([created(), *CALL[:-1], done(0, fn(0, '{"level":3}', name="light_lamp")), completed()])
    assert reasons(result) == {"args_ambiguous"}


# -- orders that the protocol does not allow ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        args(0, "{}"),
        args_done(0, "{}"),
        on("custom_tool_call_input.delta", 0, delta="x"),
        ev("shell_call_command.delta", output_index=0, command_index=0, delta="ls"),
    ],
)
@pytest.mark.parametrize("number", [False, True])
def test_delta_before_its_item_is_a_protocol_error(frame: Json, number: bool) -> None:
    frames = [created(), frame, *CALL, completed(FINAL)]
    result, _, error = play(numbered(frames) if number else frames, fails=True)
    assert isinstance(error, tw.MalformedFrame)
    assert error.code == "frame.protocol"
    assert decide(result).runnable == ()


@pytest.mark.parametrize("second", [fn(0, id="fc_9", call_id="call_9"), {**msg(0), "id": "fc_0"}])
def test_second_start_of_something_else_is_a_protocol_error(second: Json) -> None:
    _, _, error = play([created(), added(0, fn(0)), added(0, second)], fails=True)
    assert isinstance(error, tw.MalformedFrame)


def test_second_start_of_the_same_item_is_dropped() -> None:
    result, _, _ = play([created(), CALL[0], *CALL, completed(FINAL)])
    assert "call_repeated" in result.calls[0].marks
    assert runs(result) == RUNS


def test_second_start_that_says_something_else_is_a_doubt() -> None:
    first, *others = CALL
    for more, reason in (({"name": "other"}, "args_ambiguous"), ({"arguments": '{"n":9'}, "args_conflict")):
        result, _, _ = play([created(), first, *others[:-1], {**first, "item": {**first["item"], **more}}, others[-1], completed(FINAL)])
        assert reason in result.calls[0].doubts
        assert decide(result).runnable == ()


@pytest.mark.parametrize("value", [{"level": 3}, ["x"], 0, 7], ids=repr)
def test_arguments_that_are_no_text_count_wherever_they_stand(value: Any) -> None:
    item = fn(0, None)
    start, final = added(0, fn(0, "", "in_progress")), done(0, item)
    for frames in ([start, args_done(0, value), final], [added(0, fn(0, value, "in_progress")), final]):
        result, _, _ = play([created(), *frames, completed(item)])
        assert runs(result) == ([("call_0", "dim_lamp", value)] if isinstance(value, dict) else [])
        assert "args_as_object" in result.calls[0].marks


def test_end_of_an_item_of_another_type_is_a_protocol_error() -> None:
    _, _, error = play([created(), added(0, fn(0)), done(0, {"type": "custom_tool_call", "id": "fc_0", "input": "x"})], fails=True)
    assert isinstance(error, tw.MalformedFrame)


def test_second_created_of_another_response_is_a_protocol_error() -> None:
    _, _, error = play([created(), *CALL, created(id="resp_2")], fails=True)
    assert isinstance(error, tw.MalformedFrame)
    assert "resp_2" in str(error)


def test_another_response_id_is_refused_by_the_strict_profile() -> None:
    frames = [created(), *CALL, completed(FINAL, id="resp_2")]
    result, _, _ = play(frames)
    _, _, error = play(frames, fails=True, profile="strict")
    assert "response_id_changed" in result.marks
    assert result.response_id == "resp_1"
    assert isinstance(error, tw.MalformedFrame)


def test_argument_text_after_the_end_of_its_item_is_kept_and_ambiguous() -> None:
    result, _, _ = play([created(), added(0, fn(0)), args(0, '{"a":'), done(0, fn(0, None)), args(0, "1}"), completed()])
    assert result.calls[0].text == '{"a":1}'
    assert "args_ambiguous" in reasons(result)


def test_events_after_the_end_are_not_read() -> None:
    result, _, _ = play([created(), *CALL, completed(FINAL), *call(1, "{}")])
    assert len(result.calls) == 1
    assert "data_after_end" in result.marks


# -- event numbers --------------------------------------------------------------------------------------------------------


def test_repeated_events_are_dropped() -> None:
    frames = numbered([created(), *CALL, completed(FINAL)])
    result, _, _ = play([*frames[:4], *frames[1:4], *frames[4:]])
    assert runs(result) == RUNS
    assert "repeated_events" in result.marks


def test_gap_is_marked_and_refused_by_the_strict_profile() -> None:
    frames = numbered([created(), *CALL, completed(FINAL)])
    del frames[3]
    result, _, _ = play(frames)
    _, _, error = play(frames, fails=True, profile="strict")
    assert runs(result) == RUNS  # the final text stands in for the delta that is missing
    assert "sequence_gap" in result.marks
    assert isinstance(error, tw.MalformedFrame)
    assert "event 3" in str(error)


def test_late_event_makes_its_call_ambiguous() -> None:
    frames = numbered([created(), added(0, fn(0)), args(0, '{"a":'), args(0, "1}"), args(0, " "), done(0, fn(0, '{"a": 1}')), completed()])
    frames[2], frames[3], frames[4] = frames[2], frames[4], frames[3]
    result, _, _ = play(frames)
    assert "late_event" in result.marks
    assert "args_ambiguous" in reasons(result)


def test_late_event_of_an_item_leaves_other_calls_alone() -> None:
    frames = numbered([created(), *CALL, *call(1, '{"b":', "2}"), completed()])
    frames[7], frames[8] = frames[8], frames[7]
    result, _, _ = play(frames)
    assert [set(c.doubts) & {"args_ambiguous"} for c in result.calls] == [set(), {"args_ambiguous"}]


def test_more_gaps_than_are_remembered_are_late_not_repeated() -> None:
    frames = numbered([created(), *CALL, completed(FINAL)])
    for i, frame in enumerate(frames[1:], 1):
        frame["sequence_number"] = 100 * i
    late = {**frames[2], "sequence_number": 150}
    result, _, _ = play([*frames[:3], late, *frames[3:]], limits=tw.Limits(max_open_gaps=1))
    assert "args_ambiguous" in reasons(result)


def test_huge_number_costs_nothing() -> None:
    frames = numbered([created(), *CALL, completed(FINAL)])
    for frame in frames[1:]:
        frame["sequence_number"] += 10**15
    result, _, _ = play(frames)
    assert runs(result) == RUNS
    assert result.resume_point == 10**15 + 6


def test_numbers_that_start_at_one_are_a_fresh_stream() -> None:
    result, _, _ = play(numbered([created(), *CALL, completed(FINAL)], start=1))
    assert runs(result) == RUNS
    assert result.marks == ("finish_stop_with_calls",)


# -- resumed bodies -------------------------------------------------------------------------------------------------------

RESUMED = numbered([created(), *CALL, completed(FINAL)])


@pytest.mark.parametrize("at", range(1, len(RESUMED)))
def test_resumed_body_knows_its_calls_from_their_end(at: int) -> None:
    result, _, _ = play(RESUMED[at:])
    assert runs(result) == RUNS
    assert result.resume_point == len(RESUMED) - 1


@pytest.mark.parametrize("at", range(1, len(RESUMED)))
def test_two_bodies_in_one_turn_overlap(at: int) -> None:
    for first in range(at, len(RESUMED)):
        result, _, _ = play([*RESUMED[:first], *RESUMED[at:]])
        assert runs(result) == RUNS


def test_gap_right_after_a_resume_is_a_cut() -> None:
    fresh = [*RESUMED[2:3], *RESUMED[4:]]
    again = [*RESUMED[:3], RESUMED[2], *RESUMED[4:]]
    for frames in (fresh, again):
        result, _, _ = play(frames)
        assert (result.outcome, result.truncated) == (tw.Outcome.CUT, True)
        assert "turn_not_ended" in reasons(result)


def test_tail_of_a_call_that_never_ends_is_kept_and_refused() -> None:
    result, _, _ = play([RESUMED[3], {**completed(), "sequence_number": 4}])
    assert [(c.text, c.name) for c in result.calls] == [("3}", None)]
    assert "orphan_arguments" in reasons(result)


def test_tail_that_the_finished_item_contradicts_is_a_conflict() -> None:
    result, _, _ = play([{**args(0, "4}"), "sequence_number": 3}, *RESUMED[4:]])
    assert "args_conflict" in reasons(result)


def test_resumed_text_is_not_a_conflict() -> None:
    frames = numbered([created(), *text(0, "Dim", "ming."), completed(msg(0, "Dimming."))])
    result, _, _ = play(frames[4:])
    assert result.text == "ming."
    assert "text_conflict" not in result.marks


# -- text -----------------------------------------------------------------------------------------------------------------


def test_final_text_adds_what_deltas_lacked() -> None:
    result, events, _ = play([created(), *text(0, "Dim", final="Dimming."), completed(msg(0, "Dimming."))])
    assert result.text == "Dimming."
    assert events[:2] == [["text", "text", "Dim"], ["text", "text", "ming."]]


def test_final_text_that_differs_is_marked_and_the_deltas_stand() -> None:
    result, _, _ = play([created(), *text(0, "Dim", final="Bright"), completed(msg(0, "Bright"))])
    assert result.text == "Dim"
    assert "text_conflict" in result.marks


def test_text_only_in_the_finished_message() -> None:
    result, _, _ = play([created(), done(0, msg(0, "Hi", " there")), completed(msg(0, "Hi", " there"))])
    assert result.text == "Hi there"


def test_text_without_any_item_comes_once() -> None:
    deltas = [ev("output_text.delta", delta=piece) for piece in ("He", "y")]
    result, _, _ = play([created(), *deltas, completed(msg(0, "Hey"))])
    assert result.text == "Hey"
    assert result.marks == ()


def test_several_parts_of_one_message_are_compared_each_for_itself() -> None:
    frames = [added(0, msg(0))]
    for number, pieces in enumerate((("a", "b"), ("c",))):
        frames += [on("output_text.delta", 0, "msg_0", content_index=number, delta=piece) for piece in pieces]
        frames.append(on("output_text.done", 0, "msg_0", content_index=number, text="".join(pieces)))
    result, _, _ = play([created(), *frames, done(0, msg(0, "ab", "c")), completed(msg(0, "ab", "c"))])
    assert result.text == "abc"
    assert result.marks == ()


def test_surrogate_pair_cut_between_deltas_is_no_conflict() -> None:
    frames = text(0, "A\ud83d", "\ude00B", final="A\U0001f600B")
    result, _, _ = play([created(), *frames, completed(msg(0, "A\U0001f600B"))])
    assert result.text == "A\U0001f600B"
    assert result.marks == ()


def test_reasoning_is_never_text() -> None:
    item = {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "sum"}], "encrypted_content": "x"}
    frames = [
        added(0, {"type": "reasoning", "id": "rs_0", "summary": []}),
        on("reasoning_summary_part.added", 0, "rs_0", summary_index=0, part={"type": "summary_text", "text": ""}),
        on("reasoning_summary_text.delta", 0, "rs_0", summary_index=0, delta="su"),
        on("reasoning_summary_text.done", 0, "rs_0", summary_index=0, text="sum"),
        on("reasoning_summary_part.done", 0, "rs_0", summary_index=0, part={"type": "summary_text", "text": "sum"}),
        on("reasoning_text.delta", 0, "rs_0", content_index=0, delta="raw"),
        on("reasoning_text.done", 0, "rs_0", content_index=0, text="raw"),
        done(0, {**item, "content": [{"type": "reasoning_text", "text": "raw"}]}),
    ]
    result, _, _ = play([created(), *frames, completed(item)])
    assert result.texts == {(0, "reasoning"): "sumraw"}
    assert decide(result).action == "nothing_to_run"


# -- kinds of calls -------------------------------------------------------------------------------------------------------


def test_custom_call_is_text() -> None:
    item = {"type": "custom_tool_call", "id": "ct_0", "call_id": "call_0", "name": "sql"}
    whole = 'SELECT {"not": json'
    frames = [added(0, {**item, "input": ""}), *(on("custom_tool_call_input.delta", 0, "ct_0", delta=d) for d in ("SELECT ", '{"not": json'))]
    frames += [on("custom_tool_call_input.done", 0, "ct_0", input=whole), done(0, {**item, "input": whole, "status": "completed"})]
    result, _, _ = play([created(), *frames, completed({**item, "input": whole})])
    assert result.calls[0].kind == "text"
    assert runs(result) == [("call_0", "sql", whole)]


def shell(commands: list[str], **more: Any) -> Json:
    return {
        "type": "shell_call",
        "id": "sh_0",
        "call_id": "call_0",
        "status": "completed",
        "action": {"commands": commands, "max_output_length": 900, "timeout_ms": None},
        **more,
    }


def command(kind: str, number: int, **members: Any) -> Json:
    return ev(f"shell_call_command.{kind}", output_index=0, command_index=number, **members)


SHELL = [
    added(0, {**shell([]), "status": "in_progress", "action": {"commands": [], "max_output_length": None, "timeout_ms": None}}),
    command("added", 0, command=""),
    command("delta", 0, delta='echo "'),
    command("delta", 0, delta='a"'),
    command("done", 0, command='echo "a"'),
    command("added", 1, command=""),
    command("delta", 1, delta="l"),
    command("done", 1, command="ls"),
]


@pytest.mark.parametrize("environment", [None, {"type": "local"}])
def test_local_shell_call_streams_as_its_action(environment: Json | None) -> None:
    item = shell(['echo "a"', "ls"], environment=environment)
    result, events, _ = play([created(), *SHELL, done(0, item), completed(item)])
    assert result.calls[0].text == '{"commands":["echo \\"a\\"","ls"],"max_output_length":900,"timeout_ms":null}'
    assert [e[2] for e in events if e[0] == "arguments"] == [
        '{"commands":["echo \\"',
        'a\\"',
        '","l',
        "s",
        '"],"max_output_length":900,"timeout_ms":null}',
    ]
    assert runs(result) == [("call_0", "shell_call", item["action"])]


def test_shell_call_without_deltas_is_its_action() -> None:
    item = shell(["ls"])
    result, _, _ = play([created(), SHELL[0], done(0, item), completed(item)])
    assert runs(result) == [("call_0", "shell_call", item["action"])]


@pytest.mark.parametrize("commands", [["echo", "ls"], ['echo "a"'], ['echo "a"', "pwd"], ["ls", 'echo "a"']])
def test_shell_call_whose_commands_differ_is_a_conflict(commands: list[str]) -> None:
    result, _, _ = play([created(), *SHELL, done(0, shell(commands)), completed()])
    assert "args_conflict" in reasons(result)


def test_shell_call_may_get_further_commands_at_the_end() -> None:
    item = shell(['echo "a"', "ls -a", "pwd"])
    result, _, _ = play([created(), *SHELL, done(0, item), completed(item)])
    assert decide(result).runnable[0].arguments == item["action"]


def test_mixed_pieces_of_several_commands_are_ambiguous() -> None:
    result, _, _ = play([created(), *SHELL, command("delta", 0, delta="x"), done(0, shell(['echo "a"', "ls"])), completed()])
    assert "args_ambiguous" in reasons(result)


def test_shell_call_in_a_container_runs_on_the_provider() -> None:
    item = shell(['echo "a"', "ls"], environment={"type": "container_reference", "container_id": "c"})
    output = {"type": "shell_call_output", "id": "sho", "call_id": "call_0", "output": [{"stdout": "a"}]}
    result, _, _ = play([created(), *SHELL, done(0, item), done(1, output), completed(item, output)])
    assert [c.runs_on for c in result.calls] == ["provider"]
    assert decide(result).action == "nothing_to_run"


def patch(diff: str | None, **more: Any) -> Json:
    operation = {"type": "create_file", "diff": diff, "path": "a.md"} if diff is not None else {"type": "delete_file", "path": "a.md"}
    return {"type": "apply_patch_call", "id": "fc_0", "call_id": "call_0", "status": "completed", "operation": operation, **more}


def test_patch_streams_as_its_operation() -> None:
    frames = [
        added(0, patch("", status="in_progress")),
        on("apply_patch_call_operation_diff.delta", 0, delta="+# A\n"),
        on("apply_patch_call_operation_diff.delta", 0, delta="+é"),
        on("apply_patch_call_operation_diff.done", 0, diff="+# A\n+é\n"),
        done(0, patch("+# A\n+é\n")),
    ]
    result, events, _ = play([created(), *frames, completed(patch("+# A\n+é\n"))])
    assert [e[2] for e in events if e[0] == "arguments"] == ['{"type":"create_file","diff":"+# A\\n', "+é", "\\n", '","path":"a.md"}']
    assert runs(result) == [("call_0", "apply_patch_call", {"type": "create_file", "diff": "+# A\n+é\n", "path": "a.md"})]


def test_patch_whose_operation_changes_is_a_conflict() -> None:
    final = patch("+x")
    final["operation"]["type"] = "update_file"
    frames = [added(0, patch("")), on("apply_patch_call_operation_diff.delta", 0, delta="+x"), done(0, final)]
    result, _, _ = play([created(), *frames, completed(final)])
    assert "args_conflict" in reasons(result)


def test_patch_without_a_diff_is_its_operation() -> None:
    result, _, _ = play([created(), added(0, patch(None)), done(0, patch(None)), completed(patch(None))])
    assert runs(result) == [("call_0", "apply_patch_call", {"type": "delete_file", "path": "a.md"})]


def test_client_calls_without_deltas_are_their_objects() -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    items = [
        {"type": "local_shell_call", "id": "i0", "call_id": "c0", "status": "completed", "action": action},
        {"type": "computer_call", "id": "i1", "call_id": "c1", "status": "completed", "action": {"type": "click", "x": 1}, "pending_safety_checks": []},
        {"type": "computer_call", "id": "i2", "call_id": "c2", "status": "completed", "actions": [{"type": "wait"}]},
        {"type": "tool_search_call", "id": "i3", "call_id": "c3", "status": "completed", "execution": "client", "arguments": {"goal": "x"}},
    ]
    frames = []
    for index, item in enumerate(items):
        begun = {**item, "status": "in_progress", **{k: {} for k in ("action", "arguments") if k in item}}
        frames += [added(index, begun), done(index, item)]
    final = [{**items[0], "action": dict(reversed(action.items()))}, *items[1:]]
    result, _, _ = play([created(), *frames, completed(*final)])
    assert runs(result) == [
        ("c0", "local_shell_call", action),
        ("c1", "computer_call", {"type": "click", "x": 1}),
        ("c2", "computer_call", {"actions": [{"type": "wait"}]}),
        ("c3", "tool_search_call", {"goal": "x"}),
    ]
    assert result.calls[0].text == '{"type":"exec","command":["ls"],"env":{}}'
    assert result.calls[1].extra == {"id": "i1", "pending_safety_checks": []}


def test_object_that_differs_in_the_snapshot_is_a_conflict() -> None:
    item = {"type": "local_shell_call", "id": "i0", "call_id": "c0", "status": "completed", "action": {"type": "exec", "command": ["ls"]}}
    other = {**item, "action": {"type": "exec", "command": ["rm"]}}
    result, _, _ = play([created(), added(0, item), done(0, item), completed(other)])
    assert reasons(result) == {"args_conflict"}


def test_calls_that_the_provider_runs_leave_nothing_to_run() -> None:
    items = [
        {"type": "mcp_call", "id": "mcp_0", "name": "echo", "server_label": "srv", "arguments": '{"a":1}', "status": "failed"},
        {"type": "code_interpreter_call", "id": "ci_1", "code": "1+1", "status": "completed", "container_id": "c"},
        {"type": "web_search_call", "id": "ws_2", "status": "completed", "action": {"type": "search", "query": "tides"}},
        {"type": "file_search_call", "id": "fs_3", "status": "completed", "queries": ["x"]},
        {"type": "image_generation_call", "id": "ig_4", "status": "completed", "result": "aGk="},
        {"type": "program", "id": "pr_5", "call_id": "call_5", "code": "await x()", "fingerprint": "fp"},
        {"type": "program_output", "id": "po_6", "call_id": "call_5", "result": "x"},
        {"type": "tool_search_call", "id": "ts_7", "call_id": None, "execution": "server", "arguments": {"paths": ["x"]}, "status": "completed"},
        {"type": "mcp_list_tools", "id": "ml_8", "server_label": "srv", "tools": []},
        {"type": "compaction", "id": "cp_9", "encrypted_content": "x"},
    ]
    frames = []
    for index, item in enumerate(items):
        frames += [added(index, {**item, **({"code": ""} if "code" in item else {})}), done(index, item)]
    result, events, _ = play([created(), *frames, completed(*items)])
    assert [(c.id, c.name, c.kind, c.value) for c in result.calls] == [
        ("mcp_0", "echo", "json", {"a": 1}),
        ("ci_1", "code_interpreter_call", "text", "1+1"),
        ("ws_2", "web_search_call", "json", {"type": "search", "query": "tides"}),
        ("fs_3", "file_search_call", "json", {"queries": ["x"]}),
        ("ig_4", "image_generation_call", "json", {}),
        ("call_5", "program", "text", "await x()"),
        ("ts_7", "tool_search_call", "json", {"paths": ["x"]}),
    ]
    assert {c.runs_on for c in result.calls} == {"provider"}
    assert decide(result).action == "nothing_to_run"
    assert ["UnknownFrame"] not in events


def test_code_and_mcp_arguments_stream() -> None:
    frames = [
        added(0, {"type": "code_interpreter_call", "id": "fc_0", "code": ""}),
        on("code_interpreter_call_code.delta", 0, delta="1+"),
        on("code_interpreter_call_code.delta", 0, delta="1"),
        on("code_interpreter_call_code.done", 0, code="1+1"),
        done(0, {"type": "code_interpreter_call", "id": "fc_0", "code": "1+1", "status": "completed"}),
        added(1, {"type": "mcp_call", "id": "fc_1", "name": "echo", "arguments": ""}),
        on("mcp_call_arguments.delta", 1, delta='{"a":1}'),
        on("mcp_call_arguments.done", 1, arguments='{"a":1}'),
        done(1, {"type": "mcp_call", "id": "fc_1", "name": "echo", "arguments": '{"a":1}', "status": "completed"}),
    ]
    result, events, _ = play([created(), *frames, completed()])
    assert [e[2] for e in events if e[0] == "arguments"] == ["1+", "1", '{"a":1}']
    assert [c.value for c in result.calls] == ["1+1", {"a": 1}]


def test_approval_request_is_shown_and_never_runs() -> None:
    item = {"type": "mcp_approval_request", "id": "mcpr_0", "name": "pay", "server_label": "bank", "arguments": '{"sum":1}'}
    result, _, _ = play([created(), added(0, item), done(0, item), completed(item)])
    (request,) = result.calls
    assert (request.id, request.name, request.value, request.runs_on) == ("mcpr_0", "pay", {"sum": 1}, "provider")
    assert "needs_approval" in request.marks
    assert decide(result).action == "nothing_to_run"


# -- the rest -------------------------------------------------------------------------------------------------------------


def test_whole_response_in_place_of_a_stream() -> None:
    result, _, _ = play(json.dumps(response("completed", [msg(0, "Hi"), FINAL], usage={"output_tokens": 5})).encode())
    assert result.text == "Hi"
    assert runs(result) == RUNS
    assert "whole_completion" in result.marks


def test_whole_response_that_is_still_running_is_a_cut() -> None:
    result, _, _ = play(json.dumps(response("queued")).encode())
    assert result.truncated


def test_large_items_on_one_line() -> None:
    big = fn(0, json.dumps({"text": "x" * 300_000}))
    result, _, _ = run([sse([done(0, big), completed(big)])])
    assert len(decide(result).runnable[0].arguments["text"]) == 300_000


def test_half_fed_turn_goes_on_after_pickling() -> None:
    item = shell(['echo "a"', "ls"])
    body = sse(numbered([created(), *SHELL, done(0, item), *text(1, "hey"), completed(item, msg(1, "hey"))]))
    for at in range(0, len(body), 61):
        turn = tw.Turn("openai-responses")
        turn.feed(body[:at])
        turn = pickle.loads(pickle.dumps(turn))
        turn.feed(body[at:])
        result = turn.finish()
        assert result.text == "hey"
        assert decide(result).runnable[0].arguments == item["action"]


def test_any_event_that_is_lost_never_changes_what_runs() -> None:
    frames = [created(), *text(0, "Hi"), *call(1, '{"path":', '"a', "b", '"}'), completed(msg(0, "Hi"), fn(1, '{"path":"ab"}'))]
    for lost in range(len(frames)):
        result, _, _ = run([sse([f for i, f in enumerate(frames) if i != lost])])
        assert runs(result) in ([], [("call_1", "dim_lamp", {"path": "ab"})])


@pytest.mark.parametrize("junk", [None, 0, "x", [], {}, [{}], {"type": []}, {"output_index": {}}, True, 1.5, -1])
def test_members_of_the_wrong_kind_never_crash(junk: Any) -> None:
    item = shell(["ls"])
    frames = [created(), *text(0, "x"), *call(1, "{}"), *[{**f, "output_index": 2} for f in SHELL], done(2, item)]
    frames = numbered([*frames, completed(msg(0, "x"), fn(1), item)])
    for i, frame in enumerate(frames):
        for path in _paths(frame):
            bad = copy.deepcopy(frame)
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


def test_final_text_completes_half_a_surrogate_pair_that_waited() -> None:
    whole = '{"a":"\U0001f600!"}'
    result, events, _ = play([created(), *call(0, '{"a":"\ud83d', final=whole), completed(fn(0, whole))])
    assert result.calls[0].text == whole
    assert runs(result) == [("call_0", "dim_lamp", {"a": "\U0001f600!"})]


def test_final_text_without_the_half_that_waited_is_a_conflict() -> None:
    result, _, _ = play([created(), *call(0, '{"a":"\ud83d', final='{"a":"!"}'), completed(fn(0, '{"a":"!"}'))])
    assert "args_conflict" in reasons(result)


def test_one_item_at_two_places_never_runs() -> None:
    again = done(7, fn(0, '{"a":1}'))
    result, _, _ = play([created(), *call(0, '{"a":1}'), again, completed(fn(0, '{"a":1}'))])
    assert len(result.calls) == 1
    assert "args_ambiguous" in reasons(result)
