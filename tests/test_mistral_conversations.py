"""Mistral Conversations, and how a turn tells them from Mistral chat."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import toolwire as tw
from turn_helpers import GOOD, Played, chat, every_way, named, play

START = {"type": "conversation.response.started", "conversation_id": "conv_1"}
DONE = {"type": "conversation.response.done", "usage": {"total_tokens": 9}}


def piece(arguments: Any, *, id: Any = "a", name: Any = "get_tide", place: Any = 0, **more: Any) -> dict[str, Any]:
    return {"type": "function.call.delta", "id": "fc", "tool_call_id": id, "name": name, "output_index": place, "arguments": arguments, **more}


def says(content: Any) -> dict[str, Any]:
    return {"type": "message.output.delta", "id": "m", "content": content}


def turn(*payloads: dict[str, Any], provider: str = "mistral") -> Played:
    return every_way(named(*payloads), provider)


CALL = (piece('{"port":'), piece('"Brest"}'))


@pytest.mark.parametrize("provider", ["mistral", "auto"])
def test_text_reasoning_and_interleaved_calls(provider: str) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "I look"}]}
    played = turn(
        START,
        says(thinking),
        says("One "),
        says({"type": "text", "text": "moment"}),
        piece('{"port":'),
        piece("", id="b", place=1),
        *CALL[1:],
        DONE,
        provider=provider,
    )
    result = played.result
    assert (result.provider, result.response_id, result.extra["conversation_id"]) == ("mistral", None, "conv_1")
    assert result.texts == {(0, "reasoning"): "I look", (0, "text"): "One moment"}
    assert [(c.id, c.arguments) for c in played.decision.runnable] == [("a", {"port": "Brest"}), ("b", {})]
    assert (result.outcome, result.reason, result.usage) == (tw.Outcome.TOOL_CALLS, "conversation.response.done", {"total_tokens": 9})


@pytest.mark.parametrize("first", [[START], [CALL[0]], [says("Hi")], [{"type": "agent.handoff.done", "next_agent_id": "ag"}]], ids=lambda f: f[0]["type"])
def test_auto_knows_any_first_event(first: list[dict[str, Any]]) -> None:
    assert turn(*first, DONE, provider="auto").result.provider == "mistral"


def test_the_event_name_stands_in_for_a_missing_type() -> None:
    body = named(START, *CALL, DONE).replace(b'"type":"function.call.delta",', b"").replace(b'"type":"conversation.response.started",', b"")
    assert [c.arguments for c in every_way(body, "mistral").decision.runnable] == [{"port": "Brest"}]


def test_chat_stays_chat() -> None:
    assert [c.id for c in every_way(chat(*GOOD), "mistral").decision.runnable] == ["c1"]
    mixed = every_way(chat(*GOOD, done=False) + named(piece("{}", id="b"), DONE), "mistral")
    assert [c.id for c in mixed.result.calls] == ["c1"]
    assert not mixed.result.has_end_marker


def test_no_beginning_runs_anything() -> None:
    body = named(START, *CALL, DONE)
    for cut in range(len(body) - 2):  # then the last payload is whole
        assert play([body[:cut]], "mistral").decision.action == "refuse", cut
    assert play([body[:-2]], "mistral").decision.action == "run"


def test_a_turn_pickled_half_way_goes_on() -> None:
    body = named(START, *CALL, DONE)
    whole = tw.Turn("mistral")
    whole.feed(body)
    for cut in range(0, len(body), 7):
        half = tw.Turn("mistral")
        half.feed(body[:cut])
        half = pickle.loads(pickle.dumps(half))
        half.feed(body[cut:])
        assert [c.text for c in half.finish().calls] == ['{"port":"Brest"}']
        assert tw.TurnGate().decide(half.finish()).action == "run"


@pytest.mark.parametrize("status", ["pending", "denied", "held_back"])
@pytest.mark.parametrize("late", [False, True])
def test_a_call_that_asks_a_person_never_runs(status: str, late: bool) -> None:
    first, second = (piece('{"port":'), piece('"Brest"}', confirmation_status=status))
    if not late:
        first["confirmation_status"] = status
    played = turn(START, first, second, DONE)
    (call,) = played.result.calls
    assert "needs_approval" in call.marks
    assert call.value == {"port": "Brest"}
    assert (played.result.outcome, played.decision.action) == (tw.Outcome.STOP, "nothing_to_run")


def test_an_allowed_call_runs() -> None:
    assert turn(START, piece("{}", confirmation_status="allowed"), DONE).decision.action == "run"


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ((piece("{"), piece("}", name="other")), "args_ambiguous"),
        ((piece("{"), piece("}", place=1)), "args_ambiguous"),
        ((piece("{}"), {"type": "function.call.delta", "arguments": "{}"}), "args_ambiguous"),
        ((piece({"a": 1}), piece({"a": 2})), "args_conflict"),
        ((piece("{}", name=""),), "no_name"),
        ((piece('{"a":'),), "args_incomplete"),
        ((piece("[1]"),), "args_not_object"),
    ],
)
def test_calls_in_doubt_are_refused(pieces: tuple[dict[str, Any], ...], reason: str) -> None:
    decision = turn(START, *pieces, DONE).decision
    assert (decision.action, decision.reason) == ("refuse", reason)


def test_arguments_as_an_object_and_a_late_name() -> None:
    played = turn(START, piece({"a": 1}, id="b"), piece("{", name=None), piece("}"), DONE)
    assert [(c.id, c.name, c.arguments) for c in played.decision.runnable] == [("b", "get_tide", {"a": 1}), ("a", "get_tide", {})]
    assert [list(c.marks) for c in played.result.calls] == [["args_as_object"], ["name_late"]]


def test_tools_that_mistral_runs_and_a_handoff() -> None:
    played = turn(
        START,
        {"type": "tool.execution.started", "id": "t", "name": "web_search", "arguments": '{"q":'},
        {"type": "tool.execution.delta", "id": "t", "name": "web_search", "arguments": "1}"},
        {"type": "tool.execution.done", "id": "t", "name": "web_search"},
        {"type": "agent.handoff.started", "id": "h", "previous_agent_id": "ag_1"},
        {"type": "agent.handoff.done", "id": "h", "next_agent_id": "ag_2", "next_agent_name": "library"},
        says("There."),
        DONE,
    )
    (call,) = played.result.calls
    assert (call.id, call.name, call.value, call.runs_on, call.closed) == ("t", "web_search", {"q": 1}, "provider", True)
    assert (played.result.extra["next_agent_id"], played.result.extra["next_agent_name"]) == ("ag_2", "library")
    assert played.decision.action == "nothing_to_run"


@pytest.mark.parametrize("code", [3000, None])
def test_an_error_is_sticky(code: Any) -> None:
    played = turn(START, *CALL, {"type": "conversation.response.error", "message": "gone", "code": code}, DONE)
    error = played.result.error
    assert isinstance(error, tw.ProviderError)
    assert (error.type, error.message, error.code) == ("conversation.response.error", "gone", None if code is None else str(code))
    assert played.decision.reason == "turn_error"


def test_another_conversation_is_a_protocol_error_and_unknown_events_are_none() -> None:
    played = turn(START, *CALL, {**START, "conversation_id": "conv_2"}, DONE)
    assert played.error is not None
    assert played.error.code == "frame.protocol"
    played = turn(START, {"type": "weather.report"}, *CALL, DONE)
    assert "unknown_events" in played.result.marks
    assert played.decision.action == "run"
