"""Responses of real clients and SDKs, from a server on the loopback: the events are those of the body, and the response gets closed."""

from __future__ import annotations

import asyncio
import contextlib
import select
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw
from toolwire.sources import aiter_response, iter_response

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CHAT = (FIXTURES / "openai-chat/demo.sse").read_bytes()
MESSAGES = (FIXTURES / "anthropic/demo.sse").read_bytes()
ASKED: Any = [{"role": "user", "content": "hi"}]
ERROR = b'{"error":{"message":"no such key","type":"invalid_request_error","code":"invalid_api_key"}}'
PATIENCE = 10  # seconds until a test fails that waits for something that does not happen


class Server(ThreadingHTTPServer):
    """Answers every POST with ``body``, in two halves."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.body = MESSAGES
        self.status = 200
        self.media = "text/event-stream"
        self.chunked = True  # else the body ends with the connection
        self.sized = False  # with its length
        self.half = False  # drop the connection after the first half
        self.wait: threading.Event | None = None  # before the second half
        self.connections = 0
        self.left = threading.Event()  # the client has closed a connection before the body's end

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that leaves early is what is being tested


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(server.status)
        self.send_header("Content-Type", server.media)
        if server.sized:
            self.send_header("Content-Length", str(len(server.body)))
        else:
            self.send_header(*(("Transfer-Encoding", "chunked") if server.chunked else ("Connection", "close")))
        self.end_headers()
        middle = len(server.body) // 2
        self.piece(server.body[:middle])
        if server.half:
            self.close_connection = True
            return
        if server.wait is not None and not self.waited(server.wait):
            self.close_connection = True
            return
        self.piece(server.body[middle:])
        if server.chunked and not server.sized:
            self.wfile.write(b"0\r\n\r\n")

    def waited(self, event: threading.Event) -> bool:
        """Has the event come, rather than the end of the connection?"""
        for _ in range(PATIENCE * 100):
            if event.wait(0.01):
                return True
            if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1):
                self.server.left.set()
                break
        return False

    def piece(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if self.server.chunked and not self.server.sized else data)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


# -- clients: each gives the response to a POST to this URL, unread -------------------------------------------------------------


def _httpx(name: str) -> Callable[[str], Any]:
    @contextlib.contextmanager
    def post(url: str) -> Iterator[Any]:
        with pytest.importorskip(name).Client() as client:
            yield lambda: client.send(client.build_request("POST", url, json={}), stream=True)

    return post


def _requests(name: str) -> Callable[[str], Any]:
    @contextlib.contextmanager
    def post(url: str) -> Iterator[Any]:
        with pytest.importorskip(name).Session() as session:
            yield lambda: session.post(url, json={}, stream=True)

    return post


@contextlib.contextmanager
def _urllib3(url: str) -> Iterator[Any]:
    with pytest.importorskip("urllib3").PoolManager() as pool:
        yield lambda: pool.request("POST", url, body=b"{}", preload_content=False)


@contextlib.contextmanager
def _urllib(url: str) -> Iterator[Any]:
    def post() -> Any:
        try:
            return urllib.request.urlopen(url, b"{}", PATIENCE)
        except urllib.error.HTTPError as error:
            return error

    yield post


CLIENTS = {
    "httpx": _httpx("httpx"),
    "httpx2": _httpx("httpx2"),
    "requests": _requests("requests"),
    "niquests": _requests("niquests"),
    "urllib3": _urllib3,
    "urllib": _urllib,
}


def _async_httpx(name: str) -> Callable[[str], Any]:
    @contextlib.asynccontextmanager
    async def post(url: str) -> AsyncIterator[Any]:
        async with pytest.importorskip(name).AsyncClient() as client:
            yield lambda: client.send(client.build_request("POST", url, json={}), stream=True)

    return post


@contextlib.asynccontextmanager
async def _aiohttp(url: str) -> AsyncIterator[Any]:
    async with pytest.importorskip("aiohttp").ClientSession() as session:
        yield lambda: session.post(url, json={})


@contextlib.asynccontextmanager
async def _async_niquests(url: str) -> AsyncIterator[Any]:
    async with pytest.importorskip("niquests").AsyncSession() as session:
        yield lambda: session.post(url, json={}, stream=True)


ASYNC_CLIENTS = {"httpx": _async_httpx("httpx"), "httpx2": _async_httpx("httpx2"), "aiohttp": _aiohttp, "niquests": _async_niquests}
ALL = [pytest.param(False, name, id=name) for name in CLIENTS] + [pytest.param(True, name, id=f"async {name}") for name in ASYNC_CLIENTS]


class Seen:
    """What came of a response: the events as values that compare, the result, the provider."""

    def __init__(self, stream: Any, events: list[Any]) -> None:
        self.events = shown(events)
        self.result: tw.TurnResult = stream.result
        self.provider = stream.turn.provider


def ask(
    client: tuple[bool, str], url: str, *, times: int = 1, after: Callable[[Any], Any] | None = None, last: Callable[[], Any] | None = None, **options: Any
) -> Seen:
    """POST, and read the events. ``after`` is called with each, and leaves the stream when it says True; ``last`` before the client is closed."""
    is_async, name = client

    def go_on(event: Any, events: list[Any]) -> bool:
        events.append(event)
        return after is None or not after(event)

    if not is_async:
        with CLIENTS[name](url) as post:
            for _ in range(times):
                events: list[Any] = []
                with iter_response(post(), **options) as stream:
                    for event in stream:
                        if not go_on(event, events):
                            break
            assert last is None or last()
            return Seen(stream, events)

    async def main() -> Seen:
        async with ASYNC_CLIENTS[name](url) as post:
            for _ in range(times):
                events: list[Any] = []
                async with aiter_response(await post(), **options) as stream:
                    async for event in stream:
                        if not go_on(event, events):
                            break
            assert last is None or await asyncio.to_thread(last)
            return Seen(stream, events)

    return asyncio.run(main())


def shown(events: list[Any]) -> list[Any]:
    """Events as values that compare. Neighbouring deltas are one: a client may give the body in other pieces."""
    out: list[Any] = []
    for event in events:
        kind = type(event).__name__
        if isinstance(event, (tw.TextDelta, tw.ArgumentsDelta)):
            where = event.channel if isinstance(event, tw.TextDelta) else event.call.key
            before = out.pop()[2] if out and out[-1][:2] == (kind, where) else ""
            out.append((kind, where, before + event.text))
        elif isinstance(event, (tw.CallStart, tw.CallEnd)):
            out.append((kind, event.call.key, event.call.name))
        elif isinstance(event, tw.TurnEnd):
            out.append((kind, event.result.outcome, [call.text for call in event.result.calls]))
        else:
            out.append((kind,))
    return out


def of_body(body: bytes, provider: str) -> list[Any]:
    return shown(list(tw.iter_events([body], provider)))


# -- what every client does -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "closing"])
@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_events_are_those_of_the_body(server: Server, is_async: bool, name: str, chunked: bool) -> None:
    server.chunked = chunked
    seen = ask((is_async, name), f"{server.url}/v1/messages")
    assert seen.provider == "anthropic"
    assert seen.events == of_body(MESSAGES, "anthropic")
    assert tw.TurnGate().decide(seen.result).action == "run"


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "closing"])
@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_events_come_as_their_bytes_arrive(server: Server, is_async: bool, name: str, chunked: bool) -> None:
    server.chunked = chunked
    server.wait = threading.Event()
    late = []

    def after(event: Any) -> bool:
        if isinstance(event, tw.CallStart):
            late.append(server.wait.is_set())
            server.wait.set()
        return False

    seen = ask((is_async, name), f"{server.url}/v1/messages", after=after)
    assert late == [False]
    assert seen.result.outcome is tw.Outcome.TOOL_CALLS


@pytest.mark.parametrize(("is_async", "name"), [each for each in ALL if each.values[1] != "urllib"])
def test_connection_is_used_again_after_a_whole_body(server: Server, is_async: bool, name: str) -> None:
    seen = ask((is_async, name), f"{server.url}/v1/messages", times=5)
    assert seen.result.outcome is tw.Outcome.TOOL_CALLS
    assert server.connections <= (2 if name == "niquests" else 1)  # it opens a second one of its own accord


@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_leaving_early_closes_the_response(server: Server, is_async: bool, name: str) -> None:
    server.wait = threading.Event()
    seen = ask((is_async, name), f"{server.url}/v1/messages", after=lambda event: isinstance(event, tw.CallStart), last=lambda: server.left.wait(PATIENCE))
    assert seen.result.outcome is tw.Outcome.CANCELLED
    assert tw.TurnGate().decide(seen.result).reason == "turn_not_ended"


@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_body_that_is_dropped_has_the_clients_own_error(server: Server, is_async: bool, name: str) -> None:
    server.half = True
    seen = ask((is_async, name), f"{server.url}/v1/messages")
    assert seen.result.outcome is tw.Outcome.CUT
    assert type(seen.result.error).__module__.partition(".")[0] in ("http" if name == "urllib" else name, "httpcore2", "httpcore")
    assert tw.TurnGate().decide(seen.result).action == "refuse"


@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_body_that_is_shorter_than_its_length_has_not_ended(server: Server, is_async: bool, name: str) -> None:
    server.sized = True
    assert ask((is_async, name), f"{server.url}/v1/messages", times=2).events == of_body(MESSAGES, "anthropic")
    server.half = True
    seen = ask((is_async, name), f"{server.url}/v1/messages")
    assert seen.result.outcome is tw.Outcome.CUT
    assert not isinstance(seen.result.error, tw.TurnTruncated)


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "sized"])
@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_error_status_whose_body_is_dropped(server: Server, is_async: bool, name: str, chunked: bool) -> None:
    server.status, server.body, server.half, server.sized = 503, b"overloaded" * 2, True, not chunked
    seen = ask((is_async, name), f"{server.url}/v1/messages")
    assert seen.result.outcome is tw.Outcome.ERROR
    assert isinstance(seen.result.error, tw.ProviderError)
    assert (seen.result.error.code, seen.result.error.message) == ("503", "status 503: overloaded")


@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_error_status_with_the_providers_error(server: Server, is_async: bool, name: str) -> None:
    server.status, server.media, server.body = 401, "application/json", ERROR
    seen = ask((is_async, name), f"{server.url}/v1/chat/completions")
    assert seen.provider == "openai-chat"
    assert seen.events == [("TurnEnd", tw.Outcome.ERROR, [])]
    assert isinstance(seen.result.error, tw.ProviderError)
    assert (seen.result.error.type, seen.result.error.code, seen.result.error.message) == ("invalid_request_error", "invalid_api_key", "no such key")


@pytest.mark.parametrize(("is_async", "name"), ALL)
def test_error_status_with_anything_else(server: Server, is_async: bool, name: str) -> None:
    server.status, server.media, server.body = 502, "text/html", b"<html>Bad gateway</html>"
    seen = ask((is_async, name), f"{server.url}/v1/messages")
    assert seen.result.outcome is tw.Outcome.ERROR
    assert isinstance(seen.result.error, tw.ProviderError)
    assert (seen.result.error.code, seen.result.error.message) == ("502", "status 502: <html>Bad gateway</html>")


@pytest.mark.parametrize(("is_async", "name"), [each for each in ALL if each.values[0]])
def test_silence_is_a_timeout_and_closes_the_response(server: Server, is_async: bool, name: str) -> None:
    server.wait = threading.Event()
    seen = ask((is_async, name), f"{server.url}/v1/messages", last=lambda: server.left.wait(PATIENCE), idle_timeout=0.2)
    assert seen.result.cause == "idle_timeout"


# -- an error status, in detail ----------------------------------------------------------------------------------------------------


def of_status(status: int, body: bytes, provider: str | None = None, **options: Any) -> tw.TurnResult:
    httpx = pytest.importorskip("httpx")
    response = httpx.Response(status, content=body)
    *_, end = iter_response(response, provider, **options)
    assert response.is_closed
    result: tw.TurnResult = end.result
    return result


@pytest.mark.parametrize("provider", [None, *tw.PROVIDERS])
@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (ERROR, "invalid_api_key", "no such key"),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', None, "Overloaded"),
        (b'[{"error":{"code":400,"message":"no such model","status":"INVALID_ARGUMENT"}}]', "400", "no such model"),
        (b'{"object":"error","message":"too long","code":40303}', "40303", "too long"),
        (b'{"error":"model not found"}', None, "model not found"),
        (b'{"message":"The security token is invalid"}', "429", "The security token is invalid"),
        (b'{"detail":"Not Found"}', "429", 'status 429: {"detail":"Not Found"}'),
        (b"", "429", "status 429"),
        (b"\xff\x00", "429", "status 429: \ufffd\x00"),
        (b"[" * 2000, "429", "status 429: " + "[" * 400),
    ],
)
def test_error_bodies_are_read_for_every_provider(provider: str | None, body: bytes, code: str | None, message: str) -> None:
    result = of_status(429, body, provider)
    assert result.outcome is tw.Outcome.ERROR
    assert isinstance(result.error, tw.ProviderError)
    assert (result.error.code, result.error.message) == (code, message)


@pytest.mark.parametrize("fixture", ["anthropic/demo.sse", "openai-chat/demo.sse", "bedrock/demo.bin", "ollama/demo.jsonl", "google-generate/demo_array.json"])
def test_good_body_under_an_error_status_runs_nothing(fixture: str) -> None:
    body = (FIXTURES / fixture).read_bytes()
    provider = fixture.partition("/")[0]
    assert tw.TurnGate().decide(of_status(200, body, provider)).action == "run"
    result = of_status(500, body, provider)
    assert isinstance(result.error, tw.ProviderError)
    assert result.error.code == "500"
    assert result.calls == ()
    assert tw.TurnGate().decide(result).reason == "turn_error"


def test_error_body_is_read_whatever_the_framing_of_good_ones() -> None:
    assert of_status(400, ERROR, "google-generate", framing="json-array").error.message == "no such key"


def test_error_body_without_end_is_read_up_to_the_limit() -> None:
    httpx = pytest.importorskip("httpx")
    given = []

    def endless() -> Iterator[bytes]:
        while True:
            given.append(1)
            yield b"no " * 100

    *_, end = iter_response(httpx.Response(500, content=endless()), "anthropic", limits=tw.Limits(max_stray_bytes=1000))
    assert end.result.error.message == "status 500: " + ("no " * 134)[:400].strip()
    assert len(given) == 4


# -- whose body it is ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.openai.com/v1/chat/completions", "openai-chat"),
        ("https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", "openai-chat"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", "openai-chat"),
        ("https://openrouter.ai/api/v1/chat/completions/", "openai-chat"),
        ("https://api.openai.com/v1/responses", "openai-responses"),
        ("https://api.openai.com/v1/responses/resp_1?stream=true&starting_after=4", "openai-responses"),
        ("https://api.anthropic.com/v1/messages?beta=true", "anthropic"),
        ("https://api.minimax.io/anthropic/v1/messages", "anthropic"),
        (
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-x@1:streamRawPredict",
            "anthropic",
        ),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-x-v1%3A0/invoke-with-response-stream", "anthropic"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-x-v1%3A0/converse-stream", "bedrock"),
        ("https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse", "google-generate"),
        ("https://generativelanguage.googleapis.com/v1beta/interactions", "google-interactions"),
        ("https://api.mistral.ai/v1/chat/completions", "mistral"),
        ("https://api.mistral.ai/v1/conversations/conv_1/restart#stream", "mistral"),
        ("https://x-aiplatform.googleapis.com/v1/projects/p/locations/x/publishers/mistralai/models/m:streamRawPredict", "mistral"),
        ("https://api.cohere.com/v2/chat", "cohere"),
        ("https://example.org/stream", "auto"),
        ("https://example.org/v1/threads/t/messages", "auto"),
        ("https://mistral.ai/", "auto"),
    ],
)
def test_provider_is_known_by_the_url(url: str, provider: str) -> None:
    httpx = pytest.importorskip("httpx")
    stream = iter_response(httpx.Response(200, request=httpx.Request("POST", url)))
    assert stream.turn.provider == provider


@pytest.mark.parametrize(
    ("headers", "provider"),
    [
        ({"anthropic-ratelimit-requests-limit": "50"}, "anthropic"),
        ({"content-type": "application/x-ndjson; charset=utf-8"}, "ollama"),
        ({"content-type": "text/event-stream"}, "auto"),
    ],
)
def test_provider_is_known_by_the_headers_where_the_url_does_not_say(headers: dict[str, str], provider: str) -> None:
    httpx = pytest.importorskip("httpx")
    assert iter_response(httpx.Response(200, headers=headers)).turn.provider == provider


@pytest.mark.parametrize(
    "fixture", ["anthropic/demo.sse", "ollama/demo.jsonl", "bedrock/demo.bin", "anthropic/invoke_demo.bin", "google-generate/demo_array.json"]
)
def test_provider_is_found_in_the_body_where_nothing_else_says(fixture: str) -> None:
    body = (FIXTURES / fixture).read_bytes()
    result = of_status(200, body)
    assert result.provider == fixture.partition("/")[0]
    assert tw.TurnGate().decide(result).action == "run"


def test_given_provider_wins() -> None:
    httpx = pytest.importorskip("httpx")
    response = httpx.Response(200, content=CHAT, request=httpx.Request("POST", "http://test/v1/messages"))
    *_, end = iter_response(response, "openai-chat")
    assert end.result.outcome is tw.Outcome.TOOL_CALLS


# -- SDKs ------------------------------------------------------------------------------------------------------------------------


def calls_of(stream: Any) -> Any:
    *_, end = stream
    return stream.turn.provider, end.result.outcome, [(call.name, call.text) for call in end.result.calls]


async def acalls_of(stream: Any) -> Any:
    events = [event async for event in stream]
    return stream.turn.provider, events[-1].result.outcome, [(call.name, call.text) for call in events[-1].result.calls]


def expected(body: bytes, provider: str) -> Any:
    *_, end = tw.iter_events([body], provider)
    return provider, end.result.outcome, [(call.name, call.text) for call in end.result.calls]


def test_openai_sdk(server: Server) -> None:
    sdk = pytest.importorskip("openai")
    with sdk.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
        server.body = CHAT
        with client.chat.completions.with_streaming_response.create(model="m", messages=ASKED, stream=True) as response:
            assert calls_of(iter_response(response)) == expected(CHAT, "openai-chat")
        assert calls_of(iter_response(client.chat.completions.with_raw_response.create(model="m", messages=ASKED, stream=True))) == expected(
            CHAT, "openai-chat"
        )
        assert calls_of(iter_response(client.chat.completions.create(model="m", messages=ASKED, stream=True))) == expected(CHAT, "openai-chat")
        server.body = (FIXTURES / "openai-responses/demo.sse").read_bytes()
        with client.responses.with_streaming_response.create(model="m", input="hi", stream=True) as response:
            assert calls_of(iter_response(response)) == expected(server.body, "openai-responses")
        server.status, server.media, server.body = 429, "application/json", ERROR
        with pytest.raises(sdk.RateLimitError) as caught:
            client.responses.create(model="m", input="hi", stream=True)
        assert calls_of(iter_response(caught.value)) == ("openai-responses", tw.Outcome.ERROR, [])


def test_anthropic_sdk(server: Server) -> None:
    sdk = pytest.importorskip("anthropic")
    with sdk.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client:
        with client.messages.with_streaming_response.create(model="m", max_tokens=9, messages=ASKED, stream=True) as response:
            assert calls_of(iter_response(response)) == expected(MESSAGES, "anthropic")
        with client.messages.stream(model="m", max_tokens=9, messages=ASKED) as stream:
            assert calls_of(iter_response(stream)) == expected(MESSAGES, "anthropic")


def test_asynchronous_sdks(server: Server) -> None:
    openai, anthropic = pytest.importorskip("openai"), pytest.importorskip("anthropic")

    async def main() -> None:
        server.body = MESSAGES
        async with (
            anthropic.AsyncAnthropic(api_key="none", base_url=server.url, max_retries=0) as client,
            client.messages.with_streaming_response.create(model="m", max_tokens=9, messages=ASKED, stream=True) as response,
        ):
            assert await acalls_of(aiter_response(response)) == expected(MESSAGES, "anthropic")
        server.body = CHAT
        async with openai.AsyncOpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client:
            create = client.chat.completions.create
            assert await acalls_of(aiter_response(await create(model="m", messages=ASKED, stream=True))) == expected(CHAT, "openai-chat")
            async with client.chat.completions.with_streaming_response.create(model="m", messages=ASKED, stream=True) as response:
                assert await acalls_of(aiter_response(response)) == expected(CHAT, "openai-chat")

    asyncio.run(main())


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "closing"])
def test_botocore(server: Server, chunked: bool) -> None:
    session = pytest.importorskip("botocore.session").Session()
    client = session.create_client("bedrock-runtime", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none", endpoint_url=server.url)
    server.chunked, server.media = chunked, "application/vnd.amazon.eventstream"
    server.body = (FIXTURES / "bedrock/demo.bin").read_bytes()
    response = client.converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])
    assert calls_of(iter_response(response["stream"])) == expected(server.body, "bedrock")
    server.body = (FIXTURES / "anthropic/invoke_demo.bin").read_bytes()
    response = client.invoke_model_with_response_stream(modelId="m", body=b"{}")
    assert calls_of(iter_response(response["body"])) == expected(server.body, "anthropic")
    server.media, server.body = "application/json", MESSAGES
    assert calls_of(iter_response(client.invoke_model(modelId="m", body=b"{}")["body"])) == expected(MESSAGES, "anthropic")
    client.close()


# -- wrong use, and bodies that have been read ------------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", [b"data: x", [b"data: x"], None, {"stream": None}], ids=lambda thing: type(thing).__name__)
@pytest.mark.parametrize("function", [iter_response, aiter_response])
def test_what_is_no_response_is_refused(function: Any, thing: Any) -> None:
    with pytest.raises(tw.UsageError, match="is no response of"):
        function(thing)


@pytest.mark.parametrize(
    ("status", "provider", "options"),
    [
        (200, "nonsense", {}),
        (500, "nonsense", {}),
        (200, "anthropic", {"framing": "nonsense"}),
        (200, "anthropic", {"progress_timeout": 0}),
        (500, "anthropic", {"progress_timeout": 0}),
    ],
)
def test_wrong_arguments_leave_the_response_open(status: int, provider: str, options: dict[str, Any]) -> None:
    httpx = pytest.importorskip("httpx")
    response = httpx.Response(status, content=iter([MESSAGES]))
    with pytest.raises(tw.UsageError):
        iter_response(response, provider, **options)
    assert not response.is_closed


@pytest.mark.parametrize(("name", "function"), [("Client", iter_response), ("AsyncClient", aiter_response)])
def test_client_in_place_of_its_response_is_refused(name: str, function: Any) -> None:
    client = getattr(pytest.importorskip("httpx"), name)
    with pytest.raises(tw.UsageError, match="is no response of"):
        function(client())


def test_exception_of_requests_brings_its_response(server: Server) -> None:
    requests = pytest.importorskip("requests")
    server.status, server.media, server.body = 401, "application/json", ERROR
    with pytest.raises(requests.HTTPError) as caught:
        requests.post(f"{server.url}/v1/messages", stream=True).raise_for_status()
    *_, end = iter_response(caught.value)
    assert (end.result.provider, end.result.error.message) == ("anthropic", "no such key")


def test_response_of_the_other_kind_of_client_is_refused_and_stays_open(server: Server) -> None:
    httpx, aiohttp = pytest.importorskip("httpx"), pytest.importorskip("aiohttp")
    with httpx.Client() as client, client.stream("POST", f"{server.url}/v1/messages") as response:
        with pytest.raises(tw.UsageError, match="use iter_response if it is of a blocking one"):
            aiter_response(response)
        assert calls_of(iter_response(response)) == expected(MESSAGES, "anthropic")

    async def main() -> None:
        async with httpx.AsyncClient() as client, client.stream("POST", f"{server.url}/v1/messages") as response:
            with pytest.raises(tw.UsageError, match="use aiter_response if it is of an asynchronous one"):
                iter_response(response)
            assert await acalls_of(aiter_response(response)) == expected(MESSAGES, "anthropic")
        async with aiohttp.ClientSession() as session, session.post(f"{server.url}/v1/messages") as response:
            with pytest.raises(tw.UsageError, match="a ClientResponse is no response of a blocking client"):
                iter_response(response)
            assert await acalls_of(aiter_response(response)) == expected(MESSAGES, "anthropic")

    asyncio.run(main())


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "closing"])
def test_bodies_that_the_client_has_read_already(server: Server, chunked: bool) -> None:
    httpx, requests = pytest.importorskip("httpx"), pytest.importorskip("requests")
    server.chunked = chunked
    assert calls_of(iter_response(httpx.post(f"{server.url}/v1/messages"))) == expected(MESSAGES, "anthropic")
    assert calls_of(iter_response(requests.post(f"{server.url}/v1/messages"))) == expected(MESSAGES, "anthropic")


def test_leaving_before_the_first_event_closes_the_response() -> None:
    httpx = pytest.importorskip("httpx")
    response = httpx.Response(200, content=iter([MESSAGES]))
    with iter_response(response):
        assert not response.is_closed
    assert response.is_closed
