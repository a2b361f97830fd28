"""Inputs made to cost more than they weigh: each is n units long, and reading it must cost n times something, in work and in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import toolwire as tw
from aws_messages import event
from turn_helpers import calls, chunk, entry, sse


@dataclass(frozen=True)
class Attack:
    make: Callable[[int], bytes]
    read: Callable[[bytes], Any]
    n: int  # units that take some milliseconds
    per_byte: float  # most bytes of memory for each byte received, besides a constant


def parse(size: int = 1 << 16, **options: Any) -> Callable[[bytes], Any]:
    """JSONParser over pieces of this size. The error, if one comes; else the value."""

    def read(data: bytes) -> Any:
        p = tw.JSONParser(**options)
        try:
            for at in range(0, len(data), size):
                p.feed(data[at : at + size])
            return p.finish()
        except tw.StreamError as error:
            return error

    return read


def tapped(path: tuple[str | int, ...], size: int = 1 << 12, *, items: bool, taps: int = 1, forget: bool = False) -> Callable[[bytes], Any]:
    """JSONParser with taps, all of them read after each piece."""

    def read(data: bytes) -> Any:
        p = tw.JSONParser()
        reads = [p.items(path, forget=forget).read if items else p.tap(path).pieces for _ in range(taps)]
        for at in range(0, len(data), size):
            p.feed(data[at : at + size])
            for each in reads:
                each()
        return p.finish()

    return read


def frames(make: Callable[[], Any], size: int = 1 << 16) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        framer = make()
        for at in range(0, len(data), size):
            for frame in framer.feed(data[at : at + size]):
                frame.data  # noqa: B018
        return framer.finish(flush=True)

    return read


def turn(provider: str = "openai-chat", size: int = 1 << 12, *, look: Callable[[tw.Turn], Any] | None = None, **options: Any) -> Callable[[bytes], Any]:
    """A turn and the gate. The error, if one comes; else the decision."""

    def read(data: bytes) -> Any:
        t = tw.Turn(provider, on_cut="return", **options)
        try:
            for at in range(0, len(data), size):
                t.feed(data[at : at + size])
                if look is not None:
                    look(t)
            result = t.finish()
        except tw.StreamError as error:
            t.abort(error)
            return error
        return tw.TurnGate().decide(result)

    return read


def look_at_calls(t: tw.Turn) -> None:
    for call in t.calls:
        repr((call.complete, call.error, call.marks, len(call.snapshot())))


def partial(*pieces: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"functionCall": {"partialArgs": list(pieces), "willContinue": True}}]}}]}


GOOGLE = sse({"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "willContinue": True}}]}}]})
OPEN = sse(calls(entry(0, "c1", "f", "")))

ATTACKS: dict[str, Attack] = {
    "nesting": Attack(lambda n: b"[" * n + b"]" * n, parse(max_depth=1_000_000), 20_000, 90),
    "nesting of objects": Attack(lambda n: b'{"a":' * n + b"1" + b"}" * n, parse(max_depth=1_000_000), 10_000, 50),
    "keys": Attack(lambda n: b"{" + b",".join(b'"key%d":%d' % (i, i) for i in range(n)) + b"}", parse(), 10_000, 10),
    "keys in drips": Attack(lambda n: b"{" + b",".join(b'"key%d":%d' % (i, i) for i in range(n)) + b"}", parse(1), 2_000, 10),
    "one key, again and again": Attack(lambda n: b"{" + b",".join([b'"a":1'] * n) + b"}", parse(), 10_000, 4),
    "lone surrogates": Attack(lambda n: b'"' + b"\\ud800" * n + b'"', parse(surrogates="replace"), 10_000, 4),
    "lone surrogates in drips": Attack(lambda n: b'"' + b"\\ud800" * n + b'"', parse(1, surrogates="keep"), 1_000, 8),
    "control characters": Attack(lambda n: b'"' + b"\x01" * n + b'"', parse(allow_control_characters=True), 50_000, 8),
    "integers of 4,000 digits": Attack(lambda n: b"[" + b",".join([b"7" * 4000] * n) + b"]", parse(), 10, 4),
    "a fraction of many digits": Attack(lambda n: b"0." + b"7" * n + b" ", parse(), 50_000, 4),
    "a fraction of many digits in drips": Attack(lambda n: b"0." + b"7" * n + b" ", parse(1), 4_000, 4),
    "exponents": Attack(lambda n: b"[" + b",".join([b"1e999999"] * n) + b"]", parse(), 10_000, 8),
    "an exponent of many digits": Attack(lambda n: b"1e" + b"9" * n + b" ", parse(), 50_000, 4),
    "short escapes": Attack(lambda n: b'"' + b"\\n" * n + b'"', parse(), 50_000, 4),
    "short escapes in drips": Attack(lambda n: b'"' + b"\\n" * n + b'"', parse(1), 3_000, 4),
    "pairs": Attack(lambda n: b'"' + b"\\ud83d\\ude00" * n + b'"', parse(), 5_000, 4),
    "pairs in drips": Attack(lambda n: b'"' + b"\\ud83d\\ude00" * n + b'"', parse(1), 500, 4),
    "space behind the value": Attack(lambda n: b"1 " + b" " * n, parse(16), 50_000, 4),
    "a tapped string in drips": Attack(lambda n: b'["' + b"x" * n + b'"]', tapped((0,), 1, items=False), 3_000, 8),
    "strings at wildcards": Attack(lambda n: b"[" + b'{"a":["x",["y"]]},' * n + b"1]", tapped(("*", "*", "*"), items=False, taps=8), 1_000, 40),
    "elements at wildcards": Attack(lambda n: b"[" + b'{"a":[[],["y"]]},' * n + b"1]", tapped(("*", "*"), items=True, taps=8), 1_000, 40),
    "elements that are forgotten": Attack(lambda n: b"[" + b"[]," * n + b"1]", tapped((), items=True, forget=True), 5_000, 1),
    "small events": Attack(lambda n: b"data:\n\n" * n, frames(tw.SSEFramer), 5_000, 16),
    "data lines": Attack(lambda n: b"data:\n" * n + b"\n", frames(tw.SSEFramer), 20_000, 4),
    "comments": Attack(lambda n: b":\n" * n, frames(tw.SSEFramer), 50_000, 1),
    "ids": Attack(lambda n: b"id: %d\n\n" * n, frames(tw.SSEFramer), 20_000, 1),
    "names": Attack(lambda n: b"".join(b"event: %d\n\n" % i for i in range(n)), frames(tw.SSEFramer), 10_000, 1),
    "events in drips": Attack(lambda n: b"data: x\n\n" * n, frames(tw.SSEFramer, 1), 300, 4),
    "one line in drips": Attack(lambda n: b"data: " + b"x" * n + b"\n\n", frames(tw.SSEFramer, 1), 3_000, 4),
    "lines": Attack(lambda n: b"1\n" * n, frames(tw.NDJSONFramer), 5_000, 70),
    "elements": Attack(lambda n: b"[" + b"1," * n + b"1]", frames(tw.JSONArrayFramer), 5_000, 70),
    "brackets in an element": Attack(lambda n: b"[" + b"[" * n, frames(tw.JSONArrayFramer, 64), 50_000, 4),
    "binary messages": Attack(lambda n: event("e", {}) * n, frames(tw.AWSEventStreamFramer), 500, 4),
    "empty payloads": Attack(lambda n: b"data:\n\n" * n, turn(), 1_000, 4),
    "comments in a turn": Attack(lambda n: b":x\n" * n, turn(), 20_000, 4),
    "stray JSON": Attack(lambda n: b'{"a":\nx\n' * n, turn(), 500, 4),
    "unknown events": Attack(lambda n: sse({"type": "zzz"}) * n, turn("anthropic"), 300, 4),
    "usage, each time another member": Attack(lambda n: sse(*(chunk(usage={f"k{i}": 1}) for i in range(n))), turn(), 2_000, 4),
    "choices": Attack(lambda n: sse(*(chunk({"content": "x"}, index=i) for i in range(n))), turn(), 300, 8),
    "argument text in drips": Attack(lambda n: OPEN + sse(calls(entry(0, arguments="["))) * n, turn(look=look_at_calls), 200, 4),
    "space behind arguments, looked at": Attack(
        lambda n: OPEN + sse(calls(entry(0, arguments="{}"))) + sse(calls(entry(0, arguments=" " * 500))) * n, turn(look=look_at_calls), 100, 4
    ),
    "a name with each piece": Attack(lambda n: OPEN + sse(calls(entry(0, "c1", "f", " "))) * n, turn(), 300, 4),
    "a new id with each piece": Attack(lambda n: OPEN + sse(*(calls(entry(0, f"c{i}", arguments="1")) for i in range(n))), turn(), 300, 4),
    "pieces that grow": Attack(lambda n: OPEN + sse(*(calls(entry(0, arguments='{"a":"' + "x" * i)) for i in range(n))), turn(), 200, 4),
    "numbers with gaps": Attack(
        lambda n: sse(*({"type": "response.output_text.delta", "sequence_number": 3 * i, "delta": "x", "item_id": "i"} for i in range(n))),
        turn("openai-responses"),
        300,
        4,
    ),
    "streamed arguments": Attack(
        lambda n: GOOGLE + sse(partial(*({"jsonPath": f"$.a[{i % 10_000}]", "stringValue": "x", "willContinue": True} for i in range(n)))),
        turn("google-generate"),
        1_000,
        12,
    ),
    "streamed arguments out of order": Attack(
        lambda n: GOOGLE + sse(*(partial({"jsonPath": f"$.k{i % 2}", "stringValue": "x", "willContinue": True}) for i in range(n))),
        turn("google-generate"),
        300,
        4,
    ),
}

SMALL = tw.Limits(
    max_frame_bytes=2000, max_depth=20, max_argument_chars=500, max_calls=5, max_text_chars=300, max_array_index=99, max_partial_args=50, max_stray_bytes=300
)
#: What runs into each limit of a turn: (limit, provider, body).
OVER: dict[str, tuple[str, bytes]] = {
    "max_frame_bytes": ("openai-chat", b"data: " + b"x" * 3000),
    "max_depth": ("openai-chat", sse("[" * 30)),
    "max_argument_chars": ("openai-chat", OPEN + sse(calls(entry(0, arguments='"' + "x" * 100)), *[calls(entry(0, arguments="x" * 100))] * 6)),
    "max_calls": ("openai-chat", sse(*(calls(entry(i, f"c{i}", "f", "{}")) for i in range(6)))),
    "max_text_chars": ("openai-chat", sse(chunk({"content": "x" * 100})) * 4),
    "max_array_index": ("google-generate", GOOGLE + sse(partial({"jsonPath": "$.a[100]", "numberValue": 1}))),
    "max_partial_args": ("google-generate", GOOGLE + sse(*([partial({"jsonPath": "$.a", "stringValue": "x", "willContinue": True})] * 51))),
    "max_stray_bytes": ("openai-chat", b'{"a":\n' + b'"' + b"x" * 400 + b'"\n'),
}
