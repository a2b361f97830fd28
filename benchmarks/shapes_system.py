"""Over a loopback socket, and the memory of idle streams."""

from __future__ import annotations

import atexit
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import toolwire as tw

from . import workloads
from .shapes_sdk import MESSAGES, chat
from .shapes_wire import turn
from .suite import Plan, Shape, Target

ROOT = Path(__file__).resolve().parents[1]
REQUEST = {"model": "m", "messages": MESSAGES, "stream": True}

# -- over a socket ----------------------------------------------------------------------------------------------------


class Server(NamedTuple):
    url: str
    units: int


def serve(tiny: bool) -> Server:
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.server", "tiny" if tiny else "full"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None and child.stdout is not None

    def stop() -> None:
        child.communicate()  # the end of its standard input ends it

    atexit.register(stop)
    return Server(f"http://127.0.0.1:{int(child.stdout.readline())}/v1", b"".join(chat(tiny)).count(b'"arguments"'))


def _httpx2(server: Server, read: Any) -> Plan:
    import httpx2

    client = httpx2.Client()

    def run() -> Any:
        with client.stream("POST", server.url + "/chat/completions", json=REQUEST) as response:
            return read(response.iter_raw())

    return Plan(lambda: run, server.units)


def socket_turn(server: Server) -> Plan:
    return _httpx2(server, lambda chunks: turn("openai-chat", chunks))


def socket_bare(server: Server) -> Plan:
    def read(chunks: Any) -> None:
        for _chunk in chunks:
            pass

    return _httpx2(server, read)


def f3dx(server: Server) -> Plan:
    """Its own HTTP stack; argument text put together here, no partial values."""
    import f3dx as library

    client = library.OpenAI(api_key="none", base_url=server.url, http2=False)

    def run() -> list[Any]:
        calls: dict[int, str] = {}
        for chunk in client.chat_completions_create_stream(dict(REQUEST)):
            for choice in chunk["choices"]:
                for entry in choice["delta"].get("tool_calls") or ():
                    calls[entry["index"]] = calls.get(entry["index"], "") + (entry["function"].get("arguments") or "")
        return [json.loads(text) for text in calls.values()]

    return Plan(lambda: run, server.units)


# -- memory -----------------------------------------------------------------------------------------------------------
# A stream has given 1,000 characters of arguments and half an event. Each kind is held many times in a process of its own.

STREAMS = 4000
PIECES = workloads.deltas(workloads.long_string(2000)[:1000], 4)


def held_turn() -> Any:
    one = tw.Turn("openai-chat")
    for event in (workloads.chat_start(), *map(workloads.chat_event, PIECES), workloads.chat_event("half")[:150]):
        one.feed(event)
    return one, one.calls[0].value


def held_parser() -> Any:
    parser = tw.JSONParser()
    for piece in PIECES:
        parser.feed(piece)
    return parser, parser.value


def held_values() -> Any:
    """What the user asked for: the arguments so far, their exact text, and the call's id and name."""
    return held_arguments(), "".join(PIECES), "".join(list("call_0")), "".join(list("write_file"))


def held_arguments() -> Any:
    return {key: "".join(list(text)) for key, text in _value().items()}


def _value() -> dict[str, str]:
    parser = tw.JSONParser()
    for piece in PIECES:
        parser.feed(piece)
    value: dict[str, str] = parser.snapshot()
    return value


HELD = {"turn": held_turn, "parser": held_parser, "values": held_values, "arguments": held_arguments}


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bytes_each(kind: str) -> float:
    """Resident bytes of one more stream; for a fresh process."""
    make = HELD[kind]
    first = [make() for _ in range(100)]  # imports, caches, first arenas
    gc.collect()
    before = _resident()
    more = [make() for _ in range(STREAMS)]
    gc.collect()
    taken = (_resident() - before) / len(more)
    assert first
    return taken


def resident(quick: bool) -> dict[str, list[float]]:
    if not sys.platform.startswith("linux"):
        return {}
    rounds = []
    for _ in range(3 if quick else 7):
        each = {}
        for kind in HELD:
            done = subprocess.run([sys.executable, "-m", "benchmarks", "--held", kind], cwd=ROOT, check=True, capture_output=True, text=True)
            each[kind] = float(done.stdout)
        rounds.append(each)
    return {
        "toolwire": [each["turn"] - each["values"] for each in rounds],
        "a JSONParser alone": [each["parser"] - each["arguments"] for each in rounds],
        "the user's values": [each["values"] for each in rounds],
    }


SHAPES = [
    Shape(
        "socket",
        "over a loopback socket, 3 calls of 2,000 deltas, bytes from httpx2's iter_raw, whole loop with live arguments",
        "µs a delta",
        serve,
        {"toolwire": socket_turn, "bare transport": socket_bare, "f3dx, no partial values": f3dx},
        (Target("bare transport", 1.4, at_most=True), Target("f3dx, no partial values", 1.8)),
    ),
    Shape(
        "memory",
        "resident memory of an idle half-finished stream (a Turn) beyond the user's own values",
        "bytes a stream",
        bool,
        {},
        (Target(None, 1500, 500, at_most=True), Target(None, 1500, 500, ours="a JSONParser alone", at_most=True)),
        direct=resident,
    ),
]
