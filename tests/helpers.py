"""What the test files share: ways to cut an input, strategies that draw a document and its cuts, one way to run a parser."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

Data = TypeVar("Data", bytes, str)

#: Recorded streams and suites; not part of a clone.
SHARED = Path(__file__).resolve().parents[2] / "shared"
NO_SHARED = "the shared corpora are not beside this clone"


def cut_at(data: Data, cuts: list[int]) -> list[Data]:
    """``data`` in pieces; equal cuts give empty pieces, which must mean nothing."""
    edges = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def every_chunking(data: Data, rng: random.Random, *, most: int | None = None, randoms: int = 3) -> Iterator[list[Data]]:
    """Whole, unit by unit, every single cut (or ``most`` of them, for long inputs), and some random cuts."""
    yield [data]
    yield [data[i : i + 1] for i in range(len(data))]
    singles = range(1, len(data))
    if most is not None and len(singles) > most:
        singles = sorted(rng.sample(singles, most))  # type: ignore[assignment]
    for at in singles:
        yield [data[:at], data[at:]]
    for _ in range(randoms):
        yield cut_at(data, [rng.randint(0, len(data)) for _ in range(rng.randint(2, 9))])


def chunked(data: st.SearchStrategy[Data]) -> st.SearchStrategy[tuple[Data, list[Data]]]:
    """Draws an input and its cuts, so that shrinking finds the shortest of both."""
    return data.flatmap(lambda d: st.lists(st.integers(0, len(d)), max_size=8).map(lambda cuts: (d, cut_at(d, cuts))))


# -- memory


def most_held(work: Callable[[], Any]) -> int:
    """The most memory, in bytes, that ``work`` held at one time."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def left_behind(rounds: Callable[[], Any]) -> int:
    """The least memory, in bytes, by which two more ``rounds`` grew what is held.

    All threads are traced, also the one that brings the test runner's messages; what leaks grows each time, what they hold does not.
    """
    rounds()
    growth = []
    tracemalloc.start()
    try:
        for _ in range(5):
            rounds()
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            rounds()
            rounds()
            gc.collect()
            growth.append(tracemalloc.get_traced_memory()[0] - before)
            if growth[-1] < 1024:
                break
    finally:
        tracemalloc.stop()
    return min(growth)


# -- JSON texts: drawn as text rather than dumped from values, so that escapes, white space and spellings vary

_space = st.sampled_from(["", "", "", " ", "\n", "\t \r\n"])
_plain = st.text(st.characters(min_codepoint=0x20, exclude_characters='"\\', exclude_categories=["Cs"]), max_size=8)
_short_escape = st.sampled_from([r"\"", r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t"])
_hex_escape = st.integers(0, 0xFFFF).filter(lambda c: not 0xD800 <= c <= 0xDFFF).map(lambda c: f"\\u{c:04x}")
_pair = st.integers(0, 0xFFFFF).map(lambda c: f"\\uD{0x800 + (c >> 10):03x}\\ud{0xC00 + (c & 0x3FF):03X}")
_lone = st.integers(0xD800, 0xDFFF).map(lambda c: f"\\u{c:04x}")
_number = st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


def _texts(piece: st.SearchStrategy[str], scalar: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    string = st.lists(piece, max_size=4).map(lambda parts: '"' + "".join(parts) + '"')
    key = st.one_of(st.sampled_from(['"a"', '"b"', '"\\u0061"', '""']), string)

    def containers(child: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        item = st.tuples(_space, child, _space).map("".join)
        member = st.tuples(_space, key, _space, st.just(":"), item).map("".join)
        arrays = st.one_of(_space, st.lists(item, min_size=1, max_size=4).map(",".join)).map(lambda s: f"[{s}]")
        objects = st.one_of(_space, st.lists(member, min_size=1, max_size=4).map(",".join)).map(lambda s: f"{{{s}}}")
        return arrays | objects

    value = st.recursive(st.one_of(string, scalar, string), containers, max_leaves=12)
    return st.tuples(_space, value, _space).map("".join)


_scalar = st.one_of(_number, st.sampled_from(["true", "false", "null", "0", "-0", "-0.0", "1e5"]))
#: Valid documents (RFC 8259), whose escapes are whole Unicode.
json_texts = _texts(st.one_of(_plain, _short_escape, _hex_escape, _pair), _scalar)
#: Documents that one option or another has to tolerate: lone surrogates, raw control characters, NaN.
odd_json_texts = _texts(
    st.one_of(_plain, _short_escape, _lone, _lone, _pair, st.sampled_from(["\n", "\x00", "\x1f", "\\u0041"])),
    st.one_of(_scalar, st.sampled_from(["NaN", "Infinity", "-Infinity"])),
)


@st.composite
def mutated(draw: st.DrawFn, source: st.SearchStrategy[str] = json_texts) -> bytes:
    """A document with a few bytes deleted, inserted or replaced."""
    data = bytearray(draw(source).encode())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        new = draw(st.one_of(st.sampled_from(_TOKENS), st.binary(max_size=2)))
        data[at : at + draw(st.integers(0, 2))] = new
    return bytes(data)


_TOKENS = [bytes([c]) for c in b'{}[]:,"\\ 01-+.eEtfnuNI/x\n\0']
_TOKENS += [b"\\u", b"\\ud8", b"\\ud800", b"\\udc00", b"\\u00", b"\xed\xa0\x80", b"\xc3", b"\xf0\x9f\x98\x80", b"\xf4\x90", b"\xef\xbb\xbf"]


def same(a: Any, b: Any) -> bool:
    """Equal, of equal types and in equal order: 1 is not 1.0, 0.0 is not -0.0, and NaN is NaN."""
    return repr(a) == repr(b)


class Outcome(NamedTuple):
    """What one run of a parser showed; equal for every cut of one input."""

    value: str  # as repr, see ``same``
    complete: bool
    consumed: int | None
    offset: int
    unused: bytes
    error: tuple[str, str, int | None] | None  # type, code, offset
    marks: tuple[Any, ...]


def outcome(parser: Any, error: BaseException | None = None) -> Outcome:
    return Outcome(
        repr(parser.value),
        parser.complete,
        parser.consumed,
        parser.offset,
        parser.unused_data,
        None if error is None else (type(error).__name__, error.code, error.offset),  # type: ignore[attr-defined]
        tuple((str(m), m.offset, m.path, m.times) for m in parser.marks),
    )


def run(parser: Any, chunks: list[Any], *, finish: bool = True) -> Outcome:
    """Feed everything up to the first error, finish, and say what is there."""
    try:
        for chunk in chunks:
            parser.feed(chunk)
        if finish:
            parser.finish()
    except ValueError as error:  # MalformedJSON, TruncatedJSON, LimitExceeded
        return outcome(parser, error)
    return outcome(parser)
