"""From bytes to events without a socket: framing, envelopes, whole pipelines, the cost of a turn by its length."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any

import toolwire as tw
from toolwire._projection import Projection
from toolwire.adapters.openai_chat import OpenAIChatAdapter

from . import native, workloads
from .suite import Plan, Run, Shape, Target

# -- framing ----------------------------------------------------------------------------------------------------------
# A run returns the number of events and the number of characters in their data.

EVENTS = 4000


def framed(chunks: list[bytes]) -> Plan:
    def run() -> tuple[int, int]:
        feed, count, size = tw.SSEFramer().feed, 0, 0
        for chunk in chunks:
            for frame in feed(chunk):
                count += 1
                size += len(frame.data)
        return count, size

    return Plan(lambda: run, EVENTS)


def framed_raw(chunks: list[bytes]) -> Plan:
    def run() -> tuple[int, int]:
        feed, count, size = tw.SSEFramer().feed, 0, 0
        for chunk in chunks:
            for frame in feed(chunk):
                count += 1
                size += len(frame.raw)
        return count, size

    return Plan(lambda: run, EVENTS)


def framed_only(chunks: list[bytes]) -> Plan:
    def run() -> None:
        feed = tw.SSEFramer().feed
        for chunk in chunks:
            feed(chunk)

    return Plan(lambda: run, EVENTS)


def openai_decoder(chunks: list[bytes]) -> Plan:
    from openai._streaming import SSEDecoder

    def run() -> tuple[int, int]:
        count = size = 0
        for event in SSEDecoder().iter_bytes(iter(chunks)):
            count += 1
            size += len(event.data)
        return count, size

    return Plan(lambda: run, EVENTS)


def httpx_sse(chunks: list[bytes]) -> Plan:
    """What its EventSource does with the text of a response."""
    from httpx_sse._decoders import SSEDecoder, SSELineDecoder

    def run() -> tuple[int, int]:
        text, lines, events = codecs.getincrementaldecoder("utf-8")(errors="replace"), SSELineDecoder(), SSEDecoder()
        count = size = 0
        for chunk in chunks:
            for line in lines.decode(text.decode(chunk)):
                event = events.decode(line.rstrip("\n"))
                if event is not None:
                    count += 1
                    size += len(event.data)
        return count, size

    return Plan(lambda: run, EVENTS)


def split(chunks: list[bytes]) -> Iterator[bytes]:
    """The least that works with one provider: LF only, one data line an event, bytes."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        for block in whole:
            at = block.find(b"data: ")
            if at >= 0:
                yield block[at + 6 :]


def splitter(chunks: list[bytes]) -> Plan:
    """As ``split``, without the generator's cost."""

    def run() -> tuple[int, int]:
        count = size = 0
        rest = b""
        for chunk in chunks:
            *whole, rest = (rest + chunk).split(b"\n\n")
            for block in whole:
                at = block.find(b"data: ")
                if at >= 0:
                    count += 1
                    size += len(block[at + 6 :])
        return count, size

    return Plan(lambda: run, EVENTS)


def memchr(chunks: list[bytes]) -> Plan:
    newlines = native.load().newlines

    def run() -> None:
        newlines(chunks)

    return Plan(lambda: run, EVENTS)


# -- envelopes --------------------------------------------------------------------------------------------------------
# A run returns the argument text of each event.


def _fields(payload: Any) -> str:
    """What an adapter reads of one chunk, by dict access."""
    text = ""
    for choice in payload["choices"]:
        for entry in choice["delta"].get("tool_calls") or ():
            if entry["index"] == 0:
                text += entry["function"].get("arguments") or ""
        choice["finish_reason"]
    return text


def laned(payloads: list[bytes]) -> Plan:
    """As a turn reads them: by template, to events and the growing argument text of the call."""
    frames = [tw.Frame(payload) for payload in payloads]

    def prepare() -> Run:
        one = tw.Turn("openai-chat")
        one.feed(workloads.chat_start())
        one.feed(workloads.chat_event(" "))
        record, lanes, meet = one._record, one._lanes, one._meet

        def run() -> list[str]:
            events: list[Any] = []
            record.events = events
            lanes.run_frames(frames, record, events, 1 << 30, meet)
            return [event.text for event in events]

        return run

    return Plan(prepare, len(payloads))


def projected(payloads: list[bytes]) -> Plan:
    """Each on its own, to objects of the members that the adapter names."""
    apply = Projection(OpenAIChatAdapter.PROJECTION).apply
    return Plan(lambda: lambda: [_fields(apply(payload)) for payload in payloads], len(payloads))


def orjson_fields(payloads: list[bytes]) -> Plan:
    from orjson import loads

    return Plan(lambda: lambda: [_fields(loads(payload)) for payload in payloads], len(payloads))


def msgspec_fields(payloads: list[bytes]) -> Plan:
    import msgspec

    from .msgspec_types import Chunk

    decode = msgspec.json.Decoder(Chunk).decode

    def fields(payload: bytes) -> str:
        text = ""
        for choice in decode(payload).choices:
            for entry in choice.delta.tool_calls or ():
                if entry.index == 0 and entry.function is not None:
                    text += entry.function.arguments or ""
            choice.finish_reason  # noqa: B018
        return text

    return Plan(lambda: lambda: [fields(payload) for payload in payloads], len(payloads))


# -- an event that is nearly all unread -------------------------------------------------------------------------------


def big_projected(chunks: list[bytes]) -> Plan:
    apply = Projection(OpenAIChatAdapter.PROJECTION).apply

    def run() -> str:
        feed = tw.SSEFramer().feed
        for chunk in chunks:
            for frame in feed(chunk):
                content = apply(frame)["choices"][0]["delta"]["content"]
        return content

    return Plan(lambda: run)


def big_orjson(chunks: list[bytes]) -> Plan:
    from orjson import loads

    def run() -> str:
        held = []
        for chunk in chunks:
            held.append(chunk)
            if chunk.endswith(b"\n\n"):
                content = loads(b"".join(held)[6:])["choices"][0]["delta"]["content"]
        return content

    return Plan(lambda: run)


def big_memchr(chunks: list[bytes]) -> Plan:
    return Plan(memchr(chunks).prepare)


# -- whole pipelines --------------------------------------------------------------------------------------------------
# A run takes the bytes of a reply and returns the calls' arguments; the live arguments are looked at after each delta.


def turn(provider: str, chunks: list[bytes]) -> list[Any]:
    one = tw.Turn(provider)
    feed, delta = one.feed, tw.ArgumentsDelta
    for chunk in chunks:
        for event in feed(chunk):
            if type(event) is delta:
                event.call.value  # noqa: B018 - reading is what is measured
    return [call.value for call in one.finish().calls]


def pipeline(chunks: list[bytes]) -> Plan:
    return Plan(lambda: lambda: turn("openai-chat", chunks), _count(chunks))


def by_hand(chunks: list[bytes]) -> Plan:
    """A splitter, orjson, dict access, and jiter on the growing arguments after each delta."""
    from jiter import from_json
    from orjson import loads

    def run() -> list[Any]:
        buffers: dict[int, bytes] = {}
        for payload in split(chunks):
            if payload == b"[DONE]":
                break
            for choice in loads(payload)["choices"]:
                for entry in choice["delta"].get("tool_calls") or ():
                    arguments = entry["function"].get("arguments")
                    if arguments:
                        index = entry["index"]
                        buffers[index] = buffer = buffers.get(index, b"") + arguments.encode()
                        from_json(buffer, partial_mode="trailing-strings")
        return [loads(buffer) for buffer in buffers.values()]

    return Plan(lambda: run, _count(chunks))


def _count(chunks: list[bytes]) -> int:
    return b"".join(chunks).count(b"data: ") - 3  # without start, end and [DONE]


def _pipeline_shape(kind: str, title: str, text: Any, must: float, aim: float) -> Shape:
    def data(tiny: bool) -> list[bytes]:
        return workloads.chunks(workloads.chat_body([text(tiny)]), 1400)

    contenders = {"toolwire": pipeline, "by hand with jiter": by_hand}
    title = f"whole pipeline, bytes to delta events with live arguments, {title}"
    return Shape(f"pipeline {kind}", title, "µs a delta", data, contenders, (Target("by hand with jiter", must, aim),))


# -- the cost of a turn by length -------------------------------------------------------------------------------------

LENGTHS = {"1 kB": 1000, "10 kB": 10_000, "100 kB": 100_000, "1 MB": 1_000_000}


def turns(name: str) -> Any:
    """As many turns of this length as make 1 MB of arguments, so that all lengths read equally much fresh memory."""

    def contender(tiny: bool) -> Plan:
        length, total = (LENGTHS[name] // 100, 10_000) if tiny else (LENGTHS[name], 1_000_000)
        text = workloads.long_string(length)
        bodies = [workloads.chunks(workloads.chat_body([text]) + b"\n" * i, 1400) for i in range(total // length)]

        def run() -> None:
            for chunks in bodies:
                turn("openai-chat", chunks)

        return Plan(lambda: run, len(bodies) * len(workloads.deltas(text, 4)))

    return contender


def _framing_data(size: int) -> Any:
    return lambda tiny: workloads.chunks(workloads.events(20 if tiny else EVENTS), size)


FRAMERS = {"toolwire": framed, "toolwire, bytes": framed_raw, "openai decoder": openai_decoder, "httpx-sse": httpx_sse, "splitter, bytes": splitter}
SHAPES = [
    Shape(
        "framing",
        "SSE framing, 340 B events in chunks of 1,400 B",
        "µs an event",
        _framing_data(1400),
        FRAMERS,
        (
            Target("openai decoder", 20, 30),
            Target("httpx-sse", 8, 12),
            Target("splitter, bytes", 3.5, 5),
            Target("splitter, bytes", 3.5, 5, ours="toolwire, bytes"),
        ),
    ),
    Shape(
        "framing 64 kB",
        "SSE framing, 340 B events in chunks of 64 kB, against memchr for every line end",
        "µs an event",
        _framing_data(65536),
        {"toolwire, bytes": framed_raw, "toolwire, frames only": framed_only, "memchr": memchr},
        (Target("memchr", 3, ours="toolwire, frames only", at_most=True),),
    ),
    Shape(
        "envelope",
        "provider envelope of 340 B to the fields an adapter needs",
        "µs an event",
        lambda tiny: workloads.envelopes(False),
        {"toolwire": laned, "toolwire, one on its own": projected, "orjson + dict access": orjson_fields, "msgspec Structs": msgspec_fields},
        (Target("orjson + dict access", 2.5, 8), Target("msgspec Structs", 1.5, 5)),
    ),
    Shape(
        "envelope logprobs",
        "the same with 20 top logprobs",
        "µs an event",
        lambda tiny: workloads.envelopes(True),
        {"toolwire": laned, "toolwire, one on its own": projected, "orjson + dict access": orjson_fields, "msgspec Structs": msgspec_fields},
        (Target("orjson + dict access", 2.5, 20), Target("msgspec Structs", 1.5, 5)),
    ),
    Shape(
        "unread",
        "an event with a 1 MiB string that no adapter reads, in chunks of 64 kB, framed and projected",
        "µs an event",
        lambda tiny: workloads.chunks(workloads.image_event(2000 if tiny else 1 << 20), 65536),
        {"toolwire": big_projected, "orjson": big_orjson, "memchr": big_memchr},
        (Target("orjson", 3, 6), Target("memchr", 12, 5, at_most=True)),
    ),
    _pipeline_shape("300 B", "300 B arguments", lambda tiny: workloads.small(), 4, 10),
    _pipeline_shape("20 kB nested", "20 kB of nested arguments", lambda tiny: workloads.nested(300 if tiny else 20_000), 60, 150),
    _pipeline_shape("100 kB string", "100 kB string arguments", lambda tiny: workloads.long_string(400 if tiny else 100_000), 12, 30),
    Shape(
        "length",
        "cost of a turn by length of its arguments, live value read",
        "µs a delta",
        lambda tiny: tiny,
        {name: turns(name) for name in LENGTHS},
        tuple(Target("1 kB", 1.25, 1.1, ours=name, at_most=True) for name in list(LENGTHS)[1:]),
    ),
]
