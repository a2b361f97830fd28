"""What the checks share: ways to cut a document, sources to read it from, and what came out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import toolwire as tw
from turn_helpers import cut

Facts = tuple[list[Any], tuple[str, str, int | None] | None]  # what came out, and the error behind it


def in_cuts(body: bytes, cuts: list[int]) -> tuple[list[bytes], list[bytes]]:
    """In the pieces that the cuts make, and in single bytes."""
    return cut(body, (c % (len(body) + 1) for c in cuts)), [body[i : i + 1] for i in range(len(body))]


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
