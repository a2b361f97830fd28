"""What every adapter builds on: the record of a turn, and the adapter's own face.

An adapter is thin. It declares the members of its provider's payloads that it reads (``PROJECTION``), and maps each payload
to calls on ``TurnRecord``. It never decides whether tools may run: it reports the provider's words, the record keeps the
most restrictive one, ``turn`` decides about the end, the gate about the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeGuard

from .._calls import ArgumentBuffer
from .._lanes import Tally
from ..errors import LimitExceeded, MalformedFrame, ProviderError
from ..events import ArgumentsDelta, CallEnd, CallStart, Channel, Event, Outcome, TextDelta, ToolCall, UnknownFrame, UsageUpdate
from ..marks import Mark

if TYPE_CHECKING:
    from .._framing import Frame
    from ..limits import Limits
    from ._message import Texts

Profile = Literal["default", "strict", "tolerant"]

#: What ``Lanes.learn`` is told: path, buffer, call or None, channel or None, choice, a list that gets the text too, no_value.
Plain: TypeAlias = tuple[tuple[bytes | int, ...], ArgumentBuffer, ToolCall | None, Channel | None, int, list[str] | None, bool]

_COUNTS = ("offset", "payloads", "progress", "text_chars", "next_number", "resume_point")
_ORDER = {outcome: rank for rank, outcome in enumerate(Outcome)}


class TurnRecord(Tally):
    """What a turn has gathered. Adapters write it, ``Turn`` reads it.

    Attributes:
        events: takes the events; there only while a turn is fed or ended.
        calls: every call, in order of first sight.
        outcome, reason: the most restrictive finish reason so far, and the provider's word for it.
        ends: the same for each choice that has one.
        terminal: the provider's own terminal marker was seen (each adapter's docstring says which).
        error: the provider's error, sticky.
        offset: byte offset of the frame at hand, for errors.
        resume_point: where a resumed body has to start, or None.
        progress: characters of text and argument text so far: what ``progress_timeout`` watches.
        plain: the payload at hand did nothing but add one string, see ``plain_arguments``.
        touched: how often anything here was changed.
        duplicate_keys: the payload at hand holds a key twice.
    """

    __slots__ = (
        "_extra",
        "_marks",
        "_texts",
        "calls",
        "duplicate_keys",
        "ends",
        "error",
        "events",
        "limits",
        "outcome",
        "plain",
        "profile",
        "reason",
        "response_id",
        "terminal",
        "touched",
        "usage",
    )

    def __init__(self, limits: Limits, profile: Profile) -> None:
        self.limits = limits
        self.profile = profile
        self.events: list[Event] = []
        self.calls: list[ToolCall] = []
        self.ends: dict[int, tuple[Outcome, str]] = {}
        self.outcome: Outcome | None = None
        self.reason: str | None = None
        self.terminal = False
        self.error: ProviderError | None = None
        self.usage: dict[str, Any] | None = None
        self.response_id: str | None = None
        self.plain: Plain | None = None
        self.touched = 0
        self.duplicate_keys = False
        # Most turns need only one of these: they are made on first use.
        self._texts: dict[tuple[int, Channel], ArgumentBuffer] | None = None
        self._marks: dict[str, Mark] | None = None
        self._extra: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*TurnRecord.__slots__, *_COUNTS) if hasattr(self, name)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def extra(self) -> dict[str, Any]:
        """What must be sent back with the turn and belongs to no call, under the provider's names."""
        if self._extra is None:
            self._extra = {}
        return self._extra

    # -- text ---------------------------------------------------------------------------------------------------------

    def text(self, text: str, channel: Channel = "text", choice: int = 0) -> None:
        """``text`` arrived on ``channel``. Empty text is nothing. Half a surrogate pair at the end waits for the rest."""
        self.touched += 1
        if not text:
            return
        self.text_chars += len(text)
        self.progress += len(text)
        if self.text_chars > self.limits.max_text_chars:
            raise LimitExceeded(
                f"more than {self.limits.max_text_chars} characters of text",
                code="turn.too_much_text",
                limit="max_text_chars",
                value=self.limits.max_text_chars,
                option="Limits(max_text_chars=...)",
                offset=self.offset,
            )
        texts = self._texts
        if texts is None:
            texts = self._texts = {}
        buffer = texts.get((choice, channel))
        if buffer is None:
            buffer = texts[choice, channel] = ArgumentBuffer(max_chars=self.limits.max_text_chars, json=False)
        shown = buffer.append(text)
        if shown:
            self.events.append(TextDelta(shown, channel, choice))

    def flush_text(self) -> None:
        """The end: half a surrogate pair that waited for its partner comes out as what it is."""
        texts = self._texts or {}
        for choice, channel in texts:  # not .items(): CPython 3.11 crashes where that finds no memory
            waited = texts[choice, channel].finish()
            if waited:
                self.events.append(TextDelta(waited, channel, choice))

    def text_so_far(self, channel: Channel = "text", choice: int = 0) -> str:
        """The text of one channel so far."""
        buffer = self._buffer(channel, choice)
        return "" if buffer is None else buffer.text

    def _buffer(self, channel: Channel, choice: int) -> ArgumentBuffer | None:
        return None if self._texts is None else self._texts.get((choice, channel))

    # -- calls --------------------------------------------------------------------------------------------------------

    def start(
        self,
        *,
        id: str | None = None,
        name: str | None = None,
        kind: Literal["json", "text"] = "json",
        runs_on: Literal["client", "provider"] = "client",
        choice: int = 0,
        extra: Mapping[str, Any] | None = None,
    ) -> ToolCall:
        """A call seen for the first time. Announced at once if it has a name, else when the name comes (``named``)."""
        self.touched += 1
        if len(self.calls) >= self.limits.max_calls:
            raise LimitExceeded(
                f"more than {self.limits.max_calls} calls in one turn",
                code="turn.too_many_calls",
                limit="max_calls",
                value=self.limits.max_calls,
                option="Limits(max_calls=...)",
                offset=self.offset,
            )
        call = ToolCall(f"{choice}.{len(self.calls)}", id=id or None, name=None, kind=kind, runs_on=runs_on, choice=choice, limits=self.limits)
        if extra:
            call.extra.update(extra)
        self.calls.append(call)
        if name:
            self.named(call, name)
        return call

    def named(self, call: ToolCall, name: str) -> None:
        """The call's name came: announce it, and hand out the argument text that waited for it."""
        self.touched += 1
        if call.name is None:
            call.name = name
        self.announce(call)

    def announce(self, call: ToolCall) -> None:
        """Hand out ``CallStart`` (once), then what waited."""
        self.touched += 1
        if not call._announced:
            call._announced = True
            self.events.append(CallStart(call))
            held = call._take_held()
            if held:
                self.events.append(ArgumentsDelta(call, held))

    def arguments(self, call: ToolCall, text: str) -> None:
        """``text`` was added to the call's argument text. Empty text is nothing."""
        self.touched += 1
        if not text:
            return
        self.progress += len(text)
        try:
            shown = call._buffer.append(text)
        except LimitExceeded as error:
            error.call, error.offset = call.key, self.offset
            raise
        if not shown:
            return
        if call._announced:
            self.events.append(ArgumentsDelta(call, shown))
        else:
            call._hold(shown)

    def plain_arguments(self, call: ToolCall, text: str, path: tuple[bytes | int, ...], *, no_value: bool = False) -> None:
        """Like ``arguments``, for a payload that does nothing else: the next payload that equals it but for the string at
        ``path`` (keys and indices) may be carried out without the adapter. With ``no_value`` not if that string starts a
        JSON value. Only for text whose effect depends on nothing that such payloads change.
        """
        self.arguments(call, text)
        if text and call._announced:  # adapters may count the pieces, and an empty one is none
            self.plain = (path, call._buffer, call, None, 0, None, no_value)

    def plain_text(self, text: str, channel: Channel, choice: int, path: tuple[bytes | int, ...], also: list[str] | None = None) -> None:
        """The same for text. ``also``: a list that gets each piece, too."""
        self.text(text, channel, choice)
        buffer = self._buffer(channel, choice)
        if text and buffer is not None:
            self.plain = (path, buffer, None, channel, choice, also, False)

    def whole(self, call: ToolCall, text: str) -> None:
        """The whole argument text of a call, from a source that repeats or replaces the deltas (a final text, a whole
        object as compact JSON). What it adds comes out as one more delta; a disagreement is ``args_conflict``."""
        self.touched += 1
        so_far = call.text
        if text.startswith(so_far) and call._buffer.give_up_half(text[len(so_far) :]):
            rest = text[len(so_far) :]
            if rest and so_far:
                self.mark_call(call, "args_final_only")
            self.arguments(call, rest)
        else:
            self.doubt(call, "args_conflict", "the final text differs from the deltas")

    def whole_object(self, call: ToolCall, value: Any) -> None:
        """Arguments that came as a JSON object and not as text, whole."""
        self.touched += 1
        if self.duplicate_keys:
            self.doubt(call, "args_duplicate_key", "the payload with this object holds a key twice")
        self.whole(call, compact_json(value))

    def piece(self, call: ToolCall, value: Any) -> None:
        """A piece of argument text, where the provider should send one. Any other value is not skipped, or a call that lost its
        arguments would pass for one without any: it counts as the whole of them, and the gate refuses what is no object."""
        if type(value) is str:
            self.arguments(call, value)
        elif value is not None and call.kind == "text":  # free text is not looked at by anybody
            self.doubt(call, "args_conflict", f"a piece of the text is none: {value!r}")
        elif value is not None:
            self.mark_call(call, "args_as_object")
            self.whole_object(call, value)

    def unreadable(self, call: ToolCall | None, value: Any) -> None:
        """What stands where a piece of the call's arguments should, and is nothing that can be read. Nothing at all does no harm."""
        if call is not None and value:
            self.doubt(call, "args_conflict", f"what stands where argument text should can not be read: {str(value)[:80]!r}")

    def end(self, call: ToolCall) -> None:
        """The provider closed the call's block (or item, or step). Not a permission."""
        self.touched += 1
        if not call.closed:
            call.closed = True
            self.announce(call)
            self.events.append(CallEnd(call))

    def doubt(self, call: ToolCall, reason: str, detail: str) -> None:
        """A reason why this call can not be trusted; the first detail of each reason stays."""
        self.touched += 1
        call.doubts.setdefault(reason, detail)

    # -- the turn -----------------------------------------------------------------------------------------------------

    def finish_reason(self, word: str, outcome: Outcome, choice: int = 0) -> None:
        """A finish reason, in the provider's word. Of several the most restrictive counts, for the turn and for each choice."""
        self.touched += 1
        known = self.ends.get(choice)
        if known is None or _ORDER[outcome] < _ORDER[known[0]]:
            self.ends[choice] = outcome, word
        if self.outcome is None:
            self.outcome, self.reason = outcome, word
            return
        if word != self.reason:
            self.mark("several_finish_reasons", detail=f"{self.reason}, {word}")
        if _ORDER[outcome] < _ORDER[self.outcome]:
            self.outcome, self.reason = outcome, word

    def next_response(self) -> None:
        """The turn goes on in another response, with an end and an id of its own."""
        self.outcome = self.reason = self.response_id = None
        self.ends = {}
        self.terminal = False
        self.resume_point = None
        self.next_number = -1
        self.extra.pop("continuation_token", None)

    def set_usage(self, usage: Any) -> None:
        """Usage figures: running totals, so each replaces the last (members that are missing stay)."""
        self.touched += 1
        if isinstance(usage, dict) and usage:
            members = {**(self.usage or {}), **usage}
            # Each update copies what is there: a new member in each would cost squares.
            self.usage = members if len(members) <= self.limits.max_usage_members else dict(islice(members.items(), self.limits.max_usage_members))
            self.events.append(UsageUpdate(self.usage))

    def fail(self, raw: Any, *, type: str | None = None, code: Any = None, message: str | None = None) -> None:
        """The provider reported an error. Sticky: the first one stays."""
        self.touched += 1
        if self.error is None:
            if message is None:
                message = raw if isinstance(raw, str) else str(raw)
            self.error = ProviderError(message, type=type, code=None if code is None else str(code), raw=raw, offset=self.offset)

    def unknown(self, frame: Frame, what: str) -> None:
        """An event, delta type or block that this adapter does not know. Reported, never fatal."""
        self.touched += 1
        self.mark("unknown_events", detail=what)
        self.events.append(UnknownFrame(frame))

    def protocol_error(self, message: str) -> MalformedFrame:
        """The error to raise for frames in an order that the protocol does not allow."""
        return MalformedFrame(message, code="frame.protocol", offset=self.offset)

    def mark(self, name: str, *, detail: str = "") -> None:
        """Mark the turn. The same mark again only counts up."""
        self.touched += 1
        if self._marks is None:
            self._marks = {}
        _add_mark(self._marks, name, self.offset, detail)

    def mark_call(self, call: ToolCall, name: str, *, detail: str = "") -> None:
        """Mark one call."""
        self.touched += 1
        _add_mark(call._mark_list, name, self.offset, detail)

    @property
    def marks(self) -> tuple[Mark, ...]:
        text_marks = [m for b in (self._texts or {}).values() for m in b.marks]
        return (*(self._marks or {}).values(), *text_marks)

    @property
    def channels(self) -> Iterable[tuple[int, Channel]]:
        """Where there is text: (choice, channel)."""
        return self._texts or ()

    def texts(self) -> dict[tuple[int, str], str]:
        """Text by (choice, channel)."""
        texts = self._texts or {}
        return {key: texts[key].text for key in texts}


def _add_mark(marks: dict[str, Mark], name: str, offset: int, detail: str) -> None:
    mark = marks.get(name)
    if mark is None:
        marks[name] = Mark(name, offset, detail=detail)
    else:
        mark.times += 1


class Adapter:
    """One wire protocol. Subclasses are stateful: one instance a turn."""

    #: The name users give to ``Turn``.
    PROVIDER: ClassVar[str]
    #: Default framing: "sse", "ndjson", "json-array".
    FRAMING: ClassVar[str] = "sse"
    #: The members that the adapter reads, as nested dicts; True takes the whole value. Lists are walked through: a spec
    #: stands for each element. Scalars where the spec expects a container come out as they are.
    PROJECTION: ClassVar[Mapping[str, Any]]
    #: Tools may run on a plain STOP (providers without a tool reason, or where a plain stop beside calls is normal).
    RUNS_ON_STOP: ClassVar[bool] = False
    #: The provider has a word of its own for a turn with calls, so a plain stop is only likely one: the strict profile refuses.
    TOOL_REASON: ClassVar[bool] = True
    #: A call whose block was never closed is ``args_incomplete`` at the end.
    CLOSES_CALLS: ClassVar[bool] = True
    #: Members of ordinary payloads, at least one of which each has: what tells them from a bare ``{"code", "message"}``.
    GOOD_MEMBERS: ClassVar[frozenset[str]]
    #: Members that are read even where an error object stands beside them.
    ERROR_BESIDES: ClassVar[frozenset[str]] = frozenset()
    #: Payloads carry numbers or ids, so that a body can go on in another one: the request's member that takes ``resume_point``.
    RESUMES_BY: ClassVar[str | None] = None
    #: A cut raises ``TurnTruncated`` by default instead of returning.
    RAISES_ON_CUT: ClassVar[bool] = False

    #: The member that numbers the payloads, if the protocol has one. ``record.next_number`` is then kept up.
    COUNTER: ClassVar[str | None] = None

    __slots__ = ("record",)

    def __init__(self, record: TurnRecord) -> None:
        self.record = record

    def resumed(self) -> None:
        """The payloads that follow come from a new body, which repeats or continues the one before (protocols with ``RESUMES_BY``)."""

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        """One payload: the projected JSON object of ``frame``. ``payload`` holds only members named in PROJECTION.
        Errors of any shape that is common to all providers were taken out before (see ``toolwire.turn``)."""
        raise NotImplementedError

    def done_marker(self) -> None:
        """The payload ``[DONE]`` came."""

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """What the next request's messages (contents, items) gain by this response, in the provider's own shape.

        Args:
            texts: the texts of the turn as its result has them.
            choice: of this choice or candidate.

        Raises:
            UsageError: it can not be told any more, or a call's arguments can not be written as an object.
        """
        raise NotImplementedError

    def goes_on(self, before: Adapter) -> None:
        """This response goes on where that of ``before`` stopped, and both make one message."""

    def continuation(self) -> dict[str, Any]:
        """The members of a request that goes on with this turn (``CONTINUE``), besides those of the first one."""
        return {}

    def at_end(self, clean: bool) -> bool:
        """Called once, when the body has ended and before calls are settled.

        Args:
            clean: the body ended at the border of a frame, and nobody aborted it.

        Returns:
            True if the provider has ended the turn: by its terminal marker, or, where the protocol has none, because
            everything it owes has come and the end was clean.
        """
        return self.record.terminal


#: Finish reasons that mean the same wherever they come from. Unknown words are UNKNOWN, which runs nothing.
COMMON_REASONS: Mapping[str, Outcome] = {
    "error": Outcome.ERROR,
    "ERROR": Outcome.ERROR,
    "TIMEOUT": Outcome.ERROR,
    "UNEXPECTED_TOOL_CALL": Outcome.ERROR,
    "TOO_MANY_TOOL_CALLS": Outcome.ERROR,
    "MISSING_THOUGHT_SIGNATURE": Outcome.ERROR,
    "failed": Outcome.ERROR,
    "incomplete": Outcome.LENGTH,
    "budget_exceeded": Outcome.LENGTH,
    "model_length": Outcome.LENGTH,
    "model_context_window_exceeded": Outcome.LENGTH,
    "pause_turn": Outcome.PAUSED,
    "compaction": Outcome.PAUSED,
    "CONTINUATION": Outcome.CONTINUE,
    "requires_continuation": Outcome.CONTINUE,
    "steered": Outcome.CONTINUE,
    "cancelled": Outcome.CANCELLED,
}


def outcome_of(word: str, known: Mapping[str, Outcome]) -> Outcome:
    """The outcome of a finish reason: the adapter's own table first, then what all have in common."""
    outcome = known.get(word) or COMMON_REASONS.get(word)
    if outcome is None:
        outcome = Outcome.ERROR if word.lower().startswith("malformed_") else Outcome.UNKNOWN
    return outcome


def compact_json(value: Any) -> str:
    """Arguments that came as an object, as argument text: compact JSON in wire order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def same_json(one: str, other: str) -> bool:
    """Do two JSON texts mean the same? White space and the order of members do not count, nor does ``3`` against ``3.0``:
    objects that went through a protobuf Struct hold doubles only."""
    if one == other:
        return True
    try:
        return _canonical(one) == _canonical(other)
    except (ValueError, RecursionError):
        return False


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text, parse_int=float), sort_keys=True)


def blank(value: Any) -> str | None:
    """A string with something in it, else None: servers send null, "" and " " for "nothing"."""
    return value if isinstance(value, str) and value.strip() else None


def word_of(value: Any) -> str | None:
    """A finish reason, a status: a word that may forbid something. What is none counts as an unknown word, and not as nothing."""
    return value if type(value) is str and value.strip() else compact_json(value) if value and type(value) is not str else None


def no_arguments(value: Any) -> bool:
    """What servers send where there are no arguments, or none yet."""
    return value is None or value == "" or value == {}


def is_index(value: Any) -> TypeGuard[int]:
    """A plain integer (bool is none)."""
    return type(value) is int


def report_error(record: TurnRecord, payload: Mapping[str, Any], event: str, good: frozenset[str]) -> bool:
    """Take an error object out of a payload, in any shape that providers and gateways use.

    ``{"error": {...}}``, ``{"error": "text"}``, ``{"type": "error", ...}``, ``{"object": "error", ...}``, a frame named
    ``error``, and ``{"code", "message"}`` without any of the members in ``good`` that an ordinary payload has.

    Returns:
        True if there was one. It is then in ``record.error``, the first one to stay.
    """
    error = payload.get("error")
    kind = payload.get("type")
    flat = kind == "error" or event == "error" or payload.get("object") == "error" or payload.get("event_type") == "error"
    if not flat and not error and "message" not in payload:
        return False  # nearly all
    if isinstance(error, dict) and error:
        message = error.get("message")
        record.fail(
            error,
            type=_word(error.get("type")) or _word(error.get("status")),
            code=error.get("code"),
            message=message if isinstance(message, str) else compact_json(error),
        )
        return True
    if error:
        record.fail(error, type=_word(kind), code=payload.get("code"), message=error if isinstance(error, str) else compact_json(error))
        return True
    message = payload.get("message")
    if flat or ("message" in payload and payload.get("code") is not None and not good & payload.keys()):
        raw = dict(payload)
        record.fail(raw, type=_word(kind), code=payload.get("code"), message=message if isinstance(message, str) else compact_json(raw))
        return True
    return False


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
