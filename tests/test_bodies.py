"""Turns that come in more than one body: resumed after a drop, and going on in another response."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw

FIXTURES = Path(__file__).parents[1] / "fixtures"
RESUMABLE = {"openai-responses": "sequence_number", "google-interactions": "event_id"}
CASES = sorted(
    # JSON outside any frame can not be sent again by number.
    (path for provider in RESUMABLE for path in (FIXTURES / provider).glob("*.sse") if path.stat().st_size < 12_000 and not path.stem.endswith("_unprefixed")),
    key=lambda path: (path.parent.name, path.name),
)
MOST_CUTS = 60


def frames(body: bytes, key: str) -> list[tuple[Any, bytes]]:
    """The body's frames, each with its number or id."""
    framer = tw.SSEFramer()
    out = []
    for frame in framer.feed(body) + framer.finish(flush=True):
        try:
            payload = json.loads(frame.raw)
        except ValueError:
            payload = None
        mark = payload.get(key) if isinstance(payload, dict) else None
        out.append((mark, b"event: " + frame.event.encode() + b"\ndata: " + frame.raw + b"\n\n"))
    return out


def facts(result: tw.TurnResult) -> tuple[Any, ...]:
    decision = tw.TurnGate().decide(result)
    return (
        [(c.id, c.name, c.text, c.complete, c.closed, sorted(c.doubts)) for c in result.calls],
        result.texts,
        result.outcome,
        result.reason,
        decision.action,
        [(c.id, c.name, c.arguments) for c in decision.runnable],
    )


def ended(turn: tw.Turn) -> tw.TurnResult:
    try:
        return turn.finish()
    except tw.TurnTruncated as error:
        return error.result
    except tw.StreamError as error:
        return turn.abort(error)


def replayed(body: bytes, key: str, point: Any, back: int) -> bytes:
    """What the provider sends from a point on: everything behind the last event that was read, or from a little before it."""
    every = frames(body, key)
    (at,) = [i for i, (mark, _) in enumerate(every) if mark == point][-1:]
    return b"".join(data for _, data in every[max(0, at + 1 - back) :])


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_resumed_turn_is_the_whole_turn(path: Path, request: pytest.FixtureRequest) -> None:
    provider, body = path.parent.name, path.read_bytes()
    key = RESUMABLE[provider]
    whole = tw.Turn(provider)
    try:
        whole.feed(body)
    except tw.StreamError:
        pytest.fail("fixtures raise on the next call only")
    want = facts(ended(whole))
    step = 1 if request.config.getoption("--exhaustive") else max(1, len(body) // MOST_CUTS)
    resumed = 0
    for cut in range(1, len(body), step):
        for back in (0, 3):
            turn = tw.Turn(provider)
            turn.feed(body[:cut])
            if turn.ended or turn.resume_point is None:
                continue
            try:
                turn.resume()
            except tw.StreamError:
                continue  # wrong bytes came before the cut
            turn.feed(replayed(body, key, turn.resume_point, back))
            assert facts(ended(turn)) == want, (cut, back)
            resumed += 1
    numbered = any(mark is not None and mark != -1 for mark, _ in frames(body, key)[:-1])
    assert resumed or not numbered or len(frames(body, key)) < 3


RESPONSE = FIXTURES / "openai-responses" / "demo.sse"


def test_a_gap_where_the_bodies_meet_is_a_cut() -> None:
    body = RESPONSE.read_bytes()
    every = frames(body, "sequence_number")
    turn = tw.Turn("openai-responses")
    turn.feed(b"".join(data for _, data in every[:4]))
    turn.resume()
    turn.feed(b"".join(data for _, data in every[5:]))
    result = turn.finish()
    assert result.truncated and result.outcome is tw.Outcome.CUT
    assert tw.TurnGate().decide(result).action == "refuse"


def test_what_was_released_is_not_released_again_by_a_resumed_twin() -> None:
    body = RESPONSE.read_bytes()
    gate = tw.TurnGate()
    first = tw.Turn("openai-responses")
    first.feed(body)
    assert gate.decide(first.finish()).runnable
    second = tw.Turn("openai-responses")
    second.feed(body[: len(body) // 2])
    second.resume()
    second.feed(replayed(body, "sequence_number", second.resume_point, 5))
    decision = gate.decide(second.finish())
    assert not decision.runnable
    assert {reason for refusal in decision.refused for reason in refusal.reasons} == {"already_released"}


def test_a_resumed_turn_can_be_pickled_between_the_bodies() -> None:
    body = RESPONSE.read_bytes()
    turn = tw.Turn("openai-responses")
    turn.feed(body[: len(body) // 2])
    turn.resume()
    twin = pickle.loads(pickle.dumps(turn))
    rest = replayed(body, "sequence_number", turn.resume_point, 0)
    turn.feed(rest)
    twin.feed(rest)
    assert facts(twin.finish()) == facts(turn.finish())


def test_what_can_not_be_resumed_says_why() -> None:
    chat = tw.Turn("openai-chat")
    chat.feed(b"data: {")
    with pytest.raises(tw.UsageError, match="openai-chat body can not be resumed"):
        chat.resume()
    fresh = tw.Turn("openai-responses")
    with pytest.raises(tw.UsageError, match="nothing with a number"):
        fresh.resume()
    over = tw.Turn("openai-responses")
    over.feed(RESPONSE.read_bytes())
    with pytest.raises(tw.UsageError, match="has ended the turn"):
        over.resume()
    over.finish()
    with pytest.raises(tw.UsageError, match="finished or aborted"):
        over.resume()
    wrong = tw.Turn("openai-responses")
    wrong.feed(b'data: {"type":"response.created","sequence_number":0,"response":{"id":"r"}}\n\ndata: {]\n\n')
    with pytest.raises(tw.MalformedJSON):
        wrong.resume()


# -- the same turn in another response ----------------------------------------------------------------------------------


def block(index: int, id: str, name: str, arguments: str) -> bytes:
    start = {"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}
    delta = {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": arguments}}
    return events(start, delta, {"type": "content_block_stop", "index": index})


def events(*payloads: dict[str, Any]) -> bytes:
    return b"".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n".encode() for p in payloads)


def message(id: str, inside: bytes, reason: str) -> bytes:
    start = events({"type": "message_start", "message": {"id": id, "role": "assistant", "content": [], "usage": {"input_tokens": 1}}})
    return start + inside + events({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}, {"type": "message_stop"})


def text(index: int, said: str) -> bytes:
    return events(
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": said}},
        {"type": "content_block_stop", "index": index},
    )


def test_a_paused_turn_goes_on_and_releases_all_its_calls_at_its_end() -> None:
    gate = tw.TurnGate()
    turn = tw.Turn("anthropic")
    turn.feed(message("m1", text(0, "one ") + block(1, "a", "find", '{"n":1}'), "pause_turn"))
    paused = turn.finish()
    assert paused.outcome is tw.Outcome.PAUSED
    assert gate.decide(paused).action == "refuse"
    turn.hop()
    assert not turn.ended
    twin = pickle.loads(pickle.dumps(turn))
    more = message("m2", text(0, "two") + block(1, "b", "find", '{"n":2}'), "tool_use")
    turn.feed(more)
    result = turn.finish()
    assert (result.outcome, result.text, result.response_id) == (tw.Outcome.TOOL_CALLS, "one two", "m2")
    assert [(c.key, c.id) for c in result.calls] == [("0.0", "a"), ("0.1", "b")]
    decision = gate.decide(result)
    assert [(c.id, c.arguments) for c in decision.runnable] == [("a", {"n": 1}), ("b", {"n": 2})]
    for data in (more[i : i + 1] for i in range(len(more))):
        twin.feed(data)
    assert facts(twin.finish()) == facts(result)


def test_no_beginning_of_the_next_response_releases_a_call() -> None:
    more = message("m2", block(0, "b", "find", "{}"), "tool_use")
    for cut in range(len(more) - 2):  # then the last payload is whole
        turn = tw.Turn("anthropic")
        turn.feed(message("m1", block(0, "a", "find", "{}"), "pause_turn"))
        turn.finish()
        turn.hop()
        turn.feed(more[:cut])
        assert tw.TurnGate().decide(turn.finish()).action == "refuse", cut


def test_a_response_that_was_steered_away_is_followed_by_its_successor() -> None:
    def response(number: int, id: str, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "sequence_number": number, "response": {"id": id, "status": kind.split(".")[1], **more}}

    turn = tw.Turn("openai-responses", framing="message")
    for payload in (response(0, "r1", "response.created"), response(1, "r1", "response.incomplete", incomplete_details={"reason": "steered"})):
        turn.feed(json.dumps(payload).encode())
    assert turn.finish().outcome is tw.Outcome.CONTINUE
    turn.hop()
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "find", "arguments": "{}", "status": "completed"}
    for payload in (
        response(0, "r2", "response.created"),
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {**call, "arguments": "", "status": "in_progress"}},
        {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": call},
        response(3, "r2", "response.completed"),
    ):
        turn.feed(json.dumps(payload).encode())
    result = turn.finish()
    assert (result.outcome, result.response_id) == (tw.Outcome.STOP, "r2")
    assert [c.id for c in tw.TurnGate().decide(result).runnable] == ["c"]


def test_only_a_turn_that_goes_on_hops() -> None:
    turn = tw.Turn("anthropic")
    with pytest.raises(tw.UsageError, match="an open one"):
        turn.hop()
    turn.feed(message("m", text(0, "x"), "end_turn"))
    turn.finish()
    with pytest.raises(tw.UsageError, match="STOP"):
        turn.hop()
