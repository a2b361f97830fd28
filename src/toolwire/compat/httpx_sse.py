"""The face of httpx-sse 0.4: ``from toolwire.compat.httpx_sse import EventSource, connect_sse, aconnect_sse``.

For responses and clients of httpx and of httpx2, neither of which is imported here. Events are ``Frame`` objects, which have everything that
httpx-sse's events have. What differs is listed in docs/sse-clients.md.
"""

from __future__ import annotations

import json
import sys
from abc import ABCMeta
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from .._framing import Frame, SSEFramer
from ..errors import StreamError

__all__ = ["EventSource", "SSEError", "ServerSentEvent", "aconnect_sse", "connect_sse"]

_EVENT_STREAM = "text/event-stream"


def _transport_error(library: str) -> type[Exception] | None:
    """The ``TransportError`` of a library that has been imported."""
    found = getattr(sys.modules.get(library), "TransportError", None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


class _NoEventStream(Exception):
    """The response is no event stream. ``except`` clauses for the client library's ``TransportError`` catch it, too."""


def _also(base: type[Exception], transport: type[Exception] | None) -> type[Exception]:
    if transport is None or issubclass(base, transport):
        return base
    return type("SSEError", (base, transport), {"__module__": __name__, "__doc__": base.__doc__})


#: A ``TransportError`` of httpx, too, if that was imported before; and of the library that the response is of, in any case.
SSEError: type[Exception] = _also(_NoEventStream, _transport_error("httpx"))


class ServerSentEvent(metaclass=ABCMeta):  # noqa: B024 (what it is for is `register`)
    """An event, for those who make one. What ``iter_sse`` gives is a ``Frame``, which counts as one: ``isinstance`` says so."""

    __slots__ = ("data", "event", "id", "retry")

    def __init__(self, event: str | None = None, data: str | None = None, id: str | None = None, retry: int | None = None) -> None:
        self.event = event or "message"
        self.data = data or ""
        self.id = id or ""
        self.retry = retry

    def json(self) -> Any:
        """``json.loads`` of the data."""
        return json.loads(self.data)

    def __repr__(self) -> str:
        shown = [f"event={self.event!r}"]
        shown += [f"{name}={value!r}" for name in ("data", "id") if (value := getattr(self, name))]
        if self.retry is not None:
            shown.append(f"retry={self.retry!r}")
        return f"ServerSentEvent({', '.join(shown)})"


ServerSentEvent.register(Frame)


class EventSource:
    """The events of a response.

    Args:
        response: of httpx or httpx2, whose body has not been read.
        max_frame_bytes: the largest event, see ``SSEFramer``.
    """

    def __init__(self, response: Any, *, max_frame_bytes: int = 16 << 20) -> None:
        self._response = response
        self._framer = SSEFramer(max_frame_bytes=max_frame_bytes)

    @property
    def response(self) -> Any:
        """The response."""
        return self._response

    def iter_sse(self) -> Iterator[Frame]:
        """Iterate over the events, each when its blank line has come. What follows the last blank line is no event.

        Raises:
            SSEError: the response's content type is another.
            LimitExceeded: an event is larger than ``max_frame_bytes``.
        """
        self._check_content_type()
        feed = self._framer.feed
        for chunk in self._response.iter_raw() if self._is_plain() else self._response.iter_bytes():
            yield from feed(chunk)
        self._check_end()

    async def aiter_sse(self) -> AsyncIterator[Frame]:
        """The same over an asynchronous response."""
        self._check_content_type()
        feed = self._framer.feed
        chunks = self._response.aiter_raw() if self._is_plain() else self._response.aiter_bytes()
        try:
            async for chunk in chunks:
                for frame in feed(chunk):
                    yield frame
        finally:
            await chunks.aclose()
        self._check_end()

    def _check_content_type(self) -> None:
        found = self._response.headers.get("content-type", "").partition(";")[0]
        if _EVENT_STREAM not in found:
            raise _error(self._response, f"the response's Content-Type should be {_EVENT_STREAM}, not {found!r}")

    def _is_plain(self) -> bool:
        """Are the bytes on the wire those of the body? Asking for them as they are is cheaper; once read, they are only to be had decoded."""
        return not self._response.is_stream_consumed and self._response.headers.get("content-encoding", "identity") == "identity"

    def _check_end(self) -> None:
        """An event that was too large for the framer in the last chunk is told now."""
        if isinstance(self._framer.error, StreamError):
            raise self._framer.error


@contextmanager
def connect_sse(client: Any, method: str, url: Any, **kwargs: Any) -> Iterator[EventSource]:
    """Ask for an event stream with ``client.stream(method, url, **kwargs)``; the response is closed at the end of the ``with`` block."""
    with client.stream(method, url, headers=_headers(kwargs), **kwargs) as response:
        yield EventSource(response)


@asynccontextmanager
async def aconnect_sse(client: Any, method: str, url: Any, **kwargs: Any) -> AsyncIterator[EventSource]:
    """The same with an asynchronous client."""
    async with client.stream(method, url, headers=_headers(kwargs), **kwargs) as response:
        yield EventSource(response)


def _headers(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The caller's headers, taken out of ``kwargs``, and those that ask for a stream. The caller's mapping is left as it is."""
    given = {name: value for name, value in dict(kwargs.pop("headers", None) or {}).items() if str(name).lower() not in ("accept", "cache-control")}
    return {**given, "Accept": _EVENT_STREAM, "Cache-Control": "no-store"}


def _error(response: Any, message: str) -> Exception:
    return _also(SSEError, _transport_error(type(response).__module__.partition(".")[0]))(message)
