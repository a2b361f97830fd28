"""The face of ijson 3.6: ``import toolwire.compat.ijson as ijson``.

``basic_parse``, ``parse``, ``items`` and ``kvitems`` with their ``_gen``, ``_async``, ``_coro`` and ``_basecoro`` forms, as each backend of ijson
has them. ijson itself need not be installed. What differs is listed in docs/ijson.md.
"""

from __future__ import annotations

import functools
import inspect
import io
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from .._tokens import AsyncPull, Machine, Pull, Push
from ..errors import StreamError, TruncatedJSON

__all__ = [
    "ALL_BACKENDS",
    "IncompleteJSONError",
    "JSONError",
    "ObjectBuilder",
    "backend",
    "backend_name",
    "basic_parse",
    "basic_parse_async",
    "basic_parse_basecoro",
    "basic_parse_coro",
    "basic_parse_gen",
    "capabilities",
    "coroutine",
    "from_iter",
    "get_backend",
    "items",
    "items_async",
    "items_basecoro",
    "items_coro",
    "items_gen",
    "kvitems",
    "kvitems_async",
    "kvitems_basecoro",
    "kvitems_coro",
    "kvitems_gen",
    "parse",
    "parse_async",
    "parse_basecoro",
    "parse_coro",
    "parse_gen",
    "sendable_list",
]

#: Bytes asked of a file at a time.
BUF_SIZE = 64 * 1024

MapType = Callable[[], Any]


# -- errors -----------------------------------------------------------------------------------------------------------------------------


class JSONError(StreamError):
    """The input is no JSON. ``except`` clauses for ijson's own ``JSONError`` catch it, too, once ijson is imported."""

    def __init__(self, message: str = "", *, code: str = "json", offset: int | None = None) -> None:
        super().__init__(message, code=code, offset=offset)

    def __reduce__(self) -> tuple[Any, ...]:
        return _error, (isinstance(self, IncompleteJSONError), self.message, self.code, self.offset)


class IncompleteJSONError(JSONError):
    """The input ended inside a value."""


def _error(incomplete: bool, message: str, code: str, offset: int | None) -> JSONError:
    cls = IncompleteJSONError if incomplete else JSONError
    if peer := sys.modules.get("ijson.common"):
        cls = _of_both(cls, getattr(peer, cls.__name__))
    return cls(message, code=code, offset=offset)


@functools.cache
def _of_both(own: type[JSONError], peer: type[Exception]) -> type[JSONError]:
    return type(own.__name__, (own, peer), {"__module__": own.__module__, "__doc__": own.__doc__})


def _as_ijson(error: StreamError) -> JSONError:
    made = _error(isinstance(error, TruncatedJSON), error.message, error.code, error.offset)
    made.__cause__ = error
    return made


# -- what a backend says of itself --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BackendCapabilities:
    """What this backend can do, in ijson's words."""

    c_comments: bool = False
    multiple_values: bool = True
    invalid_leading_zeros_detection: bool = True
    incomplete_json_tokens_detection: bool = True
    int64: bool = True


capabilities = BackendCapabilities()
backend = backend_name = "toolwire"
ALL_BACKENDS = (backend_name,)


def get_backend(name: str) -> Any:
    """This module, by the name of its backend. Raises ImportError for any other."""
    if name != backend_name:
        raise ImportError(f"no backend {name!r} here: the one there is is {backend_name!r}")
    return sys.modules[__name__]


# -- sinks, and sources of events -----------------------------------------------------------------------------------------------------------


class Target(Protocol):
    """What results are sent to."""

    def send(self, value: Any, /) -> Any: ...


class sendable_list(list[Any]):
    """A list that can be sent to."""

    send = list.append


def coroutine(function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Generator[Any, Any, Any]]:
    """Make a generator function one whose generators can be sent to at once."""

    @functools.wraps(function)
    def started(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        next(generator)
        return generator

    return started


class ObjectBuilder:
    """Builds a value from events, one ``event(event, value)`` at a time; ``value`` is what there is of it."""

    def __init__(self, map_type: MapType | None = None) -> None:
        self.value: Any = None
        self.map_type: MapType = map_type or dict
        self._open: list[Any] = []
        self._keys: list[Any] = []

    def event(self, event: str, value: Any) -> None:
        """Take the next event of the value."""
        if event == "map_key":
            self._keys[-1] = value
            return
        if event in ("end_map", "end_array"):
            self._open.pop()
            self._keys.pop()
            return
        container = event in ("start_map", "start_array")
        if container:
            value = self.map_type() if event == "start_map" else []
        if not self._open:
            self.value = value
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        else:
            self._open[-1][self._keys[-1]] = value
        if container:
            self._open.append(value)
            self._keys.append(None)


_STEP = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}


@coroutine
def parse_basecoro(target: Target) -> Generator[None, Any, None]:
    """Takes ``(event, value)`` and sends ``(prefix, event, value)``."""
    above: list[str] = []
    here = ""
    while True:
        event, value = yield
        step = _STEP.get(event, 0)
        if event == "map_key":
            here = f"{above[-1]}.{value}" if len(above) > 1 else value
        elif step < 0:
            here = above.pop()
        target.send((above[-1] if event == "map_key" else here, event, value))
        if step > 0:
            above.append(here)
            if event == "start_array":
                here = f"{here}.item" if len(above) > 1 else "item"


@coroutine
def items_basecoro(target: Target, prefix: str, map_type: MapType | None = None) -> Generator[None, Any, None]:
    """Takes ``(prefix, event, value)`` and sends the values that stand at the prefix."""
    builder: ObjectBuilder | None = None
    depth = 0
    while True:
        here, event, value = yield
        if builder is None:
            if here != prefix:
                continue
            builder = ObjectBuilder(map_type)
        builder.event(event, value)
        depth += _STEP.get(event, 0)
        if depth == 0:
            target.send(builder.value)
            builder = None


@coroutine
def kvitems_basecoro(target: Target, prefix: str, map_type: MapType | None = None) -> Generator[None, Any, None]:
    """Takes ``(prefix, event, value)`` and sends the members of the objects that stand at the prefix, as ``(key, value)``."""
    builder: ObjectBuilder | None = None
    key = None
    depth = 0
    while True:
        here, event, value = yield
        if builder is None:
            if here == prefix and event == "map_key":
                builder, key = ObjectBuilder(map_type), value
            continue
        builder.event(event, value)
        depth += _STEP.get(event, 0)
        if depth == 0:
            target.send((key, builder.value))
            builder = None


def _through(events: Iterable[Any], make: Callable[..., Generator[Any, Any, Any]], *args: Any) -> Iterator[Any]:
    results = sendable_list()
    step = make(results, *args)
    for event in events:
        step.send(event)
        yield from results
        results.clear()


# -- sources of bytes -----------------------------------------------------------------------------------------------------------------------


class _Chunks:
    """A file whose reads are the chunks of an iterable."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self._chunks = chunks
        self._warned = False

    def _bytes(self, chunk: Any) -> bytes:
        if isinstance(chunk, bytes):
            return chunk
        if not isinstance(chunk, str):
            raise TypeError(f"from_iter() takes an iterable of bytes or str, not of {type(chunk).__name__}")
        if not self._warned:
            self._warned = True
            warnings.warn("an iterable of str was given where bytes are read", DeprecationWarning, stacklevel=4)
        return chunk.encode()

    def read(self, n: int) -> bytes:
        return self._bytes(next(self._chunks, b"")) if n else b""


class _AsyncChunks(_Chunks):
    def __init__(self, chunks: AsyncIterator[Any]) -> None:
        super().__init__(iter(()))
        self._async_chunks = chunks

    async def read(self, n: int) -> bytes:  # type: ignore[override]
        return self._bytes(await anext(self._async_chunks, b"")) if n else b""


def from_iter(chunks: Any) -> Any:
    """A file whose reads are the chunks of an iterable or asynchronous iterable, whatever size is asked for."""
    return _AsyncChunks(aiter(chunks)) if hasattr(chunks, "__aiter__") else _Chunks(iter(chunks))


def _is_async(function: Any) -> bool:
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    return inspect.iscoroutinefunction(function) or bool(inspect.isgeneratorfunction(function) and flags & inspect.CO_ITERABLE_COROUTINE)


def _machine(
    mode: Any,
    prefix: str = "",
    map_type: MapType | None = None,
    *,
    use_float: bool = False,
    multiple_values: bool = False,
    allow_comments: bool = False,
    max_depth: int = 512,
) -> Machine:
    if allow_comments:
        raise ValueError("comments are no JSON: this backend does not take them")
    return Machine(
        mode,
        prefix=prefix,
        map_type=None if map_type is dict else map_type,
        use_float=use_float,
        multiple_values=multiple_values,
        max_depth=max_depth,
        wrap=_as_ijson,
    )


def _open(source: Any, buf_size: int, machine: Machine) -> Any:
    if isinstance(source, bytes):
        source = io.BytesIO(source)
    elif isinstance(source, str):
        source = io.StringIO(source)
    elif not hasattr(source, "read"):
        raise ValueError(f"can not read {type(source).__name__}: bytes, str or a file is needed; from_iter() makes a file of an iterable of chunks")
    return (AsyncPull if _is_async(source.read) else Pull)(machine, source.read, buf_size)


def _is_events(source: Any) -> bool:
    return not isinstance(source, bytes | str) and not hasattr(source, "read") and hasattr(source, "__iter__")


# -- the functions --------------------------------------------------------------------------------------------------------------------------
#
# Options, of all: `use_float` (float, not Decimal, for numbers with a fraction or exponent), `multiple_values`, `max_depth` (nested arrays and
# objects, 512) and, of those that read, `buf_size`. `allow_comments=True` is refused with ValueError, an unknown option with TypeError.


def basic_parse(source: Any, buf_size: int = BUF_SIZE, **options: Any) -> Any:
    """Iterate ``(event, value)`` over bytes, a str, a file or an asynchronous file; over the latter with ``async for``."""
    return _open(source, buf_size, _machine("events", **options))


def basic_parse_gen(file: Any, buf_size: int = BUF_SIZE, **options: Any) -> Pull:
    """Iterate ``(event, value)`` over a file."""
    return Pull(_machine("events", **options), file.read, buf_size)


def basic_parse_async(file: Any, buf_size: int = BUF_SIZE, **options: Any) -> AsyncPull:
    """Iterate ``(event, value)`` over an asynchronous file."""
    return AsyncPull(_machine("events", **options), file.read, buf_size)


def basic_parse_coro(target: Target, **options: Any) -> Push:
    """What chunks are sent to, and which sends ``(event, value)`` to the target."""
    return Push(_machine("events", **options), target.send)


basic_parse_basecoro = basic_parse_coro


def parse(source: Any, buf_size: int = BUF_SIZE, **options: Any) -> Any:
    """Iterate ``(prefix, event, value)`` over what ``basic_parse`` takes, or over its events."""
    if _is_events(source):
        return _through(source, parse_basecoro)
    return _open(source, buf_size, _machine("prefixed", **options))


def parse_gen(file: Any, buf_size: int = BUF_SIZE, **options: Any) -> Pull:
    """Iterate ``(prefix, event, value)`` over a file."""
    return Pull(_machine("prefixed", **options), file.read, buf_size)


def parse_async(file: Any, buf_size: int = BUF_SIZE, **options: Any) -> AsyncPull:
    """Iterate ``(prefix, event, value)`` over an asynchronous file."""
    return AsyncPull(_machine("prefixed", **options), file.read, buf_size)


def parse_coro(target: Target, **options: Any) -> Push:
    """What chunks are sent to, and which sends ``(prefix, event, value)`` to the target."""
    return Push(_machine("prefixed", **options), target.send)


def items(source: Any, prefix: str, map_type: MapType | None = None, buf_size: int = BUF_SIZE, **options: Any) -> Any:
    """Iterate the values that stand at a prefix, over what ``basic_parse`` takes, or over the events of ``parse``."""
    if _is_events(source):
        return _through(source, items_basecoro, prefix, map_type)
    return _open(source, buf_size, _machine("items", prefix, map_type, **options))


def items_gen(file: Any, prefix: str, map_type: MapType | None = None, buf_size: int = BUF_SIZE, **options: Any) -> Pull:
    """Iterate the values that stand at a prefix, over a file."""
    return Pull(_machine("items", prefix, map_type, **options), file.read, buf_size)


def items_async(file: Any, prefix: str, map_type: MapType | None = None, buf_size: int = BUF_SIZE, **options: Any) -> AsyncPull:
    """Iterate the values that stand at a prefix, over an asynchronous file."""
    return AsyncPull(_machine("items", prefix, map_type, **options), file.read, buf_size)


def items_coro(target: Target, prefix: str, map_type: MapType | None = None, **options: Any) -> Push:
    """What chunks are sent to, and which sends the values that stand at a prefix to the target."""
    return Push(_machine("items", prefix, map_type, **options), target.send)


def kvitems(source: Any, prefix: str, map_type: MapType | None = None, buf_size: int = BUF_SIZE, **options: Any) -> Any:
    """Iterate ``(key, value)`` of the objects that stand at a prefix, over what ``basic_parse`` takes, or over the events of ``parse``."""
    if _is_events(source):
        return _through(source, kvitems_basecoro, prefix, map_type)
    return _open(source, buf_size, _machine("members", prefix, map_type, **options))


def kvitems_gen(file: Any, prefix: str, map_type: MapType | None = None, buf_size: int = BUF_SIZE, **options: Any) -> Pull:
    """Iterate ``(key, value)`` of the objects that stand at a prefix, over a file."""
    return Pull(_machine("members", prefix, map_type, **options), file.read, buf_size)


def kvitems_async(file: Any, prefix: str, map_type: MapType | None = None, buf_size: int = BUF_SIZE, **options: Any) -> AsyncPull:
    """Iterate ``(key, value)`` of the objects that stand at a prefix, over an asynchronous file."""
    return AsyncPull(_machine("members", prefix, map_type, **options), file.read, buf_size)


def kvitems_coro(target: Target, prefix: str, map_type: MapType | None = None, **options: Any) -> Push:
    """What chunks are sent to, and which sends ``(key, value)`` of the objects that stand at a prefix to the target."""
    return Push(_machine("members", prefix, map_type, **options), target.send)


#: So that ``except ijson.common.JSONError`` goes on working.
common = sys.modules[__name__]
