"""What Python sees of the C machines, with damaged fixtures; run by run.py.

``turns``: bodies of every provider, mutated as bytes, as lines and as JSON. However they are cut, the events, the result and the gate's
decision are the same, what holds for every turn holds (tests/turn_helpers.py), and nothing but our own errors comes out.
``parser``: JSONParser against itself and, at every prefix, against tests/oracle.py.
``tokens``: the faces of ijson and json-stream. However a document is cut, and whether it is pulled, pushed or awaited, the same comes out
of it. The faces agree: values at a prefix are what is built of the events there, and all events are what ``loads`` has.
``taps``: ``JSONParser.tap`` and ``items``. However a document is cut, and whenever they are read, opened or pickled, they hand out what a
walk through the events finds finished at each cut.

What breaks that is made as small as it goes and written to ``--found``. The last line printed is the number of inputs played.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pickle
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import toolwire as tw  # noqa: E402
import toolwire.compat.ijson as ijson  # noqa: E402
from aws_messages import message  # noqa: E402
from helpers import outcome, run, same  # noqa: E402
from test_json_properties import agrees_at_every_prefix  # noqa: E402
from test_taps import merge  # noqa: E402
from toolwire._tokens import AsyncPull, Machine, Pull, Push  # noqa: E402
from toolwire.compat.json_stream import Tokenizer  # noqa: E402
from turn_helpers import check, cut, play  # noqa: E402

FIXTURES = HERE.parents[1] / "fixtures"
MOST = 6000  # bytes of a body
VALUES: list[Any] = [None, True, False, 0, 1, -1, 2**63, 1e308, "", "a", "\ud800", "{", "\x00", [], {}, [[]], [None], {"": None}, {"type": "error"}]
TOKENS = [b"\n", b"\r", b"\n\n", b"data: ", b"event: error\n", b"id: 7\n", b"data: [DONE]\n\n", b"\xef\xbb\xbf", b"\xff", b"\x00", b"{", b"}", b"[", b"]", b'"']
TOKENS += [b"\\", b"\\ud83d", b"\\u0000", b"null", b"1e999999", b"-", b",", b":", b"data: {}\n\n", b'{"error":{"message":"x"}}', b":\n", b"\r\n"]

# -- mutations: each takes a body and may take from another


def flip(rng: random.Random, body: bytearray, other: bytes) -> None:
    body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)


def insert(rng: random.Random, body: bytearray, other: bytes) -> None:
    at = rng.randrange(len(body) + 1)
    body[at : at + rng.choice((0, 0, 1, 5))] = rng.choice(TOKENS)


def delete(rng: random.Random, body: bytearray, other: bytes) -> None:
    at = rng.randrange(len(body))
    del body[at : at + rng.choice((1, 2, 20, 200))]


def stop(rng: random.Random, body: bytearray, other: bytes) -> None:
    del body[rng.randrange(len(body)) :]


def splice(rng: random.Random, body: bytearray, other: bytes) -> None:
    at, start = rng.randrange(len(body)), rng.randrange(len(other))
    body[at : at + rng.choice((0, 50))] = other[start : start + rng.choice((10, 100, 1000))]


def lines(rng: random.Random, body: bytearray, other: bytes) -> None:
    """A block is repeated, dropped, moved, or comes from another body."""
    blocks, others = bytes(body).split(b"\n\n"), other.split(b"\n\n")
    at = rng.randrange(len(blocks))
    what = rng.randrange(4)
    if what == 0:
        blocks[at:at] = [blocks[at]] * rng.choice((1, 1, 2, 9))
    elif what == 1:
        del blocks[at]
    elif what == 2:
        blocks.insert(rng.randrange(len(blocks)), blocks.pop(at))
    else:
        blocks.insert(at, rng.choice(others))
    body[:] = b"\n\n".join(blocks)


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key or index) of a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from nodes(value[key])


def changed(rng: random.Random, payload: bytes) -> bytes:
    """A JSON payload with one value replaced, dropped, or put somewhere else."""
    try:
        value = json.loads(payload)
        places = list(nodes(value))
        container, key = rng.choice(places)
    except (ValueError, IndexError, RecursionError):
        return payload
    what = rng.randrange(4)
    if what == 0:
        del container[key]
    elif what == 1:
        there, name = rng.choice(places)
        container[key] = json.loads(json.dumps(there[name]))
    else:
        container[key] = rng.choice(VALUES)
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def values(rng: random.Random, body: bytearray, other: bytes) -> None:
    rows = bytes(body).split(b"\n")
    at = [i for i, row in enumerate(rows) if b"{" in row]
    if at:
        i = rng.choice(at)
        head, brace, rest = rows[i].partition(b"{")
        rows[i] = head + changed(rng, brace + rest)
        body[:] = b"\n".join(rows)


def messages(rng: random.Random, body: bytearray, other: bytes) -> None:
    """Binary messages: one payload or header block changed, with checksums that fit again."""
    whole, at = bytes(body), 0
    parts: list[tuple[bytes, bytes]] = []
    while len(whole) - at >= 16:
        total, headers = int.from_bytes(whole[at : at + 4], "big"), int.from_bytes(whole[at + 4 : at + 8], "big")
        if not 16 <= total <= len(whole) - at or headers > total - 16:
            break
        parts.append((whole[at + 12 : at + 12 + headers], whole[at + 12 + headers : at + total - 4]))
        at += total
    if not parts:
        return
    i = rng.randrange(len(parts))
    head, payload = parts[i]
    what = rng.randrange(4)
    if what == 0:
        parts[i:i] = [parts[i]]
    elif what == 1:
        del parts[i]
    elif what == 2 and head:
        damaged = bytearray(head)
        flip(rng, damaged, b"")
        parts[i] = bytes(damaged), payload
    else:
        parts[i] = head, changed(rng, payload)
    body[:] = b"".join(message(p, h) for h, p in parts) + whole[at:]


MUTATIONS = [flip, insert, delete, stop, splice, lines, lines, values, values, values, values]

PIECES = [b'"', b"\\", b"\\u00e9", b"\\ud83d\\ude00", b"\\ud800", b"\\udc00", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\t", b" ", b"\n", b","]
PIECES += [b":", b"[", b"]", b"{", b"}", b"{}", b"[]", b'"a"', b'"a":', b'["', b'{"a":[', b"x" * 300, b"null", b"true", b"NaN", b"-Infinity", b"-0"]
PIECES += [b"0.10", b"1E5", b"1e400", b"9" * 30]


def piece(rng: random.Random, body: bytearray, other: bytes) -> None:
    at = rng.randrange(len(body) + 1)
    body[at : at + rng.choice((0, 0, 1, 3))] = rng.choice(PIECES)


def repeat(rng: random.Random, body: bytearray, other: bytes) -> None:
    """Some bytes come again, so that keys come twice and arrays grow long."""
    at = rng.randrange(len(body))
    body[at:at] = body[at : at + rng.choice((2, 10, 40))] * rng.choice((1, 1, 3, 60))


DOCUMENT_MUTATIONS = [flip, insert, delete, stop, splice, values, values, piece, piece, piece, repeat]


def mutated(rng: random.Random, seed: bytes, other: bytes, kinds: list[Callable[..., None]]) -> bytes:
    body = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if body:
            rng.choice(kinds)(rng, body, other)
    return bytes(body)


# -- what must hold


def agree_turns(body: bytes, cuts: list[int], options: dict[str, Any]) -> None:
    whole = play([body], **options)
    check(whole)
    facts = whole.facts()
    back = sent_back(whole.result)
    for chunks in in_cuts(body, cuts):
        played = play(chunks, **options)
        for one, other in zip(facts, played.facts(), strict=True):
            assert one == other, "whole and cut differ"
        assert sent_back(played.result) == back, "what is sent back depends on the cuts"


def in_cuts(body: bytes, cuts: list[int]) -> tuple[list[bytes], list[bytes]]:
    """In the pieces that the cuts make, and in single bytes."""
    return cut(body, (c % (len(body) + 1) for c in cuts)), [body[i : i + 1] for i in range(len(body))]


def sent_back(result: tw.TurnResult) -> str:
    try:
        return json.dumps([result.replay(), str(result.next_request())])
    except tw.UsageError as error:
        return str(error)


def agree_parser(body: bytes, cuts: list[int], options: dict[str, Any]) -> None:
    whole = run(tw.JSONParser(**options), [body])
    assert whole == run(tw.JSONParser(**options), in_cuts(body, cuts)[0]), "whole and cut differ"
    agrees_at_every_prefix(body[:150], options)


# -- tokens

MODES: list[Any] = ["events", "prefixed", "items", "members", "lexemes"]
Facts = tuple[list[Any], tuple[str, str, int | None] | None]  # what came out, and the error behind it


class Pairs:
    """A mapping that keeps every member."""

    def __init__(self) -> None:
        self.members: list[tuple[str, Any]] = []

    def __setitem__(self, key: str, value: Any) -> None:
        self.members.append((key, value))

    def __repr__(self) -> str:
        return f"Pairs({self.members})"


class Reads:
    """A file whose reads are these, whatever is asked for."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = [chunk for chunk in chunks if chunk]

    def read(self, size: int) -> Any:
        return self.chunks.pop(0) if self.chunks else b""


class AsyncReads(Reads):
    async def read(self, size: int) -> Any:
        return super().read(size)


def now(awaitable: Any) -> Any:
    """The result of what never waits."""
    try:
        next(awaitable.__await__())
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def awaited(source: Any) -> Iterator[Any]:
    with contextlib.suppress(StopAsyncIteration):
        while True:
            yield now(source.__anext__())


def error_facts(error: tw.StreamError, behind: int = 0) -> tuple[str, str, int | None]:
    return type(error).__name__, error.code, None if error.offset is None else behind + error.offset


def drained(results: Iterable[Any]) -> Facts:
    found: list[Any] = []
    try:
        found.extend(results)
    except tw.StreamError as error:
        return found, error_facts(error)
    return found, None


def machine(mode: Any, options: dict[str, Any], **changed: Any) -> Machine:
    wanted = {name: options[name] for name in ("use_float", "multiple_values", "max_depth")} | changed
    if mode in ("items", "members"):
        wanted |= {"prefix": options["prefix"], "map_type": Pairs if options["pairs"] else None}
    return Machine(mode, **wanted)


def pushed(mode: Any, chunks: list[bytes], options: dict[str, Any]) -> tuple[list[str], tuple[str, str, int | None] | None, list[int]]:
    """What comes out, the error behind it, and how much had come out after each chunk."""
    found: list[str] = []
    after: list[int] = []
    push = Push(machine(mode, options), lambda event: found.append(repr(event)))
    try:
        for chunk in chunks:
            if chunk:
                push.send(chunk)
            after.append(len(found))
        push.close()
    except tw.StreamError as error:
        return found, error_facts(error), after
    return found, None, after


def chained(body: bytes, options: dict[str, Any]) -> Facts:
    """The values that ``JSONParser`` reads, one behind the other."""
    values: list[Any] = []
    at = 0
    while not values or body[at:].strip(b" \t\r\n"):
        parser = tw.JSONParser(surrogates="keep", max_depth=options["max_depth"])
        try:
            parser.feed(body[at:])
            parser.finish()
        except tw.StreamError as error:
            if not (parser.complete and options["multiple_values"] and error.code == "json.trailing_data"):
                return values, error_facts(error, at)
        values.append(parser.value)
        assert parser.consumed, "a value of no bytes"
        at += parser.consumed
    return values, None


def built(events: list[tuple[str, Any]]) -> list[Any]:
    """The values that the events are."""
    values, depth = [], 0
    for event, value in events:
        if depth == 0:
            builder = ijson.ObjectBuilder()
        builder.event(event, value)
        depth += {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}.get(event, 0)
        if depth == 0:
            values.append(builder.value)
    return values


def agree_tokens(body: bytes, cuts: list[int], options: dict[str, Any]) -> None:
    whole: dict[str, Facts] = {}
    for mode in MODES:
        whole[mode] = drained(Pull(machine(mode, options), Reads([body]).read, 1))
        shown = [repr(event) for event in whole[mode][0]], whole[mode][1]
        for chunks in in_cuts(body, cuts):
            # An event that is dropped at once is used again for the next.
            assert drained(map(repr, Pull(machine(mode, options), Reads(chunks).read, 1))) == shown, f"{mode}: whole and cut differ"
            assert drained(map(repr, awaited(AsyncPull(machine(mode, options), AsyncReads(chunks).read, 1)))) == shown, f"{mode}: awaited"
            *facts, after = pushed(mode, chunks, options)
            assert tuple(facts) == shown, f"{mode}: pushed"
            if len(chunks) < 10:
                for i in range(len(chunks)):
                    _, _, known = pushed(mode, [b"".join(chunks[: i + 1])], options)
                    assert known == after[i : i + 1], f"{mode}: what is known after {i + 1} chunks depends on the cuts"
        with contextlib.suppress(UnicodeDecodeError):
            text = body.decode()
            pieces = [text[i : i + 7] for i in range(0, len(text), 7)]
            assert drained(map(repr, Pull(machine(mode, options), Reads(pieces).read, 1))) == shown, f"{mode}: bytes and text differ"
    faces_agree(body, options, whole)
    agree_parked(body, options, whole["lexemes"])


def faces_agree(body: bytes, options: dict[str, Any], whole: dict[str, Facts]) -> None:
    events, error = whole["events"]
    prefixed, other = whole["prefixed"]
    assert same([event[1:] for event in prefixed], events) and other == error, "events with and without prefix differ"
    map_type = Pairs if options["pairs"] else None
    for mode, face in (("items", ijson.items), ("members", ijson.kvitems)):
        want = list(face(iter(prefixed), options["prefix"], map_type))
        found, other = whole[mode]
        if other != error:  # numbers that nobody wants are not made
            assert error and error[1] in ("json.bad_number", "json.number_too_long"), f"{mode}: {other}, events: {error}"
            assert not other or (other[2] or 0) >= (error[2] or 0), f"{mode}: {other}, events: {error}"
            found = found[: len(want)]
        assert same(found, want), f"{mode} are not what is built of the events"
    floats, error = drained(Pull(machine("events", options, use_float=True), Reads([body]).read, 1))
    for (_, exact), (_, value) in zip(events, floats, strict=False):
        assert same(float(exact) if isinstance(exact, Decimal) else exact, value), "a Decimal is not the float"
    values, wrong = chained(body, options)
    if error and error[1] == "json.bad_number" and wrong != error:
        values = values[: len(built(floats))]  # what is beyond the floats: loads makes it infinite
    else:
        assert error == wrong, f"events: {error}, JSONParser: {wrong}"
    if wrong is None or len(values) == len(built(floats)):
        assert same(built(floats), values), "the events are not what JSONParser reads"
    lexemes, other = whole["lexemes"]
    floats, error = drained(Pull(machine("events", options, use_float=True, multiple_values=True), Reads([body]).read, 1))
    mine = [value for kind, value in lexemes if kind]
    theirs = [value for event, value in floats if event in ("map_key", "string", "number", "boolean", "null")]
    n = min(len(mine), len(theirs))
    assert same(mine[:n], theirs[:n]), "lexemes and events differ"
    if error is None:
        assert other is None or other[1] in ("json.lone_surrogate", "json.trailing_data"), f"lexemes: {other}"
        if other is None:
            assert len(mine) == len(theirs), "lexemes and events differ"
            text = " ".join(value if kind == 0 else json.dumps(value) for kind, value in lexemes)
            again = drained(Pull(machine("lexemes", options), Reads([text.encode()]).read, 1))
            assert same(again, (lexemes, None)), "the lexemes are not the document"


def agree_parked(body: bytes, options: dict[str, Any], whole: Facts) -> None:
    """Between two values at the root the cursor can be parked."""
    stream = io.BytesIO(body)
    tokens = Tokenizer(stream, correct_cursor=True, buffering=options["buffering"], max_depth=options["max_depth"])

    def parking() -> Iterator[Any]:
        depth = 0
        for token in tokens:
            yield token
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[1], 0) if token[0] == 0 else 0
            if depth == 0:
                tokens.park_cursor()

    assert same(drained(parking()), whole), "parking the cursor changes what is read"


# -- taps


class Walk:
    """What is finished in a document, as the events tell it: path, value, and whether it is the element of an array."""

    def __init__(self, max_depth: int) -> None:
        self.finished: list[tuple[tuple[Any, ...], Any, bool]] = []
        self.twice = False  # a key came twice in one object
        self.error: tw.StreamError | None = None
        self._open: list[Any] = []
        self._steps: list[Any] = []
        self._keys: list[set[str]] = []
        self._push = Push(Machine("events", use_float=True, max_depth=max_depth), self._event)

    def feed(self, data: bytes) -> None:
        if data and self.error is None:
            try:
                self._push.send(data)
            except tw.StreamError as error:
                self.error = error

    def _event(self, pair: tuple[str, Any]) -> None:
        event, value = pair
        if event == "map_key":
            self.twice |= value in self._keys[-1]
            self._keys[-1].add(value)
            self._steps[-1] = value
            return
        if event in ("start_map", "start_array"):
            self._open.append({} if event == "start_map" else [])
            self._steps.append(0 if event == "start_array" else None)
            self._keys.append(set())
            return
        if event in ("end_map", "end_array"):
            value = self._open.pop()
            self._steps.pop()
            self._keys.pop()
        path = tuple(self._steps)
        self.finished.append((path, value, bool(path) and type(path[-1]) is int))
        if path and type(path[-1]) is int:
            self._open[-1].append(value)
            self._steps[-1] += 1
        elif path:
            self._open[-1][path[-1]] = value

    def strings(self, steps: tuple[Any, ...]) -> list[tw.TextPiece]:
        return [tw.TextPiece(path, value, True) for path, value, _ in self.finished if isinstance(value, str) and leads(steps, path)]

    def items(self, steps: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        return [(path, value) for path, value, element in self.finished if element and leads(steps, path[:-1])]


def is_any(step: Any) -> bool:
    return step == "*" and not isinstance(step, tw.Key)


def leads(steps: tuple[Any, ...], path: tuple[Any, ...]) -> bool:
    return len(steps) == len(path) and all(
        is_any(step) or (step == there and (type(step) is int) == (type(there) is int)) for step, there in zip(steps, path, strict=True)
    )


def steps_of(options: dict[str, Any]) -> tuple[Any, ...]:
    """The path, with anything at the places in ``any``."""
    steps: list[Any] = list(options["path"])
    for i, step in enumerate(steps):
        if i in options["any"]:
            steps[i] = "*"
        elif step == "*" or (i % 2 and isinstance(step, str)):
            steps[i] = tw.Key(step)
    return tuple(steps)


def there(value: Any, steps: tuple[Any, ...], path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a tree that the path leads to."""
    if not steps:
        yield path, value
        return
    members = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    for step, child in members:
        if leads(steps[:1], (step,)):
            yield from there(child, steps[1:], (*path, step))


class Tapped:
    """A parser with taps. Everything is fed and read; ``facts`` is what must not depend on the cuts."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.steps = steps_of(options)
        self.parser = tw.JSONParser(**options["parser"])
        self.taps: Any = self.parser.tap(self.steps), self.parser.items(self.steps), self.parser.items(self.steps, paths=True)
        self.begin()

    def begin(self) -> None:
        self.pieces: list[tw.TextPiece] = []
        self.items: list[Any] = []
        self.error: tw.StreamError | None = None

    def feed(self, chunk: Any) -> None:
        if self.error is None:
            try:
                self.parser.feed(chunk)
            except tw.StreamError as error:
                self.error = error

    def read(self) -> None:
        self.pieces += self.taps[0].pieces()
        self.items += self.taps[1].read()

    def facts(self) -> Any:
        if self.error is None:
            try:
                self.parser.finish()
            except tw.StreamError as error:
                self.error = error
        self.read()
        tap, _, pairs = self.taps
        return merge(self.pieces), repr(self.items), repr(pairs.read()), tap.path, tap.complete, outcome(self.parser, self.error)


def agree_taps(body: bytes, cuts: list[int], options: dict[str, Any]) -> None:
    plain = run(tw.JSONParser(**options["parser"]), [body])
    tapped = Tapped(options)
    tapped.feed(body)
    whole = tapped.facts()
    assert whole[-1] == plain, "a parser that is watched says something else"
    tapped.parser.reset()
    tapped.begin()
    tapped.feed(body)
    assert tapped.facts() == whole, "after a reset something else comes out"
    for chunks in in_cuts(body, cuts):
        tapped = Tapped(options)
        for i, chunk in enumerate(chunks):
            tapped.feed(chunk)
            if i == options["pickled"]:
                tapped.parser, tapped.taps = pickle.loads(pickle.dumps((tapped.parser, tapped.taps)))
            if i % options["each"] == 0:
                tapped.read()
                assert tapped.taps[0].pieces() == tapped.taps[1].read() == [], "there is news though nothing came"
        assert tapped.facts() == whole, "whole and cut differ"
        assert forgetting(chunks, options) == whole[2], "elements are others where they are forgotten"
        steps, more = tapped.steps, options["parser"]
        for items in (tw.iter_items(chunks, steps, paths=True, **more), awaited(tw.aiter_items(chunks, steps, paths=True, **more))):
            found, error = drained(items)
            assert (repr(found), error) == (whole[2], plain.error), "iter_items"
        for pieces in (tw.iter_text(chunks, steps, **more), awaited(tw.aiter_text(chunks, steps, **more))):
            found, error = drained(pieces)
            assert (merge(found), error) == (whole[0], plain.error), "iter_text"
    if options["parser"] == {"surrogates": "keep", "max_depth": options["parser"]["max_depth"]}:
        walked(in_cuts(body, cuts)[0], options)


def forgetting(chunks: list[bytes], options: dict[str, Any]) -> str:
    """The elements of a tap that forgets. What stays in the tree is what it did not hand out, and a tap that comes later finds the rest."""
    steps = steps_of(options)
    plain, parser = tw.JSONParser(**options["parser"]), tw.JSONParser(**options["parser"])
    tap = parser.items(steps, forget=True, paths=True)
    found: list[Any] = []
    late, known = None, 0
    for i, chunk in enumerate(chunks):
        failed = False
        for each in (plain, parser):
            try:
                each.feed(chunk)
            except tw.StreamError:
                failed = True
        if i % options["each"] == 0:
            found += tap.read()
        if i == options["late"]:
            found += tap.read()
            late, known = parser.items(steps, paths=True), len(found)
        if failed:
            break
    else:
        with contextlib.suppress(tw.StreamError):
            parser.finish()
        with contextlib.suppress(tw.StreamError):
            plain.finish()
    once = run(tw.JSONParser(**options["parser"] | {"duplicate_keys": "error"}), chunks)
    if once.error is None or once.error[1] != "json.duplicate_key":  # a value whose key came again is neither open nor complete
        left = pickle.loads(pickle.dumps(plain.value))
        for path, array in list(there(left, steps)):
            if isinstance(array, list):
                del array[: sum(plain.state((*path, i)) == "complete" for i in range(len(array)))]
        assert same(parser.value, left), "another tree is left"
    found += tap.read()
    assert late is None or same(late.read(), found[known:]), "a tap that came late finds what was forgotten"
    return repr(found)


def walked(chunks: list[bytes], options: dict[str, Any]) -> None:
    """After each chunk the taps have handed out what a walk finds, those opened late, too."""
    walk, tapped = Walk(options["parser"]["max_depth"]), Tapped(options)
    late: Any = None
    for i, chunk in enumerate([*chunks, b""]):
        walk.feed(chunk)
        if walk.error is not None and walk.error.code == "json.bad_number":
            return  # beyond the floats: to JSONParser it is infinite
        tapped.feed(chunk)
        # What follows the value is wrong to JSONParser when it is finished.
        assert (tapped.error is None) == (walk.error is None or walk.error.code == "json.trailing_data"), "one fails"
        if i == options["late"] % (len(chunks) + 1):
            late = tapped.parser.tap(tapped.steps), tapped.parser.items(tapped.steps, paths=True), walk.twice
        tapped.read()
        strings, elements = walk.strings(tapped.steps), walk.items(tapped.steps)
        pieces = merge(tapped.pieces)
        if pieces and not pieces[-1].complete:
            path, text, _ = pieces.pop()
            assert [value for where, value in there(tapped.parser.value, path_of(path))] == [text], "an open string is not the tree's"
            assert tapped.parser.state(path) == "open", "an open string that is not open"
        assert pieces == strings, "the strings are not the walk's"
        assert same(tapped.items, [value for _, value in elements]), "the elements are not the walk's"
    if not late[2]:
        assert merge(late[0].pieces()) == merge(tapped.pieces), "a string tap that came late"
        assert same(late[1].read(), elements), "an item tap that came late"


def path_of(path: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tw.Key(step) if isinstance(step, str) else step for step in path)


def shrunk(body: bytes, breaks: Callable[[bytes], bool]) -> bytes:
    """The body with all pieces left out that it takes not to break."""
    size, deadline = max(1, len(body) // 2), time.monotonic() + 20
    while time.monotonic() < deadline:
        for at in range(0, len(body), size):
            shorter = body[:at] + body[at + size :]
            if breaks(shorter):
                body = shorter
                break
        else:
            if size == 1:
                break
            size //= 2
    return body


# -- targets


def provider_bodies() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FIXTURES.glob("*/*.expect.json")):
        expect = json.loads(path.read_bytes())
        yield expect["provider"], (path.parent / expect["body"]).read_bytes()[:MOST]


def argument_texts() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FIXTURES.glob("*/*.expect.json")):
        yield from (("", call["text"].encode()) for call in json.loads(path.read_bytes())["calls"] if call["text"])


def documents() -> Iterator[tuple[str, bytes]]:
    """Argument texts, frames of event streams, and as many that are drawn. Most are short: they are read byte by byte, many times."""
    rng = random.Random(1)
    texts = [text for _, text in argument_texts()]
    for _, body in provider_bodies():
        texts += [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: {")]
    yield from (("", text) for text in texts if len(text) < 500 or rng.random() < 0.05)
    for _ in range(2000):
        yield "", drawn(rng, 0).encode()


KEYS = ['"a"', '"a"', '"b"', '"item"', '""', '"*"', '"a.b"', '"0"', '"\\u0061"', '"é"', '"\\ud83d\\ude00"', '"😀"', '"\\ud83d"']
SCALARS = ["null", "true", "false", "0", "-0", "12", "-1.50", "2e3", "1e-7", "0.1", "12345678901234567890"]
SCALARS += ['""', '"text"', '"\\n"', '"\\u00e9é"', '"😀\\ud83d\\ude00"', '"\\ud83dx"', f'"{"long " * 30}"', f'"{"é" * 40}\\t"']


def drawn(rng: random.Random, depth: int) -> str:
    """A document whose keys and shapes repeat."""
    what = rng.random() if depth < 5 else 1
    if depth and what > 0.55:
        return rng.choice(SCALARS)
    n = rng.choice((0, 1, 2, 3, 3, 5)) if depth or rng.random() < 0.98 else 60
    gap = rng.choice(("", "", " ", "\n"))
    if what < 0.3:
        return "{" + f",{gap}".join(f"{rng.choice(KEYS)}:{gap}{drawn(rng, depth + 1)}" for _ in range(n)) + gap + "}"
    return "[" + f"{gap},".join(drawn(rng, depth + 1) for _ in range(n)) + gap + "]"


def turn_options(rng: random.Random, provider: str, body: bytes) -> dict[str, Any]:
    options: dict[str, Any] = {"provider": provider if rng.random() < 0.8 else "auto", "profile": rng.choice(("default", "default", "strict", "tolerant"))}
    if rng.random() < 0.1:
        options["limits"] = tw.Limits(max_frame_bytes=300, max_depth=6, max_argument_chars=30, max_calls=2, max_text_chars=40)
    return options


def parser_options(rng: random.Random, provider: str, body: bytes) -> dict[str, Any]:
    return {
        "surrogates": rng.choice(("error", "replace", "keep")),
        "duplicate_keys": rng.choice(("last", "error")),
        "allow_nan": rng.random() < 0.5,
        "allow_control_characters": rng.random() < 0.5,
        "max_depth": rng.choice((2, 512)),
    }


def token_options(rng: random.Random, provider: str, body: bytes) -> dict[str, Any]:
    prefixes = [event[0] for event in drained(Pull(Machine("prefixed", multiple_values=True), Reads([body]).read, 1))[0]] or [""]
    return {
        "prefix": rng.choice(prefixes) if rng.random() < 0.8 else ".".join(rng.choices(["item", "a", "b", "", "*"], k=rng.randrange(4))),
        "pairs": rng.random() < 0.3,
        "use_float": rng.random() < 0.5,
        "multiple_values": rng.random() < 0.5,
        "max_depth": rng.choice((2, 512, 512)),
        "buffering": rng.choice((-1, 1, 7)),
    }


def tap_options(rng: random.Random, provider: str, body: bytes) -> dict[str, Any]:
    walk = Walk(512)
    walk.feed(body)
    paths = [path for path, value, _ in walk.finished if isinstance(value, str)] + [path[:-1] for path, _, element in walk.finished if element]
    path = list(rng.choice(paths)) if paths and rng.random() < 0.9 else rng.choices(["a", "item", "*", "", 0, 1], k=rng.randrange(4))
    strict = {"surrogates": "keep", "max_depth": rng.choice((2, 512, 512))}
    return {
        "parser": strict if rng.random() < 0.6 else parser_options(rng, provider, body),
        "path": path,
        "any": [i for i in range(len(path)) if rng.random() < 0.4],
        "each": rng.choice((1, 1, 2, 5)),
        "late": rng.randrange(10),
        "pickled": rng.randrange(12),
    }


@dataclass(frozen=True)
class Target:
    bodies: Callable[[], Iterator[tuple[str, bytes]]]
    mutations: list[Callable[..., None]]
    options: Callable[[random.Random, str, bytes], dict[str, Any]]
    agree: Callable[[bytes, list[int], dict[str, Any]], None]


TARGETS = {
    "parser": Target(argument_texts, MUTATIONS, parser_options, agree_parser),
    "tokens": Target(documents, DOCUMENT_MUTATIONS, token_options, agree_tokens),
    "taps": Target(documents, DOCUMENT_MUTATIONS, tap_options, agree_taps),
    "turns": Target(provider_bodies, MUTATIONS, turn_options, agree_turns),
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=TARGETS)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=time.time_ns())
    arguments.add_argument("--found", type=Path, required=True)
    args = arguments.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of text, where bytes are read
    rng = random.Random(args.seed)
    print("seed", args.seed)
    target = TARGETS[args.what]
    bodies = list(target.bodies())
    trying, found, played = args.found / "killed-by", 0, 0
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline and found < 10:
        provider, seed = rng.choice(bodies)
        kinds = [messages, messages, flip, stop] if b":event-type" in seed else target.mutations
        body = mutated(rng, seed, rng.choice(bodies)[1], kinds)
        cuts = [rng.randrange(1 << 20) for _ in range(rng.randrange(9))]
        options = target.options(rng, provider, body)

        def breaks(body: bytes, cuts: list[int] = cuts, options: dict[str, Any] = options) -> bool:
            try:
                target.agree(body, cuts, options)
            except Exception:
                return True
            return False

        trying.write_bytes(repr((options, cuts, body)).encode())  # a crash leaves it behind
        played += 1
        if breaks(body):
            found += 1
            small = shrunk(body, breaks)
            try:
                target.agree(small, cuts, options)
            except Exception:
                text = f"{args.what} {options!r} cuts={cuts!r}\n{small!r}\n\n{traceback.format_exc()}"
                (args.found / f"{args.what}-{found}.txt").write_text(text)
    trying.unlink(missing_ok=True)
    print(played)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
