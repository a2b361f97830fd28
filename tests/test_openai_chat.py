"""OpenAI's chat stream and the many servers that speak almost the same: ends, quirks, correlation, and what a lost frame may do."""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire as tw
from turn_helpers import GOOD, Played, calls, chat, chunk, cut, dumps, entry, every_way, play, sse, ways

SYNTH = object()
TIDE = ("c1", "get_tide", '{"port":"Brest"}', {"port": "Brest"})
END = (chunk(finish="tool_calls"), "[DONE]")


class Want(NamedTuple):
    """What a body has to give. ``None``: the documents leave it open."""

    calls: list[tuple[Any, str | None, str, Any]] | None = None
    action: str = "run"
    reason: str | None = None  # it is among the reasons
    outcome: str | None = None
    marks: set[str] | None = set()
    call_marks: list[set[str]] | None = None
    text: str | None = None
    ran: list[int] | None = None  # places of the calls that run; all of them unless given


def hold(body: bytes, want: Want, **options: Any) -> Played:
    played = every_way(body, **options)
    result = played.result
    if want.calls is not None:
        got = [(SYNTH if c.id_is_synthetic else c.id, c.name, c.text, c.value) for c in result.calls]
        assert got == want.calls
        for call, (_, _, _, value) in zip(result.calls, want.calls, strict=True):
            assert repr(call.value) == repr(value), "1, 1.0 and True differ"
    assert (played.action, played.decision.reasons) == (want.action, played.decision.reasons)
    if want.reason is not None:
        assert want.reason in played.reasons
        assert played.decision.reason == played.reasons[0]
    elif want.action != "refuse":
        assert played.decision.reason == "ended"
    if want.outcome is not None:
        assert result.outcome == want.outcome
    if want.marks is not None:
        assert set(result.marks) == want.marks
    if want.call_marks is not None:
        assert [set(c.marks) for c in result.calls] == want.call_marks
    if want.text is not None:
        assert result.text == want.text
    if want.action == "run":
        places = range(len(result.calls)) if want.ran is None else want.ran
        assert played.ran == [(result.calls[n].id, result.calls[n].name, result.calls[n].value) for n in places]
    else:
        assert played.ran == []
    return played


# How a turn ends: providers.md section 1, every row of the table.

STOP_WITH_CALLS = {"finish_stop_with_calls"}
TEXT_CALL = sse(chunk({"content": "on it"}), *(calls(e) for e in GOOD))
REFUSAL = chunk({"refusal": "I can not"})

ENDS: dict[str, tuple[bytes, Want, dict[str, Any]]] = {
    "tool_calls": (chat(*GOOD), Want([TIDE], outcome="TOOL_CALLS"), {}),
    "tool_calls, strict": (chat(*GOOD), Want([TIDE], outcome="TOOL_CALLS"), {"profile": "strict"}),
    "tool_calls, tolerant": (chat(*GOOD), Want([TIDE], outcome="TOOL_CALLS"), {"profile": "tolerant"}),
    "function_call": (
        sse(
            chunk({"function_call": {"name": "get_tide", "arguments": '{"port":'}}),
            chunk({"function_call": {"arguments": '"Brest"}'}}),
            chunk(finish="function_call"),
            "[DONE]",
        ),
        Want([(SYNTH, *TIDE[1:])], outcome="TOOL_CALLS"),
        {},
    ),
    "stop with calls": (chat(*GOOD, finish="stop"), Want([TIDE], outcome="STOP", marks=STOP_WITH_CALLS), {}),
    "stop with calls, strict": (chat(*GOOD, finish="stop"), Want([TIDE], "refuse", "turn_not_for_tools", "STOP", None), {"profile": "strict"}),
    "stop with an open call": (chat(*GOOD[:2], finish="stop"), Want([("c1", "get_tide", '{"port":', {})], "refuse", "args_incomplete", "STOP", None), {}),
    "stop and refusal": (sse(REFUSAL, chunk(finish="stop"), "[DONE]"), Want([], "refuse", "turn_refused", "REFUSED"), {}),
    "stop and refusal with calls": (TEXT_CALL + sse(REFUSAL, chunk(finish="stop"), "[DONE]"), Want([TIDE], "refuse", "turn_refused", "REFUSED", None), {}),
    "refusal in the finish chunk": (TEXT_CALL + sse(chunk({"refusal": "no"}, "stop"), "[DONE]"), Want([TIDE], "refuse", "turn_refused", "REFUSED", None), {}),
    "refusal after the finish chunk": (
        TEXT_CALL + sse(chunk(finish="stop"), REFUSAL, "[DONE]"),
        Want([TIDE], "refuse", "turn_refused", "REFUSED", None),
        {},
    ),
    "refusal beside tool_calls": (TEXT_CALL + sse(REFUSAL, *END), Want([TIDE], outcome="TOOL_CALLS", marks={"refusal_with_calls"}), {}),
    "length": (chat(*GOOD[:2], finish="length"), Want([("c1", "get_tide", '{"port":', {})], "refuse", "turn_truncated", "LENGTH"), {}),
    "length with whole arguments": (chat(*GOOD, finish="length"), Want([TIDE], "refuse", "turn_truncated", "LENGTH"), {}),
    "length without calls": (sse(chunk({"content": "x"}, "length"), "[DONE]"), Want([], "refuse", "turn_truncated", "LENGTH", text="x"), {}),
    "content_filter": (chat(*GOOD, finish="content_filter"), Want([TIDE], "refuse", "turn_filtered", "FILTERED"), {}),
    "no [DONE]": (chat(*GOOD, done=False), Want([TIDE], outcome="TOOL_CALLS", marks={"no_done_marker"}), {}),
    "no [DONE], strict": (chat(*GOOD, done=False), Want([TIDE], "refuse", "turn_not_ended", marks=None), {"profile": "strict"}),
    "no [DONE], end marker required": (
        chat(*GOOD, done=False),
        Want([TIDE], "refuse", "turn_not_ended", marks={"no_done_marker"}),
        {"policy": tw.GatePolicy(require_end_marker=True)},
    ),
    "[DONE], end marker required": (chat(*GOOD), Want([TIDE]), {"policy": tw.GatePolicy(require_end_marker=True)}),
    "no finish reason": (chat(*GOOD, finish=None, done=False), Want([TIDE], "refuse", "turn_not_ended", "CUT"), {}),
    "no finish reason, tolerant": (chat(*GOOD, finish=None, done=False), Want([TIDE], "refuse", "turn_not_ended", "CUT"), {"profile": "tolerant"}),
    "error after everything": (chat(*GOOD, done=False) + sse({"error": {"message": "m"}}, "[DONE]"), Want([TIDE], "refuse", "turn_error", "ERROR"), {}),
    "error between": (sse(calls(GOOD[0])) + sse({"error": {"message": "m"}}) + chat(*GOOD[1:]), Want(None, "refuse", "turn_error", "ERROR", None), {}),
    "error first": (sse({"error": {"message": "m"}}) + chat(*GOOD), Want(None, "refuse", "turn_error", "ERROR", None), {}),
    "one of two choices unfinished": (
        sse(calls(GOOD[0]), calls(entry(0, "c2", "get_tide", "{}"), index=1), calls(*GOOD[1:]), chunk(finish="tool_calls", index=0), "[DONE]"),
        Want([TIDE, ("c2", "get_tide", "{}", {})], "refuse", "turn_not_ended", "CUT", None),
        {},
    ),
    "one of two choices filtered": (
        sse(calls(*GOOD), calls(entry(0, "c2", "get_tide", "{}"), index=1), chunk(finish="tool_calls"), chunk(finish="content_filter", index=1), "[DONE]"),
        Want(None, "refuse", "turn_filtered", "FILTERED", None),
        {},
    ),
    "client closed early": (chat(*GOOD, done=False), Want([TIDE], "refuse", "turn_not_ended", marks=None), {"abort": "aborted"}),
    "plain text": (
        sse(chunk({"role": "assistant", "content": "so"}), chunk({"content": " be it"}), chunk(finish="stop"), "[DONE]"),
        Want([], "nothing_to_run", outcome="STOP", text="so be it"),
        {},
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_end_of_a_turn(name: str) -> None:
    body, want, options = ENDS[name]
    played = hold(body, want, **options)
    if want.reason and want.reason.startswith("turn_"):
        assert played.decision.reason == want.reason


def test_every_cut_of_a_good_body_is_a_cut() -> None:
    body = chat(*GOOD)
    whole = len(chat(*GOOD, done=False))
    done = len(body) - len(b"\n\n")
    for size in range(len(body)):
        played = play([body[:size]])
        if size < whole - 2:
            assert (played.action, played.result.outcome) == ("refuse", "CUT"), size
            assert "turn_not_ended" in played.reasons
        elif size <= whole or size >= done:
            # The finish chunk is whole. Its blank line, or that of [DONE], may be what is missing; nothing else.
            assert played.ran == [TIDE[:2] + TIDE[3:]], size
        else:
            # A body that ends inside a frame is no clean end, whatever came before it.
            assert played.action == "refuse", (size, body[whole:size])
            assert "turn_not_ended" in played.reasons


# The quirk catalogue: providers.md section 7. Names start with the row.

A = ("c1", "f", '{"a":1}', {"a": 1})
B = ("c2", "g", '{"b":2}', {"b": 2})
A2 = ("c2", "f", '{"a":2}', {"a": 2})


def anon(call: tuple[Any, ...]) -> tuple[Any, ...]:
    return (SYNTH, *call[1:])


def whole(call: tuple[Any, ...], index: Any = 0, **more: Any) -> dict[str, Any]:
    return entry(index, call[0], call[1], call[2], **more)


def nameless(text: Any, index: Any = 0) -> dict[str, Any]:
    return entry(index, arguments=text)


def no_index(e: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in e.items() if k != "index"}


def null_index(e: dict[str, Any]) -> dict[str, Any]:
    return e | {"index": None}


def no_id(e: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in e.items() if k != "id"}


CONFLICT = ("args_ambiguous", "args_conflict")
Q: dict[str, tuple[bytes, Want, dict[str, Any]]] = {}


def quirk(name: str, body: bytes, want: Want, **options: Any) -> None:
    assert name not in Q
    Q[name] = (body, want, options)


MISSING_INDEX = {"index_missing"}
for how, strip in (("missing", no_index), ("null", null_index)):
    quirk(
        f"1 index {how}, matched by id",
        chat(
            strip(entry(id="c1", name="f", arguments='{"a":')),
            strip(entry(id="c2", name="g", arguments='{"b":')),
            strip(entry(id="c1", arguments="1}")),
            strip(entry(id="c2", arguments="2}")),
        ),
        Want([A, B], call_marks=[MISSING_INDEX] * 2),
    )
    quirk(f"1 index {how}, whole calls", chat(strip(whole(A)), strip(whole(B))), Want([A, B], call_marks=[MISSING_INDEX] * 2))
    quirk(f"1 index {how}, two calls to one tool", chat(strip(whole(A)), strip(whole(A2))), Want([A, A2], call_marks=[MISSING_INDEX] * 2))
    quirk(
        f"1 index {how}, the single open call",
        chat(strip(entry(id="c1", name="f", arguments='{"a"')), strip(nameless(":1")), strip(nameless("}"))),
        Want([A], call_marks=[MISSING_INDEX]),
    )
    quirk(
        f"1 index {how}, the open one of two calls",
        chat(strip(whole(A)), strip(entry(id="c2", name="g", arguments='{"b"')), strip(nameless(":2}"))),
        Want([A, B], call_marks=[MISSING_INDEX] * 2),
    )
    quirk(
        f"1 index {how}, two open calls",
        chat(strip(entry(id="c1", name="f", arguments='{"a"')), strip(entry(id="c2", name="g", arguments='{"b"')), strip(nameless(":2}"))),
        Want(None, "refuse", marks=None),
    )
    quirk(f"1 index {how}, no open call", chat(strip(whole(A)), strip(nameless('{"a":3}'))), Want(None, "refuse", marks=None))
    quirk(f"1 index {how}, no ids, whole calls", chat(no_id(strip(whole(A))), no_id(strip(whole(B)))), Want([anon(A), anon(B)], call_marks=[MISSING_INDEX] * 2))

quirk("2 index 0 for every call", chat(whole(A), whole(B)), Want([A, B], call_marks=[set(), {"index_reused"}]))
quirk("2 index 0 for every call of one tool", chat(whole(A), whole(A2)), Want([A, A2], call_marks=[set(), {"index_reused"}]))
quirk(
    "2 index 0 in fragments",
    chat(entry(0, "c1", "f", '{"a"'), nameless(":1}"), entry(0, "c2", "g", ""), nameless('{"b"'), nameless(":2}")),
    Want([A, B], call_marks=[set(), {"index_reused"}]),
)
quirk("2 index 0 without ids", chat(no_id(whole(A)), no_id(whole(B))), Want([anon(A), anon(B)], call_marks=[set(), {"index_reused"}]))
quirk("2 index 0 without ids, one tool", chat(no_id(whole(A)), no_id(whole(A2))), Want([anon(A), anon(A2)], call_marks=[set(), {"index_reused"}]))
quirk("2 index 0, the first call still open", chat(entry(0, "c1", "f", '{"a"'), whole(B)), Want(None, "refuse", "args_incomplete"))
quirk(
    "2 index 0, same tool, first still open, no start of arguments",
    chat(entry(0, "c1", "f", '{"a"'), entry(0, "c2", "f", ":1}")),
    Want(None, "refuse", "args_ambiguous", marks=None),
)

quirk("3 first index 3, then 1", chat(whole(A, 3), whole(B, 1)), Want([A, B], call_marks=[set(), set()]))
quirk("3 index of the tool, interleaved", chat(entry(7, "c1", "f", '{"a"'), entry(2, "c2", "g", '{"b"'), nameless(":1}", 7), nameless(":2}", 2)), Want([A, B]))

for blank in (None, "", "null"):
    quirk(f"4 id {blank!r}", chat(whole((blank, *A[1:])), whole((blank, *B[1:]), 1)), Want([anon(A), anon(B)]))
    quirk(f"4 id {blank!r} in fragments", chat(entry(0, blank, "f", '{"a"'), entry(0, blank, arguments=":1}")), Want([anon(A)]))
    quirk(f"4 id {blank!r} on later fragments", chat(entry(0, "c1", "f", '{"a"'), entry(0, blank, arguments=":1}")), Want([A], call_marks=[set()]))
quirk("4 id missing", chat(no_id(whole(A)), no_id(whole(A2, 1))), Want([anon(A), anon(A2)]))

quirk("5 id on each fragment", chat(entry(0, "c1", "f", ""), entry(0, "c1", arguments='{"a"'), entry(0, "c1", arguments=":1}")), Want([A], call_marks=[set()]))
quirk(
    "6 new id per fragment",
    chat(entry(0, "c1", "f", '{"a"'), entry(0, "c7", arguments=":1"), entry(0, "c8", arguments="}")),
    Want([A], call_marks=[{"id_changed"}]),
)

quirk("7 one id, two indices", chat(whole(A), whole(("c1", *B[1:]), 1)), Want([A, anon(B)], call_marks=[set(), {"id_repeated"}]))
quirk("7 one id, two indices, one tool, one text", chat(whole(A), whole(A, 1)), Want([A, anon(A)], call_marks=[set(), {"id_repeated"}]))
quirk("7 sent again whole", chat(whole(A), whole(A)), Want([A], call_marks=[{"call_repeated"}]))
quirk("7 sent again whole, after another", chat(whole(A), whole(B, 1), whole(A)), Want([A, B], call_marks=[{"call_repeated"}, set()]))
quirk("7 sent again with another text", chat(whole(A), whole(("c1", *A2[1:]))), Want(None, "refuse", marks=None))

quirk("8 name on each fragment", chat(entry(0, "c1", "f", '{"a"'), entry(0, "c1", "f", ":1"), entry(0, name="f", arguments="}")), Want([A], call_marks=[set()]))
quirk("9 name in pieces", chat(entry(0, "c1", "get_", ""), entry(0, name="tide", arguments='{"a":1}')), Want(None, "refuse", "args_ambiguous", marks=None))
quirk("9 name in pieces, with the id", chat(entry(0, "c1", "get_", ""), entry(0, "c1", "tide", '{"a":1}')), Want(None, "refuse", "args_ambiguous", marks=None))
quirk("9 another name in the middle", chat(entry(0, "c1", "f", '{"a"'), entry(0, "c1", "g", ":1}")), Want(None, "refuse", "args_ambiguous", marks=None))
for blank in ("", " ", None, "\t\n"):
    quirk(
        f"10 name {blank!r}", chat(entry(0, "c1", "f", ""), entry(0, name=blank, arguments='{"a"'), entry(0, "c1", blank, ":1}")), Want([A], call_marks=[set()])
    )
    quirk(f"10 name {blank!r} opens no call", chat(whole(A), entry(1, None, blank, "")), Want([A]))
quirk("11 name after the first arguments", chat(nameless('{"a"'), entry(0, "c1", "f", ":1"), nameless("}")), Want([A], call_marks=[{"name_late"}]))
quirk("11 name alone, late", chat(entry(0, "c1", arguments='{"a"'), entry(0, name="f"), nameless(":1}")), Want([A], call_marks=[{"name_late"}]))
quirk("11 id and empty text first", chat(entry(0, "c1", arguments=""), entry(0, name="f"), nameless('{"a":1}')), Want([A]))
quirk("11 name last of all", chat(entry(0, "c1", arguments='{"a":1}'), entry(0, name="f")), Want([A], call_marks=[{"name_late"}]))
quirk("11 name never, id known", chat(entry(0, "c1", arguments='{"a":1}'), whole(B, 1)), Want([("c1", None, A[2], A[3]), B], "refuse", "no_name"))
quirk("11 name never, no id", chat(nameless('{"a":1}'), whole(B, 1)), Want([(SYNTH, None, A[2], A[3]), B], "refuse", "orphan_arguments"))
quirk(
    "11 name at one index, arguments at the other", chat(entry(1, "c1", "f", ""), nameless('{"a"'), nameless(":1}")), Want(None, "refuse", "orphan_arguments")
)
for nothing in (None, ""):
    quirk(
        f"12 arguments {nothing!r}",
        chat(
            entry(0, "c1", "f", nothing),
            entry(0, arguments=nothing),
            nameless('{"a"'),
            entry(0, arguments=nothing),
            nameless(":1}"),
            entry(0, arguments=nothing),
        ),
        Want([A], call_marks=[set()]),
    )
quirk("12 arguments missing", chat(entry(0, "c1", "f"), nameless('{"a":1}')), Want([A], call_marks=[set()]))

OBJECT = {"args_as_object"}
BIG = {"z": [1, {"y": "x y"}], "a": 12345678901234567890123, "n": None, "t": True, "f": 2.5}
quirk("13 arguments an object", chat(entry(0, "c1", "f", {"a": 1})), Want([A], call_marks=[OBJECT]))
quirk("13 arguments an object, in wire order", chat(entry(0, "c1", "f", BIG)), Want([("c1", "f", dumps(BIG), BIG)], call_marks=[OBJECT]))
quirk("13 arguments an object, later", chat(entry(0, "c1", "f", ""), nameless({"a": 1})), Want([A], call_marks=[OBJECT]))
quirk("13 arguments an empty object", chat(entry(0, "c1", "f", {})), Want([("c1", "f", "{}", {})], call_marks=[OBJECT]))
quirk("13 a second object", chat(entry(0, "c1", "f", {"a": 1}), nameless({"a": 2})), Want(None, "refuse", "args_conflict", marks=None))
quirk("13 text after an object", chat(entry(0, "c1", "f", {"a": 1}), nameless('{"a":2}')), Want(None, "refuse", marks=None))
quirk("13 an object after text", chat(entry(0, "c1", "f", '{"a"'), nameless({"a": 1})), Want(None, "refuse", marks=None))
for odd in (5, 1.5, True, [1], ["{}"]):
    quirk(f"13 arguments {odd!r}", chat(entry(0, "c1", "f", odd), whole(B, 1)), Want(None, "", marks=None))
quirk("14 whole calls in one chunk", sse(calls(whole(A), whole(B, 1), whole(("c3", *A2[1:]), 2), finish="tool_calls"), "[DONE]"), Want([A, B, ("c3", *A2[1:])]))

GROWING = [entry(0, "c1", "f", '{"a'), nameless('{"a":1'), nameless('{"a":1}')]
quirk("15 cumulative", chat(*GROWING), Want([A], call_marks=[{"args_cumulative"}]))
quirk("15 cumulative, strict", chat(*GROWING), Want(None, "refuse", marks=None), profile="strict")
quirk(
    "15 cumulative, with an open string",
    chat(entry(0, "c1", "f", '{"a":"x'), nameless('{"a":"xy'), nameless('{"a":"xyz"}')),
    Want([("c1", "f", '{"a":"xyz"}', {"a": "xyz"})], call_marks=[{"args_cumulative"}]),
)
quirk(
    "15 cumulative, one piece that does not extend", chat(entry(0, "c1", "f", '{"a'), nameless('{"a":1'), nameless('{"b":1}')), Want(None, "refuse", marks=None)
)
quirk("15 cumulative, then a delta", chat(entry(0, "c1", "f", '{"a'), nameless('{"a":1'), nameless("}")), Want(None, "refuse", marks=None))
quirk("15 a delta, then cumulative", chat(entry(0, "c1", "f", '{"a'), nameless('":1'), nameless('{"a":1}')), Want(None, "refuse", marks=None))
quirk(
    "15 growing pieces that append to valid JSON",
    chat(entry(0, "c1", "f", '{"a":'), nameless('{"a":'), nameless('{"a":1}}}')),
    Want([("c1", "f", '{"a":{"a":{"a":1}}}', {"a": {"a": {"a": 1}}})], call_marks=[set()]),
)

AGAIN = [entry(0, "c1", "f", ""), nameless('{"a"'), nameless(":1}"), nameless('{"a":1}')]
quirk("16 once more whole", chat(*AGAIN), Want([A], call_marks=[{"args_repeated"}]))
quirk("16 once more whole, strict", chat(*AGAIN), Want(None, "refuse", marks=None), profile="strict")
quirk("16 once more with another text", chat(*AGAIN[:3], nameless('{"a":2}')), Want(None, "refuse", "args_invalid_json", marks=None))
quirk("16 once more with a space", chat(*AGAIN[:3], nameless('{"a": 1}')), Want(None, "refuse", "args_invalid_json", marks=None))
quirk("16 two objects in one piece", chat(entry(0, "c1", "f", '{"a":1}{"a":2}')), Want(None, "refuse", "args_invalid_json", marks=None))
quirk("16 an empty object first", chat(entry(0, "c1", "f", "{}"), nameless('{"a":1}')), Want(None, "refuse", "args_invalid_json", marks=None))
quirk("16 white space after the value", chat(whole(A), nameless(" "), nameless("\n")), Want([("c1", "f", '{"a":1} \n', {"a": 1})], call_marks=[set()]))
quirk(
    "16 no overlap is removed",
    chat(entry(0, "c1", "f", '{"a":"'), nameless("o"), nameless("o"), nameless('"}')),
    Want([("c1", "f", '{"a":"oo"}', {"a": "oo"})], call_marks=[set()]),
)

NEEDS_A = {"f": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}, "additionalProperties": False}}
quirk("16b a piece is missing, broken", chat(entry(0, "c1", "f", '{"a"'), nameless("1}")), Want(None, "refuse", "args_invalid_json"))
quirk("17 no arguments", chat(entry(0, "c1", "f", "")), Want([("c1", "f", "", {})]))
quirk("17 arguments never given", chat(entry(0, "c1", "f")), Want([("c1", "f", "", {})]))
for odd_text, odd_value in (("null", None), ("[]", []), ('"x"', "x"), ("31", 31), ("true", True), ("-1.5e3", -1500.0)):
    quirk(f"18 the value is {odd_text}", chat(entry(0, "c1", "f", odd_text)), Want([("c1", "f", odd_text, odd_value)], "refuse", "args_not_object"))
quirk(
    "19 a string of JSON",
    chat(entry(0, "c1", "f", '"{\\"a\\"'), nameless(':1}"')),
    Want([("c1", "f", '"{\\"a\\":1}"', '{"a":1}')], "refuse", "args_not_object"),
)
quirk("20 a raw line feed in a string", chat(entry(0, "c1", "f", '{"a":"x\ny"}')), Want(None, "refuse", "args_invalid_json"))
quirk("20 a raw tab in a string, tolerant", chat(entry(0, "c1", "f", '{"a":"x\ty"}')), Want(None, "refuse", "args_invalid_json"), profile="tolerant")
quirk(
    "21 half a surrogate pair",
    chat(entry(0, "c1", "f", '{"a":"\\ud83d"}')),
    Want([("c1", "f", '{"a":"\\ud83d"}', {"a": "�"})], "refuse", "args_invalid_unicode", call_marks=[{"lone_surrogate"}]),
)
for word in ("NaN", "Infinity", "-Infinity"):
    quirk(f"21 {word}", chat(entry(0, "c1", "f", f'{{"a":{word}}}')), Want(None, "refuse", "args_invalid_json"))
quirk(
    "21 a key twice",
    chat(entry(0, "c1", "f", '{"a":1,"a":2}')),
    Want([("c1", "f", '{"a":1,"a":2}', {"a": 2})], "refuse", "args_duplicate_key", call_marks=[{"duplicate_key"}]),
)
quirk("22 no function", chat(whole(A), {"index": 1}, {"index": 2, "id": "c2", "type": "function"}, {"index": 3, "function": None}, {}), Want([A]))
for kind in (None, ""):
    quirk(f"23 type {kind!r}", chat(whole(A, type=kind), entry(1, "c2", "g", '{"b"', type=kind), nameless(":2}", 1) | {"type": kind}), Want([A, B]))
quirk("23 type missing", chat({"index": 0, "id": "c1", "function": {"name": "f", "arguments": A[2]}}), Want([A]))

NOISE: dict[str, list[Any]] = {
    "24 tool_calls null": [chunk({"tool_calls": None})],
    "24 tool_calls []": [chunk({"tool_calls": []})],
    "24 tool_calls with null in it": [chunk({"tool_calls": [None]})],
    "25 role blank": [chunk({"role": ""}), chunk({"role": None}), chunk({"role": "assistant"}), chunk({"role": "assistant"})],
    "26 delta null": [chunk() | {"choices": [{"index": 0, "delta": None, "finish_reason": None}]}],
    "26 delta absent": [chunk() | {"object": "", "choices": [{"index": 0, "finish_reason": None}]}],
    "27 choices null": [chunk() | {"choices": None}],
    "27 choices []": [chunk() | {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}],
    "27 choices absent": [{"id": "cc_1", "object": "chat.completion.chunk"}],
    "28 refusal false": [chunk({"content": None, "refusal": False}), chunk({"content": "", "refusal": None})],
    "29 finish reason blank": [chunk(finish="")],
    "46 hidden states": [chunk({"hidden_states": [1.5]}), {"id": "cc_1", "choices": [], "sglext": {"x": 1}}],
    "46 audio": [chunk({"audio": {"id": "a", "expires_at": 5}})],
    "46 citations": [chunk(citations=["https://example.org"])],
    "50 obfuscation": [chunk(obfuscation="kq3"), chunk(obfuscation="x")],
}


@pytest.mark.parametrize("where", ["first", "between", "after the reason"])
@pytest.mark.parametrize("name", NOISE)
def test_frames_that_say_nothing(name: str, where: str) -> None:
    first, rest = [calls(GOOD[0])], [calls(*GOOD[1:])]
    frames = {
        "first": [*NOISE[name], *first, *rest, *END],
        "between": [*first, *NOISE[name], *rest, *END],
        "after the reason": [*first, *rest, END[0], *NOISE[name], END[1]],
    }[where]
    hold(sse(*frames), Want([TIDE], outcome="TOOL_CALLS", marks=None))


quirk(
    "26 delta null beside a reason",
    sse(calls(*GOOD), {"choices": [{"index": 0, "delta": None, "finish_reason": "tool_calls"}]}, "[DONE]"),
    Want([TIDE], outcome="TOOL_CALLS"),
)
quirk(
    "28 content in parts",
    sse(
        chunk({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, 5, {"type": "text", "text": "b"}]}),
        chunk({"content": 7}),
        chunk(finish="stop"),
        "[DONE]",
    ),
    Want([], "nothing_to_run", text="ab", marks=None),
)
quirk("29 only blank reasons", sse(calls(*GOOD, finish=""), chunk(finish=""), "[DONE]"), Want([TIDE], "refuse", "turn_not_ended", "CUT"))
quirk("the only entry without its list", sse(*(chunk({"tool_calls": e}) for e in GOOD), chunk(finish="tool_calls"), "[DONE]"), Want([TIDE]))
quirk("30 [DONE] alone", chat(*GOOD, finish=None), Want([TIDE], "refuse", "turn_not_ended", "CUT"))
quirk("30 [DONE] alone, strict", chat(*GOOD, finish=None), Want([TIDE], "refuse", "turn_not_ended", "CUT"), profile="strict")
quirk("30 [DONE] alone, tolerant", chat(*GOOD, finish=None), Want([TIDE], marks={"no_finish_reason"}), profile="tolerant")
quirk(
    "30 [DONE] alone, tolerant, beside a refusal",
    sse(chunk({"refusal": "No."}), *(calls(e) for e in GOOD), "[DONE]"),
    Want(None, "refuse", "turn_refused", marks={"no_finish_reason"}),
    profile="tolerant",
)
quirk("30 [DONE] alone, tolerant, a call is open", chat(*GOOD[:2], finish=None), Want(None, "refuse", "turn_not_ended", marks=None), profile="tolerant")
quirk("32 no calls", sse(chunk({"content": "x"}), *END), Want([], "nothing_to_run", outcome="TOOL_CALLS", marks={"tool_reason_without_calls"}, text="x"))
SEVERAL = {"several_finish_reasons"}
quirk(
    "33 tool_calls, then stop",
    sse(calls(*GOOD, finish="tool_calls"), chunk(finish="stop"), "[DONE]"),
    Want([TIDE], outcome="STOP", marks=SEVERAL | STOP_WITH_CALLS),
)
quirk(
    "33 stop, then tool_calls",
    sse(calls(*GOOD, finish="stop"), chunk(finish="tool_calls"), "[DONE]"),
    Want([TIDE], outcome="STOP", marks=SEVERAL | STOP_WITH_CALLS),
)
quirk(
    "33 content_filter late",
    sse(calls(*GOOD, finish="tool_calls"), chunk(finish="content_filter"), "[DONE]"),
    Want([TIDE], "refuse", "turn_filtered", "FILTERED", SEVERAL),
)
quirk(
    "33 content_filter early",
    sse(chunk(finish="content_filter"), calls(*GOOD, finish="tool_calls"), "[DONE]"),
    Want([TIDE], "refuse", "turn_filtered", "FILTERED", None),
)
quirk("33 length, then stop", sse(calls(*GOOD, finish="length"), chunk(finish="stop"), "[DONE]"), Want([TIDE], "refuse", "turn_truncated", "LENGTH", SEVERAL))
quirk(
    "33 a later blank erases nothing",
    sse(calls(*GOOD, finish="length"), chunk(finish=None), chunk(finish=""), "[DONE]"),
    Want([TIDE], "refuse", "turn_truncated", "LENGTH"),
)
quirk(
    "33 a later blank erases nothing good",
    sse(calls(*GOOD, finish="tool_calls"), chunk(finish=None), chunk(finish=""), "[DONE]"),
    Want([TIDE], outcome="TOOL_CALLS"),
)
quirk("34 delta in the finish chunk", sse(calls(*GOOD[:2]), calls(GOOD[2], finish="tool_calls"), "[DONE]"), Want([TIDE], outcome="TOOL_CALLS"))
quirk(
    "35 delta after the finish chunk", sse(calls(*GOOD[:2]), chunk(finish="tool_calls"), calls(GOOD[2]), "[DONE]"), Want([TIDE], marks={"delta_after_finish"})
)
quirk(
    "35 a whole call after the finish chunk",
    sse(calls(whole(A)), chunk(finish="tool_calls"), calls(whole(B, 1)), "[DONE]"),
    Want([A, B], marks={"delta_after_finish"}),
)
quirk(
    "35 a delta after the finish chunk breaks it",
    sse(calls(whole(A)), chunk(finish="tool_calls"), calls(nameless("x")), "[DONE]"),
    Want(None, "refuse", "args_invalid_json", marks=None),
)
for word in ("abort", "sensitive", "network_error", "insufficient_system_resource", "TOOL_CALLS", "tool_calls ", "eos"):
    quirk(f"37 reason {word!r}", chat(*GOOD, finish=word), Want([TIDE], "refuse", "turn_unknown", "UNKNOWN", {"unknown_reason"}))
for word in ("error", "malformed_function_call", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "ERROR", "TIMEOUT", "failed"):
    quirk(f"37 reason {word!r}", chat(*GOOD, finish=word), Want([TIDE], "refuse", "turn_error", "ERROR"))
for word in ("model_length", "model_context_window_exceeded"):
    quirk(f"37 reason {word!r}", chat(*GOOD, finish=word), Want([TIDE], "refuse", "turn_truncated", "LENGTH"))
quirk("37 reason 'cancelled'", chat(*GOOD, finish="cancelled"), Want([TIDE], "refuse", None, "CANCELLED", None))
for odd in (5, True, {"x": 1}, ["tool_calls"]):
    quirk(f"37 reason {odd!r}", chat(*GOOD, finish=odd), Want([TIDE], "refuse", marks=None))

LEGACY = [
    chunk({"function_call": {"name": "f", "arguments": ""}}),
    chunk({"function_call": {"name": None, "arguments": '{"a"'}}),
    chunk({"function_call": {"arguments": ":1}"}}),
]
quirk("38 legacy", sse(*LEGACY, chunk(finish="function_call"), "[DONE]"), Want([anon(A)], outcome="TOOL_CALLS"))
quirk(
    "38 legacy, name on each piece",
    sse(
        chunk({"function_call": {"name": "f", "arguments": '{"a"'}}),
        chunk({"function_call": {"name": "f", "arguments": ":1}"}}),
        chunk(finish="function_call"),
        "[DONE]",
    ),
    Want([anon(A)]),
)
quirk("38 legacy, null", sse(chunk({"function_call": None}), *LEGACY, chunk({"function_call": None}, "function_call"), "[DONE]"), Want([anon(A)]))
quirk(
    "38 legacy in two choices",
    sse(
        *LEGACY,
        chunk({"function_call": {"name": "g", "arguments": '{"b":2}'}}, index=1),
        chunk(finish="function_call"),
        chunk(finish="function_call", index=1),
        "[DONE]",
    ),
    Want([anon(A), anon(B)]),
)
quirk("38 legacy, cut at the length", sse(*LEGACY, chunk(finish="length"), "[DONE]"), Want([anon(A)], "refuse", "turn_truncated", "LENGTH"))

COMPLETION = {
    "id": "cc_1",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "so",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_tide", "arguments": '{"port":"Brest"}'}}],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"total_tokens": 3},
}
quirk("41 a whole completion as the body", dumps(COMPLETION).encode(), Want([TIDE], text="so", marks=None))
quirk(
    "41 a whole completion, pretty-printed, after white space",
    b"\n  \r\n \n" + json.dumps(COMPLETION, indent=2).encode() + b"\n",
    Want([TIDE], text="so", marks=None),
)
quirk("42 a whole completion in a frame", sse(COMPLETION, "[DONE]"), Want([TIDE], text="so", outcome="TOOL_CALLS", marks={"whole_completion"}))
quirk("43 an unterminated finish chunk", chat(*GOOD, done=False)[:-2], Want([TIDE], marks={"no_done_marker", "unterminated_frame"}))
quirk("43 an unterminated finish chunk with one line end", chat(*GOOD, done=False)[:-1], Want([TIDE], marks={"no_done_marker", "unterminated_frame"}))
quirk("44 [DONE] without its blank line", chat(*GOOD)[:-1], Want([TIDE], marks={"unterminated_frame"}))
quirk("44 [DONE] without its line end", chat(*GOOD)[:-2], Want([TIDE], marks={"unterminated_frame"}))
for done in ("data:[DONE]", "data:  [DONE]", "data: [DONE] ", "data: [DONE]\t"):
    quirk(f"44 {done!r}", chat(*GOOD, done=False) + done.encode() + b"\n\n", Want([TIDE]))
quirk("44 [DONE] in text is text", sse(chunk({"content": "[DONE]"}), chunk(finish="stop"), "[DONE]"), Want([], "nothing_to_run", text="[DONE]"))
quirk("45 chunks after [DONE]", chat(*GOOD) + sse(calls(whole(B, 1)), chunk({"content": "x"})), Want([TIDE], marks={"data_after_end"}, text=""))
quirk("45 a second [DONE]", chat(*GOOD) + sse("[DONE]"), Want([TIDE], marks=None))
quirk("45 a comment after [DONE]", chat(*GOOD) + b": bye\n\n\n", Want([TIDE]))
quirk(
    "48 keep-alives",
    b"\xef\xbb\xbf: OPENROUTER PROCESSING\n\nretry: 2500\n\n\n\nid: 7\nevent: x\n\n"
    + sse(calls(GOOD[0]))
    + b": keep-alive\n\n"
    + sse(calls(*GOOD[1:]))
    + b"\r\n\r\n"
    + sse(*END, end="\r\n"),
    Want([TIDE]),
)
quirk("48 keep-alives as payloads", sse("", ": keepalive", calls(*GOOD), ": x", *END), Want([TIDE], marks={"ignored_frames"}))
quirk("48 payloads that are no object", sse(calls(*GOOD), "null", "[]", "0", '"x"', *END), Want([TIDE], marks={"ignored_frames"}))
LINES = b"".join(b"data: " + dumps(calls(e)).encode() + b"\n" for e in GOOD) + b"\n"
quirk("49 no blank lines between", LINES + sse(*END), Want([TIDE], marks={"two_documents_in_event"}))
quirk(
    "49 no blank lines at all",
    LINES[:-1] + b"".join(b"data: " + (p if isinstance(p, str) else dumps(p)).encode() + b"\n" for p in END) + b"\n",
    Want([TIDE], marks=None),
)
quirk(
    "49 one document over several lines",
    sse(calls(GOOD[0])) + b"".join(b"data: " + line + b"\n" for line in json.dumps(calls(*GOOD[1:]), indent=1).encode().split(b"\n")) + b"\n" + sse(*END),
    Want([TIDE]),
)

FREE = {"f": None}
quirk("51 the wrapper tool", chat(entry(0, "c1", "multi_tool_use.parallel", '{"tool_uses":[]}')), Want(None, "refuse", "unknown_tool"), tools=FREE)
quirk("52 an undeclared tool", chat(whole(A), whole(B, 1)), Want([A, B], ran=[0]), tools=FREE)
quirk("52 only undeclared tools", chat(whole(B)), Want([B], "refuse", "unknown_tool"), tools=FREE)

TWO = [calls(entry(0, "c1", "f", '{"a"')), calls(entry(0, "c2", "g", '{"b"'), index=1), calls(nameless(":2}"), index=1), calls(nameless(":1}"))]
quirk("53 two choices, equal index", sse(*TWO, chunk(finish="tool_calls", index=1), chunk(finish="tool_calls"), "[DONE]"), Want([A, B], outcome="TOOL_CALLS"))
quirk(
    "53 two choices in one chunk",
    sse({"choices": [t["choices"][0] for t in TWO]}, {"choices": [END[0]["choices"][0], {"index": 1, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"),
    Want([A, B], outcome="TOOL_CALLS"),
)
quirk(
    "53 choice 1 first",
    sse(*TWO[1:3], TWO[0], TWO[3], chunk(finish="tool_calls"), chunk(finish="tool_calls", index=1), "[DONE]"),
    Want([B, A], outcome="TOOL_CALLS"),
)
quirk("53 the second without a reason", sse(*TWO, chunk(finish="tool_calls"), "[DONE]"), Want([A, B], "refuse", "turn_not_ended", "CUT", None))
quirk("53 only the second has a reason", sse(*TWO, chunk(finish="tool_calls", index=1)), Want([A, B], "refuse", "turn_not_ended", "CUT", None))


@pytest.mark.parametrize("name", Q)
def test_quirk(name: str) -> None:
    body, want, options = Q[name]
    if want.action:
        hold(body, want, **options)
        return
    played = every_way(body, **options)
    assert (A[0], A[1]) not in [r[:2] for r in played.ran], "no such value is an object"


def test_doubts_name_their_calls() -> None:
    body, _, _ = Q["1 index missing, two open calls"]
    played = every_way(body)
    assert ["args_ambiguous" in c.doubts for c in played.calls] == [True, True]
    body, _, _ = Q["7 sent again with another text"]
    assert set(every_way(body).reasons) & set(CONFLICT)
    body, _, _ = Q["11 name at one index, arguments at the other"]
    played = every_way(body)
    assert [(c.name, c.text) for c in played.calls] == [("f", ""), (None, '{"a":1}')]


def test_a_fragment_for_two_choices_touches_its_own_only() -> None:
    """Correlation is a choice's own affair: an open call of another choice is no candidate."""
    body = sse(
        calls(no_index(entry(id="c1", name="f", arguments='{"a"'))),
        calls(no_index(entry(id="c2", name="g", arguments='{"b"')), index=1),
        calls(no_index(nameless(":2}")), index=1),
        calls(no_index(nameless(":1}"))),
        chunk(finish="tool_calls"),
        chunk(finish="tool_calls", index=1),
        "[DONE]",
    )
    hold(body, Want([A, B]))


def test_a_re_send_never_runs_twice() -> None:
    for body in (
        chat(no_id(whole(A)), no_id(whole(A))),
        chat(no_index(whole(A)), no_index(whole(A))),
        chat(whole(A), entry(0, "c1", "f", ""), nameless(A[2])),
        chat(whole(A), no_id(whole(A))),
    ):
        played = every_way(body)
        assert len(played.ran) <= 1
        assert all(arguments == {"a": 1} for _, _, arguments in played.ran)


def test_a_missing_piece_that_leaves_valid_json_is_for_the_schema() -> None:
    body = chat(entry(0, "c1", "f", "{"), nameless("}"))
    hold(body, Want([("c1", "f", "{}", {})]))

    def needs_a(arguments: dict[str, Any]) -> None:
        if "a" not in arguments:
            raise ValueError("no a")

    hold(body, Want([("c1", "f", "{}", {})], "refuse", "args_schema"), tools={"f": needs_a})


def test_schema_is_checked_for_empty_arguments_too() -> None:
    pytest.importorskip("jsonschema_rs")
    for e in (entry(0, "c1", "f", ""), entry(0, "c1", "f"), entry(0, "c1", "f", "{}"), entry(0, "c1", "f", {})):
        played = every_way(chat(e), tools=NEEDS_A)
        assert (played.action, played.decision.reason) == ("refuse", "args_schema")
        assert "a" in played.decision.refused[0].detail


def test_one_bad_call_of_three() -> None:
    body = chat(whole(A), entry(1, "c2", "g", "[1]"), whole(("c3", *B[1:]), 2))
    played = hold(body, Want(None, ran=[0, 2]))
    assert list(played.refused.values()) == [("args_not_object",)]
    played = every_way(body, policy=tw.GatePolicy(all_or_nothing=True))
    assert (played.action, played.ran) == ("refuse", [])


@pytest.mark.parametrize("doubtful", [entry(1, "c2", "g", '{"b"'), entry(1, "c2", arguments="{}"), nameless("{}", 1)])
def test_doubt_about_the_stream_refuses_all(doubtful: dict[str, Any]) -> None:
    played = every_way(chat(whole(A), doubtful))
    assert (played.action, played.ran, len(played.refused)) == ("refuse", [], 2)


@pytest.mark.parametrize("profile", ["default", "strict", "tolerant"])
def test_no_blank_lines_between_frames_in_strict(profile: str) -> None:
    body, _, _ = Q["49 no blank lines between"]
    played = every_way(body, profile=profile)
    assert (played.action == "run") == (profile != "strict")
    if profile == "strict":
        assert played.error is None or isinstance(played.error, tw.MalformedJSON)


def test_obfuscation_and_padding_never_reach_the_text() -> None:
    body = sse(chunk({"content": "a"}, obfuscation="zz"), chunk({"content": "b", "obfuscation": "zz"}), chunk(finish="stop"), "[DONE]")
    assert every_way(body).result.text == "ab"


def test_usage_replaces() -> None:
    body = sse(
        calls(*GOOD),
        chunk(usage={"total_tokens": 1}),
        chunk(usage=None),
        END[0],
        {"choices": [], "usage": {"total_tokens": 17}},
        {"choices": [], "usage": None},
        "[DONE]",
    )
    played = hold(body, Want([TIDE], outcome="TOOL_CALLS"))
    assert played.result.usage == {"total_tokens": 17}
    assert [e[0] for e in played.events].count("usage") == 2


def test_the_thought_signature_stays_with_its_call() -> None:
    signature = {"google": {"thought_signature": "SIG-A"}}
    body = chat(no_index(entry(id="f1", name="f", arguments='{"a"')), no_index(nameless(":1}")), {"extra_content": signature}, finish="stop")
    played = hold(body, Want([("f1", *A[1:])], marks=STOP_WITH_CALLS, call_marks=[MISSING_INDEX]))
    assert "SIG-A" in json.dumps(played.calls[0].extra)
    body = chat(whole(A, extra_content=signature), whole(B, 1))
    played = hold(body, Want([A, B]))
    assert "SIG-A" in json.dumps(played.calls[0].extra)
    assert "SIG-A" not in json.dumps(played.calls[1].extra)


# Channels, custom tools.


def test_channels() -> None:
    body = sse(
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "a", "reasoning": "m"}),
        chunk({"refusal": "no"}),
        chunk({"content": "b"}),
        chunk({"content": "other"}, index=1),
        chunk(finish="stop"),
        chunk(finish="stop", index=1),
        "[DONE]",
    )
    result = every_way(body).result
    assert result.texts == {(0, "reasoning"): "hmm", (0, "text"): "ab", (0, "refusal"): "no", (1, "text"): "other"}
    assert result.text == "ab"


def custom(index: int, **function: Any) -> dict[str, Any]:
    return {"index": index, "custom": function}


def test_custom_tools_take_text() -> None:
    text = 'print("hi")\n{'
    body = chat(
        {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "python", "input": ""}}, custom(0, input=text[:5]), custom(0, input=text[5:]), whole(B, 1)
    )
    played = every_way(body, tools={"python": {"type": "object"}, "g": None})
    assert [(c.kind, c.text, c.value, c.complete) for c in played.calls] == [("text", text, text, True), ("json", B[2], B[3], True)]
    assert played.ran == [("c1", "python", text), ("c2", "g", {"b": 2})]


def test_custom_tools_are_cut_like_others() -> None:
    body = chat({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "python", "input": "x"}}, finish="length")
    assert every_way(body).reasons[0] == "turn_truncated"
    assert every_way(body[: -len(sse("[DONE]"))][:-40]).reasons[0] == "turn_not_ended"


def test_custom_text_is_not_normalised() -> None:
    """Text that grows, or comes twice, is what the model wrote: there is no grammar that could tell."""
    body = chat(
        {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "python", "input": "a"}},
        custom(0, input="a"),
        custom(0, input="aa"),
        custom(0, input="{}"),
        custom(0, input="{}"),
    )
    assert every_way(body).ran == [("c1", "python", "aaaa{}{}")]


# Error objects: row 39 and 40.

ERRORS: dict[str, tuple[bytes, str]] = {
    "nested": (sse({"error": {"message": "too busy", "type": "server_error", "code": "busy"}}), "too busy"),
    "flat": (sse({"object": "error", "message": "too busy", "type": "x", "code": 400}), "too busy"),
    "text": (sse({"error": "too busy"}), "too busy"),
    "code and text": (sse({"code": "busy", "error": "too busy"}), "too busy"),
    "code and message": (sse({"code": 503, "message": "too busy"}), "too busy"),
    "code and a message that is no text": (sse({"code": 503, "message": {"en": "too busy"}}), '{"code":503,"message":{"en":"too busy"}}'),
    "event: error": (b'event: error\ndata: {"error":{"message":"too busy","code":"tool_use_failed","failed_generation":"{}"}}\n\n', "too busy"),
    "event: error, plain": (b'event: error\ndata: {"message":"too busy"}\n\n', "too busy"),
    "without data:": (b'{"error":{"message":"too busy","code":503}}\n\n', "too busy"),
    "without data:, pretty": (json.dumps({"error": {"message": "too busy", "code": 503, "status": "X"}}, indent=2).encode() + b"\n\n", "too busy"),
    "in a chunk": (sse(chunk(finish="error", error={"message": "too busy", "code": 502})), "too busy"),
    "in a chunk with calls": (sse(calls(whole(B, 1), finish="tool_calls") | {"error": {"message": "too busy"}}), "too busy"),
    "x_groq": (sse(chunk(x_groq={"id": "r", "error": "too busy"})), "too busy"),
}


@pytest.mark.parametrize("after", ["nothing", "[DONE]", "a good turn"])
@pytest.mark.parametrize("before", ["nothing", "a call", "a finished turn"])
@pytest.mark.parametrize("name", ERRORS)
def test_error_objects_stick(name: str, before: str, after: str) -> None:
    error, message = ERRORS[name]
    head = {"nothing": b"", "a call": sse(calls(*GOOD)), "a finished turn": sse(calls(*GOOD), END[0])}[before]
    tail = {"nothing": b"", "[DONE]": sse("[DONE]"), "a good turn": chat(whole(A, 5))}[after]
    played = every_way(head + error + tail, rounds=3)
    result = played.result
    assert played.error is None, "an error object is not raised"
    assert (result.outcome, played.action, played.decision.reason) == ("ERROR", "refuse", "turn_error")
    assert isinstance(result.error, tw.ProviderError)
    assert (result.error.message, result.ended, result.truncated) == (message, True, False)
    assert result.error.raw is not None
    if head:
        assert result.calls[0].text == TIDE[2], "text so far stays readable"


def test_error_details() -> None:
    result = every_way(ERRORS["nested"][0]).result
    assert (result.error.type, result.error.code) == ("server_error", "busy")
    assert result.error.raw == {"error": {"message": "too busy", "type": "server_error", "code": "busy"}} or result.error.raw == {
        "message": "too busy",
        "type": "server_error",
        "code": "busy",
    }
    assert every_way(ERRORS["flat"][0]).result.error.code == "400"


# Properties.

NAMES = st.sampled_from(["f", "g", "get_tide", "f"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(['{"a":1}', "{", '"', "\\", "[DONE]", "data: x\n\n"])
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "a b", "", "é", '"']), VALUES, max_size=4)


@st.composite
def drawn_calls(draw: st.DrawFn, most: int = 4) -> list[tuple[str, str, str]]:
    """Calls as (id, name, argument text); the text is written in different ways."""
    out = []
    for n in range(draw(st.integers(1, most))):
        text = json.dumps(
            draw(OBJECTS),
            ensure_ascii=draw(st.booleans()),
            separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])),
            indent=draw(st.sampled_from([None, None, 1])),
        )
        out.append((f"c{n}", draw(NAMES), text))
    return out


@st.composite
def fragments(draw: st.DrawFn, text: str, pieces: int = 5) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=pieces)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def interleaved(draw: st.DrawFn, drawn: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Entries of all calls, each call's own in order, the first of each with id and name."""
    lanes = []
    indices = draw(st.permutations(range(len(drawn))))
    for (id_, name, text), index in zip(drawn, indices, strict=True):
        pieces = draw(fragments(text))
        first = pieces.pop(0) if draw(st.booleans()) else ""
        lanes.append([entry(index, id_, name, first), *(nameless(p, index) for p in pieces)])
    out = []
    while lanes := [lane for lane in lanes if lane]:
        out.append(lanes[draw(st.integers(0, len(lanes) - 1))].pop(0))
    return out


@given(st.data())
def test_parallel_calls_come_out_as_drawn(data: st.DataObject) -> None:
    drawn = data.draw(drawn_calls())
    entries = data.draw(interleaved(drawn))
    grouped: list[Any] = []
    while entries:
        size = data.draw(st.integers(1, 3))
        grouped.append(calls(*entries[:size]))
        del entries[:size]
    body = sse(*grouped, *END, end=data.draw(st.sampled_from(["\n", "\r\n", "\r"])))
    played = play(cut(body, data.draw(st.lists(st.integers(0, len(body)), max_size=20))))
    assert sorted((c.id, c.name, c.text) for c in played.calls) == sorted(drawn)
    want = sorted((id_, name, json.loads(text)) for id_, name, text in drawn) if len({d[0] for d in drawn}) else []
    got = sorted(played.ran, key=lambda c: str(c[0]))
    assert repr(got) == repr(want)
    assert not played.result.marks and not any(c.marks for c in played.calls)
    assert [(c.value, c.complete) for c in played.calls] == [(json.loads(c.text), True) for c in played.calls]


class Frames(NamedTuple):
    """A good body in frames, with what each is for."""

    drawn: list[tuple[str, str, str]]
    frames: list[Any]
    kinds: list[str]


@st.composite
def good_body(draw: st.DrawFn) -> Frames:
    drawn = draw(drawn_calls(3))
    frames: list[Any] = [chunk({"role": "assistant", "content": None})]
    kinds = ["role"]
    for e in draw(interleaved(drawn)):
        frames.append(calls(e))
        text = e["function"].get("arguments", "")
        kinds.append(("start" if not text else "start with text") if "id" in e else "fragment" if text else "empty")
    frames += [END[0], {"choices": [], "usage": {"total_tokens": 3}}, END[1]]
    kinds += ["finish", "usage", "done"]
    return Frames(drawn, frames, kinds)


def released(frames: list[Any], **options: Any) -> list[tuple[Any, str, str]]:
    """What ran, its arguments as they print: equal texts are equal values."""
    return [(c.id if not c.call.id_is_synthetic else None, c.name, repr(c.arguments)) for c in play([sse(*frames)], **options).decision.runnable]


def as_released(drawn: list[tuple[str, str, str]]) -> list[tuple[Any, str, str]]:
    return [(id_, name, repr(json.loads(text))) for id_, name, text in drawn]


@given(good_body(), st.data())
def test_a_frame_that_is_no_fragment_may_get_lost_or_come_twice(body: Frames, data: st.DataObject) -> None:
    """Never other arguments, never a call twice: the originals, or nothing of the call."""
    place = data.draw(st.sampled_from([n for n, kind in enumerate(body.kinds) if kind not in ("fragment", "start with text")]))
    kind = body.kinds[place]
    want = sorted(as_released(body.drawn))
    dropped = released(body.frames[:place] + body.frames[place + 1 :])
    if kind in ("role", "usage", "done", "empty"):
        assert sorted(dropped) == want
    elif kind == "finish":
        assert dropped == []
    else:
        # Without its start a call has no name: its text is nobody's, and casts doubt on all others. A start without any text
        # to follow takes the call with it.
        assert dropped == []
    again = data.draw(st.integers(place, len(body.frames)))
    twice = released(body.frames[:again] + [body.frames[place]] + body.frames[again:])
    if kind == "done" or again <= len(body.frames) - 1 or kind != "finish":
        assert sorted(twice) == want


@given(good_body(), st.data())
def test_frames_of_different_calls_may_change_places(body: Frames, data: st.DataObject) -> None:
    """Any two frames that are not fragments of one call: the originals, or, where the end comes before the reason, nothing."""
    spots = st.integers(0, len(body.frames) - 1)
    a, b = sorted((data.draw(spots), data.draw(spots)))
    frames = list(body.frames)
    frames[a], frames[b] = frames[b], frames[a]
    same_order = all([f for f in _own(frames, index) if _text(f)] == [f for f in _own(body.frames, index) if _text(f)] for index in range(len(body.drawn)))
    got = sorted(released(frames))
    if frames.index("[DONE]") < frames.index(END[0]):
        assert got == []
    elif frames.index("[DONE]") < len(frames) - 2:
        assert set(got) <= set(as_released(body.drawn))
    elif same_order:
        assert got == sorted(as_released(body.drawn))


def _own(frames: list[Any], index: int) -> list[dict[str, Any]]:
    return [e for f in frames if isinstance(f, dict) for c in f["choices"] for e in c["delta"].get("tool_calls", ()) if e["index"] == index]


def _text(e: dict[str, Any]) -> str:
    return e["function"].get("arguments") or ""


@given(good_body(), st.data())
def test_a_broken_order_of_fragments_is_never_repaired(body: Frames, data: st.DataObject) -> None:
    """A fragment lost, doubled or moved can leave valid JSON, which only a schema can tell from what was meant. What is released
    is then what the fragments say, to the letter, or the original; never a third text."""
    place = data.draw(st.integers(0, len(body.frames) - 1))
    how = data.draw(st.sampled_from(["drop", "double", "swap"]))
    frames = list(body.frames)
    if how == "drop":
        del frames[place]
    elif how == "double":
        frames.insert(place, frames[place])
    else:
        other = data.draw(st.integers(0, len(frames) - 1))
        frames[place], frames[other] = frames[other], frames[place]
    before_done = frames[: frames.index("[DONE]")] if "[DONE]" in frames else frames
    got = released(frames)
    assert len({id_ for id_, _, _ in got}) == len(got), "no call twice"
    originals = dict(zip((d[0] for d in body.drawn), as_released(body.drawn), strict=True))
    indices = {e["id"]: e["index"] for f in body.frames if isinstance(f, dict) for c in f["choices"] for e in c["delta"].get("tool_calls", ()) if "id" in e}
    for id_, name, arguments in got:
        literal = "".join(_text(e) for e in _own(before_done, indices[id_]))
        allowed = {originals[id_]} | (set() if literal else {(id_, name, "{}")})
        with contextlib.suppress(ValueError):
            allowed.add((id_, name, repr(json.loads(literal))))
        assert (id_, name, arguments) in allowed


@given(
    st.lists(
        st.sampled_from(
            [
                whole(A),
                whole(B),
                whole(A2),
                whole(A, 1),
                no_id(whole(A)),
                no_index(whole(B)),
                no_index(no_id(whole(A))),
                nameless('{"a"'),
                nameless(":1}"),
                nameless("{}", 1),
                no_index(nameless(":1}")),
                entry(0, "c1", "f", '{"a"'),
                entry(0, "c3", arguments="1}"),
                entry(1, name="g"),
                entry(0, "c1", "g", ""),
                nameless({"a": 1}),
                {},
                {"index": 1, "id": "c9"},
            ]
        ),
        max_size=6,
    )
)
def test_any_mixture_of_entries_is_taken_without_a_crash(entries: list[dict[str, Any]]) -> None:
    body = chat(*entries)
    outcomes = {play(chunks).facts() for chunks in ways(body, rounds=1, per_byte=False)}
    assert len(outcomes) == 1
    played = play([body])
    assert played.error is None
    for _, _, arguments in played.ran:
        assert isinstance(arguments, dict)
