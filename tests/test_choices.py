"""Several choices or candidates in one turn: each may be asked about on its own."""

from __future__ import annotations

import pytest

import toolwire as tw
from toolwire import Outcome
from turn_helpers import calls, chunk, entry, sse

PARTS = [
    calls(entry(0, "a", "find", '{"n":'), index=0),
    chunk({"content": "second"}, index=1),
    calls(entry(0, "b", "find", '{"n":2}'), index=2),
    calls(entry(0, arguments="1}"), index=0),
    calls(entry(0, "c", "find", "{"), index=3),
]
ENDS = [chunk(finish="tool_calls", index=0), chunk(finish="stop", index=1), chunk(finish="content_filter", index=2), chunk(finish="length", index=3)]


def result(*payloads: object) -> tw.TurnResult:
    turn = tw.Turn("openai-chat")
    turn.feed(sse(*payloads))
    return turn.finish()


def decided(result: tw.TurnResult) -> tuple[str, str, list[str]]:
    decision = tw.TurnGate().decide(result)
    return decision.action, decision.reason, [c.id for c in decision.runnable]


def test_the_whole_is_as_restricted_as_its_worst_choice() -> None:
    whole = result(*PARTS, *ENDS, "[DONE]")
    assert whole.outcome is Outcome.FILTERED
    assert decided(whole)[0] == "refuse"
    assert whole.choices == {
        0: (Outcome.TOOL_CALLS, "tool_calls"),
        1: (Outcome.STOP, "stop"),
        2: (Outcome.FILTERED, "content_filter"),
        3: (Outcome.LENGTH, "length"),
    }


def test_each_choice_has_its_own_calls_text_outcome_and_decision() -> None:
    whole = result(*PARTS, *ENDS, "[DONE]")
    assert decided(whole.choice(0)) == ("run", "ended", ["a"])
    assert decided(whole.choice(1)) == ("nothing_to_run", "ended", [])
    assert decided(whole.choice(2)) == ("refuse", "turn_filtered", [])
    assert decided(whole.choice(3)) == ("refuse", "turn_truncated", [])
    assert [whole.choice(i).text for i in range(4)] == ["", "second", "", ""]
    assert [[c.id for c in whole.choice(i).calls] for i in range(4)] == [["a"], [], ["b"], ["c"]]
    assert whole.choice(0).calls[0] is whole.calls[0]


def test_a_choice_that_never_came_is_unknown() -> None:
    none = result(*PARTS[:1], PARTS[3], ENDS[0], "[DONE]").choice(7)
    assert (none.outcome, none.calls, none.text) == (Outcome.UNKNOWN, (), "")
    assert decided(none)[0] == "refuse"


def test_a_refusal_beside_a_plain_stop_is_its_own_choices_affair() -> None:
    whole = result(
        chunk({"refusal": "no"}, index=0),
        chunk(finish="stop", index=0),
        calls(entry(0, "b", "find", "{}"), index=1),
        chunk(finish="tool_calls", index=1),
        "[DONE]",
    )
    assert whole.choices == {0: (Outcome.REFUSED, "stop"), 1: (Outcome.TOOL_CALLS, "tool_calls")}
    assert decided(whole.choice(1)) == ("run", "ended", ["b"])


@pytest.mark.parametrize("cut", range(1, 9))
def test_no_choice_runs_before_the_turn_has_ended(cut: int) -> None:
    """One choice that has its finish reason is not the end: others share its body."""
    body = [*PARTS, *ENDS][:cut]
    cut_short = result(*body)
    assert cut_short.truncated and not cut_short.choices
    for index in range(4):
        assert decided(cut_short.choice(index))[0] == "refuse"


def test_a_choice_is_not_released_twice() -> None:
    whole = result(*PARTS, *ENDS, "[DONE]")
    gate = tw.TurnGate()
    assert [c.id for c in gate.decide(whole.choice(0)).runnable] == ["a"]
    assert [r.reasons for r in gate.decide(whole.choice(0)).refused] == [("already_released",)]


def test_candidates() -> None:
    turn = tw.Turn("google-generate")
    part = {"functionCall": {"name": "find", "args": {"n": 1}}}
    turn.feed(
        sse(
            {"candidates": [{"index": 0, "content": {"parts": [part]}}, {"index": 1, "content": {"parts": [part]}}]},
            {"candidates": [{"index": 0, "finishReason": "STOP"}, {"index": 1, "finishReason": "MAX_TOKENS"}]},
        )
    )
    whole = turn.finish()
    assert (whole.outcome, decided(whole)[0]) == (Outcome.LENGTH, "refuse")
    assert decided(whole.choice(0))[0] == "run"
    assert decided(whole.choice(1))[:2] == ("refuse", "turn_truncated")
