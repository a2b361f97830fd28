"""Instructions for n and for 2n units of every attack in attacks.py, counted by callgrind: more than 2.2 times as many is a finding.

    python tests/complexity.py

Counts do not depend on what else the machine does. Needs gcc and valgrind with its headers. Exit status 1 if work grows faster than input.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from attacks import ATTACKS

MOST = 2.2
#: Counting from here, and putting the count so far into a file, are requests that valgrind sees.
REQUESTS = """
#include <valgrind/callgrind.h>
void zero(void) { CALLGRIND_ZERO_STATS; }
void dump(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""


def child(library: str) -> None:
    """Under callgrind: every attack, small and large, after one that makes what is made once."""
    requests = ctypes.CDLL(library)
    gc.disable()  # it goes through all objects of the process, whenever it is its turn
    for name, attack in ATTACKS.items():
        n = max(1, attack.n // 4)
        attack.read(attack.make(n))
        for size in (n, 2 * n):
            data = attack.make(size)
            requests.zero()
            attack.read(data)
            requests.dump(f"{name}|{size}|{len(data)}".encode())


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "requests.c"), Path(folder, "requests.so")
        source.write_text(REQUESTS)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", sys.executable, __file__, str(library)]
        # Hashes that differ from run to run would make the counts differ.
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": "0"}, check=True, capture_output=True)
        counts: dict[str, list[tuple[int, int]]] = {}
        for path in sorted(Path(folder).glob("out.*"), key=lambda p: int(p.suffix[1:])):
            text = path.read_text()
            request = re.search(r"Client Request: (.*)\|\d+\|(\d+)", text)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            if request and total:
                counts.setdefault(request[1], []).append((int(request[2]), int(total[1])))
    found = 0
    print(f"{'attack':40} {'bytes':>8} {'instructions a byte':>20} {'2n to n':>8}")
    for name, ((_, one), (size, two)) in counts.items():
        found += two > MOST * one
        print(f"{name:40} {size:8,} {two / size:20.1f} {two / one:8.2f}{'  FASTER THAN THE INPUT' if two > MOST * one else ''}")
    if len(counts) != len(ATTACKS):
        print(f"{len(ATTACKS) - len(counts)} attacks were not counted")
        return 2
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1])
    else:
        sys.exit(main())
