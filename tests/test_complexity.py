"""Hostile input costs no more than it weighs: twice the input, twice the work and twice the memory; and every limit names itself.

Work is counted, never timed: here the calls that Python sees, in tests/complexity.py the processor's instructions.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw
from attacks import ATTACKS, OVER, SMALL, Attack, parse, turn
from helpers import most_held

CONSTANT = 128 << 10  # bytes: a chunk, caches, one turn's machinery
DOCS = Path(__file__).resolve().parents[1] / "docs"


def calls_seen(work: Callable[[], Any]) -> int:
    """Calls of functions, Python's and C's."""
    seen = 0

    def count(frame: Any, what: str, arg: Any) -> None:
        nonlocal seen
        seen += what in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_memory_is_a_stated_multiple_of_what_came(attack: Attack) -> None:
    data = attack.make(4 * attack.n)
    attack.read(attack.make(attack.n))
    used = most_held(lambda: attack.read(data))
    assert used <= attack.per_byte * len(data) + CONSTANT, used / len(data)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_twice_the_input_is_twice_the_calls(attack: Attack) -> None:
    one, two = attack.make(attack.n), attack.make(2 * attack.n)
    attack.read(one)  # what is made once is made
    assert calls_seen(lambda: attack.read(two)) <= 2.1 * calls_seen(lambda: attack.read(one)) + 200


@pytest.mark.parametrize("limit", OVER)
def test_a_limit_that_is_hit_names_itself_and_what_raises_it(limit: str) -> None:
    provider, body = OVER[limit]
    for size in (1 << 16, 7):
        error = turn(provider, size, limits=SMALL)(body)
        assert isinstance(error, tw.LimitExceeded)
        assert (error.limit, error.value) == (limit, getattr(SMALL, limit))
        assert f"Limits({limit}=...)" in (error.option, str(error))
        assert str(getattr(SMALL, limit)) in str(error)
    assert not isinstance(turn(provider)(body), tw.LimitExceeded), "the default is higher"


@pytest.mark.parametrize("data", [b"9" * 5000, b"[-" + b"1" * 5000 + b"]"])
@pytest.mark.parametrize("size", [1, 64, 1 << 16])
def test_an_integer_of_5000_digits_names_pythons_own_limit(data: bytes, size: int) -> None:
    error = parse(size)(data + b" ")
    assert isinstance(error, tw.LimitExceeded)
    assert (error.limit, error.value, error.option) == ("int_max_str_digits", sys.get_int_max_str_digits(), "sys.set_int_max_str_digits(...)")


def test_an_exponent_beyond_all_bounds_is_infinite_or_nothing() -> None:
    for text in ("1e999999", "-1e999999", "1e-999999", "0e999999", "1" + "0" * 400 + ".0", "1e" + "9" * 5000, "1e-" + "9" * 5000):
        for size in (1, 1 << 16):
            assert parse(size)(text.encode() + b" ") == json.loads(text)


def test_a_million_keys_cost_a_dict_of_a_million_keys() -> None:
    data = b"{" + b",".join(b'"%d":0' % i for i in range(1_000_000)) + b"}"
    key, table = 56, sys.getsizeof(dict.fromkeys(range(1_000_000)))
    assert most_held(lambda: parse()(data)) <= 2 * table + 1_000_000 * key  # while the table grows there are two


def test_a_million_marks_are_counted_and_a_thousand_kept() -> None:
    p = tw.JSONParser(surrogates="replace")
    p.feed(b'"' + b"\\ud800" * 1_000_000 + b'"')
    assert len(p.marks) == 1001
    assert (str(p.marks[-1]), p.marks[-1].times) == ("more_marks", 999_000)


def test_a_million_pieces_of_streamed_arguments_meet_their_limit() -> None:
    from toolwire.adapters._partial_args import PartialArgs

    tree = PartialArgs(tw.Limits())
    for i in range(1_000_000):
        tree.add({"jsonPath": f"$[{10**i if i < 40 else i}]" if i % 2 else "$.a", "stringValue": "", "willContinue": True} if i < 100 else {"jsonPath": "$.a"})
    with pytest.raises(tw.LimitExceeded) as caught:
        tree.add({"jsonPath": "$.a", "stringValue": "x"})
    assert (caught.value.limit, caught.value.value) == ("max_partial_args", 1_000_000)


def test_space_behind_a_value_is_looked_at_once() -> None:
    p = tw.JSONParser()
    p.feed(b"{}" + b" " * 1000)
    p.feed(b"\n" * 1000 + b"x")
    for _ in range(2):
        with pytest.raises(tw.MalformedJSON) as caught:
            p.finish()
        assert (caught.value.code, caught.value.offset) == ("json.trailing_data", 2002)
    p.reset()
    p.feed(b"[] y")
    with pytest.raises(tw.MalformedJSON) as caught:
        p.finish()
    assert caught.value.offset == 3


def test_members_of_usage_that_nobody_sends_are_left_out() -> None:
    t = tw.Turn("openai-chat")
    for i in range(100):
        t.feed(b'data: {"choices":[],"usage":{"total_tokens":%d,"k%d":1}}\n\n' % (i, i))
    usage = t.abort("aborted").usage
    assert usage is not None
    assert len(usage) == tw.Limits().max_usage_members
    assert usage["total_tokens"] == 99, "what is known is kept up to date"


def test_the_documentation_lists_every_limit_with_its_default() -> None:
    text = (DOCS / "trust.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+)", text, re.MULTILINE))
    for field in dataclasses.fields(tw.Limits):
        assert int(rows[field.name].replace(",", "")) == field.default, field.name
