"""``python -m benchmarks [growth] [linear] [--json FILE]``: prints tables, each shape measured in a fresh process."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import sysconfig

from . import growth, linear


def fresh(kind: str, name: str) -> object:
    """Run one measurement in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "benchmarks", "--one", kind, name], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="growth|linear", help="default: all")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON too")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, name = options.one
        print(json.dumps(growth.measure(name) if kind == "growth" else linear.measure(name)))
        return 0
    optimised = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    figures: dict[str, object] = {"python": platform.python_version(), "optimised_build": optimised}
    print(f"CPython {figures['python']}, {'an optimised build' if optimised else 'a build without profile-guided optimisation'}\n")
    what = options.what or ["growth", "linear"]
    if "growth" in what:
        for shape in growth.SHAPES:
            result = {name: {int(n): v for n, v in by.items()} for name, by in fresh("growth", shape).items()}  # type: ignore[attr-defined]
            figures[f"growth, {shape}"] = result
            print(growth.report(shape, result), end="\n\n", flush=True)
    if "linear" in what:
        print("time of 2N : time of N\n| | ratio |\n|---|---|")
        for name in linear.CASES:
            ratio = fresh("linear", name)
            figures[f"linear, {name}"] = ratio
            print(f"| {name} | {ratio:.2f} |", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
