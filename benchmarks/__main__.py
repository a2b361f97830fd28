"""``python -m benchmarks [NAME ...] [--quick] [--json FILE] [--charts]``: prints tables, each shape measured in a fresh process."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from . import charts, growth, linear, native, shapes_system, suite
from .shapes import SHAPES

ROOT = Path(__file__).resolve().parents[1]
PEERS = "jiter orjson msgspec ssrjson ijson httpx-sse openai anthropic langchain-openai litellm streaming-json-parser streaming-json-parser-native f3dx httpx2"


def fresh(kind: str, name: str, quick: bool) -> Any:
    """Run one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks", "--one", kind, name, *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{kind} {name}: " + (done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return json.loads(done.stdout.splitlines()[-1])  # peers print things of their own


def one(kind: str, name: str, quick: bool) -> Any:
    if kind == "shape":
        return suite.measure(SHAPES[name], quick)
    return growth.measure(name) if kind == "growth" else linear.measure(name)


def versions() -> dict[str, str]:
    found = {}
    for peer in PEERS.split():
        try:
            found[peer] = importlib.metadata.version(peer)
        except importlib.metadata.PackageNotFoundError:
            found[peer] = "not installed"
    return found


def build() -> str:
    """How the interpreter was built: without profile-guided optimisation peers written in Python take up to twice as long."""
    if "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        return "an optimised build"
    return "a distribution's build" if sys.base_prefix == "/usr" else "a build without profile-guided optimisation"


def chosen(words: list[str]) -> list[tuple[str, str]]:
    """(kind, name) of everything whose name, or kind, starts with one of the words."""
    everything = [("shape", name) for name in SHAPES]
    everything += [("growth", name) for name in growth.SHAPES] + [("linear", name) for name in linear.CASES]
    for word in words:
        if not any(word == kind or name.startswith(word) for kind, name in everything):
            raise SystemExit(f"no shape is called {word}; there are: growth, linear, " + ", ".join(SHAPES))
    return [(kind, name) for kind, name in everything if not words or any(word == kind or name.startswith(word) for word in words)]


def run(words: list[str], quick: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {"python": platform.python_version(), "build": build(), "quick": quick, "versions": versions()}
    print(f"CPython {figures['python']}, {figures['build']}")
    print(", ".join(f"{peer} {version}" for peer, version in figures["versions"].items()), end="\n\n", flush=True)
    for kind, name in chosen(words):
        try:
            result = fresh(kind, name, quick)
        except RuntimeError as error:
            print(f"failed: {error}\n", flush=True)
            continue
        if kind == "growth":
            result = {who: {int(n): v for n, v in by.items()} for who, by in result.items()}
            print(growth.report(name, result), end="\n\n", flush=True)
        elif kind == "linear":
            print(f"time of 2N : time of N, {name}: {result:.2f}", flush=True)
        else:
            print(suite.report(name, result), end="\n\n", flush=True)
        figures.setdefault(kind, {})[name] = result
    print("\n".join(summary(figures)))
    return figures


def summary(figures: dict[str, Any]) -> list[str]:
    """Every target of a run in one table."""
    lines = ["| shape | against | ratio | must | aim | |", "|---|---|---|---|---|---|"]
    for name, result in figures.get("shape", {}).items():
        for target in result["targets"]:
            against, ratio = target["peer"] or "(absolute)", target["ratio"]
            who = name if target["ours"] == suite.OURS else f"{name}, {target['ours'].removeprefix('toolwire, ')}"
            sign = "<= " if target["at_most"] else ""
            bounds = [f"{sign}{suite.digits(target[key])}" if target[key] is not None else "" for key in ("must", "aim")]
            holds = {None: "", True: "holds", False: "**missed**"}[target["holds"]]
            if target["aim_holds"]:
                holds = f"{holds}, aim reached".removeprefix(", ")
            lines.append(f"| {who} | {against} | {'not measured' if ratio is None else suite.digits(ratio)} | {' | '.join(bounds)} | {holds} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="NAME", help="growth, linear, or the beginning of a shape's name; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter samples")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON too")
    parser.add_argument("--charts", action="store_true", help="draw the charts in docs/ from the figures of this run")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "NAME"), help=argparse.SUPPRESS)
    parser.add_argument("--held", choices=list(shapes_system.HELD), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.held:
        print(shapes_system.bytes_each(options.held), flush=True)
        os._exit(0)  # thousands of half-finished streams need no tidying up
    if options.one:
        print(json.dumps(one(*options.one, options.quick)))
        return 0
    try:
        native.load()  # once, for all processes
    except ImportError as error:
        print(f"note: {error}")
    figures = run(options.what, options.quick)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.charts:
        for path in charts.write(figures, ROOT / "docs"):
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
