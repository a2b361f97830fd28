"""Memory runs out at every single allocation: MemoryError and no other exception, no crash, nothing lost in silence, nothing leaked.

CPython's own test module can make the n-th allocation fail. Each scenario runs in a process of its own, for every n, with one failure and
with two in a row. After a failure an object is either stuck (every later call raises) or goes on as if nothing had been: never half way. What is kept settles
after a few sweeps over all allocations; a leak would be there in each.
What the C core allocates for itself is not CPython's; tests/c does the same to that.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import pickle
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw
import toolwire.compat.ijson as ijson
from aws_messages import event
from toolwire._calls import ArgumentBuffer
from toolwire._projection import Projection

HERE = Path(__file__).resolve().parent
ENOUGH = 40  # runs in a row without a failure: all allocations have had their turn (some failures are tolerated)
ROUNDS = 10
SWEEPS = 3  # of a round. CPython 3.14 counts a block more after the first, and no more after fifty


def json_data() -> bytes:
    wide = ",".join(f'"key {i}":{i}' for i in range(70))
    parts = ['{"a":[1,-2.5,123456789012345678901234567890,1e400,true,null],"b":"', "long " * 30, '\\n\\u00e9\\ud83d\\ude00","a":"\\ud800x","é":"']
    parts += ["日" * 60, '","n":[[],{}],"wide":{', wide, '},"open":["', "x" * 300, '"]}']
    return "".join(parts).encode()


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


class Scenario:
    """One run, made again for each allocation that fails."""

    def run(self) -> Any:
        """All of it; called with the allocator failing."""
        raise NotImplementedError

    def look(self, error: Exception) -> None:
        """After a failure, with memory there again."""


class Parser(Scenario):
    """JSONParser: construction, feed, snapshots, the live value, finish."""

    data = json_data()

    def __init__(self, size: int, *, snapshots: bool) -> None:
        self.pieces, self.snapshots = pieces(self.data, size), snapshots
        self.kept: list[tuple[int, Any]] = []
        self.p: Any = None

    def run(self) -> Any:
        self.p = tw.JSONParser(surrogates="replace", max_depth=20)
        for piece in self.pieces:
            self.p.feed(piece)
            if self.snapshots:
                self.kept.append((self.p.offset, self.p.snapshot()))
        return self.p.finish()

    def look(self, error: Exception) -> None:
        for offset, snapshot in self.kept:
            again = tw.JSONParser(surrogates="replace")
            again.feed(self.data[:offset])
            assert repr(again.snapshot()) == repr(snapshot), "a snapshot changed"
        p = self.p
        if p is None:
            return
        json.dumps(p.snapshot() or None)
        repr((p.value or None, p.path, p.marks, p.state(("a", 1)), p))
        copy = pickle.loads(pickle.dumps(p))
        for one in (p, copy):
            try:
                one.feed(self.data[one.offset :])  # what it says it has not taken
                value = one.finish()
            except MemoryError:
                assert stuck(one.feed, b"") and stuck(one.finish)
            except tw.UsageError:
                assert one.complete  # finish() had done its work
            else:
                assert repr(value) == repr(tw.loads(self.data, surrogates="replace")), "something is missing"
            one.reset()
            one.feed(self.data)
            assert repr(one.finish()) == repr(tw.loads(self.data, surrogates="replace"))


class Tapped(Scenario):
    """Taps: what was handed out and what comes later is the whole, or the parser is stuck."""

    def __init__(self) -> None:
        self.pieces = pieces(Parser.data, 29)
        self.texts: list[Any] = [""] * len(self.pieces)  # no allocation of ours between read() and the place where its text is kept
        self.items: list[Any] = [[]] * len(self.pieces)
        self.tap: Any = None
        self.elements: Any = None
        self.p: Any = None

    def run(self) -> Any:
        self.p = p = tw.JSONParser(surrogates="replace")
        self.tap, self.elements = p.tap(("é",)), p.items(("open",))
        for i, piece in enumerate(self.pieces):
            p.feed(piece)
            self.texts[i] = self.tap.read()
            self.items[i] = self.elements.read()
        return "".join(self.texts), [v for some in self.items for v in some]

    def look(self, error: Exception) -> None:
        if self.elements is None:
            return
        try:
            self.p.feed(Parser.data[self.p.offset :])
        except MemoryError:
            assert stuck(self.p.feed, b"")
            return
        text = "".join(self.texts) + self.tap.read()
        items = [v for some in self.items for v in some] + self.elements.read()
        assert (text, items) == ("日" * 60, ["x" * 300])


class Loads(Scenario):
    def run(self) -> Any:
        return tw.loads(Parser.data, surrogates="replace"), tw.loads(Parser.data.decode(), surrogates="keep")


class Buffer(Scenario):
    """The argument text of a call, and its value, read at every piece; text that is all there is read anew after a failure."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        self.buffer: Any = None
        self.added = -1

    def run(self) -> Any:
        self.buffer = buffer = ArgumentBuffer(max_chars=10_000)
        for i, piece in enumerate(self.pieces):
            self.added = i
            buffer.append(piece)
            buffer.snapshot()
        buffer.finish()
        return buffer.text, buffer.value, buffer.error

    def look(self, error: Exception) -> None:
        buffer = self.buffer
        if buffer is None:
            return
        text = "".join(self.pieces[: self.added])
        missing = self.pieces[self.added :] if len(buffer) == len(text) else self.pieces[self.added + 1 :]
        for piece in missing:
            buffer.append(piece)
        buffer.finish()
        assert buffer.text == "".join(self.pieces)
        assert buffer.value == json.loads(buffer.text), "something is missing"
        assert buffer.error is None


class Projected(Scenario):
    """The wanted part of a payload; a projection keeps nothing of it."""

    payload = rb'{"a":{"b":["x\u00e9",1e3,{"c":null}],"not":[1,2]},"not":{"wanted":"y"},"n":12345678901234567890}'
    projection = Projection({"a": {"b": True}, "n": True})

    def run(self) -> Any:
        return self.projection.apply(self.payload)

    def look(self, error: Exception) -> None:
        assert self.projection.apply(self.payload) == {"a": {"b": ["xé", 1000.0, {"c": None}]}, "n": 12345678901234567890}


class Framer(Scenario):
    """A framer, byte pieces in, frames out, and all of their members."""

    def __init__(self, name: str, data: bytes, size: int) -> None:
        self.name, self.data = name, data
        self.framer: Any = None
        self.pieces = pieces(data, size)
        self.frames: list[Any] = [[]] * (len(self.pieces) + 1)  # no allocation of ours between feed() and the place where its frames are kept

    def make(self) -> Any:
        return getattr(tw, self.name)()

    def run(self) -> Any:
        self.framer = self.make()
        for i, piece in enumerate(self.pieces):
            self.frames[i] = self.framer.feed(piece)
        self.frames[-1] = self.framer.finish(flush=True)
        return [(f.data, f.raw, f.event, f.id, f.offset, f.marks) for frames in self.frames for f in frames]

    def look(self, error: Exception) -> None:
        framer = self.framer
        if framer is None or not stuck_or_fresh(framer):
            return
        # Not stuck, so nothing was lost: the rest gives the frames that are missing.
        with contextlib.suppress(tw.UsageError):  # finish() had done its work
            self.frames += [framer.feed(self.data[framer.offset :]), framer.finish(flush=True)]
        frames = [f for some in self.frames for f in some]
        whole = self.make()
        want = whole.feed(self.data) + whole.finish(flush=True)
        assert frames == want, "a frame is missing"


class Pulled(Scenario):
    """What is read through the face of ijson. After a failure the iterator has ended, or goes on with what is missing."""

    data = b'{"rows": [{"id": 1, "x": [1.5, 2e3, null, true, "\\u00e9"], "deep": {"k": {"l": []}}}, {"id": 22222, "x": "a string"}], "n": 3}'

    def __init__(self, function: str, *args: Any) -> None:
        self.open = functools.partial(getattr(ijson, function), self, *args)
        self.reads = [*pieces(self.data, 7), b""]
        self.read_so_far = self.found = 0
        self.values: list[Any] = [None] * 100
        self.iterator: Any = None

    def read(self, size: int) -> bytes:
        self.read_so_far += 1
        return self.reads[self.read_so_far - 1]

    def run(self) -> Any:
        self.iterator = self.open()
        for value in self.iterator:
            self.values[self.found] = value
            self.found += 1
        return self.values[: self.found]

    def look(self, error: Exception) -> None:
        if self.iterator is None:
            return
        rest = list(self.iterator)
        want = list(self.open.func(self.data, *self.open.args[1:]))
        found = self.values[: self.found]
        assert found + rest == want if rest else found == want[: self.found], "something is missing"


class Turn(Scenario):
    """A turn and the gate: what is released after a failure is what would have been released without it, or nothing."""

    def __init__(self, fixture: str, size: int) -> None:
        expect = json.loads((HERE.parent / "fixtures" / f"{fixture}.expect.json").read_bytes())
        self.provider = expect["provider"]
        self.chunks = pieces((HERE.parent / "fixtures" / fixture).with_name(expect["body"]).read_bytes(), size)
        self.turn: Any = None
        self.taken = 0

    def run(self) -> Any:
        self.turn = tw.Turn(self.provider)
        for piece in self.chunks:
            self.turn.feed(piece)
            self.taken += 1
        result = self.turn.finish()
        return self.facts(result, tw.TurnGate().decide(result))

    @staticmethod
    def facts(result: Any, decision: Any) -> Any:
        runnable = [(c.id, c.name, repr(c.arguments)) for c in decision.runnable]
        return str(result.outcome), result.text, [(c.name, c.text, c.doubts) for c in result.calls], decision.action, runnable

    def look(self, error: Exception) -> None:
        turn = self.turn
        if turn is None:
            return
        reference = tw.Turn(self.provider)
        for piece in self.chunks:
            reference.feed(piece)
        end = reference.finish()
        want = self.facts(end, tw.TurnGate().decide(end))
        if not stuck(turn.feed, b""):
            try:
                for piece in self.chunks[self.taken :]:
                    turn.feed(piece)
                result = turn.finish()
            except tw.UsageError:
                result = turn.abort(error)  # finish() had done its work
            assert self.facts(result, tw.TurnGate().decide(result)) == want, "something is missing"
            return
        result = turn.abort(error)
        decision = tw.TurnGate().decide(result)
        assert decision.action == "refuse" or self.facts(result, decision) == want, "half a turn was released"
        turn.take_events()
        repr([(c.value, c.marks, c.error, c.complete) for c in result.calls])


class Plain(Scenario):
    """Python code and nothing of ours: does this interpreter itself survive? Some versions free what they still use, or call on with other
    arguments, once they had no memory for a frame."""

    def run(self) -> Any:
        return plainly(self.method)(1, 2, 3, z=4)

    def method(self, *args: Any, **options: Any) -> Any:
        found = any(arg == 3 and options for arg in args)
        return found, json.dumps({"a": [1, {"b": str(args)}], "c": "\u00e9"}, ensure_ascii=False), tuple((arg, str(arg)) for arg in args)

    def look(self, error: Exception) -> None:
        want = (True, '{"a": [1, {"b": "(1, 2, 3)"}], "c": "\u00e9"}', ((1, "1"), (2, "2"), (3, "3")))
        assert [self.run(), self.run(), self.run()] == [want] * 3


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: function(*args, **options)


def stuck(call: Callable[..., Any], *args: Any) -> bool:
    try:
        call(*args)
    except MemoryError:
        return True
    except Exception as error:
        assert type(error).__name__ == "UsageError", error
    return False


def stuck_or_fresh(framer: Any) -> bool:
    """False: every call raises from now on."""
    if not stuck(framer.feed, b""):
        return True
    assert stuck(framer.feed, b"x") and stuck(framer.finish)
    return False


SSE = (b"event: a\nid: 1\ndata: x\ndata: y\n\n" * 3 + b"data: \xff" + b"z" * 100 + b"\n\n") * 2 + b"data: open"
LINES = b'{"a":1}\n["\xff"]\r\n' * 4 + b"{}"
ARRAY = b'[{"a":[1,"}"]},' + b'"x",' * 6 + b'"last"]'


def aws() -> bytes:
    return event("contentBlockDelta", {"delta": {"text": "x" * 40}}) * 4


#: What runs in Python, and so can be judged only where Python itself can.
TURNS: dict[str, Callable[[], Scenario]] = {
    "turn openai-chat": lambda: Turn("openai-chat/demo", 150),
    "turn anthropic": lambda: Turn("anthropic/parallel", 200),
    "turn openai-responses": lambda: Turn("openai-responses/demo", 400),
    "turn google-generate": lambda: Turn("google-generate/demo", 300),
    "turn bedrock": lambda: Turn("bedrock/demo", 300),
}
SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "parser": lambda: Parser(37, snapshots=True),
    "parser whole": lambda: Parser(10_000, snapshots=False),
    "parser small pieces": lambda: Parser(5, snapshots=False),
    "taps": Tapped,
    "loads": Loads,
    "buffer": lambda: Buffer(["{", '"a":[1', "2,", "{},[]", '],"b', '":"x', "y" * 100, "é", "日" * 40, '","c":', "true", "}"]),
    "buffer of a number": lambda: Buffer(["1", "2", ".", "5"]),
    "projection": Projected,
    "SSEFramer": lambda: Framer("SSEFramer", SSE, 23),
    "NDJSONFramer": lambda: Framer("NDJSONFramer", LINES, 9),
    "JSONArrayFramer": lambda: Framer("JSONArrayFramer", ARRAY, 9),
    "AWSEventStreamFramer": lambda: Framer("AWSEventStreamFramer", aws(), 61),
    "ijson.parse": lambda: Pulled("parse"),
    "ijson.items": lambda: Pulled("items", "rows.item"),
    "ijson.kvitems": lambda: Pulled("kvitems", "rows.item"),
    **TURNS,
}


def played(name: str) -> subprocess.CompletedProcess[str]:
    testcapi = pytest.importorskip("_testcapi", reason="this Python comes without its own test module")
    if not hasattr(testcapi, "set_nomemory"):
        pytest.skip("this Python's test module can make no allocation fail")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("a list that gets no memory frees what it never had, in CPython 3.13 without the GIL")
    return subprocess.run([sys.executable, __file__, name], capture_output=True, text=True)


@functools.cache
def python_survives() -> bool:
    return played("python").returncode == 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_allocation_that_fails_loses_nothing_in_silence(name: str) -> None:
    if name in TURNS and not python_survives():
        pytest.skip("this Python does not survive an allocation that fails in code that is only Python")
    done = played(name)
    if done.returncode < 0 and hasattr(sys, "gettotalrefcount") and not python_survives():
        pytest.skip("the assertions of this debug build fail in code that is only Python")
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert report["failures"] > 5, "memory did run out"
    assert report["grown"] <= 0, "every sweep keeps some blocks"


def sweep(make: Callable[[], Scenario], want: Any, run_out: Callable[..., None], back: Callable[[], None]) -> int:
    """Every allocation fails once. Returns how often that was a MemoryError."""
    failures = 0
    for burst in (1, 2):
        n = quiet = 0
        while quiet < ENOUGH:
            scenario = make()
            got, error = None, None
            run_out(n, n + burst)
            try:
                got = scenario.run()
            except (MemoryError, RuntimeError) as caught:
                assert isinstance(caught, MemoryError) or str(caught) in ("can't allocate lock", "")  # CPython's own, for which no words may be left
                error = caught
            finally:
                back()
            if error is None:
                assert got == want, "another outcome"
                quiet += 1
            else:
                failures += 1
                quiet = 0
                try:
                    scenario.look(error.with_traceback(None))
                except BaseException:
                    print("allocation", n, "burst", burst, file=sys.stderr)
                    raise
            n += 1
    return failures


def main(name: str) -> None:
    import _testcapi

    make = Plain if name == "python" else SCENARIOS[name]
    want = make().run()  # also makes what is made once
    failures, grown = sweep(make, want, _testcapi.set_nomemory, _testcapi.remove_mem_hooks), 0
    # CPython loses a frame's arguments where it can not make the frame: what runs Python code between two failures can not be judged.
    for _ in range(0 if isinstance(make(), Turn | Plain) else ROUNDS):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(SWEEPS):
            sweep(make, want, _testcapi.set_nomemory, _testcapi.remove_mem_hooks)
        gc.collect()
        grown = (sys.getallocatedblocks() - before) // SWEEPS
        if grown <= 0:
            break
    print(json.dumps({"failures": failures, "grown": grown}))


if __name__ == "__main__":
    main(sys.argv[1])
