"""Clients of the OpenAI and Anthropic SDKs with and without our parts: the same events, snapshots, results and errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw
from emit_helpers import FIXTURES, load, name
from sdk_readers import MESSAGES, _http_of, _sdk

TOOL = {"name": "lookup_demo_value", "description": "", "strict": True, "parameters": {"type": "object", "properties": {"key": {"type": "string"}}}}


def transport(http: Any, body: bytes, size: int) -> Any:
    """A transport that answers with this body in pieces, to both kinds of client."""

    class Body(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            return (body[i : i + size] for i in range(0, len(body), size))

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self:
                yield piece

    return http.MockTransport(lambda request: http.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(), request=request))


def client(sdk: Any, kind: str, body: bytes, size: int = 61) -> Any:
    http = pytest.importorskip(_http_of(sdk.DefaultHttpxClient))
    make = http.AsyncClient if kind.startswith("Async") else http.Client
    return getattr(sdk, kind)(api_key="none", http_client=make(transport=transport(http, body, size)), max_retries=0)


def plain(event: Any) -> Any:
    return event.model_dump(mode="json", warnings=False) if hasattr(event, "model_dump") else event


def read(manager: Any) -> list[Any]:
    """Every event as data, as it was when it came, and how it ended."""
    seen: list[Any] = []
    try:
        with manager as stream:
            for event in stream:
                seen.append(plain(event))
    except Exception as error:
        seen.append(f"{type(error).__name__}: {error}")
    return seen


async def read_async(manager: Any) -> list[Any]:
    seen: list[Any] = []
    try:
        async with manager as stream:
            async for event in stream:
                seen.append(plain(event))
    except Exception as error:
        seen.append(f"{type(error).__name__}: {error}")
    return seen


def ask_chat(made: Any) -> Any:
    return made.chat.completions.stream(model="m", messages=MESSAGES, tools=[{"type": "function", "function": TOOL}])


def ask_responses(made: Any) -> Any:
    return made.responses.stream(model="m", input="hi")


def ask_messages(made: Any) -> Any:
    return made.messages.stream(model="m", max_tokens=9, messages=MESSAGES)


def ask_beta(made: Any) -> Any:
    return made.beta.messages.stream(model="m", max_tokens=9, messages=MESSAGES)


ASK = {
    "openai-chat": ("openai", "OpenAI", [ask_chat]),
    "openai-responses": ("openai", "OpenAI", [ask_responses]),
    "anthropic": ("anthropic", "Anthropic", [ask_messages, ask_beta]),
}
PATHS = [path for path in FIXTURES if load(path)[0]["provider"] in ASK and load(path)[0]["framing"] == "sse" and path.parent.name != "quirks"]


def module_of(package: str) -> Any:
    import importlib

    return importlib.import_module(f"toolwire.compat.{package}")


#: What an SDK fails on and toolwire reads: ill-formed UTF-8, which the event-stream standard makes U+FFFD; for Anthropic's, surrogate pairs cut in two.
ONLY_OURS = {"anthropic/file_body"} | {name(path) for path in PATHS if "utf8" in path.name}


@pytest.mark.parametrize("path", [path for path in PATHS if name(path) not in ONLY_OURS], ids=name)
def test_the_same_events_with_and_without(path: Path) -> None:
    expect, body = load(path)
    package, kind, questions = ASK[expect["provider"]]
    sdk = _sdk(package, package)
    for ask in questions:
        expected = read(ask(client(sdk, kind, body)))
        made = client(sdk, kind, body)
        with module_of(package).accelerate(made):
            assert read(ask(made)) == expected
        assert read(ask(made)) == expected
        other = client(sdk, f"Async{kind}", body)
        module_of(package).accelerate(other)
        assert asyncio.run(read_async(ask(other))) == expected


def test_a_surrogate_pair_in_two_deltas_is_read() -> None:
    sdk = _sdk("anthropic", "anthropic")
    _, body = load(next(path for path in PATHS if name(path) == "anthropic/file_body"))
    made = client(sdk, "Anthropic", body)
    assert read(ask_messages(made))[-1].startswith("UnicodeEncodeError")
    with module_of("anthropic").accelerate(made), ask_messages(made) as stream:
        inputs = [block.input for block in stream.get_final_message().content if block.type == "tool_use"]
    turn = tw.Turn("anthropic")
    turn.feed(body)
    assert inputs == [call.value for call in turn.finish().calls]


ARGUMENTS = [
    *('{"a": "x', 'y", "b": [1', "2, 3", '], "c": {"d": tr', 'ue, "e": "', "\\u00", 'e4"}, "f": -', "1.5e", "3", "}"),
]


def messages_body(pieces: list[str]) -> bytes:
    import json

    def event(type: str, **members: Any) -> bytes:
        return f"event: {type}\ndata: {json.dumps({'type': type, **members})}\n\n".encode()

    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None, "stop_sequence": None, "usage": usage}
    out = event("message_start", message=message)
    out += event("content_block_start", index=0, content_block={"type": "tool_use", "id": "t", "name": "f", "input": {}})
    out += b"".join(event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": piece}) for piece in pieces)
    out += event("content_block_stop", index=0)
    out += event("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage=usage)
    return out + event("message_stop")


@pytest.mark.parametrize(
    "pieces",
    [
        *(ARGUMENTS, ["", '{"a"', ""], [" ", "{}"], ['{"a": 1} x', "y"], ["[1 2", ", 3]"], ['{"a" 1}', "x"], ['{"a": 1, "a": ', "2", "}"], ["1", "2"]),
        ['{"a": ', "1" * 4300, "1", "}"],
    ],
    ids=lambda pieces: str(pieces)[:60],
)
@pytest.mark.parametrize("ask", [ask_messages, ask_beta])
def test_a_tools_input_is_shown_as_the_sdk_shows_it(pieces: list[str], ask: Any) -> None:
    """Also what only jiter takes for JSON, and the SDK's words for what is none."""
    sdk = _sdk("anthropic", "anthropic")
    body = messages_body(pieces)
    expected = read(ask(client(sdk, "Anthropic", body)))
    made = client(sdk, "Anthropic", body)
    module_of("anthropic").accelerate(made)
    assert read(ask(made)) == expected
    assert len(expected) > len(pieces) or "ValueError" in expected[-1]


@pytest.mark.parametrize("name", [b"", b"event: message\n", b"event: other\n", b"event: ping\n"])
def test_events_with_and_without_a_name_are_told_apart(name: bytes) -> None:
    sdk = _sdk("anthropic", "anthropic")
    body = name + b'data: {"type":"message_stop"}\n\n'

    def kinds(made: Any) -> list[str]:
        return [event.type for event in made.messages.create(model="m", max_tokens=1, messages=[], stream=True)]

    expected = kinds(client(sdk, "Anthropic", body))
    made = client(sdk, "Anthropic", body)
    module_of("anthropic").accelerate(made)
    assert kinds(made) == expected


@pytest.mark.parametrize(("package", "kind"), [("openai", "OpenAI"), ("anthropic", "Anthropic")])
def test_what_was_changed_is_taken_back(package: str, kind: str) -> None:
    sdk = _sdk(package, package)
    made = client(sdk, kind, b"")
    before = made._make_sse_decoder()
    acceleration = module_of(package).accelerate(made)
    assert type(made._make_sse_decoder()) is not type(before)
    with pytest.raises(tw.UsageError, match="accelerated twice"):
        module_of(package).accelerate(made)
    acceleration.restore()
    acceleration.restore()
    assert type(made._make_sse_decoder()) is type(before)
    assert "_make_sse_decoder" not in vars(made)
    with module_of(package).accelerate(made):
        pass
    assert type(made._make_sse_decoder()) is type(before)


@pytest.mark.parametrize(("package", "kind"), [("openai", "OpenAI"), ("anthropic", "Anthropic")])
def test_an_sdk_that_has_changed_is_refused_and_left_alone(package: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sdk = _sdk(package, package)
    made = client(sdk, kind, b"")
    if package == "openai":
        from openai.lib.streaming.chat._completions import ChatCompletionStreamState as Changed

        monkeypatch.setattr(Changed, "_accumulate_chunk", lambda self, chunk: None)
    else:
        from anthropic.lib.streaming._messages import MessageStream as Changed

        monkeypatch.setattr(Changed, "__stream__", lambda self: iter(()))
    with pytest.raises(tw.UsageError, match=rf"{package} [0-9.]+ is not as this version of toolwire knows it"):
        module_of(package).accelerate(made)
    assert "_make_sse_decoder" not in vars(made)
    with pytest.raises(tw.UsageError, match="takes a client of"):
        module_of(package).accelerate(object())


def test_a_client_with_a_framing_of_its_own_is_refused() -> None:
    sdk = _sdk("anthropic", "anthropic")
    made = sdk.AnthropicBedrock(aws_access_key="none", aws_secret_key="none", aws_region="us-east-1")
    with pytest.raises(tw.UsageError, match="has a decoder of its own"):
        module_of("anthropic").accelerate(made)
