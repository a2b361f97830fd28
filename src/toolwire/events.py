"""What a turn hands out: events, calls and the result.

Events are small slotted objects without behaviour. A *delta* is what one provider message added, a *snapshot* is everything
so far. None of them is a permission to run anything: that comes from ``toolwire.gate.TurnGate`` only.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._calls import ToolCall
from ._json import loads
from ._lanes import ArgumentsDelta, TextDelta
from .errors import TruncatedJSON, UsageError

__all__ = [
    "ArgumentsDelta",
    "CallEnd",
    "CallStart",
    "Channel",
    "Event",
    "NextRequest",
    "Outcome",
    "TextDelta",
    "ToolCall",
    "TurnEnd",
    "TurnResult",
    "UnknownFrame",
    "UsageUpdate",
]

if TYPE_CHECKING:
    from ._framing import Frame
    from .adapters import Adapter
    from .marks import Mark

Channel: TypeAlias = Literal["text", "reasoning", "refusal"]


class Outcome(StrEnum):
    """How a turn went, the same for all providers. The order of members is the order of restriction:
    of several finish reasons the first one here wins."""

    CUT = "CUT"  # the body ended before the provider ended the turn
    ERROR = "ERROR"
    FILTERED = "FILTERED"
    REFUSED = "REFUSED"
    LENGTH = "LENGTH"
    CANCELLED = "CANCELLED"
    PAUSED = "PAUSED"  # resend the message as it is
    CONTINUE = "CONTINUE"  # the same turn goes on in another response
    UNKNOWN = "UNKNOWN"
    STOP = "STOP"
    TOOL_CALLS = "TOOL_CALLS"


_GOES_BACK = (Outcome.TOOL_CALLS, Outcome.STOP, Outcome.PAUSED, Outcome.CONTINUE)
_GOES_BACK_AS_TEXT = (Outcome.LENGTH, Outcome.REFUSED)


class CallStart:
    """A call was announced: its name is known. Show it, do not run it."""

    __slots__ = ("call",)

    def __init__(self, call: ToolCall) -> None:
        self.call = call

    def __repr__(self) -> str:
        return f"CallStart({self.call.key} {self.call.name!r})"


class CallEnd:
    """The provider closed the call's block. A cut reply closes it too: never a permission."""

    __slots__ = ("call",)

    def __init__(self, call: ToolCall) -> None:
        self.call = call

    def __repr__(self) -> str:
        return f"CallEnd({self.call.key})"


class UsageUpdate:
    """The provider's usage figures, as it names them. Running totals: each replaces the last."""

    __slots__ = ("usage",)

    def __init__(self, usage: dict[str, Any]) -> None:
        self.usage = usage

    def __repr__(self) -> str:
        return f"UsageUpdate({self.usage!r})"


class UnknownFrame:
    """A frame that the adapter does not know. Nothing was lost, nothing was done."""

    __slots__ = ("frame",)

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __repr__(self) -> str:
        return f"UnknownFrame({self.frame!r})"


class TurnEnd:
    """The turn is over, one way or another: see ``result.outcome``."""

    __slots__ = ("result",)

    def __init__(self, result: TurnResult) -> None:
        self.result = result

    def __repr__(self) -> str:
        return f"TurnEnd({self.result!r})"


Event: TypeAlias = TextDelta | CallStart | ArgumentsDelta | CallEnd | UsageUpdate | UnknownFrame | TurnEnd


@dataclass(frozen=True, slots=True)
class NextRequest:
    """What the request after a turn needs, in the provider's own shape.

    Attributes:
        kind: "answer": the calls' results follow ``append``, and a new turn begins. "resend": the message as it came, and nothing else; the
            body goes on with the same turn (``Turn.hop``). "continue": the same request with ``members``; the body goes on with the same
            turn. "resume": the same response asked for once more, from ``members`` on (``Turn.resume``).
        append: what ``messages`` (``contents``, ``input``) gain.
        members: other members of the request.
    """

    kind: Literal["answer", "resend", "continue", "resume"]
    append: list[dict[str, Any]]
    members: dict[str, Any]


class TurnResult:
    """Everything one turn gave, good or bad.

    Attributes:
        provider: the protocol's name (what ``auto`` found).
        calls: all calls, in order of first sight, those that the provider runs included.
        text: visible text; with several choices those of choice 0.
        texts: text by (choice, channel).
        outcome: see ``Outcome``.
        reason: the provider's own word for the end, or None.
        ended: the provider ended the turn itself (well or not).
        truncated: the body stopped before that.
        cause: "aborted" or "idle_timeout" where the caller ended the turn, else None.
        extra: what must be sent back with the turn and belongs to no call (signatures, a continuation token), under the
            provider's names.
        error: the ``StreamError`` or transport error that ended it, a ``TurnTruncated`` for a cut, or None.
        usage: the provider's last usage figures, or None.
        marks: what was tolerated in the turn as a whole.
        resume_point: where a resumed body has to start, or None.
        response_id: the provider's id of the response or message, or None.
        runs_on_stop: the protocol has no reason of its own for tool calls, or tolerates a plain stop beside them.
        has_end_marker: the protocol's own end marker was seen.
        choices: outcome and reason by choice, where the turn ended and has several.
    """

    __slots__ = (
        "calls",
        "cause",
        "_adapter",
        "_choice",
        "choices",
        "ended",
        "error",
        "extra",
        "has_end_marker",
        "marks",
        "outcome",
        "provider",
        "reason",
        "response_id",
        "resume_point",
        "runs_on_stop",
        "text",
        "texts",
        "truncated",
        "usage",
    )

    def __init__(
        self,
        *,
        provider: str,
        calls: tuple[ToolCall, ...],
        texts: dict[tuple[int, str], str],
        outcome: Outcome,
        reason: str | None,
        ended: bool,
        truncated: bool,
        cause: str | None,
        error: BaseException | None,
        usage: dict[str, Any] | None,
        marks: tuple[Mark, ...],
        resume_point: Any,
        response_id: str | None,
        runs_on_stop: bool,
        has_end_marker: bool,
        extra: dict[str, Any] | None = None,
        choices: dict[int, tuple[Outcome, str | None]] | None = None,
        adapter: Adapter | None = None,
    ) -> None:
        self._adapter = adapter
        self._choice = 0
        self.provider = provider
        self.calls = calls
        self.texts = texts
        self.text = texts.get((0, "text"), "")
        self.outcome = outcome
        self.reason = reason
        self.ended = ended
        self.truncated = truncated
        self.cause = cause
        self.error = error
        self.usage = usage
        self.marks = marks
        self.resume_point = resume_point
        self.response_id = response_id
        self.runs_on_stop = runs_on_stop
        self.has_end_marker = has_end_marker
        self.extra = {} if extra is None else extra
        self.choices = {} if choices is None else choices

    def choice(self, index: int) -> TurnResult:
        """The turn as one of its choices (or candidates) alone has it: its calls, text, outcome and reason.

        ``TurnGate.decide`` takes it like the whole, whose outcome is the most restrictive of all choices. Where the turn did not
        end, or ended in an error, that holds for each of them. A choice that never came has no calls and no text.
        """
        alone = copy.copy(self)
        alone.calls = tuple(call for call in self.calls if call.choice == index)
        alone.texts = {key: text for key, text in self.texts.items() if key[0] == index}
        alone.text = alone.texts.get((index, "text"), "")
        if self.choices:
            alone.outcome, alone.reason = self.choices.get(index, (Outcome.UNKNOWN, None))
        alone.choices = {}
        alone._choice = index
        return alone

    def replay(self) -> list[dict[str, Any]]:
        """This response as the provider's own API takes it back: what ``messages`` (``contents``, ``input``) gain by it.

        One message for most; for Responses the output items, for Interactions the steps. Everything that has to go back is in its place:
        signatures on the part they came with, reasoning with its encrypted content, callers and namespaces, results of tools that the
        provider ran. Ids that this library made up are written only where the protocol can not do without one. After ``Turn.hop()`` it is
        the last response alone; the earlier ones have gone back already.

        Returns:
            Plain data for ``json.dumps``, the caller's own. Empty if there is nothing to send back.

        Raises:
            UsageError: the turn has not ended well, a call of it is in doubt, or its arguments can not be written: no message of the
                provider's, so nothing to go on from. A turn that was cut by its length or refused is sent back only if it has no calls.
        """
        if self._adapter is None or not (self.outcome in _GOES_BACK or (self.outcome in _GOES_BACK_AS_TEXT and not self.calls)):
            raise UsageError(f"a turn with outcome {self.outcome} {'and calls ' if self.calls else ''}is nothing to send back")
        for call in self.calls:
            if "superseded" in call.doubts:
                continue
            for reason, detail in call.doubts.items():
                raise UsageError(f"call {call.key} ({call.name}) is in doubt: {reason}: {detail}")
            if _is_truncated(call):
                raise UsageError(f"call {call.key} ({call.name}) is in doubt: args_incomplete: its JSON has no end")
        return self._adapter.replay(self.texts, self._choice)

    def next_request(self) -> NextRequest | None:
        """What the request that follows this turn needs; None where the turn is over, or nothing can be made of it.

        Raises:
            UsageError: as ``replay``.
        """
        adapter, outcome = self._adapter, self.outcome
        if adapter is None:
            return None
        if outcome is Outcome.PAUSED:
            return NextRequest("resend", self.replay(), {})
        if outcome is Outcome.CONTINUE:
            return NextRequest("continue", [], adapter.continuation())
        if outcome in (Outcome.TOOL_CALLS, Outcome.STOP) and any(call.runs_on == "client" for call in self.calls):
            return NextRequest("answer", self.replay(), {})
        if outcome is Outcome.CUT and adapter.RESUMES_BY is not None and self.resume_point is not None:
            return NextRequest("resume", [], {adapter.RESUMES_BY: self.resume_point})
        return None

    def __repr__(self) -> str:
        return f"<TurnResult {self.provider} {self.outcome} reason={self.reason!r} {len(self.calls)} calls, {len(self.text)} characters of text>"


def _is_truncated(call: ToolCall) -> bool:
    """Does the argument text stop in the middle? Text that is no JSON at all is something else."""
    if call.kind == "text" or call.complete or not call.text.strip():
        return False
    try:
        loads(call.text, surrogates="keep")
    except TruncatedJSON:
        return True
    except ValueError:
        return False
    return False
