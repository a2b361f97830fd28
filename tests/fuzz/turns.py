"""The path from bytes to decisions, with damaged fixtures; run by run.py.

``turns``: bodies of every provider, mutated as bytes, as lines and as JSON. However they are cut, the events, the result and the gate's
decision are the same, what holds for every turn holds (tests/turn_helpers.py), and nothing but our own errors comes out.
``parser``: JSONParser against itself and, at every prefix, against tests/oracle.py.

What breaks that is made as small as it goes and written to ``--found``. The last line printed is the number of inputs played.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import toolwire as tw  # noqa: E402
from aws_messages import message  # noqa: E402
from helpers import run  # noqa: E402
from test_json_properties import agrees_at_every_prefix  # noqa: E402
from turn_helpers import check, cut, play  # noqa: E402

FIXTURES = HERE.parents[1] / "fixtures"
MOST = 6000  # bytes of a body
VALUES: list[Any] = [None, True, False, 0, 1, -1, 2**63, 1e308, "", "a", "\ud800", "{", "\x00", [], {}, [[]], [None], {"": None}, {"type": "error"}]
TOKENS = [b"\n", b"\r", b"\n\n", b"data: ", b"event: error\n", b"id: 7\n", b"data: [DONE]\n\n", b"\xef\xbb\xbf", b"\xff", b"\x00", b"{", b"}", b"[", b"]", b'"']
TOKENS += [b"\\", b"\\ud83d", b"\\u0000", b"null", b"1e999999", b"-", b",", b":", b"data: {}\n\n", b'{"error":{"message":"x"}}', b":\n", b"\r\n"]

# -- mutations: each takes a body and may take from another


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


def mutated(rng: random.Random, seed: bytes, other: bytes, kinds: list[Callable[..., None]]) -> bytes:
    body = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if body:
            rng.choice(kinds)(rng, body, other)
    return bytes(body)


# -- what must hold


def agree_turns(provider: str, body: bytes, cuts: list[int], options: dict[str, Any]) -> None:
    whole = play([body], provider, **options)
    check(whole)
    facts = whole.facts()
    back = sent_back(whole.result)
    for chunks in (cut(body, (c % (len(body) + 1) for c in cuts)), [body[i : i + 1] for i in range(len(body))]):
        played = play(chunks, provider, **options)
        for one, other in zip(facts, played.facts(), strict=True):
            assert one == other, "whole and cut differ"
        assert sent_back(played.result) == back, "what is sent back depends on the cuts"


def sent_back(result: tw.TurnResult) -> str:
    try:
        return json.dumps([result.replay(), str(result.next_request())])
    except tw.UsageError as error:
        return str(error)


def agree_parser(body: bytes, cuts: list[int], options: dict[str, Any]) -> None:
    whole = run(tw.JSONParser(**options), [body])
    assert whole == run(tw.JSONParser(**options), cut(body, (c % (len(body) + 1) for c in cuts))), "whole and cut differ"
    agrees_at_every_prefix(body[:150], options)


def shrunk(body: bytes, breaks: Callable[[bytes], bool]) -> bytes:
    """The body with all pieces left out that it takes not to break."""
    size, deadline = max(1, len(body) // 2), time.monotonic() + 20
    while time.monotonic() < deadline:
        for at in range(0, len(body), size):
            shorter = body[:at] + body[at + size :]
            if breaks(shorter):
                body = shorter
                break
        else:
            if size == 1:
                break
            size //= 2
    return body


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=["turns", "parser"])
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=time.time_ns())
    arguments.add_argument("--found", type=Path, required=True)
    args = arguments.parse_args()
    rng = random.Random(args.seed)
    print("seed", args.seed)
    bodies: list[tuple[str, bytes]] = []
    for path in sorted(FIXTURES.glob("*/*.expect.json")):
        expect = json.loads(path.read_bytes())
        if args.what == "turns":
            bodies.append((expect["provider"], (path.parent / expect["body"]).read_bytes()[:MOST]))
        else:
            bodies += [("", call["text"].encode()) for call in expect["calls"] if call["text"]]
    trying, found, played = args.found / "killed-by", 0, 0
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline and found < 10:
        provider, seed = rng.choice(bodies)
        binary = b":event-type" in seed
        body = mutated(rng, seed, rng.choice(bodies)[1], [messages, messages, flip, stop] if binary else MUTATIONS)
        cuts = [rng.randrange(1 << 20) for _ in range(rng.randrange(9))]
        options: dict[str, Any] = {}
        if args.what == "turns":
            options["profile"] = rng.choice(("default", "default", "strict", "tolerant"))
            if rng.random() < 0.2:
                provider = "auto"
            if rng.random() < 0.1:
                options["limits"] = tw.Limits(max_frame_bytes=300, max_depth=6, max_argument_chars=30, max_calls=2, max_text_chars=40)
        else:
            options = {
                "surrogates": rng.choice(("error", "replace", "keep")),
                "duplicate_keys": rng.choice(("last", "error")),
                "allow_nan": rng.random() < 0.5,
                "allow_control_characters": rng.random() < 0.5,
                "max_depth": rng.choice((2, 512)),
            }

        def agree(body: bytes, provider: str = provider, cuts: list[int] = cuts, options: dict[str, Any] = options) -> None:
            agree_turns(provider, body, cuts, options) if args.what == "turns" else agree_parser(body, cuts, options)

        def breaks(body: bytes) -> bool:
            try:
                agree(body)
            except Exception:
                return True
            return False

        trying.write_bytes(repr((provider, options, cuts, body)).encode())  # a crash leaves it behind
        played += 1
        if breaks(body):
            found += 1
            small = shrunk(body, breaks)
            try:
                agree(small)
            except Exception:
                text = f"{args.what} {provider!r} {options!r} cuts={cuts!r}\n{small!r}\n\n{traceback.format_exc()}"
                (args.found / f"{args.what}-{found}.txt").write_text(text)
    trying.unlink(missing_ok=True)
    print(played)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
