"""Work and memory linear in the bytes received, told by what can be counted: allocated bytes and shared objects, never time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import toolwire as tw
from helpers import left_behind, most_held

N = 1 << 21
KIB = b"x" * 1024


def peak(work: Callable[[], Any]) -> tuple[int, Any]:
    """The most memory that ``work`` held at one time, and its result."""
    results: list[Any] = []
    return most_held(lambda: results.append(work())), results[0]


def feed_all(p: tw.JSONParser, chunks: Iterator[bytes], each: Callable[[tw.JSONParser], Any] = lambda p: None) -> Any:
    for chunk in chunks:
        p.feed(chunk)
        each(p)
    return p.finish()


def long_string(piece: bytes = KIB, n: int = N) -> Iterator[bytes]:
    yield b'{"body":"'
    for _ in range(n // len(piece)):
        yield piece
    yield b'"}'


@pytest.mark.parametrize("piece", [KIB, b"line\\n" * 200, "é".encode() * 512, b"x" * 16], ids=["ascii", "escapes", "two-byte", "drips"])
def test_one_long_string_holds_a_small_multiple_of_itself(piece: bytes) -> None:
    n = N if len(piece) > 16 else N // 8
    used, value = peak(lambda: feed_all(tw.JSONParser(), long_string(piece, n)))
    assert len(value["body"].encode()) <= n
    assert used < 4 * n


def test_watching_a_long_string_grow_costs_no_copies_that_stay() -> None:
    used = most_held(lambda: feed_all(tw.JSONParser(), long_string(), lambda p: len(p.value["body"])))
    assert used < 4 * N
    used = most_held(lambda: feed_all(tw.JSONParser(), long_string(), lambda p: len(p.snapshot()["body"])))
    assert used < 4 * N


def test_what_is_no_value_is_not_kept() -> None:
    for chunks in ([b" " * 1024] * 2048, [b"[1,", *[b"\n" * 1024] * 2048, b"2]"]):
        p = tw.JSONParser()
        used = most_held(lambda p=p, chunks=chunks: [p.feed(c) for c in chunks])
        assert used < 1 << 17


def test_a_long_number_in_drips_holds_a_small_multiple_of_itself() -> None:
    digits = 1 << 18
    used, value = peak(lambda: feed_all(tw.JSONParser(), iter([b"0.", *[b"7" * 16] * (digits // 16), b" "])))
    assert value == float("0." + "7" * 30)
    assert used < 8 * digits


def test_a_long_key_in_drips_holds_a_small_multiple_of_itself() -> None:
    used, value = peak(lambda: feed_all(tw.JSONParser(), iter([b'{"', *[b"k" * 16] * (1 << 14), b'":1}'])))
    assert value == {"k" * (1 << 18): 1}
    assert used < 6 * (1 << 18)


def test_many_small_documents_through_one_parser_leave_nothing() -> None:
    p = tw.JSONParser()

    def rounds() -> None:
        for i in range(20_000):
            p.feed(b'{"a":[%d,"x\\n"]}' % i)
            p.finish()
            p.reset()

    rounds()
    used = most_held(rounds)
    assert used < 1 << 16


@pytest.mark.parametrize("text", [b'{"a":[1,{"b":"x', b'{"a":[1,{"b":"\\q', b"[1,,", b"[" * 600, b'{"a":1,"a":2}', b'["\\ud800x"]', b"9" * 5000 + b" "])
def test_parsers_that_fail_or_are_dropped_half_way_leave_nothing(text: bytes) -> None:
    def rounds() -> None:
        for at in range(500):
            p = tw.JSONParser()
            try:
                p.feed(text[: at % len(text)])
                p.snapshot()
                p.feed(text[at % len(text) :])
                p.finish()
            except ValueError:
                pass

    assert left_behind(rounds) < 4096


def containers(value: Any) -> Iterator[Any]:
    """Every list and dict in ``value``, itself included."""
    if isinstance(value, (list, dict)):
        yield value
        for child in value if isinstance(value, list) else value.values():
            yield from containers(child)


def test_kept_snapshots_share_what_is_finished() -> None:
    """Two snapshots may differ in the containers that are still open, and in nothing else."""
    p = tw.JSONParser()
    p.feed(b'{"rows":[')
    p.feed(b'{"cells":[[1],[2],[3]]},' * 100)
    p.feed(b'{"cells":[[4],')
    first = p.snapshot()
    p.feed(b"[5],[")
    second = p.snapshot()
    known = {id(c) for c in containers(first)}
    fresh = [c for c in containers(second) if id(c) not in known]
    assert len(list(containers(second))) > 500
    assert len(fresh) <= 6  # root, rows, the last row, its cells; [5] and the last [
    assert first["rows"][0] is second["rows"][0]
    assert len(first["rows"][-1]["cells"]) == 1 and len(second["rows"][-1]["cells"]) == 3


def grows_in_place() -> bool:
    """Is this a build that extends strings and shares wide lists in place? (TOOLWIRE_NO_GROW=1 does not.)"""
    p = tw.JSONParser()
    p.feed(b'["' + KIB * 1024)
    p.feed(b"y")
    return most_held(lambda: [p.feed(b"y") for _ in range(10)]) < 1 << 19


needs_growth = pytest.mark.skipif(not grows_in_place(), reason="built without growth in place")


@needs_growth
def test_dropped_snapshots_of_a_wide_array_do_not_copy_it_each_time() -> None:
    """A copy of 200,000 slots is 1.6 MB; two of them alive at once would show, a shared one does not."""
    p = tw.JSONParser()
    p.feed(b"[" + b"0," * 200_000)

    def rounds() -> None:
        for _ in range(50):
            p.feed(b"1,")
            p.snapshot()

    used = most_held(rounds)
    assert used < 1 << 20


@needs_growth
def test_a_held_text_is_copied_when_it_goes_on_and_only_then() -> None:
    p = tw.JSONParser()
    p.feed(b'["' + KIB * 1024)
    held = p.value[0]
    used = most_held(lambda: p.feed(b"y"))
    assert (1 << 20) <= used < 3 << 20  # the copy that the kept reference asks for
    used = most_held(lambda: [p.feed(b"y") for _ in range(100)])
    assert used < 1 << 20
    assert len(held) == 1 << 20 and len(p.value[0]) == (1 << 20) + 101
