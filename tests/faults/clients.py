"""Real HTTP clients that read one body into the drivers. Each gives what it received, byte for byte, and the stream at its end."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from toolwire.drivers import aiter_events, iter_events
from toolwire.events import Event, TurnResult

PATIENCE = 20.0  # seconds that a client waits for bytes where nothing is meant to stall
LIMIT = 40.0  # seconds that a whole turn may take


@dataclass
class Asked:
    """One request: what is asked for, and how the client reads."""

    url: str
    provider: str
    framing: str | None
    timeout: float = PATIENCE
    size: int | None = None  # bytes that the client is asked for at once; None leaves it to the client
    driver_timeout: bool = False  # the driver's idle_timeout instead of the client's own


@dataclass
class Turned:
    """What came of a turn."""

    received: bytearray = field(default_factory=bytearray)
    events: list[Event] = field(default_factory=list)
    result: TurnResult | None = None
    escaped: BaseException | None = None  # out of the driver: must be None
    no_response: Exception | None = None  # the client failed before there was a body
    closed: bool = False  # the source was closed by the driver
    hung: bool = False  # had to be ended from outside


class _Counted:
    """The source, with a note of what it gave."""

    def __init__(self, source: Any, turned: Turned) -> None:
        self._source = source
        self._turned = turned

    def _note(self, chunk: bytes) -> bytes:
        self._turned.received += chunk
        return chunk

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> bytes:
        return self._note(next(self._source))

    def close(self) -> None:
        self._turned.closed = True
        if hasattr(self._source, "close"):
            self._source.close()

    def __aiter__(self) -> _Counted:
        return self

    async def __anext__(self) -> bytes:
        return self._note(await self._source.__anext__())

    async def aclose(self) -> None:
        self._turned.closed = True
        if hasattr(self._source, "aclose"):
            await self._source.aclose()


def _read(asked: Asked, chunks: Iterable[bytes], turned: Turned) -> None:
    with iter_events(_Counted(iter(chunks), turned), asked.provider, framing=asked.framing) as stream:  # type: ignore[arg-type]
        try:
            turned.events += stream
        except BaseException as error:
            turned.escaped = error
            if not isinstance(error, Exception):
                raise
        turned.result = stream.result


async def _aread(asked: Asked, chunks: Any, turned: Turned) -> None:
    idle = asked.timeout if asked.driver_timeout else PATIENCE  # not every client's own time-out works (docs/faults.md)
    async with aiter_events(_Counted(aiter(chunks), turned), asked.provider, framing=asked.framing, idle_timeout=idle) as stream:  # type: ignore[arg-type]
        try:
            async for event in stream:
                turned.events.append(event)
        except BaseException as error:
            turned.escaped = error
            if not isinstance(error, Exception):
                raise
        turned.result = stream.result


# -- clients that block ----------------------------------------------------------------------------------------------------


class Httpx:
    """httpx, or httpx2, which has the same face."""

    def __init__(self, module: str) -> None:
        self._module = importlib.import_module(module)
        self._client = self._module.Client()

    def __call__(self, asked: Asked, turned: Turned) -> None:
        try:
            response = self._client.send(self._client.build_request("GET", asked.url, timeout=asked.timeout), stream=True)
        except self._module.HTTPError as error:
            turned.no_response = error
            return
        try:
            _read(asked, response.iter_bytes(asked.size), turned)
        finally:
            response.close()

    def close(self) -> None:
        self._client.close()


class Requests:
    def __init__(self) -> None:
        import requests

        self._requests = requests
        self._session = requests.Session()

    def __call__(self, asked: Asked, turned: Turned) -> None:
        try:
            response = self._session.get(asked.url, stream=True, timeout=asked.timeout)
        except self._requests.RequestException as error:
            turned.no_response = error
            return
        with response:
            _read(asked, response.iter_content(asked.size), turned)

    def close(self) -> None:
        self._session.close()


class Urllib3:
    def __init__(self) -> None:
        import urllib3

        self._urllib3 = urllib3
        self._pool = urllib3.PoolManager(retries=False)

    def __call__(self, asked: Asked, turned: Turned) -> None:
        try:
            response = self._pool.request("GET", asked.url, preload_content=False, timeout=asked.timeout)
        except self._urllib3.exceptions.HTTPError as error:
            turned.no_response = error
            return
        try:
            _read(asked, response.stream(asked.size or 65536, decode_content=True), turned)
        finally:
            response.close()

    def close(self) -> None:
        self._pool.clear()


# -- clients that await ----------------------------------------------------------------------------------------------------

AsyncGet = Callable[[Asked, Turned], Awaitable[None]]


class AsyncHttpx:
    def __init__(self, module: str) -> None:
        self._module = importlib.import_module(module)

    async def __aenter__(self) -> AsyncGet:
        self._client = await self._module.AsyncClient(limits=self._module.Limits(max_connections=None)).__aenter__()
        return self._get

    async def __aexit__(self, *error: Any) -> None:
        await self._client.__aexit__(*error)

    async def _get(self, asked: Asked, turned: Turned) -> None:
        timeout = PATIENCE if asked.driver_timeout else asked.timeout
        try:
            response = await self._client.send(self._client.build_request("GET", asked.url, timeout=timeout), stream=True)
        except self._module.HTTPError as error:
            turned.no_response = error
            return
        try:
            await _aread(asked, response.aiter_bytes(asked.size), turned)
        finally:
            await response.aclose()


class Aiohttp:
    def __init__(self) -> None:
        import aiohttp

        self._aiohttp = aiohttp

    async def __aenter__(self) -> AsyncGet:
        self._session = await self._aiohttp.ClientSession().__aenter__()
        return self._get

    async def __aexit__(self, *error: Any) -> None:
        await self._session.__aexit__(*error)

    async def _get(self, asked: Asked, turned: Turned) -> None:
        timeout = self._aiohttp.ClientTimeout(total=None, sock_read=PATIENCE if asked.driver_timeout else asked.timeout)
        try:
            async with self._session.get(asked.url, timeout=timeout) as response:
                content = response.content
                await _aread(asked, content.iter_any() if asked.size is None else content.iter_chunked(asked.size), turned)
        except self._aiohttp.ClientError as error:
            turned.no_response = error


SYNC: dict[str, tuple[str, Callable[[], Any]]] = {
    "httpx": ("httpx", lambda: Httpx("httpx")),
    "httpx2": ("httpx2", lambda: Httpx("httpx2")),
    "requests": ("requests", Requests),
    "urllib3": ("urllib3", Urllib3),
}
ASYNC: dict[str, tuple[str, Callable[[], Any]]] = {
    "httpx async": ("httpx", lambda: AsyncHttpx("httpx")),
    "httpx2 async": ("httpx2", lambda: AsyncHttpx("httpx2")),
    "aiohttp": ("aiohttp", Aiohttp),
    "httpx trio": ("httpx", lambda: AsyncHttpx("httpx")),
}


def installed() -> list[str]:
    """The names of the clients that are there."""
    found = []
    for name, (module, _) in {**SYNC, **ASYNC}.items():
        try:
            importlib.import_module(module)
            if name.endswith("trio"):
                importlib.import_module("trio")
        except ImportError:
            continue
        found.append(name)
    return found


def get(client: str, asks: list[Asked]) -> list[Turned]:
    """Ask for each, one after the other where the client blocks, all at once where it awaits."""
    turns = [Turned() for _ in asks]
    if client in SYNC:
        fetch = SYNC[client][1]()
        try:
            for asked, turned in zip(asks, turns, strict=True):
                began = time.monotonic()
                fetch(asked, turned)
                turned.hung = time.monotonic() - began > LIMIT
        finally:
            fetch.close()
        return turns

    if client.endswith("trio"):
        import trio

        async def one_under_trio(fetch: AsyncGet, asked: Asked, turned: Turned) -> None:
            with trio.move_on_after(LIMIT) as scope:
                await fetch(asked, turned)
            turned.hung = scope.cancelled_caught

        async def under_trio() -> None:
            async with ASYNC[client][1]() as fetch, trio.open_nursery() as nursery:
                for asked, turned in zip(asks, turns, strict=True):
                    nursery.start_soon(one_under_trio, fetch, asked, turned)

        trio.run(under_trio)
    else:

        async def one(fetch: AsyncGet, asked: Asked, turned: Turned) -> None:
            try:
                async with asyncio.timeout(LIMIT):
                    await fetch(asked, turned)
            except TimeoutError:
                turned.hung = True

        async def under_asyncio() -> None:
            async with ASYNC[client][1]() as fetch, asyncio.TaskGroup() as group:
                for asked, turned in zip(asks, turns, strict=True):
                    group.create_task(one(fetch, asked, turned))

        asyncio.run(under_asyncio())
    return turns
