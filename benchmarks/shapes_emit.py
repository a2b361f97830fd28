"""What emitting costs on top of reading: one call with 20 kB of arguments in deltas of four characters."""

from __future__ import annotations

from collections.abc import Callable

import toolwire as tw
from toolwire.emit import Emitter

from . import workloads
from .suite import Plan, Shape, Target


def data(tiny: bool) -> list[bytes]:
    return workloads.chunks(workloads.chat_body([workloads.long_string(400 if tiny else 20_000)]), 1400)


def _units(chunks: list[bytes]) -> int:
    return b"".join(chunks).count(b"data: ") - 3  # without start, end and [DONE]


def reading(chunks: list[bytes]) -> Plan:
    def run() -> None:
        turn = tw.Turn("openai-chat")
        for chunk in chunks:
            turn.feed(chunk)
        turn.finish()

    return Plan(lambda: run, _units(chunks))


def emitting(target: str) -> Callable[[list[bytes]], Plan]:
    def contender(chunks: list[bytes]) -> Plan:
        def run() -> None:
            turn, emitter = tw.Turn("openai-chat"), Emitter(target)
            for chunk in chunks:
                emitter.emit(turn.feed(chunk))
            emitter.finish(turn.finish())

        return Plan(lambda: run, _units(chunks))

    return contender


_TARGETS = {"toolwire": "openai-chat", "toolwire, responses": "openai-responses", "toolwire, anthropic": "anthropic"}
SHAPES = [
    Shape(
        "emit",
        "a Chat turn told again in another shape, on top of reading it",
        "µs a delta",
        data,
        {**{name: emitting(target) for name, target in _TARGETS.items()}, "reading": reading},
        tuple(Target(None, 1.5, 1.0, ours=name, at_most=True) for name in _TARGETS),
        net_of="reading",
    )
]
