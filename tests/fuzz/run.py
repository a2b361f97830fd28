"""Fuzz everything that takes bytes: the C machines with libFuzzer, what Python sees of them with mutated fixtures.

    python tests/fuzz/run.py                                   # a minute each
    python tests/fuzz/run.py --seconds 3600 --targets json turns

Needs clang and its libFuzzer (Debian: clang, libclang-rt-14-dev; llvm for the line coverage), and for the Python targets the package,
built. Seeds and dictionary come from fixtures/. What was found (an input, and what it broke) and the grown corpora stay in --work; a
corpus that is there is used again. Exit status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIXTURES = ROOT / "fixtures"
MOST = 1200  # bytes of a seed
# Tracing compared values took more than half of the time, and found nothing that the dictionary does not.
SANITIZE = ["-O2", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", "-fno-sanitize-coverage=trace-cmp"]
COVER = ["-O0", "-fsanitize=fuzzer", "-fprofile-instr-generate", "-fcoverage-mapping"]


# -- seeds


def bodies(*suffixes: str) -> Iterator[bytes]:
    for path in sorted(FIXTURES.glob("*/*")):
        if path.suffix in suffixes:
            yield path.read_bytes()[:MOST]


def payloads() -> Iterator[bytes]:
    for body in bodies(".sse", ".jsonl"):
        for line in body.split(b"\n")[:40]:
            text = line.removeprefix(b"data:").strip()
            if text.startswith(b"{"):
                yield text


def arguments() -> Iterator[bytes]:
    for path in sorted(FIXTURES.glob("*/*.expect.json")):
        for call in json.loads(path.read_bytes())["calls"]:
            yield (call["text"] or "").encode()


def arrays() -> Iterator[bytes]:
    some = list(payloads())
    for i in range(0, len(some), 40):
        yield b"[" + b" ,\n".join(some[i : i + 3]) + b"]"


def messages() -> Iterator[bytes]:
    """Binary bodies as the records that fuzz_aws.c makes messages of."""
    for body in bodies(".bin"):
        records = b""
        while len(body) >= 16:
            total, headers = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
            payload = body[12 + headers : total - 4][:255]
            if headers < 256:
                records += bytes([0, headers, len(payload)]) + body[12 : 12 + headers] + payload
            body = body[total:]
        yield records


def numbers() -> Iterator[bytes]:
    for text in payloads():
        yield from re.findall(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", text)
    yield from (b"1.7976931348623157e308", b"4.9e-324", b"9007199254740993.0", b"-9223372036854775808", "é\u20ac😀".encode(), b"0" * 40)


def pairs() -> Iterator[bytes]:
    some = [text.replace(b'"content"', b'"text"') for text in payloads() if b'"choices"' in text]
    for a, b, c in zip(some, some[1:], some[2:], strict=False):
        yield b"\xff".join((a, b, c))


def planned(seeds: Callable[[], Iterable[bytes]]) -> Callable[[], Iterator[bytes]]:
    """With options and cuts before each, see cuts.h."""

    def plans() -> Iterator[bytes]:
        for k, seed in enumerate(seeds()):
            yield bytes([k % 64, 3, k % 7, 40, k % 101]) + seed

    return plans


def write_seeds(folder: Path, seeds: Iterator[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


def write_dictionary(path: Path) -> None:
    words = Counter(word for text in payloads() for word in re.findall(rb'"[a-z_]{2,20}"', text))
    tokens = [word for word, _ in words.most_common(80)]
    tokens += b"data: |event: |id: |retry: |\r\n|\n\n|\xef\xbb\xbf|\xed\xa0\x80|[DONE]".split(b"|")
    tokens += rb"\ud83d\ude00|\ud800|\u00e9|true|false|null|NaN|-Infinity|[|]|{|}|,|:|e+".split(b"|")
    path.write_text("".join(f'"{"".join(f"{chr(92)}x{c:02x}" for c in token)}"\n' for token in tokens))


# -- targets


@dataclass(frozen=True)
class Target:
    source: str
    core: str  # the file whose lines are counted
    seeds: Callable[[], Iterable[bytes]]
    defines: tuple[str, ...] = ()


TARGETS = {
    "sse": Target("fuzz_framing.c", "tw_sse.c", planned(lambda: bodies(".sse")), ("-DMACHINE=SSE",)),
    "lines": Target("fuzz_framing.c", "tw_lines.c", planned(lambda: bodies(".jsonl")), ("-DMACHINE=LINES",)),
    "array": Target("fuzz_framing.c", "tw_array.c", planned(arrays), ("-DMACHINE=ARRAY",)),
    "aws": Target("fuzz_aws.c", "tw_aws.c", planned(messages)),
    "json": Target("fuzz_json.c", "tw_json.h", planned(lambda: (*payloads(), *arguments()))),
    "number": Target("fuzz_number.c", "tw_number.h", numbers),
    "template": Target("fuzz_template.c", "tw_template.c", pairs),
}
PYTHON = ("parser", "tokens", "taps", "turns")  # tests/fuzz/damaged.py


@dataclass
class Row:
    target: str
    executions: int = 0
    per_second: int = 0
    edges: str = "-"
    lines: str = "-"
    found: list[str] | None = None


def build(target: Target, flags: list[str], out: Path) -> None:
    subprocess.run(["clang", "-std=c11", *flags, *target.defines, "-o", str(out), str(HERE / target.source)], check=True)


def line_coverage(target: Target, work: Path) -> str:
    """Lines of the machine that seeds and corpus run."""
    if shutil.which("llvm-cov") is None:
        return "-"
    binary, raw, profile = work / "covered", work / "raw", work / "profile"
    build(target, COVER, binary)
    command = [str(binary), "-runs=0", str(work / "corpus"), str(work / "seeds")]
    subprocess.run(command, env=os.environ | {"LLVM_PROFILE_FILE": str(raw)}, capture_output=True, check=True)
    subprocess.run(["llvm-profdata", "merge", "-o", str(profile), str(raw)], check=True)
    command = ["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}", str(binary), str(ROOT / "src/toolwire/_core" / target.core)]
    summary = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return f"{summary['data'][0]['totals']['lines']['percent']:.0f} %"


def what_was_found(crashes: Path, log: Path, status: int) -> list[str]:
    """The inputs, whole, and the end of the log: on a machine that is gone tomorrow, what is printed is all that is left."""
    paths = sorted(crashes.iterdir())
    found = [f"{path}: {base64.b64encode(path.read_bytes()).decode()}" for path in paths]
    if status and not paths:
        found = [f"exit status {status}"]
    if found:
        found[-1] += "".join(f"\n    {line}" for line in log.read_text(errors="replace").splitlines()[-40:])
    return found


def fuzz_c(name: str, seconds: int, seed: int, work: Path) -> Row:
    target, work = TARGETS[name], work / name
    corpus, crashes = work / "corpus", work / "found"
    write_seeds(work / "seeds", target.seeds())
    crashes.mkdir(exist_ok=True)
    corpus.mkdir(exist_ok=True)
    write_dictionary(work / "dictionary")
    build(target, SANITIZE, work / "fuzz")
    # Inputs of at most 256 bytes run twice as fast, and reach fewer edges.
    flags = [
        f"-seed={seed}",
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-print_final_stats=1",
        f"-artifact_prefix={crashes}/",
        f"-dict={work / 'dictionary'}",
    ]
    done = subprocess.run([str(work / "fuzz"), *flags, str(corpus), str(work / "seeds")], capture_output=True, text=True, errors="replace")
    (work / "log").write_text(done.stdout + done.stderr)
    stats = dict(re.findall(r"stat::(\w+):\s+(\d+)", done.stderr))
    row = Row(name, int(stats.get("number_of_executed_units", 0)), int(stats.get("average_exec_per_sec", 0)))
    row.edges = (re.findall(r"cov: (\d+)", done.stderr) or ["-"])[-1]
    row.found = what_was_found(crashes, work / "log", done.returncode)
    if not row.found:
        row.lines = line_coverage(target, work)
    return row


def fuzz_python(name: str, seconds: int, seed: int, work: Path) -> Row:
    crashes = work / name / "found"
    crashes.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(HERE / "damaged.py"), name, "--seconds", str(seconds), "--seed", str(seed), "--found", str(crashes)]
    done = subprocess.run(command, capture_output=True, text=True)
    (work / name / "log").write_text(done.stdout + done.stderr)
    last = done.stdout.splitlines()[-1] if done.stdout else "0"
    row = Row(name, int(last) if last.isdigit() else 0)
    row.per_second = row.executions // seconds
    row.found = what_was_found(crashes, work / name / "log", done.returncode)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, help="1 to 2**32 - 1; another one each time unless given")
    parser.add_argument("--targets", nargs="+", choices=[*TARGETS, *PYTHON], default=[*TARGETS, *PYTHON])
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--work", type=Path, help="folder for binaries, corpora and findings; a new one unless given")
    args = parser.parse_args()
    seed = args.seed or random.randrange(1, 1 << 32)
    work = args.work or Path(tempfile.mkdtemp(prefix="fuzz-"))
    work.mkdir(parents=True, exist_ok=True)

    def one(name: str) -> Row:
        return (fuzz_python if name in PYTHON else fuzz_c)(name, args.seconds, seed, work)

    with ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(one, args.targets))
    print(f"{'target':10} {'executions':>12} {'per second':>11} {'edges':>6} {'lines':>6}  found")
    for row in rows:
        print(f"{row.target:10} {row.executions:12,} {row.per_second:11,} {row.edges:>6} {row.lines:>6}  {len(row.found or ())}")
    print(f"in all     {sum(row.executions for row in rows):12,}  seed {seed}")
    found = [text for row in rows for text in row.found or ()]
    print("\n".join(found) if found else f"nothing found; logs and corpora in {work}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
