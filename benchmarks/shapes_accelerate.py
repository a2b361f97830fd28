"""The Anthropic SDK's own `messages.stream()` loop over one tool call with nested input, with and without our parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import workloads
from .shapes_sdk import MESSAGES, _clients
from .suite import Plan, Shape, Target


def _data(chars: int) -> Callable[[bool], list[bytes]]:
    return lambda tiny: workloads.chunks(workloads.anthropic_body([workloads.nested(500 if tiny else chars)], 16), 1400)


def _reading(accelerated: bool) -> Callable[[list[bytes]], Plan]:
    def contender(chunks: list[bytes]) -> Plan:
        import anthropic

        client = anthropic.Anthropic(api_key="none", http_client=_clients(anthropic.DefaultHttpxClient, chunks)[0], max_retries=0)
        if accelerated:
            from toolwire.compat.anthropic import accelerate

            accelerate(client)

        def run() -> Any:
            with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
                for _ in stream:
                    pass
                return stream.get_final_message().content[0].input

        return Plan(lambda: run)

    return contender


_CONTENDERS = {"toolwire": _reading(True), "anthropic": _reading(False)}
SHAPES = [
    Shape("accelerate 100 kB", "messages.stream() of the Anthropic SDK, 100 kB of nested input", "µs", _data(100_000), _CONTENDERS, (Target("anthropic", 5),)),
    Shape("accelerate 1 kB", "the same with 1 kB", "µs", _data(1_000), _CONTENDERS, (Target("anthropic", 0.98),)),
]
