"""The framers: values of every rule, and the property that no way of cutting the bytes changes anything."""

from __future__ import annotations

import base64
import copy
import gc
import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire._framing import Frame, Framer, JSONArrayFramer, MessageFramer, NDJSONFramer, SSEFramer
from toolwire.errors import LimitExceeded, MalformedJSON, StreamError, UsageError

SHARED = Path(__file__).resolve().parents[1] / ".." / "shared"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="the shared corpora are not beside this clone")

Seen = dict[str, Any]


def shown(frame: Frame) -> tuple[Any, ...]:
    return frame.event, frame.data, frame.raw, frame.id, frame.offset, frame.terminated, frame.stray, tuple(frame.marks)


def error_facts(error: StreamError) -> tuple[Any, ...]:
    return type(error), str(error), error.code, error.offset, getattr(error, "limit", None), getattr(error, "value", None)


def run(make: Any, chunks: list[bytes], *, flush: bool = False, pickled_at: int | None = None) -> Seen:
    """Feed the chunks; everything that can be seen from outside."""
    framer = make()
    frames: list[Frame] = []
    error = None
    for i, chunk in enumerate(chunks):
        if i == pickled_at:
            framer = pickle.loads(pickle.dumps(framer))
        try:
            frames += framer.feed(chunk)
        except StreamError as e:
            error = e
            break
    in_frame = framer.in_frame
    try:
        frames += framer.finish(flush=flush)
    except StreamError as e:
        assert error is None or error is e
        error = e
    return {
        "frames": [shown(f) for f in frames],
        "error": error and error_facts(error),
        "in_frame": in_frame,
        "last_event_id": framer.last_event_id,
        "retry": framer.retry,
        "offset": framer.offset,
        "closed": getattr(framer, "closed", None),
    }


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted({c for c in cuts if 0 < c < len(data)}), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def each_byte(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def every_way(make: Any, data: bytes, *, flush: bool = False) -> Seen:
    """The result for the whole input, after checking that every single cut, byte by byte, and a pickle at the cut agree."""
    whole = run(make, [data], flush=flush)
    assert run(make, each_byte(data), flush=flush) == whole
    assert run(make, [x for b in each_byte(data) for x in (b, b"")], flush=flush) == whole
    for i in range(1, len(data)):
        assert run(make, [data[:i], data[i:]], flush=flush) == whole, i
        assert run(make, [data[:i], data[i:]], flush=flush, pickled_at=1) == whole, i
    return whole


def events(data: bytes, *, flush: bool = False, **options: Any) -> list[tuple[str, str, str]]:
    seen = every_way(lambda: SSEFramer(**options), data, flush=flush)
    assert seen["error"] is None
    return [(f[0], f[1], f[3]) for f in seen["frames"]]


# ---- the standard, slowly ----


def whatwg_decode(data: bytes) -> str:
    """Encoding standard 8.1.1, UTF-8 decoder, error mode "replacement", byte for byte."""
    out: list[str] = []
    point = needed = seen = 0
    low, high = 0x80, 0xBF
    i = 0
    while i < len(data):
        b = data[i]
        i += 1
        if needed == 0:
            if b <= 0x7F:
                out.append(chr(b))
            elif 0xC2 <= b <= 0xDF:
                needed, point = 1, b & 0x1F
            elif 0xE0 <= b <= 0xEF:
                low, high = (0xA0 if b == 0xE0 else 0x80), (0x9F if b == 0xED else 0xBF)
                needed, point = 2, b & 0xF
            elif 0xF0 <= b <= 0xF4:
                low, high = (0x90 if b == 0xF0 else 0x80), (0x8F if b == 0xF4 else 0xBF)
                needed, point = 3, b & 0x7
            else:
                out.append("\ufffd")
            continue
        if not low <= b <= high:
            point = needed = seen = 0
            low, high = 0x80, 0xBF
            i -= 1
            out.append("\ufffd")
            continue
        low, high = 0x80, 0xBF
        point = point << 6 | b & 0x3F
        seen += 1
        if seen == needed:
            out.append(chr(point))
            point = needed = seen = 0
    if needed:
        out.append("\ufffd")
    return "".join(out)


def interpret(data: bytes) -> tuple[list[tuple[str, str, str]], str, int | None]:
    """HTML standard 9.2.5 and 9.2.6 on the decoded text of a whole stream."""
    text = whatwg_decode(data).removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    out: list[tuple[str, str, str]] = []
    buffer: list[str] = []
    event_type = last_id_buffer = last_id = ""
    retry = None
    for line in lines:
        if line == "":
            last_id = last_id_buffer
            if buffer:
                out.append((event_type or "message", "\n".join(buffer), last_id))
            buffer, event_type = [], ""
            continue
        if line[0] == ":":
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event_type = value
        elif name == "data":
            buffer.append(value)
        elif name == "id" and "\0" not in value:
            last_id_buffer = value
        elif name == "retry" and value and all(c in "0123456789" for c in value):
            retry = min(int(value), 10**64 - 1)
    return out, last_id, retry


PIECES = [
    b"data:", b"data: ", b"data", b"event:", b"event: a", b"id:", b"id: 1", b"id", b"retry:", b"retry: 25", b"x", b" ", b":", b": c",
    b"\n", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\r", b"\xef\xbb\xbf", b"\xef\xbb", b"\0", b"\xe2\x82\xac", b"\xe2\x82", b"\xff", b"{}",
    b"0123456789abcdefghij", b"\xf0\x9f\x98\x80",
]  # fmt: skip
documents = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)
cut_places = st.lists(st.integers(0, 400), max_size=12)


@settings(deadline=None)
@given(documents)
def test_events_are_those_of_the_standard(data: bytes) -> None:
    seen = run(SSEFramer, [data])
    assert ([(f[0], f[1], f[3]) for f in seen["frames"]], seen["last_event_id"], seen["retry"]) == interpret(data)


@settings(max_examples=300, deadline=None)
@given(documents, cut_places, st.booleans(), st.booleans(), st.sampled_from([1, 5, 8, 20, 1 << 20]), st.integers(0, 5))
def test_sse_does_not_depend_on_cuts(data: bytes, cuts: list[int], stray: bool, flush: bool, limit: int, pickled_at: int) -> None:
    def make() -> SSEFramer:
        return SSEFramer(stray=stray, max_frame_bytes=limit)

    whole = run(make, [data], flush=flush)
    assert run(make, cut(data, cuts), flush=flush, pickled_at=pickled_at) == whole
    assert run(make, each_byte(data), flush=flush) == whole


@settings(deadline=None)
@given(documents)
def test_stray_lines_change_nothing_else(data: bytes) -> None:
    plain, stray = run(SSEFramer, [data], flush=True), run(lambda: SSEFramer(stray=True), [data], flush=True)
    stray["frames"] = [f for f in stray["frames"] if not f[6]]
    assert stray == plain


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([b"1", b" ", b"\r", b"\n", b"\r\n", b"{}", b"\xef\xbb\xbf", b"\xef", b"\xff"]), max_size=30).map(b"".join),
    cut_places, st.booleans(), st.sampled_from([1, 3, 100]), st.integers(0, 5),
)  # fmt: skip
def test_ndjson_does_not_depend_on_cuts(data: bytes, cuts: list[int], flush: bool, limit: int, pickled_at: int) -> None:
    def make() -> NDJSONFramer:
        return NDJSONFramer(max_frame_bytes=limit)

    whole = run(make, [data], flush=flush)
    assert run(make, cut(data, cuts), flush=flush, pickled_at=pickled_at) == whole
    assert run(make, each_byte(data), flush=flush) == whole


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=5), v, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(json_values, max_size=6), st.sampled_from([None, 1]), st.booleans(), cut_places)
def test_array_elements_are_those_of_the_array(values: list[Any], indent: int | None, ascii_only: bool, cuts: list[int]) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    seen = run(JSONArrayFramer, cut(data, cuts))
    assert [json.loads(f[2].decode("utf-8", "surrogatepass")) for f in seen["frames"]] == values
    assert (seen["error"], seen["closed"], seen["in_frame"], seen["offset"]) == (None, True, False, len(data))
    assert [data[f[4] : f[4] + len(f[2])] for f in seen["frames"]] == [f[2] for f in seen["frames"]]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b",", b'"', b'"a"', b"\\", b"1", b" ", b"x", b"\xef\xbb\xbf"]), max_size=25).map(b"".join),
    cut_places, st.booleans(), st.sampled_from([1, 4, 100]), st.integers(0, 5),
)  # fmt: skip
def test_array_does_not_depend_on_cuts(tail: bytes, cuts: list[int], flush: bool, limit: int, pickled_at: int) -> None:
    def make() -> JSONArrayFramer:
        return JSONArrayFramer(max_frame_bytes=limit)

    for data in (tail, b"[" + tail):
        whole = run(make, [data], flush=flush)
        assert run(make, cut(data, cuts), flush=flush, pickled_at=pickled_at) == whole
        assert run(make, each_byte(data), flush=flush) == whole


@settings(deadline=None)
@given(st.binary(max_size=30) | st.lists(st.sampled_from([b"\xf0", b"\x90", b"\x80", b"\xbf", b"\xed", b"\xa0", b"\xe0", b"\xf4", b"a"])).map(b"".join))
def test_data_decodes_as_the_encoding_standard_says(raw: bytes) -> None:
    frame = Frame(raw, offset=7)
    expected = whatwg_decode(raw)
    assert frame.data == expected
    try:
        raw.decode()
    except UnicodeDecodeError:
        assert frame.marks == ("invalid_utf8",)
        assert frame.marks[0].offset == 7
    else:
        assert frame.marks == ()


# ---- event streams, rule by rule ----

CASES: list[tuple[str, bytes, list[tuple[str, str, str]]]] = [
    ("lf", b"data: a\n\n", [("message", "a", "")]),
    ("cr", b"data: a\r\r", [("message", "a", "")]),
    ("crlf", b"data: a\r\n\r\n", [("message", "a", "")]),
    ("lf then crlf", b"data: a\n\r\n", [("message", "a", "")]),
    ("crlf inside a block is one end", b"data: a\r\ndata: b\r\n\r\n", [("message", "a\nb", "")]),
    ("bom", b"\xef\xbb\xbfdata: a\n\n", [("message", "a", "")]),
    ("only one bom", b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [("message", "b", "")]),
    ("bom later is part of a name", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [("message", "a", "")]),
    ("no bom after all", b"\xef\xbbdata: a\n\ndata: b\n\n", [("message", "b", "")]),
    ("bom in a value stays", b"data:\xef\xbb\xbfa\n\n", [("message", "\ufeffa", "")]),
    ("one space goes", b"data:  a \n\n", [("message", " a ", "")]),
    ("a tab stays", b"data:\ta\n\n", [("message", "\ta", "")]),
    ("first colon splits", b"data:a:b: c\n\n", [("message", "a:b: c", "")]),
    ("no colon", b"data\ndata\n\n", [("message", "\n", "")]),
    ("empty data is dispatched", b"data:\n\n", [("message", "", "")]),
    ("no data is not", b"event: a\n\nid: 1\n\nretry: 5\n\n", []),
    ("event type is reset", b"event: a\n\ndata: x\n\n", [("message", "x", "")]),
    ("last event type wins", b"event: a\nevent: b\ndata: x\n\n", [("b", "x", "")]),
    ("empty event type", b"event: a\nevent:\ndata: x\n\n", [("message", "x", "")]),
    ("names are exact", b"Data: a\ndata : b\n data: c\ndatax: d\n\n", []),
    ("id persists", b"id: 1\ndata: a\n\ndata: b\n\n", [("message", "a", "1"), ("message", "b", "1")]),
    ("id without data counts", b"id: 1\n\ndata: b\n\n", [("message", "b", "1")]),
    ("id is emptied", b"id: 1\ndata: a\n\nid\ndata: b\n\n", [("message", "a", "1"), ("message", "b", "")]),
    ("id with nul is ignored", b"id: 5\nid: b\0d\ndata: x\n\n", [("message", "x", "5")]),
    ("comments", b": hi\n:\ndata: a\n:data: b\n\n:\n\n", [("message", "a", "")]),
    ("unicode line ends are none", "data: a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n\n".encode(), [("message", "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg", "")]),
    ("nul in data stays", b"data: a\0b\n\n", [("message", "a\0b", "")]),
    ("ill-formed", b"data: a\xe2\x82\ndata: \xffb\n\n", [("message", "a\ufffd\n\ufffdb", "")]),
    ("unterminated block", b"data: a\n\ndata: b\n", [("message", "a", "")]),
    ("unterminated line", b"data: a\n\ndata: b", [("message", "a", "")]),
    ("names beyond ascii", "event: \u00e9\ndata: 1\n\nevent: \u00e9\ndata: 2\n\n".encode(), [("\u00e9", "1", ""), ("\u00e9", "2", "")]),
    ("ill-formed name", b"event: \xff\ndata: 1\n\nevent: \xef\xbf\xbd\ndata: 2\n\n", [("\ufffd", "1", ""), ("\ufffd", "2", "")]),
    ("long name", b"event: " + b"e" * 100 + b"\ndata: 1\n\n", [("e" * 100, "1", "")]),
    ("long lines", b"data: " + b"0123456789" * 20 + b"\r\ndata: " + b"abc" * 50 + b"\r\n\r\n", [("message", "0123456789" * 20 + "\n" + "abc" * 50, "")]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_event_stream_rules(data: bytes, expected: list[tuple[str, str, str]]) -> None:
    assert events(data) == expected
    assert interpret(data)[0] == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"retry: 1500\n", 1500),
        (b"retry:0\n", 0),
        (b"retry: 007\n", 7),
        (b"retry: 1500\nretry: 12x\nretry: -5\nretry: 1.5\nretry:\nretry\nretry: 1_0\nretry:  9\n", 1500),
        ("retry: \u0661\n".encode(), None),
        (b"retry: 15", None),
        (b"retry: 000\n", 0),
        (b"retry: 123456789012345678901234567890\n", 123456789012345678901234567890),
        (b"retry: 5" + b"0" * 64 + b"\n", 10**64 - 1),
    ],
)
def test_retry_takes_ascii_digits_only(data: bytes, expected: int | None) -> None:
    assert every_way(SSEFramer, data)["retry"] == expected
    assert every_way(SSEFramer, data, flush=True)["retry"] == expected


def test_last_event_id_changes_at_the_blank_line() -> None:
    f = SSEFramer()
    f.feed(b"id: 1\ndata: a\n")
    assert f.last_event_id == ""
    f.feed(b"\n")
    assert f.last_event_id == "1"
    f.feed(b"id: 2\n\n")
    assert f.last_event_id == "2"
    (frame,) = f.feed(b"id: 3\ndata: b") or f.finish(flush=True)
    assert (frame.id, frame.data) == ("3", "b")
    assert f.last_event_id == "2"


def test_last_event_id_of_an_earlier_connection() -> None:
    assert events(b"data: a\n\nid: z\ndata: b\n\n", last_event_id="\u2026") == [("message", "a", "\u2026"), ("message", "b", "z")]
    assert SSEFramer(last_event_id="9").last_event_id == "9"
    for bad in ("a\nb", "a\rb", "a\0"):
        with pytest.raises(UsageError):
            SSEFramer(last_event_id=bad)


def test_offset_is_that_of_the_first_field_line() -> None:
    data = b"\xef\xbb\xbf:c\r\nnofield\r\nid: 1\r\ndata: a\r\n\r\n\r\n: c\rretry: 1\rdata: b\r\rdata: c"
    seen = every_way(SSEFramer, data, flush=True)
    assert [f[4] for f in seen["frames"]] == [data.index(b"id: 1"), data.index(b"retry"), data.index(b"data: c")]
    assert [f[5] for f in seen["frames"]] == [True, True, False]
    assert seen["offset"] == len(data)


def test_flush_hands_out_what_the_standard_drops() -> None:
    assert events(b"event: e\nid: 1\ndata: a\ndata: b", flush=True) == [("e", "a\nb", "1")]
    assert events(b"data: a\n", flush=True) == [("message", "a", "")]
    assert events(b"data: a\r", flush=True) == [("message", "a", "")]
    assert events(b"data: \xe2\x82", flush=True) == [("message", "\ufffd", "")]
    assert events(b"event: e\n", flush=True) == []
    assert events(b"dat", flush=True) == []
    assert events(b"data: a\n\n", flush=True) == [("message", "a", "")]


def test_stray_lines_come_in_stream_order() -> None:
    data = b'data: 1\n{"error": {\r\n  "code": 5}}\r\n:c\ndata: 2\n\nid: 4\n\nhello'
    seen = every_way(lambda: SSEFramer(stray=True), data, flush=True)
    assert [(f[6], f[0], f[2], f[3], f[4], f[5]) for f in seen["frames"]] == [
        (True, "", b'{"error": {', "", 8, True),
        (True, "", b'  "code": 5}}', "", 21, True),
        (False, "message", b"1\n2", "", 0, True),
        (True, "", b"hello", "4", len(data) - 5, False),
    ]
    assert len(every_way(lambda: SSEFramer(stray=True), data)["frames"]) == 3
    assert [f[2] for f in every_way(SSEFramer, data, flush=True)["frames"]] == [b"1\n2"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", False),
        (b"\xef\xbb\xbf", False),
        (b"\xef\xbb", True),
        (b"data: a\n\n", False),
        (b"data: a\r\r", False),
        (b"data: a\r\n\r", False),
        (b"data: a\r\n\r\n", False),
        (b"data: a\n\n\n\n", False),
        (b"data: a\n\n: comment", False),
        (b"data: a\n\n: comment\n", False),
        (b"data: a\n\n:", False),
        (b"data: a\n\nd", True),
        (b"data: a", True),
        (b"data: a\n", True),
        (b"event: a\n: c", True),
        (b"id: 1\r", True),
        (b"retry: 1\n", True),
        (b"{}\n", False),
        (b"{}", True),
    ],
)
def test_in_frame(data: bytes, expected: bool) -> None:
    for stray in (False, True):
        assert every_way(lambda stray=stray: SSEFramer(stray=stray), data)["in_frame"] is expected
    f = SSEFramer()
    f.feed(data)
    f.finish(flush=True)
    assert f.in_frame is expected


# ---- lines, arrays, messages ----


def payloads(seen: Seen) -> list[tuple[bytes, int, bool]]:
    return [(f[2], f[4], f[5]) for f in seen["frames"]]


def test_ndjson_lines() -> None:
    data = b'\xef\xbb\xbf{"a":1}\n\n{"b":2}\r\n \t\r\n{"c":3}'
    assert payloads(every_way(NDJSONFramer, data)) == [(b'{"a":1}', 3, True), (b'{"b":2}', 12, True)]
    assert payloads(every_way(NDJSONFramer, data, flush=True))[2:] == [(b'{"c":3}', 25, False)]
    assert every_way(NDJSONFramer, data)["in_frame"] is True
    assert every_way(NDJSONFramer, b'{"a":1}\n  ')["in_frame"] is False
    assert payloads(every_way(NDJSONFramer, b"1\r2\r\n3\r", flush=True)) == [(b"1\r2", 0, True), (b"3", 5, False)]
    frame = NDJSONFramer().feed(b"1\n")[0]
    assert (frame.event, frame.id, frame.stray) == ("message", "", False)


def test_array_elements() -> None:
    data = b' [{"a": "]}\\""} ,\r\n[1,[2]],"x,]", -1.5e3,true,null\n] '
    seen = every_way(JSONArrayFramer, data)
    assert [f[2] for f in seen["frames"]] == [b'{"a": "]}\\""}', b"[1,[2]]", b'"x,]"', b"-1.5e3", b"true", b"null"]
    assert all(data[f[4] :].startswith(f[2]) and f[5] for f in seen["frames"])
    assert (seen["closed"], seen["in_frame"], seen["error"]) == (True, False, None)


def test_an_element_comes_as_soon_as_it_closes() -> None:
    f = JSONArrayFramer()
    assert f.feed(b'[{"a":1') == []
    assert f.in_frame
    assert [x.raw for x in f.feed(b"}")] == [b'{"a":1}']
    assert (f.in_frame, f.closed) == (False, False)
    assert f.feed(b",12") == []
    assert [x.raw for x in f.feed(b"]")] == [b"12"]
    assert f.closed


def test_array_cut_short() -> None:
    seen = every_way(JSONArrayFramer, b'[1,{"a":[')
    assert (payloads(seen), seen["closed"], seen["in_frame"], seen["error"]) == ([(b"1", 1, True)], False, True, None)
    seen = every_way(JSONArrayFramer, b'[1,{"a":[', flush=True)
    assert payloads(seen) == [(b"1", 1, True), (b'{"a":[', 3, False)]
    assert payloads(every_way(JSONArrayFramer, b"[1,2", flush=True)) == [(b"1", 1, True), (b"2", 3, False)]
    for data in (b"", b"[", b"[1,", b"[1 "):
        seen = every_way(JSONArrayFramer, data, flush=True)
        assert (seen["closed"], seen["in_frame"], seen["error"]) == (False, False, None)


@pytest.mark.parametrize(
    ("data", "frames", "code", "offset", "words"),
    [
        (b'{"error":1}', 0, "json.unexpected_byte", 0, "'{' where '[' should be"),
        (b"\xef\xbb[", 0, "json.unexpected_byte", 2, "'[' where '[' should be"),
        (b"[,1]", 0, "json.unexpected_byte", 1, "',' where an array element or ']' should be"),
        (b"[1,]", 1, "json.unexpected_byte", 3, "']' where an array element should be"),
        (b"[1,,2]", 1, "json.unexpected_byte", 3, "',' where an array element should be"),
        (b"[{}{}]", 1, "json.unexpected_byte", 3, "'{' where ',' or ']' should be"),
        (b"[1\xff]", 0, "json.unexpected_byte", 2, "byte 0xff where the end of an array element should be"),
        (b"[1]\nx", 1, "json.trailing_data", 4, "'x' after the array"),
        (b"[][]", 0, "json.trailing_data", 2, "'[' after the array"),
    ],
)
def test_array_errors(data: bytes, frames: int, code: str, offset: int, words: str) -> None:
    seen = every_way(JSONArrayFramer, data)
    kind, text, got_code, got_offset, _, _ = seen["error"]
    assert (kind, got_code, got_offset, len(seen["frames"]), seen["offset"]) == (MalformedJSON, code, offset, frames, offset)
    assert words in text


def test_messages() -> None:
    f = MessageFramer()
    assert [shown(x) for x in f.feed("h\u00e9")] == [("message", "h\u00e9", b"h\xc3\xa9", "", 0, True, False, ())]
    assert [(x.raw, x.offset) for x in f.feed(b"{}")] == [(b"{}", 3)]
    assert [(x.raw, x.offset) for x in f.feed(bytearray(b"x"))] == [(b"x", 5)]
    assert [(x.raw, x.offset) for x in f.feed("")] == [(b"", 6)]
    assert (f.offset, f.last_event_id, f.retry, f.in_frame) == (6, "", None, False)
    half = f.feed("\ud800")[0]
    assert (half.data, half.marks) == ("\ufffd\ufffd\ufffd", ("invalid_utf8",))
    g = pickle.loads(pickle.dumps(f))
    assert g.feed("y")[0].offset == 9
    assert f.finish() == []
    with pytest.raises(UsageError):
        f.feed("z")
    with pytest.raises(UsageError, match=r"takes str or bytes-like messages, not int"):
        g.feed(5)


# ---- limits and errors ----


@pytest.mark.parametrize(
    ("make", "data", "frames", "offset"),
    [
        (SSEFramer, b"data: 1\n\ndata: 12345", 1, 19),
        (SSEFramer, b"data: 1\n\ndata: 12345\n\ndata: 2\n\n", 1, 19),
        (SSEFramer, b"data:12\ndata:12\n\n", 0, 11),
        (SSEFramer, b"event: 12\n:c\nid: 1\n", 0, 14),
        (SSEFramer, b"data: 1234\n\nunknown: 123\n", 1, 22),
        (NDJSONFramer, b"1\n0123456789\n0123456789a", 2, 23),
        (NDJSONFramer, b" " * 11, 0, 10),
        (JSONArrayFramer, b'[1,"01234567","012345678"]', 2, 24),
        (JSONArrayFramer, b"[1,01234567890]", 1, 13),
        (JSONArrayFramer, b"[[[[[[[[[[[[[[", 0, 11),
    ],
)
def test_a_frame_beyond_the_limit(make: Any, data: bytes, frames: int, offset: int) -> None:
    seen = every_way(lambda: make(max_frame_bytes=10), data)
    assert len(seen["frames"]) == frames
    assert seen["error"][0] is LimitExceeded
    assert seen["error"][2:] == ("frame.too_large", offset, "max_frame_bytes", 10)
    assert (seen["in_frame"], seen["offset"]) == (True, offset)


def test_the_limit_itself_is_allowed() -> None:
    assert events(b"data: 1234\n\n:a comment may be longer\ndata:1\ndata\n\n", max_frame_bytes=10) == [("message", "1234", ""), ("message", "1\n", "")]
    assert events(b"id: 1\n\n" * 20 + b"data: 1\n\n", max_frame_bytes=8) == [("message", "1", "1")]
    assert [f.raw for f in MessageFramer(max_frame_bytes=3).feed("abc")] == [b"abc"]


def test_the_error_comes_after_the_good_frames_and_stays() -> None:
    f = SSEFramer(max_frame_bytes=10)
    assert [x.data for x in f.feed(b"data: 1\n\ndata: 1234567")] == ["1"]
    with pytest.raises(LimitExceeded) as first:
        f.feed(b"")
    assert first.value.option == "SSEFramer(max_frame_bytes=...)"
    assert "max_frame_bytes=10" in str(first.value)
    for call in (lambda: f.feed(b"data: x\n\n"), f.finish, lambda: f.finish(flush=True)):
        with pytest.raises(LimitExceeded) as again:
            call()
        assert again.value is first.value
    assert f.offset == 19
    with pytest.raises(LimitExceeded) as restored:
        pickle.loads(pickle.dumps(f)).finish()
    assert error_facts(restored.value) == error_facts(first.value)


def test_message_limit() -> None:
    f = MessageFramer(max_frame_bytes=3)
    f.feed("ab")
    assert f.feed("h\u00e9h\u00e9") == []
    with pytest.raises(LimitExceeded) as caught:
        f.feed("x")
    assert (caught.value.offset, caught.value.option, f.offset) == (5, "MessageFramer(max_frame_bytes=...)", 5)


@pytest.mark.parametrize("make", [SSEFramer, NDJSONFramer, JSONArrayFramer, MessageFramer])
def test_misuse_is_said_in_one_line(make: Any) -> None:
    f = make()
    assert isinstance(f, Framer)
    for bad in (5, None, [b"x"]):
        with pytest.raises(UsageError, match=f"{make.__name__}.feed"):
            f.feed(bad)
    for bad in (0, -1, 1.5, "1", None, 1 << 70):
        with pytest.raises(UsageError, match="max_frame_bytes"):
            make(max_frame_bytes=bad)
    with pytest.raises(TypeError):
        make(10)
    assert f.finish() == []
    assert f.finish(flush=True) == []
    with pytest.raises(UsageError, match="after finish"):
        f.feed(b"x")
    assert pickle.loads(pickle.dumps(f)).finish() == []
    with pytest.raises(UsageError):
        Framer()


def test_chunks_are_bytes_like() -> None:
    with pytest.raises(UsageError, match="takes bytes-like chunks, not str"):
        SSEFramer().feed("data: x\n\n")
    with pytest.raises(UsageError, match="contiguous"):
        SSEFramer().feed(memoryview(b"data: x\n\n")[::2])
    for kind in (bytes, bytearray, memoryview):
        assert [f.data for f in SSEFramer().feed(kind(b"data: x\n\n"))] == ["x"]


def test_a_chunk_may_change_after_feed() -> None:
    f, chunk = SSEFramer(), bytearray(b"event: e\nid: 1\ndata: abc\n")
    f.feed(chunk)
    chunk[:] = b"?" * len(chunk)
    assert [shown(x)[:4] for x in f.feed(b"\n")] == [("e", "abc", b"abc", "1")]


def test_a_finaliser_that_feeds_is_refused_or_served() -> None:
    f, refused = SSEFramer(), []

    class Loop:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            try:
                f.feed(b": comment\n")
            except UsageError as e:
                refused.append(str(e))

    before = gc.get_threshold()
    got = []
    gc.set_threshold(1, 1, 1)
    try:
        for i in range(50):
            Loop()
            got += f.feed(b"data: %d\n\ndata: x\n\n" % i)
    finally:
        gc.set_threshold(*before)
    assert [x.data for x in got] == [s for i in range(50) for s in (str(i), "x")]
    assert all("at work" in text for text in refused)


# ---- frames ----


def test_frame_is_a_value() -> None:
    (a,) = SSEFramer().feed(b"event: e\nid: 7\ndata: abc\n\n")
    assert a == Frame(b"abc", event="e", id="7") == pickle.loads(pickle.dumps(a)) == copy.deepcopy(a)
    assert hash(a) == hash(copy.copy(a))
    assert a != Frame(b"abc") and a != "abc"
    assert a.data is a.data
    assert repr(a) == "Frame(b'abc', event='e', offset=0, id='7')"
    assert repr(Frame(b"x" * 50, terminated=False, stray=True)).endswith("x'..., event='message', offset=0, terminated=False, stray=True)")
    blank = Frame.__new__(Frame)
    assert (blank.data, blank.marks) == ("", ())
    with pytest.raises(AttributeError):
        a.raw = b""
    with pytest.raises(AttributeError):
        a.other = 1


def test_event_names_are_shared() -> None:
    f = SSEFramer()
    a, b = f.feed(b"event: content_block_delta\ndata: 1\n\nevent: content_block_delta\ndata: 2\n\n")
    assert a.event is b.event


def test_default_limit() -> None:
    line = b"x" * ((16 << 20) - 6)
    f = SSEFramer()
    assert f.max_frame_bytes == 16 << 20
    for i in range(0, len(line), 1 << 20):
        f.feed(b"data: " * (i == 0) + line[i : i + (1 << 20)])
    assert f.feed(b"\n\n")[0].raw == line
    assert f.feed(b"data: " + line + b"y") == []
    with pytest.raises(LimitExceeded):
        f.finish()


# ---- shared cases ----


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def corpus() -> list[dict[str, Any]]:
    found = []
    for path in sorted((SHARED / "corpora" / "sse").glob("*.jsonl")):
        found += json_lines(path)
    return [c for c in found if c.get("kind", "stream") == "stream" or c.get("expected_open")]


@needs_shared
@pytest.mark.parametrize("case", corpus(), ids=lambda c: c["name"])
def test_corpus(case: dict[str, Any]) -> None:
    data = base64.b64decode(case["input"])

    def make() -> SSEFramer:
        return SSEFramer(last_event_id=case["initial_last_event_id"])

    ways = [[data], each_byte(data)]
    if isinstance(case.get("chunks"), list):
        at, chunks = 0, []
        for size in case["chunks"]:
            chunks.append(data[at : at + size])
            at += size
        assert at == len(data)
        ways.append(chunks)
    if len(data) < 2000:
        ways += [[data[:i], data[i:]] for i in range(1, len(data))]
    for chunks in ways:
        seen = run(make, chunks)
        assert [{"event": f[0], "data": f[1], "last_event_id": f[3]} for f in seen["frames"]] == case["expected"]
        assert seen["retry"] == case["expected_retry"]
        assert seen["last_event_id"] == case["expected_final_last_event_id"]
        assert seen["error"] is None


def sse_cases() -> list[dict[str, Any]]:
    path = SHARED / "cases.jsonl"
    return [c for c in json_lines(path) if c["area"] == "sse"] if path.exists() else []


@needs_shared
@pytest.mark.parametrize("case", sse_cases(), ids=lambda c: f"{c['n']}-{c['source']}")
def test_shared_cases(case: dict[str, Any]) -> None:
    chunks = [chunk.encode("latin-1") for chunk in case["input"]]
    for way in ([b"".join(chunks)], chunks, each_byte(b"".join(chunks))):
        seen = run(SSEFramer, way, flush=True)
        got = [{"event": f[0], "data": f[1], "id": f[3]} for f in seen["frames"]]
        assert len(got) == len(case["expected"]["events"])
        for frame, expected in zip(got, case["expected"]["events"], strict=True):
            assert {k: frame[k] for k in expected if k in frame} == {k: v for k, v in expected.items() if k in frame}
        assert seen["retry"] == case["expected"].get("retry")
