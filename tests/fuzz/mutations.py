"""Damage: each function takes a body and changes it, and may take from another."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from aws_messages import message

VALUES: list[Any] = [None, True, False, 0, 1, -1, 2**63, 1e308, "", "a", "\ud800", "{", "\x00", [], {}, [[]], [None], {"": None}, {"type": "error"}]
TOKENS = [b"\n", b"\r", b"\n\n", b"data: ", b"event: error\n", b"id: 7\n", b"data: [DONE]\n\n", b"\xef\xbb\xbf", b"\xff", b"\x00", b"{", b"}", b"[", b"]", b'"']
TOKENS += [b"\\", b"\\ud83d", b"\\u0000", b"null", b"1e999999", b"-", b",", b":", b"data: {}\n\n", b'{"error":{"message":"x"}}', b":\n", b"\r\n"]


def flip(rng: random.Random, body: bytearray, other: bytes) -> None:
    body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)


def insert(rng: random.Random, body: bytearray, other: bytes) -> None:
    at = rng.randrange(len(body) + 1)
    body[at : at + rng.choice((0, 0, 1, 5))] = rng.choice(TOKENS)


def delete(rng: random.Random, body: bytearray, other: bytes) -> None:
    at = rng.randrange(len(body))
    del body[at : at + rng.choice((1, 2, 20, 200))]


def stop(rng: random.Random, body: bytearray, other: bytes) -> None:
    del body[rng.randrange(len(body)) :]


def splice(rng: random.Random, body: bytearray, other: bytes) -> None:
    at, start = rng.randrange(len(body)), rng.randrange(len(other))
    body[at : at + rng.choice((0, 50))] = other[start : start + rng.choice((10, 100, 1000))]


def lines(rng: random.Random, body: bytearray, other: bytes) -> None:
    """A block is repeated, dropped, moved, or comes from another body."""
    blocks, others = bytes(body).split(b"\n\n"), other.split(b"\n\n")
    at = rng.randrange(len(blocks))
    what = rng.randrange(4)
    if what == 0:
        blocks[at:at] = [blocks[at]] * rng.choice((1, 1, 2, 9))
    elif what == 1:
        del blocks[at]
    elif what == 2:
        blocks.insert(rng.randrange(len(blocks)), blocks.pop(at))
    else:
        blocks.insert(at, rng.choice(others))
    body[:] = b"\n\n".join(blocks)


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key or index) of a JSON value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from nodes(value[key])


def changed(rng: random.Random, payload: bytes) -> bytes:
    """A JSON payload with one value replaced, dropped, or put somewhere else."""
    try:
        value = json.loads(payload)
        places = list(nodes(value))
        container, key = rng.choice(places)
    except (ValueError, IndexError, RecursionError):
        return payload
    what = rng.randrange(4)
    if what == 0:
        del container[key]
    elif what == 1:
        there, name = rng.choice(places)
        container[key] = json.loads(json.dumps(there[name]))
    else:
        container[key] = rng.choice(VALUES)
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def values(rng: random.Random, body: bytearray, other: bytes) -> None:
    rows = bytes(body).split(b"\n")
    at = [i for i, row in enumerate(rows) if b"{" in row]
    if at:
        i = rng.choice(at)
        head, brace, rest = rows[i].partition(b"{")
        rows[i] = head + changed(rng, brace + rest)
        body[:] = b"\n".join(rows)


def messages(rng: random.Random, body: bytearray, other: bytes) -> None:
    """Binary messages: one payload or header block changed, with checksums that fit again."""
    whole, at = bytes(body), 0
    parts: list[tuple[bytes, bytes]] = []
    while len(whole) - at >= 16:
        total, headers = int.from_bytes(whole[at : at + 4], "big"), int.from_bytes(whole[at + 4 : at + 8], "big")
        if not 16 <= total <= len(whole) - at or headers > total - 16:
            break
        parts.append((whole[at + 12 : at + 12 + headers], whole[at + 12 + headers : at + total - 4]))
        at += total
    if not parts:
        return
    i = rng.randrange(len(parts))
    head, payload = parts[i]
    what = rng.randrange(4)
    if what == 0:
        parts[i:i] = [parts[i]]
    elif what == 1:
        del parts[i]
    elif what == 2 and head:
        damaged = bytearray(head)
        flip(rng, damaged, b"")
        parts[i] = bytes(damaged), payload
    else:
        parts[i] = head, changed(rng, payload)
    body[:] = b"".join(message(p, h) for h, p in parts) + whole[at:]


MUTATIONS = [flip, insert, delete, stop, splice, lines, lines, values, values, values, values]

PIECES = [b'"', b"\\", b"\\u00e9", b"\\ud83d\\ude00", b"\\ud800", b"\\udc00", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\t", b" ", b"\n", b","]
PIECES += [b":", b"[", b"]", b"{", b"}", b"{}", b"[]", b'"a"', b'"a":', b'["', b'{"a":[', b"x" * 300, b"null", b"true", b"NaN", b"-Infinity", b"-0"]
PIECES += [b"0.10", b"1E5", b"1e400", b"9" * 30]


def piece(rng: random.Random, body: bytearray, other: bytes) -> None:
    at = rng.randrange(len(body) + 1)
    body[at : at + rng.choice((0, 0, 1, 3))] = rng.choice(PIECES)


def repeat(rng: random.Random, body: bytearray, other: bytes) -> None:
    """Some bytes come again, so that keys come twice and arrays grow long."""
    at = rng.randrange(len(body))
    body[at:at] = body[at : at + rng.choice((2, 10, 40))] * rng.choice((1, 1, 3, 60))


DOCUMENT_MUTATIONS = [flip, insert, delete, stop, splice, values, values, piece, piece, piece, repeat]


def mutated(rng: random.Random, seed: bytes, other: bytes, kinds: list[Callable[..., None]]) -> bytes:
    body = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if body:
            rng.choice(kinds)(rng, body, other)
    return bytes(body)
