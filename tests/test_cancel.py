"""A task that reads a turn is cancelled at every await there is, under asyncio and under trio.

Each time: a result is kept, the source has been closed, the cancellation goes on, and no task, generator or coroutine is left. The
source is an asynchronous generator with work of its own at each step, as those of HTTP clients are.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from toolwire import Outcome, TurnGate
from toolwire.drivers import AsyncEventStream, aiter_events

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
BODIES = ("openai-chat/demo.sse", "anthropic/parallel.sse", "google-generate/demo_array.json", "bedrock/demo.bin")
CLOCKS: list[dict[str, Any]] = [{}, {"idle_timeout": 3600}, {"idle_timeout": 3600, "progress_timeout": 3600}]


class Source:
    """A body that gives way before each chunk, and once more while it is being closed."""

    def __init__(self, name: str, pause: Callable[[], Awaitable[Any]]) -> None:
        self.body = (FIXTURES / name).read_bytes()
        self.opened = self.closed = False
        self._pause = pause

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        self.opened = True
        try:
            size = max(1, len(self.body) // 7)
            for at in range(0, len(self.body), size):
                await self._pause()
                await self._pause()
                yield self.body[at : at + size]
        finally:
            self.closed = True


@contextmanager
def nothing_left() -> Iterator[None]:
    """Whatever is left behind says so while it is collected."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()


def check(stream: AsyncEventStream, source: Source) -> bool:
    """The state after a cancellation. Says whether the turn had been cut short."""
    result = stream.result
    assert result is not None
    assert source.closed or not source.opened
    decision = TurnGate().decide(result)
    if result.truncated:
        assert (result.outcome, result.cause) == (Outcome.CANCELLED, "aborted")
        assert decision.action == "refuse"
        assert decision.reasons[:2] == ("turn_not_ended", "aborted")
    else:
        assert decision.action == "run"
    return result.truncated


# -- asyncio ---------------------------------------------------------------------------------------------------------------


async def _consume(stream: AsyncEventStream) -> int:
    return len([event async for event in stream])


@pytest.mark.parametrize("options", CLOCKS, ids=["plain", "idle", "both"])
@pytest.mark.parametrize("name", BODIES)
def test_cancellation_at_every_await_under_asyncio(name: str, options: dict[str, Any]) -> None:
    provider = name.split("/")[0]

    async def cancel_at(step: int) -> tuple[bool, bool | None]:
        source = Source(name, lambda: asyncio.sleep(0))
        stream = aiter_events(source.chunks(), provider, **options)
        task = asyncio.create_task(_consume(stream))
        for _ in range(step):
            await asyncio.sleep(0)
        if task.done():
            assert task.result() > 0
            return True, None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return False, check(stream, source) if step else None

    seen = []
    with nothing_left():
        for step in range(1000):
            over, truncated = asyncio.run(cancel_at(step))
            if over:
                break
            seen.append(truncated)
    assert over
    assert len(seen) >= 14  # each chunk waits twice
    assert True in seen


def test_close_of_the_stream_waits_for_the_source_under_asyncio() -> None:
    async def main() -> None:
        source = Source(BODIES[0], lambda: asyncio.sleep(0))
        async with aiter_events(source.chunks(), "openai-chat", idle_timeout=3600) as stream:
            await anext(stream)
        assert source.closed
        check(stream, source)

    with nothing_left():
        asyncio.run(main())


# -- trio ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", CLOCKS, ids=["plain", "idle", "both"])
@pytest.mark.parametrize("name", BODIES)
def test_cancellation_at_every_checkpoint_under_trio(name: str, options: dict[str, Any]) -> None:
    trio = pytest.importorskip("trio")
    provider = name.split("/")[0]

    async def cancel_at(step: int) -> tuple[bool, bool | None]:
        passed = 0
        scope = trio.CancelScope()

        async def pause() -> None:
            nonlocal passed
            if passed == step:
                scope.cancel()  # the checkpoint below is where it is met
            passed += 1
            await trio.lowlevel.checkpoint()

        source = Source(name, pause)
        stream = aiter_events(source.chunks(), provider, **options)
        with scope:
            await _consume(stream)
        if not scope.cancelled_caught:
            return True, None
        return False, check(stream, source)

    seen = []
    with nothing_left():
        for step in range(1000):
            over, truncated = trio.run(cancel_at, step)
            if over:
                break
            seen.append(truncated)
    assert over
    assert len(seen) >= 14
    assert True in seen


def test_clocks_under_trio_run_on_trios_time() -> None:
    trio = pytest.importorskip("trio")
    testing = pytest.importorskip("trio.testing")

    async def pause() -> None:
        await trio.sleep(7)

    async def main(**options: Any) -> tuple[Any, float]:
        source = Source(BODIES[0], pause)
        stream = aiter_events(source.chunks(), "openai-chat", **options)
        began = trio.current_time()
        await _consume(stream)
        assert source.closed
        return stream.result, trio.current_time() - began

    def run(**options: Any) -> tuple[Any, float]:
        async def start() -> tuple[Any, float]:
            return await main(**options)

        return trio.run(start, clock=testing.MockClock(autojump_threshold=0))

    with nothing_left():
        result, seconds = run(idle_timeout=20)
        assert (result.outcome, result.error) == (Outcome.TOOL_CALLS, None)
        assert seconds >= 7 * 14
        result, seconds = run(idle_timeout=10)
        assert (result.cause, seconds) == ("idle_timeout", 10)
        assert isinstance(result.error, TimeoutError)
