"""What ``TurnResult.replay()`` writes is what the official SDKs take: by their own types, or as what their clients then send."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emit_helpers import name
from sdk_readers import MESSAGES, _sdk
from test_replay import GOOD, finished
from toolwire import UsageError

Messages = list[dict[str, Any]]


def sent(http: str, make: Callable[[Any], Any], ask: Callable[[Any], Any]) -> Any:
    """The body of the request that a client makes."""
    module = pytest.importorskip(http)
    bodies: list[bytes] = []

    def answer(request: Any) -> Any:
        bodies.append(request.read())
        return module.Response(500, json={})

    client = make(module.Client(transport=module.MockTransport(answer)))
    with contextlib.suppress(Exception):  # the answer is none; what counts is what was asked
        ask(client)
    return json.loads(bodies[0])


def typed(param: Any, value: Any) -> Any:
    """By the SDK's own request types. Members that they do not know are refused."""
    pydantic = pytest.importorskip("pydantic")
    return pydantic.TypeAdapter(param).validate_python(value)


def openai_chat(messages: Messages) -> None:
    _sdk("openai", "openai")
    from openai.types.chat import ChatCompletionMessageParam

    for message in messages:
        typed(ChatCompletionMessageParam, message)


def openai_responses(items: Messages) -> None:
    _sdk("openai", "openai")
    from openai.types.responses import ResponseInputItemParam

    for item in items:
        typed(ResponseInputItemParam, item)


def anthropic(messages: Messages) -> None:
    _sdk("anthropic", "anthropic")
    from anthropic.types.beta import BetaMessageParam

    for message in messages:
        typed(BetaMessageParam, message)


def google_generate(contents: Messages) -> None:
    sdk = _sdk("google.genai", "google-genai")
    body = sent(
        "httpx2",
        lambda http: sdk.Client(api_key="none", http_options={"httpx_client": http}),
        lambda client: client.models.generate_content(model="m", contents=contents),
    )
    assert json.dumps(body["contents"], sort_keys=True).replace("tool_type", "toolType") == json.dumps(contents, sort_keys=True)  # the SDK's one slip


def mistral(messages: Messages) -> None:
    sdk = _sdk("mistralai.client", "mistralai")
    body = sent(
        "httpx2",
        lambda http: sdk.Mistral(api_key="none", client=http),
        lambda client: client.chat.complete(model="m", messages=[*MESSAGES, *messages]),
    )
    assert [_subset(mine, theirs) for mine, theirs in zip(messages, body["messages"][1:], strict=True)] == [True] * len(messages)


def cohere(messages: Messages) -> None:
    sdk = _sdk("cohere", "cohere")
    body = sent(
        "httpx",
        lambda http: sdk.ClientV2(api_key="none", httpx_client=http, base_url="http://localhost"),
        lambda client: client.chat(model="m", messages=[*MESSAGES, *messages]),
    )
    assert body["messages"][1:] == messages


def ollama(messages: Messages) -> None:
    _sdk("ollama", "ollama")
    from ollama import Message

    for message in messages:
        for call in message.get("tool_calls", ()):
            call.pop("id", None)  # the SDK's type has none, although newer servers send one
        assert _subset(message, Message.model_validate(message).model_dump(exclude_none=True))


def bedrock(messages: Messages) -> None:
    session = _sdk("botocore.session", "botocore").Session()
    from botocore.validate import ParamValidator

    shape = session.get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    report = ParamValidator().validate({"modelId": "m", "messages": messages}, shape)
    assert not report.has_errors(), report.generate_report()


def _subset(mine: Any, theirs: Any) -> bool:
    """Is everything of mine in theirs? They may add members that are null or have a default."""
    if isinstance(mine, dict):
        return isinstance(theirs, dict) and all(value is None or (key in theirs and _subset(value, theirs[key])) for key, value in mine.items())
    if isinstance(mine, list):
        return isinstance(theirs, list) and len(mine) == len(theirs) and all(map(_subset, mine, theirs))
    return bool(mine == theirs)


TAKES: dict[str, Callable[[Messages], None]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "google-generate": google_generate,
    "mistral": mistral,
    "cohere": cohere,
    "ollama": ollama,
    "bedrock": bedrock,
}


@pytest.mark.parametrize("path", [path for path in GOOD if not path.name.startswith("conversation_")], ids=name)
def test_the_sdk_takes_it(path: Path) -> None:
    result = finished(path)
    if result.provider not in TAKES:
        return
    try:
        messages = result.replay()
    except UsageError:
        return
    if messages:
        TAKES[result.provider](messages)
