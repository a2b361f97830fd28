"""Streamed arguments of Google calls: pieces with a JSON path become argument text that only grows."""

from __future__ import annotations

import json
import pickle
import random
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import JSONParser
from toolwire.adapters._partial_args import PartialArgs, parse_path
from toolwire.errors import LimitExceeded
from toolwire.limits import Limits


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def run(pieces: list[Any], limits: Limits | None = None) -> tuple[list[str], str, PartialArgs]:
    """Text after each piece, the final text, and the assembler."""
    args = PartialArgs(limits or Limits())
    taken = []
    for piece in pieces:
        args.add(piece)
        taken.append(args.take())
    so_far = "".join(taken)
    rest = args.close()
    return taken, rest if args.out_of_order else so_far + rest, args


def final(*pieces: Any) -> str:
    return run(list(pieces))[1]


def conflict(*pieces: Any) -> str:
    args = run(list(pieces))[2]
    assert args.conflict is not None
    return args.conflict


def string(path: str, text: str, more: bool | None = None) -> dict[str, Any]:
    return {"jsonPath": path, "stringValue": text, **({} if more is None else {"willContinue": more})}


def number(path: str, value: float) -> dict[str, Any]:
    return {"jsonPath": path, "numberValue": value}


# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b[0].c", ("a", "b", 0, "c")),
        ("$['odd.key']", ("odd.key",)),
        ('$["k\\"q"]', ('k"q',)),
        ("$['it\\'s']['\\\\']", ("it's", "\\")),
        ("$['\\u0041\\n\\t\\/']", ("A\n\t/",)),
        ("$['\\ud83d\\ude00']", ("\U0001f600",)),
        ("$['']", ("",)),
        ("$['[0]']", ("[0]",)),
        ("$.a['b c'].d[10][3]", ("a", "b c", "d", 10, 3)),
        ("$.content-type", ("content-type",)),
        ("$.größe", ("größe",)),
        ("$.__proto__.x", ("__proto__", "x")),
        ("$.a*", ("a*",)),
        ("$[123456789012345678901234567890]", (10**18,)),
    ],
)
def test_a_path_is_keys_and_indices(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == (path, False)


def test_a_path_may_end_an_array() -> None:
    assert parse_path("$.a[0].b[]") == (("a", 0, "b"), True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        ".a",
        "$a",
        "$.",
        "$..a",
        "$.a.",
        "$.*",
        "$.a.*.b",
        "$[*]",
        "$[-1]",
        "$[01]",
        "$[0:2]",
        "$[0,1]",
        "$[?@.a]",
        "$[a]",
        "$['a]",
        "$['\\x']",
        "$.a[].b",
        "$.a[0",
        "$[٣]",
    ],
)
def test_a_path_to_no_one_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="bad jsonPath"):
        parse_path(text)
    assert conflict(string(text, "x")).startswith("bad jsonPath")


# -- text -------------------------------------------------------------------------------------------------------------


def test_text_grows_with_each_piece() -> None:
    taken, text, args = run(
        [string("$.room", "kit", True), string("$.room", "chen"), number("$.levels[0]", 40), {"jsonPath": "$.on", "boolValue": True}],
    )
    assert taken == ['{"room":"kit', "chen", '","levels":[40', '],"on":true']
    assert text == '{"room":"kitchen","levels":[40],"on":true}'
    assert (args.conflict, args.out_of_order, args.unfinished) == (None, False, None)


def test_the_example_of_the_protocol_page() -> None:
    text = final(string("$.train", "IC ", True), string("$.train", "204"), number("$.seats[0].row", 7), {"jsonPath": "$.extras[]"})
    assert text == '{"train":"IC 204","seats":[{"row":7}],"extras":[]}'


def test_no_piece_at_all_is_an_empty_object() -> None:
    assert final() == "{}"
    assert PartialArgs(Limits()).take() == "{"


@pytest.mark.parametrize("value", [7, 3.0, -2.5, 1e22, 0])
def test_numbers_stay_as_the_wire_has_them(value: float) -> None:
    assert final(number("$.n", value)) == f'{{"n":{json.dumps(value)}}}'


def test_numbers_true_false_and_null_replace() -> None:
    taken, text, args = run([number("$.n", 1), {"jsonPath": "$.n", "boolValue": False}, {"jsonPath": "$.n", "nullValue": "NULL_VALUE"}])
    assert text == '{"n":null}'
    assert args.out_of_order
    assert taken[0] == '{"n":1'


def test_the_same_number_again_changes_nothing() -> None:
    _, text, args = run([number("$.n", 1), number("$.m", 2), number("$.n", 1)])
    assert (text, args.out_of_order) == ('{"n":1,"m":2}', False)


@pytest.mark.parametrize("null", ["NULL_VALUE", None, 0])
def test_null_is_null_in_every_spelling(null: Any) -> None:
    assert final({"jsonPath": "$.n", "nullValue": null}) == '{"n":null}'


def test_members_that_are_not_set_may_be_null() -> None:
    piece = {"jsonPath": "$.n", "stringValue": None, "numberValue": 4, "boolValue": None, "nullValue": None, "willContinue": None}
    assert final(piece) == '{"n":4}'


def test_strings_concatenate_whatever_the_piece_announced() -> None:
    assert final(string("$.s", "a"), string("$.s", "b", False), string("$.s", "c", True), string("$.s", "")) == '{"s":"abc"}'


def test_an_announced_piece_that_never_comes_is_unfinished() -> None:
    _, text, args = run([string("$.s", "a", True)])
    assert args.unfinished == "$.s"
    assert text == '{"s":"a"}'


@pytest.mark.parametrize("end", [string("$.s", ""), {"jsonPath": "$.s"}])
def test_an_empty_piece_or_one_without_a_value_ends_a_string(end: dict[str, Any]) -> None:
    _, text, args = run([string("$.s", "a", True), end])
    assert (args.unfinished, text) == (None, '{"s":"a"}')


def test_strings_are_escaped_as_json() -> None:
    text = 'a"b\\c\nd\x00é\u2028\U0001f600'
    assert json.loads(final(string("$.s", text[:3], True), string("$.s", text[3:]))) == {"s": text}


def test_holes_in_arrays_are_null() -> None:
    taken, text, args = run([number("$.a[2]", 3)])
    assert text == '{"a":[null,null,3]}'
    assert taken == ['{"a":[']  # a hole may still be filled
    assert not args.out_of_order


def test_a_hole_that_is_filled_later_keeps_the_order() -> None:
    taken, text, args = run([number("$.a[1]", 1), number("$.a[0]", 0), number("$.b", 2)])
    assert taken == ['{"a":[', "0,1", '],"b":2']
    assert (text, args.out_of_order) == ('{"a":[0,1],"b":2}', False)


def test_nested_containers_are_implied() -> None:
    assert final(number("$.a[0][1].b", 1)) == '{"a":[[null,{"b":1}]]}'


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([{"jsonPath": "$.a[]"}], '{"a":[]}'),
        ([{"jsonPath": "$.a"}], '{"a":{}}'),
        ([{"jsonPath": "$.a", "willContinue": False}], '{"a":{}}'),
        ([{"jsonPath": "$.a", "willContinue": True}], "{}"),
        ([{"jsonPath": "$.a", "willContinue": True}, number("$.a[0]", 1)], '{"a":[1]}'),
        ([{"jsonPath": "$.a"}, number("$.a.b", 1)], '{"a":{"b":1}}'),
        ([{"jsonPath": "$.a[0].b[]"}], '{"a":[{"b":[]}]}'),
        ([number("$.a[0]", 1), {"jsonPath": "$.a[]"}], '{"a":[1]}'),
        ([number("$.a", 1), {"jsonPath": "$.a"}], '{"a":1}'),
        ([number("$.a.b", 1), {"jsonPath": "$.a"}], '{"a":{"b":1}}'),
        ([{"jsonPath": "$"}], "{}"),
    ],
)
def test_pieces_without_a_value(pieces: list[Any], text: str) -> None:
    _, got, args = run(pieces)
    assert (got, args.conflict) == (text, None)


def test_an_array_terminator_shows_the_last_number() -> None:
    taken, _, _ = run([number("$.a[0]", 1), {"jsonPath": "$.a[]"}])
    assert taken == ['{"a":[1', "]"]


# -- contradictions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        [number("$.a", 1), string("$.a", "x")],
        [{"jsonPath": "$.a", "nullValue": "NULL_VALUE"}, string("$.a", "x")],
        [string("$.a", "x"), number("$.a", 1)],
        [string("$.a", "x"), number("$.a.b", 1)],
        [number("$.a", 1), number("$.a[0]", 1)],
        [number("$.a.b", 1), number("$.a", 1)],
        [number("$.a.b", 1), string("$.a", "x")],
        [number("$.a.b", 1), number("$.a[0]", 1)],
        [number("$.a[0]", 1), number("$.a.b", 1)],
        [number("$.a.b", 1), {"jsonPath": "$.a[]"}],
        [string("$.a", "x"), {"jsonPath": "$.a[]"}],
        [number("$[0]", 1)],
        [{"jsonPath": "$[]"}],
        [string("$", "x")],
        [string("$.a[]", "x")],
        [{"jsonPath": "$.a", "stringValue": "x", "numberValue": 1}],
        [{"jsonPath": "$.a", "stringValue": "x", "nullValue": "NULL_VALUE"}],
        [{"jsonPath": "$.a", "stringValue": 1}],
        [{"jsonPath": "$.a", "numberValue": "NaN"}],
        [{"jsonPath": "$.a", "numberValue": True}],
        [{"jsonPath": "$.a", "boolValue": 1}],
        [{"stringValue": "x"}],
        [{"jsonPath": 1, "stringValue": "x"}],
        ["x"],
        [None],
    ],
)
def test_a_contradiction_is_reported_and_changes_nothing(pieces: list[Any]) -> None:
    _, text, args = run(pieces)
    assert args.conflict is not None
    assert text == run(pieces[:-1])[1]


def test_the_first_contradiction_stays() -> None:
    assert conflict(string("a", "x"), string("b", "y")).startswith("bad jsonPath 'a'")


# -- order ------------------------------------------------------------------------------------------------------------


def test_an_announced_string_is_not_left() -> None:
    taken, text, args = run([string("$.a", "1", True), string("$.b", "2", True), string("$.a", "3"), string("$.b", "4"), number("$.c", 5)])
    assert taken == ['{"a":"1', "", '3","b":"2', "4", '","c":5']
    assert (text, args.out_of_order) == ('{"a":"13","b":"24","c":5}', False)


@pytest.mark.parametrize(
    ("back", "text"),
    [
        (string("$.a.s", "y"), '{"a":{"s":"xy"},"b":1}'),
        (number("$.a.t", 2), '{"a":{"s":"x","t":2},"b":1}'),
        (number("$.a.n.m", 2), '{"a":{"s":"x","n":{"m":2}},"b":1}'),
    ],
)
def test_a_piece_that_goes_back_gives_the_whole_text_anew(back: dict[str, Any], text: str) -> None:
    taken, got, args = run([string("$.a.s", "x"), number("$.b", 1), back, number("$.c", 3)])
    assert args.out_of_order
    assert taken == ['{"a":{"s":"x', '"},"b":1', "", ""]
    assert got == text[:-1] + ',"c":3}'


def test_pickle_goes_on_elsewhere() -> None:
    pieces = [string("$.a" + "[0]" * 500, "x", True), string("$.a" + "[0]" * 500, "y"), number("$.b", 1)]
    args = PartialArgs(Limits())
    text = ""
    for piece in pieces:
        args.add(piece)
        text += args.take()
        args = pickle.loads(pickle.dumps(args))
    assert text + args.close() == '{"a":' + "[" * 500 + '"xy"' + "]" * 500 + ',"b":1}'


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "pieces", "name"),
    [
        (Limits(max_array_index=5), [number("$.a[6]", 1)], "max_array_index"),
        (Limits(max_array_index=5), [number("$.a[99999999999999999999999]", 1)], "max_array_index"),
        (Limits(max_partial_args=2), [number("$.a", 1)] * 3, "max_partial_args"),
        (Limits(max_depth=3), [number("$.a.b.c.d", 1)], "max_depth"),
        (Limits(max_depth=3), [{"jsonPath": "$.a.b.c"}], "max_depth"),
        (Limits(max_argument_chars=20), [string("$.a", "x" * 10), string("$.a", "x" * 10)], "max_argument_chars"),
        (Limits(max_argument_chars=100), [number("$.a[50]", 1)], "max_argument_chars"),
        (Limits(max_argument_chars=1000), [number("$[" + "'k'][" * 5 + "'l']" + "[100]" * 5, 1)], "max_argument_chars"),
    ],
)
def test_each_limit_is_named(limits: Limits, pieces: list[Any], name: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        run(pieces, limits)
    error = caught.value
    assert (error.code, error.limit, error.value, error.option) == ("turn.bad_partial_args", name, getattr(limits, name), f"Limits({name}=...)")


def test_what_is_within_the_limits_passes() -> None:
    limits = Limits(max_array_index=5, max_partial_args=2, max_depth=3)
    assert run([number("$.a.b[5]", 1), {"jsonPath": "$.c[]"}], limits)[1] == '{"a":{"b":[null,null,null,null,null,1]},"c":[]}'


# -- properties -------------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=5)


def segment(key: str | int, rng: random.Random) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if key.isidentifier() and rng.random() < 0.5:
        return "." + key
    escaped = "".join(rng.choice((f"\\u{ord(c):04x}", c)) if c.isalnum() and ord(c) < 0x10000 else c for c in key.replace("\\", "\\\\"))
    if rng.random() < 0.5:
        return "['" + key.replace("\\", "\\\\").replace("'", "\\'") + "']"
    return '["' + (escaped if "\\" not in key else key.replace("\\", "\\\\")).replace('"', '\\"') + '"]'


def leaves(value: Any, path: str, rng: random.Random) -> list[list[dict[str, Any]]]:
    """The pieces of each leaf, in document order."""
    if isinstance(value, (dict, list)):
        items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        if not items:
            return [] if path == "$" else [[{"jsonPath": path if isinstance(value, dict) else path + "[]"}]]
        return [leaf for key, inner in items for leaf in leaves(inner, path + segment(key, rng), rng)]
    if isinstance(value, str):
        cuts = sorted(rng.randint(0, len(value)) for _ in range(rng.randint(0, 3)))
        parts = [value[a:b] for a, b in zip([0, *cuts], [*cuts, len(value)], strict=True)]
        return [[string(path, part, True if at + 1 < len(parts) else None) for at, part in enumerate(parts)]]
    if value is None:
        return [[{"jsonPath": path, "nullValue": "NULL_VALUE"}]]
    return [[{"jsonPath": path, "boolValue" if isinstance(value, bool) else "numberValue": value}]]


@given(objects, st.integers())
def test_pieces_in_document_order_give_the_compact_text(value: dict[str, Any], seed: int) -> None:
    pieces = [piece for leaf in leaves(value, "$", random.Random(seed)) for piece in leaf]
    taken, text, args = run(pieces)
    assert text == compact(value)
    assert (args.conflict, args.out_of_order, args.unfinished) == (None, False, None)
    live = JSONParser()
    for part in taken:
        live.feed(part)
    assert json.loads(text) == value


@given(objects, st.integers())
def test_pieces_in_any_order_give_the_same_value(value: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    queues = [list(leaf) for leaf in leaves(value, "$", rng)]
    pieces = []
    while queues:
        queue = rng.choice(queues)
        pieces.append(queue.pop(0))
        queues = [q for q in queues if q]
    taken, text, args = run(pieces)
    assert json.loads(text) == value
    assert args.conflict is None
    if not args.out_of_order:
        assert text.startswith("".join(taken))


def lines_run(pieces: list[Any]) -> int:
    """How many lines of Python one assembly takes."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run(pieces)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: [string("$.s", "x", True) for _ in range(n)],
        lambda n: [number(f"$.a[{i}]", i) for i in range(n)],
        lambda n: [number(f"$.a[{n - i}]", i) for i in range(n)],
        lambda n: [string(f"$.k{i % 7}", "x", True) for i in range(n)],
        lambda n: [string(f"$.k{i % 7}", "x") for i in range(n)],
        lambda n: [number("$.a" + ".b" * 100, 1)] + [number(f"$.c{i}", i) for i in range(n)],
        lambda n: [piece for i in range(n) for piece in (number(f"$.c{i}", i), number("$.a", i))],
        lambda n: [number("$.a[0]" + ".b" * 100, 1)] + [number(f"$.a[{i + 2}]", i) for i in range(n)],
        lambda n: [number("$.a[0]" + ".b" * 100, 1)] + [{"jsonPath": "$.a[]"}] * n,
    ],
)
def test_work_is_linear_in_the_pieces(shape: Any) -> None:
    once, twice = lines_run(shape(300)), lines_run(shape(600))
    assert twice < 2.2 * once
