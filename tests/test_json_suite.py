"""JSONTestSuite, JSON benchmark documents, truncated documents of other libraries, and our own cases; skipped on a clone without them."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

import oracle
import toolwire as tw
from helpers import NO_SHARED, SHARED, every_chunking, run, same
from toolwire.errors import CODES

SUITE = SHARED / "corpora" / "json-test-suite"
DOCS = SHARED / "corpora" / "json-docs"
PARTIAL = SHARED / "corpora" / "partial-json"
CASES = SHARED / "cases.jsonl"

#: Every free choice of the suite, made once: the error code, or None where the document is accepted with json.loads' value.
CHOICES: dict[str, str | None] = {
    # Numbers: integers are exact, floats as Python rounds them (out of range is infinite, too small is 0).
    "i_number_double_huge_neg_exp": None,
    "i_number_huge_exp": None,
    "i_number_neg_int_huge_exp": None,
    "i_number_pos_double_huge_exp": None,
    "i_number_real_neg_overflow": None,
    "i_number_real_pos_overflow": None,
    "i_number_real_underflow": None,
    "i_number_too_big_neg_int": None,
    "i_number_too_big_pos_int": None,
    "i_number_very_big_negative_int": None,
    # Half a surrogate pair is an error unless an option says otherwise.
    "i_object_key_lone_2nd_surrogate": "json.lone_surrogate",
    "i_string_1st_surrogate_but_2nd_missing": "json.lone_surrogate",
    "i_string_1st_valid_surrogate_2nd_invalid": "json.lone_surrogate",
    "i_string_incomplete_surrogate_and_escape_valid": "json.lone_surrogate",
    "i_string_incomplete_surrogate_pair": "json.lone_surrogate",
    "i_string_incomplete_surrogates_escape_valid": "json.lone_surrogate",
    "i_string_invalid_lonely_surrogate": "json.lone_surrogate",
    "i_string_invalid_surrogate": "json.lone_surrogate",
    "i_string_inverted_surrogates_U+1D11E": "json.lone_surrogate",
    "i_string_lone_second_surrogate": "json.lone_surrogate",
    # RFC 8259 section 8.1: UTF-8, well-formed, without a byte order mark.
    "i_string_UTF-8_invalid_sequence": "json.bad_utf8",
    "i_string_UTF8_surrogate_U+D800": "json.bad_utf8",
    "i_string_invalid_utf-8": "json.bad_utf8",
    "i_string_iso_latin_1": "json.bad_utf8",
    "i_string_lone_utf8_continuation_byte": "json.bad_utf8",
    "i_string_not_in_unicode_range": "json.bad_utf8",
    "i_string_overlong_sequence_2_bytes": "json.bad_utf8",
    "i_string_overlong_sequence_6_bytes": "json.bad_utf8",
    "i_string_overlong_sequence_6_bytes_null": "json.bad_utf8",
    "i_string_truncated-utf-8": "json.bad_utf8",
    "i_string_UTF-16LE_with_BOM": "json.unexpected_byte",
    "i_string_utf16BE_no_BOM": "json.unexpected_byte",
    "i_string_utf16LE_no_BOM": "json.unexpected_byte",
    "i_structure_UTF-8_BOM_empty_object": "json.unexpected_byte",
    # Below max_depth.
    "i_structure_500_nested_arrays": None,
}
#: With surrogates="keep" these too are what json.loads makes of them.
KEPT = [name for name, code in CHOICES.items() if code == "json.lone_surrogate"]

needs_suite = pytest.mark.skipif(not SUITE.is_dir(), reason=NO_SHARED)


def files(pattern: str, folder: str = "test_parsing") -> list[Any]:
    found = sorted((SUITE / folder).glob(pattern + ".json"))
    return [pytest.param(path, id=path.stem) for path in found] or [pytest.param(None, marks=pytest.mark.skip(reason=NO_SHARED))]


def same_for_every_cut(data: bytes, **options: Any) -> Any:
    """The one outcome; for large inputs some of the single cuts."""
    most = None if len(data) < 2_000 else 40
    outcomes = {run(tw.JSONParser(**options), chunks) for chunks in every_chunking(data, random.Random(1), most=most)}
    assert len(outcomes) == 1, outcomes
    return outcomes.pop()


def same_as_json_loads(data: bytes, **options: Any) -> None:
    want = json.loads(data)
    out = same_for_every_cut(data, **options)
    assert out.error is None and out.complete and out.value == repr(want)
    assert out.consumed == len(data.rstrip(b" \t\r\n")) and out.unused == data[out.consumed :]
    assert same(tw.loads(data, **options), want)


@pytest.mark.parametrize("path", files("y_*"))
def test_what_must_be_accepted_has_the_value_of_json_loads(path: Path) -> None:
    same_as_json_loads(path.read_bytes())


@pytest.mark.parametrize("path", files("n_*"))
def test_what_must_be_refused_is_refused_at_one_offset(path: Path) -> None:
    data = path.read_bytes()
    error = same_for_every_cut(data).error
    assert error is not None
    kind, code, offset = error
    assert code in CODES and 0 <= offset <= len(data)
    assert (kind == "TruncatedJSON") == (code == "json.truncated")
    if code == "json.too_deep":  # the two huge ones are truncated in truth, and stopped before
        assert kind == "LimitExceeded" and len(data) > 10_000
        deep = same_for_every_cut_of_the_huge(data)
        assert deep == ("TruncatedJSON", "json.truncated", len(data))
    else:
        want = oracle.read(data, at_end=True)
        assert code in want.codes and offset == want.offset


def same_for_every_cut_of_the_huge(data: bytes) -> tuple[str, str, int | None]:
    """Without the depth limit; values this deep can not be printed, so only errors are compared."""
    seen = set()
    for chunks in every_chunking(data, random.Random(1), most=3, randoms=1):
        p = tw.JSONParser(max_depth=200_000)
        for chunk in chunks:
            p.feed(chunk)
        with pytest.raises(tw.TruncatedJSON) as caught:
            p.finish()
        seen.add((type(caught.value).__name__, caught.value.code, caught.value.offset))
    assert len(seen) == 1
    return seen.pop()


@pytest.mark.parametrize("path", files("i_*"))
def test_what_is_free_is_as_chosen(path: Path) -> None:
    data, code = path.read_bytes(), CHOICES[path.stem]
    if code is None:
        same_as_json_loads(data)
    else:
        error = same_for_every_cut(data).error
        want = oracle.read(data, at_end=True)
        assert error is not None and error[0] == "MalformedJSON"
        assert error[1] == code and error[2] == want.offset
    if path.stem in KEPT:
        same_as_json_loads(data, surrogates="keep")
        replaced = same_for_every_cut(data, surrogates="replace")
        assert replaced.error is None and "\\ud" not in replaced.value and "\ufffd" in replaced.value
        assert {m[0] for m in replaced.marks} == {"lone_surrogate"}


@needs_suite
def test_every_choice_is_a_file_of_the_suite() -> None:
    assert set(CHOICES) == {path.stem for path in (SUITE / "test_parsing").glob("i_*.json")}
    assert len(list((SUITE / "test_parsing").iterdir())) == 318


@pytest.mark.parametrize("path", files("*", "test_transform"))
def test_documents_that_parsers_read_in_different_ways_are_read_as_json_loads_does(path: Path) -> None:
    data = path.read_bytes()
    try:
        data.decode()
    except UnicodeDecodeError:
        error = same_for_every_cut(data).error
        assert error is not None and error[1] == "json.bad_utf8"
        return
    same_as_json_loads(data, surrogates="keep")
    marks = {m[0] for m in same_for_every_cut(data, surrogates="keep").marks}
    assert ("duplicate_key" in marks) == path.stem.startswith("object_same_key")


# -- documents used in benchmarks


@pytest.mark.skipif(not DOCS.is_dir(), reason=NO_SHARED)
def test_benchmark_documents_whole_and_in_pieces() -> None:
    rng = random.Random(1)
    count = 0
    for path in sorted(DOCS.rglob("*.*json")):
        data = path.read_bytes()
        for document in data.splitlines()[:50] if path.suffix == ".ndjson" else [data]:
            if len(document) > 1_000_000:
                continue  # their kind is there in smaller files
            try:
                want = json.loads(document)
            except ValueError:  # one was damaged when its addresses were replaced
                error = run(tw.JSONParser(), [document]).error
                assert error is not None and error[0] == "MalformedJSON" and error[2] == oracle.read(document).offset
                continue
            assert same(tw.loads(document), want), path.name
            p = tw.JSONParser()
            at = 0
            while at < len(document):
                size = rng.randint(1, 3000)
                p.feed(document[at : at + size])
                at += size
            assert same(p.finish(), want), path.name
            count += 1
    assert count > 20


# -- truncated documents


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line] if path.is_file() else []


def is_prefix(shown: Any, later: Any) -> bool:
    if isinstance(shown, str):
        return isinstance(later, str) and later.startswith(shown)
    if isinstance(shown, list):
        return isinstance(later, list) and len(shown) <= len(later) and all(map(is_prefix, shown, later))
    if isinstance(shown, dict):
        return isinstance(later, dict) and shown.keys() <= later.keys() and all(is_prefix(shown[k], later[k]) for k in shown)
    return same(shown, later)


def monotonic(chunks: list[Any]) -> Any:
    """Feed valid text in pieces: nothing raises, and what is shown only grows. Returns the last value."""
    p = tw.JSONParser()
    shown: Any = tw.MISSING
    for chunk in chunks:
        p.feed(chunk)
        now = p.snapshot()
        assert shown is tw.MISSING or is_prefix(shown, now), (shown, now)
        assert same(now, p.value)
        shown = now
    return shown


@pytest.mark.skipif(not PARTIAL.is_dir(), reason=NO_SHARED)
def test_every_prefix_another_library_was_tried_on() -> None:
    tried = lines(PARTIAL / "cases.jsonl")
    assert len(tried) == 221
    for case in tried:
        data = base64.b64decode(case["input_base64"]) if "input_base64" in case else case["input"].encode("utf-8", "surrogatepass")
        out = same_for_every_cut(data)
        want = oracle.read(data, at_end=True)
        assert out.value == repr(want.value), data
        assert (out.error is None) == (not want.codes), data
        if out.error:
            assert out.error[1] in want.codes and out.error[2] == want.offset, data
            assert (out.error[0] == "TruncatedJSON") == (want.state == "incomplete"), data


@pytest.mark.skipif(not PARTIAL.is_dir(), reason=NO_SHARED)
def test_token_streams_of_another_library_grow_and_end_in_the_same_value() -> None:
    seen = 0
    for stream in lines(PARTIAL / "streams.jsonl"):
        if "chunks" in stream and stream["peer"].startswith("langchain"):
            snapshots = [s for s in stream["snapshots"] if s is not None]
            text = "".join(stream["chunks"])
            try:
                want = json.loads(text)
            except ValueError:
                continue
            assert same(monotonic(stream["chunks"]), want)
            assert snapshots[-1] == want
            seen += 1
        if "document" in stream:
            data = stream["document"].encode()
            last = monotonic([data[i : i + 1] for i in range(len(data))])
            assert same(last, oracle.read(data).value)
            seen += 1
    assert seen == 7


# -- our cases


def cases(layer: str) -> list[Any]:
    found = [pytest.param(case, id=str(case["n"])) for case in lines(CASES) if case["layer"] == layer]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=NO_SHARED))]


@pytest.mark.parametrize("case", cases("json"))
def test_case(case: dict[str, Any]) -> None:
    expected = case["expected"]
    chunks = [c.encode("latin-1") for c in case["input"]]
    data = b"".join(chunks)
    p = tw.JSONParser(surrogates="replace")
    error: Any = None
    for chunk, want in zip(chunks, expected["snapshots"], strict=True):
        try:
            p.feed(chunk)
        except tw.StreamError as e:
            error = error or e
            assert e is error
        got = p.snapshot()
        if "value" in want:
            assert same(got, want["value"])
        elif "allowed" in want:
            assert any(same(got, value) for value in want["allowed"])
    out = same_for_every_cut(data, surrogates="replace")
    assert out.consumed == expected["complete_at"]
    codes = {"invalid_escape": "json.bad_escape", "incomplete": "json.truncated", "trailing_data": "json.trailing_data"}
    want = expected.get("error")
    assert (out.error and out.error[1:]) == (want and (codes[want["kind"]], want["at"]))
    for cut in every_chunking(data, random.Random(1)):
        if not want or want["kind"] == "incomplete":
            q = tw.JSONParser(surrogates="replace")
            shown: Any = tw.MISSING
            for chunk in cut:
                q.feed(chunk)
                assert shown is tw.MISSING or is_prefix(shown, q.value)
                shown = q.snapshot()


@pytest.mark.parametrize("case", cases("json-docs"))
def test_case_of_several_documents(case: dict[str, Any]) -> None:
    for text, want in zip(case["input"], case["expected"]["each"], strict=True):
        for chunks in every_chunking(text.encode("latin-1"), random.Random(1)):
            p = tw.JSONParser()
            state: dict[str, Any] = {"state": "incomplete"}
            try:
                for chunk in chunks:
                    p.feed(chunk)
                if p.complete:
                    state = {"state": "complete", "complete_at": p.consumed}
            except tw.MalformedJSON as e:
                state = {"state": "invalid", "at": e.offset}
            assert state.items() <= want.items()
            if want.get("no_value"):
                assert p.value is tw.MISSING
            if want.get("then"):
                with pytest.raises(tw.MalformedJSON) as caught:
                    p.finish()
                assert (caught.value.code, caught.value.offset) == ("json." + want["then"]["kind"], want["then"]["at"])
