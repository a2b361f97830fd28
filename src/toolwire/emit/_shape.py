"""What every target shape builds on: the lines of calls and texts, and the face that the emitter talks to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from typing import Any, ClassVar, NamedTuple

from ..events import Outcome, ToolCall
from ._usage import Usage

__all__ = ["CallLine", "Ending", "Header", "Shape", "TextLine", "compact", "quoted"]


def compact(value: Any) -> str:
    """Compact JSON. Half surrogate pairs stay as they are: ``Emitter`` escapes them when it makes bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Header(NamedTuple):
    """What stands at the head of a response."""

    id: str
    model: str
    created: int


class CallLine:
    """One call as the target has it."""

    __slots__ = ("call", "client", "closed", "ended", "head", "id", "index", "pieces", "restarts", "sent", "tail")

    def __init__(self, call: ToolCall, id: str) -> None:
        self.call = call
        self.client = call.runs_on == "client"  # what was announced
        self.id = id
        self.index = 0  # in the target's own numbering
        self.head = ""  # the frame of a delta, up to its text and from there on
        self.tail = ""
        self.sent = 0  # characters of argument text
        self.pieces: list[str] = []  # them, where the shape repeats them at the end
        self.restarts = False  # a reader could take a fragment for a repetition of the ones before
        self.closed = False  # by the source
        self.ended = False  # in the target


class TextLine:
    """One channel of text of one choice."""

    __slots__ = ("channel", "choice", "head", "pieces", "sent", "tail")

    def __init__(self, channel: str, choice: int) -> None:
        self.channel = channel
        self.choice = choice
        self.head = ""
        self.tail = ""
        self.sent = 0
        self.pieces: list[str] = []


class Ending(NamedTuple):
    """How a turn ends in the target."""

    outcome: Outcome
    word: str  # the provider's own, or the shape's default for the outcome; "" for a good end
    for_tools: bool  # a good end on which tools may run
    same: bool  # the source speaks the same shape
    usage: Usage | None
    raw_usage: dict[str, Any] | None  # the figures as they came, where they are the shape's own


class Shape:
    """One target. Writes text of whole SSE frames into ``out``."""

    #: The provider whose protocol this is.
    PROVIDER: ClassVar[str]
    ID_PREFIX: ClassVar[str]
    #: Has a place for so many choices.
    CHOICES: ClassVar[int] = 1
    #: Has a place for calls that the provider runs.
    PROVIDER_CALLS: ClassVar[bool] = True
    #: Its readers run calls on a plain stop, too.
    RUNS_ON_STOP: ClassVar[bool] = True
    #: Has a word for "run these calls"; where there is none, refusal text makes the turn a refusal.
    TOOL_REASON: ClassVar[bool] = True
    #: Can say that another model took over.
    FALLBACK: ClassVar[bool] = False
    #: Empty argument text is the shape's own way of saying ``{}``.
    EMPTY_IS_OBJECT: ClassVar[bool] = False
    #: An error can not stand alone.
    STARTS_BEFORE_ERROR: ClassVar[bool] = False
    #: The shape's own words, as its adapter reads them.
    REASONS: ClassVar[Mapping[str, Outcome]]
    #: The word for each outcome that is no good end and no error.
    WORDS: ClassVar[Mapping[Outcome, str]]

    def __init__(self, header: Header) -> None:
        self.header = header

    def begin(self, out: list[str]) -> None:
        """The head of the response, once."""
        raise NotImplementedError

    def call_start(self, out: list[str], line: CallLine) -> None:
        """Announce a call, and prepare its deltas."""
        raise NotImplementedError

    def arguments(self, out: list[str], line: CallLine, text: str) -> None:
        """One delta of argument text, never empty."""
        raise NotImplementedError

    def call_end(self, out: list[str], line: CallLine) -> None:
        """The provider closed the call's block."""

    def text_start(self, out: list[str], line: TextLine) -> None:
        """Another channel, or choice, than the text before."""

    def text(self, out: list[str], line: TextLine, text: str) -> None:
        """One delta of text, never empty."""
        raise NotImplementedError

    def stop(self, out: list[str], ending: Ending, calls: list[CallLine]) -> None:
        """The end in the shape's own words."""
        raise NotImplementedError

    def fail(self, out: list[str], type: str, code: str | None, message: str) -> None:
        """The end as an error."""
        raise NotImplementedError
