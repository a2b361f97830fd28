"""An encoder for ``application/vnd.amazon.eventstream`` messages, for tests: it shares nothing with the framer."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

Header = tuple[str, Any]


def header(name: str, value: Any) -> bytes:
    """One header. ``int`` is an int32; for the other types give ``(type, packed value)``."""
    head = bytes([len(name.encode())]) + name.encode()
    if isinstance(value, tuple):
        return head + bytes([value[0]]) + value[1]
    if isinstance(value, bool):
        return head + (b"\x00" if value else b"\x01")
    if isinstance(value, int):
        return head + b"\x04" + struct.pack(">i", value)
    if isinstance(value, bytes):
        return head + b"\x06" + struct.pack(">H", len(value)) + value
    return head + b"\x07" + struct.pack(">H", len(value.encode())) + value.encode()


def message(payload: bytes = b"", headers: Mapping[str, Any] | bytes = b"") -> bytes:
    """One message with both checksums."""
    block = headers if isinstance(headers, bytes) else b"".join(header(k, v) for k, v in headers.items())
    prelude = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def event(name: str, members: Any) -> bytes:
    """An event as ConverseStream sends it."""
    payload = members if isinstance(members, bytes) else json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()
    return message(payload, {":event-type": name, ":content-type": "application/json", ":message-type": "event"})


def exception(name: str, text: str) -> bytes:
    """A modelled exception."""
    payload = json.dumps({"message": text}).encode()
    return message(payload, {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"})


def error(code: str, text: str) -> bytes:
    """An unmodelled error: all of it in the headers."""
    return message(b"", {":error-code": code, ":error-message": text, ":message-type": "error"})


def chunk(payload: Any) -> bytes:
    """A model's own payload, as InvokeModelWithResponseStream wraps it."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload, ensure_ascii=False).encode()
    return event("chunk", {"bytes": base64.b64encode(raw).decode(), "p": "abcdefg"})
