"""JSON that grows, parsed anew for each delta, as programs do that know only a function for it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from . import workloads
from .suite import Plan, Shape, Target


def _deltas(text: str, chars: int) -> list[bytes]:
    raw = text.encode()
    return [raw[start : start + chars] for start in range(0, len(raw), chars)]


def _accumulating(make: Callable[[], Callable[[bytes], Any]]) -> Callable[[list[bytes]], Plan]:
    """The loop of a program that keeps the text so far and asks for its value after each delta."""

    def contender(deltas: list[bytes]) -> Plan:
        make()

        def run() -> Any:
            parse, buffer, last = make(), b"", None
            for delta in deltas:
                buffer += delta
                last = parse(buffer)
            return last

        return Plan(lambda: run, len(deltas))

    return contender


def _growing() -> Callable[[bytes], Any]:
    from toolwire.compat.jiter import GrowingJSON

    return GrowingJSON(partial_mode="trailing-strings")


def _jiter() -> Callable[[bytes], Any]:
    from jiter import from_json

    return functools.partial(from_json, partial_mode="trailing-strings")


def _whole(module: str) -> Callable[[bytes], Plan]:
    def contender(data: bytes) -> Plan:
        from_json = importlib.import_module(module).from_json
        return Plan(lambda: lambda: from_json(data))

    return contender


def _cut(module: str, function: str) -> Callable[[str], Plan]:
    """One call for JSON that has been cut."""

    def contender(text: str) -> Plan:
        parse = getattr(importlib.import_module(module), function)
        return Plan(lambda: lambda: parse(text))

    return contender


_PPJ = {"toolwire": _cut("toolwire.compat.partial_json_parser", "loads"), "partial-json-parser": _cut("partial_json_parser", "loads")}

SHAPES = [
    Shape(
        "GrowingJSON",
        "from_json(partial_mode='trailing-strings') for each 16-character delta of 20 kB of nested JSON",
        "µs a delta",
        lambda tiny: _deltas(workloads.nested(800 if tiny else 20_000), 16),
        {"toolwire": _accumulating(_growing), "jiter": _accumulating(_jiter)},
        (Target("jiter", 30),),
    ),
    Shape(
        "from_json",
        "from_json of a whole document of 10 kB",
        "µs",
        lambda tiny: workloads.nested(800 if tiny else 10_000).encode(),
        {"toolwire": _whole("toolwire.compat.jiter"), "jiter": _whole("jiter")},
        (Target("jiter", None, 1),),
    ),
    Shape(
        "partial_json_parser nested",
        "loads of 20 kB of nested JSON, cut",
        "µs",
        lambda tiny: workloads.nested(800 if tiny else 20_000)[:-17],
        _PPJ,
        (Target("partial-json-parser", 50),),
    ),
    Shape(
        "partial_json_parser string",
        "loads of an object with 100 kB of text, cut",
        "µs",
        lambda tiny: '{"path":"a.py","content":"' + "a line of code\\n" * (50 if tiny else 6_600),
        _PPJ,
        (Target("partial-json-parser", 50),),
    ),
    Shape(
        "parse_partial_json",
        "LangChain's parse_partial_json of 20 kB of nested JSON, cut",
        "µs",
        lambda tiny: workloads.nested(800 if tiny else 20_000)[:-17],
        {
            "toolwire": _cut("toolwire.compat.langchain", "parse_partial_json"),
            "langchain-core": _cut("langchain_core.utils.json", "parse_partial_json"),
        },
        (Target("langchain-core", None, 50),),
    ),
]
