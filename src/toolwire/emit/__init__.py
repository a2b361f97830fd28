"""One shape out: the events of any provider's turn as the SSE bytes of another's.

``Emitter`` takes the events as they come, ``emit_events`` and ``aemit_events`` take what a driver gives. See ``docs/emit.md``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
from typing import Any

from ..events import Event
from ._emitter import TARGETS, Emitter, Target

__all__ = ["TARGETS", "Emitter", "Target", "aemit_events", "emit_events"]


def emit_events(events: Iterable[Event], target: str, **options: Any) -> Generator[bytes, None, None]:
    """The bytes for each event that the target says something about.

    Args:
        events: all events of one turn, ``TurnEnd`` included: what ``toolwire.iter_events`` gives. Closed, if it can be, when this ends or is
            closed: whoever sends the bytes on knows no other way to say that their reader has gone.
        target, options: as for ``Emitter``.
    Raises:
        UsageError: as ``Emitter``, before the first event is asked for.
    """
    return _each(events, Emitter(target, **options))


def _each(events: Iterable[Event], emitter: Emitter) -> Generator[bytes, None, None]:
    try:
        for event in events:
            data = emitter.emit((event,))
            if data:
                yield data
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()


def aemit_events(events: AsyncIterable[Event], target: str, **options: Any) -> AsyncGenerator[bytes, None]:
    """Like ``emit_events``, for what ``toolwire.aiter_events`` gives."""
    return _aeach(events, Emitter(target, **options))


async def _aeach(events: AsyncIterable[Event], emitter: Emitter) -> AsyncGenerator[bytes, None]:
    try:
        async for event in events:
            data = emitter.emit((event,))
            if data:
                yield data
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
