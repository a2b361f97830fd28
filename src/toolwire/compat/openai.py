"""For clients of the OpenAI SDK: ``toolwire.compat.openai.accelerate(client)``.

The client decodes event streams with this library's framer, and ``chat.completions.stream()`` parses arguments that grow only once.
"""

from __future__ import annotations

from typing import Any

from . import _sdk
from .jiter import GrowingJSON

__all__ = ["accelerate", "decoder"]


def decoder() -> _sdk.Decoder:
    """What ``_make_sse_decoder`` of a client returns, for clients of one's own class."""
    from openai._streaming import ServerSentEvent  # type: ignore[import-not-found, unused-ignore]

    return _sdk.Decoder(ServerSentEvent)


def accelerate(client: Any) -> _sdk.Acceleration:
    """Make the streams of one client (``OpenAI``, ``AsyncOpenAI`` and their kin) cheaper, with the same results.

    Args:
        client: the client. Copies of it (``with_options``) are clients of their own.

    Returns:
        What takes it back: ``restore()``, or a ``with`` block.

    Raises:
        UsageError: it is no such client, it is accelerated already, or the SDK's inside is not as known. The client is as it was.
    """
    with _sdk.accelerating(client, "openai", decoder) as acceleration:
        from openai.lib.streaming.chat._completions import ChatCompletionStreamState  # type: ignore[import-not-found, unused-ignore]

        completions = client.chat.completions
        stream = completions.stream
        _sdk.rebound(ChatCompletionStreamState._accumulate_chunk, from_json=None)  # is there what will be replaced?
    acceleration.put(completions, "stream", lambda *args, **options: _sdk.entering(stream(*args, **options), _growing))
    return acceleration


def _growing(stream: Any) -> None:
    """Let a stream parse only what is new of contents and arguments."""
    state = stream._state
    parse = GrowingJSON(partial_mode="on", max_buffers=64)
    function = _sdk.rebound(type(state)._accumulate_chunk, from_json=lambda data, partial_mode: parse(data))
    state._accumulate_chunk = function.__get__(state)
