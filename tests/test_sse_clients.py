"""The faces of httpx-sse and sseclient-py: the same events as the framer gives, over responses and other sources of bytes."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolwire as tw
from toolwire.compat import httpx_sse, sseclient

BODY = b': hello\n\nevent: note\ndata: one\nid: 1\n\nretry: 50\ndata: two\n\ndata: {"a": 1}\r\n\r\nretry: 70\n\nid: 9\ndata: \xc3\xa4\xff\n\ndata: never ended'
EVENTS = [("note", "one", "1", None), ("message", "two", "1", 50), ("message", '{"a": 1}', "1", None), ("message", "ä�", "9", None)]


def seen(events: Any) -> list[tuple[str, str, str, int | None]]:
    return [(event.event, event.data, event.id, event.retry) for event in events]


def pieces(body: bytes, size: int) -> list[bytes]:
    return [body[i : i + size] for i in range(0, len(body), size)]


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


def response(http: Any, chunks: list[bytes], **headers: str) -> Any:
    class Body(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            return iter(chunks)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

    return http.Response(200, headers={"content-type": "text/event-stream; charset=utf-8", **headers}, stream=Body())


async def collected(source: httpx_sse.EventSource) -> list[Any]:
    return [event async for event in source.aiter_sse()]


both = pytest.mark.parametrize("name", ["httpx", "httpx2"])


@both
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_events_of_a_response(name: str, size: int) -> None:
    http = library(name)
    assert seen(httpx_sse.EventSource(response(http, pieces(BODY, size))).iter_sse()) == EVENTS
    assert seen(asyncio.run(collected(httpx_sse.EventSource(response(http, pieces(BODY, size)))))) == EVENTS
    packed = pieces(gzip.compress(BODY), size)
    assert seen(httpx_sse.EventSource(response(http, packed, **{"content-encoding": "gzip"})).iter_sse()) == EVENTS


@both
def test_a_response_that_has_been_read(name: str) -> None:
    http = library(name)
    read = response(http, [BODY])
    read.read()
    assert seen(httpx_sse.EventSource(read).iter_sse()) == EVENTS


@both
def test_another_content_type_is_a_transport_error(name: str) -> None:
    http = library(name)
    wrong = http.Response(200, headers={"content-type": "text/html"}, content=b"<html>")
    with pytest.raises(httpx_sse.SSEError, match="should be text/event-stream, not 'text/html'") as caught:
        list(httpx_sse.EventSource(wrong).iter_sse())
    assert isinstance(caught.value, http.TransportError)
    with pytest.raises(http.TransportError):
        asyncio.run(collected(httpx_sse.EventSource(wrong)))


@both
def test_connecting_asks_for_a_stream_and_leaves_the_callers_headers_alone(name: str) -> None:
    http = library(name)
    asked: list[Any] = []

    def answer(request: Any) -> Any:
        asked.append(request.headers)
        return response(http, [BODY])

    headers = {"x-mine": "1", "accept": "*/*"}
    with (
        http.Client(transport=http.MockTransport(answer)) as client,
        httpx_sse.connect_sse(client, "POST", "http://localhost/", headers=headers) as source,
    ):
        assert next(source.iter_sse()).data == "one"
    assert source.response.is_closed
    assert (asked[0]["accept"], asked[0]["cache-control"], asked[0]["x-mine"]) == ("text/event-stream", "no-store", "1")
    assert headers == {"x-mine": "1", "accept": "*/*"}

    async def ask() -> list[Any]:
        async with (
            http.AsyncClient(transport=http.MockTransport(answer)) as client,
            httpx_sse.aconnect_sse(client, "GET", "http://localhost/") as source,
        ):
            return await collected(source)

    assert seen(asyncio.run(ask())) == EVENTS


@both
def test_an_event_that_is_too_large_comes_after_the_good_ones(name: str) -> None:
    http = library(name)
    source = httpx_sse.EventSource(response(http, [b"data: x\n\ndata: " + b"y" * 100 + b"\n\n"]), max_frame_bytes=50)
    events = source.iter_sse()
    assert next(events).data == "x"
    with pytest.raises(tw.LimitExceeded, match="max_frame_bytes"):
        next(events)


def test_events_count_as_those_of_httpx_sse() -> None:
    made = httpx_sse.ServerSentEvent(data="[1]", retry=5)
    assert (made.json(), repr(made)) == ([1], "ServerSentEvent(event='message', data='[1]', retry=5)")
    (frame,) = tw.SSEFramer().feed(b"data: {}\n\n")
    assert isinstance(frame, httpx_sse.ServerSentEvent)
    assert frame.json() == {}


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": 1, "a": 2}', '"\\ud800"', "[1] x", "\ufeff1", "1" * 5000])
def test_json_of_a_frame_is_that_of_json_loads(text: str) -> None:
    try:
        expected: Any = json.loads(text)
    except ValueError as error:
        with pytest.raises(type(error)):
            tw.Frame(text.encode()).json()
    else:
        assert repr(tw.Frame(text.encode()).json()) == repr(expected)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_sseclient_over_any_source(encoding: str) -> None:
    body = BODY.decode("utf-8", "replace").replace("�", "ö").encode(encoding)
    for size in (1, 5, 1000):
        events = list(sseclient.SSEClient(iter(pieces(body, size)), encoding).events())
        assert seen(events) == [*EVENTS[:3], ("message", "äö", "9", None)]


def test_sseclient_closes_its_source() -> None:
    closed = []

    class Source:
        def __iter__(self) -> Iterator[bytes]:
            return iter([b"data: x\n\n"])

        def close(self) -> None:
            closed.append(True)

    client = sseclient.SSEClient(Source())
    assert [event.data for event in client.events()] == ["x"]
    client.close()
    assert closed == [True]


LINES = st.lists(st.sampled_from(["data: a", "data", "data:b", "event: e", "id: 7", "id", "retry: 12", "retry: x", ": c", "", "", ""]), max_size=20)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.integers(1, 9))
def test_the_peer_gives_the_same_events_with_data(lines: list[str], end: str, size: int) -> None:
    """But for blocks without data, which are no events (HTML standard 9.2.6)."""
    httpx = library("httpx")
    peer = pytest.importorskip("httpx_sse", reason="httpx-sse is not installed")
    body = "".join(line + end for line in lines).encode()
    expected = []
    events = iter(peer.EventSource(response(httpx, pieces(body, size))).iter_sse())
    state = [False, False, False]  # what the peer dispatches a block for: a name or time, an id so far, data
    for line in lines:
        name, _, value = line.partition(":")
        if line == "":
            if any(state):
                event = next(events)
                if state[2]:
                    expected.append((event.event, event.data, event.id, event.retry))
            state = [False, state[1], False]
        elif name == "data":
            state[2] = True
        elif name == "id":
            state[1] = bool(value.strip())
        elif (name == "event" and value) or line == "retry: 12":
            state[0] = True
    assert next(events, None) is None
    assert seen(httpx_sse.EventSource(response(httpx, pieces(body, size))).iter_sse()) == expected
