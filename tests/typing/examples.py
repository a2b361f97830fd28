"""The public interface as a user's code sees it. Checked by mypy (``tests/test_typing.py``), never run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from typing import Any, Literal, TypeVar, assert_type

import redis

import toolwire as tw
from toolwire.compat.messages import to_anthropic_message, to_langchain_tool_call_chunks, to_openai_items
from toolwire.ledger import Fate, Ledger, MemoryLedger
from toolwire.ledger.redis import RedisLedger
from toolwire.ledger.sqlite import SQLiteLedger
from toolwire.tools import openai_tools

T = TypeVar("T")


def events(body: Iterator[bytes]) -> tw.GateDecision | None:
    """The loop of the README, with every event taken apart."""
    gate = tw.TurnGate({"lookup": {"type": "object"}, "note": None}, policy=tw.GatePolicy(all_or_nothing=True))
    decision: tw.GateDecision | None = None
    stream = tw.iter_events(body, "openai-chat", limits=tw.Limits(max_depth=64), profile="strict", framing="sse", progress_timeout=60)
    assert_type(stream, tw.EventStream)
    for event in stream:
        assert_type(event, tw.Event)
        if isinstance(event, tw.TextDelta):
            assert_type(event.text, str)
            assert_type(event.channel, Literal["text", "reasoning", "refusal"])
            assert_type(event.choice, int)
        elif isinstance(event, tw.ArgumentsDelta):
            assert_type(event.call, tw.ToolCall)
            assert_type(event.text, str)
        elif isinstance(event, (tw.CallStart, tw.CallEnd)):
            assert_type(event.call.name, str | None)
        elif isinstance(event, tw.UsageUpdate):
            assert_type(event.usage, dict[str, Any])
        elif isinstance(event, tw.UnknownFrame):
            assert_type(event.frame, tw.Frame)
        else:
            assert_type(event, tw.TurnEnd)
            decision = gate.decide(event.result)
    assert_type(stream.result, tw.TurnResult | None)
    assert_type(stream.turn, tw.Turn)
    return decision


def ledgers(own: redis.Redis) -> None:
    for ledger in (MemoryLedger(max_keys=10), SQLiteLedger("released.db", timeout=1), RedisLedger(own, expiry=60), RedisLedger("redis://")):
        gate = tw.TurnGate(ledger=ledger, scope="conversation 7")
        assert_type(gate.ledger, Ledger)
        assert_type(ledger.claim(["key"], all_or_nothing=True), dict[str, Fate])
        for call in gate.decide(tw.Turn("auto").finish()).runnable:
            assert_type(call.release_key, str | None)
            gate.settle(call)
            gate.settle(call, "failed")


def decisions(decision: tw.GateDecision) -> None:
    assert_type(decision.action, Literal["run", "refuse", "nothing_to_run"])
    assert_type(decision.reason, str)
    assert_type(decision.reasons, tuple[str, ...])
    assert_type(decision.raise_if_refused(), tw.GateDecision)
    for call in decision.runnable:
        assert_type(call, tw.RunnableCall)
        assert_type(call.id, str)
        assert_type(call.name, str)
        assert_type(call.arguments, Any)
        assert_type(call.call, tw.ToolCall)
    for refusal in decision.refused:
        assert_type(refusal, tw.Refusal)
        assert_type(refusal.fate, Fate | None)
        assert_type(refusal.reasons, tuple[str, ...])
        assert_type(refusal.detail, str)
        assert_type(refusal.details, Mapping[str, str])


def turns(chunks: list[bytes]) -> tw.TurnResult:
    turn = tw.Turn("auto", on_cut="raise", framing=None, profile="default")
    try:
        for chunk in chunks:
            assert_type(turn.feed(chunk), list[tw.Event])
        result = turn.finish()
    except tw.TurnTruncated as cut:
        assert_type(cut.code, str)
        assert_type(cut.offset, int | None)
        result = turn.abort("idle_timeout")
    except tw.StreamError as error:
        result = turn.abort(error)
    assert_type(turn.take_events(), list[tw.Event])
    assert_type(turn.provider, str)
    assert_type(turn.ended, bool)
    assert_type(turn.progress, int)
    assert_type(tw.PROVIDERS, tuple[str, ...])
    return result


def results(result: tw.TurnResult) -> None:
    assert_type(result.outcome, tw.Outcome)
    assert_type(result.outcome is tw.Outcome.STOP, bool)
    assert_type(result.reason, str | None)
    assert_type(result.text, str)
    assert_type(result.truncated, bool)
    assert_type(result.error, BaseException | None)
    assert_type(result.usage, dict[str, Any] | None)
    assert_type(result.marks, tuple[tw.Mark, ...])
    for call in result.calls:
        assert_type(call.key, str)
        assert_type(call.id, str | None)
        assert_type(call.id_is_synthetic, bool)
        assert_type(call.kind, Literal["json", "text"])
        assert_type(call.runs_on, Literal["client", "provider"])
        assert_type(call.text, str)
        assert_type(call.value, Any)
        assert_type(call.snapshot(), Any)
        assert_type(call.complete, bool)
        assert_type(call.extra, dict[str, Any])
        assert_type(call.error, tw.StreamError | None)
        for mark in call.marks:
            assert_type(mark.offset, int | None)
            assert_type(mark.path, tuple[str | int, ...] | None)


def parsers(data: bytes, text: str, view: memoryview) -> object:
    parser = tw.JSONParser(max_depth=10, max_bytes=None, surrogates="replace", duplicate_keys="error", allow_nan=True)
    assert_type(parser.feed(data), bool)
    parser.feed(text)
    parser.feed(view)
    if parser.value is tw.MISSING:
        return None
    assert_type(parser.snapshot(), Any)
    assert_type(parser.complete, bool)
    assert_type(parser.consumed, int | None)
    assert_type(parser.offset, int)
    assert_type(parser.unused_data, bytes)
    assert_type(parser.path, tuple[str | int, ...])
    assert_type(parser.state(("a", 0)), Literal["absent", "open", "complete"])
    assert_type(parser.marks, tuple[tw.Mark, ...])
    try:
        return parser.finish()
    except tw.MalformedJSON as error:
        wrong: ValueError = error
        assert_type(error.code, str)
        assert_type(error.offset, int | None)
        return wrong
    except tw.LimitExceeded as error:
        assert_type(error.limit, str)
        return error
    finally:
        parser.reset()
        assert_type(tw.loads(text, surrogates="keep"), Any)


def framers(chunk: bytes) -> Iterator[tw.Frame]:
    for framer in (tw.SSEFramer(max_frame_bytes=1 << 20), tw.NDJSONFramer(), tw.JSONArrayFramer(), tw.MessageFramer()):
        yield from framer.feed(chunk)
        yield from framer.finish(flush=True)
    sse = tw.SSEFramer()
    for frame in sse.feed(chunk):
        assert_type(frame.event, str)
        assert_type(frame.data, str)
        assert_type(frame.raw, bytes)
        assert_type(frame.offset, int)
        assert_type(frame.terminated, bool)
    assert_type(sse.last_event_id, str)
    assert_type(sse.retry, int | None)


class Frozen:
    """A clock of one's own, as in the documentation."""

    now = 0.0

    def time(self) -> float:
        return self.now

    async def wait(self, fetch: Callable[[], Awaitable[T]], seconds: float) -> T:
        self.now += seconds
        return await fetch()


async def asynchronous(body: AsyncIterator[bytes]) -> tw.TurnResult | None:
    clock: tw.Clock = Frozen()
    async with tw.aiter_events(body, "anthropic", idle_timeout=20, progress_timeout=60, clock=clock) as stream:
        assert_type(stream, tw.AsyncEventStream)
        async for event in stream:
            assert_type(event, tw.Event)
    return stream.result


async def responses(response: Any) -> None:
    assert_type(tw.iter_response(response), tw.EventStream)
    assert_type(tw.aiter_response(response, "anthropic", idle_timeout=20), tw.AsyncEventStream)


def errors() -> None:
    try:
        tw.Turn("none such")
    except tw.UsageError as error:
        assert_type(isinstance(error, tw.ToolwireError), bool)
    except tw.ProviderError as error:
        assert_type(error.type, str | None)
        assert_type(error.raw, Any)
    except tw.GateRefused as error:
        assert_type(error.decision, Any)  # the decision; errors know no other module


# What a checker has to refuse: with warn_unused_ignores (part of --strict) an ignore that is not needed is an error.
def wrong(turn: tw.Turn, call: tw.ToolCall) -> None:
    turn.feed("text")  # type: ignore[arg-type]
    tw.Turn("openai-chat", profile="lenient")  # type: ignore[arg-type]
    tw.TextDelta(b"bytes")  # type: ignore[arg-type]
    tw.TextDelta("text", "thoughts")  # type: ignore[arg-type]
    tw.JSONParser(512)  # type: ignore[call-arg]
    tw.SSEFramer().feed("text")  # type: ignore[arg-type]
    call.text = "other"  # type: ignore[misc]
    tw.TurnGate(["lookup"])  # type: ignore[arg-type]


def taps(call: tw.ToolCall, chunks: Iterator[bytes], achunks: AsyncIterator[bytes]) -> None:
    p = tw.JSONParser()
    assert_type(p.tap(("files", "*", "body")), tw.StringTap)
    assert_type(call.tap(("files", 0, tw.Key("*"))).read(), str)
    for path, text, complete in p.tap(()).pieces():
        assert_type(path, tuple[str | int, ...])
        assert_type(text, str)
        assert_type(complete, bool)
    assert_type(p.items((), forget=True, paths=True).read(), list[Any])
    for piece in tw.iter_text(chunks, ("body",), max_depth=8, surrogates="replace"):
        assert_type(piece, tw.TextPiece)
    assert_type(tw.iter_items(["[", "]"], paths=True), Generator[Any, None, None])
    assert_type(tw.aiter_items(achunks, ("rows",)), AsyncGenerator[Any, None])
    tw.iter_items(chunks, "rows")  # type: ignore[arg-type]
    tw.iter_items(chunks, max_dept=8)  # type: ignore[call-arg]


def definitions(tools: list[dict[str, Any]], result: tw.TurnResult, events: list[tw.Event]) -> None:
    """A gate from what was sent, and messages of what came."""
    assert_type(tw.TurnGate.from_openai_tools(tools, policy=tw.GatePolicy(), ledger=MemoryLedger(), scope="a"), tw.TurnGate)
    tw.TurnGate({**openai_tools(tools), "note": None})
    assert_type(to_anthropic_message(result, choice=1, partial=True), dict[str, Any])
    assert_type(to_openai_items(tw.TurnTruncated(result=result)), list[dict[str, Any]])
    assert_type(to_langchain_tool_call_chunks(events), list[dict[str, Any]])
