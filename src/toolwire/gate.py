"""May these calls run? The one place where a call that was shown becomes a call that may be executed.

Two questions, asked in this order and kept apart:

1. Has the whole turn arrived, and did the provider end it in a way that lets tools run? Only the ``TurnResult`` is asked.
2. Has each call arguments that can be trusted, of the shape that its tool allows? Asked only after a yes to the first; no
   validator runs before.

What holds against a call is a *reason*; ``TURN_REASONS`` and ``CALL_REASONS`` list them all, in table order, and every tuple
of reasons here is in that order. How far a reason reaches:

* a turn reason refuses every call;
* ``STREAM_REASONS`` cast doubt on the stream itself, so they refuse every call as well: bytes that are missing from one call
  may be missing from the next, or may have ended up in it. A call that is refused for another call's sake carries the same
  reason, with a detail that names the other call's key;
* any other reason refuses its own call, unless ``GatePolicy(all_or_nothing=True)``.

Decisions that the table leaves open:

* Argument text that simply stops (an open brace, a half number, white space only) is ``args_incomplete`` in every turn, one
  that ended well included: some servers say "tool_calls" or "completed" after a length cut, and then this is the only trace of
  it. Text that no continuation could repair is ``args_invalid_json`` and stays its own call's affair.
* A plain ``stop`` lets chat calls run only if all of them are complete (``turn_not_for_tools`` otherwise).
* A ``superseded`` call was cut off by the provider on purpose. Its text is not looked at and its doubts do not spread.
* Doubts about a tool that the provider runs spread like those about a client's. Without any client call they do not matter.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypeAlias

from ._json import loads
from .errors import GateRefused, LimitExceeded, StreamError, TruncatedJSON, TurnTruncated, UsageError
from .events import Outcome, ToolCall, TurnResult
from .ledger import Fate, Ledger, MemoryLedger, Settled
from .tools import anthropic_tools, bedrock_tools, gemini_tools, openai_tools
from .validate import ShapeError, Validator, compile_validator

Action: TypeAlias = Literal["run", "refuse", "nothing_to_run"]

#: Reasons of the turn as a whole, with what they mean. Each refuses all calls.
TURN_REASONS: Final[dict[str, str]] = {
    "turn_not_ended": "the body stopped, or the turn was ended from outside, before the provider ended it",
    "turn_truncated": "the turn ended, but short: a length limit was hit",
    "turn_filtered": "a content filter ended the turn",
    "turn_refused": "the model refused",
    "turn_paused": "the provider paused the turn: send the message back as it is",
    "turn_continues": "the same turn goes on in another response",
    "turn_error": "the provider reported an error, whatever else it sent",
    "turn_unknown": "the provider ended the turn with a word that toolwire does not know",
    "turn_not_for_tools": "the turn ended well, but with a reason that runs nothing",
    "aborted": "the caller, or a transport error, ended the turn; or the provider says that it was cancelled",
    "idle_timeout": "nothing came for too long",
}

#: Reasons of one call, with what they mean.
CALL_REASONS: Final[dict[str, str]] = {
    "args_incomplete": "the argument text, or the block that holds it, was never finished",
    "args_invalid_json": "the argument text is no JSON, or it hit a limit (depth, size)",
    "args_not_object": "the arguments are JSON, but no object",
    "args_invalid_unicode": "half a surrogate pair or ill-formed UTF-8 stood in the arguments",
    "args_duplicate_key": "an object in the arguments holds the same key twice",
    "args_number_too_long": "an integer has more digits than Python converts",
    "args_schema": "the arguments have not the shape that the tool allows",
    "args_ambiguous": "a fragment could have belonged to more than one call",
    "args_conflict": "two sources of the arguments disagree",
    "orphan_arguments": "argument text that belongs to no call: neither id nor name came",
    "no_name": "a call whose name never came",
    "superseded": "another model took the turn over after this call",
    "unknown_tool": "no tool of this name was given to the gate",
    "already_released": "this gate, or another with the same ledger, has released the call before",
}

#: Every reason, in table order.
REASONS: Final[dict[str, str]] = {**TURN_REASONS, **CALL_REASONS}

#: Call reasons that cast doubt on the stream itself and so refuse the whole turn.
STREAM_REASONS: Final[frozenset[str]] = frozenset({"args_incomplete", "args_ambiguous", "args_conflict", "orphan_arguments", "no_name"})

#: What a decision says where nothing holds against the turn.
ENDED: Final = "ended"

_RANK: Final = {name: rank for rank, name in enumerate(REASONS)}

_OUTCOME_REASONS: Final[dict[Outcome, str]] = {
    Outcome.CUT: "turn_not_ended",
    Outcome.ERROR: "turn_error",
    Outcome.FILTERED: "turn_filtered",
    Outcome.REFUSED: "turn_refused",
    Outcome.LENGTH: "turn_truncated",
    Outcome.CANCELLED: "aborted",
    Outcome.PAUSED: "turn_paused",
    Outcome.CONTINUE: "turn_continues",
    Outcome.UNKNOWN: "turn_unknown",
}
#: The only outcomes on which anything may run. What is in neither table is refused as unknown.
_GOOD: Final = frozenset({Outcome.STOP, Outcome.TOOL_CALLS})

#: Protocols of the chat family: ``[DONE]`` is their end marker, and a plain ``stop`` is not their word for tool calls.
_CHAT: Final = frozenset({"openai-chat", "mistral"})

_CODE_REASONS: Final[dict[str, str]] = {
    "json.lone_surrogate": "args_invalid_unicode",
    "json.bad_utf8": "args_invalid_unicode",
    "json.duplicate_key": "args_duplicate_key",
    "json.number_too_long": "args_number_too_long",
    "json.truncated": "args_incomplete",
}
_MARK_REASONS: Final[dict[str, str]] = {
    "lone_surrogate": "args_invalid_unicode",
    "invalid_utf8": "args_invalid_unicode",
    "duplicate_key": "args_duplicate_key",
}

#: What a refusal says of a call that was released before.
_FATES: Final[dict[Fate, str]] = {"released": "released before, fate unknown", "done": "ran before", "failed": "ran before, and failed"}

#: Turns whose released calls are remembered as objects, for calls that no id tells apart. Asking twice follows soon or never.
_RECENT_TURNS: Final = 16


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What a gate insists on beyond its rules. Nothing here lets more calls run.

    Attributes:
        all_or_nothing: one refused call refuses all calls of its turn.
        require_end_marker: a chat turn without ``[DONE]`` has not ended. One server sends a finish reason after each call, so
            that a clean cut after the first looks like a whole turn.
        max_released: calls remembered as released, by a gate without a ledger of its own; the oldest is forgotten first. A long
            agent session makes hundreds, and one costs about 150 bytes.
        max_depth: nested arrays and objects in the arguments; as in ``Limits``.
    """

    all_or_nothing: bool = False
    require_end_marker: bool = False
    max_released: int = 10_000
    max_depth: int = 512

    def __post_init__(self) -> None:
        if self.max_released < 1 or self.max_depth < 1:
            raise UsageError("GatePolicy: max_released and max_depth are at least 1")


_SEAL = object()


class RunnableCall:
    """A call that may run, once. Only ``TurnGate.decide`` makes these: holding one is the permission.

    It can be neither built, nor copied, nor pickled; send ``id``, ``name`` and ``arguments`` where they are needed.

    Attributes:
        id: the call's id, for the result that goes back. Synthetic where ``call.id_is_synthetic``.
        name: the tool's name.
        arguments: parsed anew from the exact argument text, then what the tool's validator made of them. For
            ``kind == "text"`` the text.
        kind: "json" or "text".
        call: the ``ToolCall`` with its marks and what has to be sent back (``call.extra``).
        release_key: what the ledger knows the call by, in this process and any other. None for a call without an id in a turn
            without one: nothing tells it from the next, and only this gate remembers it, as the object it is.
    """

    __slots__ = ("arguments", "call", "id", "kind", "name", "release_key")

    id: str
    name: str
    arguments: Any
    kind: Literal["json", "text"]
    call: ToolCall
    release_key: str | None

    def __init__(self, *, call: ToolCall, arguments: Any, release_key: str | None = None, seal: object) -> None:
        if seal is not _SEAL:
            raise UsageError("a RunnableCall comes from TurnGate.decide() only")
        put = object.__setattr__
        put(self, "call", call)
        put(self, "id", call.id or call.key)
        put(self, "name", call.name)
        put(self, "arguments", arguments)
        put(self, "kind", call.kind)
        put(self, "release_key", release_key)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"RunnableCall.{name} is read-only")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"RunnableCall.{name} is read-only")

    def __init_subclass__(cls, **kwargs: Any) -> NoReturn:
        raise UsageError("RunnableCall has no subclasses: it comes from TurnGate.decide() only")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise UsageError("a RunnableCall can not be copied or pickled: it may run once, where the gate released it")

    def __repr__(self) -> str:
        return f"<RunnableCall {self.name!r} id={self.id!r}>"


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """Why one call may not run.

    Attributes:
        call: the call.
        reasons: all that hold, in table order; the turn's own come first.
        details: for each reason a few words, or "". For ``args_schema`` the JSON pointer (RFC 6901) and the rule that failed.
        fate: what the ledger knows of a call that was released before, else None. "released": it may have run or not.
        release_key: see ``RunnableCall``.
    """

    call: ToolCall
    reasons: tuple[str, ...]
    details: Mapping[str, str]
    fate: Fate | None = None
    release_key: str | None = None

    @property
    def reason(self) -> str:
        """The first of ``reasons``."""
        return self.reasons[0]

    @property
    def detail(self) -> str:
        """The details in one line; with several reasons each after its name."""
        return _one_line(self.reasons, self.details)


@dataclass(frozen=True, slots=True, eq=False)
class GateDecision:
    """What the gate says about one turn.

    Attributes:
        action: "run" (at least one call may), "refuse", or "nothing_to_run" (the turn ended well, without client calls).
        reasons: all that hold, in table order, those of single calls included. Where the action is not "refuse", "ended"
            stands first.
        runnable: the calls that may run, in the order of the turn.
        refused: the client calls that may not, in the order of the turn.
        detail: what holds against the turn as a whole, in one line, or "".
    """

    action: Action
    reasons: tuple[str, ...]
    runnable: tuple[RunnableCall, ...]
    refused: tuple[Refusal, ...]
    detail: str = ""

    @property
    def reason(self) -> str:
        """ "ended", or the first reason in table order."""
        return self.reasons[0]

    def raise_if_refused(self) -> GateDecision:
        """Raise where a caller prefers that.

        Returns:
            the decision itself, where its action is not "refuse".
        Raises:
            GateRefused: the action is "refuse". The decision is in ``.decision`` and stays as it is.
        """
        if self.action == "refuse":
            parts = [self.detail] if self.detail else []
            parts += [f"{r.call.name or r.call.key}: {r.detail or r.reason}" for r in self.refused] if not parts else []
            raise GateRefused(f"{', '.join(self.reasons)}{': ' if parts else ''}{'; '.join(parts)}", self)
        return self


class TurnGate:
    """Decides about turns, and remembers what it has released.

    One gate a conversation (or an agent) is the usual way: a call that comes again after a reconnect is refused only by the gate
    that released it, or by one with the same ledger and scope. Safe to use from several threads; validators run outside of its
    lock.
    """

    def __init__(self, tools: Mapping[str, Any] | None = None, *, policy: GatePolicy | None = None, ledger: Ledger | None = None, scope: str = "") -> None:
        """A gate for ``tools``.

        Args:
            tools: tool name to what its arguments have to be: a JSON Schema, a pydantic model or TypeAdapter, a msgspec type, a
                callable, or None for any object (``toolwire.validate`` tells them apart). Without ``tools`` any name may run,
                and arguments have to be a JSON object, nothing more. ``{}`` lets no tool run.
            policy: see ``GatePolicy``.
            ledger: where released calls are remembered; without one in this gate alone. See ``toolwire.ledger``.
            scope: belongs to every key in the ledger. Gates that share a ledger but not a conversation have to have their own,
                because some servers number their ids from the same start each time.
        Raises:
            UsageError: a schema or a ledger that is none, or a library that is missing.
        """
        if tools is not None and not isinstance(tools, Mapping):
            raise UsageError(f"tools is a {type(tools).__name__}; give a mapping of tool name to JSON Schema, model, callable or None")
        if policy is not None and not isinstance(policy, GatePolicy):
            raise UsageError(f"policy is a {type(policy).__name__}, not a GatePolicy")
        if ledger is not None and not callable(getattr(ledger, "claim", None)):
            raise UsageError(f"ledger is a {type(ledger).__name__}, not a Ledger")
        if not isinstance(scope, str):
            raise UsageError(f"scope is a {type(scope).__name__}, not a str")
        self._policy = policy or GatePolicy()
        self._ledger: Ledger = MemoryLedger(max_keys=self._policy.max_released) if ledger is None else ledger
        self._scope = scope
        self._validators: dict[str, Validator] | None = None
        if tools is not None:
            for name in tools:
                if not isinstance(name, str) or not name:
                    raise UsageError(f"tools: {name!r} is no tool name")
            self._validators = {name: compile_validator(name, spec) for name, spec in tools.items()}
        self._lock = threading.Lock()
        # Calls themselves, by id(): kept alive here, so that their id() is theirs alone.
        self._recent: deque[dict[int, ToolCall]] = deque(maxlen=_RECENT_TURNS)

    @classmethod
    def from_openai_tools(cls, tools: Iterable[Any], *, policy: GatePolicy | None = None, ledger: Ledger | None = None, scope: str = "") -> TurnGate:
        """A gate for the ``tools`` (or ``functions``) of a Chat Completions, Responses or Realtime request, or of one of the servers that take the
        same shape (Mistral, Cohere, Ollama).

        Args:
            tools: the list that was sent, as plain data or as the SDK's objects; see ``toolwire.tools``.
            policy, ledger, scope: as for ``TurnGate``.
        Raises:
            UsageError: an entry is no tool definition, or as ``TurnGate``.
        """
        return cls(openai_tools(tools), policy=policy, ledger=ledger, scope=scope)

    @classmethod
    def from_anthropic_tools(cls, tools: Iterable[Any], *, policy: GatePolicy | None = None, ledger: Ledger | None = None, scope: str = "") -> TurnGate:
        """Like ``from_openai_tools``, for the ``tools`` of a Messages request."""
        return cls(anthropic_tools(tools), policy=policy, ledger=ledger, scope=scope)

    @classmethod
    def from_gemini_tools(cls, tools: Iterable[Any], *, policy: GatePolicy | None = None, ledger: Ledger | None = None, scope: str = "") -> TurnGate:
        """Like ``from_openai_tools``, for the ``tools`` of a generateContent or Interactions request."""
        return cls(gemini_tools(tools), policy=policy, ledger=ledger, scope=scope)

    @classmethod
    def from_bedrock_tools(cls, tools: Iterable[Any], *, policy: GatePolicy | None = None, ledger: Ledger | None = None, scope: str = "") -> TurnGate:
        """Like ``from_openai_tools``, for the ``toolConfig["tools"]`` of a Converse request."""
        return cls(bedrock_tools(tools), policy=policy, ledger=ledger, scope=scope)

    @property
    def policy(self) -> GatePolicy:
        """The policy it was made with."""
        return self._policy

    @property
    def ledger(self) -> Ledger:
        """Where it remembers what it released."""
        return self._ledger

    def decide(self, turn: TurnResult | TurnTruncated) -> GateDecision:
        """May the calls of this turn run?

        Args:
            turn: the ``TurnResult``, or the ``TurnTruncated`` that was raised in its place.
        Returns:
            the decision. Calls in ``runnable`` are now released: the gate refuses them from here on.
        Raises:
            UsageError: ``turn`` is neither. The gate is as it was.
            LedgerError: the ledger did not answer. Nothing may run; the gate is as it was, unless the ledger took the claim
                and its answer was lost: then those calls are released, and their fate stays unknown.
        """
        return self._decide(turn, release=True)

    def preview(self, turn: TurnResult | TurnTruncated) -> GateDecision:
        """What would ``decide`` say? Nothing is released and nothing remembered.

        Args:
            turn: as for ``decide``.
        Returns:
            the decision. Its ``runnable`` is empty whatever its action: the permission itself comes from ``decide`` only.
            Where the action is "run", the client calls that are not in ``refused`` would run.
        Raises:
            UsageError: ``turn`` is neither. The gate is as it was.
            LedgerError: the ledger did not answer.
        """
        return self._decide(turn, release=False)

    def _decide(self, turn: TurnResult | TurnTruncated, *, release: bool) -> GateDecision:
        result = _result_of(turn)
        calls = [c for c in result.calls if is_client_call(c)]
        turn_reasons = self._judge_turn(result, calls)

        found = [_Finding(c, _release_key(c, result, self._scope)) for c in calls]
        for finding in found:
            self._judge_call(finding, result, ended_well=not turn_reasons)
        doubts = _stream_doubts(found, result)

        self._check_released(found)
        # Validators may be anyone's code, and slow: not under the lock, not for a turn that is refused anyway, and once a call.
        if not turn_reasons and not doubts:
            for finding in found:
                if not finding.reasons:
                    self._validate(finding)

        with self._lock:
            return self._release(turn_reasons, found, doubts, release=release)

    def settle(self, call: RunnableCall, fate: Settled = "done") -> None:
        """Say what became of a call that ran: asked about it again, the gate tells so.

        Args:
            call: a call that this gate, or one with the same ledger, released. Without a ``release_key`` nothing is recorded.
            fate: "done" or "failed". A call that failed is released no more than one that is done.
        Raises:
            UsageError: ``fate`` is none.
            LedgerError: the ledger did not answer. The fate may stay unknown.
        """
        if call.release_key is not None:
            self._ledger.settle(call.release_key, fate)

    # -- the first question -----------------------------------------------------------------------------------------------

    def _judge_turn(self, result: TurnResult, calls: list[ToolCall]) -> dict[str, str]:
        """Everything that holds against the turn as a whole."""
        found: dict[str, str] = {}
        word = "" if result.reason is None else f"the provider's reason is {result.reason!r}"
        if not result.ended or result.truncated:
            found["turn_not_ended"] = f"{type(result.error).__name__}: {result.error}" if result.error else "the provider has not ended the turn"
            if result.cause is not None:  # one of the two words by contract; anything else would still be an abort
                found["idle_timeout" if result.cause == "idle_timeout" else "aborted"] = ""
        if result.outcome not in _GOOD:
            detail = str(result.error) if result.outcome is Outcome.ERROR and result.error else word
            found.setdefault(_OUTCOME_REASONS.get(result.outcome, "turn_unknown"), detail)
        if self._policy.require_end_marker and result.provider in _CHAT and not result.has_end_marker:
            found.setdefault("turn_not_ended", "[DONE] never came (GatePolicy.require_end_marker)")
        if calls and result.outcome is Outcome.STOP:
            if not result.runs_on_stop:
                found["turn_not_for_tools"] = word
            elif result.provider in _CHAT and not found:
                unfinished = [c.key for c in calls if c.kind == "json" and c.text and not c.complete]
                if unfinished:
                    found["turn_not_for_tools"] = f"{word or 'a plain stop'}, and call {', '.join(unfinished)} is not complete"
        if not found and isinstance(result.error, StreamError):
            # An error is sticky: no later end of the turn heals it.
            found["turn_error"] = str(result.error)
        return found

    # -- the second question ----------------------------------------------------------------------------------------------

    def _judge_call(self, finding: _Finding, result: TurnResult, *, ended_well: bool) -> None:
        """Everything that holds against one call, short of its tool's validator."""
        call = finding.call
        for reason, detail in call.doubts.items():
            if reason in CALL_REASONS:
                finding.add(reason, detail)
            else:  # a doubt that this table does not know is still a doubt
                finding.add("args_conflict", f"{reason}: {detail}")
        name = (call.name or "").strip()
        if not name and not finding.reasons.keys() & {"no_name", "orphan_arguments"}:
            has_id = bool(call.id) and not call.id_is_synthetic
            finding.add("no_name" if has_id or not call.text else "orphan_arguments", "")
        if name and self._validators is not None and call.name not in self._validators:
            finding.add("unknown_tool", repr(call.name))
        if "superseded" not in finding.reasons:
            self._judge_arguments(finding, result, ended_well=ended_well)

    def _judge_arguments(self, finding: _Finding, result: TurnResult, *, ended_well: bool) -> None:
        call = finding.call
        for mark in call.marks:
            # The parser finds a key twice in the live value, which has been in other hands: there the second opinion below decides.
            if mark in _MARK_REASONS and not (mark == "duplicate_key" and ended_well and mark not in call._mark_list):
                finding.add(_MARK_REASONS[mark], str(mark))
        text = call.text
        if "\ufffd" in text and "invalid_utf8" in result.marks:
            finding.add("args_invalid_unicode", "U+FFFD in the arguments, and ill-formed UTF-8 in the body")
        if call.kind == "text":
            if not ended_well and not call.complete:
                finding.add("args_incomplete", "the provider has not closed the call")
            finding.arguments = text
            return
        # What the parser that followed the stream found; its limits may be narrower than the gate's.
        if call.error is not None and (text or not ended_well):
            finding.add_error(call.error)
        if not ended_well:
            if call.error is None and not call.complete:
                finding.add("args_incomplete", f"the text stops after {len(text)} characters" if text else "no argument text")
            return
        # The second opinion, and the arguments themselves: parsed anew and strictly, because ``call.value`` has been in other hands.
        if text:
            try:
                finding.arguments = loads(text, max_depth=self._policy.max_depth, surrogates="error", duplicate_keys="error")
            except StreamError as error:
                finding.add_error(error)
                return
        else:
            finding.arguments = {}
        if not isinstance(finding.arguments, dict):
            finding.add("args_not_object", f"the arguments are {_kind_of(finding.arguments)}")

    def _validate(self, finding: _Finding) -> None:
        call = finding.call
        if self._validators is None or call.kind == "text":
            return
        try:
            finding.arguments = self._validators[call.name or ""](finding.arguments, call.text or "{}")
        except ShapeError as error:
            finding.add("args_schema", error.detail)

    # -- what was released ------------------------------------------------------------------------------------------------

    def _check_released(self, found: list[_Finding]) -> None:
        keys = [f.key for f in found if f.key is not None]
        fates = self._ledger.fates(keys) if keys else {}
        with self._lock:
            for finding in found:
                if finding.key in fates:
                    finding.add_fate(fates[finding.key])
                elif finding.key is None and self._was_released(finding.call):
                    finding.add_fate("released")

    def _was_released(self, call: ToolCall) -> bool:
        return any(calls.get(id(call)) is call for calls in self._recent)

    def _release(self, turn_reasons: dict[str, str], found: list[_Finding], doubts: dict[str, str], *, release: bool) -> GateDecision:
        """Who runs, who does not, and why. Called with the lock held: what is released here was released by nobody else."""
        taken: dict[str, _Finding] = {}
        for finding in found:
            if finding.key is None and self._was_released(finding.call):
                finding.add_fate("released")
            elif finding.key is not None and not finding.reasons and taken.setdefault(finding.key, finding) is not finding:
                finding.add("already_released", f"the same as call {taken[finding.key].call.key}")
        if release and not (turn_reasons or doubts or (self._policy.all_or_nothing and any(f.reasons for f in found))):
            self._claim([f for f in found if not f.reasons])
        shared = {**turn_reasons, **doubts}
        if self._policy.all_or_nothing:
            for finding in found:
                for reason in finding.reasons:
                    shared.setdefault(reason, f"with call {finding.call.key}")

        runnable: list[RunnableCall] = []
        refused: list[Refusal] = []
        for finding in found:
            against = {**shared, **finding.reasons}
            if against:
                refused.append(Refusal(finding.call, _in_order(against), against, finding.fate, finding.key))
            else:
                runnable.append(RunnableCall(call=finding.call, arguments=finding.arguments, release_key=finding.key, seal=_SEAL))

        reasons = _in_order({*turn_reasons, *(r for x in refused for r in x.reasons)})
        action: Action = "run" if runnable else "refuse" if found or turn_reasons else "nothing_to_run"
        if action != "refuse":
            reasons = (ENDED, *reasons)
        detail = _one_line(_in_order(turn_reasons), turn_reasons) if turn_reasons else ""
        return GateDecision(action, reasons, tuple(runnable) if release else (), tuple(refused), detail)

    def _claim(self, found: list[_Finding]) -> None:
        """Claims the calls; those that another gate has claimed since they were checked say so from here on."""
        keyed = {f.key: f for f in found if f.key is not None}
        fates = self._ledger.claim(list(keyed), all_or_nothing=self._policy.all_or_nothing) if keyed else {}
        for key, fate in fates.items():
            keyed[key].add_fate(fate)
        by_object = {id(f.call): f.call for f in found if f.key is None}
        if by_object and not (fates and self._policy.all_or_nothing):
            self._recent.append(by_object)


class _Finding:
    """One client call, what holds against it, and its arguments if nothing does."""

    __slots__ = ("arguments", "call", "fate", "key", "reasons")

    def __init__(self, call: ToolCall, key: str | None) -> None:
        self.call = call
        self.key = key
        self.reasons: dict[str, str] = {}
        self.fate: Fate | None = None
        self.arguments: Any = None

    def add(self, reason: str, detail: str) -> None:
        self.reasons[reason] = self.reasons.get(reason) or detail

    def add_fate(self, fate: Fate) -> None:
        self.fate = fate
        self.add("already_released", _FATES[fate])

    def add_error(self, error: StreamError) -> None:
        """A parser's error. "Incomplete" and "malformed" are never confused."""
        reason = "args_incomplete" if isinstance(error, TruncatedJSON) else _CODE_REASONS.get(error.code, "args_invalid_json")
        limit = f" (the limit is {error.limit}={error.value}; {error.option} raises it)" if isinstance(error, LimitExceeded) else ""
        self.add(reason, f"{error}{limit}")


def _result_of(turn: object) -> TurnResult:
    if isinstance(turn, TurnTruncated):
        turn = turn.result
    if isinstance(turn, TurnResult):
        return turn
    hint = "; call its finish() first" if hasattr(turn, "finish") else ""
    raise UsageError(f"the gate decides about a TurnResult or a TurnTruncated, not a {type(turn).__name__}{hint}")


def is_client_call(call: ToolCall) -> bool:
    """Is it for the client to run, if anybody?"""
    # A request for approval asks a person, and its answer is no tool result.
    return call.runs_on == "client" and "needs_approval" not in call.marks


def _stream_doubts(found: list[_Finding], result: TurnResult) -> dict[str, str]:
    """Reasons that any call of the turn gives against all of them, with the key of the first that does."""
    doubts: dict[str, str] = {}
    for finding in found:
        if "superseded" not in finding.reasons:
            for reason in finding.reasons.keys() & STREAM_REASONS:
                doubts.setdefault(reason, f"with call {finding.call.key}")
    for call in result.calls:
        if not is_client_call(call) and "superseded" not in call.doubts:
            for reason in call.doubts.keys() & STREAM_REASONS:
                doubts.setdefault(reason, f"with call {call.key}, which the provider runs")
    return doubts


def _release_key(call: ToolCall, result: TurnResult, scope: str) -> str | None:
    """What tells this call from every other, on a second connection too; None where nothing does.

    The choice is part of it, because choices may share an id. The rest of ``call.key`` counts calls from the start of a body and
    so differs after a resume: it is used only where the provider gave no id. Where one of the two ids is missing, name and text
    belong to the key, since some servers number their answers, or their calls, from the same start each time.
    """
    call_id = "" if call.id_is_synthetic or call.id is None else call.id
    if result.response_id and call_id:
        return _digest(json.dumps([scope, result.response_id, str(call.choice), call_id]))
    if result.response_id:
        return _digest(json.dumps([scope, result.response_id, call.key, "", call.name or "", _digest(call.text)]))
    if call_id:
        return _digest(json.dumps([scope, "", str(call.choice), call_id, call.name or "", _digest(call.text)]))
    return None


def _digest(text: str) -> str:
    # A ledger keeps keys for longer than one version of toolwire lives: how they are made must not change.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _in_order(reasons: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(reasons, key=_RANK.__getitem__))


def _one_line(reasons: tuple[str, ...], details: Mapping[str, str]) -> str:
    if len(reasons) == 1:
        return details[reasons[0]]
    return "; ".join(f"{reason}: {details[reason]}" if details[reason] else reason for reason in reasons)


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "a string"
    return "null" if value is None else "an array" if isinstance(value, list) else "a number"
