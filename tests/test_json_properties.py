"""Drawn documents and drawn cuts: the parser against ``json.loads``, against the oracle, and against itself."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oracle
import toolwire as tw
from helpers import chunked, json_texts, mutated, odd_json_texts, outcome, run, same
from toolwire._calls import ArgumentBuffer
from toolwire._projection import Projection

DEFAULTS: dict[str, Any] = {}
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "surrogates": st.sampled_from(["error", "replace", "keep"]),
        "duplicate_keys": st.sampled_from(["last", "error"]),
        "allow_nan": st.booleans(),
        "allow_control_characters": st.booleans(),
        "max_depth": st.integers(1, 4),
        "max_bytes": st.integers(1, 40),
    },
)
LENIENT = {"surrogates": "keep", "allow_nan": True, "allow_control_characters": True}

#: A UTF-8 encoded document and its cuts; cuts fall inside characters too.
documents = chunked(json_texts.map(str.encode))


def agrees_at_every_prefix(data: bytes, options: dict[str, Any]) -> None:
    """Byte by byte: what is shown after each prefix is what the oracle reads from that prefix alone."""
    p = tw.JSONParser(**options)
    for n in range(len(data) + 1):
        want = oracle.read(data[:n], **options)
        where = data[:n], options
        if want.state == "malformed":
            # The prefix before was good, so a strict reading puts the blame on this byte; a refused token goes back to its start.
            with pytest.raises(tw.StreamError) as caught:
                p.feed(data[n - 1 : n])
            assert caught.value.offset == want.offset, where
            assert caught.value.code in want.codes, where
            assert want.offset == n - 1 or caught.value.code == "json.number_too_long", where
            assert same(p.value, want.value) and p.complete is (want.consumed is not None), where
            return
        assert p.feed(data[n - 1 : n] if n else b"") is (want.state == "complete"), where
        assert same(p.value, want.value), where
        assert p.complete is (want.state == "complete"), where
        assert p.consumed == want.consumed, where
        assert p.offset == n
        assert p.unused_data == (b"" if want.consumed is None else data[want.consumed : n]), where
        assert {str(m) for m in p.marks} == want.marks, where
    end = oracle.read(data, at_end=True, **options)
    if end.codes:
        with pytest.raises(ValueError) as caught:
            p.finish()
        assert caught.value.code in end.codes  # type: ignore[attr-defined]
        assert caught.value.offset == end.offset  # type: ignore[attr-defined]
        assert isinstance(caught.value, tw.TruncatedJSON if end.state == "incomplete" else tw.MalformedJSON)
    else:
        assert same(p.finish(), end.value)
        assert p.consumed == end.consumed
    assert same(p.value, end.value)


@given(documents)
def test_a_valid_document_has_the_value_of_json_loads_for_every_cut(case: tuple[bytes, list[bytes]]) -> None:
    data, chunks = case
    p = tw.JSONParser()
    for chunk in chunks:
        p.feed(chunk)
    want = json.loads(data)
    assert same(p.finish(), want)
    assert same(p.value, want) and same(p.snapshot(), want)
    assert p.complete and p.consumed == len(data.rstrip(b" \t\r\n"))
    assert same(tw.loads(data), want)


@given(chunked(json_texts))
def test_text_and_its_utf8_give_the_same_outcome(case: tuple[str, list[str]]) -> None:
    text, chunks = case
    assert run(tw.JSONParser(), chunks) == run(tw.JSONParser(), [text.encode()])
    assert same(tw.loads(text), json.loads(text))


@given(json_texts.map(str.encode))
@example(b'{"a":{"a":"x","a":[1')
@example(b'{"a":1,"a":"\xf0\x9f\x98\x80\\ud83d\\ude00"}')
@example(b"12 ,")
@example(b"-0.0e+1")
def test_oracle_and_parser_agree_at_every_prefix_of_a_document(data: bytes) -> None:
    agrees_at_every_prefix(data, DEFAULTS)


@given(mutated(), OPTIONS)
@example(b"  [ ] ", {"max_bytes": 5})
@example(b'"\\ud800\\x', {"surrogates": "replace"})
@example(b"[0\x00", {})
@example(b'[0"', {})
@example(b'"\\ud800\\ux', {"surrogates": "keep"})
@example(b'"\\ud800\x00', {})
@example(b'"\\ud800\xff', {})
@example(b"[-Ix", {"allow_nan": True})
@example(b"[[1]]", {"max_depth": 1})
@example(b'{"a":1,"a"', {"duplicate_keys": "error"})
def test_oracle_and_parser_agree_at_every_prefix_of_a_damaged_document(data: bytes, options: dict[str, Any]) -> None:
    agrees_at_every_prefix(data, options)


@given(mutated(odd_json_texts), OPTIONS)
def test_oracle_and_parser_agree_where_options_tolerate_something(data: bytes, options: dict[str, Any]) -> None:
    agrees_at_every_prefix(data, options)


@given(st.binary(max_size=24), st.sampled_from([b"", b'"', b"[", b'{"', b'{"a":', b"-", b"1", b'"\\u', b'"\\ud800']), OPTIONS)
def test_oracle_and_parser_agree_at_every_prefix_of_random_bytes(tail: bytes, head: bytes, options: dict[str, Any]) -> None:
    agrees_at_every_prefix(head + tail, options)


@given(chunked(st.one_of(mutated(), mutated(odd_json_texts), odd_json_texts.map(str.encode))), OPTIONS)
def test_whole_cut_and_byte_by_byte_end_in_the_same_outcome(case: tuple[bytes, list[bytes]], options: dict[str, Any]) -> None:
    data, chunks = case
    whole = run(tw.JSONParser(**options), [data])
    assert run(tw.JSONParser(**options), chunks) == whole
    assert run(tw.JSONParser(**options), [data[i : i + 1] for i in range(len(data))]) == whole


@given(chunked(odd_json_texts))
def test_odd_text_means_the_same_for_every_cut_and_as_json_loads_reads_it(case: tuple[str, list[str]]) -> None:
    text, chunks = case
    for options in ({**LENIENT}, {**LENIENT, "surrogates": "replace"}, {**LENIENT, "duplicate_keys": "error"}, {}):
        whole = run(tw.JSONParser(**options), [text])
        assert run(tw.JSONParser(**options), chunks) == whole
        assert run(tw.JSONParser(**options), list(text)) == whole
    assert same(tw.loads(text, **LENIENT), json.loads(text, strict=False))


def is_prefix(shown: Any, later: Any) -> bool:
    """May ``shown`` become ``later``? Keys stay, strings grow, scalars do not change, arrays get longer."""
    if isinstance(shown, str):
        return isinstance(later, str) and later.startswith(shown)
    if isinstance(shown, list):
        return isinstance(later, list) and len(shown) <= len(later) and all(map(is_prefix, shown, later))
    if isinstance(shown, dict):
        return isinstance(later, dict) and list(shown) == list(later)[: len(shown)] and all(is_prefix(shown[k], later[k]) for k in shown)
    return same(shown, later)


@given(documents)
def test_the_view_only_grows_and_snapshots_never_change(case: tuple[bytes, list[bytes]]) -> None:
    _, chunks = case
    p = tw.JSONParser(duplicate_keys="error")
    kept: list[tuple[Any, str]] = []
    try:
        for chunk in chunks:
            p.feed(chunk)
            kept.append((p.snapshot(), repr(p.snapshot())))
            assert repr(p.value) == kept[-1][1]
        kept.append((p.finish(), repr(p.value)))
    except tw.MalformedJSON:
        pass  # a repeated key: what was shown may well change, so that the property is about documents without
    for snapshot, then in kept:
        assert repr(snapshot) == then
    for (earlier, _), (later, _) in pairwise(kept):
        assert earlier is tw.MISSING or is_prefix(earlier, later)


@given(documents, st.data())
def test_reading_and_pickling_half_way_changes_nothing(case: tuple[bytes, list[bytes]], data: st.DataObject) -> None:
    """Any mix of value, snapshot (kept or dropped), pickle and reading nothing, between any two chunks."""
    document, chunks = case
    p = tw.JSONParser()
    kept = []
    for chunk in chunks:
        p.feed(chunk)
        match data.draw(st.sampled_from(["nothing", "value", "drop", "keep", "hold", "pickle"])):
            case "value":
                repr(p.value)
            case "drop":
                p.snapshot()
            case "keep":
                snapshot = p.snapshot()
                kept.append((snapshot, repr(snapshot)))
            case "hold":
                kept.append((p.value, None))
            case "pickle":
                before = outcome(p)
                p = pickle.loads(pickle.dumps(p))
                assert outcome(p) == before
    assert same(p.finish(), json.loads(document))
    for value, then in kept:
        assert then is None or repr(value) == then


@given(chunked(st.one_of(json_texts, odd_json_texts, mutated().map(lambda b: b.decode("latin-1")))))
def test_an_argument_buffer_filled_in_pieces_equals_one_filled_at_once(case: tuple[str, list[str]]) -> None:
    text, pieces = case
    whole, cut = ArgumentBuffer(max_chars=1 << 20), ArgumentBuffer(max_chars=1 << 20)
    shown_whole = whole.append(text) + whole.finish()
    shown_cut = "".join([cut.append(piece) for piece in pieces]) + cut.finish()
    assert shown_whole == shown_cut == text
    assert whole.text == cut.text == text and len(cut) == len(text)
    assert same(whole.value, cut.value) and whole.complete is cut.complete
    assert [(str(m), m.offset, m.path) for m in whole.marks] == [(str(m), m.offset, m.path) for m in cut.marks]
    if whole.error is None:
        assert cut.error is None
        assert same(cut.value, oracle.read(text.encode(), at_end=True, surrogates="replace").value)
    else:
        assert (type(cut.error), cut.error.code, cut.error.offset) == (type(whole.error), whole.error.code, whole.error.offset)
        want = oracle.read(text.encode(), at_end=True, surrogates="replace")
        assert cut.error.code in want.codes and cut.error.offset == want.offset


@given(chunked(st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\ud83d\ude00")), max_size=12)))
def test_shown_argument_text_is_whole_unicode_for_every_cut(case: tuple[str, list[str]]) -> None:
    text, pieces = case
    b = ArgumentBuffer(max_chars=1 << 20, json=False)
    shown = [b.append(piece) for piece in pieces] + [b.finish()]
    assert "".join(shown) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for piece in shown:
        piece.encode()


@given(json_texts, st.lists(st.sampled_from(['"', "}", "]", ",", "x", "\\", "1", ' "', '{"a":1}', "\x00"]), min_size=1, max_size=2).map("".join), st.data())
def test_rejects_says_what_append_would_find_and_changes_nothing(text: str, extra: str, data: st.DataObject) -> None:
    head = text[: data.draw(st.integers(0, len(text)))]
    b = ArgumentBuffer(max_chars=1 << 20)
    b.append(head)
    before = repr(b.value), b.complete, b.text
    want = oracle.read((head + extra).encode(), surrogates="replace")
    trailing = want.state == "complete" and (head + extra).encode()[want.consumed :].strip(b" \t\r\n")
    assert b.rejects(extra) is bool(want.state == "malformed" or trailing)
    assert (repr(b.value), b.complete, b.text) == before and b.error is None


specs = st.recursive(st.just(True), lambda s: st.dictionaries(st.sampled_from(["a", "b", "", "x"]), s, max_size=3), max_leaves=6)


def filtered(value: Any, spec: Any) -> Any:
    if spec is True:
        return value
    if isinstance(value, list):
        return [filtered(item, spec) for item in value]
    if isinstance(value, dict):
        return {k: filtered(v, spec[k]) for k, v in value.items() if k in spec}
    return value


@given(json_texts, specs)
def test_a_projection_is_json_loads_reduced_to_the_wanted_members(text: str, spec: Any) -> None:
    want = filtered(json.loads(text), spec)
    reader = Projection(spec)
    for data in (text, text.encode(), text):
        assert same(reader.apply(data), want)


@given(mutated(), specs)
@example(b'"\xed\xa0\x80"', True)
def test_a_projection_validates_what_it_does_not_build(data: bytes, spec: Any) -> None:
    want = oracle.read(data, at_end=True, surrogates="keep")
    reader = Projection(spec)
    if not want.codes:
        assert same(reader.apply(data), filtered(want.value, spec))
        return
    with pytest.raises(ValueError) as caught:
        reader.apply(data)
    assert caught.value.code in want.codes  # type: ignore[attr-defined]
    assert caught.value.offset == want.offset  # type: ignore[attr-defined]
    assert same(reader.apply(b'{"a":[{"b":1}]}'), filtered({"a": [{"b": 1}]}, spec)), "usable after an error"


# -- text that is read a block at a time ---------------------------------------------------------------------------------

_LONG_TEXT = st.lists(
    st.one_of(
        st.text("中文字漢語", min_size=1, max_size=9),
        st.text("абвгд", min_size=1, max_size=9),
        st.text("abc /:", min_size=1, max_size=20),
        st.text("é×ÿ\u0800\uffff\U00010000\U0010ffff\U0001f600", min_size=1, max_size=5),
        st.sampled_from([r"\n", r"\"", r"\\", r"\\\\", r"\u4e2d", r"\ud83d\ude00", r"\/", r"\t\t\t"]),
    ),
    min_size=3,
    max_size=40,
).map("".join)


@given(_LONG_TEXT, st.data())
def test_long_text_is_read_like_the_text_byte_by_byte(text: str, data: st.DataObject) -> None:
    """Blocks, tails and states agree, on well-formed and ill-formed bytes: value, error and its place."""
    body = bytearray(f'["{text}", "x{text}"]'.encode())
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(2, len(body) - 3))
        new = data.draw(st.one_of(st.sampled_from(_BAD), st.binary(min_size=1, max_size=1)))
        body[at : at + data.draw(st.integers(0, 2))] = new
    whole = run(tw.JSONParser(), [bytes(body)])
    assert whole == run(tw.JSONParser(), [bytes([b]) for b in body])
    try:
        want = json.loads(body.decode("utf-8"))
    except ValueError:
        assert whole.error is not None
    else:
        assert whole.error is None or "surrogate" in whole.error[1]
        if whole.error is None:
            got = tw.loads(bytes(body))
            assert same(got, want)
            # The narrowest form, as every str has: its size says so.
            for one, other in zip(got, want, strict=True):
                assert one.__sizeof__() == "".join(list(other)).__sizeof__()


_BAD = [
    b"\xc0",
    b"\xc1\x80",
    b"\xe0\x80",
    b"\xed\xa0\x80",
    b"\xf0\x80",
    b"\xf4\x90\x80\x80",
    b"\xf5",
    b"\x80",
    b"\xff",
    b"\xe4\xb8",
    b"\xf0\x9f\x98",
    b"\x00",
    b"\x1f",
    b"\\",
]


@given(st.integers(0, 10**25), st.integers(0, 40), st.integers(0, 12), st.sampled_from(["", "-"]), st.sampled_from([",", "]", " ,", "\n]", "x", ".", "e"]))
def test_numbers_of_every_length_are_read_like_json_does(digits: int, zeros: int, point: int, sign: str, behind: str) -> None:
    """Eight digits are read at a time, wherever a number stands and whatever follows it."""
    text = str(digits)
    number = sign + (text[:point] or "0") + ("." + "0" * zeros + text[point:] if point < len(text) else "")
    for body in (
        f"[{number}{behind}",
        f"[1,{number}{behind}{' ' * 16}",
        f"[{number},{number}]",
        f'{{"a":{number},"b":[{number},-{number}]}}'.replace("--", "-"),
    ):
        data = body.encode()
        whole = run(tw.JSONParser(), [data])
        assert whole == run(tw.JSONParser(), [bytes([b]) for b in data])
        try:
            want = json.loads(body)
        except ValueError:
            assert whole.error is not None
        else:
            assert same(tw.loads(data), want)
