"""Twice the input, twice the time? The ratio of the times of 2N and N, for inputs that make careless readers quadratic.

The sizes of the shapes that make many objects are such that 2N still fits the processor's caches: beyond them each new object costs
a page fault and a cache miss, for every reader alike. ``json.loads`` and ``orjson.loads`` show the same step.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import toolwire as tw

from . import workloads

ROUNDS = 9


def one_frame(n: int) -> list[bytes]:
    """One frame of n bytes, in chunks of 1,400 bytes."""
    body = b'data: {"x":"' + b"y" * n + b'"}\n\n'
    return [body[i : i + 1400] for i in range(0, len(body), 1400)]


def dripped_frame(n: int) -> list[bytes]:
    """One frame of n bytes, byte by byte."""
    body = b'data: {"x":"' + b"y" * n + b'"}\n\n'
    return [body[i : i + 1] for i in range(len(body))]


def many_events(n: int) -> list[bytes]:
    """n bytes of small events in one chunk."""
    event = workloads.chat_event("abcd")
    return [event * (n // len(event))]


def one_chunk(n: int) -> list[bytes]:
    """One frame of n bytes in one chunk."""
    return [b'data: {"x":"' + b"y" * n + b'"}\n\n']


def frames(chunks: list[bytes]) -> None:
    framer = tw.SSEFramer()
    for chunk in chunks:
        for frame in framer.feed(chunk):
            frame.raw  # noqa: B018 - reading is what is measured


def turn(chunks: list[bytes]) -> None:
    one = tw.Turn("openai-chat")
    one.feed(workloads.chat_start())
    for chunk in chunks:
        one.feed(chunk)


def document(chunks: list[bytes]) -> None:
    parser = tw.JSONParser()
    for chunk in chunks:
        parser.feed(chunk)


def json_chunks(n: int) -> list[bytes]:
    """n bytes of nested JSON, byte by byte."""
    text = workloads.nested(n).encode()
    return [text[i : i + 1] for i in range(len(text))]


def json_chunk(n: int) -> list[bytes]:
    """n bytes of nested JSON in one chunk."""
    return [workloads.nested(n).encode()]


CASES: dict[str, tuple[Callable[[int], list[bytes]], Callable[[list[bytes]], None], int]] = {
    "framer, one frame in 1,400 B chunks": (one_frame, frames, 1_000_000),
    "framer, one frame byte by byte": (dripped_frame, frames, 250_000),
    "framer, many events in one chunk": (many_events, frames, 1_000_000),
    "framer, one frame in one chunk": (one_chunk, frames, 1_000_000),
    "turn, one frame in 1,400 B chunks": (one_frame, turn, 4_000_000),
    "turn, many events in one chunk": (many_events, turn, 1_000_000),
    "turn, one frame in one chunk": (one_chunk, turn, 4_000_000),
    "parser, nested JSON byte by byte": (json_chunks, document, 250_000),
    "parser, nested JSON in one chunk": (json_chunk, document, 250_000),
}


def seconds(work: Callable[[list[bytes]], None], chunks: list[bytes]) -> float:
    gc.collect()
    gc.disable()  # its full passes come in steps of their own
    begin = time.perf_counter()
    work(chunks)
    taken = time.perf_counter() - begin
    gc.enable()
    return taken


def measure(name: str) -> float:
    """Median of the ratios time(2N) : time(N), taken in turn."""
    build, work, n = CASES[name]
    small, large = build(n), build(2 * n)
    work(small)
    work(large)
    return statistics.median(seconds(work, large) / seconds(work, small) for _ in range(ROUNDS))
