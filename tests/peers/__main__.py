"""`python tests/peers [NAME...]`: run the peers' own test suites with our modules in their place.

Each peer has a file here that holds a `PEER`. Needs the network (the suites come from the peers' source distributions) and what the peers'
tests import (`pip install -e '.[peers]'`). Prints `suite, version, passed, failed` and why; exit status 1 where a failure has no reason.
"""

import importlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _peer import Peer, run
from _sdist import fetch


def main(names: list[str]) -> int:
    """Run the suites named, or all."""
    here = Path(__file__).resolve().parent
    peers: list[Peer] = [importlib.import_module(file.stem).PEER for file in sorted(here.glob("suite_*.py"))]
    if unknown := set(names) - {peer.name for peer in peers}:
        print(f"no suite named {', '.join(sorted(unknown))}; there are {', '.join(peer.name for peer in peers)}", file=sys.stderr)
        return 2
    bad = False
    print(f"{'suite':24}{'version':16}{'passed':>8}{'failed':>8}{'skipped':>9}")
    for peer in peers:
        if names and peer.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(peer, fetch(peer.name, peer.version, Path(folder)))
        failed = len(outcome.known) + len(outcome.unknown)
        print(f"{peer.name:24}{peer.version:16}{outcome.passed:8}{failed:8}{outcome.skipped:9}", flush=True)
        for test, why in outcome.known.items():
            print(f"    {test}: {why}")
        for test, said in outcome.unknown.items():
            print(f"    {test}: NO REASON GIVEN: {said}")
        for key in outcome.unmet:
            print(f"    {key}: listed as failing, but it passes")
        bad = bad or bool(outcome.unknown or outcome.unmet) or not outcome.passed
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
