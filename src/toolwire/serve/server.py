"""The sockets: uvicorn with the app, in this thread or in one of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .app import App, Served
from .faults import Faults
from .recordings import find


class _Protocol(H11Protocol):
    """Gives the app the transport of its connection, in the scope's state: without it nothing can be broken off."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}
        # asyncio does this only where the listener names its protocol. Otherwise each small chunk would wait for an ACK.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def build(app: App) -> uvicorn.Server:
    """A server for an app. It says nothing by itself."""
    return uvicorn.Server(
        uvicorn.Config(app.asgi, http=_Protocol, ws="none", lifespan="off", log_level="critical", access_log=False, loop="asyncio", timeout_graceful_shutdown=1)
    )


class Running:
    """A server in a thread. ``url`` is its address, ``log`` what it has served."""

    def __init__(self, app: App, url: str) -> None:
        self.app = app
        self.url = url

    @property
    def log(self) -> list[Served]:
        """The requests that are over, the newest last; a thousand at most."""
        return list(self.app.log)


@contextlib.contextmanager
def running(
    folder: str | os.PathLike[str], *, host: str = "127.0.0.1", port: int = 0, faults: Faults | None = None, report: Callable[[Served], None] | None = None
) -> Iterator[Running]:
    """Serve a folder from a thread of its own, for as long as the block runs.

    Args:
        folder: recordings, see ``toolwire.serve.recordings.find``.
        host, port: where; port 0 takes a free one.
        faults: of every request that does not say otherwise.
        report: called in the server's thread with each request that is over.

    Raises:
        UsageError: there are no recordings.
        OSError: nothing can listen there.
    """
    app = App(find(folder), defaults=faults, report=report)
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
    server = build(app)
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def serve() -> None:
        ready.set()
        await server.serve(sockets=[listener])

    def stop() -> None:
        server.should_exit = True
        server.force_exit = True  # connections that are kept alive are not waited for
        app.hang_up()

    def main() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=main, name="toolwire serve", daemon=True)
    thread.start()
    ready.wait()
    try:
        yield Running(app, url_of(listener))
    finally:
        loop.call_soon_threadsafe(stop)
        thread.join()
        listener.close()


def url_of(listener: socket.socket) -> str:
    """The address of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
