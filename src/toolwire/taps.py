"""From an iterable of chunks to the elements of an array, or to the text of strings: ``JSONParser.items`` and ``tap`` in a loop.

::

    for row in iter_items(response.iter_bytes(), ("result", "rows")): ...
    async for piece in aiter_text(response.aiter_bytes(), ("files", "*", "body")): ...

All four read to the end of the source and are as strict as the parser: what was good is handed out first, then ``TruncatedJSON`` or
``MalformedJSON`` is raised. Elements of arrays that the path leads through are forgotten once they have closed, so that memory stays
flat. However the loop ends, the source is closed; to leave an asynchronous one early, use ``contextlib.aclosing``.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from typing import Any, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack

from ._json import JSONParser, TextPiece
from .errors import StreamError, UsageError

__all__ = ["ParserOptions", "aiter_items", "aiter_text", "iter_items", "iter_text"]

T = TypeVar("T")
Chunk: TypeAlias = bytes | bytearray | memoryview | str
Path: TypeAlias = tuple[str | int, ...]

_END: Final = object()


class ParserOptions(TypedDict, total=False):
    """The options of ``JSONParser``."""

    max_depth: int
    max_bytes: int | None
    surrogates: Literal["error", "replace", "keep"]
    duplicate_keys: Literal["last", "error"]
    allow_nan: bool
    allow_control_characters: bool


def iter_items(chunks: Iterable[Chunk], path: Path = (), *, paths: bool = False, **options: Unpack[ParserOptions]) -> Generator[Any, None, None]:
    """The elements of the array at ``path``, each as soon as it closes, and none of them kept.

    Args:
        chunks: the document in any pieces, bytes or str.
        path: as in ``JSONParser.items``; ``()`` is the root.
        paths: give pairs of an element's path and the element.
        options: those of ``JSONParser``.

    Raises:
        MalformedJSON, TruncatedJSON, LimitExceeded: after the elements that were good.
        UsageError: an argument is none of these.
    """
    parser = JSONParser(**options)
    return _loop(_source(chunks), _Feed(parser, path, parser.items(path, forget=True, paths=paths).read))


def iter_text(chunks: Iterable[Chunk], path: Path, **options: Unpack[ParserOptions]) -> Generator[TextPiece, None, None]:
    """The text of the string at ``path``, or of all strings that it leads to, as it comes: see ``StringTap.pieces``.

    Args and raises as ``iter_items``.
    """
    parser = JSONParser(**options)
    return _loop(_source(chunks), _Feed(parser, path, parser.tap(path).pieces))


def aiter_items(
    chunks: AsyncIterable[Chunk] | Iterable[Chunk], path: Path = (), *, paths: bool = False, **options: Unpack[ParserOptions]
) -> AsyncGenerator[Any, None]:
    """``iter_items`` over an asynchronous iterable; a plain one will do."""
    parser = JSONParser(**options)
    return _async_loop(_async_source(chunks), _Feed(parser, path, parser.items(path, forget=True, paths=paths).read))


def aiter_text(chunks: AsyncIterable[Chunk] | Iterable[Chunk], path: Path, **options: Unpack[ParserOptions]) -> AsyncGenerator[TextPiece, None]:
    """``iter_text`` over an asynchronous iterable; a plain one will do."""
    parser = JSONParser(**options)
    return _async_loop(_async_source(chunks), _Feed(parser, path, parser.tap(path).pieces))


class _Feed(Generic[T]):
    """A parser, and what is read after each chunk."""

    def __init__(self, parser: JSONParser, path: Path, read: Callable[[], list[T]]) -> None:
        self._parser = parser
        self._read = read
        self._error: StreamError | None = None
        # Nobody sees the tree, so what the path has led through need not stay in it.
        self._passed = [parser.items(path[:i], forget=True) for i in range(len(path))]

    def take(self, chunk: Chunk) -> list[T]:
        """What is new. The error of a chunk is kept for ``check``."""
        try:
            self._parser.feed(chunk)
        except StreamError as error:
            self._error = error
        for tap in self._passed:
            tap.read()
        return self._read()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        self._parser.finish()


def _loop(source: Any, feed: _Feed[T]) -> Generator[T, None, None]:
    try:
        for chunk in source:
            yield from feed.take(chunk)
            feed.check()
        feed.finish()
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # what was read does not change by how the transport takes its leave
                close()


async def _async_loop(source: Any, feed: _Feed[T]) -> AsyncGenerator[T, None]:
    is_async = hasattr(source, "__anext__")
    try:
        while True:
            chunk: Any = (await anext(source, _END)) if is_async else next(source, _END)
            if chunk is _END:
                break
            for new in feed.take(chunk):
                yield new
            feed.check()
        feed.finish()
    finally:
        with contextlib.suppress(Exception):
            if hasattr(source, "aclose"):
                await source.aclose()
            elif hasattr(source, "close"):
                source.close()


def _source(chunks: Any) -> Any:
    if isinstance(chunks, (bytes, bytearray, memoryview, str)):
        raise UsageError(f"chunks is a {type(chunks).__name__}: give an iterable of chunks, such as [body]")
    if not isinstance(chunks, Iterable):
        raise UsageError(f"chunks is a {type(chunks).__name__}, which is no iterable of chunks")
    return iter(chunks)


def _async_source(chunks: Any) -> Any:
    if hasattr(chunks, "__anext__"):
        return chunks
    return aiter(chunks) if isinstance(chunks, AsyncIterable) else _source(chunks)
