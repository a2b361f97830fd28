"""Several threads, forks and pickles: one object gives each caller its serial result or a ``UsageError``, and objects that share
nothing but a process do not notice each other."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolwire as tw
from aws_messages import event
from resume_elsewhere import go_on
from toolwire._projection import Projection
from turn_helpers import GOOD, calls, chat, chunk, cut, entry, play, sse

TESTS = Path(__file__).parent
FIXTURES = TESTS.parent / "fixtures"
#: Small bodies of every protocol.
BODIES = sorted(
    (path.parent.name, body.read_bytes())
    for path in FIXTURES.glob("*/*.expect.json")
    if path.parent.name in tw.PROVIDERS and (body := path.parent / json.loads(path.read_bytes())["body"]).stat().st_size < 6000
)


@pytest.fixture(autouse=True)
def hurried() -> Iterator[None]:
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*jobs: Callable[[], object]) -> None:
    """Run the jobs at once, each in a thread; the first exception is raised here."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(jobs))

    def run(job: Callable[[], object]) -> None:
        try:
            barrier.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def served(call: Callable[[], Any], give_up: int = 100_000) -> Any:
    """The call's result, asked for until no other thread is in the way."""
    for _ in range(give_up):
        try:
            return call()
        except tw.UsageError as error:
            assert "at work" in str(error) or "busy" in str(error)
            time.sleep(0)
    raise AssertionError("never served")


class Dying:
    """Garbage in a cycle: whenever it is collected, ``last_words`` are said in the middle of whatever allocates then."""

    def __init__(self, last_words: Callable[[], object]) -> None:
        self.me = self
        self.last_words = last_words

    def __del__(self) -> None:
        self.last_words()


@pytest.fixture
def eager_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what is there already is not looked at each time
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


# -- one object, several threads


def test_one_parser() -> None:
    parser, snapshots = tw.JSONParser(), []
    parser.feed(b'{"n":[')

    def feed() -> None:
        for n in range(300):
            served(lambda n=n: parser.feed(b'{"key":%d,"text":"x\\n\xc3\xa9"},' % n))  # type: ignore[misc]

    def read() -> None:
        for _ in range(200):
            value = parser.snapshot()
            snapshots.append((value, repr(value)))
            assert parser.path[:1] == ("n",) and not parser.complete
            assert parser.state(("n",)) == "open"
            served(lambda: pickle.dumps(parser))

    together(feed, feed, feed, read)
    parser.feed(b"0]}")
    elements = parser.finish()["n"]
    assert sorted(e["key"] for e in elements[:-1]) == sorted([*range(300)] * 3)
    assert {e["text"] for e in elements[:-1]} == {"x\né"}
    for value, shown in snapshots:
        assert repr(value) == shown


FRAMERS: list[tuple[Callable[[], Any], bytes, Callable[[int], bytes]]] = [
    (tw.SSEFramer, b"", lambda n: b"id: %d\ndata: %d\n\n" % (n, n)),
    (tw.NDJSONFramer, b"", lambda n: b"%d\n" % n),
    (tw.JSONArrayFramer, b"[", lambda n: b"%d," % n),
    (tw.AWSEventStreamFramer, b"", lambda n: event("e", n)),
    (tw.MessageFramer, b"", lambda n: b"%d" % n),
]


@pytest.mark.parametrize(("make", "head", "one"), FRAMERS, ids=[f[0].__name__ for f in FRAMERS])  # type: ignore[attr-defined]
def test_one_framer(make: Callable[[], Any], head: bytes, one: Callable[[int], bytes]) -> None:
    framer, got = make(), []
    if head:
        framer.feed(head)

    def feed(start: int) -> None:
        for n in range(start, start + 300):
            got.append((n, served(lambda n=n: framer.feed(one(n)))))  # type: ignore[misc]

    def read() -> None:
        for _ in range(200):
            served(lambda: pickle.dumps(framer))
            assert framer.error is None and framer.offset >= 0 and framer.retry is None

    together(lambda: feed(0), lambda: feed(1000), lambda: feed(2000), read)
    assert len(got) == 900
    for n, frames in got:
        assert [frame.raw for frame in frames] == [b"%d" % n], "each caller has the frame that it fed"


def test_one_turn() -> None:
    turn, got, drafts = tw.Turn("openai-chat"), [], []
    turn.feed(sse(calls(entry(0, "c1", "f", '{"n":[')), chunk({"content": "text"})))
    call = turn.calls[0]

    def feed(start: int) -> None:
        for n in range(start, start + 150):
            body = sse(calls(entry(0, arguments=f"{n},")))
            got.append((n, served(lambda body=body: turn.feed(body))))  # type: ignore[misc]

    def read() -> None:
        for _ in range(150):
            value = call.snapshot()
            drafts.append((value, repr(value)))
            assert call.value.keys() <= {"n"} and call.text.startswith('{"n":[') and not call.complete
            served(lambda: pickle.dumps(turn))
            assert not turn.ended and turn.progress > 0

    together(lambda: feed(0), lambda: feed(1000), lambda: feed(2000), read, read)
    for n, events in got:
        assert [e.text for e in events] == [f"{n},"], "each caller has the events of what it fed"
    for value, shown in drafts:
        assert repr(value) == shown
    turn.feed(sse(calls(entry(0, arguments="-1]}"), finish="tool_calls"), "[DONE]"))
    decision = tw.TurnGate().decide(turn.finish())
    assert sorted(decision.runnable[0].arguments["n"]) == sorted([-1, *(n for start in (0, 1000, 2000) for n in range(start, start + 150))])


def test_one_end_of_one_turn() -> None:
    """Whoever comes first, feed, finish or abort: there is one result, and it is everybody's."""
    for _ in range(100):
        turn, results = tw.Turn("openai-chat", on_cut="return"), []
        body = chat(*GOOD)
        turn.feed(body[:-30])

        def feed(turn: tw.Turn = turn, body: bytes = body) -> None:
            with contextlib.suppress(tw.UsageError):  # too late, or in the way
                turn.feed(body[-30:])

        def end(turn: tw.Turn = turn, results: list[tw.TurnResult] = results) -> None:
            results.append(served(turn.finish))

        def abort(turn: tw.Turn = turn, results: list[tw.TurnResult] = results) -> None:
            results.append(served(lambda: turn.abort("aborted")))

        together(feed, end, abort, end)
        assert len({id(result) for result in results}) == 1
        events = turn.take_events()
        assert sum(isinstance(e, tw.TurnEnd) for e in events) == 1
        decision = tw.TurnGate().decide(results[0])
        assert (decision.action == "run") == results[0].ended


def test_one_gate() -> None:
    gate, ran = tw.TurnGate({"get_tide": {"type": "object"}} if _has_schemas() else {"get_tide": None}), []
    results = []
    for n in range(40):
        turn = tw.Turn("openai-chat")
        turn.feed(chat(entry(0, f"c{n}", "get_tide", ""), entry(0, arguments='{"port":"Brest"}')))
        results.append(turn.finish())

    def decide(seed: int) -> None:
        for result in random.Random(seed).sample(results, len(results)):
            ran.extend(call.id for call in gate.decide(result).runnable)

    together(*(lambda seed=seed: decide(seed) for seed in range(4)))  # type: ignore[misc]
    assert sorted(ran) == sorted(f"c{n}" for n in range(40)), "each call runs once, whoever asked"


def _has_schemas() -> bool:
    try:
        import jsonschema_rs  # noqa: F401
    except ImportError:
        return False
    return True


def test_one_socket() -> None:
    socket, ends = tw.ResponsesSocket(), []

    def response(lane: int) -> None:
        for n in range(40):
            base = {"stream_id": f"lane{lane}"}
            made = {"id": f"r{lane}.{n}", "object": "response", "output": [], "status": "in_progress"}
            for payload in (
                {"type": "response.created", "response": made, "sequence_number": 0},
                {"type": "response.completed", "response": {**made, "status": "completed"}, "sequence_number": 1},
            ):
                text = json.dumps(base | payload)
                ends.extend((at, e.result.response_id) for at, e in served(lambda text=text: socket.feed(text)) if isinstance(e, tw.TurnEnd))  # type: ignore[misc]

    together(*(lambda lane=lane: response(lane) for lane in range(3)))  # type: ignore[misc]
    assert sorted(ends) == sorted((f"lane{lane}", f"r{lane}.{n}") for lane in range(3) for n in range(40))
    assert not socket.turns


# -- objects that share nothing but the process


def test_many_parsers() -> None:
    texts = [json.dumps({"key": [n, n / 7, str(n) * 5, {"é" * (n % 5): None}], f"k{n}": n % 2 == 0}, ensure_ascii=n % 3 == 0).encode() for n in range(40)]

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for text in texts:
            parser = tw.JSONParser()
            for piece in cut(text, (rng.randint(0, len(text)) for _ in range(5))):
                parser.feed(piece)
                parser.snapshot()
            assert repr(parser.finish()) == repr(json.loads(text))

    together(*(lambda seed=seed: work(seed) for seed in range(6)))  # type: ignore[misc]


def test_many_turns() -> None:
    want = [play([body], provider).facts() for provider, body in BODIES]
    assert len(want) > 20

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for at in rng.sample(range(len(BODIES)), 20):
            provider, body = BODIES[at]
            assert play(cut(body, (rng.randint(0, len(body)) for _ in range(3))), provider).facts() == want[at]

    together(*(lambda seed=seed: work(seed) for seed in range(4)))  # type: ignore[misc]


@pytest.mark.usefixtures("eager_collector")
def test_turns_of_one_protocol_do_not_meet_in_what_they_share() -> None:
    """The projection and its templates are one for all turns of a protocol; here a turn runs in the middle of another."""
    inner = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1,"a":2}}}]},"finishReason":"STOP"}]}\n\n'
    outer = inner.replace(b'"a":2', b'"b":2')
    seen = []

    def last_words() -> None:
        turn = tw.Turn("google-generate")
        turn.feed(inner)
        seen.append(tw.TurnGate().decide(turn.finish()).reasons)

    for _ in range(20):
        Dying(last_words)
        turn = tw.Turn("google-generate")
        turn.feed(outer)
        decision = tw.TurnGate().decide(turn.finish())
        assert decision.action == "run" and decision.runnable[0].arguments == {"a": 1, "b": 2}
    gc.collect()
    assert set(seen) == {("args_duplicate_key",)}


@pytest.mark.usefixtures("eager_collector")
def test_a_projection_at_work_may_be_applied() -> None:
    class Record:
        duplicate_keys = False

    projection, other, seen = Projection({"a": True}, max_depth=5000), Record(), []

    def last_words() -> None:
        seen.append((projection.apply(b'{"a":[[{"b":[]}]],"a":[{"c":1}]}', other), other.duplicate_keys))

    for _ in range(20):
        record = Record()
        Dying(last_words)
        assert projection.apply(b'{"a":[{"x":[{"y":{}}]},[],{},[{}]],"b":[[[]]]}', record) == {"a": [{"x": [{"y": {}}]}, [], {}, [{}]]}
        assert not record.duplicate_keys
    gc.collect()
    assert seen and all(entry == ({"a": [{"c": 1}]}, True) for entry in seen)


@pytest.mark.usefixtures("eager_collector")
@pytest.mark.parametrize("text", ["x", "é"])
def test_text_may_come_while_a_value_is_read(text: str) -> None:
    for _ in range(20):
        turn = tw.Turn("openai-chat")
        turn.feed(sse(calls(entry(0, "c1", "f", '{"n":[' + f'{{"k":["{text}"]}},' * 50))))
        call, more = turn.calls[0], sse(calls(entry(0, arguments='{"k":[]},' * 400)))

        def last_words(turn: tw.Turn = turn, call: tw.ToolCall = call, more: bytes = more) -> None:
            turn.feed(more)
            assert len(call.value["n"]) == 450

        Dying(last_words)
        assert len(call.value["n"]) in (50, 450)
        gc.collect()
        assert len(call.value["n"]) == 450 and call.error is None
        turn.feed(sse(calls(entry(0, arguments="0]}"), finish="tool_calls"), "[DONE]"))
        assert len(tw.TurnGate().decide(turn.finish()).runnable[0].arguments["n"]) == 451


@pytest.mark.usefixtures("eager_collector")
def test_a_snapshot_taken_while_a_feed_is_at_work_never_changes() -> None:
    parser, kept = tw.JSONParser(), []
    parser.feed(b"[" + b"0," * 100)

    def last_words() -> None:
        value = parser.snapshot()
        kept.append((value, repr(value)))

    for _ in range(20):
        Dying(last_words)
        parser.feed(b'{"a":[[],[]]},["x"],' * 20)
    gc.collect()
    assert kept
    for value, shown in kept:
        assert repr(value) == shown


def test_memory_that_others_write_to_is_read_once() -> None:
    data, parser = bytearray(b'["abc'), tw.JSONParser()
    parser.feed(data)
    data[:] = b"?????"
    assert parser.feed(memoryview(b'd"]')) and parser.finish() == ["abcd"]
    with pytest.raises(tw.UsageError, match="contiguous"):
        tw.JSONParser().feed(memoryview(b"[1,2]")[::2])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="buffers written in Python came with 3.12")
def test_an_exporter_may_use_the_parser_that_asks_it() -> None:
    parser = tw.JSONParser()

    class Exporter:
        def __buffer__(self, flags: int) -> memoryview:
            parser.feed(b"[1]")
            parser.finish()
            return memoryview(b"[2]")

    with pytest.raises(tw.UsageError, match="after finish"):
        parser.feed(Exporter())
    assert parser.value == [1] and parser.unused_data == b""


# -- other processes

HALVES: list[tuple[str, Callable[[], Any], bytes]] = [
    ("JSONParser", lambda: tw.JSONParser(surrogates="replace"), b'{"a":[1,-2.5e3,{"b":"x\\n\\u00e9\\ud83d\\ude00\xf0\x9f\x98\x80"}],"a":true,"\\ud800":null}'),
    ("SSEFramer", tw.SSEFramer, b"\xef\xbb\xbfid: 7\r\nevent: e\r\ndata: a\ndata: \xf0\x9f\x98\x80\r\n\r\nretry: 10\n:c\ndata: b\n\ndata: c"),
    ("NDJSONFramer", tw.NDJSONFramer, b'{"a":1}\r\n\n[2]\n3'),
    ("JSONArrayFramer", tw.JSONArrayFramer, b' [{"a":"]\\""}, 1.5 ,[[]],"x"] '),
    ("AWSEventStreamFramer", tw.AWSEventStreamFramer, event("e", {}) * 2),
    ("Turn", lambda: tw.Turn("openai-chat", on_cut="return"), sse(chunk({"content": "h\u00e9"})) + chat(*GOOD)),
    ("Turn", lambda: tw.Turn("auto", on_cut="return"), chat(*GOOD, done=False)),
]


@pytest.mark.parametrize(("make", "body"), [half[1:] for half in HALVES], ids=[f"{half[0]}{at}" for at, half in enumerate(HALVES)])
def test_what_is_half_fed_goes_on_in_another_process(make: Callable[[], Any], body: bytes) -> None:
    pairs, want = [], []
    for at in range(len(body) + 1):
        thing = make()
        thing.feed(body[:at])
        pairs.append((thing, body[at:]))
    data = pickle.dumps(pairs)
    for thing, rest in pairs:
        want.append(go_on(thing, rest))
    done = subprocess.run([sys.executable, TESTS / "resume_elsewhere.py"], input=data, capture_output=True, check=True)
    assert pickle.loads(done.stdout) == want


FORK = """
import os, pickle, sys
sys.path.insert(0, sys.argv[1])
from resume_elsewhere import go_on
from test_threads import HALVES

for name, make, body in HALVES:
    for at in range(0, len(body) + 1, 1 + len(body) // 12):
        thing = make()
        thing.feed(body[:at])
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(into, pickle.dumps(go_on(thing, body[at:])))
            os._exit(0)
        os.close(into)
        with open(out, "rb") as stream:
            there = pickle.loads(stream.read())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert there == go_on(thing, body[at:]), (name, at)
print("all went on")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_what_is_half_fed_goes_on_in_a_forked_child() -> None:
    done = subprocess.run([sys.executable, "-c", FORK, TESTS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("all went on\n", "")
