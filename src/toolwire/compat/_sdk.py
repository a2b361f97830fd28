"""What the faces of the OpenAI and Anthropic SDKs share: the decoder for the hook that both have, and the way into one client.

Both SDKs were made by one generator, so their insides are alike. Nothing of their modules is changed: what is replaced is replaced on one
client, or in copies of their functions that see another name for one of their globals.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import version
from typing import Any

from .._framing import Frame, SSEFramer
from ..errors import StreamError, UsageError


class Decoder:
    """Bytes of a response to events, as the SDKs' own decoder does it.

    Args:
        unnamed: makes the event of a frame without a name, for which the SDKs have None and not "message".
    """

    def __init__(self, unnamed: Callable[..., Any]) -> None:
        self._unnamed = unnamed
        self._framer = SSEFramer()

    def iter_bytes(self, iterator: Iterator[bytes]) -> Iterator[Any]:
        """Iterate over the events of a response's bytes, cut anywhere."""
        feed, event = self._framer.feed, self._event
        for chunk in iterator:
            for frame in feed(chunk):
                yield event(frame)
        self._check_end()

    async def aiter_bytes(self, iterator: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """The same over an asynchronous response."""
        feed, event = self._framer.feed, self._event
        async for chunk in iterator:
            for frame in feed(chunk):
                yield event(frame)
        self._check_end()

    def _event(self, frame: Frame) -> Any:
        if frame.named:
            return frame
        return self._unnamed(data=frame.data, id=frame.id or None, retry=frame.retry)

    def _check_end(self) -> None:
        if isinstance(self._framer.error, StreamError):
            raise self._framer.error  # met in the last chunk, behind good events


class Acceleration:
    """What ``accelerate`` has changed on a client. ``restore()`` takes it back; so does the end of a ``with`` block."""

    def __init__(self) -> None:
        self._changed: list[tuple[Any, str]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Give an object an attribute of its own in place of that of its class."""
        if name in vars(owner):
            self.restore()
            raise UsageError(f"{type(owner).__name__}.{name} has been replaced already; is this client accelerated twice?")
        setattr(owner, name, value)
        self._changed.append((owner, name))

    def restore(self) -> None:
        """Leave the client as it was. Streams that have begun go on as they began."""
        while self._changed:
            owner, name = self._changed.pop()
            vars(owner).pop(name, None)

    def __enter__(self) -> Acceleration:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()


@contextlib.contextmanager
def accelerating(client: Any, package: str, decoder: Callable[[], Decoder]) -> Iterator[Acceleration]:
    """Replace the decoder of one client, and look in the block for what else is to be replaced. Raises UsageError where the client is none, or
    the block does not find it; the client is as it was then."""
    acceleration = Acceleration()
    hook(acceleration, client, package, decoder)
    try:
        yield acceleration
    except (AttributeError, ImportError, UsageError) as error:
        acceleration.restore()
        raise changed(package, str(error)) from None


def rebound(function: Any, **names: Any) -> Any:
    """A copy of a function that sees other values for these of its globals. Raises UsageError where it uses no such names."""
    code = getattr(function, "__code__", None)
    if code is None or not set(names) <= set(code.co_names) or not set(names) <= function.__globals__.keys():
        raise changed(function.__module__ if code is not None else "its SDK", f"{getattr(function, '__qualname__', function)} without {', '.join(names)}")
    copy = types.FunctionType(code, {**function.__globals__, **names}, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def changed(module: str, what: str) -> UsageError:
    """The error for an SDK whose inside is not as it was."""
    package = module.partition(".")[0]
    return UsageError(f"{package} {version(package)} is not as this version of toolwire knows it: {what}; its decoder alone may still be replaced")


def entering(manager: Any, change: Callable[[Any], None]) -> Any:
    """The context manager of a stream, the same object, which makes a change to the stream when it is entered."""
    kind = type(manager)

    class Entering(kind):  # type: ignore[misc, valid-type]
        def __enter__(self) -> Any:
            stream = super().__enter__()
            change(stream)
            return stream

        async def __aenter__(self) -> Any:
            stream = await super().__aenter__()
            change(stream)
            return stream

    Entering.__name__, Entering.__qualname__, Entering.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    manager.__class__ = Entering
    return manager


def hook(acceleration: Acceleration, client: Any, package: str, decoder: Callable[[], Decoder]) -> None:
    """Replace the decoder of one client. Raises UsageError where the client is none, or has a decoder of its own."""
    base = next((each for each in type(client).__mro__ if each.__module__ == f"{package}._base_client" and "_make_sse_decoder" in vars(each)), None)
    if base is None:
        raise UsageError(f"accelerate() takes a client of {package} that has the hook for decoders (_make_sse_decoder), not {type(client).__name__}")
    kinds: tuple[Any, Any] = (type(client), base)
    if kinds[0]._make_sse_decoder is not kinds[1]._make_sse_decoder:
        raise UsageError(f"{type(client).__name__} has a decoder of its own, for another framing than event streams")
    acceleration.put(client, "_make_sse_decoder", decoder)
