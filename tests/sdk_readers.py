"""The official SDKs as readers of a body: what each makes of it when its own transport brings these bytes, without network.

Each reader returns the calls that a program built on the SDK holds when its loop over the stream is over. An SDK that joins the
pieces itself is asked for its own result. One that only hands out pieces gets the loop of its own documentation: pieces of one
index are one call, their texts are joined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

MESSAGES: Any = [{"role": "user", "content": "hi"}]


class Call(NamedTuple):
    id: str | None
    name: str | None
    arguments: Any  # as the SDK hands them out: text, or a value


def _transport(http: Any, body: bytes, media: str = "text/event-stream") -> Any:
    """A transport of this HTTP library that answers every request with this body, in pieces."""

    class Body(http.SyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            return _pieces(body)

    return http.MockTransport(lambda request: http.Response(200, headers={"content-type": media}, stream=Body(), request=request))


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[i : i + 97] for i in range(0, len(body), 97))


def _client(http: str, body: bytes) -> Any:
    module = pytest.importorskip(http)
    return module.Client(transport=_transport(module, body))


def _sdk(name: str, package: str) -> Any:
    return pytest.importorskip(name, reason=f"{package} is not installed")


def _http_of(client: type) -> str:
    """The HTTP library that an SDK's own client comes from: httpx or its successor."""
    return next(name for base in client.__mro__ if (name := base.__module__.partition(".")[0]).startswith("httpx"))


def openai_chat(body: bytes) -> list[Call]:
    sdk = _sdk("openai", "openai")
    client = sdk.OpenAI(api_key="none", http_client=_client(_http_of(sdk.DefaultHttpxClient), body), max_retries=0)
    with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
        for _ in stream:
            pass
        choices = stream.get_final_completion().choices
    calls = [Call(call.id, call.function.name, call.function.arguments) for choice in choices for call in choice.message.tool_calls or ()]
    legacy = [choice.message.function_call for choice in choices if choice.message.function_call]
    return calls + [Call(None, call.name, call.arguments) for call in legacy]


def openai_responses(body: bytes) -> list[Call]:
    sdk = _sdk("openai", "openai")
    client = sdk.OpenAI(api_key="none", http_client=_client(_http_of(sdk.DefaultHttpxClient), body), max_retries=0)
    with client.responses.stream(model="m", input="hi") as stream:
        for _ in stream:
            pass
        output = stream.get_final_response().output
    calls = []
    for item in output:
        if item.type == "function_call":
            calls.append(Call(item.call_id, item.name, item.arguments))
        elif item.type == "custom_tool_call":
            calls.append(Call(item.call_id, item.name, item.input))
        elif item.type == "shell_call" and item.environment.type == "local":
            calls.append(Call(item.call_id, item.type, item.action.to_dict()))
    return calls


def anthropic(body: bytes) -> list[Call]:
    sdk = _sdk("anthropic", "anthropic")
    client = sdk.Anthropic(api_key="none", http_client=_client(_http_of(sdk.DefaultHttpxClient), body), max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        for _ in stream:
            pass
        content = stream.get_final_message().content
    return [Call(block.id, block.name, block.input) for block in content if block.type == "tool_use"]


def google_generate(body: bytes) -> list[Call]:
    sdk = _sdk("google.genai", "google-genai")
    client = sdk.Client(api_key="none", http_options={"httpx_client": _client("httpx2", body)})
    return [
        Call(call.id, call.name, call.args)
        for chunk in client.models.generate_content_stream(model="m", contents="hi")
        for candidate in chunk.candidates or ()
        for part in (candidate.content and candidate.content.parts) or ()
        if (call := part.function_call)
    ]


def google_interactions(body: bytes) -> list[Call]:
    sdk = _sdk("google.genai", "google-genai")
    client = sdk.Client(api_key="none", http_options={"httpx_client": _client("httpx2", body)})
    calls: dict[int, list[Any]] = {}
    for event in client.interactions.create(model="m", input="hi", stream=True):
        if event.event_type == "step.start" and event.step.type == "function_call":
            calls[event.index] = [event.step.id, event.step.name, "", event.step.arguments]
        elif event.event_type == "step.delta" and event.delta.type == "arguments_delta":
            calls[event.index][2] += event.delta.arguments or ""
    return [Call(id_, name, text or start) for id_, name, text, start in calls.values()]


def mistral(body: bytes) -> list[Call]:
    sdk = _sdk("mistralai.client", "mistralai")
    client = sdk.Mistral(api_key="none", client=_client("httpx2", body))
    calls: dict[int, list[Any]] = {}
    with client.chat.stream(model="m", messages=MESSAGES) as stream:
        for event in stream:
            for choice in event.data.choices:
                for call in choice.delta.tool_calls or ():
                    mine = calls.setdefault(call.index, [call.id, call.function.name, None])
                    piece = call.function.arguments
                    mine[2] = piece if mine[2] is None else mine[2] + piece
    return [Call(*call) for call in calls.values()]


def mistral_conversations(body: bytes) -> list[Call]:
    sdk = _sdk("mistralai.client", "mistralai")
    client = sdk.Mistral(api_key="none", client=_client("httpx2", body))
    calls: dict[str, list[Any]] = {}
    with client.beta.conversations.start_stream(inputs="hi") as stream:
        for event in stream:
            piece = event.data
            if piece.type == "function.call.delta" and piece.confirmation_status not in ("pending", "denied"):
                calls.setdefault(piece.tool_call_id, [piece.tool_call_id, piece.name, ""])[2] += piece.arguments
    return [Call(*call) for call in calls.values()]


def cohere(body: bytes) -> list[Call]:
    sdk = _sdk("cohere", "cohere")
    client = sdk.ClientV2(api_key="none", httpx_client=_client("httpx", body), base_url="http://localhost")
    calls: dict[int, list[Any]] = {}
    for event in client.chat_stream(model="m", messages=MESSAGES):
        if event.type == "tool-call-start":
            call = event.delta.message.tool_calls
            calls[event.index] = [call.id, call.function.name, call.function.arguments or ""]
        elif event.type == "tool-call-delta":
            calls[event.index][2] += event.delta.message.tool_calls.function.arguments
    return [Call(*call) for call in calls.values()]


def ollama(body: bytes) -> list[Call]:
    sdk = _sdk("ollama", "ollama")
    client = sdk.Client(host="localhost", transport=_transport(pytest.importorskip("httpx"), body, "application/x-ndjson"))
    return [
        Call(getattr(call, "id", None), call.function.name, dict(call.function.arguments))
        for part in client.chat(model="m", messages=MESSAGES, stream=True)
        for call in part.message.tool_calls or ()
    ]


class _Raw:
    """What botocore takes a streamed body from."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        return _pieces(self.body)


def _bedrock(body: bytes) -> Any:
    session = _sdk("botocore.session", "botocore").Session()
    from botocore.awsrequest import AWSResponse

    client = session.create_client("bedrock-runtime", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    client.meta.events.register("before-send", lambda request, **_: AWSResponse(request.url, 200, headers, _Raw(body)))
    return client


def bedrock_events(body: bytes) -> list[Any]:
    return list(_bedrock(body).converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])["stream"])


def bedrock(body: bytes) -> list[Call]:
    calls: dict[int, list[Any]] = {}
    for event in bedrock_events(body):
        if start := event.get("contentBlockStart", {}).get("start", {}).get("toolUse"):
            if start.get("type") != "server_tool_use":
                calls[event["contentBlockStart"]["contentBlockIndex"]] = [start["toolUseId"], start["name"], ""]
        elif piece := event.get("contentBlockDelta", {}).get("delta", {}).get("toolUse"):
            calls[event["contentBlockDelta"]["contentBlockIndex"]][2] += piece["input"]
    return [Call(*call) for call in calls.values()]


def bedrock_invoke(body: bytes) -> list[Call]:
    """botocore opens the messages, the anthropic SDK reads what was in them; its own reader of Bedrock needs boto3 besides."""
    chunks = _bedrock(body).invoke_model_with_response_stream(modelId="m", body=b"{}")["body"]
    payloads = [event["chunk"]["bytes"] for event in chunks]
    return anthropic(b"".join(b"event: %s\ndata: %s\n\n" % (json.loads(payload).get("type", "").encode(), payload) for payload in payloads))


class Judge(NamedTuple):
    packages: str
    read: Callable[[bytes], list[Call]]


JUDGES = {
    "openai, chat": Judge("openai", openai_chat),
    "openai, responses": Judge("openai", openai_responses),
    "anthropic": Judge("anthropic", anthropic),
    "google-genai, generate": Judge("google-genai", google_generate),
    "google-genai, interactions": Judge("google-genai", google_interactions),
    "mistralai": Judge("mistralai", mistral),
    "mistralai, conversations": Judge("mistralai", mistral_conversations),
    "cohere": Judge("cohere", cohere),
    "ollama": Judge("ollama", ollama),
    "botocore": Judge("botocore", bedrock),
    "botocore, anthropic": Judge("botocore anthropic", bedrock_invoke),
}
#: By provider and framing. No SDK reads google-generate's JSON array (google-genai always asks for SSE), nor decoded Bedrock events.
JUDGE_OF = {
    ("openai-chat", "sse"): "openai, chat",
    ("openai-responses", "sse"): "openai, responses",
    ("anthropic", "sse"): "anthropic",
    ("anthropic", "aws-eventstream"): "botocore, anthropic",
    ("google-generate", "sse"): "google-genai, generate",
    ("google-interactions", "sse"): "google-genai, interactions",
    ("mistral", "sse"): "mistralai",
    ("cohere", "sse"): "cohere",
    ("ollama", "ndjson"): "ollama",
    ("bedrock", "aws-eventstream"): "botocore",
}
