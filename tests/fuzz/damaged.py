"""What Python sees of the C machines, with damaged fixtures; run by run.py.

``turns``: bodies of every provider, mutated as bytes, as lines and as JSON. However they are cut, the events, the result and the gate's
decision are the same, what holds for every turn holds (tests/turn_helpers.py), and nothing but our own errors comes out.
``parser``: JSONParser against itself and, at every prefix, against tests/oracle.py.
``tokens``: the faces of ijson and json-stream. However a document is cut, and whether it is pulled, pushed or awaited, the same comes out
of it. The faces agree: values at a prefix are what is built of the events there, and all events are what ``loads`` has.
``taps``: ``JSONParser.tap`` and ``items``. However a document is cut, and whenever they are read, opened or pickled, they hand out what a
walk through the events finds finished at each cut.

What breaks that is made as small as it goes and written to ``--found``. The last line printed is the number of inputs played.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from agree_taps import agree_taps, parser_options, tap_options  # noqa: E402
from agree_tokens import agree_tokens, token_options  # noqa: E402
from mutations import DOCUMENT_MUTATIONS, MUTATIONS, flip, messages, mutated, stop  # noqa: E402
from reading import in_cuts  # noqa: E402

import toolwire as tw  # noqa: E402
from helpers import run  # noqa: E402
from test_json_properties import agrees_at_every_prefix  # noqa: E402
from turn_helpers import check, play  # noqa: E402

FIXTURES = HERE.parents[1] / "fixtures"
MOST = 6000  # bytes of a body


def agree_turns(body: bytes, cuts: list[int], options: dict[str, Any]) -> None:
    whole = play([body], **options)
    check(whole)
    facts = whole.facts()
    back = sent_back(whole.result)
    for chunks in in_cuts(body, cuts):
        played = play(chunks, **options)
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
    assert whole == run(tw.JSONParser(**options), in_cuts(body, cuts)[0]), "whole and cut differ"
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


# -- targets


def provider_bodies() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FIXTURES.glob("*/*.expect.json")):
        expect = json.loads(path.read_bytes())
        yield expect["provider"], (path.parent / expect["body"]).read_bytes()[:MOST]


def argument_texts() -> Iterator[tuple[str, bytes]]:
    for path in sorted(FIXTURES.glob("*/*.expect.json")):
        yield from (("", call["text"].encode()) for call in json.loads(path.read_bytes())["calls"] if call["text"])


def documents() -> Iterator[tuple[str, bytes]]:
    """Argument texts, frames of event streams, and as many that are drawn. Most are short: they are read byte by byte, many times."""
    rng = random.Random(1)
    texts = [text for _, text in argument_texts()]
    for _, body in provider_bodies():
        texts += [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: {")]
    yield from (("", text) for text in texts if len(text) < 500 or rng.random() < 0.05)
    for _ in range(2000):
        yield "", drawn(rng, 0).encode()


KEYS = ['"a"', '"a"', '"b"', '"item"', '""', '"*"', '"a.b"', '"0"', '"\\u0061"', '"é"', '"\\ud83d\\ude00"', '"😀"', '"\\ud83d"']
SCALARS = ["null", "true", "false", "0", "-0", "12", "-1.50", "2e3", "1e-7", "0.1", "12345678901234567890"]
SCALARS += ['""', '"text"', '"\\n"', '"\\u00e9é"', '"😀\\ud83d\\ude00"', '"\\ud83dx"', f'"{"long " * 30}"', f'"{"é" * 40}\\t"']


def drawn(rng: random.Random, depth: int) -> str:
    """A document whose keys and shapes repeat."""
    what = rng.random() if depth < 5 else 1
    if depth and what > 0.55:
        return rng.choice(SCALARS)
    n = rng.choice((0, 1, 2, 3, 3, 5)) if depth or rng.random() < 0.98 else 60
    gap = rng.choice(("", "", " ", "\n"))
    if what < 0.3:
        return "{" + f",{gap}".join(f"{rng.choice(KEYS)}:{gap}{drawn(rng, depth + 1)}" for _ in range(n)) + gap + "}"
    return "[" + f"{gap},".join(drawn(rng, depth + 1) for _ in range(n)) + gap + "]"


def turn_options(rng: random.Random, provider: str, body: bytes) -> dict[str, Any]:
    options: dict[str, Any] = {"provider": provider if rng.random() < 0.8 else "auto", "profile": rng.choice(("default", "default", "strict", "tolerant"))}
    if rng.random() < 0.1:
        options["limits"] = tw.Limits(max_frame_bytes=300, max_depth=6, max_argument_chars=30, max_calls=2, max_text_chars=40)
    return options


@dataclass(frozen=True)
class Target:
    bodies: Callable[[], Iterator[tuple[str, bytes]]]
    mutations: list[Callable[..., None]]
    options: Callable[[random.Random, str, bytes], dict[str, Any]]
    agree: Callable[[bytes, list[int], dict[str, Any]], None]


TARGETS = {
    "parser": Target(argument_texts, MUTATIONS, parser_options, agree_parser),
    "tokens": Target(documents, DOCUMENT_MUTATIONS, token_options, agree_tokens),
    "taps": Target(documents, DOCUMENT_MUTATIONS, tap_options, agree_taps),
    "turns": Target(provider_bodies, MUTATIONS, turn_options, agree_turns),
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=TARGETS)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=time.time_ns())
    arguments.add_argument("--found", type=Path, required=True)
    args = arguments.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # of text, where bytes are read
    rng = random.Random(args.seed)
    print("seed", args.seed)
    target = TARGETS[args.what]
    bodies = list(target.bodies())
    trying, found, played = args.found / "killed-by", 0, 0
    deadline = time.monotonic() + args.seconds
    while time.monotonic() < deadline and found < 10:
        provider, seed = rng.choice(bodies)
        kinds = [messages, messages, flip, stop] if b":event-type" in seed else target.mutations
        body = mutated(rng, seed, rng.choice(bodies)[1], kinds)
        cuts = [rng.randrange(1 << 20) for _ in range(rng.randrange(9))]
        options = target.options(rng, provider, body)

        trace = ""

        def breaks(body: bytes, cuts: list[int] = cuts, options: dict[str, Any] = options) -> bool:
            nonlocal trace
            try:
                target.agree(body, cuts, options)
            except Exception:
                trace = traceback.format_exc()
                return True
            return False

        trying.write_bytes(repr((options, cuts, body)).encode())  # a crash leaves it behind
        played += 1
        if breaks(body):
            found += 1
            small = shrunk(body, breaks)
            again = "" if breaks(small) else "not again: what happened before matters, play the seed\n"
            text = f"{args.what} {options!r} cuts={cuts!r} seed={args.seed} number={played}\n{again}{small!r}\n\n{trace}"
            (args.found / f"{args.what}-{found}.txt").write_text(text)
    trying.unlink(missing_ok=True)
    print(played)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
