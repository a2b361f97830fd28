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
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypeAlias

from ._json import loads
from .errors import GateRefused, LimitExceeded, StreamError, TruncatedJSON, TurnTruncated, UsageError
from .events import Outcome, ToolCall, TurnResult
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
    "already_released": "this gate has released the call before",
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

#: Turns whose released calls are remembered as objects, for calls that no id tells apart. Asking twice follows soon or never.
_RECENT_TURNS: Final = 16


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What a gate insists on beyond its rules. Nothing here lets more calls run.

    Attributes:
        all_or_nothing: one refused call refuses all calls of its turn.
        require_end_marker: a chat turn without ``[DONE]`` has not ended. One server sends a finish reason after each call, so
            that a clean cut after the first looks like a whole turn.
        max_released: calls remembered as released; the oldest is forgotten first. A long agent session makes hundreds, and one
            costs about 300 bytes.
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
    """

    __slots__ = ("arguments", "call", "id", "kind", "name")

    id: str
    name: str
    arguments: Any
    kind: Literal["json", "text"]
    call: ToolCall

    def __init__(self, *, call: ToolCall, arguments: Any, seal: object) -> None:
        if seal is not _SEAL:
            raise UsageError("a RunnableCall comes from TurnGate.decide() only")
        put = object.__setattr__
        put(self, "call", call)
        put(self, "id", call.id or call.key)
        put(self, "name", call.name)
        put(self, "arguments", arguments)
        put(self, "kind", call.kind)

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
    """

    call: ToolCall
    reasons: tuple[str, ...]
    details: Mapping[str, str]

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
    that released it. Safe to use from several threads; validators run outside of its lock.
    """

    def __init__(self, tools: Mapping[str, Any] | None = None, *, policy: GatePolicy | None = None) -> None:
        """A gate for ``tools``.

        Args:
            tools: tool name to what its arguments have to be: a JSON Schema, a pydantic model or TypeAdapter, a msgspec type, a
                callable, or None for any object (``toolwire.validate`` tells them apart). Without ``tools`` any name may run,
                and arguments have to be a JSON object, nothing more. ``{}`` lets no tool run.
            policy: see ``GatePolicy``.
        Raises:
            UsageError: a schema that is none, or a library that is missing.
        """
        if tools is not None and not isinstance(tools, Mapping):
            raise UsageError(f"tools is a {type(tools).__name__}; give a mapping of tool name to JSON Schema, model, callable or None")
        if policy is not None and not isinstance(policy, GatePolicy):
            raise UsageError(f"policy is a {type(policy).__name__}, not a GatePolicy")
        self._policy = policy or GatePolicy()
        self._validators: dict[str, Validator] | None = None
        if tools is not None:
            for name in tools:
                if not isinstance(name, str) or not name:
                    raise UsageError(f"tools: {name!r} is no tool name")
            self._validators = {name: compile_validator(name, spec) for name, spec in tools.items()}
        self._lock = threading.Lock()
        self._released: OrderedDict[_ReleaseKey, None] = OrderedDict()
        # Calls themselves, by id(): kept alive here, so that their id() is theirs alone.
        self._recent: deque[dict[int, ToolCall]] = deque(maxlen=_RECENT_TURNS)

    @property
    def policy(self) -> GatePolicy:
        """The policy it was made with."""
        return self._policy

    def decide(self, turn: TurnResult | TurnTruncated) -> GateDecision:
        """May the calls of this turn run?

        Args:
            turn: the ``TurnResult``, or the ``TurnTruncated`` that was raised in its place.
        Returns:
            the decision. Calls in ``runnable`` are now released: the gate refuses them from here on.
        Raises:
            UsageError: ``turn`` is neither. The gate is as it was.
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
        """
        return self._decide(turn, release=False)

    def _decide(self, turn: TurnResult | TurnTruncated, *, release: bool) -> GateDecision:
        result = _result_of(turn)
        calls = [c for c in result.calls if is_client_call(c)]
        turn_reasons = self._judge_turn(result, calls)

        found = [_Finding(c) for c in calls]
        for finding in found:
            self._judge_call(finding, result, ended_well=not turn_reasons)
        doubts = _stream_doubts(found, result)

        with self._lock:
            for finding in found:
                self._check_released(finding, result)
        # Validators may be anyone's code, and slow: not under the lock, not for a turn that is refused anyway, and once a call.
        if not turn_reasons and not doubts:
            for finding in found:
                if not finding.reasons:
                    self._validate(finding)

        with self._lock:
            return self._settle(result, turn_reasons, found, doubts, release=release)

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

    def _check_released(self, finding: _Finding, result: TurnResult) -> None:
        if self._was_released(finding.call, result):
            finding.add("already_released", "")

    def _was_released(self, call: ToolCall, result: TurnResult) -> bool:
        key = _release_key(call, result)
        if key is not None:
            return key in self._released
        return any(calls.get(id(call)) is call for calls in self._recent)

    def _settle(self, result: TurnResult, turn_reasons: dict[str, str], found: list[_Finding], doubts: dict[str, str], *, release: bool) -> GateDecision:
        """Who runs, who does not, and why. Called with the lock held: what is released here was released by nobody else."""
        taken: set[_ReleaseKey] = set()
        for finding in found:
            if "already_released" not in finding.reasons:
                key = _release_key(finding.call, result)
                if self._was_released(finding.call, result) or (key is not None and not finding.reasons and key in taken):
                    finding.add("already_released", "")
                elif key is not None and not finding.reasons:
                    taken.add(key)
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
                refused.append(Refusal(finding.call, _in_order(against), against))
            else:
                runnable.append(RunnableCall(call=finding.call, arguments=finding.arguments, seal=_SEAL))
        if release:
            self._remember(result, runnable)

        reasons = _in_order({*turn_reasons, *(r for x in refused for r in x.reasons)})
        action: Action = "run" if runnable else "refuse" if found or turn_reasons else "nothing_to_run"
        if action != "refuse":
            reasons = (ENDED, *reasons)
        detail = _one_line(_in_order(turn_reasons), turn_reasons) if turn_reasons else ""
        return GateDecision(action, reasons, tuple(runnable) if release else (), tuple(refused), detail)

    def _remember(self, result: TurnResult, runnable: list[RunnableCall]) -> None:
        by_object: dict[int, ToolCall] = {}
        for released in runnable:
            key = _release_key(released.call, result)
            if key is None:
                by_object[id(released.call)] = released.call
            else:
                self._released[key] = None
        while len(self._released) > self._policy.max_released:
            self._released.popitem(last=False)
        if by_object:
            self._recent.append(by_object)


_ReleaseKey: TypeAlias = tuple[str, ...]


class _Finding:
    """One client call, what holds against it, and its arguments if nothing does."""

    __slots__ = ("arguments", "call", "reasons")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.reasons: dict[str, str] = {}
        self.arguments: Any = None

    def add(self, reason: str, detail: str) -> None:
        self.reasons[reason] = self.reasons.get(reason) or detail

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


def _release_key(call: ToolCall, result: TurnResult) -> _ReleaseKey | None:
    """What tells this call from every other, on a second connection too; None where nothing does.

    The choice is part of it, because choices may share an id. The rest of ``call.key`` counts calls from the start of a body and
    so differs after a resume: it is used only where the provider gave no id. Where one of the two ids is missing, name and text
    belong to the key, since some servers number their answers, or their calls, from the same start each time.
    """
    call_id = "" if call.id_is_synthetic or call.id is None else call.id
    if result.response_id and call_id:
        return (result.response_id, str(call.choice), call_id)
    # A digest stands for the argument text, which may be megabytes long.
    digest = hashlib.blake2b(call.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    if result.response_id:
        return (result.response_id, call.key, "", call.name or "", digest)
    if call_id:
        return ("", str(call.choice), call_id, call.name or "", digest)
    return None


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
