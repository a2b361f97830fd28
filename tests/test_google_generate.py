"""Google GenerateContent, from bytes to the gate. Each body is fed whole, byte by byte and at random cuts."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

import toolwire as tw
from toolwire.adapters.google_generate import REASONS

PROVIDER = "google-generate"


def ways(body: bytes) -> Iterator[list[bytes]]:
    """The body, cut in different ways."""
    yield [body]
    yield [body[i : i + 1] for i in range(len(body))]
    rng = random.Random(len(body))
    for _ in range(3):
        cuts = sorted(rng.sample(range(len(body) + 1), min(len(body), 7)))
        yield [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def log(events: list[Any]) -> list[Any]:
    """Events as plain data, adjacent deltas of one kind merged."""
    out: list[Any] = []
    for event in events:
        match event:
            case tw.TextDelta():
                item = ["text", (event.choice, event.channel), event.text]
            case tw.ArgumentsDelta():
                item = ["args", event.call.key, event.text]
            case tw.CallStart() | tw.CallEnd():
                item = [type(event).__name__, event.call.key]
            case tw.UsageUpdate():
                item = ["usage", event.usage]
            case _:
                item = [type(event).__name__]
        if len(item) == 3 and out and out[-1][:2] == item[:2]:
            out[-1][2] += item[2]
        else:
            out.append(item)
    return out


class Played:
    def __init__(self, chunks: list[bytes], pickled: bool = False, **how: Any) -> None:
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
        self.log = log(events)
        self.calls = self.result.calls
        self.decision = tw.TurnGate().decide(self.result)

    @property
    def facts(self) -> Any:
        r, d = self.result, self.decision
        calls = [(c.key, c.id, c.name, c.text, c.complete, c.runs_on, c.doubts, c.extra, [(str(m), m.offset, m.times) for m in c.marks]) for c in r.calls]
        marks = [(str(m), m.offset, m.times) for m in r.marks]
        return self.log, calls, r.outcome, r.reason, r.ended, r.truncated, r.texts, r.usage, marks, str(self.error), d.action, d.reason, d.reasons


def play(body: bytes, **how: Any) -> Played:
    """Play the body in every way: the same each time."""
    played = [Played(chunks, **how) for chunks in ways(body)]
    for other in played[1:]:
        assert other.facts == played[0].facts
    return played[0]


def sse(*payloads: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\r\n\r\n" for payload in payloads)


def chunk(*parts: Any, finish: str | None = None, index: int | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if index is not None:
        candidate["index"] = index
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r1", **more}


def call(name: str, args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **({} if args is None else {"args": args}), **more}}


def piece(*entries: Any, more: bool = True, **members: Any) -> dict[str, Any]:
    """A piece of a call with streamed arguments."""
    inner: dict[str, Any] = dict(members)
    if entries:
        inner["partialArgs"] = list(entries)
    if more:
        inner["willContinue"] = True
    return {"functionCall": inner}


def string(path: str, text: str, more: bool = False) -> dict[str, Any]:
    return {"jsonPath": path, "stringValue": text, **({"willContinue": True} if more else {})}


def number(path: str, value: float) -> dict[str, Any]:
    return {"jsonPath": path, "numberValue": value}


STOP = chunk(finish="STOP")
CLOSER = piece(more=False)
TIDE = call("get_tide", {"port": "Brest"})


def marks_of(thing: Any) -> list[str]:
    return [str(mark) for mark in thing.marks]


# -- whole calls ------------------------------------------------------------------------------------------------------


def test_a_whole_call_runs_at_stop_and_a_clean_end() -> None:
    p = play(sse(chunk(call("get_tide", {"port": "Brest", "n": [1, 2.0, None, True]}, id="c-1")), STOP))
    (tide,) = p.calls
    assert (tide.id, tide.name, tide.text, tide.complete) == ("c-1", "get_tide", '{"port":"Brest","n":[1,2.0,null,true]}', True)
    assert p.log == [["CallStart", "0.0"], ["args", "0.0", tide.text], ["CallEnd", "0.0"], ["TurnEnd"]]
    assert (p.decision.action, p.decision.runnable[0].arguments) == ("run", {"port": "Brest", "n": [1, 2.0, None, True]})
    assert p.result.response_id == "r1"


@pytest.mark.parametrize("inner", [{"name": "now"}, {"name": "now", "args": None}, {"name": "now", "args": {}}, {"name": "now", "partialArgs": []}])
def test_a_call_without_arguments_is_whole(inner: dict[str, Any]) -> None:
    p = play(sse(chunk({"functionCall": inner}, finish="STOP")))
    assert [r.arguments for r in p.decision.runnable] == [{}]


def test_equal_calls_without_ids_are_two_calls() -> None:
    p = play(sse(chunk(TIDE), chunk(TIDE, TIDE), STOP))
    assert len(p.decision.runnable) == 3
    assert len({c.id for c in p.calls}) == 3
    assert all(c.id_is_synthetic for c in p.calls)


def test_a_call_sent_again_under_its_id_is_dropped() -> None:
    again = {**call("get_tide", {"port": "Brest"}, id="c-1"), "thoughtSignature": "U0lH"}
    p = play(sse(chunk(call("get_tide", {"port": "Brest"}, id="c-1")), chunk(again), STOP))
    (tide,) = p.calls
    assert marks_of(tide) == ["call_repeated"]
    assert tide.extra == {"thoughtSignature": "U0lH"}
    assert p.decision.action == "run"


@pytest.mark.parametrize("second", [call("get_tide", {"port": "Ostend"}, id="c-1"), call("get_wind", {"port": "Brest"}, id="c-1"), call("get_tide", id="c-1")])
def test_one_id_with_different_contents_is_a_conflict(second: dict[str, Any]) -> None:
    p = play(sse(chunk(call("get_tide", {"port": "Brest"}, id="c-1")), chunk(second), STOP))
    (tide,) = p.calls
    assert tide.text == '{"port":"Brest"}'
    assert list(tide.doubts) == ["args_conflict"]
    assert (p.decision.action, p.decision.reason) == ("refuse", "args_conflict")


@pytest.mark.parametrize("args", [[], "x", 1, False, [{"a": 1}]])
def test_arguments_that_are_no_object_are_refused(args: Any) -> None:
    p = play(sse(chunk(call("get_tide", args), finish="STOP")))
    assert p.decision.refused[0].reasons == ("args_not_object",)


def test_a_key_twice_in_the_arguments_refuses_the_call() -> None:
    body = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1,"a":2}}}]},"finishReason":"STOP"}]}\n\n'
    p = play(body)
    assert p.decision.refused[0].reasons == ("args_duplicate_key",)


def test_a_name_that_never_came_refuses_the_turn() -> None:
    p = play(sse(chunk({"functionCall": {"args": {"a": 1}, "id": "c-1"}}), chunk(TIDE), STOP))
    assert p.decision.reasons == ("no_name",)
    p = play(sse(chunk({"functionCall": {"args": {"a": 1}}}), chunk(TIDE), STOP))
    assert p.decision.reasons == ("orphan_arguments",)


# -- text, signatures, other parts ------------------------------------------------------------------------------------


def test_thoughts_are_reasoning_and_empty_text_is_nothing() -> None:
    p = play(sse(chunk({"text": "plan", "thought": True}), chunk({"text": ""}), chunk({"text": "one "}, {"text": "two"}), STOP))
    assert p.result.texts == {(0, "reasoning"): "plan", (0, "text"): "one two"}
    assert (p.decision.action, p.decision.reason) == ("nothing_to_run", "ended")


def test_signatures_stay_with_their_parts() -> None:
    first = {**call("get_tide", {"port": "Brest"}), "thoughtSignature": "SIG-2"}
    body = sse(chunk({"text": "plan", "thought": True}), chunk({"text": "", "thoughtSignature": "SIG-1"}), chunk(first, call("get_wind")), STOP)
    turn = tw.Turn(PROVIDER)
    turn.feed(body)
    assert [c.extra for c in turn.calls] == [{"thoughtSignature": "SIG-2"}, {}]
    assert turn.finish().extra == {"thoughtSignatures": [{"candidate": 0, "channel": "text", "end": 0, "thoughtSignature": "SIG-1"}]}
    assert play(body).result.text == ""


def test_tools_of_the_provider_are_shown_and_never_run() -> None:
    parts = [
        {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": ["a"]}}, "thoughtSignature": "S"},
        {"toolResponse": {"id": "t1", "response": {"x": 1}}},
        {"executableCode": {"language": "PYTHON", "code": "print(1)\n"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD" * 100}},
        {"fileData": {"fileUri": "u"}},
    ]
    p = play(sse(chunk(*parts), STOP))
    search, code = p.calls
    assert (search.id, search.name, search.text, search.runs_on) == ("t1", "GOOGLE_SEARCH_WEB", '{"q":["a"]}', "provider")
    assert search.extra == {"thoughtSignature": "S"}
    assert (code.name, code.kind, code.text, code.runs_on, code.extra) == ("executableCode", "text", "print(1)\n", "provider", {"language": "PYTHON"})
    assert (p.decision.action, p.decision.reason) == ("nothing_to_run", "ended")
    assert marks_of(p.result) == []


def test_unknown_parts_and_payloads_are_reported() -> None:
    p = play(sse(chunk({"hologram": {}}), {"this": "is new"}, chunk(TIDE, finish="STOP")))
    assert [item[0] for item in p.log] == ["UnknownFrame", "UnknownFrame", "CallStart", "args", "CallEnd", "TurnEnd"]
    assert marks_of(p.result) == ["unknown_events", "finish_stop_with_calls"]
    assert p.decision.action == "run"


@pytest.mark.parametrize(
    "odd",
    [
        {"candidates": []},
        {"candidates": None, "responseId": "r1"},
        {"candidates": [{}]},
        {"candidates": [{"content": None}]},
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": {"parts": None}}]},
        {"candidates": [{"content": {"parts": [None, "x", {"text": None}, {"functionCall": None, "text": ""}]}}]},
        {"candidates": ["x"]},
        {"candidates": [{"finishReason": ""}]},
        {"candidates": [{"finishReason": None}]},
        {"promptFeedback": {"safetyRatings": []}},
        {"promptFeedback": None, "candidates": []},
        {"promptFeedback": {"blockReason": "BLOCKED_REASON_UNSPECIFIED"}},
        {"usageMetadata": {"trafficType": "ON_DEMAND"}},
    ],
)
def test_payloads_without_parts_are_legal(odd: dict[str, Any]) -> None:
    p = play(sse(odd, chunk(TIDE), odd, STOP, odd))
    assert p.decision.action == "run"


def test_usage_is_a_running_total() -> None:
    p = play(sse(chunk({"text": "a"}, usageMetadata={"totalTokenCount": 3, "a": 1}), chunk(finish="STOP", usageMetadata={"totalTokenCount": 9})))
    assert p.result.usage == {"totalTokenCount": 9, "a": 1}


# -- the end ----------------------------------------------------------------------------------------------------------

TABLE = [
    ("STOP", tw.Outcome.STOP, "run", "ended"),
    ("MAX_TOKENS", tw.Outcome.LENGTH, "refuse", "turn_truncated"),
    ("CONTINUATION", tw.Outcome.CONTINUE, "refuse", "turn_continues"),
    *(
        (word, tw.Outcome.ERROR, "refuse", "turn_error")
        for word in (
            "MALFORMED_FUNCTION_CALL",
            "UNEXPECTED_TOOL_CALL",
            "TOO_MANY_TOOL_CALLS",
            "MISSING_THOUGHT_SIGNATURE",
            "MALFORMED_RESPONSE",
            "MALFORMED_SOMETHING",
        )
    ),
    *(
        (word, tw.Outcome.FILTERED, "refuse", "turn_filtered")
        for word in ("SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "LANGUAGE", "MODEL_ARMOR")
    ),
    *((word, tw.Outcome.FILTERED, "refuse", "turn_filtered") for word in ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER")),
    *(
        (word, tw.Outcome.UNKNOWN, "refuse", "turn_unknown")
        for word in ("OTHER", "ESCALATION", "FINISH_REASON_UNSPECIFIED", "PUP_LIMITED_DISABLED", "NO_IMAGE", "NEW_WORD", "stop")
    ),
]


@pytest.mark.parametrize(("word", "outcome", "action", "reason"), TABLE)
def test_each_finish_reason(word: str, outcome: tw.Outcome, action: str, reason: str) -> None:
    p = play(sse(chunk(TIDE), chunk(finish=word)))
    assert (p.result.outcome, p.result.reason, p.result.ended) == (outcome, word, True)
    assert (p.decision.action, p.decision.reason) == (action, reason)
    assert p.calls[0].text == '{"port":"Brest"}'


def test_the_table_names_every_reason() -> None:
    assert REASONS.keys() <= {row[0] for row in TABLE}


@pytest.mark.parametrize("word", ["SAFETY", "OTHER", "BLOCKLIST", "JAILBREAK", "NEW_WORD"])
def test_a_blocked_prompt_ends_the_turn(word: str) -> None:
    p = play(sse({"promptFeedback": {"blockReason": word}}, {"usageMetadata": {"totalTokenCount": 4}}))
    assert (p.result.outcome, p.result.reason, p.result.ended) == (tw.Outcome.FILTERED, word, True)
    assert (p.decision.action, p.decision.reason) == ("refuse", "turn_filtered")


@pytest.mark.parametrize(
    "body",
    [
        sse(chunk(TIDE)),
        sse(chunk(TIDE), chunk({"text": "and"})),
        sse(chunk(TIDE), STOP)[:-12],
        sse(chunk(TIDE, index=0), chunk(finish="STOP", index=1)),
        b"",
        b"data: [DONE]\n\n",
        sse(chunk(TIDE)) + b"data: [DONE]\n\n",
    ],
)
def test_a_cut_never_runs(body: bytes) -> None:
    p = play(body)
    assert (p.result.outcome, p.result.truncated, p.result.ended) == (tw.Outcome.CUT, True, False)
    assert (p.decision.action, p.decision.reason) == ("refuse", "turn_not_ended")
    turn = tw.Turn(PROVIDER)
    turn.feed(body)
    with pytest.raises(tw.TurnTruncated) as caught:
        turn.finish()
    assert caught.value.result.truncated
    assert tw.TurnGate().decide(caught.value).action == "refuse"


def test_a_last_frame_without_its_blank_line_counts_if_it_is_whole() -> None:
    p = play(sse(chunk(TIDE), STOP).rstrip(b"\r\n"))
    assert p.decision.action == "run"
    assert "unterminated_frame" in p.result.marks


def test_stop_on_every_payload_is_no_end_before_the_end() -> None:
    p = play(sse(chunk({"text": "one "}, finish="STOP"), chunk({"text": "two"}, finish="STOP"), chunk(TIDE, finish="STOP")))
    assert (p.result.text, p.decision.action) == ("one two", "run")
    assert "delta_after_finish" not in p.result.marks


def test_deltas_after_the_finish_reason_still_count() -> None:
    p = play(sse(chunk({"text": "one"}, finish="STOP"), chunk(TIDE), chunk(), {"usageMetadata": {"totalTokenCount": 4}}))
    assert p.decision.action == "run"
    assert "delta_after_finish" in p.result.marks


def test_the_most_restrictive_reason_wins() -> None:
    p = play(sse(chunk(TIDE, finish="STOP"), chunk(finish="MAX_TOKENS"), chunk(finish="STOP")))
    assert (p.result.reason, p.decision.reason) == ("MAX_TOKENS", "turn_truncated")


def test_candidates_are_told_apart_by_index() -> None:
    one, two = call("f", {"n": 1}, id="c-1"), call("f", {"n": 2}, id="c-1")
    p = play(sse(chunk(one, index=0), chunk(two, index=1), chunk({"text": "b"}, index=1), chunk(index=0, finish="STOP"), chunk(index=1, finish="STOP")))
    assert [(c.choice, c.text) for c in p.calls] == [(0, '{"n":1}'), (1, '{"n":2}')]
    assert p.result.texts == {(1, "text"): "b"}
    assert p.decision.action == "run"


def test_an_absent_index_is_zero() -> None:
    p = play(sse(chunk(piece(name="f")), chunk(piece(number("$.n", 1)), index=0), chunk(CLOSER), STOP))
    assert (p.calls[0].text, p.decision.action) == ('{"n":1}', "run")


def test_a_continuation_token_is_where_to_go_on() -> None:
    last = chunk(finish="CONTINUATION")
    last["candidates"][0]["continuationToken"] = "tok"
    p = play(sse(chunk(TIDE), last))
    assert (p.result.resume_point, p.decision.reason) == ("tok", "turn_continues")


# -- errors and framing -----------------------------------------------------------------------------------------------

ERROR = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE", "details": [{"a": 1}]}}


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("shape", ["data", "pretty", "line"])
def test_an_error_object_in_either_shape_is_an_error(at: int, shape: str) -> None:
    good = [sse(chunk(TIDE)), sse(STOP)]
    error = sse(ERROR) if shape == "data" else (json.dumps(ERROR, indent=2 if shape == "pretty" else None) + "\n").encode()
    p = play(b"".join([*good[:at], error, *good[at:]]))
    assert (p.result.outcome, p.decision.action) == (tw.Outcome.ERROR, "refuse")
    assert isinstance(p.result.error, tw.ProviderError)
    assert (p.result.error.type, p.result.error.code, p.result.error.message) == ("UNAVAILABLE", "503", "overloaded")
    assert "turn_error" in p.decision.reasons


def test_an_error_may_lack_its_code() -> None:
    p = play(sse(chunk(TIDE), {"error": {"status": "INTERNAL", "message": "no"}}))
    assert (p.result.error.type, p.result.error.code) == ("INTERNAL", None)  # type: ignore[union-attr]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_body_that_starts_with_a_bracket_is_an_array(indent: int | None) -> None:
    p = play(json.dumps([chunk({"text": "hi"}), chunk(TIDE), STOP], indent=indent).encode())
    assert (p.result.text, p.decision.action) == ("hi", "run")


@pytest.mark.parametrize("body", [json.dumps([chunk(TIDE), STOP])[:-1], json.dumps([chunk(TIDE), STOP])[:-1] + ","])
def test_an_array_without_its_bracket_is_cut(body: str) -> None:
    p = play(body.encode())
    assert (p.decision.action, p.decision.reason) == ("refuse", "turn_not_ended")


def test_an_array_with_an_error_is_an_error() -> None:
    assert play(json.dumps([ERROR]).encode()).result.outcome is tw.Outcome.ERROR
    assert play(json.dumps([chunk(TIDE), ERROR]).encode()).decision.reasons == ("turn_error",)


def test_other_framings_give_the_same() -> None:
    payloads = [chunk(piece(name="f")), chunk(piece(string("$.a", "x"))), chunk(CLOSER), STOP]
    lines = "".join(json.dumps(payload) + "\n" for payload in payloads).encode()
    for p in (play(sse(*payloads)), play(lines, framing="ndjson"), play(json.dumps(payloads).encode())):
        assert (p.calls[0].text, p.decision.action) == ('{"a":"x"}', "run")


# -- streamed arguments -----------------------------------------------------------------------------------------------


def streamed(*pieces: Any, finish: str = "STOP") -> bytes:
    return sse(*(chunk(p) for p in pieces), chunk(finish=finish))


def test_the_example_of_the_protocol_page() -> None:
    p = play(
        streamed(
            {**piece(name="book_seat", id="c-71"), "thoughtSignature": "QUJD"},
            piece(string("$.train", "IC ", True)),
            piece(string("$.train", "204"), number("$.seats[0].row", 7), {"jsonPath": "$.extras[]"}),
            CLOSER,
        )
    )
    (seat,) = p.calls
    assert (seat.id, seat.name, seat.text) == ("c-71", "book_seat", '{"train":"IC 204","seats":[{"row":7}],"extras":[]}')
    assert seat.extra == {"thoughtSignature": "QUJD"}
    assert (p.decision.action, p.decision.runnable[0].arguments) == ("run", {"train": "IC 204", "seats": [{"row": 7}], "extras": []})
    assert p.log == [["CallStart", "0.0"], ["args", "0.0", seat.text], ["CallEnd", "0.0"], ["TurnEnd"]]


def test_the_live_value_grows_with_each_piece() -> None:
    turn = tw.Turn(PROVIDER)
    seen = []
    for p in (
        piece(name="set_lamp"),
        piece(string("$.room", "kit", True)),
        piece(string("$.room", "chen")),
        piece(number("$.levels[0]", 40), {"jsonPath": "$.on", "boolValue": True}),
    ):
        turn.feed(sse(chunk(p)))
        seen.append(turn.calls[0].snapshot())
    assert seen == [{}, {"room": "kit"}, {"room": "kitchen"}, {"room": "kitchen", "levels": [40], "on": True}]
    assert not turn.calls[0].complete
    turn.feed(sse(chunk(CLOSER, finish="STOP")))
    assert turn.calls[0].complete
    assert turn.finish().outcome is tw.Outcome.STOP


def test_empty_pieces_in_the_middle_are_nothing() -> None:
    p = play(streamed(piece(name="f"), piece(), piece(number("$.n", 1)), piece(), CLOSER))
    assert (p.calls[0].text, p.decision.action) == ('{"n":1}', "run")


def test_opener_and_closer_may_hold_pieces() -> None:
    p = play(streamed(piece(string("$.a", "x", True), name="f"), piece(string("$.a", "y"), more=False)))
    assert (p.calls[0].text, p.decision.action) == ('{"a":"xy"}', "run")
    p = play(streamed(piece(string("$.a", "x"), name="f", more=False)))
    assert (p.calls[0].text, p.decision.action) == ('{"a":"x"}', "run")


@pytest.mark.parametrize("closer", [{}, {"willContinue": False}, {"willContinue": None}, {"partialArgs": []}])
def test_a_streamed_call_without_pieces_has_no_arguments(closer: dict[str, Any]) -> None:
    p = play(streamed(piece(name="now"), {"functionCall": closer}))
    assert (p.calls[0].text, p.decision.action) == ("{}", "run")


def test_calls_follow_each_other() -> None:
    p = play(streamed(call("a"), piece(name="b"), piece(number("$.n", 1)), CLOSER, piece(name="b"), piece(number("$.n", 2)), CLOSER, call("c", {})))
    assert [(c.name, c.text) for c in p.calls] == [("a", ""), ("b", '{"n":1}'), ("b", '{"n":2}'), ("c", "{}")]
    assert len(p.decision.runnable) == 4


def test_each_candidate_has_its_own_open_call() -> None:
    p = play(
        sse(
            chunk(piece(name="f"), index=0),
            chunk(piece(name="f"), index=1),
            chunk(piece(number("$.n", 1)), index=0),
            chunk(piece(number("$.n", 2)), index=1),
            chunk(CLOSER, index=1, finish="STOP"),
            chunk(CLOSER, index=0, finish="STOP"),
        )
    )
    assert [c.text for c in p.calls] == ['{"n":1}', '{"n":2}']
    assert p.decision.action == "run"


def test_a_call_without_its_closer_refuses_the_turn() -> None:
    p = play(streamed(TIDE, piece(name="f"), piece(string("$.a", "x"))))
    assert [list(c.doubts) for c in p.calls] == [[], ["args_incomplete"]]
    assert p.calls[1].text == '{"a":"x'
    assert (p.decision.action, p.decision.reasons) == ("refuse", ("args_incomplete",))


def test_a_closer_whose_entry_continues_closes_nothing() -> None:
    opener = piece(name="f")
    p = play(streamed(opener, piece(string("$.a", "x", True), more=False)))
    assert p.decision.reasons == ("args_incomplete",)
    p = play(streamed(opener, piece(string("$.a", "x", True), more=False), piece(string("$.a", "y"), more=False)))
    assert (p.calls[0].text, p.decision.action) == ('{"a":"xy"}', "run")


def test_an_announced_piece_that_never_came_is_incomplete() -> None:
    p = play(streamed(piece(name="f"), piece(string("$.a", "x", True)), CLOSER))
    assert p.calls[0].text == '{"a":"x"}'
    assert p.calls[0].doubts == {"args_incomplete": "more of $.a was announced and never came"}
    assert p.decision.action == "refuse"


@pytest.mark.parametrize("second", [piece(name="f"), piece(name="g"), piece(name="f", id="c-9"), TIDE])
def test_a_named_piece_while_a_call_is_open_starts_another(second: dict[str, Any]) -> None:
    p = play(streamed(piece(name="f"), piece(string("$.a", "x")), second, CLOSER))
    assert list(p.calls[0].doubts) == ["args_incomplete"]
    assert p.calls[0].text == '{"a":"x'
    assert not p.calls[1].doubts
    assert p.decision.action == "refuse"


@pytest.mark.parametrize("orphan", [piece(string("$.a", "x"), more=False), piece(), CLOSER, piece(string("$.a", "x"), name=" ")])
def test_a_nameless_piece_without_an_open_call_refuses_the_turn(orphan: dict[str, Any]) -> None:
    p = play(streamed(TIDE, orphan))
    assert len(p.calls) == 2
    assert "orphan_arguments" in p.calls[1].doubts
    assert p.decision.action == "refuse"
    assert "orphan_arguments" in p.decision.reasons


def test_text_of_a_nameless_call_is_kept() -> None:
    p = play(streamed(piece(string("$.a", "x")), CLOSER))
    assert p.calls[0].text == '{"a":"x"}'
    assert p.decision.refused[0].reasons == ("orphan_arguments",)


def test_a_late_id_is_taken_and_another_id_is_ambiguous() -> None:
    p = play(streamed(piece(name="f"), piece(number("$.n", 1), id="c-1"), piece(id="c-1"), CLOSER))
    assert (p.calls[0].id, p.decision.action) == ("c-1", "run")
    p = play(streamed(piece(name="f", id="c-1"), piece(number("$.n", 1), id="c-2"), CLOSER))
    assert p.decision.reasons == ("args_ambiguous",)


def test_two_streamed_calls_under_one_id_are_a_conflict() -> None:
    p = play(streamed(piece(name="f", id="c-1"), CLOSER, piece(name="f", id="c-1"), CLOSER))
    assert [list(c.doubts) for c in p.calls] == [["args_conflict"], ["args_conflict"]]
    assert [c.id_is_synthetic for c in p.calls] == [False, True]


def test_a_streamed_call_repeated_whole_is_dropped() -> None:
    opener = piece(string("$.a", "x"), name="f", id="c-1", more=False)
    p = play(streamed(opener, call("f", {"a": "x"}, id="c-1")))
    assert (len(p.calls), p.decision.action) == (1, "run")
    p = play(streamed(opener, call("f", {"a": "y"}, id="c-1")))
    assert p.decision.reasons == ("args_conflict",)


@pytest.mark.parametrize(
    ("pieces", "text", "action"),
    [
        ([piece(name="f", args={}), piece(number("$.n", 1)), CLOSER], '{"n":1}', "run"),
        ([piece(name="f", args={"n": 1}), CLOSER], '{"n":1}', "run"),
        ([piece(name="f"), piece(more=False, args={"n": 1})], '{"n":1}', "run"),
        ([piece(name="f"), piece(number("$.n", 1)), piece(more=False, args={"n": 1.0})], '{"n":1}', "run"),
        ([piece(name="f"), piece(number("$.n", 1)), piece(more=False, args={"n": 2})], '{"n":1}', "refuse"),
        ([piece(name="f", args={"n": 2}), piece(number("$.n", 1)), CLOSER], '{"n":1}', "refuse"),
        ([piece(name="f", args={"n": 2}), piece(args={"n": 1}), CLOSER], '{"n":1}', "refuse"),
        ([piece(name="f", args=[1]), CLOSER], "{}", "refuse"),
    ],
)
def test_an_arguments_object_beside_the_pieces_must_agree(pieces: list[Any], text: str, action: str) -> None:
    p = play(streamed(*pieces))
    assert (p.calls[0].text, p.decision.action) == (text, action)
    assert list(p.calls[0].doubts) == ([] if action == "run" else ["args_conflict"])


@pytest.mark.parametrize(
    "entries",
    [
        [string("$.a", "x"), number("$.a", 1)],
        [number("$.a.b", 1), string("$.a", "x")],
        [string("a", "x")],
        [{"stringValue": "x"}],
        ["x"],
        [number("$[0]", 1)],
    ],
)
def test_pieces_that_contradict_each_other_refuse_the_turn(entries: list[Any]) -> None:
    p = play(streamed(TIDE, piece(name="f"), piece(*entries), CLOSER))
    assert list(p.calls[1].doubts) == ["args_conflict"]
    assert p.decision.reasons == ("args_conflict",)


def test_pieces_that_go_back_give_the_call_a_new_text() -> None:
    p = play(streamed(piece(name="f"), piece(number("$.a.b", 1)), piece(number("$.c", 2)), piece(number("$.a.d", 3)), CLOSER))
    (f,) = p.calls
    assert f.text == '{"a":{"b":1,"d":3},"c":2}'
    assert marks_of(f) == ["args_out_of_order"]
    assert p.decision.runnable[0].arguments == {"a": {"b": 1, "d": 3}, "c": 2}


def test_a_surrogate_pair_may_be_cut_between_pieces() -> None:
    body = streamed(piece(name="f"), piece(string("$.a", "x", True)), piece(string("$.a", "y")), CLOSER)
    body = body.replace(b'"x"', b'"\\ud83d"').replace(b'"y"', b'"\\ude00"')
    p = play(body)
    assert (p.calls[0].value, p.decision.action) == ({"a": "\U0001f600"}, "run")


def test_odd_keys_arrive_as_they_are() -> None:
    p = play(streamed(piece(name="f"), piece(number("$['odd.key']", 1), number('$["k\\"q"]', 2), number("$.__proto__.x", 3)), CLOSER))
    assert p.decision.runnable[0].arguments == {"odd.key": 1, 'k"q': 2, "__proto__": {"x": 3}}


@pytest.mark.parametrize("name", ["max_array_index", "max_partial_args", "max_depth", "max_argument_chars"])
def test_limits_are_errors_that_name_them(name: str) -> None:
    limits = tw.Limits(**{"max_array_index": 50, "max_depth": 20, "max_argument_chars": 500} | {name: 10})
    entries = [number("$.a" + "[0]" * 12, 1)] if name == "max_depth" else [number("$.a[11]", 1)] + [string("$.s", "x")] * 12
    p = play(streamed(piece(name="f"), piece(*entries), CLOSER), limits=limits)
    assert isinstance(p.error, tw.LimitExceeded)
    assert (p.error.limit, p.error.call) == (name, "0.0")
    assert p.error.code == ("turn.bad_partial_args" if name != "max_depth" else p.error.code)
    assert p.decision.action == "refuse"


@pytest.mark.parametrize("at", range(1, 5))
def test_a_body_cut_between_pieces_keeps_what_was_shown(at: int) -> None:
    pieces = [piece(name="f"), piece(string("$.a", "x", True)), piece(string("$.a", "y"), number("$.b", 1)), CLOSER]
    p = play(sse(*(chunk(p) for p in pieces[:at])))
    assert p.calls[0].text == ["{", '{"a":"x', '{"a":"xy","b":1', '{"a":"xy","b":1}'][at - 1]
    assert p.decision.reasons[0] == "turn_not_ended"


@pytest.mark.parametrize("word", ["MAX_TOKENS", "MALFORMED_FUNCTION_CALL"])
def test_a_streamed_call_does_not_run_on_other_reasons(word: str) -> None:
    p = play(streamed(piece(name="f"), piece(string("$.a", "x")), CLOSER, finish=word))
    assert p.decision.action == "refuse"


def test_pieces_that_wait_are_progress() -> None:
    turn = tw.Turn(PROVIDER)
    turn.feed(sse(chunk(piece(name="f"))))
    before = turn.progress
    turn.feed(sse(chunk(piece(number("$.a[3]", 1)))))
    first = turn.progress
    turn.feed(sse(chunk(piece(number("$.a[2]", 1)))))
    assert before < first < turn.progress


def test_a_turn_pickled_between_any_two_bytes_goes_on() -> None:
    body = streamed(piece(name="f"), piece(string("$.a", "x", True), number("$.b[1]", 2)), piece(string("$.a", "y"), number("$.b[0]", 1)), CLOSER)
    for at in range(0, len(body), 7):
        turn = tw.Turn(PROVIDER)
        turn.feed(body[:at])
        turn = pickle.loads(pickle.dumps(turn))
        turn.feed(body[at:])
        result = turn.finish()
        assert result.calls[0].text == '{"a":"xy","b":[1,2]}'
        assert tw.TurnGate().decide(result).action == "run"


def test_what_went_wrong_is_kept_beside_the_reason() -> None:
    last = chunk(finish="MALFORMED_FUNCTION_CALL")
    last["candidates"][0]["finishMessage"] = "Malformed function call: print(f("
    turn = tw.Turn(PROVIDER)
    turn.feed(sse(last))
    assert turn.finish().extra == {"finishMessage": "Malformed function call: print(f("}


def test_a_new_text_obeys_the_limit_of_argument_text() -> None:
    # Quotes count twice in the text, so that only the text itself meets the limit.
    back = [piece(string("$.a.b", '"' * 20)), piece(number("$.c", 1)), piece(string("$.a.b", '"' * 20))]
    p = play(streamed(piece(name="f"), *back, CLOSER), limits=tw.Limits(max_argument_chars=70))
    assert isinstance(p.error, tw.LimitExceeded)
    assert (p.error.limit, p.error.call) == ("max_argument_chars", "0.0")


def test_a_nameless_call_may_get_a_new_text_too() -> None:
    p = play(streamed(piece(number("$.a.b", 1)), piece(number("$.c", 2)), piece(number("$.a.d", 3)), CLOSER))
    assert p.calls[0].text == '{"a":{"b":1,"d":3},"c":2}'
    assert p.log[:2] == [["CallStart", "0.0"], ["args", "0.0", p.calls[0].text]]
    assert p.decision.action == "refuse"
