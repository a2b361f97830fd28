"""Whole pipelines against the SDKs: three calls with arguments of 8 kB in 2,000 deltas each, from a transport without sockets."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from . import workloads
from .shapes_wire import turn
from .suite import Plan, Shape, Target

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would fetch it otherwise
os.environ.setdefault("LANGSMITH_TRACING", "false")
MESSAGES = [{"role": "user", "content": "hi"}]
_PROPERTIES = {"path": {"type": "string"}, "content": {"type": "string"}}
_SCHEMA = {"type": "object", "properties": _PROPERTIES, "required": ["path", "content"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "write_file", "parameters": _SCHEMA}}]


def texts(tiny: bool) -> list[str]:
    return [workloads.long_string(length) for length in ((300,) if tiny else (7800, 7900, 8000))]


def chat(tiny: bool) -> list[bytes]:
    return workloads.chunks(workloads.chat_body(texts(tiny)), 1400)


def anthropic(tiny: bool) -> list[bytes]:
    return workloads.chunks(workloads.anthropic_body(texts(tiny)), 1400)


def _clients(sdk_client: type, chunks: list[bytes]) -> tuple[Any, Any]:
    """A synchronous and an asynchronous client of the HTTP library that the SDK uses, which answer with these chunks."""
    try:
        import httpx2 as http

        if not issubclass(sdk_client, http.Client):
            raise ImportError
    except ImportError:
        import httpx as http

    class Body(http.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return iter(chunks)

    def answer(request: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream; charset=utf-8"}, stream=Body(), request=request)

    return http.Client(transport=http.MockTransport(answer)), http.AsyncClient()


def _units(chunks: list[bytes], mark: bytes) -> int:
    return b"".join(chunks).count(mark)


def _openai(chunks: list[bytes]) -> Any:
    import openai

    return openai.OpenAI(api_key="none", http_client=_clients(openai.DefaultHttpxClient, chunks)[0], max_retries=0)


def toolwire_chat(chunks: list[bytes]) -> Plan:
    return Plan(lambda: lambda: turn("openai-chat", chunks), _units(chunks, b'"arguments"'))


def toolwire_anthropic(chunks: list[bytes]) -> Plan:
    return Plan(lambda: lambda: turn("anthropic", chunks), _units(chunks, b'"partial_json"'))


def openai_stream(chunks: list[bytes]) -> Plan:
    client = _openai(chunks)

    def run() -> list[Any]:
        with client.chat.completions.stream(model="m", messages=MESSAGES, tools=TOOLS) as stream:
            for event in stream:
                if event.type == "tool_calls.function.arguments.delta":
                    event.parsed_arguments  # noqa: B018
            message = stream.get_final_completion().choices[0].message
        return [json.loads(call.function.arguments) for call in message.tool_calls]

    return Plan(lambda: run, _units(chunks, b'"arguments"'))


def anthropic_stream(chunks: list[bytes]) -> Plan:
    import anthropic as sdk

    client = sdk.Anthropic(api_key="none", http_client=_clients(sdk.DefaultHttpxClient, chunks)[0], max_retries=0)

    def run() -> list[Any]:
        with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            for event in stream:
                if event.type == "input_json":
                    event.snapshot  # noqa: B018
            return [block.input for block in stream.get_final_message().content]

    return Plan(lambda: run, _units(chunks, b'"partial_json"'))


def langchain(chunks: list[bytes]) -> Plan:
    import openai
    from langchain_openai import ChatOpenAI

    client, other = _clients(openai.DefaultHttpxClient, chunks)
    model = ChatOpenAI(model="m", api_key="none", http_client=client, http_async_client=other, max_retries=0)

    def run() -> list[Any]:
        whole = None
        for chunk in model.stream("hi"):
            whole = chunk if whole is None else whole + chunk
            whole.tool_calls  # noqa: B018
        return [call["args"] for call in whole.tool_calls]

    return Plan(lambda: run, _units(chunks, b'"arguments"'))


def litellm(chunks: list[bytes]) -> Plan:
    """It has no live arguments; the text is put together here."""
    import litellm as library

    client = _openai(chunks)
    library.telemetry = False
    library.suppress_debug_info = True

    def run() -> list[Any]:
        calls: dict[int, str] = {}
        for chunk in library.completion(model="openai/m", messages=MESSAGES, stream=True, client=client, tools=TOOLS):
            for entry in chunk.choices[0].delta.tool_calls or ():
                calls[entry.index] = calls.get(entry.index, "") + (entry.function.arguments or "")
        return [json.loads(text) for text in calls.values()]

    return Plan(lambda: run, _units(chunks, b'"arguments"'))


def _quiet(contender: Callable[[list[bytes]], Plan]) -> Callable[[list[bytes]], Plan]:
    def plan(chunks: list[bytes]) -> Plan:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return contender(chunks)

    return plan


def _shape(name: str, peer: str, contender: Callable[[list[bytes]], Plan], must: float) -> Shape:
    wire, ours = (anthropic, toolwire_anthropic) if name == "anthropic" else (chat, toolwire_chat)
    measure = f"whole pipeline, 3 calls with 8 kB arguments, against {peer}"
    return Shape(f"sdk {name}", measure, "µs a delta", wire, {"toolwire": ours, peer: _quiet(contender)}, (Target(peer, must),))


SHAPES = [
    _shape("openai", "openai chat .stream()", openai_stream, 200),
    _shape("anthropic", "anthropic messages.stream()", anthropic_stream, 60),
    _shape("langchain", "langchain-openai", langchain, 600),
    _shape("litellm", "litellm", litellm, 1000),
]
