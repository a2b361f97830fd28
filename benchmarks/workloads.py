"""Inputs of the benchmarks. Deterministic: the same name and size give the same bytes everywhere."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

_NAMES = ["value", "index", "result", "stream", "token", "buffer", "offset", "state", "number", "string", "array", "event", "index", "finish", "reason"]


def code(chars: int) -> str:
    """About ``chars`` characters of something like source code, a few of them not ASCII: an escape every 30 characters or so in JSON."""
    rng = random.Random(f"code {chars}")
    lines, size = [], 0
    while size < chars:
        names = [f"{rng.choice(_NAMES)}{rng.choice(['', '_id', '_count', '2'])}" for _ in range(rng.randint(2, 6))]
        line = f"{names[0]}({', '.join(names[1:])})"
        if rng.random() < 0.2:
            line = f'{names[0]} = "{" ".join(names[1:])}"'
        elif rng.random() < 0.1:
            line = f"# {' '.join(names)} {rng.choice(['日本', 'été', '→'])}"
        lines.append("    " * rng.randint(0, 3) + line + "\n")
        size += len(lines[-1])
    return "".join(lines)[:chars]


def long_string(chars: int) -> str:
    """Arguments with one long string: a file body."""
    return json.dumps({"path": "src/main.py", "content": code(chars)}, ensure_ascii=False)


def nested(chars: int) -> str:
    """Arguments of about ``chars`` characters with an array of small objects."""
    rng = random.Random(f"nested {chars}")
    rows, size = [], 0
    while size < chars:
        row = {"id": rng.randrange(10**6), "name": f"row {rng.randrange(999)}", "tags": ["a", "bc"], "at": {"x": rng.random(), "ok": True}}
        rows.append(row)
        size += len(json.dumps(row)) + 2
    return json.dumps({"rows": rows})


def deltas(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def small() -> str:
    """About 300 bytes of arguments, as a model writes them."""
    place = {"lat": 47.3769, "lon": 8.5417, "name": "Zürich"}
    note = 'line one\nline two\twith "quotes" and C:\\path'
    rest = {"days": 7, "units": "metric", "include": ["temp", "wind", "rain"], "hourly": False, "token": None, "limit": 1500.0}
    return json.dumps({"query": "weather next week", "place": place, "note": note, **rest, "tags": [{"k": "a", "v": 1}]}, ensure_ascii=False)


def objects(count: int) -> str:
    """An array of ``count`` small objects, about 100 bytes each."""
    rng = random.Random(f"objects {count}")
    rows = [
        {
            "id": i,
            "name": f"item {rng.randrange(10**6)}",
            "score": round(rng.random() * 100, 3),
            "ok": rng.random() < 0.5,
            "tags": [f"t{rng.randrange(99)}", "common"],
            "sub": {"a": i * 7, "b": None},
        }
        for i in range(count)
    ]
    return json.dumps(rows, separators=(",", ":"))


def _words(rng: random.Random, alphabet: str, count: int) -> str:
    return " ".join("".join(rng.choices(alphabet, k=rng.randint(2, 9))) for _ in range(count))


_LATIN = "abcdefghijklmnopqrstuvwxyz"
_ESCAPED = _LATIN + " " + '"\\\n\t'  # about every tenth character
_CJK = "".join(map(chr, range(0x4E00, 0x5200)))
_CYRILLIC = "".join(map(chr, range(0x430, 0x450)))

ROWS: dict[str, Callable[[random.Random], object]] = {
    "dicts": lambda rng: {
        "id": rng.randrange(10**9),
        "user": {"name": f"user_{rng.randrange(9999)}", "active": rng.random() < 0.5},
        "text": _words(rng, _LATIN, 6),
        "score": round(rng.random() * 1000, 4),
        "tags": ["red", "green", "blue"],
        "parent": None,
    },
    "floats": lambda rng: [rng.random() * 10 ** rng.randint(-3, 3) for _ in range(8)],
    "ascii": lambda rng: {"role": "assistant", "content": _words(rng, _LATIN, 150)},
    "cjk": lambda rng: {"role": "assistant", "content": _words(rng, _CJK, 60)},
    "cyrillic": lambda rng: {"role": "assistant", "content": _words(rng, _CYRILLIC, 60)},
    "escapes": lambda rng: {"role": "assistant", "content": "".join(rng.choices(_ESCAPED, k=400))},
}


def document(kind: str, size: int) -> bytes:
    """A JSON array of about ``size`` bytes, made of rows of one kind."""
    rng = random.Random(f"document {kind} {size}")
    rows: list[bytes] = []
    left = size
    while left > 0:
        rows.append(json.dumps(ROWS[kind](rng), ensure_ascii=False, separators=(",", ":")).encode())
        left -= len(rows[-1]) + 1
    return b"[" + b",".join(rows) + b"]"


_CHUNK = {
    "id": "chatcmpl-benchmark0000000000000",
    "object": "chat.completion.chunk",
    "created": 1790000000,
    "model": "benchmark-model",
    "service_tier": "default",
    "system_fingerprint": "fp_0123456789",
}


def _data(payload: object) -> bytes:
    return b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


def _chat(delta: object, logprobs: object = None, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
    return _data({**_CHUNK, "choices": [choice], "obfuscation": "q7Zk2"})


def chat_event(arguments: str, call: int = 0, logprobs: object = None) -> bytes:
    """One ``chat.completion.chunk`` with an argument fragment, as it stands on the wire."""
    return _chat({"tool_calls": [{"index": call, "function": {"arguments": arguments}}]}, logprobs)


def logprobs(token: str) -> object:
    """What ``logprobs`` and ``top_logprobs=20`` add to an event."""
    rng = random.Random(f"logprobs {token}")
    top = [{"token": f"t{rng.randrange(9999)}", "logprob": -rng.random() * 20, "bytes": [rng.randrange(128)] * 4} for _ in range(20)]
    return {"content": [{**top[0], "top_logprobs": top}], "refusal": None}


def chat_start(call: int = 0) -> bytes:
    """The event that announces the call."""
    function = {"name": "write_file", "arguments": ""}
    return _chat({"role": "assistant", "content": None, "tool_calls": [{"index": call, "id": f"call_{call}", "type": "function", "function": function}]})


def chat_end() -> bytes:
    return _chat({}, reason="tool_calls") + b"data: [DONE]\n\n"


def chat_body(calls: list[str], size: int = 4) -> bytes:
    """A whole reply with one call for each argument text, in deltas of ``size`` characters."""
    parts = []
    for i, text in enumerate(calls):
        before, after = chat_event("?", i).split(b"?")
        parts.append(chat_start(i))
        parts += [before + json.dumps(piece)[1:-1].encode() + after for piece in deltas(text, size)]
    return b"".join([*parts, chat_end()])


def anthropic_body(calls: list[str], size: int = 4) -> bytes:
    """The same as an Anthropic message."""

    def event(kind: str, **members: object) -> bytes:
        return f"event: {kind}\n".encode() + _data({"type": kind, **members})

    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_benchmark", "type": "message", "role": "assistant", "model": "benchmark-model", "content": [], "stop_reason": None}
    parts = [event("message_start", message={**message, "stop_sequence": None, "usage": usage})]
    for i, text in enumerate(calls):
        parts.append(event("content_block_start", index=i, content_block={"type": "tool_use", "id": f"toolu_{i}", "name": "write_file", "input": {}}))
        parts += [event("content_block_delta", index=i, delta={"type": "input_json_delta", "partial_json": piece}) for piece in deltas(text, size)]
        parts.append(event("content_block_stop", index=i))
    parts.append(event("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 99}))
    return b"".join([*parts, event("message_stop")])


def events(count: int) -> bytes:
    """``count`` argument events of about 340 bytes."""
    return b"".join(chat_event(piece) for piece in deltas(code(4 * count), 4))


def image_event(size: int) -> bytes:
    """An event with a base64 string of ``size`` characters in a member that no adapter reads."""
    picture = base64.b64encode(random.Random(f"image {size}").randbytes(size * 3 // 4)).decode()
    delta = {"content": "here", "image": {"b64_json": picture}}
    return _chat(delta)


def envelopes(with_logprobs: bool) -> list[bytes]:
    """The payloads of the chat events of 400 characters of code."""
    pieces = deltas(code(400), 4)
    return [chat_event(piece, logprobs=logprobs(piece) if with_logprobs else None)[6:-2] for piece in pieces]
