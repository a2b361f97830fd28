"""The face of jiter: its outcomes, to the word, on whole, cut and wrong JSON; and buffers that grow."""

from __future__ import annotations

import base64
import json
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import toolwire as tw
from toolwire.compat import jiter as ours
from toolwire.compat._closing import closed

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpora" / "partial-json" / "cases.jsonl"
MODES: list[Any] = [False, "on", "trailing-strings"]


def outcome(parse: Any, data: bytes, **options: Any) -> str:
    try:
        return repr(parse(data, **options))
    except ValueError as error:
        return f"ValueError: {error}"


def plain(value: Any) -> Any:
    """Values as the corpus writes them."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"$number": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, str) and len(value) == 1 and "\ud800" <= value <= "\udfff":
        return {"$utf16": f"{ord(value):x}"}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


ROWS: list[tuple[bytes, str, str, str]] = [
    (b'{"a": 1, "b": "x', "EOF while parsing a string at line 1 column 16", "{'a': 1}", "{'a': 1, 'b': 'x'}"),
    (b'["a", "b\\u00', "EOF while parsing a string at line 1 column 12", "['a']", "['a', 'b']"),
    (b"[1, 23", "EOF while parsing a list at line 1 column 6", "[1, 23]", "[1, 23]"),
    (b"[1, 23.", "EOF while parsing a value at line 1 column 7", "[1]", "[1]"),
    (b'{"a": tru', "EOF while parsing a value at line 1 column 9", "{}", "{}"),
    (b'{"a"', "EOF while parsing an object at line 1 column 4", "{}", "{}"),
    (b"-2.5e3", "-2500.0", "-2500.0", "-2500.0"),
    (b"[nulll", "expected `,` or `]` at line 1 column 6", "[None]", "[None]"),
    (b'{"a": 1} x', "trailing characters at line 1 column 10", "{'a': 1}", "{'a': 1}"),
    (b"[1,]", "trailing comma at line 1 column 4", "trailing comma at line 1 column 4", "trailing comma at line 1 column 4"),
    (b'["ab\\ude0', "EOF while parsing a string at line 1 column 9", "[]", "['ab']"),
    (b'["ab\\u12"]', *["invalid escape at line 1 column 9"] * 3),
    (b'{"ab\\u1G', "EOF while parsing a string at line 1 column 8", "{}", "{}"),
    (b'{"a": [1], "a"', "EOF while parsing an object at line 1 column 14", "{'a': [1]}", "{'a': [1]}"),
    (b'{"a": 1, "a" 2', *["expected `:` at line 1 column 14"] * 3),
    (b'["a", "b\xff', "EOF while parsing a string at line 1 column 9", "['a']", "invalid unicode code point at line 1 column 9"),
    (b'{"b\xff\t', *["EOF while parsing a string at line 1 column 5"] * 2, "invalid unicode code point at line 1 column 4"),
    (b"9" * 4301, *["number out of range at line 1 column 4301"] * 3),
    (b"[-" + b"9" * 5000 + b"]", *["number out of range at line 1 column 4304"] * 3),
]


@pytest.mark.parametrize(("data", "off", "on", "strings"), ROWS, ids=lambda each: each.decode("latin-1")[:40] if isinstance(each, bytes) else None)
def test_the_three_modes(data: bytes, off: str, on: str, strings: str) -> None:
    for mode, expected in zip(MODES, (off, on, strings), strict=True):
        assert outcome(ours.from_json, data, partial_mode=mode).removeprefix("ValueError: ") == expected


def corpus() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()] if CORPUS.exists() else []


@pytest.mark.skipif(not CORPUS.exists(), reason="../shared is not here")
def test_the_recorded_outcomes_of_jiter() -> None:
    seen = 0
    for case in corpus():
        data = case["input"].encode("utf-8", "surrogatepass") if "input" in case else base64.b64decode(case["input_base64"])
        for result in case["results"]:
            if result["peer"] != "jiter":
                continue
            seen += 1
            try:
                value = ours.from_json(data, partial_mode=result["mode"])
            except ValueError as error:
                assert (result.get("error"), result.get("message")) == ("ValueError", str(error)), data
            else:
                assert "error" not in result, data
                assert plain(value) == result["value"], data
    assert seen > 600


TOKENS = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"a"', b'"b\\n"', b"1", b"-2.5", b"1e3", b"true", b"null", b" ", b"\n", b'"x', b"-", b"0", b".", b"e"),
    *(b"\\u00e9", b'"', b"fal", b"NaN", b"-Infinity", b"Inf", b'"\\ud83d\\ude00"', b'"\\ud83d', b"\x01", b'"a":', b"\t", b"9" * 23, b"\\", b'{"k":', b"[1,"),
    *(b"\\ud", b"12"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=9).map(b"".join))
def test_any_input_has_the_outcome_that_jiter_gives_it(data: bytes) -> None:
    peer = pytest.importorskip("jiter", reason="jiter is not installed")
    for mode in MODES:
        assert outcome(ours.from_json, data, partial_mode=mode) == outcome(peer.from_json, data, partial_mode=mode)
        options = {"partial_mode": mode, "catch_duplicate_keys": True, "allow_inf_nan": False}
        assert outcome(ours.from_json, data, **options) == outcome(peer.from_json, data, **options)


@given(JSON, st.booleans(), st.integers(1, 7))
@example(["a", {"b": [1.5, "\U0001f600"]}], True, 1)
def test_a_buffer_that_grows_gives_what_the_whole_function_gives(value: Any, ascii_only: bool, step: int) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    for mode in MODES[1:]:
        parse = ours.GrowingJSON(partial_mode=mode)
        for end in range(step, len(data) + step, step):
            assert outcome(parse, data[:end]) == outcome(ours.from_json, data[:end], partial_mode=mode)
        assert repr(parse(data)) == repr(value)


@given(JSON)
def test_what_is_shown_of_a_cut_document_is_a_document(value: Any) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    for end in range(1, len(data) + 1):
        for strings, mode in ((False, "on"), (True, "trailing-strings")):
            text = closed(data[:end], strings=strings)
            expected = outcome(ours.from_json, data[:end], partial_mode=mode)
            assert expected.startswith("ValueError") if not text else repr(json.loads(text)) == expected


def test_several_buffers_grow_side_by_side() -> None:
    parse = ours.GrowingJSON(max_buffers=2)
    first, second, third = (json.dumps({name: list(range(40))}).encode() for name in "abc")
    for end in range(1, len(first) + 1):
        for data in (first, second, third):
            assert parse(data[:end]) == ours.from_json(data[:end], partial_mode="trailing-strings") if end else True
    assert (parse(first), parse(second), parse(third)) == tuple(json.loads(each) for each in (first, second, third))


def test_a_buffer_that_changed_is_another_one() -> None:
    parse = ours.GrowingJSON()
    assert parse(b'{"a": "one') == {"a": "one"}
    assert parse(b'{"a": "two", "b"') == {"a": "two"}
    assert parse(b'{"a": "one", "b": 1') == {"a": "one", "b": 1}
    assert parse(b"[") == []


def test_a_result_that_was_changed_does_not_change_the_next() -> None:
    for mode in ("on", "trailing-strings"):
        parse = ours.GrowingJSON(partial_mode=mode)  # type: ignore[arg-type]
        value = parse(b'{"a": [1, 2')
        value["a"].append("mine")
        value["x"] = "mine"
        assert parse(b'{"a": [1, 2, 3') == {"a": [1, 2, 3]}


@pytest.mark.parametrize("mode", ["on", "trailing-strings"])
def test_buffers_grow_in_several_threads(mode: Any) -> None:
    parse = ours.GrowingJSON(partial_mode=mode)
    documents = [json.dumps({"n": n, "list": [n * 10**k for k in range(40)], "text": f"the {n}th"}).encode() for n in range(4)]
    wrong: list[Any] = []

    def grow(data: bytes) -> None:
        for _ in range(20):
            for end in range(1, len(data) + 1):
                if parse(data[:end]) != expected[data][end]:
                    wrong.append(data[:end])

    expected = {data: [None, *(ours.from_json(data[:end], partial_mode=mode) for end in range(1, len(data) + 1))] for data in documents}
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=grow, args=(data,)) for data in documents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


def test_a_call_from_inside_itself_is_refused() -> None:
    parse = ours.GrowingJSON()

    class Inside(bytes):
        def __bytes__(self) -> bytes:
            return bytes(parse(b"[2"))

    with pytest.raises(tw.UsageError, match="again from inside itself"):
        parse(Inside(b"[1"))
    assert parse(b"[1") == [1]


def test_wrong_bytes_stay_wrong_and_another_buffer_does_not_mind() -> None:
    parse = ours.GrowingJSON()
    for _ in range(2):
        with pytest.raises(ValueError, match="expected `:` at line 1 column 6"):
            parse(b'{"a" 1')
    with pytest.raises(ValueError, match="expected `:` at line 1 column 6"):
        parse(b'{"a" 1, ')
    assert parse(b'{"a": ') == {}


def test_float_modes() -> None:
    data = b'[1.10, 2, {"x": 1e2}, 3.'
    assert ours.from_json(data, partial_mode=True, float_mode="decimal") == [Decimal("1.10"), 2, {"x": Decimal("1e2")}]
    lossless = ours.from_json(b"[1.10]", float_mode="lossless-float")[0]
    assert (str(lossless), bytes(lossless), float(lossless), lossless.as_decimal(), repr(lossless)) == (
        *("1.10", b"1.10", 1.1, Decimal("1.10")),
        "LosslessFloat(1.10)",
    )
    with pytest.raises(ValueError, match="trailing characters at line 1 column 4"):
        ours.LosslessFloat(b"1.1x")
    for data in (b"[1.50 2]", b"[1.50\xff", b'[1.50:"', b'[1.50, "\\u1G', b"[1.50]\xff"):  # jiter reads until there
        assert outcome(ours.from_json, data, partial_mode=True, float_mode="decimal") == "[Decimal('1.50')]"
    assert repr(ours.from_json(b"[NaN, -Infinity]", float_mode="decimal")) == "[Decimal('NaN'), Decimal('-Infinity')]"
    assert repr(ours.from_json(b"[NaN, -Infinity]", float_mode="lossless-float")) == "[LosslessFloat(NaN), LosslessFloat(-Infinity)]"
    with pytest.raises(ValueError, match=r"Internal error: .* at line 1 column 24"):
        ours.from_json(b"[1e99999999999999999999]", float_mode="decimal")


def test_a_key_that_comes_twice_is_named_as_jiter_names_it() -> None:
    for key, shown in ((b"a", "a"), (b"\\u00e9", "é"), (b'\\"\\n', '\\"\\n'), (b"\\u200b\\u0301", "\\u{200b}\\u{301}")):
        data = b'{"%b": 1, "%b" : 2}' % (key, key)
        words = f'ValueError: Detected duplicate key "{shown}" at line 1 column {data.rindex(b":") + 2}'
        assert outcome(ours.from_json, data, catch_duplicate_keys=True) == words
    for data, wrong in ((b'{"a": 1, "a"', "EOF while parsing an object at line 1 column 12"), (b'{"a": 1, "a"}', "expected `:` at line 1 column 13")):
        assert outcome(ours.from_json, data, catch_duplicate_keys=True) == f"ValueError: {wrong}"
    assert ours.from_json(b'{"a": 1, "a"', catch_duplicate_keys=True, partial_mode=True) == {"a": 1}


def test_what_it_does_not_take() -> None:
    for options, error in (
        ({"partial_mode": "half"}, ValueError),
        ({"partial_mode": 1.5}, TypeError),
        ({"float_mode": "int"}, ValueError),
        ({"cache_mode": "some"}, ValueError),
    ):
        with pytest.raises(error, match="Invalid"):
            ours.from_json(b"1", **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes bytes, not str"):
        ours.from_json("1")  # type: ignore[arg-type]
    for wrong in ("[1", 3, None):
        with pytest.raises(TypeError, match="takes bytes, not"):
            ours.GrowingJSON()(wrong)
    with pytest.raises(ValueError, match="needs a partial mode"):
        ours.GrowingJSON(partial_mode=False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_buffers"):
        ours.GrowingJSON(max_buffers=0)
    ours.cache_clear()
    assert ours.cache_usage() == 0
