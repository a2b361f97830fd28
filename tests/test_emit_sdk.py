"""The official SDKs read what ``toolwire.emit`` writes: from a transport without network, to the same calls and text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw
from emit_helpers import FIXTURES, emitted, load, name

GOOD = (tw.Outcome.STOP, tw.Outcome.TOOL_CALLS)


def client_for(sdk_client: type, body: bytes) -> Any:
    """A client of the HTTP library that the SDK uses, which answers with this body in pieces."""
    for module in ("httpx2", "httpx"):
        http = pytest.importorskip(module) if module == "httpx" else _optional(module)
        if http is not None and issubclass(sdk_client, http.Client):
            break

    class Body(http.SyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            return (body[i : i + 97] for i in range(0, len(body), 97))

    def answer(request: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(), request=request)

    return http.Client(transport=http.MockTransport(answer))


def _optional(module: str) -> Any:
    try:
        return __import__(module)
    except ImportError:
        return None


def _openai(body: bytes) -> Any:
    sdk = pytest.importorskip("openai", reason="the openai SDK is not installed")
    return sdk.OpenAI(api_key="none", http_client=client_for(sdk.DefaultHttpxClient, body), max_retries=0)


def read_chat(body: bytes) -> tuple[str, list[tuple[Any, ...]]]:
    client = _openai(body)
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}]) as stream:
        for _ in stream:
            pass
        choices = stream.get_final_completion().choices
    return choices[0].message.content or "", [
        (call.id, call.function.name, call.function.arguments) for choice in choices for call in choice.message.tool_calls or ()
    ]


def read_raw_chat(body: bytes) -> tuple[str, list[tuple[Any, ...]]]:
    """Chunk by chunk: the SDK's ``.stream()`` knows no custom tools."""
    client = _openai(body)
    text, calls = "", {}
    for chunk in client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for entry in choice.delta.tool_calls or ():
                about = entry.custom if entry.type == "custom" or entry.function is None else entry.function.to_dict()
                call = calls.setdefault(entry.index, [entry.id, about.get("name"), ""])
                call[2] += about.get("input") or about.get("arguments") or ""
    return text, [tuple(call) for call in calls.values()]


def read_responses(body: bytes) -> tuple[str, list[tuple[Any, ...]]]:
    client = _openai(body)
    with client.responses.stream(model="m", input="hi") as stream:
        for _ in stream:
            pass
        response = stream.get_final_response()
    calls = []
    for item in response.output:
        if item.type in ("function_call", "custom_tool_call"):
            calls.append((item.call_id, item.name, item.arguments if item.type == "function_call" else item.input))
    return response.output_text, calls


def read_anthropic(body: bytes) -> tuple[str, list[tuple[Any, ...]]]:
    sdk = pytest.importorskip("anthropic", reason="the anthropic SDK is not installed")
    client = sdk.Anthropic(api_key="none", http_client=client_for(sdk.DefaultHttpxClient, body), max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
        for _ in stream:
            pass
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]


READERS: dict[str, Callable[[bytes], tuple[str, list[tuple[Any, ...]]]]] = {
    "openai-chat": read_chat,
    "openai-responses": read_responses,
    "anthropic": read_anthropic,
}


def well_ended(path: Path) -> bool:
    expect = load(path)[0]
    return expect["outcome"] in GOOD and expect["gate"]["action"] != "refuse"


@pytest.mark.parametrize("path", [path for path in FIXTURES if well_ended(path)], ids=name)
@pytest.mark.parametrize("target", READERS)
def test_an_official_sdk_reads_the_calls_and_the_text(path: Path, target: str) -> None:
    expect, body = load(path)
    written, result = emitted(expect["provider"], [body], target)
    back = tw.Turn(target)
    back.feed(written)
    mine = back.finish()
    if mine.outcome not in GOOD or (target == "anthropic" and any(call.error is not None for call in mine.calls)):
        # An error is raised, as errors are, and so is argument text that is no JSON by the SDK that parses it.
        with pytest.raises(Exception, match=r"may not run|tool parameter JSON|response\.completed"):
            READERS[target](written)
        return
    custom = target == "openai-chat" and any(call.kind == "text" for call in mine.calls)
    text, calls = (read_raw_chat if custom else READERS[target])(written)
    assert text == mine.text
    ours = [call for call in mine.calls if call.runs_on == "client"]
    if target == "anthropic":
        assert calls == [(call.id, call.name, call.value) for call in ours]
    else:
        assert calls == [(call.id, call.name, call.text) for call in ours]
    assert all(json.loads(call.text or "{}") == call.value for call in ours if call.kind == "json" and call.error is None)


@pytest.mark.parametrize("path", [path for path in FIXTURES if path.name.startswith(("cut_", "error_"))], ids=name)
@pytest.mark.parametrize("target", READERS)
def test_an_official_sdk_does_not_take_a_bad_end_for_a_good_one(path: Path, target: str) -> None:
    expect, body = load(path)
    written, result = emitted(expect["provider"], [body], target)
    if result.outcome in GOOD:
        return
    with pytest.raises(Exception) as caught:  # each SDK has its own
        READERS[target](written)
    assert not isinstance(caught.value, (AssertionError, IndexError, KeyError, AttributeError))
