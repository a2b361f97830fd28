"""Event-stream clients: the same loop over the same response of httpx, with httpx-sse's EventSource and with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import workloads
from .suite import Plan, Shape, Target

EVENTS = 200


def data(tiny: bool) -> list[bytes]:
    return workloads.chunks(workloads.events(20 if tiny else EVENTS), 1400)


def _over_httpx(source: Callable[[], Any]) -> Callable[[list[bytes]], Plan]:
    def contender(chunks: list[bytes]) -> Plan:
        import httpx

        event_source = source()

        class Body(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                return iter(chunks)

        def prepare() -> Callable[[], tuple[int, int]]:
            response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

            def run() -> tuple[int, int]:
                count = size = 0
                for event in event_source(response).iter_sse():
                    count += 1
                    size += len(event.data)
                return count, size

            return run

        return Plan(prepare, b"".join(chunks).count(b"\n\n"))

    return contender


def _ours() -> Any:
    from toolwire.compat.httpx_sse import EventSource

    return EventSource


def _peer() -> Any:
    from httpx_sse import EventSource

    return EventSource


SHAPES = [
    Shape(
        "httpx_sse",
        "EventSource(response).iter_sse() of httpx-sse, 340 B events in chunks of 1,400 B",
        "µs an event",
        data,
        {"toolwire": _over_httpx(_ours), "httpx-sse": _over_httpx(_peer)},
        (Target("httpx-sse", 8),),
    )
]
