"""The face of sseclient-py 1.8: ``from toolwire.compat.sseclient import SSEClient``.

Over any iterator of bytes: a response of requests or urllib3, a file, a generator. What differs is listed in docs/sse-clients.md.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Any

from .._framing import Frame, SSEFramer
from ..errors import StreamError

__all__ = ["Event", "SSEClient"]

#: What ``SSEClient.events`` gives.
Event = Frame


class SSEClient:
    """The events of a source of bytes.

    Args:
        event_source: an iterable of bytes, cut anywhere; ``close()`` closes it.
        char_enc: its encoding. The standard knows UTF-8 only.
        max_frame_bytes: the largest event, see ``SSEFramer``.
    """

    def __init__(self, event_source: Iterable[bytes], char_enc: str = "utf-8", *, max_frame_bytes: int = 16 << 20) -> None:
        self._event_source = event_source
        name = codecs.lookup(char_enc).name
        self._decoder = None if name in ("utf-8", "ascii") else codecs.getincrementaldecoder(name)()
        self._framer = SSEFramer(max_frame_bytes=max_frame_bytes)

    def events(self) -> Iterator[Frame]:
        """Iterate over the events. What follows the last blank line is no event.

        Raises:
            LimitExceeded: an event is larger than ``max_frame_bytes``.
            UnicodeDecodeError: the bytes are not of ``char_enc``. Ill-formed UTF-8 is shown as U+FFFD, by the standard.
        """
        feed, decoder = self._framer.feed, self._decoder
        for chunk in self._event_source:
            yield from feed(chunk if decoder is None else decoder.decode(chunk).encode("utf-8", "surrogatepass"))
        if isinstance(self._framer.error, StreamError):
            raise self._framer.error  # met in the last chunk, behind good events

    def close(self) -> None:
        """Close the source."""
        source: Any = self._event_source
        source.close()
