"""For clients of the Anthropic SDK: ``toolwire.compat.anthropic.accelerate(client)``.

The client decodes event streams with this library's framer, and ``messages.stream()`` parses a tool's input once, not anew for each delta.
"""

from __future__ import annotations

from typing import Any

from .._json import MISSING, JSONParser, partial
from ..errors import StreamError, UsageError
from . import _sdk

__all__ = ["accelerate", "decoder"]

_FINE_GRAINED = "fine-grained-tool-streaming-2025-05-14"


def decoder() -> _sdk.Decoder:
    """What ``_make_sse_decoder`` of a client returns, for clients of one's own class."""
    from anthropic._streaming import ServerSentEvent  # type: ignore[import-not-found, unused-ignore]

    return _sdk.Decoder(ServerSentEvent)


def accelerate(client: Any) -> _sdk.Acceleration:
    """Make the streams of one client (``Anthropic``, ``AsyncAnthropic`` and their kin) cheaper, with the same results.

    Args:
        client: the client. Copies of it (``with_options``) are clients of their own.

    Returns:
        What takes it back: ``restore()``, or a ``with`` block.

    Raises:
        UsageError: it is no such client, it is accelerated already, or the SDK's inside is not as known. The client is as it was.
    """
    with _sdk.accelerating(client, "anthropic", decoder) as acceleration:
        from anthropic.lib.streaming import _beta_messages, _messages  # type: ignore[import-not-found, unused-ignore]

        for kind in (_messages.MessageStream, _messages.AsyncMessageStream, _beta_messages.BetaMessageStream, _beta_messages.BetaAsyncMessageStream):
            _sdk.rebound(kind.__stream__, accumulate_event=None)  # is there what will be replaced?
            accumulate = kind.__stream__.__globals__["accumulate_event"]
            if "json_bufs" not in accumulate.__kwdefaults__.keys() | set(accumulate.__code__.co_varnames):
                raise UsageError("accumulate_event without json_bufs")
        messages = [client.messages, client.beta.messages]
        streams = [each.stream for each in messages]
    for owner, stream in zip(messages, streams, strict=True):
        acceleration.put(owner, "stream", _accelerated(stream))
    return acceleration


def _accelerated(stream: Any) -> Any:
    return lambda *args, **options: _sdk.entering(stream(*args, **options), _change)


def _change(stream: Any) -> None:
    """Begin the stream's loop anew, which has not run yet, with another function for what each event adds to the message."""
    function = type(stream).__stream__
    original = function.__globals__["accumulate_event"]
    tracked = function.__globals__["TRACKS_TOOL_INPUT"]
    inputs: dict[int, _Input] = {}

    def accumulate(*, event: Any, current_snapshot: Any, json_bufs: dict[int, bytes], **more: Any) -> Any:
        if current_snapshot is None or event.type != "content_block_delta" or event.delta.type != "input_json_delta":
            return original(event=event, current_snapshot=current_snapshot, json_bufs=json_bufs, **more)
        content = current_snapshot.content[event.index]
        if not isinstance(content, tracked) or event.index in json_bufs:
            return original(event=event, current_snapshot=current_snapshot, json_bufs=json_bufs, **more)
        one = inputs.get(event.index)
        if one is None:
            headers = more.get("request_headers")
            one = inputs[event.index] = _Input(strings=_FINE_GRAINED in (headers.get("anthropic-beta", "") if headers else ""))
        try:
            value = one.add(event.delta.partial_json)
        except (StreamError, ValueError):  # the latter: more digits than Python converts
            # The SDK's own way from here on: its words for what is wrong, or what it makes of it.
            json_bufs[event.index] = one.before()
            return original(event=event, current_snapshot=current_snapshot, json_bufs=json_bufs, **more)
        if value is not MISSING:
            content.input = value
        return current_snapshot

    stream._iterator = _sdk.rebound(function, accumulate_event=accumulate)(stream)


class _Input:
    """The input of one tool, as far as it has come."""

    __slots__ = ("_parser", "_pieces", "_strings")

    def __init__(self, *, strings: bool) -> None:
        self._parser = JSONParser(max_depth=201, allow_nan=True)  # as jiter
        self._strings = strings
        self._pieces: list[str] = []

    def add(self, text: str) -> Any:
        """The value after one more piece. MISSING where there was none."""
        if not text:
            return MISSING
        self._pieces.append(text)
        parser = self._parser
        if parser.complete:
            return MISSING  # what follows is not looked at
        parser.feed(text)
        value = partial(parser, self._strings)
        if value is MISSING:
            raise StreamError("there is no value yet", code="json.truncated")
        return value

    def before(self) -> bytes:
        """All text but the last piece."""
        return "".join(self._pieces[:-1]).encode()
