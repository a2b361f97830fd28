"""Token counts, from any provider's names to those of the three target shapes.

Anthropic (and Bedrock) count input that came out of a cache apart from ``input_tokens``; everybody else counts it in. Google
counts thoughts apart from the candidates' tokens; everybody else counts them as output.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_INPUT = ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "prompt_eval_count", "total_input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "eval_count", "total_output_tokens")
_THOUGHTS_APART = ("thoughtsTokenCount", "total_thought_tokens")
_CACHED = ("cache_read_input_tokens", "cacheReadInputTokens", "cachedContentTokenCount", "total_cached_tokens", "cached_tokens")
_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_CACHE_APART = frozenset({"anthropic", "bedrock"})


class Usage(NamedTuple):
    """Counts that every shape has in some form. ``input`` includes cached tokens, ``output`` includes reasoning."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    reasoning: int = 0


def _first(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    for name in names:
        value = usage.get(name)
        if isinstance(value, (int, float)):  # Cohere counts in doubles
            return int(value)
    return 0


def _inside(usage: dict[str, Any], outer: tuple[str, ...], name: str) -> int:
    for each in outer:
        details = usage.get(each)
        if type(details) is dict and type(details.get(name)) is int:
            return int(details[name])
    return 0


def read_usage(usage: dict[str, Any] | None, provider: str) -> Usage | None:
    """What a provider's figures say. None where there are none."""
    if not usage:
        return None
    tokens = usage.get("tokens")
    if type(tokens) is dict:  # Cohere
        usage = {**usage, **tokens}
    cached = _first(usage, _CACHED) or _inside(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    written = _first(usage, _WRITTEN)
    apart = _first(usage, _THOUGHTS_APART)
    reasoning = apart or _inside(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    before = _first(usage, _INPUT)
    return Usage(before + cached + written if provider in _CACHE_APART else before, _first(usage, _OUTPUT) + apart, cached, written, reasoning)
