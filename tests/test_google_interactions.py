"""Google Interactions, from bytes to the gate. Each body is fed whole, byte by byte and at random cuts."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

import toolwire as tw
from toolwire.adapters.google_interactions import InteractionsAdapter

PROVIDER = "google-interactions"


def ways(body: bytes) -> Iterator[list[bytes]]:
    """The body, cut in different ways."""
    yield [body]
    yield [body[i : i + 1] for i in range(len(body))]
    rng = random.Random(len(body))
    for _ in range(3):
        cuts = sorted(rng.sample(range(len(body) + 1), min(len(body), 7)))
        yield [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


class Played:
    def __init__(self, chunks: list[bytes], **how: Any) -> None:
        turn = tw.Turn(PROVIDER, on_cut="return", **how)
        events: list[Any] = []
        self.error: tw.ToolwireError | None = None
        try:
            for chunk in chunks:
                events += turn.feed(chunk)
            self.result = turn.finish()
        except tw.ToolwireError as error:
            self.error = error
            self.result = turn.abort(error)
        events += turn.take_events()
        self.events = [type(e).__name__ for e in events]
        self.shown = {c.key: "".join(e.text for e in events if isinstance(e, tw.ArgumentsDelta) and e.call is c) for c in self.result.calls}
        self.calls = self.result.calls
        self.decision = tw.TurnGate().decide(self.result)

    @property
    def facts(self) -> Any:
        r, d = self.result, self.decision
        calls = [(c.key, c.id, c.name, c.text, c.complete, c.runs_on, c.doubts, c.extra, [(str(m), m.offset, m.times) for m in c.marks]) for c in r.calls]
        marks = [(str(m), m.offset, m.times) for m in r.marks]
        return self.events, self.shown, calls, r.outcome, r.reason, r.ended, r.texts, r.usage, r.resume_point, marks, str(self.error), d.action, d.reasons

    @property
    def doubts(self) -> list[list[str]]:
        return [list(c.doubts) for c in self.calls]


def play(*events: Any, **how: Any) -> Played:
    """Play the events in every way: the same each time."""
    body = events[0] if isinstance(events[0], bytes) else sse(*events)
    played = [Played(chunks, **how) for chunks in ways(body)]
    for other in played[1:]:
        assert other.facts == played[0].facts
    return played[0]


def sse(*events: Any) -> bytes:
    return b"".join(f"event: {e.get('event_type')}\ndata: {json.dumps(e)}\n\n".encode() for e in events) + b"event: done\ndata: [DONE]\n\n"


def created(id: str = "int_5", **more: Any) -> dict[str, Any]:
    return {"event_type": "interaction.created", "interaction": {"id": id, "status": "in_progress"}, **more}


def start(index: int, id: Any = "fc_5", name: Any = "mix_paint", arguments: Any = None, kind: str = "function_call", **more: Any) -> dict[str, Any]:
    step = {"type": kind, "id": id, "name": name, "arguments": arguments, **more}
    return {"event_type": "step.start", "index": index, "step": {k: v for k, v in step.items() if v is not None}}


def plain(index: int, kind: str = "model_output", **more: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": {"type": kind, **more}}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **more}}


def args(index: int, text: Any) -> dict[str, Any]:
    return delta(index, "arguments_delta", arguments=text)


def stop(index: int, **more: Any) -> dict[str, Any]:
    return {"event_type": "step.stop", "index": index, **more}


def completed(status: Any = "requires_action", **more: Any) -> dict[str, Any]:
    return {"event_type": "interaction.completed", "interaction": {"id": "int_5", "status": status, **more}}


CALL = [start(0, arguments={}), args(0, '{"base":"whi'), args(0, 'te"}'), stop(0)]


def marks_of(thing: Any) -> list[str]:
    return [str(mark) for mark in thing.marks]


# -- calls ------------------------------------------------------------------------------------------------------------


def test_the_example_of_the_protocol_page() -> None:
    events = [created(), *CALL, completed(usage={"total_tokens": 61})]
    p = play(*({**event, "event_id": f"e{n}"} for n, event in enumerate(events, 1)))
    (paint,) = p.calls
    assert (paint.id, paint.name, paint.text, paint.complete) == ("fc_5", "mix_paint", '{"base":"white"}', True)
    assert (p.result.outcome, p.result.reason, p.result.response_id) == (tw.Outcome.TOOL_CALLS, "requires_action", "int_5")
    assert (p.result.usage, p.result.resume_point) == ({"total_tokens": 61}, "e6")
    assert (p.decision.action, p.decision.runnable[0].arguments) == ("run", {"base": "white"})
    assert p.events == ["CallStart", "ArgumentsDelta", "ArgumentsDelta", "CallEnd", "UsageUpdate", "TurnEnd"]
    assert (marks_of(p.result), marks_of(paint)) == ([], [])


def test_interleaved_steps_are_told_apart_by_index() -> None:
    p = play(start(3, "a", "f"), start(1, "b", "f"), args(3, '{"n":'), args(1, '{"n":'), args(3, "3}"), args(1, "1}"), stop(1), stop(3), completed())
    assert [(c.id, c.text) for c in p.calls] == [("a", '{"n":3}'), ("b", '{"n":1}')]
    assert len(p.decision.runnable) == 2


@pytest.mark.parametrize("placeholder", [None, {}, ""])
@pytest.mark.parametrize("fragments", [[], [""], [None]])
def test_no_argument_text_is_an_empty_object(placeholder: Any, fragments: list[Any]) -> None:
    p = play(start(0, arguments=placeholder), *(args(0, f) for f in fragments), stop(0), completed())
    assert [r.arguments for r in p.decision.runnable] == [{}]


@pytest.mark.parametrize("given", [{"base": "white"}, '{"base":"white"}'])
def test_an_object_at_the_start_counts_where_no_fragment_came(given: Any) -> None:
    p = play(start(0, arguments=given), stop(0), completed())
    assert p.calls[0].text == p.shown["0.0"] == '{"base":"white"}'
    assert p.decision.action == "run"


@pytest.mark.parametrize(("given", "doubts"), [({"n": 1.0}, []), ({"n": 2}, ["args_conflict"]), ({"n": 1, "m": 2}, ["args_conflict"])])
def test_an_object_at_the_start_must_agree_with_the_fragments(given: Any, doubts: list[str]) -> None:
    p = play(start(0, arguments=given), args(0, '{ "n": 1 }'), stop(0), completed())
    assert (p.calls[0].text, p.doubts) == ('{ "n": 1 }', [doubts])
    assert p.decision.action == ("refuse" if doubts else "run")


def test_the_field_name_of_the_first_release_is_read() -> None:
    p = play(start(0), delta(0, "arguments_delta", partial_arguments='{"n":1}'), stop(0), completed())
    assert p.decision.runnable[0].arguments == {"n": 1}


def test_a_delta_may_hold_the_object() -> None:
    p = play(start(0), args(0, {"n": 1}), stop(0), completed())
    assert p.decision.runnable[0].arguments == {"n": 1}
    p = play(start(0), args(0, {"n": 1}), args(0, {"n": 1}), stop(0), completed())
    assert (p.decision.action, marks_of(p.calls[0])) == ("run", ["args_repeated"])
    p = play(start(0), args(0, {"n": 1}), args(0, {"n": 2}), stop(0), completed())
    assert p.doubts == [["args_conflict"]]


@pytest.mark.parametrize("id", ["", None, " "])
def test_a_blank_id_is_replaced_by_a_synthetic_one(id: Any) -> None:
    p = play(start(0, id=id), args(0, "{}"), stop(0), start(1, id=id), args(1, "{}"), stop(1), completed())
    assert all(c.id_is_synthetic for c in p.calls)
    assert len({c.id for c in p.calls}) == 2
    assert p.decision.action == "run"


@pytest.mark.parametrize("name", ["", None])
def test_a_call_without_a_name_is_refused(name: Any) -> None:
    p = play(start(0, name=name), args(0, "{}"), stop(0), completed())
    assert p.doubts == [["no_name"]]


def test_a_signature_goes_back_with_its_call() -> None:
    p = play(
        plain(0, "thought", signature="T0"),
        stop(0),
        start(1, signature="S1"),
        stop(1),
        start(2, id="b"),
        delta(2, "arguments_delta", signature="S2"),
        stop(2),
        completed(),
    )
    assert [c.extra for c in p.calls] == [{"signature": "S1", "thought_signature": "T0"}, {"signature": "S2"}]


def test_thought_signatures_are_kept() -> None:
    turn = tw.Turn(PROVIDER)
    turn.feed(sse(plain(0, "thought"), delta(0, "thought_signature", signature="T0"), stop(0), *[{**e, "index": 1} for e in CALL], completed()))
    assert turn.finish().extra == {"thought_signatures": ["T0"]}
    assert turn.calls[0].extra == {"thought_signature": "T0"}


def test_a_step_without_its_stop_refuses_the_turn() -> None:
    p = play(*CALL, start(1, "b"), args(1, "{}"), completed())
    assert p.doubts == [[], ["args_incomplete"]]
    assert p.decision.action == "refuse"


def test_the_start_object_of_a_step_without_its_stop_is_shown() -> None:
    p = play(start(0, arguments={"n": 1}), completed())
    assert (p.calls[0].text, p.doubts) == ('{"n":1}', [["args_incomplete"]])


@pytest.mark.parametrize("second", [start(0, "b", "mix_paint"), start(0, "", "mix_paint"), plain(0)])
def test_an_index_started_again_leaves_the_first_call_unfinished(second: dict[str, Any]) -> None:
    p = play(start(0), args(0, '{"n":1}'), second, stop(0), completed())
    assert p.doubts[0] == ["args_incomplete"]
    assert p.calls[0].text == '{"n":1}'
    assert all(not d for d in p.doubts[1:])
    assert p.decision.action == "refuse"


def test_the_same_start_again_is_the_same_call() -> None:
    p = play(start(0), args(0, '{"n":'), start(0), args(0, "1}"), stop(0), completed())
    assert (len(p.calls), marks_of(p.calls[0]), p.decision.action) == (1, ["call_repeated"], "run")


def test_an_index_used_again_after_its_stop_is_another_call() -> None:
    p = play(*CALL, start(0, "b"), args(0, "{}"), stop(0), completed())
    assert [c.id for c in p.calls] == ["fc_5", "b"]
    assert marks_of(p.calls[1]) == ["index_reused"]
    assert p.decision.action == "run"


def test_a_delta_after_the_stop_is_ambiguous() -> None:
    p = play(*CALL, args(0, " "), completed())
    assert p.doubts == [["args_ambiguous"]]
    p = play(*CALL, *CALL, completed())
    assert (len(p.calls), p.doubts) == (1, [["args_ambiguous"]])


def test_one_id_under_two_indices_gets_a_synthetic_one() -> None:
    p = play(start(0, "a"), stop(0), start(1, "a"), stop(1), completed())
    assert [c.id_is_synthetic for c in p.calls] == [False, True]
    assert marks_of(p.calls[1]) == ["id_repeated"]


@pytest.mark.parametrize("event", [args(7, "{}"), args("0", "{}"), {**args(0, "{}"), "index": None}, {**start(0), "index": 1.5}])
def test_arguments_for_no_step_are_a_protocol_error(event: dict[str, Any]) -> None:
    p = play(created(), *CALL, event, completed())
    assert isinstance(p.error, tw.MalformedFrame)
    assert p.error.code == "frame.protocol"
    assert p.decision.action == "refuse"


def test_arguments_for_a_step_that_is_no_call_are_a_protocol_error() -> None:
    assert isinstance(play(plain(0), args(0, "{}"), completed()).error, tw.MalformedFrame)


def test_a_second_interaction_in_one_body_is_a_protocol_error() -> None:
    assert isinstance(play(created(), created("other"), completed()).error, tw.MalformedFrame)
    assert "message_repeated" in play(created(), created(), *CALL, completed()).result.marks
    assert play(created(""), created(""), *CALL, completed()).decision.action == "run"


# -- the provider's own tools -----------------------------------------------------------------------------------------

PROVIDER_RUN = ["mcp_server_tool_call", "code_execution_call", "google_search_call", "google_maps_call", "url_context_call"]
PROVIDER_RUN += ["file_search_call", "retrieval_call", "tool_search_call", "processing_call", "brand_new_call"]


@pytest.mark.parametrize("kind", PROVIDER_RUN)
def test_provider_run_steps_are_shown_and_never_run(kind: str) -> None:
    result = kind.removesuffix("_call") + "_result"
    p = play(
        {"event_type": "step.start", "index": 0, "step": {"type": kind, "id": "p1", "signature": "S"}},
        delta(0, kind, arguments={"queries": ["a", 1]}),
        stop(0),
        {"event_type": "step.start", "index": 1, "step": {"type": result, "call_id": "p1"}},
        delta(1, result, result=[{"x": 1}]),
        stop(1),
        *({**e, "index": 2} for e in CALL),
        completed(),
    )
    tool = p.calls[0]
    assert (tool.id, tool.name, tool.text, tool.runs_on, tool.extra) == ("p1", kind, '{"queries":["a",1]}', "provider", {"signature": "S"})
    assert [r.id for r in p.decision.runnable] == ["fc_5"]
    assert marks_of(p.result) == []


def test_a_provider_run_step_has_its_own_name() -> None:
    p = play(start(0, "m1", "lookup", {"q": 1}, "mcp_server_tool_call", server_name="srv"), stop(0), completed("completed"))
    assert (p.calls[0].name, p.calls[0].text, p.calls[0].extra) == ("lookup", '{"q":1}', {"server_name": "srv"})
    assert (p.decision.action, p.decision.reason) == ("nothing_to_run", "ended")


def test_a_call_delta_in_a_step_of_another_kind_is_a_conflict() -> None:
    p = play(start(0), delta(0, "google_search_call", arguments={"q": 1}), stop(0), completed())
    assert p.doubts == [["args_conflict"]]


# -- text -------------------------------------------------------------------------------------------------------------


def test_text_and_thoughts() -> None:
    p = play(
        plain(0, "thought", summary=[]),
        delta(0, "thought_summary", content={"type": "text", "text": "plan "}),
        delta(0, "thought_summary", content={"type": "text", "text": "more"}),
        stop(0),
        plain(1, content=[]),
        delta(1, "text", text="one "),
        delta(1, "text", text="two"),
        delta(1, "text_annotation_delta", annotations=[{"url": "u"}]),
        delta(1, "image", data="QUJD"),
        stop(1),
        completed("completed"),
    )
    assert p.result.texts == {(0, "reasoning"): "plan more", (0, "text"): "one two"}
    assert (p.decision.action, p.decision.reason, marks_of(p.result)) == ("nothing_to_run", "ended", [])


def test_text_at_the_start_of_a_step_counts() -> None:
    p = play(plain(0, content=[{"type": "text", "text": "a"}]), delta(0, "text", text="b"), stop(0), completed("completed"))
    assert p.result.text == "ab"


def test_an_error_inside_a_model_output_is_an_error() -> None:
    p = play(*CALL, plain(1, error={"code": 13, "message": "boom"}), stop(1), completed())
    assert (p.result.outcome, p.result.error.message) == (tw.Outcome.ERROR, "boom")  # type: ignore[union-attr]
    assert p.decision.reasons == ("turn_error",)


@pytest.mark.parametrize(
    "event",
    [
        {"event_type": "interaction.connected"},
        plain(5, "hologram"),
        delta(0, "hologram"),
        {"event_type": "step.delta", "index": 0},
        {"event_type": "step.start", "index": 5},
        stop(9),
        {"event_type": "new"},
    ],
)
def test_unknown_events_are_reported(event: dict[str, Any]) -> None:
    p = play(created(), *CALL[:2], event, *CALL[2:], completed())
    assert "UnknownFrame" in p.events
    assert marks_of(p.result) == ["unknown_events"]
    assert p.decision.action == "run"


def test_an_absent_index_is_zero() -> None:
    p = play(*({k: v for k, v in e.items() if k != "index"} for e in CALL), completed())
    assert p.decision.action == "run"


def test_usage_comes_from_many_places() -> None:
    p = play(
        {"event_type": "interaction.status_update", "interaction_id": "int_5", "status": "in_progress", "usage": {"a": 1}},
        *CALL[:1],
        {**CALL[1], "metadata": {"total_usage": {"b": 2}}},
        CALL[2],
        stop(0, usage={"c": 3}),
        completed(usage={"a": 4}),
    )
    assert p.result.usage == {"a": 4, "b": 2, "c": 3}


# -- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "outcome", "action", "reason"),
    [
        ("requires_action", tw.Outcome.TOOL_CALLS, "run", "ended"),
        ("completed", tw.Outcome.STOP, "run", "ended"),
        ("incomplete", tw.Outcome.LENGTH, "refuse", "turn_truncated"),
        ("budget_exceeded", tw.Outcome.LENGTH, "refuse", "turn_truncated"),
        ("failed", tw.Outcome.ERROR, "refuse", "turn_error"),
        ("cancelled", tw.Outcome.CANCELLED, "refuse", "aborted"),
        ("requires_continuation", tw.Outcome.CONTINUE, "refuse", "turn_continues"),
        ("idle", tw.Outcome.UNKNOWN, "refuse", "turn_unknown"),
        ("brand_new", tw.Outcome.UNKNOWN, "refuse", "turn_unknown"),
        ("", tw.Outcome.UNKNOWN, "refuse", "turn_unknown"),
        (None, tw.Outcome.UNKNOWN, "refuse", "turn_unknown"),
        ({"code": 1}, tw.Outcome.UNKNOWN, "refuse", "turn_unknown"),
    ],
)
def test_each_status(status: Any, outcome: tw.Outcome, action: str, reason: str) -> None:
    p = play(created(), *CALL, completed(status))
    assert (p.result.outcome, p.result.ended) == (outcome, True)
    assert p.result.reason == (status if isinstance(status, str) else "")
    assert (p.decision.action, p.decision.reason) == (action, reason)


def test_completed_with_calls_is_marked() -> None:
    assert "finish_stop_with_calls" in play(*CALL, completed("completed")).result.marks


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_completed_event_that_says_otherwise_does_not_end_the_turn(status: str) -> None:
    p = play(*CALL, completed(status))
    assert (p.result.outcome, p.result.ended, p.decision.reason) == (tw.Outcome.CUT, False, "turn_not_ended")
    assert play(*CALL, completed(status), completed()).decision.action == "run"


@pytest.mark.parametrize(
    "tail",
    [[], [{"event_type": "interaction.status_update", "status": "requires_action"}], [{"event_type": "interaction.status_update", "status": "completed"}]],
)
def test_without_the_last_event_the_turn_is_cut(tail: list[Any]) -> None:
    p = play(created(), *CALL, *tail)  # [DONE] follows, and says nothing
    assert (p.result.outcome, p.result.truncated) == (tw.Outcome.CUT, True)
    assert (p.decision.action, p.decision.reason) == ("refuse", "turn_not_ended")
    turn = tw.Turn(PROVIDER)
    turn.feed(sse(created(), *CALL, *tail))
    with pytest.raises(tw.TurnTruncated):
        turn.finish()


@pytest.mark.parametrize("at", range(6))
def test_an_error_event_is_an_error(at: int) -> None:
    events = [created(), *CALL, completed()]
    error = {"event_type": "error", "error": {"code": "https://example.com/errors/quota", "message": "no more"}}
    p = play(*events[:at], error, *events[at:])
    assert isinstance(p.result.error, tw.ProviderError)
    assert (p.result.error.code, p.result.error.message) == ("https://example.com/errors/quota", "no more")
    assert (p.result.outcome, p.decision.action) == (tw.Outcome.ERROR, "refuse")


def test_an_error_after_the_end_counts_too() -> None:
    assert play(*CALL, completed(), {"event_type": "error", "error": {"message": "late"}}).result.outcome is tw.Outcome.ERROR


def test_a_last_frame_cut_inside_its_json_is_no_end() -> None:
    body = sse(*CALL, completed()).removesuffix(b"event: done\ndata: [DONE]\n\n")
    assert play(body).decision.action == "run"
    assert play(body.rstrip(b"\n")).decision.action == "run"
    assert play(body[:-4]).decision.reason == "turn_not_ended"


def test_a_continuation_token_is_kept() -> None:
    for event in (
        completed("requires_continuation", continuation_token="tok"),
        {"event_type": "interaction.status_update", "status": "x", "continuation_token": "tok"},
    ):
        turn = tw.Turn(PROVIDER, on_cut="return")
        turn.feed(sse(*CALL, event))
        assert turn.finish().extra == {"continuation_token": "tok"}


# -- repeated events --------------------------------------------------------------------------------------------------


def test_repeated_events_are_dropped() -> None:
    events = [{**event, "event_id": f"e{n}"} for n, event in enumerate([created(), *CALL, completed()])]
    p = play(*events[:4], *events[1:4], *events[2:])
    assert p.decision.runnable[0].arguments == {"base": "white"}
    assert [(str(m), m.times) for m in p.result.marks] == [("repeated_events", 5)]


def test_the_resume_point_is_the_last_event() -> None:
    turn = tw.Turn(PROVIDER)
    seen = []
    for n, event in enumerate([created(), *CALL]):
        turn.feed(sse({**event, "event_id": f"e{n}"}))
        seen.append(turn.resume_point)
    assert seen == ["e0", "e1", "e2", "e3", "e4"]
    turn.feed(sse(args(0, ""), {**CALL[0], "event_id": "e1"}))
    assert turn.resume_point == "e4"


def test_the_memory_for_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.adapters.google_interactions._REMEMBERED_EVENTS", 3)
    turn = tw.Turn(PROVIDER)
    turn.feed(sse(*({**created(), "event_id": f"e{n}"} for n in range(10))))
    adapter = turn._adapter
    assert isinstance(adapter, InteractionsAdapter)
    assert list(adapter._seen) == ["e7", "e8", "e9"]


# -- the final steps --------------------------------------------------------------------------------------------------


def final(*steps: Any, status: str = "requires_action", member: str = "steps") -> dict[str, Any]:
    return completed(status, **{member: list(steps)})


def fc(id: str = "fc_5", name: str = "mix_paint", arguments: Any = None) -> dict[str, Any]:
    return {"type": "function_call", "id": id, "name": name, "arguments": arguments}


@pytest.mark.parametrize("member", ["steps", "outputs"])
def test_final_steps_that_agree_change_nothing(member: str) -> None:
    p = play(*CALL, final({"type": "user_input"}, fc(arguments={"base": "white"}), member=member))
    assert (p.decision.action, marks_of(p.calls[0])) == ("run", [])


def test_what_the_final_steps_add_comes_out() -> None:
    texts = [{"type": "thought", "summary": [{"type": "text", "text": "plan"}]}, {"type": "model_output", "content": [{"type": "text", "text": "one two"}]}]
    p = play(plain(0), delta(0, "text", text="one"), stop(0), start(1), stop(1), final(*texts, fc(arguments={"n": 1}), fc("b", "new", {"m": 2})))
    assert p.result.texts == {(0, "text"): "one two", (0, "reasoning"): "plan"}
    assert [(c.id, c.text) for c in p.calls] == [("fc_5", '{"n":1}'), ("b", '{"m":2}')]
    assert marks_of(p.calls[1]) == ["args_final_only"]
    assert [r.arguments for r in p.decision.runnable] == [{"n": 1}, {"m": 2}]


@pytest.mark.parametrize("step", [fc(arguments={"base": "black"}), fc(arguments={}), fc(name="other", arguments={"base": "white"}), fc(arguments='{"base":1}')])
def test_final_steps_that_disagree_are_a_conflict(step: dict[str, Any]) -> None:
    p = play(*CALL, final(step))
    assert (p.calls[0].text, p.doubts) == ('{"base":"white"}', [["args_conflict"]])
    assert p.decision.reasons == ("args_conflict",)


def test_a_final_text_that_disagrees_is_marked() -> None:
    p = play(plain(0), delta(0, "text", text="one"), stop(0), final({"type": "model_output", "content": [{"type": "text", "text": "two"}]}, status="completed"))
    assert (p.result.text, marks_of(p.result)) == ("one", ["text_conflict"])


def test_final_steps_do_not_close_a_step() -> None:
    p = play(start(0), args(0, '{"base":"wh'), final(fc(arguments={"base": "white"})))
    assert (p.calls[0].text, p.doubts) == ('{"base":"white"}', [["args_incomplete"]])


def test_final_steps_without_ids_go_by_order_and_name() -> None:
    steps = [start(0, "", "f"), args(0, '{"n":1}'), stop(0), start(1, "", "f"), args(1, '{"n":2}'), stop(1)]
    assert play(*steps, final(fc("", "f", {"n": 1}), fc("", "f", {"n": 2}))).decision.action == "run"
    assert play(*steps, final(fc("", "f", {"n": 2}), fc("", "f", {"n": 1}))).doubts == [["args_conflict"]] * 2


def test_a_whole_interaction_is_read_as_the_last_event() -> None:
    body = json.dumps({"id": "int_5", "object": "interaction", "status": "requires_action", "steps": [fc(arguments={"n": 1})]}).encode()
    p = play(body)
    assert (p.decision.action, p.result.response_id) == ("run", "int_5")
    assert "whole_completion" in p.result.marks


# -- the older names --------------------------------------------------------------------------------------------------


def old(event: str, index: int, **more: Any) -> dict[str, Any]:
    return {"event_type": f"content.{event}", "index": index, **more}


def old_call(index: int, id: str, arguments: Any, name: str = "mix_paint") -> dict[str, Any]:
    return old("delta", index, delta={"type": "function_call", "id": id, "name": name, "arguments": arguments})


OLD_END = {"event_type": "interaction.complete", "interaction": {"id": "int_5", "status": "requires_action"}}
OLD_CREATED = {"event_type": "interaction.start", "interaction": {"id": "int_5", "status": "in_progress"}}


@pytest.mark.parametrize(
    "content",
    [
        {"type": "function_call"},
        {"type": "function_call", "id": "a", "name": "mix_paint"},
        {"type": "function_call", "id": "a", "name": "mix_paint", "arguments": {}},
    ],
)
@pytest.mark.parametrize(("arguments", "value"), [({"n": 1}, {"n": 1}), ({}, {}), (None, {})])
def test_a_call_comes_whole_in_one_delta(content: dict[str, Any], arguments: Any, value: Any) -> None:
    p = play(OLD_CREATED, old("start", 0, content=content), old_call(0, "a", arguments), old("stop", 0), OLD_END)
    assert [(c.id, c.name) for c in p.calls] == [("a", "mix_paint")]
    assert [r.arguments for r in p.decision.runnable] == [value]
    assert p.result.response_id == "int_5"


def test_text_and_thoughts_under_the_older_names() -> None:
    p = play(
        OLD_CREATED,
        old("start", 0, content={"type": "thought"}),
        old("delta", 0, delta={"type": "thought_signature", "signature": "T"}),
        old("delta", 0, delta={"type": "thought_summary", "content": {"type": "text", "text": "plan"}}),
        old("stop", 0),
        old("start", 1, content={"type": "text"}),
        old("delta", 1, delta={"type": "text", "text": "hi"}),
        old("stop", 1),
        {**OLD_END, "interaction": {"status": "completed"}},
    )
    assert p.result.texts == {(0, "reasoning"): "plan", (0, "text"): "hi"}
    assert marks_of(p.result) == []


def test_older_calls_without_a_start_or_stop() -> None:
    assert play(old_call(0, "a", {"n": 1}), old("stop", 0), OLD_END).decision.action == "run"
    assert play(old_call(0, "a", {"n": 1}), OLD_END).doubts == [["args_incomplete"]]


@pytest.mark.parametrize(
    ("second", "doubts"),
    [
        (old_call(0, "a", {"n": 1}), [[]]),
        (old_call(0, "a", {"n": 2}), [["args_conflict"]]),
        (old_call(0, "a", {"n": 1}, "other"), [["args_conflict"]]),
        (old_call(0, "b", {"n": 1}), [["args_incomplete"], []]),
    ],
)
def test_a_second_whole_call_at_one_index(second: dict[str, Any], doubts: list[list[str]]) -> None:
    p = play(old("start", 0, content={"type": "function_call"}), old_call(0, "a", {"n": 1}), second, old("stop", 0), OLD_END)
    assert p.doubts == doubts
    assert p.decision.action == ("run" if doubts == [[]] else "refuse")


def test_a_key_twice_in_an_object_refuses_the_call() -> None:
    body = sse(start(0, arguments={"n": 1}), stop(0), completed()).replace(b'{"n": 1}', b'{"n": 1, "n": 2}')
    assert play(body).doubts == [["args_duplicate_key"]]
    body = sse(old_call(0, "a", {"n": 1}), old("stop", 0), OLD_END).replace(b'{"n": 1}', b'{"n": 1, "n": 2}')
    assert play(body).doubts == [["args_duplicate_key"]]


# -- elsewhere --------------------------------------------------------------------------------------------------------


def test_a_turn_pickled_between_any_two_bytes_goes_on() -> None:
    body = sse(created(), *CALL, start(1, "b", arguments={"n": 1}), stop(1), completed())
    for at in range(0, len(body), 11):
        turn = tw.Turn(PROVIDER)
        turn.feed(body[:at])
        turn = pickle.loads(pickle.dumps(turn))
        turn.feed(body[at:])
        assert [r.arguments for r in tw.TurnGate().decide(turn.finish()).runnable] == [{"base": "white"}, {"n": 1}]


def test_two_starts_with_different_arguments_are_a_conflict() -> None:
    p = play(start(0, arguments={"n": 1}), start(0, arguments={"n": 2}), stop(0), completed())
    assert p.doubts == [["args_conflict"]]


def test_the_last_event_may_lack_its_interaction() -> None:
    p = play(*CALL, {"event_type": "interaction.completed"})
    assert (p.result.ended, p.decision.reason) == (True, "turn_unknown")


def test_odd_values_are_passed_over() -> None:
    p = play(
        plain(1),
        delta(1, "text", text=None),
        delta(1, "thought_summary", content=7),
        delta(1, "thought_signature"),
        stop(1),
        stop(1),
        *CALL,
        final({"type": None}, {"type": "model_output", "content": None}, fc(arguments=None)),
    )
    assert (p.result.texts, p.decision.action) == ({}, "run")


def test_a_name_that_comes_in_the_delta_names_the_call() -> None:
    p = play(start(0, name=None), delta(0, "function_call", id="fc_5", name="mix_paint", arguments={"n": 1}), stop(0), completed())
    assert [(r.name, r.arguments) for r in p.decision.runnable] == [("mix_paint", {"n": 1})]
