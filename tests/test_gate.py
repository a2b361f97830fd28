"""The gate: which turns may run anything, which calls may run, and what is said about the others."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from typing import Any

import pytest

from toolwire.adapters._base import TurnRecord
from toolwire.errors import GateRefused, MalformedFrame, ProviderError, TurnTruncated, UsageError
from toolwire.events import Outcome, ToolCall, TurnResult
from toolwire.gate import CALL_REASONS, REASONS, STREAM_REASONS, TURN_REASONS, GateDecision, GatePolicy, RunnableCall, TurnGate
from toolwire.limits import Limits
from toolwire.marks import Mark


class Draft:
    """One call to be: what ``turn`` makes a ``ToolCall`` of."""

    def __init__(self, text: str = "{}", **how: Any) -> None:
        self.text = text
        self.how = how


def turn(*drafts: Draft, settled: bool = True, **fields: Any) -> TurnResult:
    """A turn that ended well with tool calls, unless ``fields`` say otherwise. ``settled``: the calls' parsers were finished,
    as they are at a good end."""
    record = TurnRecord(fields.pop("limits", Limits()), "default")
    for n, draft in enumerate(drafts):
        how = dict(draft.how)
        doubts, marks = how.pop("doubts", {}), how.pop("marks", ())
        synthetic, closed = how.pop("synthetic", False), how.pop("closed", True)
        call = record.start(id=how.pop("id", f"c{n}"), name=how.pop("name", "hoist"), **how)
        record.arguments(call, draft.text)
        call.id_is_synthetic = synthetic
        for reason, detail in doubts.items():
            record.doubt(call, reason, detail)
        for mark in marks:
            record.mark_call(call, mark)
        if closed:
            record.end(call)
        if settled:
            call._buffer.finish() if call.kind == "json" and call.text and call.error is None and call.complete else None
            call._empty_is_object = call.kind == "json"
    known: dict[str, Any] = {
        "provider": "anthropic",
        "calls": tuple(record.calls),
        "texts": {},
        "outcome": Outcome.TOOL_CALLS,
        "reason": "tool_use",
        "ended": True,
        "truncated": False,
        "cause": None,
        "error": None,
        "usage": None,
        "marks": (),
        "resume_point": None,
        "response_id": "msg_1",
        "runs_on_stop": False,
        "has_end_marker": True,
    }
    return TurnResult(**{**known, **fields})


def cut(*drafts: Draft, **fields: Any) -> TurnResult:
    return turn(*drafts, **{"settled": False, "outcome": Outcome.CUT, "reason": None, "ended": False, "truncated": True, **fields})


def decide(result: Any, tools: Any = None, **policy: Any) -> GateDecision:
    return TurnGate(tools, policy=GatePolicy(**policy)).decide(result)


def ran(decision: GateDecision) -> list[tuple[str, str, Any]]:
    return [(c.id, c.name, c.arguments) for c in decision.runnable]


def why(decision: GateDecision) -> list[tuple[str, ...]]:
    return [r.reasons for r in decision.refused]


# -- a good turn ----------------------------------------------------------------------------------------------------------


def test_good_turn_runs_its_calls_in_order():
    d = decide(turn(Draft('{"mast":"fore"}'), Draft('{"n":1}', name="lower")))
    assert d.action == "run"
    assert d.reason == "ended"
    assert d.reasons == ("ended",)
    assert ran(d) == [("c0", "hoist", {"mast": "fore"}), ("c1", "lower", {"n": 1})]
    assert d.refused == ()
    assert d.detail == ""
    assert d.runnable[0].kind == "json"
    assert d.raise_if_refused() is d


def test_preview_says_what_decide_would_say_and_releases_nothing():
    gate = TurnGate({"hoist": None})
    result = turn(Draft('{"mast":"fore"}'), Draft('{"n":1}', name="lower"))
    for _ in range(2):
        d = gate.preview(result)
        assert (d.action, d.reasons, d.runnable) == ("run", ("ended", "unknown_tool"), ())
        assert [r.call.name for r in d.refused] == ["lower"]
    assert ran(gate.decide(result)) == [("c0", "hoist", {"mast": "fore"})]
    assert gate.preview(result).reasons == ("unknown_tool", "already_released")


def test_turn_that_ended_well_without_calls_has_nothing_to_run():
    for outcome in (Outcome.STOP, Outcome.TOOL_CALLS):
        d = decide(turn(outcome=outcome))
        assert (d.action, d.reason, d.reasons, d.runnable, d.refused) == ("nothing_to_run", "ended", ("ended",), (), ())


def test_calls_that_the_provider_runs_are_neither_runnable_nor_refused():
    d = decide(turn(Draft("{}", runs_on="provider", name="web_search")))
    assert (d.action, d.reasons, d.refused) == ("nothing_to_run", ("ended",), ())
    d = decide(turn(Draft("{}", runs_on="provider"), Draft('{"a":1}')))
    assert ran(d) == [("c1", "hoist", {"a": 1})]


def test_request_for_approval_is_no_call_to_run():
    d = decide(turn(Draft("{}", marks=["needs_approval"])))
    assert (d.action, d.refused) == ("nothing_to_run", ())


def test_arguments_are_parsed_anew_whatever_was_done_to_the_live_value():
    result = turn(Draft('{"paths":["a"]}'))
    live = result.calls[0].value
    live["paths"].append("/etc/passwd")
    d = decide(result)
    assert d.runnable[0].arguments == {"paths": ["a"]}
    assert d.runnable[0].arguments is not live


def test_unfinished_parser_of_a_good_turn_makes_no_difference():
    assert ran(decide(turn(Draft('{"a":1} '), Draft(""), settled=False))) == [("c0", "hoist", {"a": 1}), ("c1", "hoist", {})]


def test_text_call_runs_with_its_text_and_without_json_or_schema_checks():
    def never(arguments: Any) -> Any:
        raise AssertionError("a validator was asked about free text")

    for text in ('{"not json', "*** Begin Patch", ""):
        d = decide(turn(Draft(text, kind="text", name="patch")), {"patch": never})
        assert ran(d) == [("c0", "patch", text)]
        assert d.runnable[0].kind == "text"


def test_text_call_still_needs_a_known_tool():
    assert why(decide(turn(Draft("x", kind="text", name="patch")), {"hoist": None})) == [("unknown_tool",)]


# -- the turn -------------------------------------------------------------------------------------------------------------

BAD_OUTCOMES = {
    Outcome.CUT: "turn_not_ended",
    Outcome.ERROR: "turn_error",
    Outcome.FILTERED: "turn_filtered",
    Outcome.REFUSED: "turn_refused",
    Outcome.LENGTH: "turn_truncated",
    Outcome.CANCELLED: "aborted",
    Outcome.PAUSED: "turn_paused",
    Outcome.CONTINUE: "turn_continues",
    Outcome.UNKNOWN: "turn_unknown",
}


def test_every_outcome_is_good_or_has_its_reason():
    assert {*BAD_OUTCOMES, Outcome.STOP, Outcome.TOOL_CALLS} == set(Outcome)


@pytest.mark.parametrize(("outcome", "reason"), BAD_OUTCOMES.items(), ids=str)
def test_bad_outcome_refuses_complete_calls(outcome, reason):
    d = decide(turn(Draft('{"a":1}'), outcome=outcome, reason="its_word"))
    assert (d.action, d.reason, d.reasons, d.runnable) == ("refuse", reason, (reason,), ())
    assert why(d) == [(reason,)]
    assert "its_word" in d.detail
    assert "its_word" in d.refused[0].detail


@pytest.mark.parametrize(("outcome", "reason"), BAD_OUTCOMES.items(), ids=str)
def test_bad_outcome_without_calls_is_refused_too(outcome, reason):
    d = decide(turn(outcome=outcome))
    assert (d.action, d.reasons, d.refused) == ("refuse", (reason,), ())


def test_turn_that_did_not_end_is_refused_whatever_its_outcome():
    for outcome in Outcome:
        d = decide(turn(Draft('{"a":1}'), outcome=outcome, ended=False, truncated=True))
        assert d.action == "refuse"
        assert d.reason == "turn_not_ended"


def test_cut_lists_the_incomplete_call_second():
    d = decide(cut(Draft('{"scope":"drafts","really":false,"tri')))
    assert d.reasons == ("turn_not_ended", "args_incomplete")
    assert why(d) == [("turn_not_ended", "args_incomplete")]


def test_cut_call_without_any_text_is_incomplete_not_empty():
    assert decide(cut(Draft(""))).reasons == ("turn_not_ended", "args_incomplete")


def test_length_cut_inside_a_call_lists_the_incomplete_call_second():
    assert decide(turn(Draft('{"port":"Br'), outcome=Outcome.LENGTH, settled=False)).reasons == ("turn_truncated", "args_incomplete")


def test_text_call_that_was_not_closed_in_a_cut_is_incomplete():
    assert decide(cut(Draft("*** Beg", kind="text", closed=False))).reasons == ("turn_not_ended", "args_incomplete")


def test_malformed_text_in_a_cut_turn_is_malformed_not_incomplete():
    assert decide(cut(Draft('{"a":1}{"b"'))).reasons == ("turn_not_ended", "args_invalid_json")


@pytest.mark.parametrize("cause", ["aborted", "idle_timeout"])
def test_end_from_outside_adds_its_cause(cause):
    d = decide(cut(Draft('{"a":1}'), cause=cause))
    assert d.reasons == ("turn_not_ended", cause)
    assert why(d) == [("turn_not_ended", cause)]
    assert decide(cut(cause=cause)).reasons == ("turn_not_ended", cause)


def test_abort_after_a_good_end_changes_nothing():
    assert decide(turn(Draft("{}"), cause="aborted")).action == "run"


def test_several_turn_reasons_stand_in_table_order():
    d = decide(cut(Draft("{}"), cause="idle_timeout", outcome=Outcome.FILTERED))
    assert d.reasons == ("turn_not_ended", "turn_filtered", "idle_timeout")


def test_stop_runs_only_where_the_protocol_lets_it():
    result = turn(Draft("{}"), outcome=Outcome.STOP, reason="end_turn")
    d = decide(result)
    assert (d.action, d.reasons) == ("refuse", ("turn_not_for_tools",))
    assert "end_turn" in d.refused[0].detail
    assert decide(turn(Draft("{}"), outcome=Outcome.STOP, runs_on_stop=True)).action == "run"


def test_stop_beside_a_provider_call_only_is_nothing_to_run():
    assert decide(turn(Draft("{}", runs_on="provider"), outcome=Outcome.STOP)).action == "nothing_to_run"


@pytest.mark.parametrize("text", ['{"a":', '{"a":1}}'])
def test_plain_stop_in_a_chat_turn_needs_every_call_complete(text):
    drafts = Draft("{}"), Draft(text)
    d = decide(turn(*drafts, provider="openai-chat", outcome=Outcome.STOP, reason="stop", runs_on_stop=True))
    assert (d.action, d.reason) == ("refuse", "turn_not_for_tools")
    assert "call 0.1" in d.detail
    whole = Draft("{}"), Draft(""), Draft("free text", kind="text", closed=False)
    assert decide(turn(*whole, provider="openai-chat", outcome=Outcome.STOP, runs_on_stop=True)).action == "run"


def test_provider_error_refuses_and_is_quoted():
    error = ProviderError("Overloaded", type="overloaded_error", code=None, raw={})
    d = decide(turn(Draft("{}"), outcome=Outcome.ERROR, error=error))
    assert d.reasons == ("turn_error",)
    assert "Overloaded" in d.detail


@pytest.mark.parametrize("error", [ProviderError("late", type=None, code=None, raw={}), MalformedFrame("bad", code="frame.protocol")])
def test_no_good_end_heals_an_error_in_the_stream(error):
    assert decide(turn(Draft("{}"), error=error)).reasons == ("turn_error",)


def test_transport_error_after_a_good_end_changes_nothing():
    assert decide(turn(Draft("{}"), error=ConnectionResetError())).action == "run"


@pytest.mark.parametrize("provider", ["openai-chat", "mistral"])
def test_end_marker_can_be_required_of_chat_turns(provider):
    for drafts in ((), (Draft("{}"),)):
        result = turn(*drafts, provider=provider, has_end_marker=False)
        assert decide(result).action in ("run", "nothing_to_run")
        d = decide(result, require_end_marker=True)
        assert (d.action, d.reasons) == ("refuse", ("turn_not_ended",))
        assert "[DONE]" in d.detail
    assert decide(turn(Draft("{}"), provider=provider), require_end_marker=True).action == "run"


def test_end_marker_is_not_asked_of_other_protocols():
    assert decide(turn(Draft("{}"), provider="google-generate", has_end_marker=False), require_end_marker=True).action == "run"


# -- the calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ('{"a":1', "args_incomplete", "json.truncated"),
        ('{"a":"b', "args_incomplete", "json.truncated"),
        ("  ", "args_incomplete", "json.truncated"),
        ('{"a":1}{"a":2}', "args_invalid_json", "json.trailing_data at byte 7"),
        ('{}{"q":"moon"}', "args_invalid_json", "json.trailing_data at byte 2"),
        ('{"ns":"Lib\\Quay"}', "args_invalid_json", "json.bad_escape"),
        ('{"a":NaN}', "args_invalid_json", "json.unexpected_byte at byte 5"),
        ("[1]", "args_not_object", "an array"),
        ('"{}"', "args_not_object", "a string"),
        ("null", "args_not_object", "null"),
        ("true", "args_not_object", "true or false"),
        ("31", "args_not_object", "a number"),
        ('{"a":"\\ud800"}', "args_invalid_unicode", "lone_surrogate"),
        ('{"a":"\ud800"}', "args_invalid_unicode", "lone_surrogate"),
        ('{"a":1,"a":2}', "args_duplicate_key", "duplicate_key"),
        ('{"n":' + "7" * 5000 + "}", "args_number_too_long", "json.number_too_long"),
        ("[" * 600 + "]" * 600, "args_invalid_json", "512"),
    ],
)
@pytest.mark.parametrize("settled", [True, False])
def test_argument_text_that_may_not_run(text, reason, said, settled):
    d = decide(turn(Draft(text), settled=settled))
    assert (d.action, d.reason, d.runnable) == ("refuse", reason, ())
    assert d.reasons == (reason,)
    assert said in d.refused[0].detail


def test_empty_text_is_an_empty_object_in_a_turn_that_ended_well():
    assert ran(decide(turn(Draft("")))) == [("c0", "hoist", {})]


def test_empty_text_is_validated_like_any_other():
    seen: list[Any] = []

    def check(arguments: dict[str, Any]) -> Any:
        seen.append(arguments)
        raise ValueError("no mast")

    d = decide(turn(Draft("")), {"hoist": check})
    assert why(d) == [("args_schema",)]
    assert seen == [{}]


def test_narrower_limit_of_the_turn_holds():
    d = decide(turn(Draft('{"a":[[[1]]]}'), limits=Limits(max_depth=3)))
    assert d.reasons == ("args_invalid_json",)
    assert "max_depth=3" in d.refused[0].detail


def test_narrower_limit_of_the_gate_holds():
    assert decide(turn(Draft('{"a":[[[1]]]}')), max_depth=3).reasons == ("args_invalid_json",)
    assert decide(turn(Draft('{"a":[[[1]]]}')), max_depth=4).action == "run"


@pytest.mark.parametrize(
    ("mark", "reason"), [("lone_surrogate", "args_invalid_unicode"), ("invalid_utf8", "args_invalid_unicode"), ("duplicate_key", "args_duplicate_key")]
)
def test_marks_that_refuse_their_call(mark, reason):
    result = turn(Draft('{"a":"\ufffd"}', marks=[mark]), Draft("{}"))
    d = decide(result)
    assert (d.action, why(d)) == ("run", [(reason,)])
    assert d.reasons == ("ended", reason)


def test_marked_free_text_is_refused_because_it_is_not_what_was_meant():
    assert why(decide(turn(Draft("a\ufffdb", kind="text", marks=["lone_surrogate"])))) == [("args_invalid_unicode",)]


def test_replacement_character_is_suspect_only_where_the_body_was_ill_formed():
    assert decide(turn(Draft('{"a":"\ufffd"}'))).action == "run"
    d = decide(turn(Draft('{"a":"\ufffd"}'), Draft("{}"), marks=(Mark("invalid_utf8"),)))
    assert (len(d.runnable), why(d)) == (1, [("args_invalid_unicode",)])


@pytest.mark.parametrize("name", [None, "", " "])
def test_call_with_an_id_and_no_name(name):
    assert why(decide(turn(Draft('{"k":1}', name=name)))) == [("no_name",)]


def test_text_with_neither_id_nor_name_is_an_orphan():
    assert why(decide(turn(Draft('{"k":1}', name=None, id=None)))) == [("orphan_arguments",)]
    assert why(decide(turn(Draft('{"k":1}', name=None, id="call_0", synthetic=True)))) == [("orphan_arguments",)]


def test_no_name_is_not_said_twice():
    assert why(decide(turn(Draft("{}", name=None, doubts={"orphan_arguments": "x"})))) == [("orphan_arguments",)]
    assert why(decide(turn(Draft("{}", name=None, id=None, doubts={"no_name": "x"})))) == [("no_name",)]


def test_missing_id_alone_is_no_reason_to_refuse():
    assert ran(decide(turn(Draft('{"a":1}', id="call_0", synthetic=True)))) == [("call_0", "hoist", {"a": 1})]
    assert ran(decide(turn(Draft('{"a":1}', id=None)))) == [("0.0", "hoist", {"a": 1})]


def test_unknown_tool_is_refused_alone_and_no_tools_at_all_means_none():
    d = decide(turn(Draft("{}", name="parallel"), Draft("{}")), {"hoist": None})
    assert (ran(d), why(d)) == ([("c1", "hoist", {})], [("unknown_tool",)])
    assert "parallel" in d.refused[0].detail
    assert decide(turn(Draft("{}")), {}).reasons == ("unknown_tool",)


def test_names_are_compared_exactly():
    assert decide(turn(Draft("{}", name=" hoist")), {"hoist": None}).reasons == ("unknown_tool",)


@pytest.mark.parametrize("reason", sorted(STREAM_REASONS))
def test_doubt_about_the_stream_refuses_the_whole_turn(reason):
    d = decide(turn(Draft("{}"), Draft("{}", doubts={reason: "because"})))
    assert (d.action, d.reason, d.reasons) == ("refuse", reason, (reason,))
    assert why(d) == [(reason,), (reason,)]
    assert d.refused[0].detail == "with call 0.1"
    assert d.refused[1].detail == "because"


@pytest.mark.parametrize("reason", sorted(set(CALL_REASONS) - STREAM_REASONS))
def test_other_doubts_refuse_their_call_alone(reason):
    result = turn(Draft('{"n":1}'), Draft("{}", doubts={reason: "because"}))
    d = decide(result)
    assert (d.action, d.reason, d.reasons) == ("run", "ended", ("ended", reason))
    assert (ran(d), why(d)) == ([("c0", "hoist", {"n": 1})], [(reason,)])
    assert d.refused[0].detail == "because"
    strict = decide(result, all_or_nothing=True)
    assert (strict.action, strict.reason, strict.runnable) == ("refuse", reason, ())
    assert why(strict) == [(reason,), (reason,)]
    assert strict.refused[0].detail == "with call 0.1"


def test_doubt_that_the_table_does_not_know_refuses_too():
    d = decide(turn(Draft("{}", doubts={"something_new": "odd"})))
    assert (d.action, d.reasons) == ("refuse", ("args_conflict",))
    assert "something_new" in d.refused[0].detail


def test_truncated_text_of_one_call_refuses_the_others():
    d = decide(turn(Draft("{}"), Draft('{"a":')))
    assert why(d) == [("args_incomplete",), ("args_incomplete",)]


def test_malformed_text_of_one_call_leaves_the_others():
    assert ran(decide(turn(Draft('{"n":1}'), Draft('{"a":1,}')))) == [("c0", "hoist", {"n": 1})]


def test_superseded_call_was_cut_on_purpose_and_does_not_spread():
    for doubts in ({"superseded": "fallback"}, {"superseded": "fallback", "args_incomplete": "cut"}):
        d = decide(turn(Draft('{"a":', doubts=doubts), Draft('{"n":1}')))
        assert ran(d) == [("c1", "hoist", {"n": 1})]
        assert set(why(d)[0]) == set(doubts)


def test_doubt_about_a_provider_call_spreads_to_client_calls():
    doubted = Draft("{}", runs_on="provider", doubts={"args_ambiguous": "x"})
    d = decide(turn(doubted, Draft("{}")))
    assert (d.action, why(d)) == ("refuse", [("args_ambiguous",)])
    assert "0.0" in d.refused[0].detail
    assert decide(turn(doubted)).action == "nothing_to_run"


def test_all_reasons_of_a_call_stand_in_table_order():
    drafts = Draft("[1", id="c1", name="other", doubts={"args_conflict": "two sources", "args_ambiguous": "two calls"})
    d = decide(turn(drafts), {"hoist": None})
    assert why(d) == [("args_incomplete", "args_ambiguous", "args_conflict", "unknown_tool")]
    assert d.refused[0].reason == "args_incomplete"
    assert "args_conflict: two sources" in d.refused[0].detail
    assert d.refused[0].details["args_ambiguous"] == "two calls"


def test_reason_table():
    assert list(TURN_REASONS) == [
        "turn_not_ended", "turn_truncated", "turn_filtered", "turn_refused", "turn_paused", "turn_continues", "turn_error", "turn_unknown",
        "turn_not_for_tools", "aborted", "idle_timeout",
    ]  # fmt: skip
    assert list(CALL_REASONS) == [
        "args_incomplete", "args_invalid_json", "args_not_object", "args_invalid_unicode", "args_duplicate_key", "args_number_too_long",
        "args_schema", "args_ambiguous", "args_conflict", "orphan_arguments", "no_name", "superseded", "unknown_tool", "already_released",
    ]  # fmt: skip
    assert list(REASONS) == [*TURN_REASONS, *CALL_REASONS]
    assert set(CALL_REASONS) >= STREAM_REASONS
    assert all(REASONS.values())


# -- validators -----------------------------------------------------------------------------------------------------------


def test_validated_arguments_come_out():
    d = decide(turn(Draft('{"n":1}')), {"hoist": lambda arguments: ("checked", arguments["n"])})
    assert ran(d) == [("c0", "hoist", ("checked", 1))]


def test_schema_refuses_its_call_alone_with_the_place_and_the_rule():
    pytest.importorskip("jsonschema_rs")
    d = decide(turn(Draft("{}"), Draft('{"mast":"fore"}')), {"hoist": {"required": ["mast"]}})
    assert (d.action, why(d)) == ("run", [("args_schema",)])
    assert d.refused[0].detail.startswith("/mast: required")
    assert ran(d) == [("c1", "hoist", {"mast": "fore"})]


def test_each_call_is_validated_once_and_with_the_finished_object():
    seen: list[Any] = []
    gate = TurnGate({"hoist": lambda arguments: seen.append(arguments)})
    gate.decide(turn(Draft('{"status":"completed"}'), Draft('{"status":"pending"}')))
    assert seen == [{"status": "completed"}, {"status": "pending"}]


@pytest.mark.parametrize(
    "result",
    [
        cut(Draft('{"a":1}')),
        turn(Draft("{}"), outcome=Outcome.LENGTH),
        turn(Draft("{}"), outcome=Outcome.STOP),
        turn(Draft("{}"), Draft("{}", doubts={"args_conflict": ""})),
        turn(Draft("{}"), Draft('{"a":')),
        turn(Draft("[]")),
        turn(Draft("{}", doubts={"superseded": ""})),
    ],
)
def test_nothing_is_validated_that_can_not_run(result):
    def never(arguments: Any) -> Any:
        raise AssertionError("validated too early")

    assert decide(result, {"hoist": never}).action == "refuse"


def test_validator_may_ask_the_gate_again():
    other = turn(Draft("{}"), response_id="msg_2")
    inner: list[GateDecision] = []

    def check(arguments: dict[str, Any]) -> None:
        if arguments:
            inner.append(gate.decide(other))

    gate = TurnGate({"hoist": check})
    assert gate.decide(turn(Draft('{"a":1}'))).action == "run"
    assert inner[0].action == "run"


def test_exception_that_is_none_leaves_the_gate_as_it_was():
    def stop(arguments: Any) -> Any:
        if stops.pop():
            raise KeyboardInterrupt

    stops = [False, True]
    gate = TurnGate({"hoist": stop})
    with pytest.raises(KeyboardInterrupt):
        gate.decide(turn(Draft("{}")))
    assert gate.decide(turn(Draft("{}"))).action == "run"


# -- released before ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("response_id", ["msg_1", None])
@pytest.mark.parametrize(("call_id", "synthetic"), [("c1", False), ("call_0", True), (None, False)])
def test_the_same_result_is_released_once(response_id, call_id, synthetic):
    gate = TurnGate()
    result = turn(Draft("{}", id=call_id, synthetic=synthetic), response_id=response_id)
    assert gate.decide(result).action == "run"
    again = gate.decide(result)
    assert (again.action, again.reason, again.runnable) == ("refuse", "already_released", ())


def test_the_same_bytes_again_are_released_once():
    for fields in ({"response_id": "msg_1"}, {"response_id": None}):
        gate = TurnGate()
        assert gate.decide(turn(Draft('{"a":1}'), **fields)).action == "run"
        assert gate.decide(turn(Draft('{"a":1}'), **fields)).reasons == ("already_released",)


def test_resumed_body_that_starts_later_is_known_by_its_ids():
    gate = TurnGate()
    assert gate.decide(turn(Draft("{}", id="a"), Draft("{}", id="b"))).action == "run"
    d = gate.decide(turn(Draft('{"other":"text"}', id="b"), Draft("{}", id="c")))
    assert (why(d), [c.id for c in d.runnable]) == ([("already_released",)], ["c"])


def test_same_call_id_in_another_response_is_another_call():
    gate = TurnGate()
    assert gate.decide(turn(Draft("{}"), response_id="msg_1")).action == "run"
    assert gate.decide(turn(Draft("{}"), response_id="msg_2")).action == "run"


def test_without_a_response_id_name_and_text_belong_to_the_key():
    gate = TurnGate()
    for draft in (Draft("{}"), Draft('{"a":1}'), Draft("{}", name="lower"), Draft("{}", id="c9")):
        assert gate.decide(turn(draft, response_id=None)).action == "run"
    assert gate.decide(turn(Draft('{"a":1}'), response_id=None)).reasons == ("already_released",)


def test_synthetic_ids_do_not_count():
    gate = TurnGate()
    for _ in range(3):  # every turn's first call has the same synthetic id
        assert gate.decide(turn(Draft("{}", id="call_0", synthetic=True), response_id=None)).action == "run"
    for response_id in ("r1", "r2"):
        assert gate.decide(turn(Draft("{}", id="call_0", synthetic=True), response_id=response_id)).action == "run"
    assert gate.decide(turn(Draft("{}", id="call_0", synthetic=True), response_id="r1")).reasons == ("already_released",)


@pytest.mark.parametrize("response_id", ["msg_1", None])
def test_choices_may_share_an_id(response_id):
    gate = TurnGate()
    result = turn(Draft("{}", id="x", choice=0), Draft("{}", id="x", choice=1), response_id=response_id)
    assert len(gate.decide(result).runnable) == 2
    assert gate.decide(result).reasons == ("already_released",)


def test_two_calls_of_one_choice_with_one_id_run_once():
    d = decide(turn(Draft("{}", id="x"), Draft("{}", id="x")))
    assert (len(d.runnable), why(d)) == (1, [("already_released",)])


def test_refused_call_may_run_later():
    gate = TurnGate()
    assert gate.decide(cut(Draft("{}"))).action == "refuse"
    assert gate.decide(turn(Draft('{"a":1,}'), Draft("{}", id="good"))).action == "run"
    assert ran(gate.decide(turn(Draft('{"a":1}')))) == [("c0", "hoist", {"a": 1})]


def test_all_or_nothing_releases_nothing_when_it_refuses():
    gate = TurnGate({"hoist": None}, policy=GatePolicy(all_or_nothing=True))
    assert gate.decide(turn(Draft("{}"), Draft("{}", name="none"))).action == "refuse"
    assert gate.decide(turn(Draft("{}"))).action == "run"


def test_released_call_is_told_in_a_cut_turn_too():
    gate = TurnGate()
    gate.decide(turn(Draft("{}")))
    assert gate.decide(cut(Draft("{}"))).reasons == ("turn_not_ended", "already_released")


def test_gates_do_not_share_what_they_released():
    result = turn(Draft("{}"))
    assert decide(result).action == "run"
    assert decide(result).action == "run"


def test_memory_is_bounded_and_forgets_the_oldest():
    gate = TurnGate(policy=GatePolicy(max_released=3))
    results = [turn(Draft("{}"), response_id=f"r{i}") for i in range(4)]
    for result in results:
        assert gate.decide(result).action == "run"
    assert [gate.decide(r).action for r in results[1:]] == ["refuse"] * 3
    assert gate.decide(results[0]).action == "run"
    assert len(gate.ledger) == 3


def test_memory_of_objects_is_bounded():
    gate = TurnGate()
    for _ in range(100):
        gate.decide(turn(Draft("{}", id=None), response_id=None))
    assert sum(len(calls) for calls in gate._recent) <= 16


def test_threads_that_ask_at_once_get_one_release():
    for _ in range(20):
        gate, result = TurnGate({"hoist": lambda arguments: arguments}), turn(*(Draft("{}") for _ in range(5)))
        start, got = threading.Barrier(4), []

        def ask(gate=gate, result=result, start=start, got=got):
            start.wait()
            got.extend(gate.decide(result).runnable)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(c.id for c in got) == ["c0", "c1", "c2", "c3", "c4"]


# -- what goes in and comes out -------------------------------------------------------------------------------------------


def test_turn_truncated_is_decided_by_its_result():
    d = decide(TurnTruncated("cut", result=cut(Draft('{"a":1}'))))
    assert (d.action, d.reasons) == ("refuse", ("turn_not_ended",))


@pytest.mark.parametrize("thing", [None, {}, "turn", TurnTruncated("without a result"), turn(Draft("{}")).calls, ValueError("x")])
def test_anything_else_is_a_usage_error(thing):
    with pytest.raises(UsageError, match="TurnResult"):
        TurnGate().decide(thing)


def test_unfinished_turn_is_a_usage_error_that_says_what_to_do():
    class Turn:
        def finish(self) -> None: ...

    with pytest.raises(UsageError, match=r"finish\(\)"):
        TurnGate().decide(Turn())  # type: ignore[arg-type]


@pytest.mark.parametrize("tools", [[], "hoist", [{"name": "hoist"}], {1: None}, {"": None}, {"hoist": 3}])
def test_wrong_tools_are_a_usage_error(tools):
    with pytest.raises(UsageError, match="tool"):
        TurnGate(tools)


def test_wrong_policy_is_a_usage_error():
    with pytest.raises(UsageError):
        TurnGate(policy=True)  # type: ignore[arg-type]
    for wrong in ({"max_released": 0}, {"max_depth": 0}):
        with pytest.raises(UsageError):
            GatePolicy(**wrong)


def test_changing_the_tools_later_changes_nothing():
    tools: dict[str, Any] = {"hoist": None}
    gate = TurnGate(tools)
    tools["lower"] = None
    assert gate.decide(turn(Draft("{}", name="lower"))).reasons == ("unknown_tool",)


def test_raise_if_refused_carries_the_decision():
    d = decide(turn(Draft("{}"), outcome=Outcome.LENGTH, reason="max_tokens"))
    with pytest.raises(GateRefused, match=r"turn_truncated.*max_tokens") as caught:
        d.raise_if_refused()
    assert caught.value.decision is d
    d = decide(turn(Draft('{"a":1,}')))
    with pytest.raises(GateRefused, match=r"args_invalid_json: hoist: json\."):
        d.raise_if_refused()
    assert decide(turn()).raise_if_refused().action == "nothing_to_run"


def test_runnable_call_can_be_had_from_the_gate_only():
    runnable = decide(turn(Draft('{"a":1}'))).runnable[0]
    with pytest.raises(UsageError):
        RunnableCall(call=runnable.call, arguments={}, seal=None)
    with pytest.raises(TypeError):
        RunnableCall()  # type: ignore[call-arg]
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UsageError):
            copied(runnable)
    with pytest.raises(UsageError):
        type("Mine", (RunnableCall,), {})


def test_runnable_call_is_read_only():
    runnable = decide(turn(Draft('{"a":1}'))).runnable[0]
    for name in ("id", "name", "arguments", "call", "kind"):
        with pytest.raises(AttributeError):
            setattr(runnable, name, "x")
        with pytest.raises(AttributeError):
            delattr(runnable, name)
    with pytest.raises(AttributeError):
        runnable.extra = 1  # type: ignore[attr-defined]


def test_repr_of_a_runnable_call_does_not_show_arguments():
    assert repr(decide(turn(Draft('{"key":"hush"}'))).runnable[0]) == "<RunnableCall 'hoist' id='c0'>"


# -- no combination leaks -------------------------------------------------------------------------------------------------


def test_nothing_runs_unless_everything_allows_it():
    """Every outcome, end, cause and doubt together: a call runs only where the rules, written once more here, let it."""
    ends = [(True, False), (False, True), (False, False), (True, True)]
    doubts: list[dict[str, str]] = [{}, *({r: ""} for r in CALL_REASONS), {"unheard_of": ""}, {"superseded": "", "no_name": ""}]
    texts = ['{"a":1}', "", '{"a":', "[]", "{}}"]
    good_texts = {'{"a":1}', ""}
    for outcome, (ended, truncated), cause, on_stop in itertools.product(Outcome, ends, (None, "aborted", "idle_timeout"), (True, False)):
        for doubt, text in itertools.product(doubts, texts):
            result = turn(
                Draft(text, doubts=doubt),
                Draft("{}", id="innocent"),
                settled=False,
                outcome=outcome,
                ended=ended,
                truncated=truncated,
                cause=cause,
                runs_on_stop=on_stop,
            )
            d = decide(result)
            may = ended and not truncated and (outcome is Outcome.TOOL_CALLS or (outcome is Outcome.STOP and on_stop))
            spreads = "superseded" not in doubt and (text == '{"a":' or "unheard_of" in doubt or bool(STREAM_REASONS & doubt.keys()))
            expected = {"innocent"} if may and not spreads else set()
            if expected and not doubt and text in good_texts:
                expected.add("c0")
            where = (outcome, ended, truncated, cause, on_stop, doubt, text)
            assert {c.id for c in d.runnable} == expected, where
            assert d.action == ("run" if expected else "refuse"), where
            assert {r.call.id for r in d.refused} == {"c0", "innocent"} - expected, where
            assert d.reason == d.reasons[0], where
            named = [r for r in d.reasons if r != "ended"]
            assert named == sorted(set(named), key=list(REASONS).index), where
            assert ("ended" in d.reasons) == bool(expected), where
            for refusal in d.refused:
                assert refusal.reasons, where
                assert set(refusal.reasons) <= set(named), where
                assert list(refusal.reasons) == sorted(refusal.reasons, key=list(REASONS).index), where


def test_calls_of_a_turn_are_not_changed_by_the_gate():
    result = turn(Draft('{"a":1}'), Draft("[", doubts={"args_conflict": "x"}))
    before = [(c.text, dict(c.doubts), c.marks, c.complete) for c in result.calls]
    decide(result)
    assert [(c.text, dict(c.doubts), c.marks, c.complete) for c in result.calls] == before
    assert all(isinstance(c, ToolCall) for c in result.calls)
