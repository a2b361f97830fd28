"""Several responses on one WebSocket, and the Realtime form of one message an event."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "openai-responses"
NAMES = ["demo", "parallel", "end_incomplete_max_output_tokens", "end_failed", "error_nested", "end_mcp_approval_request", "end_incomplete_steered"]


def messages(name: str, stream: str | None) -> list[str]:
    """A recorded body, as the messages of one lane."""
    lines = (FIXTURES / f"{name}.sse").read_text("utf-8").splitlines()
    payloads = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    return [json.dumps(p if stream is None else {**p, "stream_id": stream}) for p in payloads]


def facts(result: tw.TurnResult) -> Any:
    decision = tw.TurnGate().decide(result)
    calls = [(c.key, c.id, c.name, c.text, c.runs_on, c.doubts, list(c.marks)) for c in result.calls]
    runnable = [(c.id, c.name, c.arguments) for c in decision.runnable]
    return result.outcome, result.reason, result.texts, result.usage, calls, decision.action, decision.reasons, runnable


def alone(name: str) -> tw.TurnResult:
    turn = tw.Turn("openai-responses", framing="message")
    for message in messages(name, None):
        turn.feed(message)  # type: ignore[arg-type]
    return turn.finish()


def results(events: list[tuple[str | None, tw.Event]]) -> list[tuple[str | None, tw.TurnResult]]:
    return [(lane, event.result) for lane, event in events if isinstance(event, tw.TurnEnd)]


def created(id: str, **more: Any) -> str:
    return json.dumps({"type": "response.created", "response": {"id": id, "status": "in_progress"}, **more})


def ended(id: str, **more: Any) -> str:
    return json.dumps({"type": "response.completed", "response": {"id": id, "status": "completed", "output": []}, **more})


@pytest.mark.parametrize("seed", range(6))
def test_interleaved_lanes_give_what_each_gives_alone(seed: int) -> None:
    rng = random.Random(seed)
    lanes: list[list[tuple[str | None, str]]] = []
    for number, name in enumerate(NAMES):
        lane = None if number == 0 else f"lane.{number}"
        lanes.append([(lane, message) for message in messages(name, lane)])
    socket = tw.ResponsesSocket()
    events: list[tuple[str | None, tw.Event]] = []
    while any(lanes):
        lane = rng.choice([each for each in lanes if each])
        name, message = lane.pop(0)
        got = socket.feed(message)
        assert {each for each, _ in got} <= {name}
        events += got
    assert not socket.turns
    assert not socket.close()
    ends = results(events)
    assert {lane: facts(result) for lane, result in ends} == {None if n == 0 else f"lane.{n}": facts(alone(name)) for n, name in enumerate(NAMES)}
    assert len(ends) == len(NAMES)


def test_one_lane_after_another_and_a_successor_of_a_steered_response() -> None:
    socket = tw.ResponsesSocket()
    events: list[tuple[str | None, tw.Event]] = []
    for name in ("end_incomplete_steered", "demo", "demo"):
        for message in messages(name, "s"):
            events += socket.feed(message)
    outcomes = [(lane, result.outcome, tw.TurnGate().decide(result).action) for lane, result in results(events)]
    assert outcomes == [("s", tw.Outcome.CONTINUE, "refuse"), ("s", tw.Outcome.STOP, "run"), ("s", tw.Outcome.STOP, "run")]


def test_no_beginning_of_the_messages_releases_a_call() -> None:
    body = messages("demo", "s")
    for cut in range(len(body)):
        socket = tw.ResponsesSocket()
        events = [event for message in body[:cut] for event in socket.feed(message)] + socket.close()
        assert [tw.TurnGate().decide(result).action for _, result in results(events)] == ["refuse"] * (cut > 0)


def test_steering_events_are_quiet_and_late_ones_are_reported() -> None:
    socket = tw.ResponsesSocket()
    assert not socket.feed(created("r"))
    assert not socket.feed('{"type":"response.steer.pending"}')
    assert [type(event) for _, event in socket.feed(ended("r"))] == [tw.TurnEnd]
    assert [type(event) for _, event in socket.feed('{"type":"response.steer.failed","stream_id":"x"}')] == [tw.UnknownFrame]
    assert [type(event) for _, event in socket.feed("[]")] == [tw.UnknownFrame]
    assert not socket.turns


def test_an_error_ends_its_lane_or_without_a_name_all_it_could_mean() -> None:
    error = {"type": "error", "error": {"type": "server_error", "message": "gone"}}
    socket = tw.ResponsesSocket()
    for lane in ("a", "b", "c"):
        socket.feed(created(lane, stream_id=lane))
    assert [lane for lane, _ in results(socket.feed(json.dumps({**error, "stream_id": "b"})))] == ["b"]
    rest = results(socket.feed(json.dumps(error)))
    assert [(lane, result.outcome) for lane, result in rest] == [("a", tw.Outcome.ERROR), ("c", tw.Outcome.ERROR)]
    socket.feed(created("a", stream_id="a"))
    socket.feed(created("r"))
    assert [lane for lane, _ in results(socket.feed(json.dumps(error)))] == [None]
    assert list(socket.turns) == ["a"]
    # The first event of a response that never began.
    assert [(lane, result.outcome) for lane, result in results(socket.feed(json.dumps({**error, "stream_id": "z"})))] == [("z", tw.Outcome.ERROR)]


def test_a_wrong_message_ends_its_lane_and_an_unreadable_one_all() -> None:
    socket = tw.ResponsesSocket()
    socket.feed(created("r1", stream_id="a"))
    socket.feed(created("r2", stream_id="b"))
    assert not socket.feed('{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{","stream_id":"a"}')  # never added
    (lane, result), *_ = results(socket.feed(created("r3", stream_id="a")))
    assert (lane, getattr(result.error, "code", None)) == ("a", "frame.protocol")
    assert list(socket.turns) == ["b", "a"]
    ends = results(socket.feed('{"type":'))
    assert [(lane, getattr(result.error, "code", None)) for lane, result in ends] == [("b", "json.truncated"), ("a", "json.truncated")]
    with pytest.raises(tw.StreamError):
        socket.feed(created("r4"))
    assert not socket.close()


def test_limits_and_misuse() -> None:
    socket = tw.ResponsesSocket(max_streams=1, limits=tw.Limits(max_frame_bytes=200))
    socket.feed(created("r1"))
    with pytest.raises(tw.LimitExceeded) as caught:
        socket.feed(created("r2", stream_id="b"))
    assert (caught.value.code, caught.value.limit, caught.value.value) == ("turn.too_many_streams", "max_streams", 1)
    assert caught.value.code in tw.errors.CODES
    assert [type(event) for _, event in socket.feed(ended("r1"))] == [tw.TurnEnd]  # the refused message changed nothing
    socket.feed(created("r2", stream_id="b"))
    (_, result), *_ = results(socket.feed(" " * 201))
    assert isinstance(result.error, tw.LimitExceeded)
    socket.close()
    with pytest.raises(tw.UsageError):
        socket.feed(created("r3"))
    for wrong in (0, "1", True):
        with pytest.raises(tw.UsageError):
            tw.ResponsesSocket(max_streams=wrong)  # type: ignore[arg-type]
    with pytest.raises(tw.UsageError):
        tw.ResponsesSocket(profile="lax")  # type: ignore[arg-type]


def test_closing_for_a_cause_aborts_what_is_open() -> None:
    socket = tw.ResponsesSocket()
    socket.feed(created("r"))
    ((_, result),) = results(socket.close("idle_timeout"))
    assert {"turn_not_ended", "idle_timeout"} <= set(tw.TurnGate().decide(result).reasons)


ITEM = {"type": "function_call", "id": "i", "call_id": "c", "name": "find", "arguments": "", "status": "in_progress"}
REALTIME = [
    {"type": "session.created", "event_id": "e0", "session": {"id": "sess"}},
    {"type": "response.created", "event_id": "e1", "response": {"id": "r", "object": "realtime.response", "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "event_id": "e2", "response_id": "r", "output_index": 0, "item": ITEM},
    {"type": "response.function_call_arguments.delta", "event_id": "e3", "response_id": "r", "item_id": "i", "output_index": 0, "call_id": "c", "delta": "{}"},
    {
        "type": "response.function_call_arguments.done",
        "event_id": "e4",
        "response_id": "r",
        "item_id": "i",
        "output_index": 0,
        "call_id": "c",
        "arguments": "{}",
    },
    {"type": "response.output_item.done", "event_id": "e5", "response_id": "r", "output_index": 0, "item": {**ITEM, "arguments": "{}", "status": "completed"}},
]


@pytest.mark.parametrize("provider", ["openai-responses", "auto"])
@pytest.mark.parametrize(
    ("response", "outcome", "action"),
    [
        ({"status": "completed"}, "STOP", "run"),
        ({"status": "incomplete", "status_details": {"reason": "max_output_tokens"}}, "LENGTH", "refuse"),
        ({"status": "incomplete", "status_details": {"reason": "content_filter"}}, "FILTERED", "refuse"),
        ({"status": "cancelled", "status_details": {"reason": "turn_detected"}}, "CANCELLED", "refuse"),
        ({"status": "failed", "status_details": {"error": {"type": "server_error", "code": "x"}}}, "ERROR", "refuse"),
        ({"status": "in_progress"}, "CUT", "refuse"),
        ({}, "CUT", "refuse"),
    ],
)
def test_the_realtime_form_ends_with_response_done(provider: str, response: dict[str, Any], outcome: str, action: str) -> None:
    turn = tw.Turn(provider, framing="message")
    for payload in [*REALTIME, {"type": "response.done", "event_id": "e6", "response": {"id": "r", **response}}]:
        assert not turn.ended
        turn.feed(json.dumps(payload).encode())
    result = turn.finish()
    assert (result.provider, str(result.outcome), tw.TurnGate().decide(result).action) == ("openai-responses", outcome, action)


def test_the_realtime_form_without_its_end_is_a_cut() -> None:
    for cut in range(len(REALTIME) + 1):
        turn = tw.Turn("openai-responses", framing="message")
        for payload in REALTIME[:cut]:
            turn.feed(json.dumps(payload).encode())
        assert tw.TurnGate().decide(turn.finish()).action == "refuse"
