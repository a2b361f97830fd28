"""One model reply, from its first byte to its end, without any I/O.

The ordinary turn:

1. ``feed(chunk)`` cuts the bytes into frames and reads of each payload what the adapter wants.
2. The adapter maps payloads to text, calls and argument text; ``feed`` returns them as events.
3. The body ends: ``finish()``. The last frame may lack its blank line.
4. The adapter says whether the provider has ended the turn.
5. Calls are settled: JSON finished, synthetic ids given, calls that were never closed or named put in doubt.
6. The ``TurnResult`` says how it went. ``toolwire.gate`` decides what may run.

What differs from it: a provider's error object ends the turn and is kept in the result, not raised. Wrong bytes are raised, by
the call after the one that met them, so that the good events before them come out first; ``abort(error)`` then gives the
result. A body that stops early is a cut: its result is returned or raised (``on_cut``) and never lets a tool run.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from ._aws import AWSEventStreamFramer
from ._framing import Frame, JSONArrayFramer, MessageFramer, NDJSONFramer, SSEFramer
from ._json import MISSING, JSONParser
from ._lanes import Lanes
from ._projection import Projection
from .adapters import ADAPTERS, DETECT_PROJECTION, Adapter, Plain, Profile, TurnRecord, detect, report_error, unwrap
from .errors import LimitExceeded, MalformedFrame, MalformedJSON, StreamError, TruncatedJSON, TurnTruncated, UsageError
from .events import ArgumentsDelta, Event, Outcome, TurnEnd, TurnResult
from .limits import Limits

Framing: TypeAlias = Literal["sse", "ndjson", "json-array", "aws-eventstream", "message"]
Cause: TypeAlias = BaseException | str

FRAMINGS = {
    "sse": SSEFramer,
    "ndjson": NDJSONFramer,
    "json-array": JSONArrayFramer,
    "aws-eventstream": AWSEventStreamFramer,
    "message": MessageFramer,
}

_WHOLE = ("aws-eventstream", "message")  # framings whose frames are taken a feed at a time
_DONE = b"[DONE]"
_HELD_FRAMES = 64  # frames that provider="auto" looks at before it gives up
_HELD_SPACE = 4096  # white space before the first byte that says what the framing is

_LIMITS = Limits()
_projections: dict[tuple[str, int], Projection] = {}


def _projection(name: str, spec: Any, limits: Limits, counter: str | None = None) -> Projection:
    """Projections hold no state of a turn: one for each protocol and depth."""
    key = name, limits.max_depth
    found = _projections.get(key)
    if found is None:
        found = _projections[key] = Projection(spec, max_depth=limits.max_depth, counter=counter)
    return found


def reentered(thing: object) -> UsageError:
    return UsageError(f"the {type(thing).__name__} was called while it was at work (by a finaliser, a callback or another thread)")


class _Guarded(Protocol):
    _feeding: bool


_S = TypeVar("_S", bound=_Guarded)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def alone(method: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Refuses a call while another one is at work on the same object."""

    @wraps(method)
    def guarded(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._feeding:
            raise reentered(self)
        self._feeding = True  # nothing was called in between that could have let another thread in
        try:
            return method(self, *args, **kwargs)
        finally:
            self._feeding = False

    return guarded


class Turn:
    """One turn of one provider.

    Args:
        provider: one of ``PROVIDERS``, or "auto" to detect it from the first frames.
        framing: "sse", "ndjson", "json-array", "aws-eventstream" or "message" (one WebSocket message a chunk); follows from the
            provider unless given. A google-generate body that starts with ``[`` is a JSON array, a bedrock body that starts
            with ``{`` holds decoded events, one a line, and an anthropic body of binary messages came through Bedrock.
        limits: see ``toolwire.limits.Limits``.
        profile: "default"; "strict" refuses what is only likely; "tolerant" lets ``[DONE]`` alone end a turn.
        on_cut: "return" or "raise" ``TurnTruncated`` when the body stops early; by default google-generate and
            google-interactions raise, all others return.

    Raises:
        UsageError: an argument is none of these.
    """

    __slots__ = (
        "__weakref__",
        "_adapter",
        "_documents",
        "_error",
        "_feeding",
        "_framer",
        "_framing",
        "_given_framing",
        "_held",
        "_held_bytes",
        "_lanes",
        "_late",
        "_limits",
        "_nonsense",
        "_on_cut",
        "_projection",
        "_provider",
        "_raised",
        "_record",
        "_result",
        "_space",
        "_stray",
        "_stray_frame",
        "_stray_text",
    )

    def __init__(
        self,
        provider: str,
        *,
        framing: Framing | None = None,
        limits: Limits | None = None,
        profile: Profile = "default",
        on_cut: Literal["return", "raise"] | None = None,
    ) -> None:
        if not isinstance(provider, str) or (provider != "auto" and provider not in ADAPTERS):
            raise UsageError(f"unknown provider {provider!r}: use one of {', '.join(PROVIDERS)}")
        if framing is not None and (not isinstance(framing, str) or framing not in FRAMINGS):
            raise UsageError(f"unknown framing {framing!r}: use one of {', '.join(FRAMINGS)}, or leave it out")
        if profile not in ("default", "strict", "tolerant"):
            raise UsageError(f"unknown profile {profile!r}: use default, strict or tolerant")
        if on_cut not in (None, "return", "raise"):
            raise UsageError(f"on_cut must be 'return' or 'raise', not {on_cut!r}")
        limits = _LIMITS if limits is None else limits
        if not isinstance(limits, Limits):
            raise UsageError(f"limits must be a Limits, not {type(limits).__name__}")
        self._limits = limits
        self._record = TurnRecord(limits, profile)
        self._provider = provider
        self._framing: str | None = framing
        self._given_framing = framing
        self._on_cut = on_cut
        self._adapter: Adapter | None = None
        self._framer: Any = None
        self._lanes = Lanes()
        self._space = b""  # before the first byte that says what the framing is
        self._error: BaseException | None = None
        self._feeding = False
        self._result: TurnResult | None = None
        self._raised: TurnTruncated | None = None
        self._held: list[Frame] | None = None  # frames before provider="auto" has found the protocol
        self._held_bytes = 0
        self._late: list[Event] | None = None  # events of finish() and abort()
        self._stray: JSONParser | None = None  # JSON outside any frame, being collected
        self._documents = 0  # JSON documents outside any frame so far
        self._stray_frame: Frame | None = None
        self._stray_text: bytearray | None = None
        self._nonsense: Frame | None = None  # the first line that belongs to no event stream
        if provider != "auto":
            self._set_adapter(provider)
        if framing is not None:
            self._framer = self._make_framer(framing)  # its limits are checked now

    def _set_adapter(self, provider: str) -> None:
        adapter = ADAPTERS[provider]
        self._adapter = adapter(self._record)
        self._provider = provider
        self._projection = _projection(provider, adapter.PROJECTION, self._limits, adapter.COUNTER)
        self._lanes.use(self._projection)

    def _make_framer(self, framing: str) -> Any:
        self._framing = framing
        if framing == "sse":
            return SSEFramer(max_frame_bytes=self._limits.max_frame_bytes, stray=True)
        return FRAMINGS[framing](max_frame_bytes=self._limits.max_frame_bytes)

    # -- what there is so far -----------------------------------------------------------------------------------------

    @property
    def provider(self) -> str:
        """The protocol's name; "auto" until it is found."""
        return self._provider

    @property
    def calls(self) -> tuple[Any, ...]:
        """The calls so far, in order of first sight. Drafts."""
        return tuple(self._record.calls)

    @property
    def ended(self) -> bool:
        """Has the provider ended the turn, by its own marker or an error? For protocols without a marker (and chat
        servers that send none) only ``finish()`` can tell."""
        if self._result is not None:
            return self._result.ended
        return self._record.terminal or self._record.error is not None

    @property
    def progress(self) -> int:
        """Characters of text and argument text so far: what ``progress_timeout`` watches."""
        return self._record.progress

    @property
    def resume_point(self) -> Any:
        """Where a resumed body has to start (a sequence number or an event id), or None."""
        if self._record.resume_point is not None:
            return self._record.resume_point
        return (self._framer.last_event_id or None) if self._framer is not None else None

    # -- feeding ------------------------------------------------------------------------------------------------------

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes of the body, cut anywhere.

        Args:
            chunk: any bytes-like object (for framing "message": one whole message, str or bytes).

        Returns:
            The events these bytes complete. When the bytes go wrong, the events before that.

        Raises:
            StreamError: the bytes of an earlier call were wrong (the same error each time); use ``abort`` for the result.
            UsageError: after ``finish`` or ``abort``; or ``chunk`` is not bytes-like.
            Anything else (MemoryError, KeyboardInterrupt): what came over the caller. Part of the chunk may be lost, so the turn takes no more,
                and raises it again; ``abort`` gives the result.
        """
        if self._feeding:
            raise reentered(self)
        if self._result is not None or self._raised is not None:
            raise UsageError("feed() after the turn was finished or aborted: make a new Turn")
        if self._error is not None:
            raise self._error.with_traceback(None)
        self._feeding = True  # nothing was called in between that could have let another thread in
        framer, record = self._framer, self._record
        events: list[Event] = []
        record.events = events
        try:
            if framer is None:
                framer = self._choose(chunk)
                if framer is None:
                    return events
                chunk, self._space = self._space, b""
            if self._framing in _WHOLE:
                self._whole_frames(framer.feed(chunk))
            else:
                self._lanes.run(framer, chunk, record, events, record.limits.max_text_chars, self._meet)
        except StreamError as error:
            self._error = error
            if error is framer.error:
                _name_limits(error)
                raise  # met by an earlier chunk
        except UsageError:
            raise  # the chunk is none: nothing was taken
        except BaseException as error:
            self._error = error  # out of memory, interrupted: frames may be lost, so nothing good can follow
            raise
        finally:
            del record.events  # they are the caller's now
            self._feeding = False
        return events

    def _whole_frames(self, frames: list[Frame]) -> None:
        wrong: StreamError | None = None
        if self._framing == "aws-eventstream":
            frames, wrong = _unwrapped(frames)
        record = self._record
        self._lanes.run_frames(frames, record, record.events, record.limits.max_text_chars, self._meet)
        if wrong is not None:
            raise wrong

    def _meet(self, frame: Frame) -> None:
        """A frame that fits no lane: the adapter's. Does it do nothing but add a text, the next one like it fits."""
        record = self._record
        record.plain = None
        before = record.touched
        self._frame(frame)
        plain = record.plain
        if plain is not None and record.touched == before + 1:
            record.plain = None
            self._learn(frame, plain)
        else:
            self._lanes.clear()

    def _learn(self, frame: Frame, plain: Plain) -> None:
        self._lanes.learn(frame, *plain)

    def _choose(self, chunk: bytes) -> Any:
        """The framer, as soon as the first byte that is no white space is there."""
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise UsageError(f"feed() takes bytes, not {type(chunk).__name__}")
        if self._adapter is not None and self._adapter.FRAMING == "sse" and chunk[:5] in (b"data:", b"event") and not self._space:
            self._space = bytes(chunk)  # nothing else begins so
            self._framer = self._make_framer("sse")
            return self._framer
        self._space += bytes(chunk)
        head = self._space.lstrip(b"\xef\xbb\xbf \t\r\n")
        if not head and len(self._space) < _HELD_SPACE:
            return None
        framing = self._adapter.FRAMING if self._adapter is not None else "sse"
        if head.startswith(b"[") and self._provider in ("auto", "google-generate"):
            framing = "json-array"
        elif head.startswith(b"\0") and self._provider in ("auto", "anthropic"):
            # The first byte of a message's length, perhaps: its checksum tells.
            if len(self._space) < 12:
                return None
            if zlib.crc32(self._space[:8]) == int.from_bytes(self._space[8:12], "big"):
                framing = "aws-eventstream"
        elif head.startswith(b"{") and framing == "aws-eventstream":
            framing = "ndjson"
        self._framer = self._make_framer(framing)
        return self._framer

    # -- frames -------------------------------------------------------------------------------------------------------

    def _frame(self, frame: Frame) -> None:
        """One whole frame."""
        if frame.stray:
            self._stray_line(frame)
            return
        record = self._record
        record.offset = frame.offset
        if self._adapter is None:
            self._hold(frame)
            return
        if frame.size == len(_DONE) and frame.raw == _DONE:
            self._done()
            return
        try:
            payload = self._projection.apply(frame, record)
        except (MalformedJSON, TruncatedJSON) as error:
            self._odd_payload(frame, error)
            return
        except LimitExceeded as error:
            error.offset = _place(frame, error)
            _name_limits(error)
            raise
        self._payload(payload, frame)

    def _payload(self, payload: Any, frame: Frame) -> None:
        """One JSON payload."""
        record = self._record
        adapter = self._adapter
        assert adapter is not None
        self._record.payloads += 1
        if type(payload) is not dict:
            record.mark("ignored_frames")
            return
        if report_error(record, payload, frame.event, adapter.GOOD_MEMBERS) and not adapter.ERROR_BESIDES & payload.keys():
            return
        if record.terminal:
            record.mark("data_after_end")
            return
        adapter.handle(payload, frame)

    def _odd_payload(self, frame: Frame, error: StreamError) -> None:
        """A payload that is no JSON as it stands."""
        record = self._record
        raw = frame.raw.strip()
        if not raw or raw.startswith(b":"):
            record.mark("ignored_frames")
        elif raw == _DONE:
            self._done()
        elif frame.event == "error":
            self._record.payloads += 1
            record.fail(frame.data)
        elif error.code == "json.bad_utf8" and "invalid_utf8" in frame.marks:
            self._ill_formed(frame)
        elif b"\n" in raw and self._lines(frame, raw):
            pass
        elif record.terminal:
            record.mark("data_after_end")
        else:
            self._record.payloads += 1
            raise MalformedJSON(
                f"the payload is no JSON ({error.code} at its byte {error.offset}): {raw[:80]!r}", code=error.code, offset=_place(frame, error)
            ) from error

    def _done(self) -> None:
        """The payload ``[DONE]``."""
        assert self._adapter is not None
        self._record.payloads += 1
        self._adapter.done_marker()

    def _ill_formed(self, frame: Frame) -> None:
        """Ill-formed UTF-8 is U+FFFD by the event-stream rules. Text may show it; arguments with it are not trusted."""
        events = self._record.events
        before = len(events)
        self._record.mark("invalid_utf8")
        substitute = Frame(frame.data.encode(), event=frame.event, id=frame.id, offset=frame.offset, data_offset=frame.data_offset, terminated=frame.terminated)
        self._frame(substitute)
        for event in events[before:]:
            call = getattr(event, "call", None)
            if call is not None:
                self._record.mark_call(call, "invalid_utf8")

    def _lines(self, frame: Frame, raw: bytes) -> bool:
        """Several documents in one frame, one a line: some gateways leave out the blank lines between events."""
        if not self._is_whole(raw):
            return False
        lines = [line for line in raw.split(b"\n") if line.strip()]
        self._record.mark("two_documents_in_event")
        for line in lines:
            self._frame(Frame(line, event=frame.event, id=frame.id, offset=frame.offset, terminated=frame.terminated))
        return True

    # -- JSON and other things outside any frame ----------------------------------------------------------------------

    def _stray_line(self, frame: Frame) -> None:
        """A line that the event-stream rules ignore. JSON in it counts: error bodies come so, whole or over lines."""
        line = frame.raw
        if self._stray is None:
            text = line.strip()
            if not text:
                return
            if not text.startswith((b"{", b"[")):
                self._record.mark("ignored_lines")
                if self._nonsense is None:
                    self._nonsense = frame
                if text.startswith(b"<") and not self._record.payloads and not self._documents:
                    raise self._not_an_event_stream()
                return
            self._stray = JSONParser(max_depth=self._limits.max_depth, surrogates="keep")
            self._stray_frame = frame
            self._stray_text = bytearray()
        collected = self._stray_text
        assert collected is not None
        line += b"\n"
        if len(collected) + len(line) > self._limits.max_stray_bytes:
            raise LimitExceeded(
                f"more than {self._limits.max_stray_bytes} bytes of JSON outside any frame",
                code="frame.too_large",
                limit="max_stray_bytes",
                value=self._limits.max_stray_bytes,
                option="Limits(max_stray_bytes=...)",
                offset=frame.offset,
            )
        collected += line
        try:
            closed = self._stray.feed(line)
        except StreamError:
            self._stray = self._stray_text = None  # not JSON after all: ignored, as the event-stream rules say
            self._record.mark("ignored_lines")
            if self._nonsense is None:
                self._nonsense = self._stray_frame
            return
        if closed:
            document = bytes(collected[: self._stray.consumed])
            if self._stray.unused_data.strip():
                self._record.mark("ignored_lines")
            first = self._stray_frame
            assert first is not None
            self._stray = self._stray_text = None
            self._stray_document(Frame(document, offset=first.offset))

    def _stray_document(self, frame: Frame) -> None:
        """A JSON document that stands where a frame should. In a body of frames it counts only as an error."""
        alone = not self._record.payloads
        self._documents += 1
        self._record.offset = frame.offset
        self._record.mark("stray_json")
        if alone or self._adapter is None:
            self._frame(frame)
            self._record.payloads = 0  # what stands alone may be followed by more of its kind
            return
        payload = _projection("detect", DETECT_PROJECTION, self._limits).apply(frame)
        if type(payload) is dict and not report_error(self._record, payload, "", self._adapter.GOOD_MEMBERS | {"type", "event_type"}):
            self._record.mark("ignored_lines")

    def _not_an_event_stream(self) -> MalformedFrame:
        frame = self._nonsense
        assert frame is not None
        return MalformedFrame(f"the body is no event stream and no JSON; it starts with {frame.raw[:60]!r}", code="frame.not_event_stream", offset=frame.offset)

    # -- provider="auto" ----------------------------------------------------------------------------------------------

    def _hold(self, frame: Frame) -> None:
        """Find out whose frames these are; until then they wait."""
        if self._held is None:
            self._held = []
        self._held.append(frame)
        self._held_bytes += len(frame.raw)
        try:
            payload = _projection("detect", DETECT_PROJECTION, self._limits).apply(frame)
        except StreamError:
            payload = None
            for line in frame.raw.split(b"\n"):  # frames without blank lines between them
                if _is_json(line, self._limits):
                    payload = _projection("detect", DETECT_PROJECTION, self._limits).apply(line)
                    break
        name = None
        if type(payload) is dict:
            name = detect(payload)
            if name is None and report_error(self._record, payload, frame.event, frozenset({"choices", "candidates"})):
                name = "openai-chat"  # an error body says nothing about its protocol: any adapter will do
        if name is not None:
            self._found(name)
        elif len(self._held) >= _HELD_FRAMES or self._held_bytes > self._limits.max_frame_bytes:
            raise self._unknown_protocol()

    def _found(self, name: str) -> None:
        self._set_adapter(name)
        held, self._held = self._held, None
        for frame in held or ():
            self._frame(frame)

    def _unknown_protocol(self) -> MalformedFrame:
        assert self._held
        first = self._held[0]
        return MalformedFrame(
            f"none of the known protocols ({', '.join(ADAPTERS)}); the first payload is {first.raw[:60]!r}: name the provider",
            code="frame.unknown_protocol",
            offset=first.offset,
        )

    # -- the end ------------------------------------------------------------------------------------------------------

    @alone
    def finish(self) -> TurnResult:
        """The body has ended, without a transport error.

        Returns:
            The result; the same one again when called again. Events that only the end brought are in ``take_events()``.

        Raises:
            TurnTruncated: the provider had not ended the turn, and ``on_cut`` says "raise". ``.result`` has everything.
            StreamError: the bytes were wrong; use ``abort(error)`` for the result.
        """
        if self._raised is not None:
            raise self._raised.with_traceback(None)
        if self._result is not None:
            return self._result
        if self._error is not None:
            raise self._error.with_traceback(None)
        self._record.events = self._late = []
        try:
            result = self._settle(self._finish_body(), None, None)
        except BaseException as error:
            if isinstance(error, StreamError):
                _name_limits(error)
            self._error = error
            raise
        if result.truncated and self._raises_on_cut():
            assert isinstance(result.error, TurnTruncated)
            self._raised = result.error
            raise self._raised
        return result

    def _raises_on_cut(self) -> bool:
        if self._on_cut is not None:
            return self._on_cut == "raise"
        return self._adapter is not None and self._adapter.RAISES_ON_CUT

    def _finish_body(self) -> bool:
        """Take the last, unterminated frame, if it counts. Returns whether the body ended at the border of a frame."""
        if self._framer is None:
            self._framer = self._make_framer("sse")
            self._framer.feed(self._space)
        framer = self._framer
        inside = framer.in_frame
        clean = not inside
        for frame in framer.finish(flush=True):
            if frame.terminated or frame.stray:
                documents = self._documents
                self._frame(frame)
                clean = clean or self._documents > documents  # a JSON body needs no line end
            elif self._is_whole(frame.raw):
                if self._framing == "sse":
                    self._record.offset = frame.offset
                    self._record.mark("unterminated_frame")
                clean = True
                self._frame(frame)
        if self._framing == "json-array" and not framer.closed:
            clean = False
        if self._stray is not None:
            clean = False
        if self._adapter is None and any(frame.raw.strip() not in (b"", _DONE) for frame in self._held or ()):
            raise self._unknown_protocol()
        if self._nonsense is not None and not self._record.payloads and not self._documents:
            raise self._not_an_event_stream()
        return clean

    def _is_whole(self, raw: bytes) -> bool:
        """Is the payload of an unterminated frame all there: JSON, ``[DONE]``, or (see ``_lines``) several of them?"""
        if raw.strip() == _DONE or _is_json(raw, self._limits):
            return True
        lines = [line.strip() for line in raw.split(b"\n") if line.strip()]
        return self._record.profile != "strict" and len(lines) > 1 and all(line == _DONE or _is_json(line, self._limits) for line in lines)

    @alone
    def abort(self, cause: Cause) -> TurnResult:
        """The turn was ended from outside: a transport error, a time-out, the caller.

        Args:
            cause: an exception, or "aborted" or "idle_timeout".

        Returns:
            The result. After a good end of the provider's own it is the good result; after ``finish`` it is that result.
        """
        if not isinstance(cause, BaseException) and cause not in ("aborted", "idle_timeout"):
            raise UsageError(f"abort() takes an exception, 'aborted' or 'idle_timeout', not {cause!r}")
        if self._raised is not None:
            return self._raised.result  # type: ignore[no-any-return]
        if self._result is not None:
            return self._result
        if self._late is None:
            self._late = []
        self._record.events = self._late
        word = cause if isinstance(cause, str) else _cause_word(cause)
        return self._settle(False, cause, word)

    # -- more than one body -------------------------------------------------------------------------------------------

    @alone
    def resume(self) -> None:
        """The connection dropped: what is fed from here on is a new body, which repeats or continues this one from ``resume_point``.

        In place of ``finish`` or ``abort``. The half frame that the old body ended in is dropped. Events that come again are dropped by
        their number or id; where the new body leaves out what the old one did not bring any more, the turn is cut.

        Raises:
            UsageError: the provider numbers nothing, so that what comes again could not be told from what is new; nothing has come yet;
                or the turn is over. The turn is as it was.
            StreamError: the bytes were wrong before the connection dropped.
        """
        if self._result is not None or self._raised is not None:
            raise UsageError("resume() after the turn was finished or aborted: it stands in their place")
        if self._error is not None:
            raise self._error.with_traceback(None)
        adapter, record = self._adapter, self._record
        if adapter is None or adapter.RESUMES_BY is None:
            raise UsageError(f"a {self._provider} body can not be resumed: its events have no numbers or ids; start the turn over")
        if record.resume_point is None:
            raise UsageError("nothing with a number or an id has come yet: start the turn over")
        if record.terminal or record.error is not None:
            raise UsageError("the provider has ended the turn: call finish()")
        self._new_body()
        adapter.resumed()

    @alone
    def hop(self) -> None:
        """The result said ``PAUSED`` or ``CONTINUE``: what is fed from here on is the next response of the same turn.

        Calls, text, usage and marks stay and go on; the end of the turn has to come anew. ``TurnResult.next_request`` says what the next
        request needs. Calls of all the responses
        are released together, by the last result, or not at all.

        Raises:
            UsageError: the turn has not been finished, or it does not go on. The turn is as it was.
        """
        result = self._result
        if result is None or not result.ended or result.outcome not in (Outcome.PAUSED, Outcome.CONTINUE):
            raise UsageError(f"hop() is for a finished turn that goes on, not for {'an open one' if result is None else result.outcome}")
        adapter, record = self._adapter, self._record
        assert adapter is not None
        self._result = None
        record.next_response()
        self._new_body()
        self._adapter = type(adapter)(record)
        if result.outcome is Outcome.CONTINUE:
            self._adapter.goes_on(adapter)

    def _new_body(self) -> None:
        self._lanes.clear()
        given = self._given_framing
        self._framing = given
        self._framer = None if given is None else self._make_framer(given)
        self._space = b""
        self._stray = self._stray_text = self._stray_frame = self._nonsense = None

    def take_events(self) -> list[Event]:
        """The events that ``finish`` or ``abort`` brought, once: those of an unterminated last frame, calls that were never
        named, and ``TurnEnd``."""
        events, self._late = self._late, None
        return events or []

    def _settle(self, clean: bool, cause: Cause | None, word: str | None) -> TurnResult:
        record, adapter = self._record, self._adapter
        ended = record.error is not None
        if adapter is not None:
            ended = adapter.at_end(clean) or ended
        well = ended and record.error is None
        for call in record.calls:
            waited = call._buffer.finish(whole=well)
            if waited:
                if call._announced:
                    record.events.append(ArgumentsDelta(call, waited))
                else:
                    call._hold(waited)
            record.announce(call)
            call._empty_is_object = well and call.kind == "json"
            if adapter is not None and adapter.CLOSES_CALLS and not call.closed:
                record.doubt(call, "args_incomplete", "the provider never closed the call")
            if call.name is None:
                if call.id is None:
                    record.doubt(call, "orphan_arguments", "argument text with neither id nor name")
                else:
                    record.doubt(call, "no_name", "the call never got a name")
        record.flush_text()
        self._synthetic_ids()
        outcome, reason = self._outcome(ended, cause, word)
        result = TurnResult(
            provider=self._provider,
            calls=tuple(record.calls),
            texts=record.texts(),
            outcome=outcome,
            reason=reason,
            ended=ended,
            truncated=not ended,
            cause=word if not ended and word in ("aborted", "idle_timeout") else None,
            error=record.error if ended else cause if isinstance(cause, BaseException) else self._error,
            usage=record.usage,
            marks=record.marks,
            resume_point=self.resume_point,
            response_id=record.response_id,
            runs_on_stop=adapter is not None and adapter.RUNS_ON_STOP and not (record.profile == "strict" and adapter.TOOL_REASON),
            has_end_marker=record.terminal,
            extra=record.extra,
            choices=self._choices(outcome, reason) if well else {},
            adapter=adapter,
        )
        if not ended and result.error is None and cause is None:
            offset = self._framer.offset if self._framer is not None else 0
            nothing = not offset and not self._record.payloads and not record.calls and not result.text
            result.error = TurnTruncated(
                "the body is empty" if nothing else "the body ended before the provider ended the turn",
                code="turn.empty" if nothing else "turn.cut",
                offset=offset,
                result=result,
            )
        self._result = result
        record.events.append(TurnEnd(result))
        del record.events
        return result

    def _outcome(self, ended: bool, cause: Cause | None, word: str | None) -> tuple[Outcome, str | None]:
        record = self._record
        if record.error is not None:
            return Outcome.ERROR, record.reason if record.outcome is Outcome.ERROR else record.error.type or record.reason
        if not ended:
            return (Outcome.CANCELLED if word == "aborted" else Outcome.CUT), record.reason
        return self._judge(record.outcome or Outcome.UNKNOWN, record.reason, None)

    def _choices(self, outcome: Outcome, reason: str | None) -> dict[int, tuple[Outcome, str | None]]:
        ends = self._record.ends
        if len(ends) == 1:  # then it is the whole turn's
            return dict.fromkeys(ends, (outcome, reason))
        return {choice: self._judge(*end, choice) for choice, end in ends.items()}

    def _judge(self, outcome: Outcome, reason: str | None, choice: int | None) -> tuple[Outcome, str | None]:
        """What the finish reason of one choice, or of all (None), comes to beside what was said and called."""
        record = self._record
        mine = any(call.runs_on == "client" and choice in (None, call.choice) for call in record.calls)
        refusal = any(channel == "refusal" and choice in (None, of) for of, channel in record.channels)
        mark = None
        if outcome is Outcome.UNKNOWN:
            mark = "unknown_reason"
        elif outcome is Outcome.STOP and refusal:
            outcome = Outcome.REFUSED
        elif outcome is Outcome.STOP and mine:
            mark = "finish_stop_with_calls"
        elif outcome is Outcome.TOOL_CALLS and refusal:
            mark = "refusal_with_calls"
        if choice is None:
            if mark is not None:
                record.mark(mark, detail=(reason or "") if mark == "unknown_reason" else "")
            if outcome is Outcome.TOOL_CALLS and not mine:
                record.mark("tool_reason_without_calls")
        return outcome, reason

    def _synthetic_ids(self) -> None:
        """Calls without an id get one: the same for the same bytes, different within a turn and, as far as the stream
        tells turns apart, between turns."""
        for call in self._record.calls:
            if call.id is None:
                seed = f"{self._record.response_id}\0{call.key}\0{call.name}\0{call.text}"
                call.id = "tw_" + hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:24]
                call.id_is_synthetic = True

    def __getstate__(self) -> object:
        if self._feeding:
            raise reentered(self)
        return object.__getstate__(self)

    def __repr__(self) -> str:
        state = "finished" if self._result is not None else "failed" if self._error is not None else "open"
        return f"<Turn {self._provider} {state}, {len(self._record.calls)} calls>"


#: The names that ``Turn`` takes, besides "auto".
PROVIDERS: tuple[str, ...] = tuple(ADAPTERS)


def _is_json(raw: bytes, limits: Limits) -> bool:
    """Is this one complete JSON document?"""
    try:
        return _projection("none", {}, limits).apply(raw) is not MISSING
    except StreamError:
        return False


def _unwrapped(frames: list[Frame]) -> tuple[list[Frame], StreamError | None]:
    """The frames as adapters see them, up to the first that can not be read, and its error."""
    out: list[Frame] = []
    try:
        for frame in frames:
            out.append(unwrap(frame))
    except StreamError as error:
        return out, error
    return out, None


def _place(frame: Frame, error: StreamError) -> int:
    """Where in the body the byte is that an error of the frame's payload points at. The frame's start where its payload is
    put together from several lines, and the byte is not in the first, or came out of another encoding."""
    at = error.offset or 0
    if frame.event == "chunk":
        return frame.offset
    return frame.data_offset + at if b"\n" not in frame.raw[:at] else frame.offset


def _name_limits(error: StreamError) -> None:
    """Inside a turn the way to raise a limit is ``Limits``, whatever object ran into it."""
    if isinstance(error, LimitExceeded) and error.limit in Limits.__dataclass_fields__:
        option = f"Limits({error.limit}=...)"
        error.message = error.message.replace(error.option, option)
        error.option = option
        error.args = (error.message,)


def _cause_word(cause: BaseException) -> str | None:
    """The gate's word for an exception: cancelled by the caller, timed out, or neither."""
    if isinstance(cause, (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)):
        return "aborted"
    return "idle_timeout" if isinstance(cause, TimeoutError) else None
