"""A body as the frames it was sent in, so that one can be lost, sent twice or overtaken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

# A block up to and with its blank line. The group is atomic: CRLF is one line end, never two.
_SSE_BLOCK = re.compile(rb"(?s).+?(?:(?>\r\n|\r|\n){2,}|\Z)")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Frames:
    """A body in pieces. ``before + between.join(items) + after`` is the body, white space of an array apart."""

    items: tuple[bytes, ...]
    before: bytes = b""
    between: bytes = b""
    after: bytes = b""
    end: bytes = b""  # what ends a frame, where the next one would run into it otherwise

    @classmethod
    def split(cls, body: bytes, framing: str) -> Frames:
        """The frames of a body. What is no whole frame at its end is the last item."""
        if framing == "aws-eventstream":
            return cls(tuple(_messages(body)))
        if framing == "json-array":
            return _array(body)
        if framing == "ndjson":
            return cls(tuple(_LINE.findall(body)), end=b"\n")
        return cls(tuple(_SSE_BLOCK.findall(body)), end=b"\n\n")

    def join(self, items: Iterable[bytes]) -> bytes:
        """A body of other items."""
        whole = list(items)
        for i, item in enumerate(whole[:-1]):
            if self.end and not item.endswith((self.end, b"\r" + self.end, b"\r\r", b"\n\r\n")):
                whole[i] = item + self.end
        return self.before + self.between.join(whole) + self.after


def _messages(body: bytes) -> Iterable[bytes]:
    at = 0
    while at < len(body):
        size = max(16, int.from_bytes(body[at : at + 4], "big"))
        yield body[at : at + size]
        at += size


def _array(body: bytes) -> Frames:
    text = body.decode("utf-8", "surrogateescape")
    at = text.find("[") + 1
    items: list[str] = []
    decoder = json.JSONDecoder()
    try:
        while True:
            at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
            _, end = decoder.raw_decode(text, at)
            items.append(text[at:end])
            at = end
    except ValueError:  # "]", or an element that stops
        rest = text[at:]
    if not rest.startswith("]") and rest:
        items.append(rest)
        rest = ""
    return Frames(tuple(item.encode("utf-8", "surrogateescape") for item in items), b"[", b",\n", rest.encode("utf-8", "surrogateescape"))
