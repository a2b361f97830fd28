"""Documents read piece by piece with ijson's functions, and through json-stream with its tokenizers."""

from __future__ import annotations

import io
import json
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from . import workloads
from .suite import OURS, Plan, Shape, Target

YAJL, PURE, RUST = "ijson, yajl2_c", "ijson, python", "json-stream's, in Rust"


def records(tiny: bool) -> bytes:
    """An object with an array of records: 3 MB, as a service exports them."""
    rng = random.Random("records")
    words = ["alpha", "beta", "gamma", "delta", "größe", "naïve"]
    rows = [
        {
            "id": n,
            "name": f"{rng.choice(words)} {rng.randrange(10**4)}",
            "email": f"user{n}@example.org",
            "active": rng.random() < 0.5,
            "score": round(rng.random() * 100, 2),
            "parent": None if rng.random() < 0.3 else rng.randrange(10**6),
            "tags": rng.sample(words, 3),
            "at": {"lat": round(rng.uniform(-90, 90), 4), "lon": round(rng.uniform(-180, 180), 4)},
            "note": " ".join(rng.choices(words, k=rng.randrange(4, 20))),
        }
        for n in range(20 if tiny else 10_000)
    ]
    return json.dumps({"count": len(rows), "rows": rows}, ensure_ascii=False).encode()


def backend(name: str) -> Any:
    if name == OURS:
        import toolwire.compat.ijson as ours

        return ours
    import ijson

    return ijson.get_backend({YAJL: "yajl2_c", PURE: "python"}[name])


def reads(name: str, function: str, *args: Any, **options: Any) -> Callable[[bytes], Plan]:
    """The time it takes to iterate to the end. What is iterated is compared beforehand, by its length and last part."""

    def plan(document: bytes) -> Plan:
        read = getattr(backend(name), function)

        def answer() -> Any:
            everything = list(read(io.BytesIO(document), *args, **options))
            return len(everything), everything[:100], everything[-100:]

        made = answer()

        def run() -> Any:
            deque(read(io.BytesIO(document), *args, **options), maxlen=0)
            return made

        return Plan(lambda: run, 1000)

    return plan


def pushes(name: str) -> Callable[[list[bytes]], Plan]:
    """A document that is sent in chunks to a coroutine, which makes one value of it."""

    def plan(chunks: list[bytes]) -> Plan:
        made = backend(name)
        from ijson import sendable_list

        def run() -> Any:
            found: list[Any] = sendable_list()
            sink = made.items_coro(found, "", use_float=True)
            for chunk in chunks:
                sink.send(chunk)
            sink.close()
            return found[0]

        return Plan(lambda: run, 1000)

    return plan


def streams(name: str, read: Callable[[Any, bytes], Any]) -> Callable[[bytes], Plan]:
    """The document read by json-stream, or its tokens alone."""

    def plan(document: bytes) -> Plan:
        if name == OURS:
            from toolwire.compat.json_stream import tokenizer
        else:
            from json_stream_rs_tokenizer import RustTokenizer as tokenizer

        def run() -> Any:
            return read(tokenizer, document)

        return Plan(lambda: run, 1000)

    return plan


def tokens(tokenizer: Any, document: bytes) -> Any:
    return deque(tokenizer(io.BytesIO(document)), maxlen=1)[0]


def load(tokenizer: Any, document: bytes) -> Any:
    import json_stream

    total = 0.0
    for row in json_stream.load(io.BytesIO(document), tokenizer=tokenizer)["rows"].persistent():
        total += row["score"]
    return total


def compare(function: str, *args: Any, names: tuple[str, ...] = (OURS, YAJL), **options: Any) -> dict[str, Callable[[bytes], Plan]]:
    return {name: reads(name, function, *args, **options) for name in names}


def of_streams(read: Callable[[Any, bytes], Any]) -> dict[str, Callable[[bytes], Plan]]:
    return {name: streams(name, read) for name in (OURS, RUST)}


UNIT = "ms a document"
ALL = (OURS, YAJL, PURE)

SHAPES = (
    Shape("ijson-items", "items() over 10,000 records of 300 bytes", UNIT, records, compare("items", "rows.item", names=ALL), (Target(YAJL, 5),)),
    Shape("ijson-items-float", "the same with use_float=True", UNIT, records, compare("items", "rows.item", use_float=True), (Target(YAJL, 5),)),
    Shape("ijson-items-rare", "items() that finds one number of the document", UNIT, records, compare("items", "count"), (Target(YAJL, 5),)),
    Shape(
        *("ijson-items-push", "items_coro() that is sent a document of 1 MB in chunks of 16 kB, one value", UNIT),
        lambda tiny: workloads.chunks(workloads.document("dicts", 5000 if tiny else 1_000_000), 16384),
        {name: pushes(name) for name in (OURS, YAJL)},
        (Target(YAJL, 5),),
    ),
    Shape("ijson-kvitems", "kvitems() over the records", UNIT, records, compare("kvitems", "rows.item"), (Target(YAJL, 2.5, 5),)),
    Shape("ijson-basic-parse", "basic_parse() over the records", UNIT, records, compare("basic_parse", names=ALL), (Target(YAJL, 2.5, 5),)),
    Shape("ijson-parse", "parse() over the records", UNIT, records, compare("parse"), (Target(YAJL, 2.5, 5),)),
    Shape("json-stream-tokens", "json-stream's tokens of the records", UNIT, records, of_streams(tokens), (Target(RUST, 1, 5),)),
    Shape("json-stream-load", "json-stream's load() over the records", UNIT, records, of_streams(load), (Target(RUST, 1),)),
)
