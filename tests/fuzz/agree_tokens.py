"""The faces of ijson and json-stream: however a document is cut, and whether it is pulled, pushed or awaited, the same comes out of it, and
the faces agree with each other and with JSONParser."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from reading import AsyncReads, Facts, Reads, awaited, drained, error_facts, in_cuts

import toolwire as tw
import toolwire.compat.ijson as ijson
from helpers import same
from toolwire._tokens import AsyncPull, Machine, Pull, Push
from toolwire.compat.json_stream import Tokenizer

MODES: list[Any] = ["events", "prefixed", "items", "members", "lexemes"]


class Pairs:
    """A mapping that keeps every member."""

    def __init__(self) -> None:
        self.members: list[tuple[str, Any]] = []

    def __setitem__(self, key: str, value: Any) -> None:
        self.members.append((key, value))

    def __repr__(self) -> str:
        return f"Pairs({self.members})"


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
