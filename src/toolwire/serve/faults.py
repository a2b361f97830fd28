"""What can happen to a body on its way, as options of a request. The same options and the same body give the same bytes.

Frames are lost, repeated and swapped first, then an error object is put in, then the body is compressed, cut into chunks and
stopped. Places are bytes of what is sent, so behind the compression.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from .cuts import Cut
from .frames import Frames
from .provider_errors import error_frame

_WINDOW: Final = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}  # "deflate" is the zlib format (RFC 9110 section 8.4.1.2)
_HOW: Final = "use a number, a number from the end such as -1, or random:SEED"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a body or in its frames: a number, a number from the end, a share such as 0.5, or one that a seed draws."""

    text: str
    number: int = 0
    share: float | None = None
    seed: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a place.

        Raises:
            ValueError: it is none.
        """
        if text.startswith("random:") and text != "random:":
            return cls(text, seed=text)
        try:
            if "." in text and 0 <= float(text) <= 1:
                return cls(text, share=float(text))
            return cls(text, number=int(text))
        except ValueError:
            raise ValueError(f"{text!r} is no place: {_HOW}") from None

    def among(self, count: int, *, last: int) -> int:
        """The place among ``count``, from 0 to ``last``.

        Raises:
            ValueError: there is no such place.
        """
        if self.seed is not None:
            return random.Random(f"{self.seed} {count}").randint(0, max(last, 0))
        at = int(self.share * count) if self.share is not None else self.number + (count if self.number < 0 else 0)
        if not 0 <= at <= last:
            raise ValueError(f"there is no place {self.text}: the recording has {count}")
        return at


@dataclass(frozen=True, slots=True)
class Faults:
    """All options; the defaults do nothing. docs/faults.md has them as a table."""

    chunk: Cut = Cut("whole")
    delay: float = 0.0
    cut: Place | None = None
    close: Place | None = None
    reset: Place | None = None
    stall: Place | None = None
    resume: float | None = None
    drop: tuple[Place, ...] = ()
    repeat: tuple[Place, ...] = ()
    swap: tuple[Place, ...] = ()
    error: Place | None = None
    more: bool = False
    status: int = 200
    type: str | None = None
    encoding: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str], *, defaults: Self | None = None) -> Self:
        """Read options by name. What is not given is as in ``defaults``.

        Raises:
            ValueError: a name or a value is none.
        """
        given = {} if defaults is None else {field.name: getattr(defaults, field.name) for field in fields(defaults)}
        for name, text in options.items():
            if name not in _READ:
                raise ValueError(f"there is no fault {name!r}: {', '.join(_READ)}")
            try:
                given[name] = _READ[name](text)
            except ValueError as error:
                raise ValueError(f"{name}={text}: {error}") from None
        faults = cls(**given)
        if sum(getattr(faults, name) is not None for name in STOPS) > 1:
            raise ValueError(f"a body stops once: one of {', '.join(STOPS)}")
        return faults

    def damage(self, body: bytes, provider: str | None, framing: str) -> bytes:
        """The body with its frames lost, repeated, swapped, and with an error put in. Frames are numbered as in the recording.

        Raises:
            ValueError: the recording has no such frame.
        """
        if not (self.drop or self.repeat or self.swap or self.error):
            return body
        frames = Frames.split(body, framing)
        count = len(frames.items)
        order = list(range(count))
        for place in self.swap:
            at = place.among(count, last=count - 2)
            order[at], order[at + 1] = order[at + 1], order[at]
        dropped = {place.among(count, last=count - 1) for place in self.drop}
        repeated = {place.among(count, last=count - 1) for place in self.repeat}
        out: list[bytes] = []
        error_at = None if self.error is None else self.error.among(count, last=count - 1)
        for position, number in enumerate(order):
            if position == error_at:
                out.append(error_frame(provider, framing))
                if not self.more:
                    break
            if number not in dropped:
                out += [frames.items[number]] * (2 if number in repeated else 1)
        return frames.join(out)

    def chunks(self, body: bytes) -> tuple[list[bytes], list[bytes]]:
        """What is written, piece by piece: up to where the body stops, and after that.

        Raises:
            ValueError: there is no such place.
        """
        pieces = self.chunk.apply(body)
        if self.encoding is not None:
            pieces = _compressed(pieces, _WINDOW[self.encoding])
        before, after = list(pieces), []
        if self.stop is not None:
            size = sum(map(len, before))
            left = getattr(self, self.stop).among(size, last=size)
            for i, piece in enumerate(before):
                if left < len(piece):
                    before, after = [*before[:i], piece[:left]], [piece[left:], *before[i + 1 :]]
                    break
                left -= len(piece)
        return [piece for piece in before if piece], after

    @property
    def stop(self) -> str | None:
        """How the body stops before its end."""
        return next((name for name in STOPS if getattr(self, name) is not None), None)


#: The ways in which a body stops early; one a request.
STOPS: Final = ("cut", "close", "reset", "stall")


def _compressed(pieces: Iterator[bytes], window: int) -> Iterator[bytes]:
    packer = zlib.compressobj(6, zlib.DEFLATED, window)
    for piece in pieces:
        # Flushed each time, as a server does that streams: the reader has all of it at once.
        yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 3600:
        raise ValueError("use seconds, from 0 to an hour")
    return value


def _places(text: str) -> tuple[Place, ...]:
    places = tuple(Place.parse(part) for part in text.split(","))
    if any(place.share is not None for place in places):
        raise ValueError(_HOW)
    return places


def _status(text: str) -> int:
    status = int(text)
    if not 400 <= status <= 599:
        raise ValueError("use a status from 400 to 599")
    return status


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"use {' or '.join(words)}")
        return text

    return read


def _type(text: str) -> str:
    if not text.isprintable() or not text.isascii():
        raise ValueError("use a media type")
    return text


_READ: Final[dict[str, Callable[[str], Any]]] = {
    "chunk": Cut.parse,
    "delay": _seconds,
    **dict.fromkeys(STOPS, Place.parse),
    "resume": _seconds,
    **dict.fromkeys(("drop", "repeat", "swap"), _places),
    "error": Place.parse,
    "more": lambda text: _one_of("0", "1")(text) == "1",
    "status": _status,
    "type": _type,
    "encoding": _one_of(*_WINDOW),
}

#: The names of all options.
FAULTS: Final = tuple(_READ)
