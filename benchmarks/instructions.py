"""``python -m benchmarks.instructions [--accept]``: has the C core come to need more instructions?

Counts do not depend on what else the machine does, so three per cent more is a regression and ends with status 1. They do depend on
the compiler: counts stored under another one are not compared. ``--accept`` stores today's.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import workloads

HERE = Path(__file__).parent
STORED = HERE / "instructions.json"
TOLERANCE = 0.03
CASES: dict[str, tuple[str, Callable[[], bytes], int]] = {
    "json: dict-heavy document": ("count_json", lambda: workloads.document("dicts", 50_000), 1 << 20),
    "json: floats": ("count_json", lambda: workloads.document("floats", 50_000), 1 << 20),
    "json: ASCII strings": ("count_json", lambda: workloads.document("ascii", 50_000), 1 << 20),
    "json: CJK strings": ("count_json", lambda: workloads.document("cjk", 50_000), 1 << 20),
    "json: Cyrillic strings": ("count_json", lambda: workloads.document("cyrillic", 50_000), 1 << 20),
    "json: escapes": ("count_json", lambda: workloads.document("escapes", 50_000), 1 << 20),
    "json: small object in deltas of 4 bytes": ("count_json", lambda: workloads.small().encode(), 4),
    "json: long string in deltas of 4 bytes": ("count_json", lambda: workloads.long_string(20_000).encode(), 4),
    "json: objects in deltas of 16 bytes": ("count_json", lambda: workloads.objects(200).encode(), 16),
    "sse: 340 B events in chunks of 1,400 B": ("count_sse", lambda: workloads.events(200), 1400),
    "sse: 340 B events in chunks of 64 kB": ("count_sse", lambda: workloads.events(200), 65536),
    "sse: 340 B events byte by byte": ("count_sse", lambda: workloads.events(50), 1),
    "template: chat events": ("count_template", lambda: b"\n".join(workloads.envelopes(False)), 0),
    "template: chat events with logprobs": ("count_template", lambda: b"\n".join(workloads.envelopes(True)), 0),
    "sse: one event of 256 kB in chunks of 16 kB": ("count_sse", lambda: workloads.image_event(1 << 18), 16384),
}


def compiler() -> str:
    first = subprocess.run(["gcc", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return f"{first}, {platform.machine()}"


def count(program: Path, file: Path, chunk: int, passes: int) -> int:
    """Instructions of a whole run under callgrind."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, file, str(chunk), str(passes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def measure() -> dict[str, float]:
    """Instructions a byte by case. Start and end of the program cancel out between one pass and two."""
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in {name for name, _, _ in CASES.values()}:
            subprocess.run(["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", Path(folder, program), HERE / "c" / f"{program}.c"], check=True)
        for case, (program, make, chunk) in CASES.items():
            file = Path(folder, "data")
            file.write_bytes(data := make())
            one, two = (count(Path(folder, program), file, chunk, passes) for passes in (1, 2))
            result[case] = round((two - one) / len(data), 4)
    return result


def compare(stored: dict[str, float], now: dict[str, float]) -> tuple[list[str], bool]:
    """A line for each case; and is one of them a regression?"""
    lines, worse = [], False
    for case, value in now.items():
        before = stored.get(case)
        if before is None:
            lines.append(f"{case}: {value:.2f} instructions a byte, not stored yet")
            continue
        change = value / before - 1
        worse |= change > TOLERANCE
        word = " REGRESSION" if change > TOLERANCE else " better: store it with --accept" if change < -TOLERANCE else ""
        lines.append(f"{case}: {value:.2f} instructions a byte, {change:+.1%}{word}")
    return lines, worse


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--accept", action="store_true", help="store today's counts")
    options = parser.parse_args()
    missing = [tool for tool in ("gcc", "valgrind") if shutil.which(tool) is None]
    if missing:
        print(f"not checked: {' and '.join(missing)} not found")
        return 0
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    if not options.accept and stored and stored["compiler"] != compiler():
        print(f"not checked: the stored counts are of {stored['compiler']}, this is {compiler()}")
        return 0
    now = measure()
    lines, worse = compare(stored.get("counts", {}), now)
    print("\n".join(lines))
    if options.accept:
        STORED.write_text(json.dumps({"compiler": compiler(), "counts": now}, indent=1) + "\n", encoding="utf-8")
        return 0
    return int(worse)


if __name__ == "__main__":
    raise SystemExit(main())
