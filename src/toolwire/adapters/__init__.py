"""One adapter a wire protocol. A new protocol is one new file and one row in each table here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._base import Adapter, Plain, Profile, TurnRecord, report_error
from ._eventstream import unwrap
from .anthropic import AnthropicAdapter
from .bedrock import EXCEPTIONS, BedrockAdapter
from .cohere import EVENTS as _COHERE
from .cohere import CohereAdapter
from .google_generate import GoogleGenerateAdapter
from .google_interactions import InteractionsAdapter
from .mistral import MistralAdapter
from .mistral_conversations import EVENTS as _CONVERSATIONS
from .ollama import OllamaAdapter
from .openai_chat import OpenAIChatAdapter
from .openai_responses import ResponsesAdapter

__all__ = ["ADAPTERS", "DETECT_PROJECTION", "Adapter", "Plain", "Profile", "TurnRecord", "detect", "report_error", "unwrap"]

ADAPTERS: dict[str, type[Adapter]] = {
    adapter.PROVIDER: adapter
    for adapter in (
        OpenAIChatAdapter,
        ResponsesAdapter,
        AnthropicAdapter,
        GoogleGenerateAdapter,
        InteractionsAdapter,
        MistralAdapter,
        CohereAdapter,
        OllamaAdapter,
        BedrockAdapter,
    )
}

#: What ``detect`` looks at.
DETECT_PROJECTION: Mapping[str, Any] = {
    "type": True,
    "event_type": True,
    "object": True,
    "choices": {},
    "candidates": {},
    "promptFeedback": {},
    "usageMetadata": {},
    "responseId": True,
    "done": True,
    "contentBlockIndex": True,
    "stopReason": True,
    "messageStart": {},
    "contentBlockStart": {},
    "contentBlockDelta": {},
    "messageStop": {},
    **dict.fromkeys(EXCEPTIONS, {}),
    "error": True,
    "code": True,
    "message": True,
}

_ANTHROPIC = frozenset({"message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "content_block_stop", "ping"})
#: Members of decoded events, and of the payloads of binary ones. An event's own name is not in its payload.
_BEDROCK = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "contentBlockIndex", "stopReason", *EXCEPTIONS})
_CHAT_OBJECTS = frozenset({"chat.completion.chunk", "chat.completion"})


def detect(payload: Mapping[str, Any]) -> str | None:
    """The protocol that this payload belongs to, or None where it could be any."""
    event_type = payload.get("event_type")
    if isinstance(event_type, str):
        return InteractionsAdapter.PROVIDER
    kind, thing = payload.get("type"), payload.get("object")
    if isinstance(kind, str):
        if kind.startswith("response."):
            return ResponsesAdapter.PROVIDER
        if kind in _ANTHROPIC:
            return AnthropicAdapter.PROVIDER
        if kind in _CONVERSATIONS:
            return MistralAdapter.PROVIDER
        if kind in _COHERE:
            return CohereAdapter.PROVIDER
        if kind == "error" and isinstance(payload.get("error"), dict):
            return AnthropicAdapter.PROVIDER
    if isinstance(payload.get("candidates"), list) or "promptFeedback" in payload or "usageMetadata" in payload or "responseId" in payload:
        return GoogleGenerateAdapter.PROVIDER
    if isinstance(payload.get("choices"), list) or (isinstance(thing, str) and thing in _CHAT_OBJECTS):
        return OpenAIChatAdapter.PROVIDER
    if isinstance(payload.get("done"), bool) and isinstance(payload.get("message"), dict):
        return OllamaAdapter.PROVIDER
    if _BEDROCK & payload.keys():
        return BedrockAdapter.PROVIDER
    return None
