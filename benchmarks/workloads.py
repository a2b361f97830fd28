"""Inputs of the benchmarks. Deterministic: the same name and size give the same bytes everywhere."""

from __future__ import annotations

import json
import random


def code(chars: int) -> str:
    """About ``chars`` characters of something like source code, some of it not ASCII."""
    rng = random.Random(f"code {chars}")
    lines, size = [], 0
    while size < chars:
        line = "    " * rng.randint(0, 3) + f'{rng.choice("abcxyz")}_{rng.randint(1, 99)} = "{rng.choice(["path/to", "日本", "été", "plain text"])}"\n'
        lines.append(line)
        size += len(line)
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


def chat_event(arguments: str) -> bytes:
    """One ``chat.completion.chunk`` with an argument fragment, as it stands on the wire."""
    chunk = {
        "id": "chatcmpl-benchmark0000000000000",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "benchmark-model",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}, "logprobs": None, "finish_reason": None}],
        "obfuscation": "q7Zk2",
    }
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def chat_start() -> bytes:
    """The event that announces the call."""
    chunk = {
        "id": "chatcmpl-benchmark0000000000000",
        "object": "chat.completion.chunk",
        "choices": [
            {
                "index": 0,
                "delta": {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "write_file", "arguments": ""}}]},
                "finish_reason": None,
            }
        ],
    }
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def chat_end() -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
