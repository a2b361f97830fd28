"""Does memory stay flat? Rounds of good, bad and abandoned work, then the resident size against that after the first rounds.

    python tests/endurance.py                     # 1,000,000 rounds, at most 2 MiB more
    python tests/endurance.py --rounds 20000 --most 4

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


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--most", type=float, default=2, help="MiB")
    args = parser.parse_args()
    start, began = 0, time.monotonic()
    for n in range(WARM + args.rounds):
        if n == WARM:
            start = resident()
        ROUNDS[n % len(ROUNDS)](n)
    grown = (resident() - start) / (1 << 20)
    print(f"{args.rounds:,} rounds in {time.monotonic() - began:.0f} s: {grown:+.2f} MiB on {start / (1 << 20):.1f}")
    return 1 if grown > args.most else 0


if __name__ == "__main__":
    sys.exit(main())
