"""``JSONParser.tap`` and ``items``: against ``json.loads`` and a walk, for drawn documents, paths and cuts; then what may happen to them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import pickle
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import toolwire as tw
from helpers import cut_at, every_chunking, json_texts, left_behind, most_held, mutated, odd_json_texts, same
from turn_helpers import chat, dumps, entry, ways

Path = tuple[str | int, ...]
LENIENT: dict[str, Any] = {"surrogates": "keep", "allow_nan": True, "allow_control_characters": True}


# -- the oracle: the whole document, and a walk through it


class Pairs(list[tuple[str, Any]]):
    """An object with all its members, equal keys too."""


def read_pairs(text: str) -> Any:
    return json.loads(text, strict=False, object_pairs_hook=Pairs)


def is_any(step: str | int) -> bool:
    return step == "*" and not isinstance(step, tw.Key)


def plain(value: Any) -> Any:
    if isinstance(value, Pairs):
        return {k: plain(v) for k, v in value}
    return [plain(v) for v in value] if isinstance(value, list) else value


def at(value: Any, path: Path, here: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that the path leads to, in the order of the document."""
    if not path:
        yield here, value
        return
    members: Any = value if isinstance(value, Pairs) else list(enumerate(value)) if isinstance(value, list) else []
    for step, child in members:
        if is_any(path[0]) or (type(step) is int if isinstance(path[0], int) else type(step) is str) and step == path[0]:
            yield from at(child, path[1:], (*here, step))


def strings_at(text: str, path: Path) -> list[tw.TextPiece]:
    return [tw.TextPiece(p, v, True) for p, v in at(read_pairs(text), path) if isinstance(v, str)]


def items_at(text: str, path: Path) -> list[tuple[Path, Any]]:
    arrays = [(p, v) for p, v in at(read_pairs(text), path) if isinstance(v, list) and not isinstance(v, Pairs)]
    return [((*p, i), plain(item)) for p, v in arrays for i, item in enumerate(v)]


def without_items(text: str, path: Path) -> Any:
    """The document after its arrays at ``path`` were handed out and forgotten."""
    value = read_pairs(text)
    for _, array in at(value, path):
        if isinstance(array, list) and not isinstance(array, Pairs):
            array.clear()
    return plain(value)


def has_one_of_each_key(value: Any) -> bool:
    children = [v for _, v in value] if isinstance(value, Pairs) else value if isinstance(value, list) else []
    own = len({k for k, _ in value}) == len(value) if isinstance(value, Pairs) else True
    return own and all(has_one_of_each_key(child) for child in children)


# -- drawing


class Case(NamedTuple):
    text: str
    path: Path
    chunks: list[bytes]


@st.composite
def cases(draw: st.DrawFn, texts: st.SearchStrategy[str] = json_texts) -> Case:
    """A document, a path that mostly leads somewhere in it, and cuts."""
    text = draw(texts)
    here, path = read_pairs(text), list[str | int]()
    while isinstance(here, list) and (here or draw(st.booleans())) and draw(st.integers(0, 4)):
        if not here:
            path.append(draw(st.sampled_from([0, "a", "*"])))
            break
        i = draw(st.integers(0, len(here) - 1))
        step, child = here[i] if isinstance(here, Pairs) else (i, here[i])
        if draw(st.integers(0, 2)) == 0:
            path.append("*")
        else:
            path.append(tw.Key(step) if isinstance(step, str) and draw(st.booleans()) else step)
        here = child
    data = text.encode("utf-8", "surrogatepass")
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=8))
    return Case(text, tuple(path), cut_at(data, cuts))


def merge(pieces: list[tw.TextPiece]) -> list[tw.TextPiece]:
    """The pieces of one string as one."""
    merged: list[tw.TextPiece] = []
    for piece in pieces:
        if merged and not merged[-1].complete:
            assert piece.path == merged[-1].path, "a string begins before the last one was complete"
            merged[-1] = tw.TextPiece(piece.path, merged[-1].text + piece.text, piece.complete)
        else:
            merged.append(piece)
        assert piece.text or piece.complete, "a piece without news"
    return merged


def read_into(pieces: list[tw.TextPiece], tap: tw.StringTap) -> None:
    """The same through ``read``, often enough."""
    for _ in range(8):
        text = tap.read()
        known = pieces and pieces[-1].path == tap.path and pieces[-1].complete
        if tap.path is not None and (text or tap.complete) and (text or not known):
            pieces.append(tw.TextPiece(tap.path, text, tap.complete))


# -- properties


@given(cases())
@example(Case('{"a":"x","a":"y"}', ("a",), [b'{"a":"x', b'","a":"y"}']))
@example(Case('[["\\ud83d\\ude00"],["",""]]', ("*", "*"), cut_at(b'[["\\ud83d\\ude00"],["",""]]', [8, 10, 16, 20])))
def test_a_tap_gives_the_strings_that_a_walk_finds_for_every_cut(case: Case) -> None:
    p = tw.JSONParser()
    tap = p.tap(case.path)
    pieces: list[tw.TextPiece] = []
    for chunk in case.chunks:
        p.feed(chunk)
        pieces += tap.pieces()
        assert tap.pieces() == []
    p.finish()
    assert tap.pieces() == []
    assert merge(pieces) == strings_at(case.text, case.path)


@given(cases())
def test_items_gives_the_elements_that_a_walk_finds_for_every_cut(case: Case) -> None:
    p = tw.JSONParser()
    items, pairs = p.items(case.path), p.items(case.path, paths=True)
    got: list[Any] = []
    for chunk in case.chunks:
        p.feed(chunk)
        got += items.read()
        assert items.read() == []
    want = items_at(case.text, case.path)
    assert same(got, [item for _, item in want])
    assert same(pairs.read(), want)
    assert same(p.finish(), json.loads(case.text))


@given(cases())
@example(Case('{"a":[[1,[2]],[3]]}', ("a", "*"), [b'{"a":[[1,[2]', b"],[3]]}"]))
def test_forgotten_elements_are_those_that_were_handed_out_and_no_others(case: Case) -> None:
    p = tw.JSONParser()
    items = p.items(case.path, forget=True, paths=True)
    other = p.items(case.path, paths=True)
    for chunk in case.chunks:
        p.feed(chunk)
        p.snapshot()
    want = items_at(case.text, case.path)
    assert same(items.read(), want) and same(other.read(), want)
    assert same(p.finish(), without_items(case.text, case.path))


@given(cases(odd_json_texts))
def test_what_options_tolerate_comes_out_as_json_loads_has_it(case: Case) -> None:
    try:
        chunks: list[Any] = [chunk.decode() for chunk in case.chunks]
    except UnicodeDecodeError:
        chunks = list(case.chunks)
    p = tw.JSONParser(**LENIENT)
    tap, items, pieces = p.tap(case.path), p.items(case.path, paths=True), []
    for chunk in chunks:
        p.feed(chunk)
        pieces += tap.pieces()
    assert merge(pieces) == strings_at(case.text, case.path)
    assert same(items.read(), items_at(case.text, case.path))


@given(cases(), st.data())
def test_a_tap_may_be_opened_or_pickled_anywhere(case: Case, data: st.DataObject) -> None:
    """Keys that come twice are left out: of those only the last is still there."""
    assume(has_one_of_each_key(read_pairs(case.text)))
    opened = data.draw(st.integers(0, len(case.chunks)))
    pickled = data.draw(st.integers(0, len(case.chunks)))
    p = tw.JSONParser()
    taps: Any = ()
    pieces: list[tw.TextPiece] = []
    got: list[Any] = []
    for i in range(len(case.chunks) + 1):
        if i == opened:
            plain_items = p.items(case.path)  # first: the other one leaves nothing to find
            taps = p.tap(case.path), p.items(case.path, forget=True, paths=True), plain_items
        if i == pickled:
            p, taps = pickle.loads(pickle.dumps((p, taps)))
        if taps and i % 2:
            pieces += taps[0].pieces()
            got += taps[1].read()
        if i < len(case.chunks):
            p.feed(case.chunks[i])
    pieces += taps[0].pieces()
    got += taps[1].read()
    want = items_at(case.text, case.path)
    assert merge(pieces) == strings_at(case.text, case.path)
    assert same(got, want)
    assert same(taps[2].read(), [item for _, item in want])
    assert same(p.finish(), without_items(case.text, case.path))


@given(mutated(), st.lists(st.sampled_from(["*", "a", "b", 0, 1]), max_size=3).map(tuple), st.integers(1, 5))
def test_a_wrong_or_cut_document_gives_the_same_texts_and_elements_for_every_cut(data: bytes, path: Path, size: int) -> None:
    def facts(chunks: list[bytes]) -> Any:
        p = tw.JSONParser()
        tap, items, pieces = p.tap(path), p.items(path, paths=True), []
        with contextlib.suppress(tw.StreamError):
            for chunk in chunks:
                p.feed(chunk)
                pieces += tap.pieces()
        return merge(pieces + tap.pieces()), repr(items.read()), tap.complete

    whole = facts([data])
    assert facts([data[i : i + size] for i in range(0, len(data), size)]) == whole
    for piece in whole[0][:-1]:
        assert piece.complete


DOCUMENT = '{"files":[{"name":"ä.py","body":"a\\n\\ud83d\\ude00\\u00e9"},{"body":""},{"body":7},{"body":["x"]}, 12 ,{"body":"é"}],"*":"star","n":-1}'


@pytest.mark.parametrize("path", [("files", "*", "body"), ("files", 0, "body"), ("files", 5, "body"), ("*",), (tw.Key("*"),), ("*", "*", "*"), ()])
def test_every_cut_gives_the_same_pieces_and_items(path: Path) -> None:
    data = DOCUMENT.encode()
    want, elements = strings_at(DOCUMENT, path), items_at(DOCUMENT, path)
    for chunks in every_chunking(data, random.Random(1)):
        p = tw.JSONParser()
        tap, reader, items = p.tap(path), p.tap(path), p.items(path, paths=True)
        pieces, reads, got = [], [], []
        for chunk in chunks:
            p.feed(chunk)
            pieces += tap.pieces()
            read_into(reads, reader)
            got += items.read()
        assert merge(pieces) == want
        assert merge(reads) == want
        assert same(got, elements)


# -- what a tap says


def test_read_gives_what_is_new_and_complete_says_when_it_is_all() -> None:
    p = tw.JSONParser()
    tap = p.tap(("body",))
    assert (tap.read(), tap.path, tap.complete) == ("", None, False)
    p.feed(b'{"name":"x","body":"one ')
    assert (tap.read(), tap.path, tap.complete) == ("one ", ("body",), False)
    assert (tap.read(), tap.complete) == ("", False)
    p.feed(b"two\\")
    assert tap.read() == "two"
    p.feed(b"n\\ud83d")
    assert tap.read() == "\n"
    p.feed(b"\\ude00\xc3")
    assert tap.read() == "\U0001f600"
    p.feed(b'\xa9"')
    assert not tap.complete, "not all of it was read"
    assert (tap.read(), tap.complete) == ("é", True)
    p.feed(b',"z":"no"}')
    assert (tap.read(), tap.complete, tap.path) == ("", True, ("body",))


def test_complete_is_true_as_soon_as_a_string_ends_that_was_read() -> None:
    p = tw.JSONParser()
    tap = p.tap(())
    p.feed(b'"abc')
    assert tap.read() == "abc" and not tap.complete
    p.feed(b'"')
    assert tap.complete
    assert tap.read() == "" and tap.complete


def test_reads_never_join_two_strings() -> None:
    p = tw.JSONParser()
    tap = p.tap(("*", "t"))
    p.feed(b'[{"t":"one"},{"t":""},{"t":"thr')
    seen = [(tap.read(), tap.path, tap.complete) for _ in range(4)]
    assert seen == [("one", (0, "t"), True), ("", (1, "t"), True), ("thr", (2, "t"), False), ("", (2, "t"), False)]
    p.feed(b'ee"},{"t":"four"}]')
    assert [(tap.read(), tap.path, tap.complete) for _ in range(2)] == [("ee", (2, "t"), True), ("four", (3, "t"), True)]


def test_a_key_that_comes_twice_gives_two_strings() -> None:
    p = tw.JSONParser()
    tap = p.tap(("a",))
    p.feed(b'{"a":"first","a":"sec')
    assert tap.pieces() == [(("a",), "first", True), (("a",), "sec", False)]
    p.feed(b'ond"}')
    assert tap.pieces() == [(("a",), "ond", True)]
    assert p.finish() == {"a": "second"}


def test_strings_that_nobody_reads_wait_in_order() -> None:
    p = tw.JSONParser()
    tap = p.tap(("*",))
    for i in range(1000):
        p.feed(b'%s"%d"' % (b"," if i else b"[", i))
        if i % 2:
            assert tap.read() == str(i // 2) and tap.complete
    assert [piece.text for piece in tap.pieces()] == [str(i) for i in range(500, 1000)]


@pytest.mark.parametrize("value", ["7", "null", '["x"]', '{"a":"x"}', "true"])
def test_a_value_that_is_no_string_gives_nothing(value: str) -> None:
    p = tw.JSONParser()
    tap = p.tap(("a",))
    p.feed(f'{{"a":{value}}}')
    assert (tap.pieces(), tap.path, tap.complete) == ([], None, False)
    assert p.state(("a",)) == "complete"


def test_a_step_is_a_key_or_an_index_and_never_the_one_for_the_other() -> None:
    p = tw.JSONParser()
    taps = [p.tap(("v", step)) for step in (0, "0", "*", tw.Key("*"))]
    p.feed(b'{"v":["list"],"v":{"0":"dict","*":"star"}}')
    assert [[piece.text for piece in tap.pieces()] for tap in taps] == [["list"], ["dict"], ["list", "dict", "star"], ["star"]]
    assert p.items(("v", "0")).read() == []


@pytest.mark.parametrize("path", ["body", b"body", None, 3, {"a": 1}, ("a", -1), ("a", True), ("a", 1.0), ("a", None), (("a",),)])
def test_what_is_no_path_is_refused(path: Any) -> None:
    p = tw.JSONParser()
    for make in (p.tap, p.items, lambda path: tw.StringTap(p, path), lambda path: tw.iter_items([b"[]"], path), lambda path: tw.aiter_text([b"[]"], path)):
        with pytest.raises(tw.UsageError):
            make(path)
    assert p.feed(b"[1]")


def test_an_index_beyond_every_list_is_never_met() -> None:
    p = tw.JSONParser()
    tap = p.tap((1 << 80,))
    p.feed(b'["a","b"]')
    assert tap.pieces() == []


def test_a_tap_that_comes_late_begins_at_the_beginning() -> None:
    p = tw.JSONParser()
    p.feed(b'{"done":"all","body":"one ')
    late = p.tap(("body",))
    assert (late.read(), late.complete) == ("one ", False)
    assert p.tap(("done",)).pieces() == [(("done",), "all", True)]
    assert p.tap(("*",)).pieces() == [(("done",), "all", True), (("body",), "one ", False)]
    p.feed(b'two"}')
    assert late.read() == "two"
    p.finish()
    assert p.tap(("body",)).read() == "one two"
    assert p.items(()).read() == []


def test_a_long_path_into_a_deep_document_is_followed_without_recursion() -> None:
    p = tw.JSONParser(max_depth=10_000)
    p.feed(b"[" * 5_000 + b'"x",1')
    assert p.tap(("*",) * 5_000).read() == "x"
    assert p.items(("*",) * 4_999, forget=True).read() == ["x"]
    p.feed(b',"y"')
    assert p.tap(("*",) * 5_000).read() == "y"


def test_an_error_or_a_cut_leaves_what_was_good_and_completes_nothing() -> None:
    p = tw.JSONParser()
    tap, items = p.tap((1,)), p.items(())
    with pytest.raises(tw.MalformedJSON):
        p.feed(b'[1,"abc\\q')
    assert (tap.read(), tap.complete, items.read()) == ("abc", False, [1])
    with pytest.raises(tw.MalformedJSON):
        p.finish()
    assert p.tap((1,)).read() == "abc", "opened afterwards"

    p = tw.JSONParser()
    tap, items = p.tap((1,)), p.items(())
    p.feed(b'[1,"abc')
    with pytest.raises(tw.TruncatedJSON):
        p.finish()
    assert (tap.read(), tap.complete, items.read()) == ("abc", False, [1])


def test_reset_starts_taps_anew() -> None:
    p = tw.JSONParser()
    tap, items = p.tap(("a", "*")), p.items(("a",))
    p.feed(b'{"a":["old","half')
    assert tap.read() == "old"
    p.reset()
    assert (tap.pieces(), tap.path, tap.complete, items.read()) == ([], None, False, [])
    p.feed(b'{"a":["new"]}')
    assert tap.pieces() == [(("a", 0), "new", True)]
    assert items.read() == ["new"]


# -- items


def test_elements_come_when_they_close() -> None:
    p = tw.JSONParser()
    items = p.items(("rows",))
    p.feed(b'{"rows":[{"a":[1')
    assert items.read() == []
    p.feed(b"]},12")
    assert items.read() == [{"a": [1]}], "12 may become 123"
    p.feed(b'3,"x","y')
    assert items.read() == [123, "x"]
    p.feed(b'",nul')
    assert items.read() == ["y"]
    p.feed(b"l,[]],")
    assert items.read() == [None, []]


def test_arrays_in_arrays_are_elements_and_have_some() -> None:
    p = tw.JSONParser()
    outer, inner = p.items(()), p.items(("*",), paths=True)
    p.feed(b"[[1,2],[],[[3]]]")
    assert outer.read() == [[1, 2], [], [[3]]]
    assert inner.read() == [((0, 0), 1), ((0, 1), 2), ((2, 0), [3])]


def test_what_was_handed_out_is_the_readers() -> None:
    p = tw.JSONParser()
    items = p.items((), forget=True)
    p.feed(b'[{"a":1},{"b":2},{"c":')
    got = items.read()
    got[0]["mine"] = got
    got.clear()
    p.feed(b"3}")
    assert items.read() == [{"c": 3}]
    assert p.value == []


def test_a_forgotten_array_keeps_its_indices() -> None:
    p = tw.JSONParser()
    items = p.items(("a",), forget=True)
    p.feed(b'{"a":[0,1,{"b":[7,"x')
    assert items.read() == [0, 1]
    assert p.value == {"a": [{"b": [7, "x"]}]}
    assert p.path == ("a", 2, "b", 1)
    states = {step: p.state(("a", step)) for step in range(4)}
    assert states == {0: "absent", 1: "absent", 2: "open", 3: "absent"}
    assert p.state(("a", 2, "b", 0)) == "complete" and p.state(("a",)) == "open"
    assert p.tap(("a", 2, "b", 1)).read() == "x" and p.tap(("a", 0, "b", 1)).read() == ""
    p.feed(b'"]},true')
    assert items.read() == [{"b": [7, "x"]}, True] and p.value == {"a": []}
    p.feed(b"]}")
    assert p.finish() == {"a": []}


def test_elements_stay_once_the_tap_that_forgets_is_dropped() -> None:
    p = tw.JSONParser()
    items = p.items((), forget=True)
    p.feed(b"[1,2,")
    del items
    p.feed(b"3,4]")
    assert p.finish() == [3, 4]


def test_a_snapshot_keeps_what_is_forgotten_later() -> None:
    p = tw.JSONParser()
    p.feed(b"[" + b"0," * 100 + b"1,")
    kept = p.snapshot()
    items = p.items((), forget=True)
    p.feed(b"2,")
    other = p.snapshot()
    p.feed(b"3]")
    assert kept == [0] * 100 + [1] and other == []
    assert items.read() == [*kept, 2, 3]


def test_a_caller_may_change_the_list_that_forgets() -> None:
    p = tw.JSONParser()
    items = p.items((), forget=True)
    p.feed(b'[1,{"a":')
    p.value.clear()
    p.value.extend(["mine", "too"])
    p.feed(b'2},3,"x')
    p.value.append("more")
    p.feed(b'y"]')
    assert items.read() == [1, {"a": 2}, 3, "xy"]


# -- what they cost


def test_an_array_without_end_takes_no_memory() -> None:
    def chunks(n: int) -> Iterator[bytes]:
        yield b'{"rows":['
        for i in range(n):
            yield b'{"id":%d,"cells":[1.5,"a\\nb",null]},' % i
        yield b"0]}"

    def read(n: int) -> None:
        p = tw.JSONParser()
        items, count = p.items(("rows",), forget=True), 0
        for chunk in chunks(n):
            p.feed(chunk)
            count += len(items.read())
            assert len(p.value.get("rows", ())) == 0
        assert count == n + 1

    read(100)
    assert most_held(lambda: read(8_000)) < 1 << 16
    assert most_held(lambda: sum(1 for _ in tw.iter_items(chunks(8_000), ("rows",)))) < 1 << 16


def test_arrays_that_a_path_leads_through_are_forgotten_by_the_loops() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"["
        for _ in range(8_000):
            yield b'{"rows":[[1,"x"]],"t":"y"},'
        yield b'{"rows":[]}]'

    assert most_held(lambda: sum(1 for _ in tw.iter_items(chunks(), ("*", "rows", "*")))) < 1 << 16
    assert most_held(lambda: sum(1 for _ in tw.iter_text(chunks(), ("*", "t")))) < 1 << 16
    assert most_held(lambda: sum(1 for _ in tw.iter_text(chunks(), (0, "t")))) < 1 << 16


def grows_in_place() -> bool:
    p = tw.JSONParser()
    p.feed(b'["' + b"x" * (1 << 20))
    p.feed(b"y")
    return most_held(lambda: [p.feed(b"y") for _ in range(10)]) < 1 << 19


@pytest.mark.skipif(not grows_in_place(), reason="built without growth in place")
@pytest.mark.parametrize("path", [("body",), ("*",)])
def test_reading_a_long_string_copies_only_what_is_new(path: Path) -> None:
    p = tw.JSONParser()
    tap = p.tap(path)
    p.feed(b'{"body":"')
    p.feed(b"x" * (1 << 20))
    kept = [tap.read()]
    p.feed(b"y")
    kept.append(tap.read())

    def watch() -> None:
        for _ in range(1000):
            p.feed(b"0123456789abcdef")
            kept.append(tap.read())

    assert most_held(watch) < 1 << 19, "one copy of the string is 1 MiB"
    assert "".join(kept) == p.value["body"]


def test_taps_that_fail_or_are_dropped_half_way_leave_nothing() -> None:
    data = '{"a":[{"b":"xé\\n"},"y",[1]],"a":["z"'.encode()

    def rounds() -> None:
        for i in range(200):
            p = tw.JSONParser()
            early = p.tap(("a", "*", "b")), p.items(("a",), forget=i % 2 == 0, paths=True), p.tap(("*", "*"))
            p.feed(data[: i % len(data)])
            late = p.tap(("*", "*", "b")), p.items(("*",), forget=i % 3 == 0)
            with contextlib.suppress(tw.UsageError):
                p.tap(("a", None))  # type: ignore[arg-type]
            with contextlib.suppress(ValueError):
                p.feed(data[i % len(data) :] + b"!" * (i % 5 == 0))
                early[0].read()
                late[1].read()
            if i % 7 == 0:
                p.reset()

    assert left_behind(rounds) < 4096


# -- who holds whom


def test_a_dropped_tap_is_gone_and_costs_nothing() -> None:
    p = tw.JSONParser()
    taps = [p.tap(("*",)) for _ in range(5)]
    refs = [weakref.ref(tap) for tap in taps]
    p.feed(b'["a","b')
    del taps[1:4]
    assert [ref() is None for ref in refs] == [False, True, True, True, False]
    p.feed(b'c","d"')
    assert [[piece.text for piece in tap.pieces()] for tap in taps] == [["a", "bc", "d"]] * 2
    taps.clear()
    p.feed(b',"e"]')
    assert p.finish() == ["a", "bc", "d", "e"]


def test_a_tap_keeps_its_parser() -> None:
    tap, items = (lambda p: (p.feed(b'["abc","d'), p.tap(("*",)), p.items(()))[1:])(tw.JSONParser())
    gc.collect()
    assert tap.pieces() == [((0,), "abc", True), ((1,), "d", False)] and items.read() == ["abc"]


def test_taps_in_cycles_are_collected() -> None:
    dead: list[str] = []

    class Note:
        def __init__(self, name: str, *held: Any) -> None:
            self.name, self.held = name, held

        def __del__(self) -> None:
            dead.append(self.name)

    p = tw.JSONParser()
    tap, items = p.tap(("*", "*")), p.items(("a",))
    p.feed(b'{"a":[["x"],{"y":"')
    p.value["tap"] = Note("through the tree", tap)
    items_of_its_own = items.read()[0]
    p2 = tw.JSONParser()
    queue = p2.items(())
    p2.feed(b"[[1]")
    p2.value[0].append(Note("through the queue", queue))
    items_of_its_own.append(Note("through both", items, tap))
    del p, tap, items, items_of_its_own, p2, queue
    gc.collect()
    assert sorted(dead) == ["through both", "through the queue", "through the tree"]


class Dies:
    """Does something to a parser and its taps when it is destroyed."""

    def __init__(self, work: Callable[[], Any], log: list[Any]) -> None:
        self.work, self.log = work, log

    def __del__(self) -> None:
        try:
            self.log.append(self.work())
        except Exception as error:
            self.log.append(error)


@pytest.mark.parametrize("what", ["feed", "reset", "read", "items", "tap", "drop", "clear", "pickle", "repr"])
def test_a_finaliser_may_do_anything_in_the_middle_of_a_feed(what: str) -> None:
    for rest in (b'"a":["x",{"b":"y"}]}', b'"a":[[1],2]}', b'"a":"x","a":"z"}', b'"a":"x\\n'):
        p, log = tw.JSONParser(), list[Any]()
        taps: list[Any] = [p.tap(("*",)), p.items(("a",), forget=True), p.tap(("a", "*", "b")), p.items(("a",))]
        tap = taps[0]
        p.feed(b'{"a":0,"z":"')
        tap.read()
        work: dict[str, Callable[[], Any]] = {
            "feed": lambda p=p: p.feed(b'"'),
            "reset": p.reset,
            "read": tap.read,
            "items": lambda p=p: p.items(("a",), forget=True),
            "tap": lambda p=p: p.tap(("a",)).read(),
            "drop": taps.clear,
            "clear": lambda p=p: p.value.clear(),
            "pickle": lambda tap=tap: pickle.dumps(tap),
            "repr": lambda tap=tap: repr(tap),
        }
        p.value["a"] = Dies(work[what], log)
        with contextlib.suppress(tw.StreamError):
            p.feed(b'open",' + rest)
        assert len(log) == 1
        if what in ("feed", "reset", "read", "items", "tap", "pickle"):
            assert isinstance(log[0], tw.UsageError), "said to be inside a feed"
        pieces = tap.pieces()
        assert pieces[0].text == "open" and pieces[0].complete
        del work, tap
        taps.clear()
        p.reset()
        assert p.feed(b"[1]")


def test_a_collection_at_any_allocation_never_crashes() -> None:
    before = gc.get_threshold()
    log: list[Any] = []
    try:
        gc.set_threshold(1)
        for i in range(25):
            p = tw.JSONParser()
            taps: list[Any] = [p.items(("*",), paths=True), p.tap(("*", "*"))]
            for work in (taps.pop, lambda p=p: p.feed(b"1,"), p.reset):
                cycle: list[Any] = [Dies(work, log)]
                cycle.append(cycle)
                del cycle
                with contextlib.suppress(tw.ToolwireError):
                    p.feed(b"[")
                    for _ in range(i):
                        p.feed(b'[1.5,"x",{"a":"')
                        taps.append(p.tap(("*", "*", "*")))
                        taps[-1].pieces()
                        p.feed(b'b"}],')
                        taps.append(p.items((), forget=True, paths=True))
                        taps[-1].read()
    finally:
        gc.set_threshold(*before)
    assert log


# -- calls


FILE = {"path": "a.py", "files": [{"body": 'print("é")\n'}, {"body": "\U0001f600" * 3}]}


def write_file() -> bytes:
    text = dumps(FILE)
    return chat(entry(0, "c1", "write_file", ""), *(entry(0, arguments=text[i : i + 5]) for i in range(0, len(text), 5)))


def test_a_file_body_streams_out_of_a_call() -> None:
    body = write_file()
    for chunks in ways(body):
        turn = tw.Turn("openai-chat")
        tap, late, pieces = None, None, list[tw.TextPiece]()
        for i, chunk in enumerate(chunks):
            for event in turn.feed(chunk):
                if isinstance(event, tw.CallStart):
                    tap = event.call.tap(("files", "*", "body"))
                elif isinstance(event, tw.ArgumentsDelta) and tap is not None:
                    pieces += tap.pieces()
                    late = late or event.call.tap(("files", 0, "body"))
            if i == len(chunks) // 2:
                turn, tap, late = pickle.loads(pickle.dumps((turn, tap, late)))
        result = turn.finish()
        assert tap is not None and late is not None
        assert merge(pieces + tap.pieces()) == [(("files", i, "body"), file["body"], True) for i, file in enumerate(FILE["files"])]  # type: ignore[arg-type]
        assert late.read() == FILE["files"][0]["body"] and late.complete  # type: ignore[index]
        decision = tw.TurnGate().decide(result)
        assert [run.arguments for run in decision.runnable] == [FILE]


def test_a_call_that_was_cut_never_completes_its_tap() -> None:
    body = write_file()
    turn = tw.Turn("openai-chat")
    turn.feed(body[: body.index(b"t(")])
    tap = turn.calls[0].tap(("*",))
    cut = turn.calls[0].tap(("files", 0, "body"))
    turn.finish()
    assert tap.read() == "a.py" and tap.complete
    assert "print".startswith(cut.read()) and cut.path is not None and not cut.complete


def test_wrong_arguments_keep_their_texts_and_raise_nothing() -> None:
    turn = tw.Turn("openai-chat")
    turn.feed(chat(entry(0, "c1", "f", '{"a":"one","b":"two\\q"}')))
    tap = turn.calls[0].tap(("*",))
    assert tap.pieces() == [(("a",), "one", True), (("b",), "two", False)]
    assert not tap.complete and turn.calls[0].error is not None


def test_free_text_has_no_paths() -> None:
    call = tw.ToolCall("k", id="c1", name="patch", kind="text", runs_on="client", choice=0, limits=tw.Limits())
    with pytest.raises(tw.UsageError, match="free text"):
        call.tap(())


# -- loops


class Source:
    """Chunks, with a note of what became of the source."""

    def __init__(self, *chunks: bytes | str, error: Exception | None = None) -> None:
        self.chunks, self.error, self.closed = list(chunks), error, 0

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> bytes | str:
        if self.chunks:
            return self.chunks.pop(0)
        if self.error is not None:
            raise self.error
        raise StopIteration

    def close(self) -> None:
        self.closed += 1


class AsyncSource(Source):
    def __aiter__(self) -> AsyncSource:
        return self

    async def __anext__(self) -> bytes | str:
        await asyncio.sleep(0)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1


class SilentSource(AsyncSource):
    """Gives no end."""

    waits = False

    async def __anext__(self) -> bytes | str:
        if not self.chunks:
            self.waits = True
            await asyncio.Event().wait()
        return await super().__anext__()


def collect(source: Any, path: Path, **options: Any) -> tuple[list[Any], Exception | None]:
    """All that one of the four loops gives, and what it raises."""
    got: list[Any] = []

    async def read_all() -> None:
        async for item in tw.aiter_items(source, path, **options):
            got.append(item)

    try:
        if isinstance(source, AsyncSource):
            asyncio.run(read_all())
        else:
            got.extend(tw.iter_items(source, path, **options))
    except Exception as error:
        return got, error
    return got, None


@pytest.mark.parametrize("make", [Source, AsyncSource])
def test_loops_give_the_good_elements_and_then_say_what_is_wrong(make: Callable[..., Source]) -> None:
    for chunks, error, want, raised in [
        ((b'{"a":[1,', "2", b'2,"x"]', b"}"), None, [1, 22, "x"], None),
        ((b'{"a":[1,', b'{"b":2},"cut'), None, [1, {"b": 2}], tw.TruncatedJSON),
        ((b'{"a":[1,2,tru!',), None, [1, 2], tw.MalformedJSON),
        ((b'{"a":[1,2]} x', b"y"), None, [1, 2], tw.MalformedJSON),
        ((b'{"a":[1,[[[2]]]]}',), None, [1], tw.LimitExceeded),
        ((b'{"a":[1,2',), OSError("gone"), [1], OSError),
        ((b'{"a":[1,', 5), None, [1], tw.UsageError),
        ((), None, [], tw.TruncatedJSON),
    ]:
        source = make(*chunks, error=error)
        got, caught = collect(source, ("a",), max_depth=3)
        assert got == want
        assert type(caught) is raised if raised else caught is None
        assert source.closed == 1


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_loops_give_what_a_walk_finds(size: int) -> None:
    data = DOCUMENT.encode()
    chunks = [data[i : i + size] for i in range(0, len(data), size)]

    async def read(path: Path) -> tuple[list[Any], list[Any], list[tw.TextPiece]]:
        items = [item async for item in tw.aiter_items(AsyncSource(*chunks), path, paths=True)]
        plain_source = [item async for item in tw.aiter_items(chunks, path, paths=True)]
        return items, plain_source, [piece async for piece in tw.aiter_text(AsyncSource(*chunks), path)]

    for path in ((), ("files",), ("*", "*", "body"), ("files", "*", "body"), ("*",)):
        want, texts = items_at(DOCUMENT, path), strings_at(DOCUMENT, path)
        assert list(tw.iter_items(chunks, path, paths=True)) == want
        assert list(tw.iter_items(chunks, path)) == [item for _, item in want]
        assert merge(list(tw.iter_text(chunks, path))) == texts
        items, plain_source, pieces = asyncio.run(read(path))
        assert items == plain_source == want
        assert merge(pieces) == texts


def test_leaving_a_loop_early_closes_the_source() -> None:
    source = Source(b"[1,2,", b"3]")
    for item in tw.iter_items(source):
        assert item == 1
        break
    gc.collect()
    assert source.closed == 1 and source.chunks == [b"3]"]

    async def leave(source: AsyncSource) -> None:
        async with contextlib.aclosing(tw.aiter_items(source)) as items:
            async for item in items:
                assert item == 1
                break

    aborted = AsyncSource(b"[1,2,", b"3]")
    asyncio.run(leave(aborted))
    assert aborted.closed == 1 and aborted.chunks == [b"3]"]

    async def cancelled(source: SilentSource, got: list[Any]) -> None:
        task = asyncio.ensure_future(read_into_list(source, got))
        while not source.waits:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def read_into_list(source: AsyncSource, got: list[Any]) -> None:
        async for item in tw.aiter_items(source):
            got.append(item)

    got: list[Any] = []
    silent = SilentSource(b"[1,2,")
    asyncio.run(cancelled(silent, got))
    assert silent.closed == 1 and got == [1, 2]


def test_a_source_that_fails_to_close_changes_nothing() -> None:
    class Stubborn(Source):
        def close(self) -> None:
            raise OSError("already gone")

    assert list(tw.iter_items(Stubborn(b"[1]"))) == [1]


@pytest.mark.parametrize("chunks", [b"[1]", "[1]", bytearray(b"[1]"), 5, None])
def test_loops_want_an_iterable_of_chunks(chunks: Any) -> None:
    for loop in (tw.iter_items, tw.aiter_items):
        with pytest.raises(tw.UsageError):
            loop(chunks, ())
    for loop in (tw.iter_text, tw.aiter_text):
        with pytest.raises(tw.UsageError):
            loop(chunks, ())
