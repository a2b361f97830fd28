"""What AWS puts around a provider's payloads, taken off before an adapter sees them.

- A message of the type ``exception`` or ``error`` becomes an error payload like everybody's, whatever its own payload looks
  like: no adapter can take it for an event.
- A ``chunk`` (InvokeModelWithResponseStream) holds the model's own payload in base64.
- Every other event stays as it is; its name is ``frame.event``.
"""

from __future__ import annotations

import binascii
import json
from typing import Any

from .._framing import Frame
from ..errors import MalformedFrame
from ._base import compact_json


def unwrap(frame: Frame) -> Frame:
    """The frame that the adapter has to see.

    Raises:
        MalformedFrame: ``frame.bad_payload``, a chunk without base64 in it; ``frame.protocol``, an unknown message type.
    """
    headers = frame.headers or {}
    kind = headers.get(":message-type")
    if kind == "event":
        return _model_payload(frame) if frame.event == "chunk" else frame
    if kind not in ("exception", "error"):
        raise MalformedFrame(f"a message of the unknown type {kind!r}", code="frame.protocol", offset=frame.offset)
    said = _object(frame)
    error: dict[str, Any] = {**said, "type": frame.event}
    message = headers.get(":error-message") or said.get("message") or said.get("Message")
    error["message"] = message if isinstance(message, str) else frame.data or frame.event or str(kind)
    return Frame(compact_json({"error": error}).encode("utf-8", "surrogatepass"), event="error", offset=frame.offset, data_offset=frame.data_offset)


def _model_payload(frame: Frame) -> Frame:
    text = _object(frame).get("bytes")
    try:
        if not isinstance(text, str):
            raise ValueError("no text under 'bytes'")
        raw = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise MalformedFrame(f"a chunk without a payload in base64: {error}", code="frame.bad_payload", offset=frame.offset) from None
    return Frame(raw, event="chunk", offset=frame.offset, data_offset=frame.data_offset)


def _object(frame: Frame) -> dict[str, Any]:
    try:
        value = json.loads(frame.raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
