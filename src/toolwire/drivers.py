"""From an iterable of bytes to an iterator of events. The only place of the library with a clock; besides ``taps``, with an ``await``.

::

    for event in iter_events(response.iter_bytes(), "anthropic"): ...
    async for event in aiter_events(response.aiter_bytes(), "openai-responses", idle_timeout=20): ...

The last event is always ``TurnEnd``, whatever happened to the body:

====================================  ==================================================================================
clean end of the body                 the result as ``Turn.finish`` gives it; a cut has its ``TurnTruncated`` in ``.error``
wrong bytes                           the ``StreamError`` in ``result.error``
an exception out of the iterable      that exception in ``result.error``; not raised again
a time-out                            ``result.cause == "idle_timeout"``, a ``TimeoutError`` in ``result.error``
cancellation, ``KeyboardInterrupt``   ``result.cause == "aborted"``, kept as ``stream.result``, and the exception goes on
====================================  ==================================================================================

What ends a turn from outside after the provider's own end changes nothing: the result is then the good one. Only a wrong use
(chunks that are no bytes, two tasks on one stream) is raised as ``UsageError``.

Both clocks count the time spent waiting for the body, never the time that the caller takes between two events: a slow consumer
is no silent server. The next chunk is read when the caller asks for more than the last one gave, so back pressure reaches the
transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

from .adapters import Profile
from .errors import StreamError, UsageError
from .events import Event, TurnResult
from .limits import Limits
from .turn import Framing, Turn

__all__ = ["AsyncEventStream", "Clock", "EventStream", "aiter_events", "iter_events"]

T = TypeVar("T")
Chunk: TypeAlias = bytes | bytearray | memoryview

_END: Final = object()

#: Names of exception classes that say "nothing came for too long": httpx (TimeoutException), requests (Timeout), urllib3 (its own
#: TimeoutError, which is none of the built-in kind). Looked up by name, because none of them may be imported here.
_TIMEOUT_NAMES: Final = frozenset({"TimeoutError", "TimeoutException", "Timeout"})


class Clock(Protocol):
    """Time, as the drivers need it. The default is that of the running event loop; tests bring their own."""

    def time(self) -> float:
        """Seconds since any fixed moment."""
        ...

    async def wait(self, fetch: Callable[[], Awaitable[T]], seconds: float) -> T:
        """Await ``fetch()`` for at most ``seconds``.

        Returns:
            what it gave.
        Raises:
            TimeoutError: it gave nothing in time; it has been cancelled, or was never called.
        """
        ...


class _AsyncioClock:
    def time(self) -> float:
        return asyncio.get_running_loop().time()

    async def wait(self, fetch: Callable[[], Awaitable[T]], seconds: float) -> T:
        async with asyncio.timeout(seconds) as scope:
            got = await fetch()
        # A source that turns the cancellation into something else has still run out of time.
        if scope.expired():
            raise TimeoutError
        return got


class _TrioClock:
    def __init__(self, trio: Any) -> None:
        self._trio = trio

    def time(self) -> float:
        return float(self._trio.current_time())

    async def wait(self, fetch: Callable[[], Awaitable[T]], seconds: float) -> T:
        with self._trio.move_on_after(seconds):
            return await fetch()
        raise TimeoutError


def _running_clock() -> Clock:
    """The clock of the event loop that runs this."""
    trio = sys.modules.get("trio")  # whoever runs trio has imported it
    if trio is not None:
        with contextlib.suppress(RuntimeError):
            trio.lowlevel.current_task()
            return _TrioClock(trio)
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError("idle_timeout and progress_timeout need asyncio or trio; under another event loop give clock=") from error
    return _AsyncioClock()


class _Failed:
    """An exception out of the iterable, carried past the clock, whose own ``TimeoutError`` it may not be mistaken for."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Stream:
    """What both streams share: the turn, the events not yet handed out, and how long the body has kept us waiting."""

    def __init__(self, turn: Turn, framing: str | None, idle_timeout: float | None, progress_timeout: float | None) -> None:
        self._turn = turn
        self._result: TurnResult | None = None
        self._events: deque[Event] = deque()
        self._whole_messages = framing == "message"
        self._idle_timeout = _seconds("idle_timeout", idle_timeout)
        self._progress_timeout = _seconds("progress_timeout", progress_timeout)
        self._silent = 0.0  # seconds of waiting since the last byte
        self._stalled = 0.0  # seconds of waiting since the last text or argument text
        self._busy = False
        self._closed = False

    @property
    def turn(self) -> Turn:
        """The turn that is being fed: its ``calls`` are the drafts so far. Leave feeding to the stream."""
        return self._turn

    @property
    def result(self) -> TurnResult | None:
        """The result, from the moment the turn is over, after a cancellation too; None before."""
        return self._result

    # -- what can happen to a body ------------------------------------------------------------------------------------

    def _arrived(self, chunk: Any, waited: float) -> None:
        if not isinstance(chunk, (bytes, bytearray, memoryview)) and not (self._whole_messages and isinstance(chunk, str)):
            raise UsageError(f"the iterable gave a {type(chunk).__name__}; the drivers take the body's bytes (httpx: iter_bytes, not iter_text or iter_lines)")
        before = self._turn.progress
        self._stalled += waited
        if len(chunk):
            self._silent = 0.0
            try:
                self._events += self._turn.feed(chunk)  # type: ignore[arg-type]  # str where each chunk is a message
                # An error is raised by the call after the one that met it. Asked for now: the next chunk may never come.
                if not self._whole_messages:
                    self._turn.feed(b"")
            except StreamError as error:
                self._stop(error, None)
                return
        else:
            self._silent += waited
        if self._turn.progress != before:
            self._stalled = 0.0
        if self._overdue():
            self._timed_out()

    def _ended(self) -> None:
        try:
            self._keep(self._turn.finish())
        except StreamError as error:
            self._stop(error, None)

    def _failed(self, error: Exception) -> None:
        self._stop(error, "idle_timeout" if _is_timeout(error) else None)

    def _stop(self, error: BaseException | None, word: str | None) -> None:
        """End the turn from outside. Does nothing to a turn that is over."""
        if self._result is not None:
            return
        result = self._turn.abort(word or error or "aborted")
        if word is not None and result.error is None and not result.ended:
            result.error = error
        self._keep(result)

    def _keep(self, result: TurnResult) -> None:
        self._result = result
        self._events += self._turn.take_events()

    # -- clocks -------------------------------------------------------------------------------------------------------

    def _left(self) -> list[tuple[float, str]]:
        """For each clock that is set: seconds left, and what is said when they are over."""
        left = []
        if self._idle_timeout is not None:
            left.append((self._idle_timeout - self._silent, f"no byte for {self._idle_timeout:g} s (idle_timeout)"))
        if self._progress_timeout is not None:
            text = f"no text and no argument text for {self._progress_timeout:g} s (progress_timeout)"
            left.append((self._progress_timeout - self._stalled, text))
        return left

    def _overdue(self) -> bool:
        return self._result is None and any(seconds <= 0 for seconds, _ in self._left())

    def _timed_out(self) -> None:
        self._stop(TimeoutError(min(self._left())[1]), "idle_timeout")

    # -- one at a time ------------------------------------------------------------------------------------------------

    def _enter(self) -> None:
        if self._busy:
            raise UsageError("the stream is already waiting for its next event: one consumer a stream")
        self._busy = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._turn.provider} {'open' if self._result is None else self._result.outcome}>"


class EventStream(_Stream, Iterator[Event]):
    """The events of one turn; see ``iter_events``.

    As a context manager (or with ``close()``) it also ends early: the turn is aborted, its result kept, the source closed.
    """

    def __init__(self, source: Iterator[Chunk], turn: Turn, *, framing: str | None, progress_timeout: float | None, clock: Clock | None) -> None:
        super().__init__(turn, framing, None, progress_timeout)
        self._source = source
        self._time = time.monotonic if clock is None else clock.time

    def __next__(self) -> Event:
        """The next event.

        Raises:
            StopIteration: after ``TurnEnd``, and after ``close()``.
            UsageError: the iterable gave no bytes, or is being asked already. The turn is aborted in the first case.
        """
        if self._events:
            return self._events.popleft()
        self._enter()
        try:
            while not self._events and self._result is None:
                self._read()
        except BaseException as error:
            self._stop(error, "aborted")
            self._close_source()
            raise
        finally:
            self._busy = False
        if not self._events:
            raise StopIteration
        return self._events.popleft()

    def _read(self) -> None:
        began = self._time()
        try:
            chunk = next(self._source, _END)
        except Exception as error:
            self._failed(error)
        else:
            if self._result is not None:
                pass  # closed from within the source
            elif chunk is _END:
                self._ended()
            else:
                self._arrived(chunk, self._time() - began)
        if self._result is not None:
            self._close_source()

    def _close_source(self) -> None:
        close = getattr(self._source, "close", None)
        if close is not None and not self._closed:
            self._closed = True
            # The turn is decided; how the transport takes its leave does not change it.
            with contextlib.suppress(Exception):
                close()

    def close(self) -> None:
        """End the turn here, if it has not ended ("aborted"), and close the source. ``result`` stays; no event comes after."""
        self._stop(None, "aborted")
        self._events.clear()
        self._close_source()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class AsyncEventStream(_Stream, AsyncIterator[Event]):
    """The events of one turn; see ``aiter_events``.

    As an asynchronous context manager (or with ``aclose()``) it also ends early: the turn is aborted, its result kept, the source
    closed.
    """

    def __init__(
        self,
        source: AsyncIterator[Chunk] | Iterator[Chunk],
        turn: Turn,
        *,
        framing: str | None,
        idle_timeout: float | None,
        progress_timeout: float | None,
        clock: Clock | None,
    ) -> None:
        super().__init__(turn, framing, idle_timeout, progress_timeout)
        self._source = source
        self._clock = clock

    async def __anext__(self) -> Event:
        """The next event.

        Raises:
            StopAsyncIteration: after ``TurnEnd``, and after ``aclose()``.
            UsageError: the iterable gave no bytes, or is being asked already. The turn is aborted in the first case.
        """
        if self._events:
            return self._events.popleft()
        self._enter()
        try:
            while not self._events and self._result is None:
                await self._read()
        except BaseException as error:
            self._stop(error, "aborted")
            # A coroutine that is being thrown away may not await; what it awaited has been thrown away with it.
            if not isinstance(error, GeneratorExit):
                await self._close_source()
            raise
        finally:
            self._busy = False
        if not self._events:
            raise StopAsyncIteration
        return self._events.popleft()

    async def _read(self) -> None:
        left = self._left()
        waited = 0.0
        got: Any
        if not left:
            got = await self._fetch()
        else:
            if self._clock is None:
                self._clock = _running_clock()
            began = self._clock.time()
            try:
                got = await self._clock.wait(self._fetch, min(left)[0])
            except TimeoutError:
                self._timed_out()
            waited = self._clock.time() - began
        if self._result is not None:
            pass  # too late, or closed by somebody else meanwhile
        elif got is _END:
            self._ended()
        elif isinstance(got, _Failed):
            self._failed(got.error)
        else:
            self._arrived(got, waited)
        if self._result is not None:
            await self._close_source()

    async def _fetch(self) -> Any:
        """The next chunk, ``_END`` or a ``_Failed``."""
        source: Any = self._source
        try:
            if hasattr(source, "__anext__"):
                return await source.__anext__()
            return next(source, _END)
        except StopAsyncIteration:
            return _END
        except Exception as error:
            return _Failed(error)

    async def _close_source(self) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(Exception):  # as in EventStream._close_source
            if hasattr(self._source, "aclose"):
                left = [limit for limit in (self._idle_timeout, self._progress_timeout) if limit is not None]
                if left and self._clock is not None:
                    await self._clock.wait(self._source.aclose, min(left))
                else:
                    await self._source.aclose()
            elif hasattr(self._source, "close"):
                self._source.close()

    async def aclose(self) -> None:
        """End the turn here, if it has not ended ("aborted"), and close the source. ``result`` stays; no event comes after."""
        self._stop(None, "aborted")
        self._events.clear()
        await self._close_source()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.aclose()


def iter_events(
    chunks: Iterable[Chunk],
    provider: str,
    *,
    framing: Framing | None = None,
    limits: Limits | None = None,
    profile: Profile = "default",
    progress_timeout: float | None = None,
    clock: Clock | None = None,
) -> EventStream:
    """The events of one turn whose body comes out of an iterable.

    Args:
        chunks: the body's bytes in any pieces: ``response.iter_bytes()`` or ``iter_raw()`` of httpx, ``iter_content()`` of requests,
            ``stream(decode_content=True)`` of urllib3, a list. With ``framing="message"`` each item is one whole message.
        provider: as in ``Turn``, and so are ``framing``, ``limits`` and ``profile``.
        progress_timeout: seconds of waiting without text or argument text, after which the turn is aborted. Looked at when a chunk
            has come: nothing can interrupt a blocking iterable. For a silent connection set the HTTP client's read timeout; its
            exception ends the turn with the same reason.
        clock: for tests; only its ``time()`` is used.

    Returns:
        an iterator whose last event is ``TurnEnd``. It has ``.turn``, ``.result``, ``.close()``, and is a context manager.

    Raises:
        UsageError: an argument is none of these.
    """
    _reject_whole_body(chunks)
    if not isinstance(chunks, Iterable):
        hint = "; use aiter_events" if hasattr(chunks, "__aiter__") else ""
        raise UsageError(f"chunks is a {type(chunks).__name__}, which is no iterable of bytes{hint}")
    turn = Turn(provider, framing=framing, limits=limits, profile=profile, on_cut="return")
    return EventStream(iter(chunks), turn, framing=framing, progress_timeout=progress_timeout, clock=clock)


def aiter_events(
    chunks: AsyncIterable[Chunk] | Iterable[Chunk],
    provider: str,
    *,
    framing: Framing | None = None,
    limits: Limits | None = None,
    profile: Profile = "default",
    idle_timeout: float | None = None,
    progress_timeout: float | None = None,
    clock: Clock | None = None,
) -> AsyncEventStream:
    """The events of one turn whose body comes out of an asynchronous iterable. Under asyncio and trio alike; without time-outs
    under any event loop.

    Args:
        chunks: the body's bytes in any pieces: ``response.aiter_bytes()`` or ``aiter_raw()`` of httpx, ``response.content.iter_any()``
            of aiohttp. A plain iterable will do; then nothing can interrupt the wait for a chunk. With ``framing="message"`` each
            item is one whole message.
        provider: as in ``Turn``, and so are ``framing``, ``limits`` and ``profile``.
        idle_timeout: seconds of waiting without a byte, after which the turn is aborted.
        progress_timeout: seconds of waiting without text or argument text, after which the turn is aborted; pings and keep-alive
            comments do not count.
        clock: for tests, or for other event loops; see ``Clock``.

    Returns:
        an asynchronous iterator whose last event is ``TurnEnd``. It has ``.turn``, ``.result``, ``.aclose()``, and is an
        asynchronous context manager.

    Raises:
        UsageError: an argument is none of these.
    """
    _reject_whole_body(chunks)
    source: Any
    if hasattr(chunks, "__anext__"):
        source = chunks
    elif isinstance(chunks, AsyncIterable):
        source = aiter(chunks)
    elif isinstance(chunks, Iterable):
        source = iter(chunks)
    else:
        raise UsageError(f"chunks is a {type(chunks).__name__}, which is no iterable of bytes, asynchronous or not")
    turn = Turn(provider, framing=framing, limits=limits, profile=profile, on_cut="return")
    return AsyncEventStream(source, turn, framing=framing, idle_timeout=idle_timeout, progress_timeout=progress_timeout, clock=clock)


def _reject_whole_body(chunks: object) -> None:
    if isinstance(chunks, (bytes, bytearray, memoryview, str)):
        raise UsageError(f"chunks is a {type(chunks).__name__}: give an iterable of chunks, such as [body]")


def _seconds(name: str, value: float | None) -> float | None:
    if value is not None and (not isinstance(value, (int, float)) or not value > 0):
        raise UsageError(f"{name} is a number of seconds above 0, or None; not {value!r}")
    return value


def _is_timeout(error: BaseException | None) -> bool:
    """Does the transport say that nothing came for too long? requests wraps urllib3's time-out in a ConnectionError."""
    for _ in range(3):
        if error is None:
            return False
        if any(kind.__name__ in _TIMEOUT_NAMES for kind in type(error).__mro__):
            return True
        error = error.__cause__ or error.__context__
    return False
