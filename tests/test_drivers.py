"""The drivers: every way in which a body can end is one TurnEnd, and no clock of these tests is a real one."""

from __future__ import annotations

import asyncio
import gc
import json
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from toolwire.drivers import AsyncEventStream, EventStream, aiter_events, iter_events
from toolwire.errors import LimitExceeded, MalformedFrame, MalformedJSON, ProviderError, TurnTruncated, UsageError
from toolwire.events import ArgumentsDelta, CallEnd, CallStart, Outcome, TextDelta, TurnEnd, TurnResult, UnknownFrame, UsageUpdate
from toolwire.gate import TurnGate
from toolwire.limits import Limits
from toolwire.turn import Turn

T = TypeVar("T")
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


# -- bodies ---------------------------------------------------------------------------------------------------------------


def frame(payload: Any, event: str | None = None) -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()


def chat(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return frame({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def fragment(text: str, **start: Any) -> bytes:
    function: dict[str, Any] = {"arguments": text}
    if start:
        function["name"] = start["name"]
    call = {"index": 0, "function": function, **({"id": start["id"], "type": "function"} if start else {})}
    return chat({"tool_calls": [call]})


START = fragment("", id="call_1", name="hoist")
HALF = fragment('{"mast":')
REST = fragment('"fore"}')
FINISH = chat({}, "tool_calls")
DONE = b"data: [DONE]\n\n"
GOOD = [START, HALF, REST, FINISH, DONE]
PING = b": keep-alive\n\n"


def anthropic(kind: str, **members: Any) -> bytes:
    return frame({"type": kind, **members}, kind)


MESSAGE_START = anthropic(
    "message_start",
    message={"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "usage": {"input_tokens": 1}},
)
ANTHROPIC_PING = anthropic("ping")
TOOL_USE = [
    anthropic("content_block_start", index=0, content_block={"type": "tool_use", "id": "toolu_1", "name": "hoist", "input": {}}),
    anthropic("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '{"mast":'}),
    anthropic("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '"fore"}'}),
    anthropic("content_block_stop", index=0),
    anthropic("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9}),
    anthropic("message_stop"),
]


def shown(event: Any) -> Any:
    """An event as a value that compares."""
    if isinstance(event, (CallStart, CallEnd)):
        return type(event).__name__, event.call.key, event.call.name
    if isinstance(event, ArgumentsDelta):
        return "ArgumentsDelta", event.call.key, event.text
    if isinstance(event, TextDelta):
        return "TextDelta", event.text, event.channel
    if isinstance(event, UsageUpdate):
        return "UsageUpdate", event.usage
    if isinstance(event, UnknownFrame):
        return "UnknownFrame", event.frame.offset
    return "TurnEnd", event.result.outcome, event.result.text, [(c.key, c.id, c.text, c.complete) for c in event.result.calls]


def last(events: list[Any]) -> TurnResult:
    """The result that ends them; it ends them once, and nothing comes after."""
    assert [type(e) for e in events].count(TurnEnd) == 1
    assert isinstance(events[-1], TurnEnd)
    result: TurnResult = events[-1].result
    return result


class Body:
    """A synchronous body that can fail and knows whether it was closed."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.asked = 0
        self.closed = 0

    def __iter__(self) -> Body:
        return self

    def __next__(self) -> Any:
        self.asked += 1
        if not self.script:
            raise StopIteration
        item = self.script.pop(0)
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        self.closed += 1


class AsyncBody:
    """An asynchronous one. A number in its script is a silence of so many seconds."""

    def __init__(self, *script: Any, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> None:
        self.script = list(script)
        self.sleep = sleep
        self.asked = 0
        self.closed = 0
        self.cancelled = 0

    def __aiter__(self) -> AsyncBody:
        return self

    async def __anext__(self) -> Any:
        self.asked += 1
        while self.script:
            item = self.script.pop(0)
            if isinstance(item, (int, float)):
                try:
                    await self.sleep(item)
                except BaseException:
                    self.cancelled += 1
                    raise
            elif isinstance(item, BaseException):
                raise item
            else:
                return item
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1


FOREVER = 1e9


class _Skip(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """A selector that never sleeps: it puts the loop's clock forward instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "the loop waits for something that will never come"
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio with a clock that runs only while everybody sleeps."""

    def __init__(self) -> None:
        self.skip = _Skip()
        super().__init__(self.skip)

    def time(self) -> float:
        return self.skip.now


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


async def collect(stream: AsyncEventStream) -> list[Any]:
    return [event async for event in stream]


def collected(*script: Any, provider: str = "openai-chat", **options: Any) -> tuple[list[Any], AsyncBody, float]:
    """All events of a body, the body, and the moment of the end."""
    body = AsyncBody(*script)

    async def main() -> tuple[list[Any], AsyncBody, float]:
        events = await collect(aiter_events(body, provider, **options))
        return events, body, asyncio.get_running_loop().time()

    return run(main())


# -- a body that ends ------------------------------------------------------------------------------------------------------


def test_events_are_those_of_the_turn_and_then_turn_end():
    turn = Turn("openai-chat")
    expected = [*turn.feed(b"".join(GOOD))]
    turn.finish()
    expected += turn.take_events()
    events = list(iter_events(GOOD, "openai-chat"))
    assert [shown(e) for e in events] == [shown(e) for e in expected]
    assert [shown(e) for e in events] == [
        ("CallStart", "0.0", "hoist"),
        ("ArgumentsDelta", "0.0", '{"mast":'),
        ("ArgumentsDelta", "0.0", '"fore"}'),
        ("TurnEnd", Outcome.TOOL_CALLS, "", [("0.0", "call_1", '{"mast":"fore"}', True)]),
    ]
    decision = TurnGate().decide(last(events))
    assert [(c.name, c.arguments) for c in decision.runnable] == [("hoist", {"mast": "fore"})]


@pytest.mark.parametrize("name", ["demo", "parallel", "text_and_reasoning", "../quirks/48_noise", "end_finish_unterminated", "error_event", "cut_mid_utf8"])
def test_both_drivers_give_the_same_for_every_cut_of_a_fixture(name: str):
    data = (FIXTURES / "openai-chat" / f"{name}.sse").read_bytes()
    expected = [shown(e) for e in iter_events([data], "openai-chat")]
    for size in (1, 2, 3, 7, 64, 1000):
        chunks = [data[n : n + size] for n in range(0, len(data), size)]
        assert [shown(e) for e in iter_events(chunks, "openai-chat")] == expected
        events, body, _ = collected(*chunks)
        assert [shown(e) for e in events] == expected
        assert body.closed == 1


def test_asynchronous_driver_takes_plain_iterables_too():
    async def main() -> list[Any]:
        return await collect(aiter_events(iter(GOOD), "openai-chat", idle_timeout=5))

    events = run(main())
    assert [shown(e) for e in events] == [shown(e) for e in iter_events(GOOD, "openai-chat")]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_like_chunk_will_do(kind: type):
    assert last(list(iter_events([kind(c) for c in GOOD], "auto"))).outcome is Outcome.TOOL_CALLS


def test_framing_message_takes_each_item_as_one_message():
    messages = [c.removeprefix(b"data: ").strip().decode() for c in GOOD]
    result = last(list(iter_events(messages, "openai-chat", framing="message")))
    assert (result.outcome, result.calls[0].text, result.marks) == (Outcome.TOOL_CALLS, '{"mast":"fore"}', ())


def test_body_is_read_to_its_end_and_then_closed():
    body = Body(*GOOD, b": tail\n\n", b"")
    stream = iter_events(body, "openai-chat")
    events = list(stream)
    assert last(events).outcome is Outcome.TOOL_CALLS
    assert body.script == []
    assert body.closed == 1
    assert stream.result is last(events)
    assert list(stream) == []
    stream.close()
    assert body.closed == 1


def test_result_is_none_until_the_end_and_drafts_are_in_the_turn():
    stream = iter_events(GOOD, "openai-chat")
    assert isinstance(next(stream), CallStart)
    assert stream.result is None
    next(stream)
    assert [c.text for c in stream.turn.calls] == ['{"mast":']


def test_next_chunk_is_read_only_when_it_is_asked_for():
    body = Body(START, HALF, REST)
    stream = iter_events(body, "openai-chat")
    next(stream)
    assert body.asked == 1
    next(stream)
    assert body.asked == 2


@pytest.mark.parametrize("provider", ["openai-chat", "google-generate", "auto"])
def test_cut_stands_in_the_result_and_is_never_raised(provider: str):
    try:
        Turn(provider)
    except UsageError:
        pytest.skip(f"no adapter for {provider}")
    result = last(list(iter_events([], provider)))
    assert isinstance(result.error, TurnTruncated)
    assert result.error.code == "turn.empty"
    assert result.error.result is result
    assert (result.truncated, result.outcome) == (True, Outcome.CUT)


def test_cut_keeps_what_had_arrived():
    events = list(iter_events([START, HALF], "openai-chat"))
    result = last(events)
    assert isinstance(result.error, TurnTruncated)
    assert result.error.code == "turn.cut"
    assert result.calls[0].text == '{"mast":'
    assert TurnGate().decide(result).reason == "turn_not_ended"
    events, body, _ = collected(START, HALF)
    assert isinstance(last(events).error, TurnTruncated)
    assert body.closed == 1


def test_events_that_only_the_end_brings_come_before_turn_end():
    # The last frame lacks its blank line: only finish() lets it count.
    events = list(iter_events([chat({"content": "a"}), chat({"content": "b"}, "stop").rstrip()], "openai-chat"))
    assert [shown(e) for e in events[:-1]] == [("TextDelta", "a", "text"), ("TextDelta", "b", "text")]
    assert last(events).text == "ab"


# -- wrong bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_wrong_bytes_end_the_turn_after_the_good_events(driver: str):
    script = [START + HALF + b'data: {"choices": nul}\n\n', REST, FINISH, DONE]
    if driver == "sync":
        body: Any = Body(*script)
        events = list(iter_events(body, "openai-chat"))
    else:
        events, body, _ = collected(*script)
    assert [shown(e)[0] for e in events] == ["CallStart", "ArgumentsDelta", "TurnEnd"]
    result = last(events)
    assert isinstance(result.error, MalformedJSON)
    assert result.error.code == "json.bad_literal"
    assert result.error.offset == len(START + HALF + b'data: {"choices": nul')
    assert TurnGate().decide(result).action == "refuse"
    # Known from the chunk that holds them: a next chunk is not waited for.
    assert (body.asked, body.closed) == (1, 1)


def test_wrong_bytes_that_only_the_end_shows():
    result = last(list(iter_events([b"hello", b" world"], "auto")))
    assert isinstance(result.error, MalformedFrame)
    assert result.error.code == "frame.not_event_stream"
    events, _, _ = collected(b"hello", b" world", provider="auto")
    assert isinstance(last(events).error, MalformedFrame)


def test_limit_ends_the_turn_with_its_name():
    result = last(list(iter_events(GOOD, "openai-chat", limits=Limits(max_argument_chars=5))))
    assert isinstance(result.error, LimitExceeded)
    assert result.error.limit == "max_argument_chars"
    assert TurnGate().decide(result).action == "refuse"


def test_provider_error_is_a_result():
    result = last(list(iter_events([START, frame({"error": {"message": "overloaded", "type": "server_error"}})], "openai-chat")))
    assert isinstance(result.error, ProviderError)
    assert result.outcome is Outcome.ERROR


# -- transport errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), OSError("no"), RuntimeError("?"), TypeError("x")])
def test_transport_error_within_a_call_is_kept_and_not_raised(error: Exception):
    body = Body(START, HALF, error)
    events = list(iter_events(body, "openai-chat"))
    result = last(events)
    assert result.error is error
    assert (result.truncated, result.cause, result.calls[0].text) == (True, None, '{"mast":')
    assert TurnGate().decide(result).reasons == ("turn_not_ended", "args_incomplete")
    assert body.closed == 1
    events, abody, _ = collected(START, HALF, error)
    assert last(events).error is error
    assert abody.closed == 1


@pytest.mark.parametrize("at", range(5))
def test_transport_error_before_the_end_lets_nothing_run(at: int):
    result = last(list(iter_events(Body(*GOOD[:at], ConnectionError()), "openai-chat")))
    assert TurnGate().decide(result).runnable == ()


def test_transport_error_after_the_providers_end_changes_nothing():
    result = last(list(iter_events(Body(*GOOD, ConnectionError()), "openai-chat")))
    assert (result.outcome, result.error, result.truncated) == (Outcome.TOOL_CALLS, None, False)
    assert TurnGate().decide(result).action == "run"


def _named(name: str, base: type[Exception] = Exception) -> type[Exception]:
    return type(name, (base,), {})


def _wrapped() -> Exception:
    """What requests raises when urllib3 times out between two chunks."""
    try:
        try:
            raise _named("ReadTimeoutError", _named("TimeoutError"))()
        except Exception as inner:
            raise _named("ConnectionError", OSError)(inner) from None
    except Exception as error:
        return error


@pytest.mark.parametrize(
    "error",
    [TimeoutError("t"), _named("ReadTimeout", _named("TimeoutException"))(), _named("ReadTimeout", _named("Timeout", OSError))(), _wrapped()],
    ids=["builtin", "httpx", "requests", "requests-wrapped"],
)
def test_time_out_of_the_transport_has_the_reason_of_a_time_out(error: Exception):
    result = last(list(iter_events(Body(START, error), "openai-chat")))
    assert (result.cause, result.error) == ("idle_timeout", error)
    assert "idle_timeout" in TurnGate().decide(result).reasons
    events, _, _ = collected(START, error, idle_timeout=60)
    assert last(events).error is error


def test_error_while_closing_is_no_error_of_the_turn():
    class Rude(Body):
        def close(self) -> None:
            super().close()
            raise OSError("already gone")

    body = Rude(*GOOD)
    assert last(list(iter_events(body, "openai-chat"))).outcome is Outcome.TOOL_CALLS
    assert body.closed == 1


# -- clocks ----------------------------------------------------------------------------------------------------------------


def test_silence_after_the_first_frame_times_out_at_the_limit():
    events, body, now = collected(MESSAGE_START, FOREVER, provider="anthropic", idle_timeout=60)
    result = last(events)
    assert now == 60
    assert (result.cause, result.outcome, result.truncated) == ("idle_timeout", Outcome.CUT, True)
    assert isinstance(result.error, TimeoutError)
    assert str(result.error) == "no byte for 60 s (idle_timeout)"
    decision = TurnGate().decide(result)
    assert (decision.action, decision.reasons) == ("refuse", ("turn_not_ended", "idle_timeout"))
    assert (body.cancelled, body.closed) == (1, 1)


def test_pings_keep_a_thinking_turn_alive():
    script = [MESSAGE_START]
    for _ in range(20):
        script += [15, ANTHROPIC_PING]  # type: ignore[list-item]
    events, _, now = collected(*script, *TOOL_USE, provider="anthropic", idle_timeout=60)
    result = last(events)
    assert now == 300
    assert (result.error, result.outcome) == (None, Outcome.TOOL_CALLS)
    decision = TurnGate().decide(result)
    assert decision.action == "run"
    assert [(c.id, c.name, c.arguments) for c in decision.runnable] == [("toolu_1", "hoist", {"mast": "fore"})]


def test_pings_are_no_progress():
    script = [START, HALF, *[15, PING] * 100]
    events, _, now = collected(*script, idle_timeout=60, progress_timeout=100)
    assert now == 100
    assert last(events).cause == "idle_timeout"
    assert str(last(events).error) == "no text and no argument text for 100 s (progress_timeout)"


@pytest.mark.parametrize("piece", [fragment(" "), chat({"content": "x"}), chat({"reasoning_content": "x"})], ids=["arguments", "text", "reasoning"])
def test_text_and_argument_text_are_progress(piece: bytes):
    events, _, now = collected(START, *[90, piece] * 5, 90, FINISH, DONE, progress_timeout=100)
    assert now == 540
    assert last(events).error is None


def test_progress_times_out_even_where_each_chunk_comes_at_once():
    # 51 s of pings: the limit of 50 s is noticed when the ping after it has come, or in the silence, whatever is first.
    _, _, now = collected(START, *[17, PING] * 3, FOREVER, progress_timeout=50)
    assert now == 50


def test_empty_chunks_are_no_bytes():
    events, _, now = collected(START, *[20, b""] * 10, idle_timeout=60)
    assert now == 60
    assert str(last(events).error) == "no byte for 60 s (idle_timeout)"


def test_time_the_consumer_takes_does_not_count():
    body = AsyncBody(*GOOD)

    async def main() -> list[Any]:
        events = []
        async for event in aiter_events(body, "openai-chat", idle_timeout=1, progress_timeout=1):
            events.append(event)
            await asyncio.sleep(1000)
        return events

    assert last(run(main())).outcome is Outcome.TOOL_CALLS


def test_bytes_before_the_limit_are_in_time():
    events, _, now = collected(START, 59, HALF, 59, REST, 59, FINISH, 59, DONE, 59, idle_timeout=60)
    assert now == 295
    assert last(events).outcome is Outcome.TOOL_CALLS


def test_time_out_after_the_providers_end_changes_nothing():
    events, body, now = collected(*GOOD, FOREVER, idle_timeout=30)
    assert now == 30
    assert (last(events).outcome, last(events).error, last(events).cause) == (Outcome.TOOL_CALLS, None, None)
    assert body.closed == 1


def test_source_that_turns_a_cancellation_into_an_error_has_still_timed_out():
    class Turning(AsyncBody):
        async def __anext__(self) -> Any:
            try:
                return await super().__anext__()
            except asyncio.CancelledError:
                raise OSError("stream reset") from None

    async def main() -> list[Any]:
        return await collect(aiter_events(Turning(START, FOREVER), "openai-chat", idle_timeout=5))

    result = last(run(main()))
    assert (result.cause, str(result.error)) == ("idle_timeout", "no byte for 5 s (idle_timeout)")


def test_source_that_never_closes_does_not_hold_up_the_end():
    class Stuck(AsyncBody):
        async def aclose(self) -> None:
            await super().aclose()
            await asyncio.sleep(FOREVER)

    body = Stuck(START, FOREVER)

    async def main() -> tuple[list[Any], float]:
        return await collect(aiter_events(body, "openai-chat", idle_timeout=5)), asyncio.get_running_loop().time()

    events, now = run(main())
    assert (last(events).cause, now, body.closed) == ("idle_timeout", 10, 1)


class HandClock:
    """A clock that the test moves: ``wait`` lets the body run if it would answer in time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[float] = []
        self.silence = 0.0

    def time(self) -> float:
        return self.now

    async def wait(self, fetch: Callable[[], Awaitable[T]], seconds: float) -> T:
        self.asked.append(seconds)
        if self.silence >= seconds:
            self.now += seconds
            raise TimeoutError
        self.now += self.silence
        return await fetch()


def test_clock_of_the_caller_is_asked_for_the_shorter_of_both_limits():
    clock = HandClock()
    clock.silence = 8.0
    body = AsyncBody(START, HALF, PING, PING, PING, PING)

    async def main() -> list[Any]:
        return await collect(aiter_events(body, "openai-chat", idle_timeout=10, progress_timeout=20, clock=clock))

    result = last(run(main()))
    assert str(result.error) == "no text and no argument text for 20 s (progress_timeout)"
    # Argument text at 16; from there bytes reset the first limit only.
    assert clock.asked[:5] == [10, 10, 10, 10, 4]  # and once more to close the body
    assert clock.now == 36 + 8


def test_synchronous_driver_looks_at_progress_between_chunks():
    clock = HandClock()

    def body() -> Iterator[bytes]:
        yield START
        yield HALF
        for _ in range(100):
            clock.now += 15
            yield PING

    result = last(list(iter_events(body(), "openai-chat", progress_timeout=40, clock=clock)))
    assert clock.now == 45
    assert (result.cause, str(result.error)) == ("idle_timeout", "no text and no argument text for 40 s (progress_timeout)")


def test_trio_times_out_by_its_own_clock():
    trio = pytest.importorskip("trio")
    from trio.testing import MockClock

    async def main() -> tuple[list[Any], float]:
        body = AsyncBody(MESSAGE_START, 15, ANTHROPIC_PING, FOREVER, sleep=trio.sleep)
        began = trio.current_time()
        events = await collect(aiter_events(body, "anthropic", idle_timeout=60))
        return events, trio.current_time() - began

    events, took = trio.run(main, clock=MockClock(autojump_threshold=0))
    assert took == 75
    assert (last(events).cause, str(last(events).error)) == ("idle_timeout", "no byte for 60 s (idle_timeout)")


def test_trio_cancellation_keeps_the_result_and_goes_on():
    trio = pytest.importorskip("trio")
    from trio.testing import MockClock

    async def main() -> tuple[AsyncEventStream, bool, list[Any]]:
        stream = aiter_events(AsyncBody(START, HALF, FOREVER, sleep=trio.sleep), "openai-chat", idle_timeout=60)
        events = []
        with trio.move_on_after(7) as scope:
            async for event in stream:
                events.append(event)
        return stream, scope.cancelled_caught, events

    stream, caught, events = trio.run(main, clock=MockClock(autojump_threshold=0))
    assert caught
    assert len(events) == 2
    assert stream.result is not None
    assert (stream.result.cause, stream.result.outcome) == ("aborted", Outcome.CANCELLED)
    assert TurnGate().decide(stream.result).reason == "turn_not_ended"


def test_time_outs_under_an_unknown_event_loop_ask_for_a_clock():
    stream = aiter_events(AsyncBody(*GOOD), "openai-chat", idle_timeout=1)
    with pytest.raises(UsageError, match="give clock="):
        stream.__anext__().send(None)


def test_without_time_outs_any_event_loop_will_do():
    stream = aiter_events(AsyncBody(*GOOD), "openai-chat")
    with pytest.raises(StopIteration) as first:  # how a coroutine returns
        stream.__anext__().send(None)
    assert isinstance(first.value.value, CallStart)


# -- cancellation ----------------------------------------------------------------------------------------------------------


def _await_count(*script: Any, **options: Any) -> int:
    """How often the driver gives way to the event loop."""
    stream = aiter_events(AsyncBody(*script), "openai-chat", **options)
    count = 0

    async def main() -> None:
        nonlocal count
        task = asyncio.ensure_future(collect(stream))
        while not task.done():
            await asyncio.sleep(0)
            count += 1

    run(main())
    return count


@pytest.mark.parametrize("options", [{}, {"idle_timeout": 60, "progress_timeout": 60}], ids=["plain", "clocks"])
def test_cancellation_at_each_await_keeps_a_result_and_goes_on(options: dict[str, Any]):
    script: list[Any] = []
    for chunk in GOOD:
        script += [0, chunk]
    script.append(0)
    steps = _await_count(*script, **options)
    assert steps >= len(GOOD)
    seen = set()
    for step in range(1, steps):
        body = AsyncBody(*script)
        stream = aiter_events(body, "openai-chat", **options)

        async def main(stream: AsyncEventStream = stream, step: int = step) -> None:
            task = asyncio.ensure_future(collect(stream))
            for _ in range(step):
                await asyncio.sleep(0)
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(main())
        result = stream.result
        assert result is not None
        assert body.closed == 1
        decision = TurnGate().decide(result)
        if result.truncated:
            assert (result.cause, result.outcome) == ("aborted", Outcome.CANCELLED)
            assert isinstance(result.error, asyncio.CancelledError)
            assert decision.reasons[:2] == ("turn_not_ended", "aborted")
            assert decision.runnable == ()
        else:  # [DONE] had been read
            assert (result.outcome, result.error) == (Outcome.TOOL_CALLS, None)
        seen.add(result.truncated)
    assert seen == {True, False}


def test_turn_end_comes_still_after_a_cancellation_that_was_caught():
    async def main() -> None:
        body = AsyncBody(START, asyncio.CancelledError(), HALF)
        stream = aiter_events(body, "openai-chat")
        assert isinstance(await anext(stream), CallStart)
        with pytest.raises(asyncio.CancelledError):
            await anext(stream)
        events = await collect(stream)
        assert last(events) is stream.result
        assert len(events) == 1
        assert body.script == [HALF]

    run(main())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_goes_on_after_the_result_is_kept(kind: type[BaseException]):
    body = Body(START, HALF, kind())
    stream = iter_events(body, "openai-chat")
    with pytest.raises(kind):
        list(stream)
    assert stream.result is not None
    assert (stream.result.cause, stream.result.calls[0].text) == ("aborted", '{"mast":')
    assert type(stream.result.error) is kind
    assert body.closed == 1


def test_coroutine_that_is_thrown_away_keeps_the_result():
    body = AsyncBody(START, 1)

    class Pause:
        def __await__(self) -> Iterator[None]:
            yield

    async def pause(_: float) -> None:
        await Pause()

    body.sleep = pause
    stream = aiter_events(body, "openai-chat")
    with pytest.raises(StopIteration):
        stream.__anext__().send(None)
    waiting = stream.__anext__()
    waiting.send(None)
    waiting.close()  # type: ignore[attr-defined]
    assert stream.result is not None
    assert stream.result.cause == "aborted"


def test_time_out_around_the_whole_loop_is_a_cancellation():
    async def main() -> AsyncEventStream:
        stream = aiter_events(AsyncBody(START, FOREVER), "openai-chat", idle_timeout=60)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await collect(stream)
        return stream

    stream = run(main())
    assert stream.result is not None
    assert stream.result.cause == "aborted"


# -- ending early ----------------------------------------------------------------------------------------------------------


def test_leaving_the_with_block_closes_the_source_and_keeps_the_result():
    body = Body(*GOOD)
    with iter_events(body, "openai-chat") as stream:
        for _ in stream:
            break
    assert body.closed == 1
    assert stream.result is not None
    assert (stream.result.cause, stream.result.error, stream.result.outcome) == ("aborted", None, Outcome.CANCELLED)
    assert list(stream) == []
    assert TurnGate().decide(stream.result).action == "refuse"


def test_leaving_the_asynchronous_with_block_closes_the_source():
    body = AsyncBody(*GOOD)

    async def main() -> AsyncEventStream:
        async with aiter_events(body, "openai-chat") as stream:
            async for _ in stream:
                break
        assert await collect(stream) == []
        return stream

    stream = run(main())
    assert body.closed == 1
    assert stream.result is not None
    assert stream.result.cause == "aborted"


def test_exception_of_the_consumer_closes_the_source_and_goes_on():
    body = Body(*GOOD)
    with pytest.raises(ZeroDivisionError), iter_events(body, "openai-chat") as stream:
        for _ in stream:
            raise ZeroDivisionError
    assert body.closed == 1
    assert stream.result is not None


def test_dropping_the_stream_lets_a_generator_close_itself():
    closed = []

    def body() -> Iterator[bytes]:
        try:
            yield from GOOD
        finally:
            closed.append(True)

    for _ in iter_events(body(), "openai-chat"):
        break
    gc.collect()
    assert closed == [True]


def test_generator_is_closed_when_the_stream_is():
    closed = []

    async def body() -> AsyncIterator[bytes]:
        try:
            for chunk in GOOD:
                yield chunk
        finally:
            closed.append(True)

    async def main() -> None:
        source = body()
        stream = aiter_events(source, "openai-chat")
        await anext(stream)
        await stream.aclose()
        await stream.aclose()
        assert closed == [True]
        with pytest.raises(StopAsyncIteration):
            await anext(source)

    run(main())


def test_close_before_the_first_event():
    body = Body(*GOOD)
    stream = iter_events(body, "openai-chat")
    stream.close()
    assert (body.asked, body.closed) == (0, 1)
    assert stream.result is not None
    assert stream.result.cause == "aborted"


def test_closing_from_another_task_ends_the_one_that_waits():
    body = AsyncBody(START, 10, HALF)

    async def main() -> tuple[list[Any], AsyncEventStream]:
        stream = aiter_events(body, "openai-chat")
        task = asyncio.ensure_future(collect(stream))
        await asyncio.sleep(5)
        await stream.aclose()
        return await task, stream

    events, stream = run(main())
    assert [shown(e)[0] for e in events] == ["CallStart"]
    assert stream.result is not None
    assert stream.result.cause == "aborted"
    assert stream.result.calls[0].text == ""


# -- wrong use -------------------------------------------------------------------------------------------------------------


def test_two_tasks_on_one_stream_are_told_and_the_turn_goes_on():
    body = AsyncBody(START, 10, HALF, REST, FINISH, DONE)

    async def main() -> list[Any]:
        stream = aiter_events(body, "openai-chat")
        task = asyncio.ensure_future(collect(stream))
        await asyncio.sleep(5)
        with pytest.raises(UsageError, match="one consumer"):
            await anext(stream)
        return await task

    assert last(run(main())).outcome is Outcome.TOOL_CALLS


@pytest.mark.parametrize("chunk", ["data: x\n\n", 65, None])
def test_chunk_that_is_no_bytes_is_raised_and_closes_the_source(chunk: Any):
    body = Body(START, chunk)
    stream = iter_events(body, "openai-chat")
    next(stream)
    with pytest.raises(UsageError, match=f"gave a {type(chunk).__name__}"):
        next(stream)
    assert body.closed == 1
    assert stream.result is not None
    assert stream.result.cause == "aborted"


@pytest.mark.parametrize("start", [iter_events, aiter_events])
def test_wrong_arguments_are_said_at_once(start: Any):
    with pytest.raises(UsageError, match="unknown provider 'cohera'"):
        start([], "cohera")
    with pytest.raises(UsageError, match=r"chunks is a bytes.*\[body\]"):
        start(b"data: x", "auto")
    with pytest.raises(UsageError, match="chunks is a object, which is no iterable"):
        start(object(), "auto")
    for wrong in (0, -1, float("nan"), "60"):
        with pytest.raises(UsageError, match="progress_timeout is a number of seconds"):
            start([], "auto", progress_timeout=wrong)


def test_asynchronous_iterable_in_the_synchronous_driver_names_the_other_one():
    with pytest.raises(UsageError, match="use aiter_events"):
        iter_events(AsyncBody(), "auto")  # type: ignore[arg-type]


def test_repr_says_where_it_stands():
    stream = iter_events(GOOD, "openai-chat")
    assert repr(stream) == "<EventStream openai-chat open>"
    list(stream)
    assert repr(stream) == "<EventStream openai-chat TOOL_CALLS>"


# -- real clients ----------------------------------------------------------------------------------------------------------


def test_httpx_bodies_of_both_kinds():
    httpx = pytest.importorskip("httpx")

    async def body() -> AsyncIterator[bytes]:
        for chunk in GOOD:
            yield chunk

    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=iter(GOOD)))
    with httpx.Client(transport=transport) as client, client.stream("POST", "http://test/") as response:
        assert last(list(iter_events(response.iter_raw(7), "auto"))).outcome is Outcome.TOOL_CALLS

    async def main() -> list[Any]:
        transport = httpx.MockTransport(lambda request: httpx.Response(200, content=body()))
        async with httpx.AsyncClient(transport=transport) as client, client.stream("POST", "http://test/") as response:
            return await collect(aiter_events(response.aiter_bytes(7), "auto", idle_timeout=20, progress_timeout=60))

    assert last(asyncio.run(main())).outcome is Outcome.TOOL_CALLS


def test_aiohttp_body_that_is_cut_off():
    aiohttp = pytest.importorskip("aiohttp")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = START + HALF
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + f"{len(body):x}\r\n".encode() + body + b"\r\n")
        await writer.drain()
        writer.close()

    async def main() -> list[Any]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        async with server, aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}/") as response:
            return await collect(aiter_events(response.content.iter_any(), "openai-chat", idle_timeout=20))

    events = asyncio.run(main())
    result = last(events)
    assert result.calls[0].text == '{"mast":'
    assert isinstance(result.error, aiohttp.ClientPayloadError)
    assert TurnGate().decide(result).action == "refuse"


def test_streams_are_what_their_functions_return():
    assert isinstance(iter_events([], "auto"), EventStream)
    assert isinstance(aiter_events([], "auto"), AsyncEventStream)
