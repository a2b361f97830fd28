"""Turns to decide, a Redis to decide with, and processes that are killed while they decide.

As a program (``ledger_helpers.py WHAT LEDGER DIRECTORY``) it plays one of ``PLAYS`` in a process without threads, where forking
is safe, and prints what came of it as JSON. A worker decides turns and "runs" their calls by a line each in a file.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import toolwire as tw
from toolwire import gate as gate_module
from toolwire.ledger import Ledger
from toolwire.ledger.sqlite import SQLiteLedger


def body(n: int, *, calls: int = 2, arguments: str = '{"n":1}') -> bytes:
    """A chat turn of its own for each ``n``."""
    entries = [{"index": i, "id": f"call_{n}_{i}", "type": "function", "function": {"name": "ring", "arguments": arguments}} for i in range(calls)]
    frames = [{"tool_calls": entries}, {}]
    chunks = [
        {"id": f"cc_{n}", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": None if d else "tool_calls"}]}
        for d in frames
    ]
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


def result(n: int, **how: Any) -> tw.TurnResult:
    turn = tw.Turn("openai-chat")
    turn.feed(body(n, **how))
    return turn.finish()


def open_ledger(where: str) -> Ledger:
    """By a Redis URL, or by a path."""
    if where.startswith("redis:"):
        from toolwire.ledger.redis import RedisLedger

        return RedisLedger(where, prefix="tests")
    return SQLiteLedger(where)


# -- a Redis ----------------------------------------------------------------------------------------------------------------


class RedisServer:
    """A server on a free loopback port, with nothing on disk but, where asked, a log that each write is synced to."""

    def __init__(self, directory: Path, *, durable: bool = False) -> None:
        self.directory = directory
        self.options = ["--save", "", *(("--appendonly", "yes", "--appendfsync", "always") if durable else ("--appendonly", "no"))]
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """On the port it had before, or on a free one: another process may take that first, so try a few."""
        import redis

        for _ in range(5):
            if not self.port:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    port = free.getsockname()[1]
            else:
                port = self.port
            self.process = subprocess.Popen(
                ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(self.directory), *self.options],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            with redis.Redis(port=port, retry=None) as client:
                for _ in range(500):
                    try:
                        # A server of somebody else may have this port: ask which process answers.
                        if client.info("server")["process_id"] == self.process.pid:
                            self.port = port
                            return
                        break
                    except redis.RedisError:
                        if self.process.poll() is not None:
                            break
                        time.sleep(0.02)
            self.kill()
        raise RuntimeError("redis-server does not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def why_no_redis() -> str:
    """ "" where the tests can have one."""
    try:
        import redis  # noqa: F401
    except ImportError:
        return "redis-py is not installed"
    return "" if shutil.which("redis-server") else "redis-server is not installed"


# -- processes ----------------------------------------------------------------------------------------------------------------


def work(ledger: Ledger, results: list[tw.TurnResult], log: Path, *, released: Callable[[], object] = lambda: None) -> list[tw.GateDecision]:
    """Decides all of them and runs what it may. ``released`` is called between the two."""
    gate = tw.TurnGate(ledger=ledger)
    ran = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    decisions = []
    for result in results:
        decision = gate.decide(result)
        if decision.runnable:
            released()
        for call in decision.runnable:
            os.write(ran, f"{call.id}\n".encode())
            gate.settle(call)
        decisions.append(decision)
    os.close(ran)
    return decisions


@contextmanager
def worker(do: Callable[[int], None]) -> Iterator[tuple[int, int]]:
    """Forks a process that does it, with the writing end of a pipe; gives its id and the reading end. Killed at the end."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reads)
            do(writes)
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    try:
        yield pid, reads
    finally:
        os.close(reads)


def ended(pid: int) -> int:
    """Waits for it: its exit code, or the signal that killed it, negative."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ran(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


#: So large that a worker comes no further ahead of who reads them than a pipe holds, sixteen.
TOKEN = bytes(4096)


def killed_at_random(where: str, directory: Path) -> dict[str, Any]:
    """Starts a worker over all turns, kills it somewhere, and starts the next, until one comes to the end."""
    rng = random.Random(7)
    turns, log = 300, directory / "ran"
    results = [result(n) for n in range(turns)]
    kills = codes = 0
    while True:
        with worker(lambda pipe: _announced(where, results, log, pipe)) as (pid, reads):
            wanted = rng.randint(1, 12)  # turns that it releases before it is killed
            while wanted and os.read(reads, len(TOKEN)):
                wanted -= 1
            if wanted:
                codes += ended(pid)
                break
            time.sleep(rng.random() * 0.002)
            os.kill(pid, signal.SIGKILL)
            kills += ended(pid) == -signal.SIGKILL
    times = ran(log)
    gate = tw.TurnGate(ledger=open_ledger(where))
    refused = [r for n in range(turns) for r in gate.decide(result(n)).refused]
    fates = Counter(f"{r.fate}, ran {times[r.call.id or '']}" for r in refused)
    return {"kills": kills, "code": codes, "calls": len(refused), "most": max(times.values()), "fates": fates}


def _announced(where: str, results: list[tw.TurnResult], log: Path, pipe: int) -> None:
    work(open_ledger(where), results, log, released=lambda: os.write(pipe, TOKEN))


def killed_at_every_line(where: str, directory: Path) -> dict[str, Any]:
    """Kills one worker at its first line of the gate and the ledger, the next at the second, and so on to the end; then
    another process is given the same turn."""
    log = directory / "ran"
    ours = (str(Path(gate_module.__file__).parent), __file__)
    outcomes = []
    for step in range(1, 5000):
        turn = result(step, calls=1)

        def killed(pipe: int, turn: tw.TurnResult = turn, step: int = step) -> None:
            left = step

            def count(frame: FrameType, event: str, arg: object) -> Any:
                nonlocal left
                if not frame.f_code.co_filename.startswith(ours):
                    return None
                if event == "line":
                    left -= 1
                    if not left:
                        os.kill(os.getpid(), signal.SIGKILL)
                return count

            sys.settrace(count)
            work(open_ledger(where), [turn], log)
            sys.settrace(None)

        def restarted(pipe: int, turn: tw.TurnResult = turn) -> None:
            (decision,) = work(open_ledger(where), [turn], log)
            os.write(pipe, (decision.refused[0].fate or "?" if decision.refused else decision.action).encode())

        with worker(killed) as (pid, _):
            code = ended(pid)
        with worker(restarted) as (pid, reads):
            said = os.read(reads, 100).decode()
            assert ended(pid) == 0
        outcomes.append((said, ran(log)[f"call_{step}_0"]))
        if code != -signal.SIGKILL:
            return {"code": code, "outcomes": outcomes}
    raise AssertionError("the worker never came to its end")


def race(where: str, directory: Path) -> dict[str, Any]:
    """Several processes are given the same turns, each in its own order."""
    results = [result(n) for n in range(150)]
    logs = [directory / f"ran{i}" for i in range(4)]
    go_reads, go_writes = os.pipe()

    def one(i: int) -> None:
        mine = random.Random(i).sample(results, len(results))
        ledger = open_ledger(where)
        os.close(go_writes)
        os.read(go_reads, 1)  # until the parent closes its end, too
        work(ledger, mine, logs[i])

    pids = []
    for i in range(len(logs)):
        with worker(lambda pipe, i=i: one(i)) as (pid, _):
            pids.append(pid)
    os.close(go_writes)
    codes = [ended(pid) for pid in pids]
    times = sum((ran(log) for log in logs), Counter())
    return {"codes": codes, "ids": len(times), "most": max(times.values())}


def opened_at_once(where: str, directory: Path) -> dict[str, Any]:
    """Processes that all make the file, and claim one key in it."""
    codes: Counter[int] = Counter()
    winners: Counter[int] = Counter()
    for round in range(25):
        go_reads, go_writes = os.pipe()

        def one(pipe: int, path: str = f"{where}-{round}", go: tuple[int, int] = (go_reads, go_writes)) -> None:
            os.close(go[1])
            os.read(go[0], 1)  # until the parent closes its end, too
            if not open_ledger(path).claim(["key"]):
                os.write(pipe, b"!")

        with ExitStack() as stack:
            workers = [stack.enter_context(worker(one)) for _ in range(8)]
            os.close(go_writes)
            codes.update(ended(pid) for pid, _ in workers)
            winners[sum(len(os.read(reads, 1)) for _, reads in workers)] += 1
        os.close(go_reads)
    return {"codes": codes, "winners": winners}


def forked(where: str, directory: Path) -> dict[str, Any]:
    """A ledger that was open before the fork, used on both sides of it."""
    ledger = open_ledger(where)
    ledger.claim(["before"])

    def child(pipe: int) -> None:
        carried = getattr(ledger, "_connection", None) is not None
        known = ledger.claim(["before", "child", "both"])
        os.write(pipe, json.dumps([carried, known]).encode())

    with worker(child) as (pid, reads):
        carried, known = json.loads(os.read(reads, 1000))
        code = ended(pid)
    return {"code": code, "carried": carried, "child": known, "parent": ledger.claim(["before", "child", "both", "parent"])}


PLAYS = {f.__name__: f for f in (killed_at_random, killed_at_every_line, race, opened_at_once, forked)}


def play(what: Callable[[str, Path], dict[str, Any]], where: str, directory: Path) -> dict[str, Any]:
    """What the play prints, from a process of its own."""
    done = subprocess.run([sys.executable, __file__, what.__name__, where, str(directory)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    out: dict[str, Any] = json.loads(done.stdout)
    return out


if __name__ == "__main__":
    if not why_no_redis():
        import toolwire.ledger.redis  # once, not in each process that is forked
    print(json.dumps(PLAYS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))))
