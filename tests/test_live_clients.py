"""Streams of every provider through real clients and SDKs over a loopback socket: the calls are those of a Turn that had the bytes."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra [serve]")
pytest.importorskip("uvicorn", reason="needs the extra [serve]")

import toolwire as tw
from faults.clients import Asked, get, installed
from faults.judge import FIXTURES, judge, reference, released
from toolwire.serve.server import Running, running

LIVE = (
    "openai-chat/parallel.sse",
    "openai-responses/parallel.sse",
    "anthropic/parallel.sse",
    "anthropic/invoke_demo.bin",
    "google-generate/demo_streamed.sse",
    "google-generate/parallel_array.json",
    "google-interactions/parallel.sse",
    "mistral/parallel.sse",
    "mistral/conversation_parallel.sse",
    "cohere/parallel.sse",
    "ollama/parallel.jsonl",
    "bedrock/parallel.bin",
    "bedrock/decoded_parallel.jsonl",
)
TRICKLED = "chunk=97&delay=0.0005"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(FIXTURES) as server:
        yield server


def headers(name: str, faults: str = TRICKLED) -> dict[str, str]:
    return {"x-toolwire-recording": name, "x-toolwire-faults": faults}


def ran(chunks: Iterable[bytes], provider: str) -> Any:
    result = None
    for event in tw.iter_events(chunks, provider):
        if isinstance(event, tw.TurnEnd):
            result = event.result
    assert result is not None
    return released(tw.TurnGate().decide(result))


async def aran(chunks: AsyncIterable[bytes], provider: str) -> Any:
    result = None
    async for event in tw.aiter_events(chunks, provider, idle_timeout=30):
        if isinstance(event, tw.TurnEnd):
            result = event.result
    assert result is not None
    return released(tw.TurnGate().decide(result))


def ended(server: Running, count: int) -> list[Any]:
    """The log, once it has ``count`` entries."""
    for _ in range(1000):
        if len(server.log) >= count:
            return server.log
        time.sleep(0.01)
    raise AssertionError(f"{len(server.log)} of {count} requests are over")


# -- HTTP clients ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", installed())
def test_every_provider_comes_through_every_client(server: Running, client: str) -> None:
    asks = [Asked(f"{server.url}/replay/{name}?{TRICKLED}", reference(name).provider, reference(name).framing) for name in LIVE]
    for name, turned in zip(LIVE, get(client, asks), strict=True):
        assert judge(reference(name), "chunk", turned).bad == [], name
        assert turned.result is not None
        assert turned.result.calls


def test_framing_follows_from_the_provider_over_a_socket_too(server: Running) -> None:
    httpx = pytest.importorskip("httpx")
    with httpx.Client() as client:
        for name in LIVE:
            with client.stream("GET", f"{server.url}/replay/{name}") as response:
                assert ran(response.iter_bytes(50), reference(name).provider) == reference(name).released, name


@pytest.mark.parametrize("module", ["httpx", "httpx2"])
def test_early_exit_closes_the_connection(module: str) -> None:
    httpx = pytest.importorskip(module)
    with running(FIXTURES) as server:
        url = f"{server.url}/replay/{LIVE[0]}?chunk=30&delay=0.05"
        with httpx.Client() as client, client.stream("GET", url) as response, tw.iter_events(response.iter_bytes(), "openai-chat") as stream:
            for event in stream:
                if isinstance(event, tw.CallStart):
                    break
        (served,) = ended(server, 1)
        assert (served.end, stream.result.outcome) == ("left", tw.Outcome.CANCELLED)


def test_early_exit_of_aiohttp_closes_the_connection() -> None:
    aiohttp = pytest.importorskip("aiohttp")
    import asyncio

    async def leave(url: str) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url) as response,
            tw.aiter_events(response.content.iter_any(), "openai-chat", idle_timeout=30) as stream,
        ):
            async for event in stream:
                if isinstance(event, tw.CallStart):
                    break
        return stream.result

    with running(FIXTURES) as server:
        result = asyncio.run(leave(f"{server.url}/replay/{LIVE[0]}?chunk=30&delay=0.05"))
        (served,) = ended(server, 1)
        assert (served.end, result.outcome) == ("left", tw.Outcome.CANCELLED)


# -- SDKs: their raw responses into the drivers, and their own reading beside it --------------------------------------------


def test_openai_sdk_chat(server: Running) -> None:
    openai = pytest.importorskip("openai")
    name = "openai-chat/parallel.sse"
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        request = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True, "extra_headers": headers(name)}
        with client.chat.completions.with_streaming_response.create(**request) as response:
            assert ran(response.iter_bytes(), "openai-chat") == reference(name).released
        texts: dict[int, str] = {}
        for chunk in client.chat.completions.create(**request):
            for choice in chunk.choices:
                for call in choice.delta.tool_calls or []:
                    texts[call.index] = texts.get(call.index, "") + (call.function.arguments or "")
        assert list(texts.values()) == [text for key, text in reference(name).shown.items() if key[0] == "call"]
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(**(request | {"extra_headers": headers(name, "status=429")}))


def test_openai_sdk_responses(server: Running) -> None:
    openai = pytest.importorskip("openai")
    import asyncio

    name = "openai-responses/parallel.sse"

    async def main() -> Any:
        request = {"model": "m", "input": "x", "stream": True, "extra_headers": headers(name)}
        async with (
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
            client.responses.with_streaming_response.create(**request) as response,
        ):
            return await aran(response.iter_bytes(), "openai-responses")

    assert asyncio.run(main()) == reference(name).released


def test_anthropic_sdk(server: Running) -> None:
    anthropic = pytest.importorskip("anthropic")
    name = "anthropic/parallel.sse"
    request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
        with client.messages.with_streaming_response.create(**request, stream=True, extra_headers=headers(name)) as response:
            assert ran(response.iter_bytes(), "anthropic") == reference(name).released
        with client.messages.stream(**request, extra_headers=headers(name)) as stream:
            blocks = [block for block in stream.get_final_message().content if block.type == "tool_use"]
        theirs = sorted(repr((block.id, block.name, block.input)) for block in blocks)
        assert theirs == sorted(reference(name).released.elements())
        # The SDK ends a stream that a proxy has cut cleanly without a word; the gate does not.
        with client.messages.with_streaming_response.create(**request, stream=True, extra_headers=headers(name, "cut=0.9")) as response:
            assert not ran(response.iter_bytes(), "anthropic")


def test_google_sdk(server: Running) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        genai = pytest.importorskip("google.genai")
    name = "google-generate/parallel.sse"
    options = genai.types.HttpOptions(base_url=server.url, headers=headers(name))
    client = genai.Client(api_key="none", http_options=options)
    try:
        found = []
        for chunk in client.models.generate_content_stream(model="gemini-x", contents="x"):
            for candidate in chunk.candidates or []:
                found += [part.function_call for part in candidate.content.parts or [] if part.function_call]
    finally:
        client.close()
    assert sorted((call.name, json.dumps(call.args)) for call in found) == sorted(
        (name, json.dumps(arguments)) for _, name, arguments in map(eval, reference(name).released.elements())
    )


def test_ollama_sdk(server: Running) -> None:
    ollama = pytest.importorskip("ollama")
    name = "ollama/parallel.jsonl"
    client = ollama.Client(host=server.url, headers=headers(name))
    calls = [call.function for part in client.chat("m", messages=[], stream=True) for call in part.message.tool_calls or []]
    assert sorted(repr((None, call.name, dict(call.arguments))) for call in calls) == sorted(reference(name).released.elements())


def test_botocore(server: Running) -> None:
    session = pytest.importorskip("botocore.session")
    from botocore.config import Config

    name = "bedrock/parallel.bin"
    client = session.Session().create_client(
        "bedrock-runtime",
        endpoint_url=server.url,
        region_name="eu-west-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"max_attempts": 0}),
    )
    client.meta.events.register("before-send", lambda request, **_: request.headers.update(headers(name)))
    stream = client.converse_stream(modelId="demo", messages=[{"role": "user", "content": [{"text": "x"}]}])["stream"]
    texts: dict[int, str] = {}
    for event in stream:
        if "contentBlockDelta" in event and "toolUse" in event["contentBlockDelta"]["delta"]:
            at = event["contentBlockDelta"]["contentBlockIndex"]
            texts[at] = texts.get(at, "") + event["contentBlockDelta"]["delta"]["toolUse"]["input"]
    client.close()
    assert list(texts.values()) == [text for key, text in reference(name).shown.items() if key[0] == "call"]
    assert name in [served.recording for served in server.log]
