"""The parser on its own: deltas of one value, whole documents, documents in chunks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import toolwire as tw

from . import native, workloads
from .suite import Plan, Run, Shape, Target

SAMPLES = 200  # places at which a reader that starts over each time is timed in long inputs
JITER = "jiter, growing buffer"
SJP = "streaming-json-parser, native"


# -- deltas -----------------------------------------------------------------------------------------------------------


def noop(deltas: list[str]) -> Plan:
    make = native.load().Noop

    def prepare() -> Run:
        feed = make().feed

        def run() -> None:
            for delta in deltas:
                feed(delta)

        return run

    return Plan(prepare, len(deltas))


def empty_loop(deltas: list[str]) -> Plan:
    def run() -> None:
        for _delta in deltas:
            pass

    return Plan(lambda: run, len(deltas))


def feed(deltas: list[str]) -> Plan:
    def prepare() -> Run:
        feed = tw.JSONParser().feed

        def run() -> None:
            for delta in deltas:
                feed(delta)

        return run

    return Plan(prepare, len(deltas))


def live(deltas: list[str]) -> Plan:
    def run() -> Any:
        parser = tw.JSONParser()
        feed = parser.feed
        for delta in deltas:
            feed(delta)
            value = parser.value
        return value

    return Plan(lambda: run, len(deltas))


def snapshot(deltas: list[str]) -> Plan:
    def run() -> Any:
        parser = tw.JSONParser()
        feed, snapshot = parser.feed, parser.snapshot
        for delta in deltas:
            feed(delta)
            value = snapshot()
        return value

    return Plan(lambda: run, len(deltas))


def jiter(deltas: list[str]) -> Plan:
    """Everything so far, again after each delta. Of long inputs every n-th delta only, evenly spread: the mean is the same."""
    from jiter import from_json

    step = len(deltas) // SAMPLES
    if step < 2:

        def run() -> Any:
            buffer = b""
            for delta in deltas:
                buffer += delta.encode()
                value = from_json(buffer, partial_mode="trailing-strings")
            return value

        return Plan(lambda: run, len(deltas))

    ends = list(itertools.accumulate(len(delta.encode()) for delta in deltas))[::-step][::-1]
    whole = "".join(deltas).encode()

    def run_sampled() -> Any:
        for end in ends:
            value = from_json(whole[:end], partial_mode="trailing-strings")  # the slice is the copy that += would make
        return value

    return Plan(lambda: run_sampled, len(ends))


def _streaming_parser() -> Any:
    import streaming_json_parser
    import streaming_json_parser_native  # noqa: F401 - without it the package falls back to Python

    return streaming_json_parser.StreamingJsonParser


def streaming_json_parser(deltas: list[str]) -> Plan:
    make = _streaming_parser()

    def run() -> Any:
        feed = make().feed
        for delta in deltas:
            value = feed(delta).value
        return value

    return Plan(lambda: run, len(deltas))


def stale() -> str:
    """After how many deltas does that parser's value lack text that has already come?"""
    try:
        make = _streaming_parser()
    except ImportError:
        return ""
    behind, deltas = 0, workloads.deltas(workloads.long_string(4000), 4)
    theirs, ours = make(), tw.JSONParser()
    for delta in deltas:
        value = theirs.feed(delta).value
        ours.feed(delta)
        behind += value != ours.snapshot()
    return f"{SJP}: its value lacked text already received after {behind} of {len(deltas)} deltas of a long string"


DELTAS: dict[str, tuple[Callable[[bool], list[str]], str]] = {
    "300 B": (lambda tiny: workloads.deltas(workloads.small(), 4), "300 B object"),
    "100 kB string": (lambda tiny: workloads.deltas(workloads.long_string(400 if tiny else 100_000), 4), "100 kB string"),
    "1 MB string": (lambda tiny: workloads.deltas(workloads.long_string(800 if tiny else 1_000_000), 4), "1 MB string"),
    "nested": (lambda tiny: workloads.deltas(workloads.objects(5 if tiny else 1000), 16), "1,000 nested objects, 16-character deltas"),
}
LIVE = {"300 B": (6, 12, 4), "100 kB string": (300, 500, 4), "1 MB string": (2000, 3500, None), "nested": (2000, 5000, 4)}


def _live_shape(kind: str) -> Shape:
    must, aim, other = LIVE[kind]
    contenders = {"toolwire": live, JITER: jiter, **({SJP: streaming_json_parser} if other else {})}
    targets = (Target(JITER, must, aim), *((Target(SJP, other, 8),) if other else ()))
    data, title = DELTAS[kind]
    return Shape(f"live {kind}", f"feed and read the live value, {title}", "µs a delta", data, contenders, targets, note=stale if other else None)


# -- documents --------------------------------------------------------------------------------------------------------


def _loads(function: Callable[[bytes], Any]) -> Callable[[bytes], Plan]:
    return lambda data: Plan(lambda: lambda: function(data))


def _orjson(data: bytes) -> Plan:
    import orjson

    return _loads(orjson.loads)(data)


def _msgspec(data: bytes) -> Plan:
    import msgspec

    return _loads(msgspec.json.Decoder().decode)(data)


def _ssrjson(data: bytes) -> Plan:
    import ssrjson

    return _loads(ssrjson.loads)(data)


def _jiter(data: bytes) -> Plan:
    import jiter

    return _loads(jiter.from_json)(data)


LOADS = {"toolwire": _loads(tw.loads), "orjson": _orjson, "msgspec": _msgspec, "ssrjson": _ssrjson, "jiter": _jiter}
KINDS = {"dicts": 0.9, "floats": 0.85, "ascii": 1.6, "cjk": 1.5, "cyrillic": 0.8, "escapes": 1.1}
SIZES = {"10 kB": 10_000, "1 MB": 1_000_000}


def _loads_shape(kind: str, size: str) -> Shape:
    def data(tiny: bool) -> bytes:
        return workloads.document(kind, 2000 if tiny else SIZES[size])

    targets = (Target("orjson", KINDS[kind], 1), *(Target(peer, None, 1) for peer in ("msgspec", "ssrjson", "jiter")))
    return Shape(f"loads {kind} {size}", f"loads of a whole document of {size}, {kind}", "µs a document", data, LOADS, targets)


# -- documents in chunks ----------------------------------------------------------------------------------------------


def chunked(chunks: list[bytes]) -> Plan:
    def run() -> Any:
        parser = tw.JSONParser()
        for chunk in chunks:
            parser.feed(chunk)
        return parser.finish()

    return Plan(lambda: run)


def join_orjson(chunks: list[bytes]) -> Plan:
    import orjson

    return Plan(lambda: lambda: orjson.loads(b"".join(chunks)))


def ijson(chunks: list[bytes]) -> Plan:
    import ijson as library

    backend = library.get_backend("yajl2_c")

    def run() -> Any:
        found = library.sendable_list()
        sink = backend.items_coro(found, "", use_float=True)
        for chunk in chunks:
            sink.send(chunk)
        sink.close()
        return found[0]

    return Plan(lambda: run)


def _chunked_shape(name: str, size: int) -> Shape:
    def data(tiny: bool) -> list[bytes]:
        return workloads.chunks(workloads.document("dicts", 5000 if tiny else 1_000_000), size)

    contenders = {"toolwire": chunked, "ijson yajl2_c": ijson, "join + orjson": join_orjson}
    targets = (Target("ijson yajl2_c", 6, 10), Target("join + orjson", 0.85, 1))
    return Shape(f"chunked {name}", f"document of 1 MB in chunks of {name}, final value", "µs a document", data, contenders, targets)


SHAPES = [
    Shape(
        "feed",
        "feed of a 4-character delta, small object (time of the loop subtracted)",
        "µs a delta",
        DELTAS["300 B"][0],
        {"toolwire": feed, "Cython no-op": noop, "empty loop": empty_loop},
        (Target("Cython no-op", 3.5, 2, at_most=True),),
        net_of="empty loop",
    ),
    *(_live_shape(kind) for kind in LIVE),
    Shape(
        "snapshot nested",
        "snapshot after each feed, taken and dropped, 1,000 nested objects",
        "µs a delta",
        DELTAS["nested"][0],
        {"toolwire": snapshot, JITER: jiter},
        (Target(JITER, 150, 2000),),
    ),
    *(_loads_shape(kind, size) for kind in KINDS for size in SIZES),
    *(_chunked_shape(name, size) for name, size in (("1,400 B", 1400), ("16 kB", 16384), ("64 kB", 65536))),
]
