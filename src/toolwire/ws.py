"""OpenAI Responses over one WebSocket: several responses at once, told apart by ``stream_id``.

Sans-I/O like everything else: the caller reads the socket, this hands each message to the ``Turn`` of its lane. One response is
one turn. A response that was steered away ends with ``Outcome.CONTINUE`` and runs nothing; the successor that the server starts in
its place is a new turn on the same lane.
"""

from __future__ import annotations

from typing import TypeAlias

from ._framing import Frame, MessageFramer
from ._projection import Projection
from .adapters import Profile
from .errors import LimitExceeded, StreamError, UsageError
from .events import Event, UnknownFrame
from .limits import Limits
from .turn import Cause, Turn, alone

#: ``stream_id`` (None: the lane without a name), and one event of its turn.
LaneEvent: TypeAlias = tuple[str | None, Event]

_ENVELOPE = {"stream_id": True, "type": True}


class ResponsesSocket:
    """The messages of one socket, as the events of each lane's turns.

    Args:
        limits: for each turn.
        profile: for each turn.
        max_streams: responses that may be open at once.
    """

    __slots__ = ("_closed", "_error", "_feeding", "_framer", "_limits", "_max_streams", "_profile", "_projection", "_turns")

    def __init__(self, *, limits: Limits | None = None, profile: Profile = "default", max_streams: int = 64) -> None:
        if type(max_streams) is not int or max_streams < 1:
            raise UsageError(f"max_streams must be a positive integer, not {max_streams!r}")
        Turn("openai-responses", framing="message", limits=limits, profile=profile)  # its arguments are checked now
        self._limits = Limits() if limits is None else limits
        self._profile: Profile = profile
        self._max_streams = max_streams
        self._framer = MessageFramer(max_frame_bytes=self._limits.max_frame_bytes)
        self._projection = Projection(_ENVELOPE, max_depth=self._limits.max_depth)
        self._turns: dict[str | None, Turn] = {}
        self._error: StreamError | None = None
        self._closed = False
        self._feeding = False

    @property
    def turns(self) -> dict[str | None, Turn]:
        """The open turns, by ``stream_id``. A copy."""
        return dict(self._turns)

    @alone
    def feed(self, message: bytes | str) -> list[LaneEvent]:
        """Take one whole message.

        Returns:
            The events that it brings, with their lanes. ``TurnEnd`` ends a turn, also one whose messages went wrong. A message that
            belongs to no open turn is an ``UnknownFrame``.

        Raises:
            StreamError: an earlier message could not be read, so that no lane can be trusted; all turns were ended then.
            LimitExceeded: one response more than ``max_streams``. The message was not taken.
            UsageError: after ``close``, or ``message`` is neither bytes nor text.
        """
        if self._closed:
            raise UsageError("feed() after close()")
        if self._error is not None:
            raise self._error.with_traceback(None)
        frames = self._framer.feed(message)
        try:
            if not frames:
                self._framer.feed(b"")  # the message was too long: this says so
            frame = frames[0]
            envelope = self._projection.apply(frame)
        except StreamError as error:
            self._error = error
            return self._end_all(error)
        if type(envelope) is not dict:
            return [(None, UnknownFrame(frame))]
        lane, kind = envelope.get("stream_id"), envelope.get("type")
        lane = lane if type(lane) is str and lane else None
        if kind == "error" and lane is None and None not in self._turns and self._turns:
            # It names no lane, so it may be about any.
            return [event for each in tuple(self._turns) for event in self._feed(each, frame, kind)]
        return self._feed(lane, frame, kind)

    def _feed(self, lane: str | None, frame: Frame, kind: object) -> list[LaneEvent]:
        turn = self._turns.get(lane)
        out: list[LaneEvent] = []
        if turn is not None:
            try:
                events = turn.feed(frame.raw)
            except StreamError as error:  # an earlier message of this lane was wrong, and this one was not taken
                out = self._end(lane, error)
                turn = None
            else:
                out = [(lane, event) for event in events]
        if turn is None:
            if kind not in ("response.created", "error"):
                return [*out, (lane, UnknownFrame(frame))]
            if len(self._turns) >= self._max_streams:
                raise LimitExceeded(
                    f"more than {self._max_streams} responses open at once",
                    code="turn.too_many_streams",
                    limit="max_streams",
                    value=self._max_streams,
                    option="ResponsesSocket(max_streams=...)",
                    offset=frame.offset,
                )
            turn = self._turns[lane] = Turn("openai-responses", framing="message", limits=self._limits, profile=self._profile)
            out += [(lane, event) for event in turn.feed(frame.raw)]
        return out + self._end(lane) if turn.ended else out

    def _end(self, lane: str | None, cause: Cause | None = None) -> list[LaneEvent]:
        turn = self._turns.pop(lane)
        try:
            if cause is None:
                turn.finish()
            else:
                turn.abort(cause)
        except StreamError as error:
            turn.abort(error)
        return [(lane, event) for event in turn.take_events()]

    def _end_all(self, cause: Cause | None) -> list[LaneEvent]:
        return [event for lane in tuple(self._turns) for event in self._end(lane, cause)]

    @alone
    def close(self, cause: Cause | None = None) -> list[LaneEvent]:
        """The socket is closed: every turn that is still open is cut, or aborted for ``cause``. Nothing when called again."""
        self._closed = True
        return self._end_all(cause)
