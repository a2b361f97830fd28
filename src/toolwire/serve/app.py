"""Requests in, recordings out: which one a request gets, what happens to it, and the bytes on the socket."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .faults import FAULTS, Faults
from .provider_errors import error_body
from .recordings import Recording

#: Path, provider, suffixes of the recordings that it may give. A path below ``/PROVIDER`` is the same for that provider.
ENDPOINTS: Final = (
    ("/v1/chat/completions", "openai-chat", (".sse",)),
    ("/chat/completions", "openai-chat", (".sse",)),
    ("/v1/responses", "openai-responses", (".sse",)),
    ("/responses", "openai-responses", (".sse",)),
    ("/v1/messages", "anthropic", (".sse",)),
    ("/v1beta/models/{model:path}:streamGenerateContent", "google-generate", (".json",)),
    ("/v1/models/{model:path}:streamGenerateContent", "google-generate", (".json",)),
    ("/v1beta/interactions", "google-interactions", (".sse",)),
    ("/v1/interactions", "google-interactions", (".sse",)),
    ("/mistral/v1/chat/completions", "mistral", (".sse",)),
    ("/mistral/v1/conversations", "mistral", (".sse",)),
    ("/v2/chat", "cohere", (".sse",)),
    ("/api/chat", "ollama", (".jsonl", ".ndjson")),
    ("/model/{model:path}/converse-stream", "bedrock", (".bin",)),
    ("/model/{model:path}/invoke-with-response-stream", "anthropic", (".bin",)),
)
_LOG_SIZE: Final = 1000
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER with a time of 0: close() sends RST


@dataclass(slots=True)
class Served:
    """What became of one request."""

    path: str
    recording: str
    faults: str
    sent: int = 0
    end: str = "open"  # "whole", the fault that stopped it, or "left": the client went away

    def __str__(self) -> str:
        return f"{self.path} {self.recording} {self.faults or 'no faults'}: {self.sent} bytes, {self.end}"


class App:
    """The ASGI application (``asgi``), and the log of what it has served.

    Args:
        recordings: by name.
        defaults: faults of every request that does not say otherwise.
        report: called with each request that is over.
    """

    def __init__(self, recordings: Mapping[str, Recording], *, defaults: Faults | None = None, report: Callable[[Served], None] | None = None) -> None:
        self.recordings = dict(recordings)
        self.log: deque[Served] = deque(maxlen=_LOG_SIZE)
        self._defaults = Faults() if defaults is None else defaults
        self._report = report
        self._bodies: set[_Body] = set()
        self._turns: dict[tuple[str, tuple[str, ...]], Any] = {}
        routes = [Route("/", self._list), Route("/replay/{name:path}", self._replay)]
        for path, provider, suffixes in ENDPOINTS:
            endpoint = self._endpoint(provider, suffixes)
            routes.append(Route(path, endpoint, methods=["POST"]))
            if not path.startswith(f"/{provider}/"):
                routes.append(Route(f"/{provider}{path}", endpoint, methods=["POST"]))
        self.asgi = Starlette(routes=routes)

    def hang_up(self) -> None:
        """End every body that is under way."""
        for body in self._bodies:
            body.hang_up()

    def over(self, served: Served) -> None:
        """Note what became of a request."""
        self.log.append(served)
        if self._report is not None:
            self._report(served)

    # -- which recording ----------------------------------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"recordings": [{"name": r.name, "provider": r.provider, "framing": r.framing} for r in self.recordings.values()]})

    async def _replay(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.recordings:
            return _complain(404, f"there is no recording {name!r}")
        return await self._serve(request, self.recordings[name], request.query_params)

    def _endpoint(self, provider: str, suffixes: tuple[str, ...]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            wanted = (".sse",) if provider == "google-generate" and request.query_params.get("alt") == "sse" else suffixes
            name = request.headers.get("x-toolwire-recording") or request.query_params.get("recording")
            recording = self._next(provider, wanted) if name is None else self._named(provider, name, wanted)
            if recording is None:
                return _complain(404, f"there is no recording of {provider}" + (f" with the name {name!r}" if name else f" as {' or '.join(wanted)}"))
            # A provider has parameters of its own here (alt, key, beta): only what is ours is read.
            return await self._serve(request, recording, {k: v for k, v in request.query_params.items() if k in FAULTS})

        return answer

    def _named(self, provider: str, name: str, suffixes: Iterable[str]) -> Recording | None:
        names = (name, *(f"{provider}/{name}{suffix}" for suffix in suffixes))
        return next((self.recordings[name] for name in names if name in self.recordings), None)

    def _next(self, provider: str, suffixes: tuple[str, ...]) -> Recording | None:
        """Without a name the recordings of a provider are given in order, and then again."""
        key = provider, suffixes
        if key not in self._turns:
            self._turns[key] = itertools.cycle([r for r in self.recordings.values() if r.provider == provider and r.path.suffix in suffixes])
        found: Recording | None = next(self._turns[key], None)
        return found

    # -- what happens to it -------------------------------------------------------------------------------------------

    async def _serve(self, request: Request, recording: Recording, query: Mapping[str, str]) -> Response:
        await request.body()  # from now on receive() says when the client has gone
        try:
            options = dict(parse_qsl(request.headers.get("x-toolwire-faults", ""), keep_blank_values=True, strict_parsing=False)) | dict(query)
            faults = Faults.parse(options, defaults=self._defaults)
            served = Served(request.url.path, recording.name, "&".join(f"{k}={v}" for k, v in options.items()))
            if faults.status != 200:
                body, headers = error_body(recording.provider, faults.status)
            else:
                body = faults.damage(recording.path.read_bytes(), recording.provider, recording.framing)
                headers = {"content-type": recording.content_type}
            chunks, rest = faults.chunks(body)
        except ValueError as error:
            return _complain(400, str(error))
        if faults.type is not None:
            headers["content-type"] = faults.type
        if faults.encoding is not None:
            headers["content-encoding"] = faults.encoding
        return _Body(self, served, faults, (chunks, rest), headers)

    @contextlib.contextmanager
    def watch(self, body: _Body) -> Any:
        """Keep a body where ``hang_up`` finds it."""
        self._bodies.add(body)
        try:
            yield
        finally:
            self._bodies.discard(body)


def _complain(status: int, text: str) -> Response:
    return JSONResponse({"error": {"message": f"toolwire serve: {text}", "type": "toolwire_serve"}}, status)


class _Body(Response):
    """Writes the chunks, waits between them, and stops as it was told."""

    def __init__(self, app: App, served: Served, faults: Faults, chunks: tuple[list[bytes], list[bytes]], headers: Mapping[str, str]) -> None:
        super().__init__(status_code=faults.status, headers=headers)
        del self.headers["content-length"]  # of a stream nobody knows it
        self._app = app
        self._served = served
        self._faults = faults
        self._chunks, self._rest = chunks
        self._transport: Any = None
        self._gone: Any = None

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._transport = scope.get("state", {}).get("transport")
        self._gone = asyncio.ensure_future(_disconnect(receive))
        try:
            with self._app.watch(self):
                self._served.end = await self._write(send)
        finally:
            self._gone.cancel()
            self._app.over(self._served)

    async def _write(self, send: Any) -> str:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if not await self._stream(send, self._chunks):
            return "left"
        stop = self._faults.stop
        if stop == "stall" and (await self._left_within(self._faults.resume) or not await self._stream(send, self._rest)):
            return stop
        if stop in ("close", "reset"):
            return await self._break_off(stop)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return stop or "whole"

    async def _stream(self, send: Any, chunks: list[bytes]) -> bool:
        """Write chunks, each after its delay, for as long as the client stays."""
        for chunk in chunks:
            if self._served.sent and self._faults.delay:
                await self._left_within(self._faults.delay)
            if self._gone.done():
                return False
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            self._served.sent += len(chunk)
        return True

    async def _left_within(self, seconds: float | None) -> bool:
        """Wait, and say whether the client has gone meanwhile. None waits for that alone."""
        await asyncio.wait((self._gone,), timeout=seconds)
        return bool(self._gone.done())

    async def _break_off(self, how: str) -> str:
        """End the connection, not the body. What has been written is on its way before."""
        if self._transport is None:
            raise RuntimeError("close and reset need the server of toolwire.serve: another one does not give its transport")
        while self._transport.get_write_buffer_size() and not self._gone.done():
            await asyncio.sleep(0.001)
        if how == "reset":
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()
        else:
            self._transport.close()
        await self._gone
        return how


async def _disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
