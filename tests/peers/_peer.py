"""What the runner has to know of a peer, and how its suite is run with our module in its place."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Peer:
    """One peer's test suite.

    `conftest` puts our module in the peer's place: a `conftest.py` at the root of the unpacked source distribution. No test is changed. `tests`
    are what pytest is given, relative to that root. `expected` names each test that fails and why:
    a name there that passes, or a failure that is not there, fails the run. A key stands for a test's id or for all ids that begin with it.
    """

    name: str
    version: str
    conftest: str
    tests: Sequence[str]
    requires: Sequence[str] = ()
    options: Sequence[str] = ()
    expected: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """How a run went: counts, the failures with a reason, those without one, and reasons that no failure met."""

    passed: int
    skipped: int
    known: dict[str, str]
    unknown: dict[str, str]
    unmet: list[str]


_LINE = re.compile(r"^(PASSED|SKIPPED|FAILED|ERROR|XFAIL|XPASS) (\S+?)(?: - (.*))?$")


def run(peer: Peer, tree: Path) -> Outcome:
    """Run the suite in `tree` with this interpreter. Raises RuntimeError where pytest did not get as far as running tests."""
    (tree / "conftest.py").write_text(peer.conftest)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rA",
        "--tb=line",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        *peer.options,
        *peer.tests,
    ]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{peer.name}: pytest ended with {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    outcome = Outcome(0, 0, {}, {}, [])
    met: set[str] = set()
    for line in done.stdout.splitlines():
        if not (seen := _LINE.match(line)):
            continue
        word, test, said = seen.groups()
        if word in ("PASSED", "XFAIL"):
            outcome.passed += 1
        elif word == "SKIPPED":
            outcome.skipped += 1
        elif key := next((key for key in peer.expected if test.startswith(key)), None):
            met.add(key)
            outcome.known[test] = peer.expected[key]
        else:
            outcome.unknown[test] = said or ""
    outcome.unmet = [key for key in peer.expected if key not in met]
    return outcome
