"""Real HTTP clients, faulty turns over real sockets, and what went wrong: python tests/faults/run.py --turns 20000 --seed 1 --jobs 2

Each turn draws a recording, a fault, a chunking and a client from its own number, so that turn 4711 of seed 1 is always the same:
--turn 4711 plays it alone and shows it. Exit status 1 if anything was released wrongly, lost, hung or escaped. See docs/faults.md.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import random
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import judge as judging
from faults.clients import LIMIT, SYNC, Asked, get, installed
from faults.honest import why_honest
from faults.judge import ESCAPED, FAILED, FIXTURES, FRAMES, HANG, LOST, SAME, SHORT, WRONG, Verdict, judge, reference

STALL = 0.3  # seconds that a client waits where the body stalls
BATCH = 24  # turns that one client plays in a row, or at once where it awaits

KINDS = (*SAME, *SHORT, *FAILED, *FRAMES)
WEIGHTS = {"cut": 4, "close": 4, "reset": 4, "drop": 4, "repeat": 4, "swap": 4, "error": 2}


@dataclass
class Plan:
    number: int
    name: str
    kind: str
    options: dict[str, str]
    asked: Asked
    frame: int | None = None


def draw(seed: str, number: int, names: list[str], base: str) -> Plan:
    """One turn."""
    dice = random.Random(f"{seed} {number}")
    ref = reference(dice.choice(names))
    kind = dice.choices(KINDS, [WEIGHTS.get(kind, 1) for kind in KINDS])[0]
    frames = len(ref.frames.items)
    if kind in ("swap",) and frames < 2:
        kind = "drop"
    options: dict[str, str] = {}
    frame = None
    small = len(ref.body) < 4000
    chunk = dice.choice(["whole", f"random:{number}", str(dice.randint(2, 2000))] if small else ["whole", str(dice.randint(1000, 20_000))])
    if kind == "trickle":
        chunk = "1" if small else "512"
    if chunk != "whole":
        options["chunk"] = chunk
    if kind == "delay":
        options["delay"] = "0.002" if small else "0.0001"
    elif kind == "resume":
        options |= {"stall": f"random:{number}", "resume": "0.02"}
    elif kind == "type":
        options["type"] = dice.choice(["text/html", "application/json", "text/plain; charset=latin-1", "application/octet-stream"])
    elif kind == "status":
        options["status"] = dice.choice(["400", "401", "429", "500", "503", "529"])
    elif kind.startswith("error"):
        frame = dice.randrange(frames)
        options["error"] = str(frame)
        if kind.endswith("more"):
            options["more"] = "1"
    elif kind in FRAMES:
        options[kind] = str(dice.randrange(frames - (kind == "swap")))
    words = kind.split()
    if words[0] in ("gzip", "deflate"):
        options["encoding"] = words[0]
    if words[-1] in ("cut", "close", "reset", "stall"):
        # Half of them where it hurts: at a frame's end or beside it.
        edge = dice.choice(ref.timeline)[0] + dice.choice([-1, 0, 0, 1])
        near = dice.random() < 0.5 and "encoding" not in options and 0 <= edge <= len(ref.body)
        options[words[-1]] = str(edge) if near else f"random:{number}"
    asked = Asked(f"{base}/replay/{ref.name}?{urlencode(options)}", ref.provider, ref.framing, size=dice.choice([None, None, 64, 512]))
    if kind == "status":
        asked.framing = None  # an error body is JSON, whatever the provider's streams are framed in
    elif words[-1] == "stall":
        asked.timeout = STALL
        asked.driver_timeout = dice.random() < 0.5
    elif kind == "deflate cut":
        asked.timeout, asked.driver_timeout = 2.0, True  # aiohttp waits for ever here
    return Plan(number, ref.name, kind, options, asked, frame)


@dataclass
class Tally:
    """Counts by kind of fault, and by client."""

    turns: Counter[str]
    bad: Counter[tuple[str, str]]  # kind, violation
    notes: Counter[tuple[str, str]]
    clients: Counter[str]
    honest: Counter[tuple[str, str]]
    stories: list[str]


def play(plans: list[Plan], client: str, tally: Tally, *, show: bool = False) -> None:
    """Play turns with one client, and count."""
    faulthandler.dump_traceback_later(3 * LIMIT, exit=True)  # a client that blocks for ever
    for plan, turned in zip(plans, get(client, [plan.asked for plan in plans]), strict=True):
        ref = reference(plan.name)
        verdict = judge(ref, plan.kind, turned, frame=plan.frame)
        tally.turns[plan.kind] += 1
        tally.clients[client] += 1
        if verdict.note == "other":
            settle(plan, verdict, tally)
        if verdict.note:
            tally.notes[plan.kind, verdict.note] += 1
        for what, story in verdict.bad:
            tally.bad[plan.kind, what] += 1
            tally.stories.append(f"turn {plan.number}: {what}: {client}: {plan.name}?{urlencode(plan.options)}: {story}")
        if show:
            print(plan, client, verdict, turned.result, turned.events[-1:], sep="\n")
    faulthandler.cancel_dump_traceback_later()


def settle(plan: Plan, verdict: Verdict, tally: Tally) -> None:
    """Another call than the recording's was released: could anybody have known?"""
    why = why_honest(reference(plan.name), plan.kind, int(plan.options[plan.kind]), verdict.marks)
    if why is None:
        verdict.bad.append((WRONG, "released what the recording does not, though the stream shows the damage"))
        verdict.note = ""
    else:
        verdict.note, reason = why
        tally.honest[reference(plan.name).provider, reason] += 1


def work(job: tuple[str, int, int, int, list[str]]) -> Tally:
    """Every ``jobs``-th turn, in a process with a server of its own."""
    from toolwire.serve.server import running

    seed, turns, number, jobs, clients = job
    names = judging.names()
    tally = Tally(Counter(), Counter(), Counter(), Counter(), Counter(), [])
    with running(FIXTURES) as server:
        mine = [draw(seed, k, names, server.url) for k in range(number, turns, jobs)]
        batches = [mine[i : i + BATCH] for i in range(0, len(mine), BATCH)]
        for i, batch in enumerate(batches):
            client = clients[i % len(clients)]
            if client in SYNC:  # stalls take their time one after the other: an eighth of them will do
                late = [plan for plan in batch if "stall" in plan.kind]
                for plan in late[1 + len(late) // 8 :]:
                    batch.remove(plan)
                    batches[(i + 1) % len(batches)].append(plan) if i + 1 < len(batches) else batch.append(plan)
            play(batch, client, tally)
            if i % 40 == 39:
                print(f"job {number}: {sum(tally.turns.values())} of {len(mine)} turns", file=sys.stderr, flush=True)
    return tally


def table(tally: Tally) -> str:
    """The counts, as Markdown."""
    lines = [
        "| fault | turns | released, all right | whole by then | undetectable | marked | wrong | lost | escaped | hung |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    total: dict[str, int] = defaultdict(int)
    for kind in KINDS:
        row = [tally.turns[kind], *(tally.notes[kind, note] for note in ("same", "whole", "undetectable", "marked"))]
        row += [tally.bad[kind, what] for what in (WRONG, LOST, ESCAPED, HANG)]
        for i, count in enumerate(row):
            total[str(i)] += count
        lines.append(f"| {kind} | {' | '.join(map(str, row))} |")
    lines.append(f"| **all** | {' | '.join(str(total[str(i)]) for i in range(9))} |")
    lines += ["", "| client | turns |", "|---|---:|"]
    lines += [f"| {client} | {count} |" for client, count in sorted(tally.clients.items())]
    if tally.honest:
        lines += ["", "| provider | released although frames were damaged: why | turns |", "|---|---|---:|"]
        lines += [f"| {provider} | {why} | {count} |" for (provider, why), count in sorted(tally.honest.items())]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--turn", type=int, help="play this turn alone, with each client, and show it")
    arguments = parser.parse_args()
    clients = installed()
    if arguments.turn is not None:
        from toolwire.serve.server import running

        tally = Tally(Counter(), Counter(), Counter(), Counter(), Counter(), [])
        with running(FIXTURES) as server:
            for client in clients:
                play([draw(arguments.seed, arguments.turn, judging.names(), server.url)], client, tally, show=True)
    else:
        began = time.monotonic()
        jobs = [(arguments.seed, arguments.turns, number, arguments.jobs, clients[number:] + clients[:number]) for number in range(arguments.jobs)]
        with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
            tallies = list(pool.map(work, jobs))
        tally = tallies[0]
        for other in tallies[1:]:
            for field in ("turns", "bad", "notes", "clients", "honest"):
                getattr(tally, field).update(getattr(other, field))
            tally.stories += other.stories
        print(f"{sum(tally.turns.values())} turns, seed {arguments.seed}, {len(judging.names())} recordings, {time.monotonic() - began:.0f} s\n")
    print(table(tally))
    for story in tally.stories[:50]:
        print(story, file=sys.stderr)
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
