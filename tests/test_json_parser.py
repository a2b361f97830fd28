"""``JSONParser`` and ``loads``, rule by rule."""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import math
import pickle
import random
import sys
import threading
from typing import Any

import pytest

import toolwire as tw
from helpers import every_chunking, outcome, run, same


def fed(data: bytes | str, **options: Any) -> tw.JSONParser:
    p = tw.JSONParser(**options)
    p.feed(data)
    return p


def views(text: str, **options: Any) -> list[Any]:
    """The snapshot after each byte of ``text``."""
    p = tw.JSONParser(**options)
    out = []
    for byte in text.encode():
        p.feed(bytes([byte]))
        out.append(p.snapshot())
    return out


def fails(data: bytes | str, *, rng: random.Random | None = None, **options: Any) -> tuple[str, int, Any]:
    """Code, offset and value of the error that ``data`` ends in; the same for every cut."""
    outcomes = {run(tw.JSONParser(**options), chunks) for chunks in every_chunking(data, rng or random.Random(1))}
    assert len(outcomes) == 1, outcomes
    p = tw.JSONParser(**options)
    with pytest.raises(tw.StreamError) as caught:
        p.feed(data)
        p.finish()
    assert caught.value.offset is not None
    return caught.value.code, caught.value.offset, p.value


# -- three states


def test_a_fresh_parser_is_incomplete_and_shows_nothing() -> None:
    p = tw.JSONParser()
    assert p.value is tw.MISSING and p.snapshot() is tw.MISSING
    assert (p.complete, p.consumed, p.offset, p.unused_data, p.path, list(p.marks)) == (False, None, 0, b"", (), [])


def test_feed_is_true_from_the_byte_on_that_closes_the_root() -> None:
    p = tw.JSONParser()
    assert [p.feed(bytes([c])) for c in b' {"a":[1]} x'] == [False] * 9 + [True] * 3
    assert (p.complete, p.consumed, p.offset, p.unused_data) == (True, 10, 12, b" x")


def test_an_empty_feed_does_nothing() -> None:
    p = tw.JSONParser()
    for empty in (b"", "", bytearray(), memoryview(b"")):
        assert p.feed(empty) is False
    assert p.feed(b"[]") is True and p.feed(b"") is True
    assert p.offset == 2 and p.unused_data == b""


@pytest.mark.parametrize("text", ["", " \n\t\r"])
def test_nothing_but_white_space_is_incomplete_and_no_error_before_the_end(text: str) -> None:
    p = fed(text)
    assert p.value is tw.MISSING and not p.complete
    with pytest.raises(tw.TruncatedJSON) as caught:
        p.finish()
    assert (caught.value.code, caught.value.offset) == ("json.truncated", len(text))


@pytest.mark.parametrize(
    "text",
    ["[", "{", '"', '"a', '"\\', '"\\u', '"\\u00e', '"\\ud83d', '"\\ud83d\\']
    + ["[1", "[1,", "[1 ", '{"a"', '{"a":', '{"a":1', '{"a":1,', "tru", "-", "1.", "1e", "1e+"],
)
def test_a_cut_document_is_truncated_never_malformed(text: str) -> None:
    p = fed(text)
    assert not p.complete and p.consumed is None
    with pytest.raises(tw.TruncatedJSON) as caught:
        p.finish()
    assert (caught.value.code, caught.value.offset) == ("json.truncated", len(text))
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, tw.StreamError)
    assert not isinstance(caught.value, tw.MalformedJSON)


def test_truncated_inside_a_character() -> None:
    assert fails(b'["\xf0\x9f\x98') == ("json.truncated", 5, [""])


def test_finish_is_the_value_and_may_be_asked_again() -> None:
    p = fed(b'{"a": 1} \n')
    assert p.finish() == {"a": 1}
    assert p.finish() == {"a": 1}
    assert p.value == {"a": 1}


def test_feeding_after_finish_is_a_usage_error_until_reset() -> None:
    p = fed(b"[1]")
    p.finish()
    for _ in range(2):
        with pytest.raises(tw.UsageError):
            p.feed(b" ")
    assert p.value == [1]
    p.reset()
    assert p.feed(b"[2]") is True and p.finish() == [2]


# -- errors

MALFORMED = [
    ("[1,,2]", "json.unexpected_byte", 3),
    ("]", "json.unexpected_byte", 0),
    ("[1 2", "json.unexpected_byte", 3),
    ('{"a": 1,, ', "json.unexpected_byte", 8),
    ("{a:1}", "json.unexpected_byte", 1),
    ("{'a':1}", "json.unexpected_byte", 1),
    ('{"a" 1}', "json.unexpected_byte", 5),
    ('{"a":1,}', "json.unexpected_byte", 7),
    ("[1,]", "json.unexpected_byte", 3),
    ("[,1]", "json.unexpected_byte", 1),
    ("[1}", "json.unexpected_byte", 2),
    ('{"a":1]', "json.unexpected_byte", 6),
    ("[12:", "json.unexpected_byte", 3),
    ("[true x", "json.unexpected_byte", 6),
    ("[truex", "json.unexpected_byte", 5),
    ("\x0b1", "json.unexpected_byte", 0),
    ("\u00a01", "json.unexpected_byte", 0),
    ("\ufeff{}", "json.unexpected_byte", 0),
    ("/**/1", "json.unexpected_byte", 0),
    ("NaN", "json.unexpected_byte", 0),
    ("[Infinity]", "json.unexpected_byte", 1),
    ("+1", "json.unexpected_byte", 0),
    (".5", "json.unexpected_byte", 0),
    ("nul!", "json.bad_literal", 3),
    ("[tRue]", "json.bad_literal", 2),
    ("nan", "json.bad_literal", 1),
    ("falsE", "json.bad_literal", 4),
    ("01", "json.bad_number", 1),
    ("-01", "json.bad_number", 2),
    ("1.e5", "json.bad_number", 2),
    ("1.x", "json.bad_number", 2),
    ("1ee", "json.bad_number", 2),
    ("1e+-", "json.bad_number", 3),
    ("--1", "json.bad_number", 1),
    ("-Infinity", "json.bad_number", 1),
    ("- 1", "json.bad_number", 1),
    ('"\\x', "json.bad_escape", 2),
    ('"\\u00g0"', "json.bad_escape", 5),
    ('"\\u"', "json.bad_escape", 3),
    ('"\\U0041"', "json.bad_escape", 2),
    ('{"ns":"Lib\\Quay"}', "json.bad_escape", 11),
    ('"a\nb"', "json.control_character", 2),
    ('"\x00"', "json.control_character", 1),
    ('{"\t":1}', "json.control_character", 2),
    ('"\\ud800x', "json.lone_surrogate", 7),
    ('"\\ud800"', "json.lone_surrogate", 7),
    ('"\\ud800\\n', "json.lone_surrogate", 8),
    ('"\\ud800\\u0041', "json.lone_surrogate", 9),
    ('"\\ud800\\ud800', "json.lone_surrogate", 10),
    ('"\\udc00', "json.lone_surrogate", 4),
    ('{"a":"\\ud800x","b":"\\udc01"}', "json.lone_surrogate", 12),
    ('{"\\ud800":1}', "json.lone_surrogate", 8),
]


@pytest.mark.parametrize(("text", "code", "offset"), MALFORMED)
def test_malformed_at_the_first_byte_that_can_not_continue(text: str, code: str, offset: int) -> None:
    assert fails(text.encode())[:2] == (code, offset)
    assert fails(text)[:2] == (code, offset)
    with pytest.raises(tw.MalformedJSON) as caught:
        tw.loads(text)
    assert (caught.value.code, caught.value.offset) == (code, offset)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b'"\xff', 1),
        (b'"\x80', 1),
        (b'"\xc0\x80', 1),
        (b'"\xc3"', 2),
        (b'"\xe0\x80\x80', 2),
        (b'"\xe2\x82"', 3),
        (b'"\xed\xa0\x80', 2),
        (b'"\xf0\x80\x80\x80', 2),
        (b'"\xf0\x9f\x98"', 4),
        (b'"\xf4\x90\x80\x80', 2),
        (b'"\xf5', 1),
        (b'{"\xfc', 2),
    ],
)
def test_ill_formed_utf8_is_refused_at_the_byte_that_makes_it_so(data: bytes, offset: int) -> None:
    for mode in ("error", "replace", "keep"):
        assert fails(data, surrogates=mode)[:2] == ("json.bad_utf8", offset)


@pytest.mark.parametrize("after", [b'"', b"x", b".", b"-", b"/", b"\\", b"\x00", b"\xc3"])
def test_a_root_number_that_runs_into_something_else_is_malformed_there(after: bytes) -> None:
    code, offset, value = fails(b"12" + after + b"3x")
    assert value is tw.MISSING if after != b"." else True
    assert code == "json.bad_number" and offset == (4 if after == b"." else 2)


def test_a_message_says_what_was_found_where() -> None:
    with pytest.raises(tw.MalformedJSON) as caught:
        tw.loads(b'{"a":[0,{"b":"\\x"}]}')
    text = str(caught.value)
    assert "json.bad_escape" in text and "15" in text and "x" in caught.value.message
    assert caught.value.path == ("a", 1, "b")


def test_an_error_is_the_same_object_until_reset() -> None:
    p = tw.JSONParser()
    seen = []
    for call in (lambda: p.feed(b"[1,,"), lambda: p.feed(b"2]"), lambda: p.feed(b""), p.finish, lambda: p.feed("x")):
        with pytest.raises(tw.MalformedJSON) as caught:
            call()
        seen.append(caught.value)
    assert len({id(e) for e in seen}) == 1
    assert p.value == [1] and not p.complete and p.offset == 3
    p.reset()
    assert p.value is tw.MISSING and (p.offset, p.consumed, p.unused_data, list(p.marks)) == (0, None, b"", [])
    assert p.feed(b"[1,2]") and p.finish() == [1, 2]


def test_a_truncation_sticks_too() -> None:
    p = fed(b"[1")
    with pytest.raises(tw.TruncatedJSON) as first:
        p.finish()
    for call in (p.finish, lambda: p.feed(b"]")):
        with pytest.raises(tw.TruncatedJSON) as again:
            call()
        assert again.value is first.value
    p.reset()
    assert p.feed(b"[1]")


def test_value_keeps_what_was_good() -> None:
    assert fails(b'{"a":[1,"two\\q')[2] == {"a": [1, "two"]}
    assert fails(b'{"a":1,"b":tru!')[2] == {"a": 1}
    assert fails(b'{"a":1,"b":12x')[2] == {"a": 1}
    assert fails(b'{"a":1,"b\xff')[2] == {"a": 1}
    assert fails(b'{"a":[12}')[2] == {"a": [12]}
    assert fails(b'["caf\xc3\xc3')[2] == ["caf"]
    p = tw.JSONParser()
    with pytest.raises(tw.MalformedJSON):
        p.feed(b'["a","b" x')
    assert p.value == ["a", "b"] == p.snapshot()


def test_errors_pickle() -> None:
    with pytest.raises(tw.MalformedJSON) as caught:
        tw.loads(b"[x")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.code, again.offset, str(again)) == (tw.MalformedJSON, "json.unexpected_byte", 1, str(caught.value))


# -- where the root ends


@pytest.mark.parametrize("after", [" ", "\n", "\r", "\t", ",", ":", "[", "]", "{", "}"])
def test_a_root_number_is_complete_at_a_delimiter(after: str) -> None:
    p = fed(b"-12")
    assert not p.complete and p.value is tw.MISSING and p.consumed is None
    assert p.feed(after) is True
    assert (p.value, p.consumed, p.offset, p.unused_data) == (-12, 3, 4, after.encode())
    if after.isspace():
        assert p.finish() == -12
    else:
        with pytest.raises(tw.MalformedJSON) as caught:
            p.finish()
        assert (caught.value.code, caught.value.offset) == ("json.trailing_data", 3)


@pytest.mark.parametrize("data", [b"0,0", b"-1.5,-2,"])
def test_a_number_behind_a_root_number_is_no_next_element(data: bytes) -> None:
    first, _, rest = data.partition(b",")
    for chunks in ([data], [data[:1], data[1:]]):
        p = tw.JSONParser()
        assert [p.feed(c) for c in chunks][-1] is True
        assert (p.value, p.consumed, p.unused_data) == (float(first), len(first), b"," + rest)
    with pytest.raises(tw.MalformedJSON, match="trailing_data"):
        tw.loads(data)


@pytest.mark.parametrize(("text", "value"), [("31", 31), ("0", 0), ("-0", 0), ("1.5", 1.5), ("1e2", 100.0), ("12E-1", 1.2)])
def test_a_root_number_is_complete_at_the_end_of_input(text: str, value: float) -> None:
    p = fed(text)
    assert p.value is tw.MISSING and not p.complete
    assert same(p.finish(), value)
    assert p.complete and p.consumed == len(text)


@pytest.mark.parametrize("text", ["true", "false", "null", '"x"', '""', "[]", "{}", "[1]"])
def test_every_other_root_is_complete_at_its_last_byte(text: str) -> None:
    p = tw.JSONParser()
    assert p.feed(text[:-1]) is False
    assert p.feed(text[-1:]) is True and p.consumed == len(text)
    assert p.feed("x") is True and p.unused_data == b"x"
    with pytest.raises(tw.MalformedJSON) as caught:
        p.finish()
    assert (caught.value.code, caught.value.offset) == ("json.trailing_data", len(text))
    assert same(p.value, json.loads(text)) and p.complete


def test_consumed_is_in_utf8_bytes_and_unused_data_is_bytes() -> None:
    p = tw.JSONParser()
    p.feed(' ["é😀"]')
    p.feed(" ü{")
    assert (p.consumed, p.offset, p.unused_data) == (11, 15, " ü{".encode())
    with pytest.raises(tw.MalformedJSON) as caught:
        p.finish()
    assert caught.value.offset == 12


def test_data_after_the_root_is_never_parsed() -> None:
    p = fed(b"[1]\xff\x00[1,,")
    assert p.complete and p.value == [1]
    assert p.unused_data == b"\xff\x00[1,,"


def test_trailing_data_is_at_the_first_byte_that_is_no_space() -> None:
    p = tw.JSONParser()
    p.feed(b'["foo')
    assert (p.offset, p.consumed) == (5, None)
    p.feed(b'"]  9')
    assert (p.offset, p.consumed) == (10, 7)
    with pytest.raises(tw.MalformedJSON) as caught:
        p.finish()
    assert (caught.value.code, caught.value.offset) == ("json.trailing_data", 9)


# -- what is shown


def test_what_is_shown_after_every_byte() -> None:
    text = '{"k":"a\\n\\u00e9é","n":[12,-0.5],"l":tru'
    got = views(text)
    data = text.encode()
    shown = {data[: i + 1]: v for i, v in enumerate(got)}
    assert shown[b"{"] == {}
    assert shown[b'{"k'] == {} and shown[b'{"k"'] == {} and shown[b'{"k":'] == {}
    assert shown[b'{"k":"'] == {"k": ""}
    assert shown[b'{"k":"a'] == {"k": "a"} == shown[b'{"k":"a\\']
    assert shown[b'{"k":"a\\n'] == {"k": "a\n"} == shown[b'{"k":"a\\n\\u00e']
    assert shown[b'{"k":"a\\n\\u00e9'] == {"k": "a\né"} == shown[b'{"k":"a\\n\\u00e9\xc3']
    assert shown[b'{"k":"a\\n\\u00e9\xc3\xa9'] == {"k": "a\néé"}
    head, k = b'{"k":"a\\n\\u00e9\xc3\xa9"', "a\néé"
    assert shown[head + b',"n":['] == {"k": k, "n": []} == shown[head + b',"n":[12']
    assert shown[head + b',"n":[12,'] == {"k": k, "n": [12]} == shown[head + b',"n":[12,-0.5']
    assert shown[head + b',"n":[12,-0.5]'] == {"k": k, "n": [12, -0.5]}
    assert shown[data] == {"k": k, "n": [12, -0.5]}


def test_an_open_root_string_is_shown_and_never_half_a_pair() -> None:
    assert views('"\\ud83e\\udded"') == [""] * 12 + ["🧭"] * 2
    p = tw.JSONParser()
    p.feed(b'"\\ud83e\\u')
    assert p.value == ""
    p.feed(b'dded"')
    assert (p.value, p.consumed) == ("🧭", 14)


def test_a_raw_character_is_shown_whole_only() -> None:
    p = tw.JSONParser()
    seen = []
    for byte in '"aé€😀"'.encode():
        p.feed(bytes([byte]))
        seen.append(p.value)
    assert seen == ["", "a", "a", "aé", "aé", "aé", "aé€", "aé€", "aé€", "aé€", "aé€😀", "aé€😀"]


def test_a_literal_is_shown_when_it_is_whole() -> None:
    assert views("[true,null]") == [[]] * 4 + [[True]] * 5 + [[True, None]] * 2
    assert views("fals") == [tw.MISSING] * 4


def test_a_repeated_key_changes_when_its_second_value_is_shown() -> None:
    p = tw.JSONParser()
    for data, value in [
        (b'{"a":"xy","b":0,"a"', {"a": "xy", "b": 0}),
        (b":1", {"a": "xy", "b": 0}),
        (b"2,", {"a": 12, "b": 0}),
        (b'"a":[', {"a": [], "b": 0}),
        (b'{"c":', {"a": [{}], "b": 0}),
        (b"1}]}", {"a": [{"c": 1}], "b": 0}),
    ]:
        p.feed(data)
        assert same(p.value, value) and same(p.snapshot(), value)
    assert same(p.finish(), json.loads('{"a":"xy","b":0,"a":12,"a":[{"c":1}]}'))


def test_the_live_view_grows_in_place() -> None:
    p = fed(b'{"a":[1,')
    root, inner = p.value, p.value["a"]
    p.feed(b'{"b":2}],"c":"x')
    assert p.value is root and root["a"] is inner and root == {"a": [1, {"b": 2}], "c": "x"}
    p.feed(b'y"}')
    assert p.finish() is root and root == {"a": [1, {"b": 2}], "c": "xy"}


def test_a_snapshot_is_not_changed_by_later_feeds() -> None:
    text = b'{"a":[1,{"b":"xy","c":[true,null]}],"d":{"e":[[],{}]},"f":"tail"}'
    for read_value in (False, True):
        p = tw.JSONParser()
        kept = []
        for byte in text:
            p.feed(bytes([byte]))
            kept.append((p.snapshot(), repr(p.snapshot())))
            if read_value:
                assert repr(p.value) == kept[-1][1]
        assert p.finish() == json.loads(text)
        for i, (snapshot, then) in enumerate(kept):
            assert repr(snapshot) == then == repr(fed(text[: i + 1]).value)


def test_wide_containers_snapshot_like_small_ones() -> None:
    p = tw.JSONParser()
    p.feed(b'{"w":[')
    kept = []
    for i in range(200):
        p.feed(b'%d,{"k%d":"v"},' % (i, i))
        if i % 7 == 0:
            kept.append((p.snapshot(), i))
        p.snapshot()
    p.feed(b'0],"o":{')
    for i in range(200):
        p.feed(b'"%d":%d,' % (i, i))
        if i % 7 == 0:
            kept.append((p.snapshot(), 1000 + i))
    p.feed(b'"z":0}}')
    assert p.finish()["o"] == {**{str(i): i for i in range(200)}, "z": 0}
    for snapshot, i in kept:
        if i < 1000:
            assert snapshot == {"w": [x for n in range(i + 1) for x in (n, {f"k{n}": "v"})]}
        else:
            assert snapshot["o"] == {str(n): n for n in range(i - 999)} and len(snapshot["w"]) == 401


def test_a_snapshot_after_the_end_and_after_an_error_stays() -> None:
    p = fed(b'{"a":[1]}')
    snapshot = p.snapshot()
    p.reset()
    p.feed(b'{"b":[')
    assert snapshot == {"a": [1]}
    with pytest.raises(tw.MalformedJSON):
        p.feed(b"x")
    assert p.snapshot() == {"b": []} == p.value


# -- path and state


def test_path_is_where_the_parser_stands() -> None:
    for text, path in [
        ("", ()),
        ('"x', ()),
        ('{"a":', ("a",)),
        ('{"a":"x', ("a",)),
        ('{"a":[', ("a",)),
        ('{"a":[12', ("a", 0)),
        ('{"a":[12,', ("a", 1)),
        ('{"a":[12,{"é\\n":tr', ("a", 1, "é\n")),
        ("[[],[[1,2,", (1, 0, 2)),
        ('{"a":[]}', ()),
        ("[1]", ()),
    ]:
        for chunks in ([text], list(text)):
            p = tw.JSONParser()
            for chunk in chunks:
                p.feed(chunk)
            assert p.path == path, text
            assert isinstance(p.path, tuple)


def test_path_of_an_error() -> None:
    for text, path in [('{"a":[1,{"b":x', ("a", 1, "b")), ("[1,2,tru!", (2,)), ('{"a":"\\q', ("a",)), ("x", ())]:
        for chunks in ([text], list(text)):
            p = tw.JSONParser()
            with pytest.raises(tw.MalformedJSON) as caught:
                for chunk in chunks:
                    p.feed(chunk)
            assert (caught.value.path or ()) == path == p.path


def test_paths_of_marks_and_errors_in_a_first_element_do_not_depend_on_cuts() -> None:
    for head, path in ((b"[", (0,)), (b'{"a":[', ("a", 0)), (b"[[", (0, 0)), (b"[1,[", (1, 0))):
        for chunks in every_chunking(head + b"NaN", random.Random(1)):
            p = tw.JSONParser(allow_nan=True)
            for chunk in chunks:
                p.feed(chunk)
            assert [m.path for m in p.marks] == [path], chunks
        for tail in (b"x", b"nulx", b"9" * 5000 + b",", b"-x", b'"\\x', b'"\xff'):
            for chunks in every_chunking(head + tail, random.Random(1), most=20):
                p = tw.JSONParser()
                with pytest.raises(tw.StreamError) as caught:
                    for chunk in chunks:
                        p.feed(chunk)
                assert caught.value.path == path, chunks


def test_state_of_a_field() -> None:
    p = tw.JSONParser()
    paths: list[tuple[str | int, ...]] = [(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",), ("a", "x"), (0,), ("a", 0, "y")]

    def states(data: bytes) -> list[str]:
        p.feed(data)
        return [p.state(path) for path in paths]

    a, o, c = "absent", "open", "complete"
    assert states(b"") == [a] * 9
    assert states(b"{") == [o] + [a] * 8
    assert states(b'"a":[') == [o, o] + [a] * 7
    assert states(b'"x') == [o, o, o, a, a, a, a, a, a]
    assert states(b'",{"b":"') == [o, o, c, o, o, a, a, a, a]
    assert states(b'y"') == [o, o, c, o, c, a, a, a, a]
    assert states(b"}]") == [o, c, c, c, c, a, a, a, a]
    assert states(b',"c":true') == [o, c, c, c, c, c, a, a, a]
    assert states(b"}") == [c, c, c, c, c, c, a, a, a]


@pytest.mark.parametrize("text", ["12", "-", "1.", "tru", "n"])
def test_an_unfinished_scalar_is_not_settled(text: str) -> None:
    p = fed(b'{"a":[' + text.encode())
    assert p.state(("a", 0)) in ("absent", "open")
    q = fed(text)
    assert q.state(()) in ("absent", "open")
    assert q.value is tw.MISSING


def test_a_number_is_settled_at_its_delimiter() -> None:
    p = fed(b"[12")
    assert p.state((0,)) != "complete"
    p.feed(b",")
    assert p.state((0,)) == "complete" and p.state([0]) == "complete"


def test_a_repeated_key_is_open_again() -> None:
    p = fed(b'{"a":1')
    p.feed(b',"a":"x')
    assert p.state(("a",)) == "open"
    p.feed(b'"')
    assert p.state(("a",)) == "complete"


def test_state_does_not_depend_on_cuts() -> None:
    text = b'{"a":[1,{"b":"x"}],"c":{"d":null},"a":[2]}'
    paths = [(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",), ("c", "d")]
    p = tw.JSONParser()
    for n in range(1, len(text) + 1):
        p.feed(text[n - 1 : n])
        whole = fed(text[:n])
        assert [p.state(x) for x in paths] == [whole.state(x) for x in paths], text[:n]
        assert p.path == whole.path


# -- options and marks


def mark_list(p: tw.JSONParser) -> list[tuple[Any, ...]]:
    return [(str(m), m.offset, m.path) for m in p.marks]


def test_lone_surrogates_are_replaced_and_marked() -> None:
    text = '{"a":"x\\ud800y","b":["\\udc01","\\ud800\\ud83d\\ude00","\\ud83d"]}'
    want = {"a": "x\ufffdy", "b": ["\ufffd", "\ufffd😀", "\ufffd"]}
    for chunks in every_chunking(text.encode(), random.Random(1)):
        p = tw.JSONParser(surrogates="replace")
        for chunk in chunks:
            p.feed(chunk)
        assert same(p.finish(), want)
        places = [("\\ud800y", ("a",)), ("\\udc01", ("b", 0)), ("\\ud800\\u", ("b", 1)), ('\\ud83d"', ("b", 2))]
        assert mark_list(p) == [("lone_surrogate", text.index(s), path) for s, path in places]
    json.dumps(tw.loads(text, surrogates="replace"), ensure_ascii=False).encode()


def test_lone_surrogates_are_kept_as_json_loads_keeps_them() -> None:
    text = '["x\\ud800y","\\udc01\\ud800","\\ud83d\\ude00","\\ud83d\\n","\\ud83d\\u0041"]'
    for chunks in every_chunking(text.encode(), random.Random(1)):
        p = tw.JSONParser(surrogates="keep")
        for chunk in chunks:
            p.feed(chunk)
        assert same(p.finish(), json.loads(text))
        assert [str(m) for m in p.marks] == ["lone_surrogate"] * 5


def test_half_a_pair_is_never_shown_while_its_partner_may_come() -> None:
    for mode, lone, second in (("replace", "\ufffd", "\ufffd"), ("keep", "\ud83d", "\ud800")):
        p = tw.JSONParser(surrogates=mode)
        for piece in ('"', "\\ud83d", "\\", "u", "d"):
            p.feed(piece)
            assert p.value == ""
        p.feed("800")
        assert p.value == lone
        p.feed("x")
        assert p.value == lone + second + "x"


def test_duplicate_keys_last_counts_and_is_marked() -> None:
    text = b'{"a":1,"b":{"a":2,"\\u0061":3},"a":4}'
    for chunks in every_chunking(text, random.Random(1)):
        p = tw.JSONParser()
        for chunk in chunks:
            p.feed(chunk)
        assert same(p.finish(), {"a": 4, "b": {"a": 3}})
        assert mark_list(p) == [("duplicate_key", 18, ("b", "a")), ("duplicate_key", 30, ("a",))]


def test_duplicate_keys_may_be_an_error_at_the_byte_that_closes_the_key() -> None:
    assert fails(b'{"a":1,"b":{"a":2},"a":3}', duplicate_keys="error") == ("json.duplicate_key", 21, {"a": 1, "b": {"a": 2}})
    assert fails(b'{"a":1,"\\u0061":3}', duplicate_keys="error")[:2] == ("json.duplicate_key", 14)
    assert tw.loads(b'[{"a":1},{"a":{"a":2}}]', duplicate_keys="error") == [{"a": 1}, {"a": {"a": 2}}]


def test_marks_stand_in_the_order_of_their_places() -> None:
    text = b'{"a":0,"a":"x\\ud800"}'
    for chunks in every_chunking(text, random.Random(1)):
        p = tw.JSONParser(surrogates="replace")
        for chunk in chunks:
            p.feed(chunk)
        assert mark_list(p) == [("duplicate_key", 7, ("a",)), ("lone_surrogate", 13, ("a",))], chunks


def test_nan_is_read_and_marked_where_allowed() -> None:
    text = b'[NaN, Infinity,{"n":-Infinity}]'
    for chunks in every_chunking(text, random.Random(1)):
        p = tw.JSONParser(allow_nan=True)
        for chunk in chunks:
            p.feed(chunk)
        value = p.finish()
        assert math.isnan(value[0]) and value[1:] == [math.inf, {"n": -math.inf}]
        assert mark_list(p) == [("nan", 1, (0,)), ("nan", 6, (1,)), ("nan", 20, (2, "n"))]
    assert fails(b"[Nan]", allow_nan=True)[:2] == ("json.bad_literal", 3)
    assert fails(b"-Infinitx", allow_nan=True)[1] == 8
    assert fed(b"-Infinity", allow_nan=True).complete


def test_control_characters_are_read_and_marked_where_allowed() -> None:
    text = b'{"a\tb":["x\ny","\x00"]}'
    for chunks in every_chunking(text, random.Random(1)):
        p = tw.JSONParser(allow_control_characters=True)
        for chunk in chunks:
            p.feed(chunk)
        assert same(p.finish(), {"a\tb": ["x\ny", "\x00"]})
        assert [m[:2] for m in mark_list(p)] == [("control_character", 3), ("control_character", 10), ("control_character", 15)]
        assert [m.path for m in p.marks][1:] == [("a\tb", 0), ("a\tb", 1)]
    assert same(tw.loads(b'"\x7f"'), "\x7f")
    assert fails(b"[\x00", allow_control_characters=True)[:2] == ("json.unexpected_byte", 1)


def test_marks_are_bounded_and_the_bound_is_told() -> None:
    p = fed(b"[" + b'"\\ud800",' * 5000 + b"0]", surrogates="replace")
    assert 1 < len(p.marks) < 5000
    assert "lone_surrogate" in p.marks and "more_marks" in p.marks
    assert p.finish() == ["\ufffd"] * 5000 + [0]


@pytest.mark.parametrize(
    "options",
    [{"surrogates": "ignore"}, {"duplicate_keys": "first"}, {"max_depth": -1}, {"max_bytes": -1}, {"surrogates": None}, {"duplicate_keys": None}],
)
def test_an_unknown_option_is_a_usage_error(options: dict[str, Any]) -> None:
    with pytest.raises(tw.UsageError):
        tw.JSONParser(**options)
    with pytest.raises(tw.UsageError):
        tw.loads(b"1", **options)


def test_a_wrong_argument_type_is_refused_and_changes_nothing() -> None:
    p = fed(b"[1,")
    for wrong in (None, 1, [b"2"]):
        with pytest.raises((TypeError, tw.UsageError)):
            p.feed(wrong)
    assert p.feed(b"2]") and p.finish() == [1, 2]


# -- limits


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_max_depth_counts_open_containers(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    good = opening * 2 + "1" + closing * 2
    assert tw.loads(good, max_depth=3) == tw.loads(good, max_depth=2) == json.loads(good)
    code, offset, value = fails(opening * 3, max_depth=2)
    assert (code, offset) == ("json.too_deep", 2 * len(opening))
    assert value == json.loads(opening + opening + closing + closing) if opening == "[" else value == {"a": {}}


def test_max_depth_names_itself() -> None:
    with pytest.raises(tw.LimitExceeded) as caught:
        fed("[" * 513)
    e = caught.value
    assert (e.limit, e.value, e.offset, e.code) == ("max_depth", 512, 512, "json.too_deep")
    assert "max_depth" in e.option and "max_depth" in str(e) and "512" in str(e)
    assert isinstance(e, ValueError)
    value, depth = tw.loads("[" * 512 + "]" * 512), 1
    while value:  # a debug CPython compares, and its json module reads, fewer levels than these
        [value] = value
        depth += 1
    assert depth == 512


def test_depth_is_given_back_when_a_container_closes() -> None:
    assert tw.loads("[[],[],{},[]]", max_depth=2) == [[], [], {}, []]
    assert fails("[[],[[", max_depth=2)[:2] == ("json.too_deep", 5)


def test_a_very_deep_document_needs_no_recursion() -> None:
    deep = 100_000
    p = fed("[" * deep, max_depth=deep)
    assert p.path == (0,) * (deep - 1)
    p.feed("1" + "]" * deep)
    assert p.complete and p.consumed == 2 * deep + 1
    value, levels = p.value, 0
    while isinstance(value, list):
        value, levels = value[0], levels + 1
    assert (value, levels) == (1, deep)


def test_max_bytes_counts_everything_fed() -> None:
    assert tw.loads(b"[1,2]", max_bytes=5) == [1, 2]
    assert fails(b"[1,2]", max_bytes=4) == ("json.too_long", 4, [1])
    assert fails(b'["abcdef', max_bytes=4) == ("json.too_long", 4, ["ab"])
    assert fails('["é', max_bytes=3)[:2] == ("json.too_long", 3)
    assert fails(b"[,,,,,,,", max_bytes=4)[:2] == ("json.unexpected_byte", 1)
    with pytest.raises(tw.LimitExceeded) as caught:
        fed(b" " * 11, max_bytes=10)
    e = caught.value
    assert (e.limit, e.value, e.offset) == ("max_bytes", 10, 10)
    assert "max_bytes" in e.option and "max_bytes" in str(e)


def test_an_integer_beyond_pythons_digit_limit_is_a_clear_error_at_its_first_digit() -> None:
    text = b'{"n":' + b"7" * 5000 + b',"ok":true}'
    for size in (1, 7, 256, len(text)):
        p = tw.JSONParser()
        with pytest.raises(tw.LimitExceeded) as caught:
            for i in range(0, len(text), size):
                p.feed(text[i : i + size])
        e = caught.value
        assert (e.code, e.offset, e.path) == ("json.number_too_long", 5, ("n",))
        assert "4300" in str(e) and "set_int_max_str_digits" in e.option
        assert p.value == {} and not p.complete
        with pytest.raises(tw.LimitExceeded) as again:
            p.feed(b"x")
        assert again.value is e


def test_the_digit_limit_is_pythons_own_and_counts_digits_only() -> None:
    before = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(640)
        for text in ("9" * 640, "-" + "9" * 640):
            assert tw.loads(text) == int(text) == tw.loads(f"[{text}]")[0]
        assert fails("9" * 641)[:2] == ("json.number_too_long", 0)
        assert fails("[1,-" + "9" * 641 + "]")[:2] == ("json.number_too_long", 3)
        assert tw.loads("9" * 641 + ".0") == float("inf")
        sys.set_int_max_str_digits(0)
        assert tw.loads("9" * 5000) == 10**5000 - 1
    finally:
        sys.set_int_max_str_digits(before)


# -- numbers


NUMBERS = (
    ["0", "-0", "1", "-1", "-0.0", "0.0", "0e0", "0E-5", "1e400", "-1e400", "1e-400", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324"]
    + ["1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "2.2250738585072011e-308", "2.2250738585072014e-308"]
    + ["9007199254740993", "9007199254740993.0", "9007199254740992.9999999999999999", "9007199254740993.00000000000000000001", "123456789012345678901234567890"]
    + ["0.1", "0.2", "0.3", "1e22", "1e23", "123e-22", "1e-22", "1e-23", "8.5e22", "9007199254740991e22", "9007199254740993e22"]
    + ["0.000000000000000000000000000001"]
    + ["7.2057594037927933e16", "7205759403792793199999e-5", "5e-324", "3e-324", "1" + "0" * 400, "0." + "0" * 400 + "1", "1" * 700 + ".5", "1" * 400 + "e-390"]
    + ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616"]
    + ["999999999999999999", "1000000000000000000"]
    + ["1e0000000000000000000000001", "1E+2", "1.5E-3", "3.75e+8", "0.5", "1e99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999"]
)


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_what_json_loads_makes_of_it_at_every_cut(text: str) -> None:
    want = json.loads(text)
    for chunks in every_chunking(f"[{text}]".encode(), random.Random(1), most=60):
        p = tw.JSONParser()
        for chunk in chunks:
            p.feed(chunk)
        assert same(p.finish(), [want])
    assert same(tw.loads(text), want) and type(tw.loads(text)) is type(want)


def test_floats_are_correctly_rounded() -> None:
    rng = random.Random(7)
    for _ in range(20_000):
        text = rng.choice(["", "-"]) + str(rng.randrange(10 ** rng.randint(1, 20)))
        text += rng.choice(["", "." + "".join(rng.choices("0123456789", k=rng.randint(1, 20)))])
        text += rng.choice(["", f"e{rng.randint(-330, 310)}", f"e{rng.randint(-30, 30)}"])
        want = float(text) if set(text) & set(".e") else int(text)
        assert same(tw.loads(text), want), text
        if isinstance(want, float) and math.isfinite(want):
            # Half way to the neighbour, and a little more: the hardest roundings there are.
            assert same(tw.loads(repr(want)), float(repr(want)) if set(repr(want)) & set(".e") else None)


def test_ties_and_what_lies_just_beside_them() -> None:
    rng = random.Random(8)
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 1100
        for _ in range(300):
            low = math.ldexp(rng.getrandbits(53), rng.randint(-1070, 900))
            tie = (Decimal(low) + Decimal(math.nextafter(low, math.inf))) / 2
            for text in (f"{tie:E}", f"{tie + tie.scaleb(-1000):E}", f"{tie - tie.scaleb(-1000):E}"):
                assert same(tw.loads(text), float(text)), text


# -- what may be fed


@pytest.mark.parametrize(
    "kind",
    [bytes, bytearray, memoryview, lambda b: memoryview(bytearray(b)), lambda b: memoryview(b + b)[: len(b)], lambda b: b.decode()],
)
def test_bytes_like_and_str(kind: Any) -> None:
    data = '{"é😀":["x",1]}'.encode()
    p = tw.JSONParser()
    assert p.feed(kind(data)) is True and p.finish() == {"é😀": ["x", 1]} == tw.loads(kind(data))


def test_a_buffer_may_change_after_it_was_fed() -> None:
    buffer = bytearray(b'["abc')
    p = fed(buffer)  # type: ignore[arg-type]
    buffer[:] = b"xxxxxxxxxxx"
    assert p.value == ["abc"]
    p.feed(b'",12')
    buffer.clear()
    assert p.feed(b"3]") and p.value == ["abc", 123]


def test_a_buffer_that_is_not_contiguous_is_refused_or_read_right() -> None:
    view = memoryview(b"[x1x]x")[::2]
    p = tw.JSONParser()
    try:
        p.feed(view)
    except (BufferError, TypeError, tw.UsageError):
        assert p.offset == 0 and not p.complete
    else:
        assert p.value == [1]


def test_bytes_and_text_may_alternate() -> None:
    text = '{"é":["😀\\u00e9",-1.5e3,true]}'
    for at in range(len(text)):
        for first, second in ((text[:at].encode(), text[at:]), (text[:at], text[at:].encode())):
            p = tw.JSONParser()
            p.feed(first)
            assert p.feed(second) is True
            assert p.finish() == json.loads(text) and p.offset == p.consumed == len(text.encode())


def test_text_may_end_on_half_a_surrogate_pair() -> None:
    for tail in ('"]', 'x"]'):
        p = tw.JSONParser()
        p.feed('["a\ud83d')
        assert p.value == ["a"] and not p.complete
        p.feed("")
        p.feed("\ude00" + tail)
        assert p.finish() == ["a😀" + tail[:-2]]
        assert p.consumed == p.offset == len(f'["a😀{tail}'.encode())
    p = tw.JSONParser()
    for piece in ('{"', "\ud83d", "\ude00", '":"', "\ud83d", "\ude00", '"}'):
        p.feed(piece)
    assert p.finish() == {"😀": "😀"}


def test_half_a_pair_in_text_whose_partner_never_comes_is_a_lone_surrogate() -> None:
    for pieces in (['["\ud83d', 'x"]'], ['["\ud83d', '"]'], ['["\ud83d', "\ud83d", '\ude00"]'], ['["\ude00', '"]']):
        text = "".join(pieces)
        outcomes = {run(tw.JSONParser(), chunks) for chunks in every_chunking(text, random.Random(2))}
        assert len(outcomes) == 1
        error = outcomes.pop().error
        assert error is not None and error[:2] == ("MalformedJSON", "json.lone_surrogate")
        # Halves that meet are one character, wherever the text was cut; what is left alone is kept or replaced.
        units = text.encode("utf-16-le", "surrogatepass")
        for mode, handler in (("keep", "surrogatepass"), ("replace", "replace")):
            for chunks in every_chunking(text, random.Random(2)):
                p = tw.JSONParser(surrogates=mode)
                for chunk in chunks:
                    p.feed(chunk)
                assert same(p.finish(), json.loads(units.decode("utf-16-le", handler)))
                assert [str(m) for m in p.marks] == ["lone_surrogate"]


@pytest.mark.parametrize("text", ["[\ud83d]", "[\ud83d", '"\\ud83d\ud83d"', "[1]\ud83d", '{"\ud83d":1}', "12\ud83d", '"a\\\ud83d'])
def test_half_a_pair_in_text_is_judged_the_same_for_every_cut(text: str) -> None:
    for mode in ("error", "keep"):
        outcomes = {run(tw.JSONParser(surrogates=mode), chunks) for chunks in every_chunking(text, random.Random(2))}
        assert len(outcomes) == 1, outcomes
        assert (outcomes.pop().error is None) == (mode == "keep" and text == '{"\ud83d":1}' or mode == "keep" and text.startswith('"\\ud'))


def test_half_a_pair_in_text_then_the_end_or_bytes() -> None:
    p = fed('["\ud83d')
    with pytest.raises(tw.TruncatedJSON):
        p.finish()
    p = fed('["\ud83d')
    with pytest.raises(tw.MalformedJSON):
        p.feed(b'x"]')
    assert p.value == [""]


# -- callers that change things, and code that runs inside


def test_a_changed_live_view_never_crashes_the_parser() -> None:
    def clear(v: Any) -> None:
        v.clear()

    def pop(v: Any) -> None:
        v.pop() if isinstance(v, list) else v.popitem()

    def append(v: Any) -> None:
        v.append([1]) if isinstance(v, list) else v.update(new=[1])

    def replace(v: Any) -> None:
        key = len(v) - 1 if isinstance(v, list) else list(v)[-1]
        v[key] = {"other": []}

    def sort(v: Any) -> None:
        v.reverse() if isinstance(v, list) else v.update(dict(reversed(v.items())))

    def fill(v: Any) -> None:
        v.extend(range(100)) if isinstance(v, list) else v.update({str(i): i for i in range(100)})

    text = b'{"a":[1,{"b":"xy\\n\xc3\xa9","c":[[],"z"]},"end"],"d":{"e":1.5,"a":"q"},"a":"w"}'
    for change in (clear, pop, append, replace, sort, fill):
        for at in range(1, len(text)):
            p = fed(text[:at])
            keep = []
            value = p.value
            while isinstance(value, (list, dict)):
                inner = (value[-1] if isinstance(value, list) else list(value.values())[-1]) if value else None
                keep.append(value)
                if value:
                    change(value)
                value = inner
            for i in range(at, len(text)):
                assert p.feed(text[i : i + 1]) is (i == len(text) - 1)
                p.value, p.path, p.state(("a", 1, "b"))
                repr(p.snapshot())
            assert p.complete and p.consumed == len(text)
            repr(p.value)


def test_what_the_caller_puts_beside_stays() -> None:
    p = fed(b'{"a":[1,')
    p.value["a"].append("mine")
    p.value["note"] = "kept"
    p.feed(b'2],"b":3}')
    value = p.finish()
    assert value["note"] == "kept" and value["b"] == 3 and "mine" in value["a"] and value["a"][0] == 1 and 2 in value["a"]


def test_a_kept_reference_to_an_open_string_does_not_change() -> None:
    p = fed(b'{"s":"')
    kept = []
    want = ""
    for piece in ("abc", "é", "d" * 100, "😀", "x" * 5000, "\\n", "\\u20ac"):
        p.feed(piece)
        want += {"\\n": "\n", "\\u20ac": "€"}.get(piece, piece)
        kept.append((p.value["s"], want))
        assert p.value["s"] == want
    p.feed(b'"}')
    assert p.finish() == {"s": want}
    for text, then in kept:
        assert text == then and hash(text) == hash(then) and {text: 1}[then] == 1


def test_an_open_string_does_not_change_while_an_expression_uses_it() -> None:
    """From CPython 3.14 on, what a local variable holds is put on the stack without a reference of its own."""

    def both(text: str, fed: object) -> str:
        return text

    def through_a_local(p: tw.JSONParser, more: bytes) -> tuple[str, str, str]:
        text = p.value[0]
        first = both(text, p.feed(more))
        second = f"{text}{p.feed(more)}"
        return first, second, [text, p.feed(more)][0]

    def straight(p: tw.JSONParser, more: bytes) -> tuple[str, str, str]:
        value = p.value
        return both(value[0], p.feed(more)), f"{value[0]}{p.feed(more)}", [value[0], p.feed(more)][0]

    for use in (through_a_local, straight):
        for _ in range(200):  # as often as it takes to be specialised
            p = fed(b'["' + b"start " * 20)
            start = "start " * 20
            after = [start, start, start] if use is through_a_local else [start, start + "+", start + "++"]
            assert list(use(p, b"+")) == [after[0], after[1] + "False", after[2]]
            assert p.value == [start + "+++"]


def test_a_hashed_or_interned_open_string_does_not_change() -> None:
    p = fed(b'["key')
    names = {p.value[0]: 1}
    name = sys.intern(p.value[0])
    p.feed(b'word"]')
    assert names == {"key": 1} and name == "key" and p.value == ["keyword"]
    assert hash(p.value[0]) == hash("keyword")


def test_shared_small_strings_are_never_grown_in_place() -> None:
    for first in ("", "a", "é", "\\n"):
        p = fed(f'["{first}'.encode())
        p.value  # noqa: B018
        p.feed(b"zz")
        assert p.value[0] == json.loads(f'"{first}zz"')
        assert chr(97) == "a" and chr(233) == "é" and str() == "" and chr(10) == "\n"  # noqa: UP018


def test_an_open_string_deleted_by_the_caller_may_go_on() -> None:
    for change in (lambda v: v.__delitem__("s"), lambda v: v.clear(), lambda v: v.__setitem__("s", None), lambda v: v.__setitem__("s", "other")):
        p = fed(b'{"s":"abc')
        change(p.value)
        p.feed(b"def")
        p.feed(b'","t":1}')
        assert p.complete and p.finish()["t"] == 1


class Feeder:
    """Feeds its parser when it is destroyed."""

    def __init__(self, parser: tw.JSONParser, log: list[Any], data: bytes | None = b"[") -> None:
        self.parser, self.log, self.data = parser, log, data

    def __del__(self) -> None:
        try:
            self.log.append(("value", repr(self.parser.value)[:20], self.parser.path, self.parser.complete))
            self.log.append(self.parser.feed(self.data) if self.data is not None else self.parser.reset())
        except Exception as error:
            self.log.append(error)


@pytest.mark.parametrize("data", [b"[", b"", None])
def test_a_finaliser_that_feeds_the_parser_it_dies_in_never_crashes(data: bytes | None) -> None:
    for rest in (b'"a":1}', b'"a":"x"}', b'"a":[]}', b'"a":{}}', b'"a":"x\\n"}', b'"a":true}'):
        log: list[Any] = []
        p = fed(b'{"a":0,')
        p.value["a"] = Feeder(p, log, data)
        p.value["list"] = [Feeder(p, log, data)]
        gc.collect()
        try:
            p.feed(rest)
        except tw.ToolwireError:
            pass  # a feed that got through may well have broken the document
        else:
            if data is not None:
                assert any(isinstance(entry, tw.UsageError) for entry in log), "a feed inside a feed is said to be one"
                assert p.complete and p.value["a"] == json.loads(b"{" + rest)["a"]
        assert log
        p.reset()  # the other one dies here, and may feed into the fresh document
        p.reset()
        assert p.feed(b"[1]") and p.finish() == [1]


def test_a_finaliser_in_an_open_string_slot_never_crashes() -> None:
    log: list[Any] = []
    p = fed(b'{"s":"abc')
    p.value["s"] = Feeder(p, log)
    with contextlib.suppress(tw.ToolwireError):
        p.feed(b'def","t":1}')
    p.value  # noqa: B018
    p.reset()
    assert p.feed(b"[]")


def test_a_collection_in_the_middle_of_a_feed_never_crashes() -> None:
    before = gc.get_threshold()
    log: list[Any] = []
    try:
        gc.set_threshold(1)
        for _ in range(50):
            p = tw.JSONParser()
            p.feed(b'{"a":[')
            cycle = [Feeder(p, log, b"1,")]
            cycle.append(cycle)  # type: ignore[arg-type]
            del cycle
            try:
                for _ in range(20):
                    p.feed(b'{"k":[1.5,"x"]},')
                p.feed(b"0]}")
            except tw.ToolwireError:
                pass
            p.snapshot()
    finally:
        gc.set_threshold(*before)
    assert log


def test_a_parser_in_a_cycle_is_collected() -> None:
    dead: list[int] = []

    class Note:
        def __del__(self) -> None:
            dead.append(1)

    p = fed(b'{"a":[1')
    p.value["me"] = [p, Note()]
    del p
    gc.collect()
    assert dead == [1]


def test_two_parsers_do_not_touch_each_other() -> None:
    texts = [b'{"a":"x\\n\xc3\xa9","b":[1,2.5]}', b'{"a":{"a":"\\ud83d\\ude00"}}    ']
    p, q = tw.JSONParser(), tw.JSONParser(duplicate_keys="error")
    for i in range(max(map(len, texts))):
        p.feed(texts[0][i : i + 1])
        q.feed(texts[1][i : i + 1])
    assert p.finish() == json.loads(texts[0]) and q.finish() == json.loads(texts[1])


def test_two_threads_may_feed_two_parsers_and_one_never_crashes() -> None:
    shared, results, stop = tw.JSONParser(), [], threading.Event()
    shared.feed(b"[")

    def own(n: int) -> None:
        for _ in range(100):
            p = tw.JSONParser()
            for byte in b'{"n":[%d,"x\\n"]}' % n:
                p.feed(bytes([byte]))
            results.append(p.finish() == {"n": [n, "x\n"]})

    def together() -> None:
        while not stop.is_set():
            try:
                shared.feed(b'"x",')
                shared.snapshot()
            except tw.UsageError:
                pass

    threads = [threading.Thread(target=own, args=(n,)) for n in range(3)]
    crowd = [threading.Thread(target=together) for _ in range(2)]
    for t in threads + crowd:
        t.start()
    for t in threads:
        t.join()
    stop.set()
    for t in crowd:
        t.join()
    assert all(results) and len(results) == 300
    assert set(shared.value) <= {"x"}


# -- pickle

PICKLED = [
    (b'{"a":[1,-2.5e3,{"b":"x\\n\\u00e9\\ud83d\\ude00"}],"a":tru', {}),
    (b'{"a":1,"a":[true,null],"\xf0\x9f\x98\x80":"\xe2\x82\xac"} \n x', {}),
    (b'["\\ud800x\\udc00","\\ud800\\n\\ud800\\u0041"]', {"surrogates": "replace"}),
    (b'["\\ud800x\\udc00",NaN,-Infinity,"\x01"]', {"surrogates": "keep", "allow_nan": True, "allow_control_characters": True}),
    (b"-12.5e+3", {}),
    (b"123456789012345678901234567890 ", {"max_bytes": 40}),
    (b'{"a":1,"b":2,"a":3}', {"duplicate_keys": "error"}),
    (b"[[[[", {"max_depth": 3}),
    (b"[1,2,3,4]", {"max_bytes": 6}),
    (b'{"a":"\\q"}', {}),
]


@pytest.mark.parametrize(("data", "options"), PICKLED)
def test_a_pickle_taken_at_any_byte_goes_on_the_same(data: bytes, options: dict[str, Any]) -> None:
    want = run(tw.JSONParser(**options), [data])
    for at in range(len(data) + 1):
        p = tw.JSONParser(**options)
        try:
            p.feed(data[:at])
            error = None
        except ValueError as e:
            error = e
        q = pickle.loads(pickle.dumps(p))
        assert outcome(q) == outcome(p) and q.path == p.path and [q.state(x) for x in ((), ("a",), (0,))] == [p.state(x) for x in ((), ("a",), (0,))]
        if error is not None:
            with pytest.raises(type(error)) as caught:
                q.feed(b"")
            assert (caught.value.code, caught.value.offset, str(caught.value)) == (error.code, error.offset, str(error))  # type: ignore[attr-defined]
        assert run(q, [data[at:]]) == want
        assert run(p, [data[at:]]) == want, "pickling changes nothing"


def test_a_pickle_shares_nothing_with_its_original() -> None:
    p = fed(b'{"a":[1,"x')
    for clone in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        clone.feed(b'yz"]}')
        assert clone.finish() == {"a": [1, "xyz"]}
        assert p.value == {"a": [1, "x"]}
        clone.reset()
        assert clone.feed(b"[]")


def test_there_is_one_empty_string() -> None:
    """From CPython 3.13 on, an ``if text:`` that has run a few times takes any other str without characters for true."""
    empty = ""
    for start, end in ((b'["', b'"]'), (b'{"a":"', b'"}')):
        p = tw.JSONParser()
        tap, items = p.tap(("*",)), p.items(())
        p.feed(start)
        shown = [*p.value] if start[0] == ord("[") else [*p.value.values()]
        again = pickle.loads(pickle.dumps(p))
        for parser in (p, again):
            parser.feed(end)
            value = parser.finish()
            shown += value if isinstance(value, list) else value.values()
        shown += [piece.text for piece in tap.pieces()] + items.read()
        assert len(shown) == (5 if start[0] == ord("[") else 4)
        assert all(text is empty for text in shown)
        for _ in range(100):
            assert not any(True for text in shown if text)


def test_a_half_fed_half_pair_is_pickled_too() -> None:
    p = pickle.loads(pickle.dumps(fed('["\ud83d')))
    p.feed('\ude00"]')
    assert p.finish() == ["😀"]


def test_a_finished_parser_pickles_finished() -> None:
    p = fed(b"31")
    p.finish()
    q = pickle.loads(pickle.dumps(p))
    assert q.value == 31 and q.complete and q.consumed == 2
    with pytest.raises(tw.UsageError):
        q.feed(b"1")


# -- MISSING, loads


def test_missing_is_false_and_itself() -> None:
    assert not tw.MISSING and repr(tw.MISSING) == "MISSING"
    assert tw.MISSING == tw.MISSING and tw.MISSING != None and tw.MISSING != 0  # noqa: E711
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(tw.MISSING, protocol)) is tw.MISSING
    assert copy.copy(tw.MISSING) is tw.MISSING and copy.deepcopy([tw.MISSING])[0] is tw.MISSING


@pytest.mark.parametrize(
    "text",
    ["null", "[]", "{}", '""', " [1, 2.5, {}, [], null, true, false] "]
    + ['{"a":{"b":[{"c":"\\u00e9\\"\\\\\\/\\b\\f\\n\\r\\t"}]},"":0}', '"é😀\\ud83d\\ude00"'],
)
def test_loads_equals_json_loads(text: str) -> None:
    for data in (text, text.encode(), bytearray(text.encode())):
        assert same(tw.loads(data), json.loads(text))


def test_loads_takes_the_same_options_and_raises_the_same_errors() -> None:
    assert tw.loads('"\\ud800"', surrogates="replace") == "\ufffd"
    assert tw.loads('"\n"', allow_control_characters=True) == "\n"
    for data, kind, code, offset in [
        (b"", tw.TruncatedJSON, "json.truncated", 0),
        (b"[1", tw.TruncatedJSON, "json.truncated", 2),
        (b"[1] 2", tw.MalformedJSON, "json.trailing_data", 4),
        (b"1,", tw.MalformedJSON, "json.trailing_data", 1),
        (b"nul", tw.TruncatedJSON, "json.truncated", 3),
    ]:
        with pytest.raises(kind) as caught:
            tw.loads(data)
        assert (caught.value.code, caught.value.offset) == (code, offset)
    with pytest.raises(tw.LimitExceeded):
        tw.loads("[[", max_depth=1)
    with pytest.raises(tw.LimitExceeded):
        tw.loads("[1,2]", max_bytes=4)


def test_reset_keeps_the_options_and_nothing_else() -> None:
    p = fed(b'["\\ud800x', surrogates="replace", max_depth=1)
    p.reset()
    assert list(p.marks) == [] and p.path == () and p.state(()) == "absent"
    p.feed('"\ud83d')
    p.reset()
    assert p.feed('["\\udc00"]') and p.finish() == ["\ufffd"]
    p.reset()
    with pytest.raises(tw.LimitExceeded):
        p.feed("[[")
    p.reset()
    p.feed(b"1")
    p.reset()
    assert p.feed(b"2 ") and p.finish() == 2
