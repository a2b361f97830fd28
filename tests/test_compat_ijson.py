"""`toolwire.compat.ijson`: what it gives without ijson, and that it gives what ijson's own backend in Python gives."""

from __future__ import annotations

import asyncio
import gc
import io
import pickle
import random
import sys
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import helpers
import toolwire.compat.ijson as ijson

DOCUMENT = """ {"docs": [{"null": null, "no": false, "yes": true, "int": 0, "half": 0.5, "exp": 1.0e+2, "long": 10000000000, "text": "\\u0441 тест"},
  {"": [1, [], {"a.b": {"c": "\\ud83d\\ude00"}}]}, 7, "s"], "docs.item": -1, "ñ": {"b": {}}} """.encode()

EVENTS: list[tuple[str, str, Any]] = [
    ("", "start_map", None),
    ("", "map_key", "docs"),
    ("docs", "start_array", None),
    ("docs.item", "start_map", None),
    ("docs.item", "map_key", "null"),
    ("docs.item.null", "null", None),
    ("docs.item", "map_key", "no"),
    ("docs.item.no", "boolean", False),
    ("docs.item", "map_key", "yes"),
    ("docs.item.yes", "boolean", True),
    ("docs.item", "map_key", "int"),
    ("docs.item.int", "number", 0),
    ("docs.item", "map_key", "half"),
    ("docs.item.half", "number", Decimal("0.5")),
    ("docs.item", "map_key", "exp"),
    ("docs.item.exp", "number", Decimal("1.0e+2")),
    ("docs.item", "map_key", "long"),
    ("docs.item.long", "number", 10000000000),
    ("docs.item", "map_key", "text"),
    ("docs.item.text", "string", "с тест"),
    ("docs.item", "end_map", None),
    ("docs.item", "start_map", None),
    ("docs.item", "map_key", ""),
    ("docs.item.", "start_array", None),
    ("docs.item..item", "number", 1),
    ("docs.item..item", "start_array", None),
    ("docs.item..item", "end_array", None),
    ("docs.item..item", "start_map", None),
    ("docs.item..item", "map_key", "a.b"),
    ("docs.item..item.a.b", "start_map", None),
    ("docs.item..item.a.b", "map_key", "c"),
    ("docs.item..item.a.b.c", "string", "😀"),
    ("docs.item..item.a.b", "end_map", None),
    ("docs.item..item", "end_map", None),
    ("docs.item.", "end_array", None),
    ("docs.item", "end_map", None),
    ("docs.item", "number", 7),
    ("docs.item", "string", "s"),
    ("docs", "end_array", None),
    ("", "map_key", "docs.item"),
    ("docs.item", "number", -1),
    ("", "map_key", "ñ"),
    ("ñ", "start_map", None),
    ("ñ", "map_key", "b"),
    ("ñ.b", "start_map", None),
    ("ñ.b", "end_map", None),
    ("ñ", "end_map", None),
    ("", "end_map", None),
]

FIRST = {
    "null": None, "no": False, "yes": True, "int": 0, "half": Decimal("0.5"), "exp": Decimal("1.0e+2"), "long": 10000000000, "text": "с тест",
}  # fmt: skip
SECOND = {"": [1, [], {"a.b": {"c": "😀"}}]}
WHOLE = {"docs": [FIRST, SECOND, 7, "s"], "docs.item": -1, "ñ": {"b": {}}}

ITEMS: dict[str, list[Any]] = {
    "": [WHOLE],
    "docs": [[FIRST, SECOND, 7, "s"]],
    "docs.item": [FIRST, SECOND, 7, "s", -1],
    "docs.item.": [SECOND[""]],
    "docs.item..item": SECOND[""],
    "docs.item..item.a.b": [{"c": "😀"}],
    "docs.item..item.a": [],
    "docs.item.text": ["с тест"],
    "ñ.b": [{}],
    "docs.ite": [],
    "docs.items": [],
    ".docs": [],
    "item": [],
}

MEMBERS: dict[str, list[tuple[str, Any]]] = {
    "": list(WHOLE.items()),
    "docs": [],
    "docs.item": [*FIRST.items(), *SECOND.items()],
    "docs.item..item": [("a.b", {"c": "😀"})],
    "docs.item..item.a.b": [("c", "😀")],
    "ñ": [("b", {})],
    "ñ.b": [],
}


def chunks_of(data: bytes) -> Iterator[list[bytes]]:
    yield from helpers.every_chunking(data, random.Random(7), most=60)


def run(function: str, chunks: Iterable[Any], *args: Any, **options: Any) -> tuple[list[Any], Any]:
    """Everything there is, and the error behind it as facts."""
    found: list[Any] = []
    try:
        found.extend(getattr(ijson, function)(ijson.from_iter(chunk for chunk in chunks if chunk), *args, **options))
    except ijson.JSONError as error:
        return found, (isinstance(error, ijson.IncompleteJSONError), error.code, error.offset)
    return found, None


# -- what is found --------------------------------------------------------------------------------------------------------


def test_events_with_and_without_prefix_at_every_cut() -> None:
    for chunks in chunks_of(DOCUMENT):
        assert run("parse", chunks) == (EVENTS, None)
        assert run("basic_parse", chunks) == ([event[1:] for event in EVENTS], None)


@pytest.mark.parametrize("prefix", ITEMS)
def test_items_at_every_cut(prefix: str) -> None:
    for chunks in chunks_of(DOCUMENT):
        found, error = run("items", chunks, prefix)
        assert helpers.same(found, ITEMS[prefix])
        assert error is None


@pytest.mark.parametrize("prefix", MEMBERS)
def test_members_at_every_cut(prefix: str) -> None:
    for chunks in chunks_of(DOCUMENT):
        assert run("kvitems", chunks, prefix) == (MEMBERS[prefix], None)


@pytest.mark.parametrize(
    ("text", "use_float", "expected"),
    [
        ("[1, 1.0, 1E2, -0]", False, [1, Decimal("1.0"), Decimal("1E+2"), 0]),
        ("[1, 1.0, 1E2, -0]", True, [1, 1.0, 100.0, 0]),
        ("[1e400, 1e-400, 0.10]", False, [Decimal("1E+400"), Decimal("1E-400"), Decimal("0.10")]),
        ("[1e-400, 123456789012345678901234567890]", True, [0.0, 123456789012345678901234567890]),
    ],
)
def test_numbers_are_exact_or_floats(text: str, use_float: bool, expected: list[Any]) -> None:
    for chunks in chunks_of(text.encode()):
        found, _ = run("items", chunks, "item", use_float=use_float)
        assert helpers.same(found, expected)


@pytest.mark.parametrize(
    "text",
    ["1e999999999999999999", "12e999999999999999999", "1.5e-1999999999999999996", "1e-1999999999999999998", "0e-99999999999999999999", "-0.00"]
    + ["9" * 50 + ".5", "0e9999999999999999999", "0." + "3" * 400],
)
def test_decimals_are_what_decimal_makes_of_the_text(text: str) -> None:
    try:
        expected = [Decimal(text)]
    except ArithmeticError:
        expected = []
    found, error = run("items", [f"[{text}]".encode()], "item")
    assert helpers.same(found, expected)
    assert error == (None if expected else (False, "json.bad_number", 1))


def test_a_root_number_ends_with_the_input() -> None:
    assert list(ijson.basic_parse(b"12")) == [("number", 12)]
    assert list(ijson.items(b"1.5", "", use_float=True)) == [1.5]


def test_the_last_of_equal_keys_counts_and_the_events_show_both() -> None:
    assert list(ijson.items(b'{"a": 1, "a": 2}', "")) == [{"a": 2}]
    assert list(ijson.items(b'{"a": 1, "a": 2}', "a")) == [1, 2]
    assert list(ijson.kvitems(b'{"a": 1, "a": 2}', "")) == [("a", 1), ("a", 2)]


def test_lone_surrogates_are_kept_as_json_loads_keeps_them() -> None:
    assert list(ijson.items(b'{"\\ud800": "\\udc00x"}', "\ud800")) == ["\udc00x"]


def test_several_values_on_request() -> None:
    data = b'{"a": 1} 2 [3]"x"\n{"a": null}'
    for chunks in chunks_of(data):
        assert run("items", chunks, "", multiple_values=True) == ([{"a": 1}, 2, [3], "x", {"a": None}], None)
        assert run("items", chunks, "a", multiple_values=True) == ([1, None], None)
        assert run("kvitems", chunks, "", multiple_values=True) == ([("a", 1), ("a", None)], None)
        assert run("items", chunks, "") == ([{"a": 1}], (False, "json.trailing_data", 9))
    assert run("items", [b" "], "", multiple_values=True) == ([], (True, "json.truncated", 1))


# -- map_type ---------------------------------------------------------------------------------------------------------------


class Pairs:
    """A mapping that keeps every pair."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, Any]] = []

    def __setitem__(self, key: str, value: Any) -> None:
        self.pairs.append((key, value))


def test_map_type_makes_every_object() -> None:
    (value,) = ijson.items(b'{"b": {"c": 1}, "a": [{}]}', "", map_type=OrderedDict)
    assert value == OrderedDict(b=OrderedDict(c=1), a=[OrderedDict()])
    assert type(value) is type(value["b"]) is type(value["a"][0]) is OrderedDict
    (pairs,) = ijson.items(b'{"a": 1, "a": 2, "b": {}}', "", map_type=Pairs)
    assert [key for key, _ in pairs.pairs] == ["a", "a", "b"]
    assert [key for key, _ in ijson.kvitems(b'{"a": {"x": 1}}', "", map_type=Pairs)] == ["a"]


def test_an_exception_of_map_type_comes_out_behind_what_was_found() -> None:
    made: list[Any] = []

    def map_type() -> dict[str, Any]:
        if made:
            raise KeyError("no more")
        made.append({})
        return made[0]

    items = ijson.items(b'[{"a": 1}, {"b": 2}, {}]', "item", map_type=map_type)
    assert next(items) == {"a": 1}
    with pytest.raises(KeyError, match="no more"):
        next(items)
    assert list(items) == []


# -- errors -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "offset"),
    [
        (b'["key", "value",]', "json.unexpected_byte", 16),
        (b'["key"  "value"]', "json.unexpected_byte", 8),
        (b'{"key": "value" "key"}', "json.unexpected_byte", 16),
        (b"[1, 2] dangling", "json.trailing_data", 7),
        (b"[01]", "json.bad_number", 2),
        (b"[1, 2x]", "json.bad_number", 5),
        (b'["\xa8"]', "json.bad_utf8", 2),
        (b'["a\nb"]', "json.control_character", 3),
        (b'["\\x"]', "json.bad_escape", 3),
        (b"[nul!]", "json.bad_literal", 4),
        (b"[NaN]", "json.unexpected_byte", 1),
        (b"]", "json.unexpected_byte", 0),
        (b"\xef\xbb\xbf[]", "json.unexpected_byte", 0),
        (b"[2, 1" + b"0" * 5000 + b"]", "json.number_too_long", 4),
        (b"[2, 1e99999999999999999999]", "json.bad_number", 4),
        (b"[" * 513, "json.too_deep", 512),
    ],
)
def test_malformed_input_has_code_and_offset_at_every_cut(data: bytes, code: str, offset: int) -> None:
    whole = run("basic_parse", [data])
    assert whole[1] == (False, code, offset)
    for chunks in chunks_of(data):
        assert run("basic_parse", chunks) == whole
        assert run("parse", chunks)[1] == whole[1]
        assert run("items", chunks, "item")[1] == whole[1]
        assert run("kvitems", chunks, "")[1] == whole[1] or "number" in code  # what is not wanted is not converted


def test_a_number_beyond_the_floats_is_refused_where_floats_are_wanted() -> None:
    assert run("basic_parse", [b"[-1e400]"], use_float=True) == ([("start_array", None)], (False, "json.bad_number", 1))


def test_every_beginning_is_incomplete_and_shows_no_event_that_the_whole_has_not() -> None:
    data = b'{"a": [1, "x\\n", true], "b": -2.5e1}'
    whole, _ = run("parse", [data])
    for end in range(len(data)):
        found, error = run("parse", [data[:end]])
        assert found == whole[: len(found)]
        assert error == (True, "json.truncated", end)


def test_events_before_an_error_come_out_first_and_nothing_behind_it() -> None:
    events = ijson.basic_parse(b'["a", 1, }')
    assert [next(events) for _ in range(3)] == [("start_array", None), ("string", "a"), ("number", 1)]
    with pytest.raises(ijson.JSONError, match="json.unexpected_byte at byte 9"):
        next(events)
    assert list(events) == []


def test_errors_are_caught_as_those_of_ijson_once_that_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    common = types.ModuleType("ijson.common")
    base = type("JSONError", (Exception,), {})
    common.__dict__.update(JSONError=base, IncompleteJSONError=type("IncompleteJSONError", (base,), {}))
    monkeypatch.setitem(sys.modules, "ijson.common", common)
    with pytest.raises(base) as malformed:
        list(ijson.basic_parse(b"]"))
    with pytest.raises(common.IncompleteJSONError) as cut:
        list(ijson.basic_parse(b"["))
    for caught in (malformed, cut):
        assert isinstance(caught.value, ijson.JSONError)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), again.code, again.offset) == (type(caught.value), caught.value.code, caught.value.offset)
    assert not isinstance(malformed.value, ijson.IncompleteJSONError)


def test_callers_may_raise_the_errors_themselves() -> None:
    with pytest.raises(ijson.JSONError, match="cut off by a proxy"):
        raise ijson.IncompleteJSONError("cut off by a proxy")


def test_options_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="comments"):
        ijson.basic_parse(b"[]", allow_comments=True)
    with pytest.raises(TypeError, match="not_an_option"):
        ijson.items(b"[]", "", not_an_option=0)
    with pytest.raises(ValueError, match="from_iter"):
        ijson.basic_parse(object())


def test_max_depth_can_be_raised() -> None:
    events = list(ijson.basic_parse(b"[" * 600 + b"]" * 600, max_depth=600))
    assert events == [("start_array", None)] * 600 + [("end_array", None)] * 600


# -- sources ----------------------------------------------------------------------------------------------------------------


class Reader:
    """A file that records what is asked of it."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)
        self.sizes: list[int] = []

    def read(self, size: int) -> bytes:
        self.sizes.append(size)
        return self.data.read(size)


class AsyncReader(Reader):
    async def read(self, size: int) -> bytes:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().read(size)


class OldReader(Reader):
    @types.coroutine
    def read(self, size: int) -> Any:  # type: ignore[override]
        yield from asyncio.sleep(0).__await__()
        return super().read(size)


def test_a_file_is_read_in_the_size_asked_for_and_not_before_it_is_needed() -> None:
    file = Reader(b"[1, 2, 3]")
    items = ijson.items(file, "item", buf_size=3)
    assert file.sizes == []
    assert next(items) == 1
    assert file.sizes == [3]
    assert list(items) == [2, 3]
    assert file.sizes == [3] * 4


@pytest.mark.parametrize("make", [bytearray, memoryview])
def test_a_file_may_give_any_bytes(make: Callable[[bytes], Any]) -> None:
    assert list(ijson.items(ijson_file(make(b"[1]")), "item")) == [1]


def ijson_file(*reads: Any) -> Any:
    source = iter(reads)
    return types.SimpleNamespace(read=lambda size: next(source, b""))


def test_a_file_that_gives_anything_else_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        next(ijson.items(ijson_file(3), "item"))
    with pytest.raises(TypeError, match="int"):
        next(ijson.items(ijson.from_iter([3]), "item"))


def test_text_is_taken_with_a_warning() -> None:
    for source in ("[1, 'é']".replace("'", '"'), io.StringIO('[1, "é"]'), ijson.from_iter(["[1, ", '"é"]'])):
        with pytest.deprecated_call():
            assert list(ijson.items(source, "item")) == [1, "é"]


@pytest.mark.parametrize("reader", [AsyncReader, OldReader])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_asynchronous_files(reader: Callable[[bytes], Any], size: int) -> None:
    async def collect(results: Any) -> list[Any]:
        return [result async for result in results]

    async def main() -> None:
        assert await collect(ijson.parse(reader(DOCUMENT), buf_size=size)) == EVENTS
        assert await collect(ijson.basic_parse_async(reader(DOCUMENT), buf_size=size)) == [event[1:] for event in EVENTS]
        assert await collect(ijson.items(reader(DOCUMENT), "docs.item", buf_size=size)) == ITEMS["docs.item"]
        assert await collect(ijson.kvitems_async(reader(DOCUMENT), "ñ", buf_size=size)) == MEMBERS["ñ"]
        with pytest.raises(ijson.IncompleteJSONError):
            await collect(ijson.parse_async(reader(b"[1")))
        found = ijson.items(reader(b"[1, 2}"), "item")
        assert [await anext(found), await anext(found)] == [1, 2]
        with pytest.raises(ijson.JSONError, match="at byte 5"):
            await anext(found)
        assert await collect(found) == []

    asyncio.run(main())


def test_asynchronous_chunks() -> None:
    async def chunks() -> Any:
        yield b'{"a": [1'
        yield b", 2]}"

    async def main() -> list[Any]:
        return [item async for item in ijson.items(ijson.from_iter(chunks()), "a.item")]

    assert asyncio.run(main()) == [1, 2]


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        ("basic_parse_coro", (), [event[1:] for event in EVENTS]),
        ("parse_coro", (), EVENTS),
        ("items_coro", ("docs.item",), ITEMS["docs.item"]),
        ("kvitems_coro", ("docs.item",), MEMBERS["docs.item"]),
    ],
)
def test_coroutines_send_on_as_soon_as_they_know(function: str, args: tuple[Any, ...], expected: list[Any]) -> None:
    for chunks in chunks_of(DOCUMENT):
        results = ijson.sendable_list()
        coroutine = getattr(ijson, function)(results, *args)
        for chunk in chunks:
            if chunk:
                coroutine.send(chunk)
        assert results == expected
        coroutine.close()
        coroutine.close()


def test_coroutines_end_as_generators_do() -> None:
    results = ijson.sendable_list()
    coroutine = ijson.basic_parse_coro(results)
    coroutine.send(b"12")
    assert results == []
    with pytest.raises(StopIteration):
        coroutine.send(b"")
    assert results == [("number", 12)]
    with pytest.raises(StopIteration):
        coroutine.send(b"3")
    cut = ijson.basic_parse_coro(results)
    cut.send(b"[")
    with pytest.raises(ijson.IncompleteJSONError):
        cut.close()
    wrong = ijson.basic_parse_coro(results)
    with pytest.raises(ijson.JSONError):
        wrong.send(b"[1]]")
    assert results[1:] == [("start_array", None), ("start_array", None), ("number", 1), ("end_array", None)]
    wrong.close()


def test_events_are_a_source_too() -> None:
    basic = [event[1:] for event in EVENTS]
    assert list(ijson.parse(basic)) == EVENTS
    for prefix, expected in ITEMS.items():
        assert list(ijson.items(iter(EVENTS), prefix)) == expected
    for prefix, members in MEMBERS.items():
        assert list(ijson.kvitems(EVENTS, prefix)) == members
    (value,) = ijson.items(EVENTS, "ñ", map_type=OrderedDict)
    assert type(value["b"]) is OrderedDict
    with pytest.raises(ValueError, match="too many values"):
        list(ijson.parse(EVENTS))


def test_it_says_of_itself_what_backends_say() -> None:
    assert ijson.backend == ijson.backend_name == "toolwire"
    assert ijson.get_backend("toolwire") is ijson
    assert ijson.common.JSONError is ijson.JSONError
    assert (ijson.capabilities.c_comments, ijson.capabilities.multiple_values, ijson.capabilities.int64) == (False, True, True)
    with pytest.raises(ImportError):
        ijson.get_backend("yajl2_c")


# -- what callers may do ------------------------------------------------------------------------------------------------------


def test_events_that_are_kept_do_not_change() -> None:
    events = ijson.parse(b'[1, "a", {"k": 2}]')
    kept = [next(events)]
    for event in events:  # some are kept, others dropped at once
        if event[1] != "string":
            kept.append(event)
    assert kept == [
        ("", "start_array", None),
        ("item", "number", 1),
        ("item", "start_map", None),
        ("item", "map_key", "k"),
        ("item.k", "number", 2),
        ("item", "end_map", None),
        ("", "end_array", None),
    ]
    used = {event: event[1] for event in ijson.basic_parse(b"[1, 2, 3]")}
    assert used[("number", 2)] == 2


def test_a_hash_is_that_of_the_event_at_hand() -> None:
    for event in ijson.basic_parse(b"[1, 2, 3, 4]"):
        assert hash(event) == hash((event[0], event[1]))


def test_calling_it_from_inside_itself_is_refused() -> None:
    events: Any = None

    def read(size: int) -> bytes:
        next(events)
        return b"[]"

    events = ijson.basic_parse(types.SimpleNamespace(read=read))
    with pytest.raises(ValueError, match="already executing"):
        next(events)

    class Target:
        def send(self, value: Any) -> None:
            coroutine.send(b"1")

    coroutine = ijson.basic_parse_coro(Target())
    with pytest.raises(ValueError, match="already executing"):
        coroutine.send(b"[")


def test_a_file_that_fails_can_be_asked_again() -> None:
    reads: list[Any] = [b"[1,", OSError("try again"), b"2]", b""]

    def read(size: int) -> bytes:
        data = reads.pop(0)
        if isinstance(data, OSError):
            raise data
        return data

    items = ijson.items(types.SimpleNamespace(read=read), "item")
    assert next(items) == 1
    with pytest.raises(OSError, match="try again"):
        next(items)
    assert list(items) == [2]


def test_a_cycle_through_the_file_is_collected() -> None:
    class File:
        def __init__(self) -> None:
            self.items = ijson.items(self, "item")

        def read(self, size: int) -> bytes:
            return b"[[1]," * 3

        def __del__(self) -> None:
            deleted.append(next(self.items, None))

    deleted: list[Any] = []
    file = File()
    gone = weakref.ref(file)
    del file
    gc.collect()
    assert gone() is None
    assert deleted == [[1]]


@pytest.mark.parametrize(("function", "args"), [("basic_parse", ()), ("parse", ()), ("items", ("item",)), ("items", ("item.a",)), ("kvitems", ("item",))])
def test_memory_stays_flat_on_an_endless_document(function: str, args: tuple[Any, ...]) -> None:
    chunk = b'{"a": [1, 2.5, "x"], "b": {"c": null}}, ' * 50

    def endless() -> Iterator[bytes]:
        yield b"["
        while True:
            yield chunk

    results = getattr(ijson, function)(ijson.from_iter(endless()), *args)
    for _ in range(5_000):
        next(results)

    def more() -> None:
        for _ in range(50_000):
            next(results)

    assert helpers.most_held(more) < 300_000


# -- against ijson itself -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def peer() -> Any:
    return pytest.importorskip("ijson.backends.python", reason="ijson is not installed")


#: Python's own decoder of escapes takes no lone surrogates apart, nor does ours: both keep them.
PREFIXES = st.lists(st.sampled_from(["item", "a", "b", "", "item"]), max_size=4).map(".".join)


@given(helpers.chunked(helpers.json_texts.map(str.encode)), PREFIXES)
def test_as_ijsons_backend_in_python(peer: Any, drawn: tuple[bytes, list[bytes]], prefix: str) -> None:
    data, chunks = drawn
    for function, args in (("basic_parse", ()), ("parse", ()), ("items", (prefix,)), ("kvitems", (prefix,))):
        expected = list(getattr(peer, function)(data, *args))
        found, error = run(function, chunks, *args)
        assert error is None
        assert helpers.same(found, expected)


@given(helpers.chunked(helpers.mutated()))
def test_refuses_what_the_core_refuses_wherever_it_is_cut(drawn: tuple[bytes, list[bytes]]) -> None:
    data, chunks = drawn
    whole = run("parse", [data])
    assert run("parse", chunks) == whole
    assert [event[1:] for event in whole[0]] == run("basic_parse", chunks)[0]
    items = run("items", chunks, "")
    assert items[1] == whole[1]
    if whole[1] is None:
        assert len(items[0]) == 1
