"""JSON that has not ended, as text that has: cut behind what is whole, and closed."""

from __future__ import annotations

import json
import re

from .._json import JSONParser

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[{}\[\],:]|[^"{}\[\],:\s]+', re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = (b"true", b"false", b"null", b"NaN", b"Infinity", b"-Infinity")


def closed(data: bytes, *, strings: bool) -> bytes:
    """The document that a parser shows of ``data``, which may end anywhere and is no wrong JSON so far; empty where there is no value.

    Args:
        strings: with the open string at the end, as far as it came.
    """
    stack: list[bytes] = []
    good = 0
    tail = b""
    in_key = False
    for token in TOKEN.finditer(data):
        text, first = token.group(), token.group()[:1]
        if first in (b"{", b"["):
            stack.append(b"}" if first == b"{" else b"]")
            in_key = first == b"{"
        elif first in (b"}", b"]"):
            stack.pop()
            in_key = False
        elif first == b",":
            in_key = stack[-1] == b"}"
            continue
        elif first == b":":
            in_key = False
            continue
        elif in_key:
            continue
        elif first == b'"':
            if not _is_whole(text):
                tail = _shown(text) if strings else b""
                if tail:
                    good = token.start()
                break
        elif token.end() == len(data) and text not in _WORDS and not _NUMBER.fullmatch(text):
            break
        good = token.end()
        if not stack:
            break
    return data[:good] + tail + b"".join(reversed(stack)) if good or tail else b""


def _is_whole(text: bytes) -> bool:
    """Is this string closed by a quote that is not escaped?"""
    return len(text) > 1 and text.endswith(b'"') and (len(text) - 1 - len(text[:-1].rstrip(b"\\"))) % 2 == 0


def _shown(text: bytes) -> bytes:
    """An open string as far as a parser shows it, closed."""
    parser = JSONParser()
    parser.feed(text)
    return json.dumps(parser.value, ensure_ascii=False).encode()
