"""What a shape is, and how one is measured: contenders in turn, medians, ratios taken round by round."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

ROUNDS, QUICK_ROUNDS = 9, 3
SAMPLE, QUICK_SAMPLE = 0.03, 0.005  # seconds a sample takes at the least
BATCH = 16  # runs prepared at a time: few enough to stay in the cache
OURS = "toolwire"

Run = Callable[[], Any]


class Plan(NamedTuple):
    """``prepare()`` is not timed; the function it returns is, and returns the answer (None: has none)."""

    prepare: Callable[[], Run]
    units: int = 1  # what the time is divided by


class Target(NamedTuple):
    """How many times faster than the peer (``at_most``: how many times the peer's time) ``ours`` must be and should be. Without a
    peer, both are in the shape's unit; ``must`` is None where there is an aim only."""

    peer: str | None
    must: float | None
    aim: float | None = None
    ours: str = OURS
    at_most: bool = False

    def ratio(self, samples: dict[str, list[float]]) -> float | None:
        ours = samples.get(self.ours)
        if self.peer is None:
            return statistics.median(ours) if ours else None
        peer = samples.get(self.peer)
        if not ours or not peer:
            return None
        return statistics.median(a / b if self.at_most else b / a for a, b in zip(ours, peer, strict=True))

    def holds(self, ratio: float | None, bound: float | None) -> bool | None:
        if ratio is None or bound is None:
            return None
        return ratio <= bound if self.at_most else ratio >= bound


@dataclass(frozen=True, slots=True)
class Shape:
    """One named comparison.

    ``data(tiny)`` makes the input, the same for all; a contender makes a plan of it and raises ImportError where its library is
    missing. ``net_of`` names a contender whose time is subtracted from all others. ``direct`` measures in another way:
    it returns samples by contender.
    """

    name: str
    measure: str
    unit: str
    data: Callable[[bool], Any]
    contenders: dict[str, Callable[[Any], Plan]]
    targets: tuple[Target, ...]
    net_of: str | None = None
    note: Callable[[], str] | None = None
    direct: Callable[[bool], dict[str, list[float]]] | None = None


def plans(shape: Shape, data: Any) -> tuple[dict[str, Plan], dict[str, str]]:
    """The contenders that are installed and give the first one's answer; and why the others do not take part."""
    ready: dict[str, Plan] = {}
    out: dict[str, str] = {}
    expected: Any = None
    for name, contender in shape.contenders.items():
        try:
            plan = contender(data)
            answer = plan.prepare()()
        except ImportError as error:
            out[name] = f"not installed ({error})"
        except Exception as error:  # a peer that fails must not end the run
            out[name] = f"failed: {type(error).__name__}: {str(error)[:120]}"
        else:
            if expected is None:
                expected = answer
            if answer is not None and answer != expected:
                out[name] = "gives another answer"
            else:
                ready[name] = plan
    return ready, out


def sample(plan: Plan, runs: int) -> float:
    """Seconds a unit."""
    total = 0.0
    gc.collect()
    for first in range(0, runs, BATCH):
        batch = [plan.prepare() for _ in range(min(BATCH, runs - first))]
        begin = time.perf_counter()
        for run in batch:
            run()
        total += time.perf_counter() - begin
    return total / runs / plan.units


def measure(shape: Shape, quick: bool = False) -> dict[str, Any]:
    """Samples and ratios of one shape, fit for JSON."""
    out: dict[str, str] = {}
    if shape.direct:
        samples = shape.direct(quick)
    else:
        ready, out = plans(shape, shape.data(False))
        least = QUICK_SAMPLE if quick else SAMPLE
        runs = {name: max(1, int(least / (sample(plan, 1) * plan.units))) for name, plan in ready.items()}
        samples = {name: [] for name in ready}
        names = list(ready)
        for _ in range(QUICK_ROUNDS if quick else ROUNDS):
            for name in names:
                samples[name].append(sample(ready[name], runs[name]) * 1e6)
            names.append(names.pop(0))  # nobody always runs behind the same one
    floor = samples.pop(shape.net_of, None) if shape.net_of else None
    if floor:
        samples = {name: [a - b for a, b in zip(values, floor, strict=True)] for name, values in samples.items()}
    targets = []
    for target in shape.targets:
        ratio = target.ratio(samples)
        holds = {"holds": target.holds(ratio, target.must), "aim_holds": target.holds(ratio, target.aim)}
        targets.append({**target._asdict(), "ratio": ratio, **holds})
    return {
        "measure": shape.measure,
        "unit": shape.unit,
        "median": {name: statistics.median(values) for name, values in samples.items()},
        "targets": targets,
        "out": out,
        "note": shape.note() if shape.note else "",
    }


def digits(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def report(name: str, result: dict[str, Any]) -> str:
    """One shape as Markdown."""
    best = min(result["median"].values(), default=1.0)
    lines = [f"### {name}: {result['measure']}", "", f"| contender | {result['unit']} | : best |", "|---|---|---|"]
    lines += [f"| {who} | {digits(value)} | {digits(value / best)} |" for who, value in sorted(result["median"].items(), key=lambda item: item[1])]
    lines += [f"| {who} | {why} | |" for who, why in result["out"].items()]
    lines += ["", *("- " + verdict(target) for target in result["targets"])]
    return "\n".join([*lines, *([f"- {result['note']}"] if result["note"] else [])])


def verdict(target: dict[str, Any]) -> str:
    """One target in words."""
    who = f"{target['ours']} against {target['peer']}" if target["peer"] else target["ours"]
    if target["ratio"] is None:
        return f"{who}: not measured"
    unit = "x" if target["peer"] else ""
    words = [f"{who}: {digits(target['ratio'])}{unit}"]
    for name in ("must", "aim"):
        if target[name] is not None:
            holds, missed = (target["holds"], "MISSED") if name == "must" else (target["aim_holds"], "not reached")
            words.append(f"{name} {'<=' if target['at_most'] else '>='} {digits(target[name])}{unit} {'holds' if holds else missed}")
    return ", ".join(words)
