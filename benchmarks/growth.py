"""What does the next delta cost when N characters have come before? Flat is the aim.

The parser is fed up to N characters, then the time of each of the following deltas is taken; the table has the median of
their means over fresh parsers, with the parser's creation and end outside. Beside it: ``jiter.from_json`` in partial mode on the
growing buffer, the usual way.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import statistics
import time
from collections.abc import Callable

import toolwire as tw

from . import workloads

SIZES = (1_000, 10_000, 100_000, 1_000_000)
STEPS = 200  # deltas timed at each length
ROUNDS = 9

Step = Callable[[str], object]


def live() -> Step:
    parser = tw.JSONParser()

    def step(delta: str) -> object:
        parser.feed(delta)
        return parser.value

    return step


def snapshot() -> Step:
    parser = tw.JSONParser()

    def step(delta: str) -> object:
        parser.feed(delta)
        return parser.snapshot()

    return step


def jiter() -> Step:
    from jiter import from_json

    buffer = bytearray()

    def step(delta: str) -> object:
        buffer.extend(delta.encode())
        return from_json(bytes(buffer), partial_mode="trailing-strings")

    return step


@functools.cache
def json_string(delta: str) -> bytes:
    return json.dumps(delta).encode()


def turn_live() -> Step:
    turn = tw.Turn("openai-chat")
    turn.feed(workloads.chat_start())
    before, after = workloads.chat_event("?").split(b"?")

    def step(delta: str) -> object:
        value: object = None
        for event in turn.feed(before + json_string(delta)[1:-1] + after):
            if isinstance(event, tw.ArgumentsDelta):
                value = event.call.value
        return value

    return step


CONTENDERS: dict[str, tuple[Callable[[], Step], int]] = {
    "toolwire, live value": (live, STEPS),
    "toolwire, snapshot": (snapshot, STEPS),
    "toolwire turn, live value": (turn_live, STEPS),
    "jiter, growing buffer": (jiter, 4),
}
SHAPES: dict[str, tuple[Callable[[int], str], int]] = {"long string": (workloads.long_string, 4), "nested": (workloads.nested, 16)}


def cost(make: Callable[[], Step], text: str, held: int, size: int, steps: int) -> float:
    """Seconds a delta at ``held`` characters: one fresh parser."""
    step = make()
    # Up to the place in larger pieces; a reader that starts over each time gets it in one.
    lead = held if make is jiter else 500
    for start in range(0, held, lead):
        step(text[start : min(held, start + lead)])
    pieces = workloads.deltas(text[held : held + size * steps], size)
    for piece in pieces:
        json_string(piece)  # the server's work, not ours: done before the clock starts
    gc.collect()
    gc.disable()
    begin = time.perf_counter()
    for piece in pieces:
        step(piece)
    seconds = time.perf_counter() - begin
    gc.enable()
    return seconds / len(pieces)


def measure(shape: str) -> dict[str, dict[int, float]]:
    """Microseconds a delta by contender and length, contenders interleaved."""
    build, size = SHAPES[shape]
    text = build(max(SIZES) + size * STEPS + 1000)
    samples: dict[str, dict[int, list[float]]] = {name: {n: [] for n in SIZES} for name in CONTENDERS}
    for _ in range(ROUNDS):
        for held in SIZES:
            for name, (make, steps) in CONTENDERS.items():
                with contextlib.suppress(ImportError):
                    samples[name][held].append(cost(make, text, held, size, steps) * 1e6)
    return {name: {n: statistics.median(v) for n, v in by.items() if v} for name, by in samples.items()}


def report(shape: str, result: dict[str, dict[int, float]]) -> str:
    lines = [f"microseconds a delta, {shape}", "| | " + " | ".join(f"{n:,}" for n in SIZES) + " | 1 MB : 1 kB |", "|---|" + "---|" * (len(SIZES) + 1)]
    for name, by in result.items():
        if not by:
            lines.append(f"| {name} | not installed |" + " |" * len(SIZES))
            continue
        lines.append(f"| {name} | " + " | ".join(f"{by[n]:.3f}" for n in SIZES) + f" | {by[SIZES[-1]] / by[SIZES[0]]:.2f} |")
    return "\n".join(lines)
