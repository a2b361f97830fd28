"""From the events of any turn to the bytes of one target shape.

The ordinary turn: the first event brings the head of the response; each delta one frame, made of a text prepared when its call or
channel was announced, so that it costs about as much as quoting it; the result brings the end.

The end is decided here and nowhere else:

1. What the result holds beyond the events is sent, so that nothing is lost where the last events were not given.
2. A turn that did not end, or ended with an error, leaves as an error. A length stop, a filter, a refusal, a pause leave as the
   shape's word for it.
3. A good end leaves as one only if a reader of the target comes to the decision of the source's gate: the same calls run, and no
   others. What the gate knows and the target can not say (a fragment that could belong to two calls, a text that contradicts its
   deltas) makes it an error.

What is written depends on events only, never on how a call looks at the moment, because a call may be further than the event
about it: bytes do not depend on the chunks that the source came in. The exceptions are an id or a name that comes after the
announcement of its call.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from .._json import loads
from ..adapters._base import outcome_of
from ..errors import LedgerError, ProviderError, StreamError, TruncatedJSON, UsageError
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Outcome, TextDelta, ToolCall, TurnEnd, TurnResult
from ..gate import GateDecision, TurnGate, is_client_call
from ._shape import CallLine, Ending, Header, Shape, TextLine
from ._usage import read_usage
from .anthropic import AnthropicShape
from .openai_chat import ChatShape
from .openai_responses import ResponsesShape

Target: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic"]

_SHAPES: Final[Mapping[str, type[Shape]]] = {shape.PROVIDER: shape for shape in (ChatShape, ResponsesShape, AnthropicShape)}
#: The shapes that can be written, by the names that ``Turn`` has for them.
TARGETS: Final[tuple[str, ...]] = tuple(_SHAPES)

_GOOD: Final = frozenset({Outcome.STOP, Outcome.TOOL_CALLS})
#: Providers whose figures another shape's readers know.
_SAME_FIGURES: Final = {"mistral": "openai-chat"}


class Emitter:
    """Writes one turn in the shape of ``target``, as SSE.

    Args:
        target: one of ``TARGETS``.
        hold: "gate" sends the good end only if ``gate`` would release every call that a reader of the target would run.
        gate: the gate that is asked, with ``hold="gate"``; without it one that takes any JSON object. It is only asked: what it
            releases it releases when ``decide`` is called.
        response_id: the id of the response, different for each turn; a random one unless given.
        model, created: what the head says about the model and the time (seconds since 1970).

    Raises:
        UsageError: an argument is none of these.
    """

    def __init__(
        self,
        target: str,
        *,
        hold: Literal["gate"] | None = None,
        gate: TurnGate | None = None,
        response_id: str | None = None,
        model: str = "",
        created: int = 0,
    ) -> None:
        shape = _SHAPES.get(target) if isinstance(target, str) else None
        if shape is None:
            raise UsageError(f"unknown target {target!r}: use one of {', '.join(TARGETS)}")
        if hold not in (None, "gate"):
            raise UsageError(f"hold must be None or 'gate', not {hold!r}")
        if gate is not None and not isinstance(gate, TurnGate):
            raise UsageError(f"gate must be a TurnGate, not {type(gate).__name__}")
        if gate is not None and hold is None:
            raise UsageError("a gate is asked only with hold='gate'")
        if response_id is not None and (not isinstance(response_id, str) or not response_id.strip()):
            raise UsageError(f"response_id must be a text that is not blank, not {response_id!r}")
        self._hold = hold is not None
        self._gate = gate
        self._id = shape.ID_PREFIX + uuid.uuid4().hex if response_id is None else response_id
        self._shape = shape(Header(self._id, model, created))
        self._begun = False
        self._calls: dict[str, CallLine | None] = {}  # by key; None: the target has no place for it, or not yet
        self._unnamed: set[str] = set()  # calls whose names may still come
        self._texts: dict[tuple[int, str], TextLine] = {}
        self._text: TextLine | None = None  # what the last text was written to, if nothing stands between
        self._ended = False

    @property
    def target(self) -> str:
        """The shape it writes."""
        return self._shape.PROVIDER

    @property
    def ended(self) -> bool:
        """The end was written."""
        return self._ended

    def emit(self, events: Iterable[Event]) -> bytes:
        """The frames of some events, in their order; with ``TurnEnd`` the end as well.

        Args:
            events: what ``Turn.feed`` or ``Turn.take_events`` returned, or what a driver gave.
        Returns:
            whole SSE frames; nothing where the target says nothing about these events.
        Raises:
            UsageError: events after the end. What was written stays as it is.
        """
        out: list[str] = []
        calls, arguments = self._calls, self._shape.arguments
        for event in events:
            if self._ended:
                raise UsageError("events after the end of the turn: make a new Emitter")
            if isinstance(event, ArgumentsDelta):
                key, text = event.call.key, event.text
                if key not in calls:
                    raise UsageError(f"argument text of call {key}, which was not announced: an emitter takes all events of a turn")
                line = calls[key]
                if line is not None:
                    arguments(out, line, text)
                    line.sent += len(text)
            elif isinstance(event, TextDelta):
                self._add_text(out, event.text, event.channel, event.choice)
            elif isinstance(event, CallStart):
                if event.call.name is None:  # some gateways tell it with the last object; a name can not be sent later
                    self._unnamed.add(event.call.key)
                    calls[event.call.key] = None
                else:
                    self._announce(out, event.call)
            elif isinstance(event, CallEnd):
                line = calls.get(event.call.key)
                if line is not None:
                    self._shape.call_end(out, line)
            elif isinstance(event, TurnEnd):
                self._end(out, event.result)
        return _encode(out)

    def finish(self, result: TurnResult) -> bytes:
        """The end of the turn, and before it whatever the result holds beyond the events that were given.

        Args:
            result: what ``Turn.finish`` or ``Turn.abort`` returned.
        Returns:
            whole SSE frames; nothing if ``TurnEnd`` was among the events.
        """
        if not isinstance(result, TurnResult):
            raise UsageError(f"finish() takes a TurnResult, not {type(result).__name__}")
        out: list[str] = []
        if not self._ended:
            self._end(out, result)
        return _encode(out)

    # -- while it arrives ---------------------------------------------------------------------------------------------

    def _begin(self, out: list[str]) -> None:
        if not self._begun:
            self._begun = True
            self._shape.begin(out)

    def _announce(self, out: list[str], call: ToolCall) -> CallLine | None:
        shape = self._shape
        if (call.runs_on != "client" and not shape.PROVIDER_CALLS) or not 0 <= call.choice < shape.CHOICES:
            self._calls[call.key] = None
            return None
        self._begin(out)
        id = call.id
        if id is None or call.id_is_synthetic:
            id = "tw_" + hashlib.sha256(f"{self._id}\0{call.key}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
        line = self._calls[call.key] = CallLine(call, id)
        self._text = None
        shape.call_start(out, line)
        return line

    def _add_text(self, out: list[str], text: str, channel: str, choice: int) -> None:
        line = self._text
        if line is None or line.channel != channel or line.choice != choice:
            if not 0 <= choice < self._shape.CHOICES:
                return
            self._begin(out)
            line = self._texts.get((choice, channel))
            if line is None:
                line = self._texts[choice, channel] = TextLine(channel, choice)
            self._text = line
            self._shape.text_start(out, line)
        self._shape.text(out, line, text)
        line.sent += len(text)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _end(self, out: list[str], result: TurnResult) -> None:
        self._ended = True
        self._catch_up(out, result)
        shape = self._shape
        lines = [line for line in self._calls.values() if line is not None]
        error = self._error(result)
        for_tools = False
        if error is None and result.outcome in _GOOD:
            try:
                decision = (self._gate or TurnGate()).preview(result)
            except LedgerError:  # not raised: what was written in the same call would be lost, and the reader left without an end
                error = "ledger_error", None, "the ledger of released calls did not answer"
            else:
                ours = any(line.client for line in lines)
                for_tools = result.outcome is Outcome.TOOL_CALLS or (ours and "turn_not_for_tools" not in decision.reasons)
                error = self._objection(result, decision, lines, for_tools)
        if error is not None:
            if shape.STARTS_BEFORE_ERROR:
                self._begin(out)
            shape.fail(out, *error)
            return
        self._begin(out)
        if result.outcome in _GOOD and not shape.EMPTY_IS_OBJECT:
            for line in lines:
                if not line.sent and line.call.kind == "json":
                    shape.arguments(out, line, "{}")
        shape.stop(out, self._ending(result, for_tools), lines)

    def _catch_up(self, out: list[str], result: TurnResult) -> None:
        """What came after the last event that was given."""
        for (choice, channel), text in result.texts.items():
            known = self._texts.get((choice, channel))
            sent = 0 if known is None else known.sent
            if len(text) > sent:
                self._add_text(out, text[sent:], channel, choice)
        for call in result.calls:
            known_call = call.key in self._calls and call.key not in self._unnamed
            line = self._calls[call.key] if known_call else self._announce(out, call)
            if line is None:
                continue
            if call.closed and not known_call:
                self._shape.call_end(out, line)
            line.call = call  # the same, unless the emitter was pickled without its turn
            text = call.text
            if len(text) > line.sent and "args_out_of_order" not in call.marks:
                self._shape.arguments(out, line, text[line.sent :])
                line.sent = len(text)

    def _error(self, result: TurnResult) -> tuple[str, str | None, str] | None:
        """Type, code and sentence, if the turn has to leave as an error."""
        error = result.error
        if not result.ended or result.truncated:
            return result.cause or "turn_not_ended", None, str(error) if error else "the turn was ended before the provider ended it"
        if isinstance(error, ProviderError):
            return error.type or result.reason or "error", error.code, error.message
        if result.outcome is Outcome.ERROR or isinstance(error, StreamError):
            return result.reason or "error", None, str(error) if error else f"the provider ended the turn with {result.reason}"
        return None

    def _objection(self, result: TurnResult, decision: GateDecision, lines: list[CallLine], for_tools: bool) -> tuple[str, str | None, str] | None:
        """Why a good end may not leave as one: the same, with the gate's reasons."""
        refused = {refusal.call.key: refusal for refusal in decision.refused}
        run = {call.key for call in result.calls if is_client_call(call) and call.key not in refused} if decision.action == "run" else set()
        carried = {line.call.key for line in lines}
        read = self._read_back(lines, for_tools)
        if read is not None and read == run & carried and not (self._hold and decision.action == "refuse"):
            return None
        for key, refusal in refused.items():
            if decision.action == "refuse" or read is None or key in read or "superseded" in refusal.reasons:
                detail = decision.detail or refusal.detail
                return refusal.reasons[0], None, f"call {key} may not run: {', '.join(refusal.reasons)}{f' ({detail})' if detail else ''}"
        if decision.action == "refuse":
            return decision.reason, None, f"the turn may not run tools: {', '.join(decision.reasons)}{f' ({decision.detail})' if decision.detail else ''}"
        return "not_expressible", None, f"the turn can not be told in the shape of {self.target}"

    def _read_back(self, lines: list[CallLine], for_tools: bool) -> set[str] | None:
        """The calls that a reader of a good end would run, by what it can know: their texts. None where that is not sure."""
        shape = self._shape
        if not for_tools and not shape.RUNS_ON_STOP:
            return set()
        if not shape.TOOL_REASON and any(channel == "refusal" for _, channel in self._texts):
            return set()
        found: set[str] = set()
        for line in lines:
            call = line.call
            if not line.client or (shape.FALLBACK and "superseded" in call.doubts):
                continue
            if not (call.name or "").strip():
                return set()
            if "args_out_of_order" in call.marks:
                return None  # what was sent is not what the text came to be
            if call.kind == "text" or not call.text:
                found.add(call.key)
                continue
            try:
                if type(loads(call.text, surrogates="error", duplicate_keys="error")) is dict:
                    found.add(call.key)
            except TruncatedJSON:
                return set()
            except StreamError:
                if line.restarts:
                    return None
        return found

    def _ending(self, result: TurnResult, for_tools: bool) -> Ending:
        """The end in the shape's words."""
        shape = self._shape
        outcome, own = result.outcome, result.reason
        word = "" if outcome in _GOOD else shape.WORDS[outcome]
        # Unknown words stay what they are, and so does a word of the shape's own. A refusal's may be that of a good end.
        if word and own and outcome is not Outcome.REFUSED and (outcome is Outcome.UNKNOWN or result.provider == shape.PROVIDER):
            word = own if outcome_of(own, shape.REASONS) is outcome else word
        same = result.provider == shape.PROVIDER
        raw = result.usage if same or _SAME_FIGURES.get(result.provider) == shape.PROVIDER else None
        return Ending(outcome, word, for_tools, same, read_usage(result.usage, result.provider), raw)


def _encode(out: list[str]) -> bytes:
    # Half a surrogate pair has no UTF-8; the form that backslashreplace gives it is its JSON escape.
    return "".join(out).encode("utf-8", "backslashreplace")
