"""Does memory stay flat? Rounds of good, bad and abandoned work, then the resident size against that after the first rounds.

    python tests/endurance.py                     # 1,000,000 rounds, at most 2 MiB more
    python tests/endurance.py --rounds 20000 --most 4
    python tests/endurance.py --stream 1024       # MiB of small frames, without an end, through each framer and a turn

Exit status 1 if the process has grown by more.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import pickle
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import toolwire as tw

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
WARM = 5_000  # rounds before the first measure: caches, free lists, the allocator's own arenas


def body(name: str) -> tuple[str, bytes]:
    expect = json.loads((FIXTURES / f"{name}.expect.json").read_bytes())
    return expect["provider"], (FIXTURES / name).with_name(expect["body"]).read_bytes()


BODIES = [body(name) for name in ("openai-chat/demo", "anthropic/demo", "google-generate/demo", "openai-responses/demo", "bedrock/demo")]
DOCUMENT = b'{"a":[1,2.5,"x\\n\xc3\xa9",{"b":null}],"long":"' + b"text " * 40 + b'","n":123456789012345678901234567890}'
GATE = tw.TurnGate({"lookup_demo_value": None})


def turn(n: int) -> tw.Turn:
    provider, data = BODIES[n % len(BODIES)]
    t = tw.Turn(provider, on_cut="return")
    for at in range(0, len(data), 400):
        t.feed(data[at : at + 400])
    return t


def good_turn(n: int) -> None:
    assert GATE.decide(turn(n).finish()).action in ("run", "refuse")  # refused: this gate has released it before


def bad_turn(n: int) -> None:
    provider, data = BODIES[n % len(BODIES)]
    t = tw.Turn(provider)
    try:
        for chunk in (data[: len(data) // 2], b"\n\ndata: {broken\n\n", b"\0" * 16, b""):
            t.feed(chunk)
        t.finish()
    except tw.StreamError as error:
        t.abort(error)


def abandoned_turn(n: int) -> None:
    provider, data = BODIES[n % len(BODIES)]
    t = tw.Turn(provider)
    t.feed(data[: n % len(data)])
    for call in t.calls:
        call.extra["itself"] = call  # only the collector finds this
        call.snapshot()


def moved_turn(n: int) -> None:
    provider, data = BODIES[n % len(BODIES)]
    t = tw.Turn(provider, on_cut="return")
    t.feed(data[: n % len(data)])
    t = pickle.loads(pickle.dumps(t))
    t.abort("aborted")


def good_parser(n: int) -> None:
    p = tw.JSONParser()
    cut = n % len(DOCUMENT)
    p.feed(DOCUMENT[:cut])
    kept = p.snapshot()
    p.feed(DOCUMENT[cut:])
    assert p.finish() != kept


def bad_parser(n: int) -> None:
    p = tw.JSONParser(surrogates="replace")
    try:
        p.feed(DOCUMENT[: n % len(DOCUMENT)])
        p.feed(b'"\\ud800\xff\x00]]]}')
    except tw.MalformedJSON:
        p.reset()


def parser_in_its_own_value(n: int) -> None:
    p = tw.JSONParser()
    p.feed(b'{"a":[1,{"b":"open')
    p.value["a"].append(p)


def framers(n: int) -> None:
    for framer in (tw.SSEFramer(max_frame_bytes=300), tw.NDJSONFramer(), tw.JSONArrayFramer(), tw.AWSEventStreamFramer()):
        frames = framer.feed(b"data: x\n\ndata: y\n\nid: 1\ndata: " + b"z" * (n % 400))
        with contextlib.suppress(tw.StreamError):
            frames += framer.feed(b"[[\n")
        repr([(f.data, f.marks) for f in frames])


ROUNDS: list[Callable[[int], None]] = [
    good_parser,
    bad_parser,
    parser_in_its_own_value,
    framers,
    good_turn,
    good_parser,
    bad_parser,
    bad_turn,
    abandoned_turn,
    moved_turn,
]


PIECE = 1 << 16  # bytes of a chunk
EVENT = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":""}}]}\n\n'
#: What has no end, and who reads it.
STREAMS: dict[str, tuple[Callable[[], Any], bytes, bytes]] = {
    "SSEFramer": (tw.SSEFramer, b"", b"data: x\n\n:\n\nid: 7\nevent: e\ndata\n\n"),
    "NDJSONFramer": (tw.NDJSONFramer, b"", b'{"a":1}\n[]\n\n"x"\n'),
    "JSONArrayFramer": (tw.JSONArrayFramer, b"[", b'{"a":1},[],1,"x",'),
    "JSONParser, elements forgotten": (tw.JSONParser, b"[", b'{"a":1},[],1,"x",'),
    "Turn": (lambda: tw.Turn("openai-chat"), b"", EVENT + b": ping\n\n"),
}


def stream(name: str, size: int) -> int:
    """Feed so many bytes, and drop what comes out. By how many bytes the process has grown since the first sixteenth."""
    make, start, piece = STREAMS[name]
    reader = make()
    tap = reader.items((), forget=True) if isinstance(reader, tw.JSONParser) else None
    chunk, before = piece * (PIECE // len(piece)), 0
    reader.feed(start)
    for n in range(rounds := max(16, size // len(chunk))):
        if n == rounds // 16:
            before = resident()
        reader.feed(chunk)
        if tap is not None:
            tap.read()
    return resident() - before


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--most", type=float, default=2, help="MiB")
    parser.add_argument("--stream", type=int, metavar="MIB", help="streams in place of rounds")
    args = parser.parse_args()
    start, began = 0, time.monotonic()
    if args.stream:
        most = 0.0
        for name in STREAMS:
            grown = stream(name, args.stream << 20) / (1 << 20)
            print(f"{name:32} {args.stream:,} MiB: {grown:+.2f} MiB")
            most = max(most, grown)
        return 1 if most > args.most else 0
    for n in range(WARM + args.rounds):
        if n == WARM:
            start = resident()
        ROUNDS[n % len(ROUNDS)](n)
    grown = (resident() - start) / (1 << 20)
    print(f"{args.rounds:,} rounds in {time.monotonic() - began:.0f} s: {grown:+.2f} MiB on {start / (1 << 20):.1f}")
    return 1 if grown > args.most else 0


if __name__ == "__main__":
    sys.exit(main())
