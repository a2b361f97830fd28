"""``JSONParser`` and ``Turn`` as a caller may use them: feed, look, keep, change what was shown, drop it, pickle, finish, abort, in any
order. The parser's model is the oracle on the bytes so far; a turn's is the same body played in one piece.
"""

from __future__ import annotations

import gc
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import oracle
import toolwire as tw
from helpers import json_texts, mutated, same
from toolwire._calls import ArgumentBuffer
from turn_helpers import check, play

STEPS = 25
EXAMPLES = settings().max_examples // 3
OPTIONS = st.fixed_dictionaries({"surrogates": st.sampled_from(["error", "replace", "keep"]), "max_depth": st.sampled_from([3, 512])})


def spoil(value: Any, how: int) -> None:
    """Change a container and what is in it, as a careless caller might."""
    seen: set[int] = set()
    while isinstance(value, (dict, list)) and id(value) not in seen:
        seen.add(id(value))
        inner = (list(value.values()) if isinstance(value, dict) else value) or [None]
        inner = inner[-1]
        if how == 0:
            value.clear()
        elif how == 1 and isinstance(value, dict):
            value[next(iter(value), "a")] = value
        elif how == 1:
            value.append(value)
        elif how == 2 and isinstance(value, dict):
            value.update(dict.fromkeys(value, 7), new=[])
        elif how == 2:
            value[:] = [7] * (len(value) + 1)
        value = inner


class ParserMachine(RuleBasedStateMachine):
    """``self.data[: self.at]`` has been fed."""

    @initialize(data=st.one_of(json_texts.map(str.encode), mutated()), options=OPTIONS)
    def begin(self, data: bytes, options: dict[str, Any]) -> None:
        self.options = options
        self.p = tw.JSONParser(**options)
        self.start(data)

    def start(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.error: Exception | None = None
        self.finished = self.spoilt = False
        self.kept: list[tuple[Any, str]] = []
        self.live: list[Any] = []

    def want(self, *, at_end: bool = False) -> oracle.Reading:
        return oracle.read(self.data[: self.at], at_end=at_end, **self.options)

    @rule(n=st.integers(0, 9), kind=st.sampled_from([bytes, bytearray, memoryview]))
    def feed(self, n: int, kind: type) -> None:
        chunk = self.data[self.at : self.at + n]
        if self.finished:
            with pytest.raises(tw.UsageError):
                self.p.feed(kind(chunk))
        elif self.error is not None:
            with pytest.raises(type(self.error)) as caught:
                self.p.feed(kind(chunk))
            assert caught.value is self.error
        else:
            self.at += len(chunk)
            want = self.want()
            if want.state == "malformed":
                with pytest.raises(tw.StreamError) as bad:
                    self.p.feed(kind(chunk))
                assert bad.value.code in want.codes
                assert bad.value.offset == want.offset
                self.error = bad.value
            else:
                assert self.p.feed(kind(chunk)) is (want.state == "complete")

    @rule()
    def keep_a_snapshot(self) -> None:
        snapshot = self.p.snapshot()
        self.kept.append((snapshot, repr(snapshot)))

    @rule()
    def look(self) -> None:
        self.live.append(self.p.value)
        path = self.p.path
        assert self.p.state(path) in ("absent", "open", "complete")
        repr((self.p, self.p.marks, self.p.unused_data))

    @precondition(lambda self: self.live)
    @rule(how=st.integers(0, 2))
    def change_the_live_value(self, how: int) -> None:
        self.spoilt = True
        self.kept.clear()  # what is finished is shared with them
        spoil(self.live[-1], how)

    @precondition(lambda self: self.kept)
    @rule(how=st.integers(0, 2))
    def change_a_snapshot(self, how: int) -> None:
        self.spoilt = True
        snapshot = self.kept.pop()[0]
        self.kept.clear()
        spoil(snapshot, how)

    @rule()
    def drop_everything(self) -> None:
        self.kept.clear()
        self.live.clear()
        gc.collect(0)

    @rule()
    def move_to_another_process(self) -> None:
        self.p = pickle.loads(pickle.dumps(self.p))
        if self.error is not None:
            with pytest.raises(type(self.error)) as caught:
                self.p.feed(b"")
            assert str(caught.value) == str(self.error)
            self.error = caught.value

    @rule()
    def finish(self) -> None:
        want = self.want(at_end=True)
        if self.error is not None:
            with pytest.raises(type(self.error)) as caught:
                self.p.finish()
            assert caught.value is self.error
        elif want.codes:
            with pytest.raises(ValueError) as bad:
                self.p.finish()
            assert (bad.value.code in want.codes, bad.value.offset) == (True, want.offset)  # type: ignore[attr-defined]
            self.error = bad.value
        else:
            value = self.p.finish()
            self.finished = True
            assert self.spoilt or same(value, want.value)

    @rule(data=st.one_of(json_texts.map(str.encode), mutated()))
    def reset(self, data: bytes) -> None:
        self.p.reset()
        self.start(data)

    @invariant()
    def snapshots_stay(self) -> None:
        for snapshot, text in getattr(self, "kept", ()):
            assert repr(snapshot) == text

    @invariant()
    def it_says_what_the_oracle_says(self) -> None:
        if not hasattr(self, "data"):
            return
        want = self.want(at_end=self.finished)
        assert self.p.complete is (want.consumed is not None or (self.finished and want.state == "complete"))
        if want.state != "malformed":
            assert self.p.offset == self.at
        assert self.spoilt or same(self.p.snapshot(), want.value)


FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NAMES = [f"{path.parent.name}/{path.name}" for path in sorted(FIXTURES.glob("*/[dp]*.expect.json"))]


class TurnMachine(RuleBasedStateMachine):
    """``self.data[: self.at]`` has been fed."""

    @initialize(name=st.sampled_from(NAMES), share=st.sampled_from([1.0, 1.0, 0.7, 0.3]))
    def begin(self, name: str, share: float) -> None:
        expect = json.loads((FIXTURES / name).read_bytes())
        data = (FIXTURES / name).with_name(expect["body"]).read_bytes()
        self.provider = expect["provider"]
        self.data = data[: int(len(data) * share)]
        self.at = 0
        self.turn = tw.Turn(self.provider, on_cut="return")
        self.result: tw.TurnResult | None = None
        self.aborted: str | None = None
        self.kept: list[tuple[Any, str]] = []

    @rule(n=st.sampled_from([0, 1, 7, 64, 500, 3000]))
    def feed(self, n: int) -> None:
        if self.result is not None:
            with pytest.raises(tw.UsageError):
                self.turn.feed(self.data[:n])
            return
        self.turn.feed(self.data[self.at : self.at + n])
        self.at += n

    @rule()
    def not_bytes(self) -> None:
        with pytest.raises(tw.UsageError):
            self.turn.feed(None)  # type: ignore[arg-type]

    @rule()
    def look_at_every_call(self) -> None:
        for call in self.turn.calls:
            snapshot = call.snapshot()
            self.kept.append((snapshot, repr(snapshot)))
            repr((call, call.text, call.complete, call.error, call.marks, call.doubts))

    @rule(how=st.integers(0, 2))
    def change_every_value(self, how: int) -> None:
        self.kept.clear()
        for call in self.turn.calls:
            spoil(call.value, how)

    @rule()
    def drop_everything(self) -> None:
        self.kept.clear()
        gc.collect(0)

    @rule()
    def move_to_another_process(self) -> None:
        self.turn = pickle.loads(pickle.dumps(self.turn))
        if self.result is not None:
            self.result = self.turn.finish()

    @rule()
    def finish(self) -> None:
        try:
            result = self.turn.finish()
        except tw.StreamError as error:  # a few bytes are no event stream
            with pytest.raises(type(error)) as again:
                self.turn.finish()
            assert again.value is error
            result = self.turn.abort(error)
        assert self.result is None or result is self.result
        self.result = result

    @rule(cause=st.sampled_from(["aborted", "idle_timeout"]))
    def abort(self, cause: str) -> None:
        first = self.turn.abort(cause)
        if self.result is None:
            self.aborted = cause
        assert self.result is None or first is self.result
        self.result = first

    @invariant()
    def snapshots_stay(self) -> None:
        for snapshot, text in getattr(self, "kept", ()):
            assert repr(snapshot) == text

    def teardown(self) -> None:
        """Whatever the caller did, the gate says what it says of the same bytes in one piece."""
        if not hasattr(self, "data"):
            return
        whole = play([self.data[: self.at]], self.provider, abort=self.aborted)
        check(whole)
        self.finish()
        result = self.result
        assert result is not None
        decision = tw.TurnGate().decide(result)
        assert (result.outcome, result.texts, result.usage) == (whole.result.outcome, whole.result.texts, whole.result.usage)
        assert [(c.id, c.name, c.text) for c in result.calls] == [(c.id, c.name, c.text) for c in whole.calls]
        assert (decision.action, decision.reason) == (whole.action, whole.decision.reason)
        assert [(c.id, c.name, c.arguments) for c in decision.runnable] == whole.ran


TestParser = ParserMachine.TestCase
TestParser.settings = settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
TestTurn = TurnMachine.TestCase
TestTurn.settings = settings(max_examples=EXAMPLES, stateful_step_count=STEPS)


def test_arguments_that_a_finaliser_adds_while_their_value_is_read_are_not_lost() -> None:
    buffer = ArgumentBuffer(max_chars=1 << 20)
    inside: list[object] = []

    class Late:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            buffer.append('"' + "x" * 100_000 + '"]')
            inside.append(buffer.snapshot())

    buffer.append("[" + "{},[]," * 3000)
    before = gc.get_threshold()
    gc.collect()
    Late()
    try:
        gc.set_threshold(500)  # the collector runs in the middle of the parse
        buffer.value  # noqa: B018
    finally:
        gc.set_threshold(*before)
    assert inside == [json.loads(buffer.text)], "it was read from inside itself"
    assert buffer.value == json.loads(buffer.text)
    assert buffer.complete
