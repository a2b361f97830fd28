"""How each provider says that something went wrong: as a response of its own, and in the middle of a stream."""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

_MESSAGE: Final = "This failure was asked for."

#: HTTP status -> (OpenAI and Mistral type, Anthropic type, Google status, Bedrock exception). Others are taken as 500.
_WORDS: Final = {
    400: ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", "ValidationException"),
    401: ("invalid_request_error", "authentication_error", "UNAUTHENTICATED", "UnrecognizedClientException"),
    403: ("invalid_request_error", "permission_error", "PERMISSION_DENIED", "AccessDeniedException"),
    404: ("invalid_request_error", "not_found_error", "NOT_FOUND", "ResourceNotFoundException"),
    429: ("rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED", "ThrottlingException"),
    500: ("server_error", "api_error", "INTERNAL", "InternalServerException"),
    503: ("server_error", "overloaded_error", "UNAVAILABLE", "ServiceUnavailableException"),
    529: ("server_error", "overloaded_error", "UNAVAILABLE", "ServiceUnavailableException"),
}


def error_body(provider: str | None, status: int) -> tuple[bytes, dict[str, str]]:
    """The body of a response with an error status, which is JSON, and the headers that come with it."""
    openai, anthropic, google, amazon = _WORDS.get(status, _WORDS[500])
    headers = {"content-type": "application/json"}
    if status == 429:
        headers["retry-after"] = "1"
    payload: Any
    if provider == "anthropic":
        payload = {"type": "error", "error": {"type": anthropic, "message": _MESSAGE}, "request_id": "req_asked_for"}
    elif provider in ("google-generate", "google-interactions"):
        payload = {"error": {"code": status, "message": _MESSAGE, "status": google}}
    elif provider == "mistral":
        payload = {"object": "error", "message": _MESSAGE, "type": openai, "param": None, "code": str(status)}
    elif provider == "cohere":
        payload = {"id": "asked-for", "message": _MESSAGE}
    elif provider == "ollama":
        payload = {"error": _MESSAGE}
    elif provider == "bedrock":
        payload = {"message": _MESSAGE}
        headers["x-amzn-errortype"] = amazon
    else:
        payload = {"error": {"message": _MESSAGE, "type": openai, "param": None, "code": None}}
    return _json(payload), headers


def error_frame(provider: str | None, framing: str) -> bytes:
    """One frame that reports an error in the middle of a stream whose status was 200."""
    payload: Any
    event = b""
    if provider == "anthropic":
        event, payload = b"event: error\n", {"type": "error", "error": {"type": "overloaded_error", "message": _MESSAGE}}
    elif provider == "openai-responses":
        event, payload = b"event: error\n", {"type": "error", "code": "server_error", "message": _MESSAGE, "param": None}
    elif provider == "google-interactions":
        event, payload = b"event: error\n", {"event_type": "error", "error": {"code": "internal", "message": _MESSAGE}}
    elif provider == "google-generate":
        payload = {"error": {"code": 503, "message": _MESSAGE, "status": "UNAVAILABLE"}}
    elif provider == "ollama":
        payload = {"error": _MESSAGE}
    elif provider == "bedrock":
        payload = {"internalServerException": {"message": _MESSAGE}}
    else:
        payload = {"error": {"message": _MESSAGE, "type": "server_error", "param": None, "code": None}}
    if framing == "aws-eventstream":
        return _exception("internalServerException", _json({"message": _MESSAGE}))
    if framing == "sse":
        return event + b"data: " + _json(payload) + b"\n\n"
    return _json(payload) + (b"\n" if framing == "ndjson" else b"")


def _json(payload: Any) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()


def _exception(name: str, payload: bytes) -> bytes:
    """A modelled exception as one ``application/vnd.amazon.eventstream`` message."""
    headers = b""
    for key, value in ((":exception-type", name), (":content-type", "application/json"), (":message-type", "exception")):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
    prelude = (16 + len(headers) + len(payload)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    head = prelude + zlib.crc32(prelude).to_bytes(4, "big") + headers + payload
    return head + zlib.crc32(head).to_bytes(4, "big")
