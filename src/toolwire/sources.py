"""From the response object of an HTTP client or SDK to an iterator of events.

::

    for event in iter_response(response): ...
    async for event in aiter_response(response, idle_timeout=20): ...

``toolwire.drivers`` with the client's own way of giving bytes as they arrive, of saying where they come from, and of being closed. No
client is imported: a response is known by what it can do.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from ._json import loads
from .adapters import Profile
from .drivers import AsyncEventStream, Clock, EventStream, aiter_events, iter_events
from .errors import ProviderError, StreamError, UsageError
from .limits import Limits
from .turn import Framing

__all__ = ["aiter_response", "iter_response"]

_READ: Final = 1 << 16

#: Where each protocol lives: host and path in lower case, the first that fits. Gateways and clouds keep the ends of the paths.
_ENDPOINTS: Final = tuple(
    (re.compile(pattern), provider)
    for pattern, provider in (
        (r"mistral\.ai/.*/(completions|conversations(/.*)?)$", "mistral"),
        (r"/publishers/mistralai/models/[^/]*:streamrawpredict$", "mistral"),
        (r"/v1/messages$", "anthropic"),
        (r"/publishers/anthropic/models/[^/]*:streamrawpredict$", "anthropic"),
        (r"/model/.*anthropic.*/invoke-with-response-stream$", "anthropic"),
        (r"/model/.*/converse-stream$", "bedrock"),
        (r":(stream)?generatecontent$", "google-generate"),
        (r"/interactions(/[^/]*)?$", "google-interactions"),
        (r"/chat/completions$", "openai-chat"),
        (r"/responses(/[^/]*)?$", "openai-responses"),
        (r"/v2/chat$", "cohere"),
    )
)


def iter_response(
    response: Any,
    provider: str | None = None,
    *,
    framing: Framing | None = None,
    limits: Limits | None = None,
    profile: Profile = "default",
    progress_timeout: float | None = None,
    clock: Clock | None = None,
) -> EventStream:
    """The events of the turn that is the body of a response; the response is closed when the turn is over.

    Args:
        response: of httpx, httpx2, requests, niquests, urllib3 or urllib; a ``StreamingBody`` or ``EventStream`` of botocore; or what an
            SDK wraps around one of these (``with_streaming_response``, a ``Stream``), not yet iterated over. requests and niquests need
            ``stream=True``, urllib3 ``preload_content=False``.
        provider: as in ``Turn``. Taken from the URL, else from the headers, else from the first frames ("auto").
        framing: as in ``iter_events``, and so are ``limits``, ``profile``, ``progress_timeout`` and ``clock``.

    Returns:
        what ``iter_events`` returns. With a status of 400 or more the result is always ``ERROR``: the provider's error, if the body has
        one, else the status and the body's beginning as a ``ProviderError``.

    Raises:
        UsageError: no such response, or that of an asynchronous client, or another argument is wrong. The response stays open.
    """
    response = _unwrapped(response)
    provider = provider or _provider(response)
    chunks = _chunks(response)
    status = _status(response)
    if status >= 400:
        framing = None  # an error body has its own
        chunks = _refused(chunks, provider, status, limits or Limits())
    body = _Body(chunks, response.close)
    return iter_events(body, provider, framing=framing, limits=limits, profile=profile, progress_timeout=progress_timeout, clock=clock)


def aiter_response(
    response: Any,
    provider: str | None = None,
    *,
    framing: Framing | None = None,
    limits: Limits | None = None,
    profile: Profile = "default",
    idle_timeout: float | None = None,
    progress_timeout: float | None = None,
    clock: Clock | None = None,
) -> AsyncEventStream:
    """The same for the response of an asynchronous client: httpx, httpx2, aiohttp, niquests, or an SDK on one of them.

    Args:
        response: as in ``iter_response``.
        provider: as in ``iter_response``.
        framing: as in ``aiter_events``, and so are ``limits``, ``profile``, ``idle_timeout``, ``progress_timeout`` and ``clock``.

    Returns:
        what ``aiter_events`` returns; a status of 400 or more as in ``iter_response``.

    Raises:
        UsageError: no such response, or that of a blocking client, or another argument is wrong. The response stays open.
    """
    response = _unwrapped(response)
    provider = provider or _provider(response)
    chunks = _achunks(response)
    status = _status(response)
    if status >= 400:
        framing = None
        chunks = _arefused(chunks, provider, status, limits or Limits())
    close = response.aclose if hasattr(response, "aclose") else response.close
    body = _AsyncBody(chunks, close)
    return aiter_events(
        body, provider, framing=framing, limits=limits, profile=profile, idle_timeout=idle_timeout, progress_timeout=progress_timeout, clock=clock
    )


# -- what a response can do --------------------------------------------------------------------------------------------------


def _unwrapped(response: Any) -> Any:
    """The HTTP client's own response: SDKs call it ``http_response`` or ``response``. botocore offers no other way to the bytes."""
    for name in ("http_response", "response", "_raw_stream"):
        inner = getattr(response, name, None)
        if inner is not None:  # a response of requests is false when its status is an error
            response = inner
    return response


def _has(response: Any, name: str) -> bool:
    """Asked of the class: an attribute of the object may be a property that reads the whole body."""
    return hasattr(type(response), name)


def _chunks(response: Any) -> Iterator[bytes]:
    """The body as it arrives, without its transfer and content encodings."""
    if _has(response, "iter_bytes"):  # httpx
        if response.is_stream_consumed or hasattr(response.stream, "__iter__"):
            return response.iter_bytes()  # type: ignore[no-any-return]
    elif _has(response, "iter_content"):  # requests, niquests
        if not inspect.iscoroutinefunction(response.iter_content):
            raw = response.raw
            return _reads(raw) if _reads_at_once(raw) else response.iter_content(None)
    elif _has(response, "stream") and _has(response, "read"):  # urllib3
        if not inspect.isasyncgenfunction(response.stream):
            return _reads(response) if _reads_at_once(response) else response.stream()
    elif hasattr(response, "read1"):  # http.client; urllib, whose HTTPError hands it through
        return _reads_all(response)
    raise UsageError(
        f"a {type(response).__name__} is no response of a blocking client that is known here: use aiter_response if it is of an asynchronous one, "
        "else give its byte iterator to iter_events"
    )


def _reads_at_once(raw: Any) -> bool:
    """Does urllib3's ``stream`` wait until it has a full buffer? Where the body is not chunked it does, and ``read1`` does not."""
    return not getattr(raw, "chunked", True) and not raw.closed and hasattr(raw, "read1")


def _reads_all(response: Any) -> Iterator[bytes]:
    """``read1`` of http.client does not mind a body that ends before its Content-Length."""
    left = getattr(response, "length", None)
    while chunk := response.read1(_READ):
        yield chunk
        if isinstance(left, int):
            left -= len(chunk)
            if left <= 0:
                return
    if isinstance(left, int) and left > 0:
        import http.client

        raise http.client.IncompleteRead(b"", left)


def _reads(raw: Any) -> Iterator[bytes]:
    while chunk := raw.read1(_READ, decode_content=True):
        yield chunk


def _achunks(response: Any) -> AsyncIterator[bytes]:
    """The same of an asynchronous client."""
    if _has(response, "aiter_bytes"):  # httpx
        if response.is_stream_consumed or hasattr(response.stream, "__aiter__"):
            return response.aiter_bytes()  # type: ignore[no-any-return]
    elif _has(response, "iter_content"):  # niquests
        if inspect.iscoroutinefunction(response.iter_content):
            return _awaited(response.iter_content)
    elif _has(response, "content") and hasattr(response.content, "iter_any"):  # aiohttp
        return aiter(response.content.iter_any())
    raise UsageError(
        f"a {type(response).__name__} is no response of an asynchronous client that is known here: use iter_response if it is of a blocking one, "
        "else give its byte iterator to aiter_events"
    )


async def _awaited(iter_content: Callable[[int], Any]) -> AsyncIterator[bytes]:
    async for chunk in await iter_content(-1):  # as they arrive
        yield chunk


def _status(response: Any) -> int:
    for name in ("status_code", "status"):
        status = getattr(response, name, None)
        if isinstance(status, int):
            return status
    return 0


def _provider(response: Any) -> str:
    """Whose body this is, by its URL or its headers; "auto" where they do not say."""
    url = None
    with contextlib.suppress(RuntimeError):  # a response of httpx that was made without a request
        url = getattr(response, "url", None)
    if url:
        parts = urlsplit(str(url))
        place = f"{parts.hostname or ''}{parts.path.rstrip('/')}".lower()
        for pattern, provider in _ENDPOINTS:
            if pattern.search(place):
                return provider
    names = {str(name).lower(): value for name, value in dict(getattr(response, "headers", None) or {}).items()}
    if any(name.startswith("anthropic-") for name in names):
        return "anthropic"
    if str(names.get("content-type", "")).startswith("application/x-ndjson"):
        return "ollama"
    return "auto"


# -- a response that says no ---------------------------------------------------------------------------------------------------


def _refused(chunks: Iterator[bytes], provider: str, status: int, limits: Limits) -> Iterator[bytes]:
    body = bytearray()
    with contextlib.suppress(Exception):  # the status has been told, however its body ends
        for chunk in chunks:
            body += chunk
            if len(body) > limits.max_stray_bytes:
                break
    yield _error_body(bytes(body), provider, status, limits)


async def _arefused(chunks: AsyncIterator[bytes], provider: str, status: int, limits: Limits) -> AsyncIterator[bytes]:
    body = bytearray()
    with contextlib.suppress(Exception):
        async for chunk in chunks:
            body += chunk
            if len(body) > limits.max_stray_bytes:
                break
    yield _error_body(bytes(body), provider, status, limits)


def _error_body(body: bytes, provider: str, status: int, limits: Limits) -> bytes:
    """The body as it is, if it has an error of the provider's; else one that has. In either case all protocols read it."""
    stream = iter_events([body], provider, limits=limits)
    for _ in stream:
        pass
    if stream.result is not None and isinstance(stream.result.error, ProviderError):
        return body
    members: Any = None
    with contextlib.suppress(StreamError):
        members = loads(body)
    if isinstance(members, list) and len(members) == 1:
        members = members[0]
    if not isinstance(members, dict):
        members = {}
    shown = body[:400].decode("utf-8", "replace").strip()
    error = {"code": status, "message": f"status {status}{shown and ': '}{shown}", **members}
    return json.dumps({"error": members.get("error") or error}).encode()


# -- bodies that close their response --------------------------------------------------------------------------------------------


class _Body:
    """The chunks of a response; closing them closes it. A generator would not, before its first chunk."""

    def __init__(self, chunks: Iterator[bytes], close: Callable[[], object]) -> None:
        self._chunks = chunks
        self._close = close

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        try:
            if hasattr(self._chunks, "close"):
                self._chunks.close()
        finally:
            self._close()


class _AsyncBody:
    def __init__(self, chunks: AsyncIterator[bytes], close: Callable[[], Any]) -> None:
        self._chunks = chunks
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        try:
            if hasattr(self._chunks, "aclose"):
                await self._chunks.aclose()
        finally:
            closing = self._close()
            if inspect.isawaitable(closing):
                await closing
