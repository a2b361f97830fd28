"""Taps and items: however a document is cut, and whenever they are read, opened or pickled, they hand out what a walk through the events
finds finished at each cut."""

from __future__ import annotations

import contextlib
import pickle
import random
from collections.abc import Iterator
from typing import Any

from reading import awaited, drained, in_cuts

import toolwire as tw
from helpers import outcome, run, same
from test_taps import merge
from toolwire._tokens import Machine, Push


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
                with contextlib.suppress(RecursionError):  # pickle itself gives up at about 500 nested lists
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
        left = plain.value
        arrays = [(path, array) for path, array in there(left, steps) if isinstance(array, list)]
        ended = [sum(plain.state((*path, i)) == "complete" for i in range(len(array))) for path, array in arrays]
        for (_, array), n in zip(arrays, ended, strict=True):
            del array[:n]
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


def parser_options(rng: random.Random, provider: str, body: bytes) -> dict[str, Any]:
    return {
        "surrogates": rng.choice(("error", "replace", "keep")),
        "duplicate_keys": rng.choice(("last", "error")),
        "allow_nan": rng.random() < 0.5,
        "allow_control_characters": rng.random() < 0.5,
        "max_depth": rng.choice((2, 512)),
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
