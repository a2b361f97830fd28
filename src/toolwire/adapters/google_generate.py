"""Google GenerateContent (``:streamGenerateContent``), over SSE or as one JSON array.

The ordinary turn: each payload is a whole ``GenerateContentResponse`` with the next parts of each candidate. A
``functionCall`` part is a whole call, arguments as an object. Some payload gives the candidate a ``finishReason``; usage and
more parts may follow. There is no terminal marker: the turn has ended when every candidate has its reason (or the prompt
was blocked) and the body then ends cleanly. No reason speaks of tools: ``STOP`` with calls is the tool turn.

Streamed arguments: an opener with a name and ``willContinue``, then nameless pieces with ``partialArgs``, and a closer, which
is the first piece that neither continues nor holds an entry that does. No index exists, so at most one call is open in each
candidate, and where two clients of the provider disagree the stricter reading counts:

* a named piece while a call is open starts another call, whatever its name: the open one is never closed;
* a nameless piece while none is open opens a call that will never have a name;
* pieces that contradict each other put their call in doubt (``args_conflict``), as does a string of which another piece was
  announced and never came (``args_incomplete``).

Media is not read. Results of tools that the provider ran are known and give no event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._calls import ArgumentBuffer
from ..errors import LimitExceeded
from ..events import Channel, Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, compact_json, outcome_of, same_json, word_of
from ._message import Parts, Reader, Texts, arguments_of
from ._partial_args import PartialArgs

if TYPE_CHECKING:
    from .._framing import Frame

_FILTERED = (
    "SAFETY",
    "PROHIBITED_CONTENT",
    "BLOCKLIST",
    "SPII",
    "RECITATION",
    "LANGUAGE",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
)
_INVALID = (
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
)

#: ``OTHER``, ``ESCALATION``, ``FINISH_REASON_UNSPECIFIED``, ``NO_IMAGE`` and what comes after 2026 are UNKNOWN.
REASONS: Final[Mapping[str, Outcome]] = {
    "STOP": Outcome.STOP,
    "MAX_TOKENS": Outcome.LENGTH,
    "CONTINUATION": Outcome.CONTINUE,
    **dict.fromkeys(_FILTERED, Outcome.FILTERED),
    **dict.fromkeys(_INVALID, Outcome.ERROR),
}

_NO_BLOCK = frozenset({"BLOCKED_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED"})

_PARTIAL_ARG = dict.fromkeys(("jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"), True)
_PART: Mapping[str, Any] = {
    "text": True,
    "thought": True,
    "thoughtSignature": True,
    "functionCall": {"id": True, "name": True, "args": True, "partialArgs": _PARTIAL_ARG, "willContinue": True},
    "toolCall": {"id": True, "name": True, "toolType": True, "args": True},
    "executableCode": {"id": True, "language": True, "code": True},
    # Of these only their presence counts: media must not be built.
    "toolResponse": {},
    "codeExecutionResult": {},
    "functionResponse": {},
    "inlineData": {},
    "fileData": {},
}


class _Candidate:
    """What is kept of one candidate."""

    def __init__(self) -> None:
        self.finished = False
        self.open: _OpenCall | None = None
        self.calls: dict[str, ToolCall] = {}  # by the provider's id


class _OpenCall:
    """A call whose arguments are being streamed."""

    def __init__(self, call: ToolCall, args: PartialArgs) -> None:
        self.call = call
        self.args = args
        self.given: dict[str, Any] | None = None  # an arguments object beside the pieces


class GoogleGenerateAdapter(Adapter):
    """``google-generate``. Terminal marker: none, see ``at_end``."""

    PROVIDER: ClassVar[str] = "google-generate"
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "candidates": {"index": True, "content": {"parts": _PART}, "finishReason": True, "finishMessage": True, "continuationToken": True},
        "promptFeedback": {"blockReason": True, "blockReasonMessage": True},
        "usageMetadata": True,
        "responseId": True,
        "modelVersion": True,
        "error": True,
        "code": True,
        "message": True,
        "type": True,
        "object": True,
    }
    RUNS_ON_STOP: ClassVar[bool] = True
    TOOL_REASON: ClassVar[bool] = False
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"candidates", "promptFeedback", "usageMetadata", "responseId", "modelVersion"})
    RAISES_ON_CUT: ClassVar[bool] = True

    __slots__ = ("_blocked", "_candidates", "_parts")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._candidates: dict[int, _Candidate] = {}
        self._blocked = False
        self._parts = Parts(record)

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        record = self.record
        if not self.GOOD_MEMBERS & payload.keys():
            record.unknown(frame, "a payload without any known member")
            return
        if record.response_id is None:
            record.response_id = blank(payload.get("responseId"))
        candidates = payload.get("candidates")
        if isinstance(candidates, list):
            for place, candidate in enumerate(candidates):
                if isinstance(candidate, dict):
                    self._candidate(candidate, place, frame)
        self._prompt_feedback(payload.get("promptFeedback"))
        record.set_usage(payload.get("usageMetadata"))

    def at_end(self, clean: bool) -> bool:
        """Ended: a clean end of the body after every candidate had its finish reason, or after the prompt was blocked."""
        if not clean:
            return False
        return self._blocked or (bool(self._candidates) and all(c.finished for c in self._candidates.values()))

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The content as GenerateContent takes it: each signature on the part it came with, no ids that this library made up."""
        written: list[dict[str, Any]] = []
        read = Reader()
        for part, text in self._parts.with_texts(texts, choice):
            call = part.call
            if call is not None:
                function = {"name": call.name, "args": arguments_of(call)}
                written.append({"functionCall": function if call.id_is_synthetic else {"id": call.id, **function}, **call.extra})
            elif part.channel is None:
                written.append(part.value(read))
            elif text or part.members:
                written.append({"text": text, **({"thought": True} if part.channel == "reasoning" else {}), **part.members})
        return [{"role": "model", "parts": written}] if written else []

    def goes_on(self, before: Adapter) -> None:
        assert isinstance(before, GoogleGenerateAdapter)
        self._parts = before._parts

    def continuation(self) -> dict[str, Any]:
        return {} if self.record.resume_point is None else {"continuationToken": self.record.resume_point}

    # -- candidates ---------------------------------------------------------------------------------------------------

    def _candidate(self, candidate: dict[str, Any], place: int, frame: Frame) -> None:
        index = candidate.get("index")
        choice: int = index if type(index) is int else 0  # proto3 JSON leaves out a zero
        state = self._candidates.get(choice)
        if state is None:
            state = self._candidates[choice] = _Candidate()
        reason = word_of(candidate.get("finishReason"))
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if isinstance(parts, list):
            before = self.record.progress, len(self.record.calls)
            for number, part in enumerate(parts):
                if isinstance(part, dict):
                    self._part(part, choice, state, frame, ("candidates", place, "content", "parts", number))
            # Some servers repeat the reason on every payload; only what comes without one after it is odd.
            if state.finished and reason is None and before != (self.record.progress, len(self.record.calls)):
                self.record.mark("delta_after_finish")
        if reason is not None:
            state.finished = True
            self.record.finish_reason(reason, outcome_of(reason, REASONS), choice)
        message = blank(candidate.get("finishMessage"))
        if message is not None:
            self.record.extra["finishMessage"] = message
        token = blank(candidate.get("continuationToken"))
        if token is not None:
            self.record.resume_point = token

    def _prompt_feedback(self, feedback: Any) -> None:
        reason = word_of(feedback.get("blockReason")) if isinstance(feedback, dict) else None
        if reason is not None and reason not in _NO_BLOCK:
            self._blocked = True
            self.record.finish_reason(reason, Outcome.FILTERED)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _part(self, part: dict[str, Any], choice: int, state: _Candidate, frame: Frame, place: tuple[str | int, ...]) -> None:
        record, parts = self.record, self._parts
        signature = blank(part.get("thoughtSignature"))
        call: ToolCall | None = None
        channel: Channel = "reasoning" if part.get("thought") is True else "text"
        function_call = part.get("functionCall")
        if isinstance(function_call, dict):
            before = len(record.calls)
            call = self._function_call(function_call, choice, state)
            if len(record.calls) > before:
                parts.add("functionCall", call=call, choice=choice)
        elif isinstance(part.get("text"), str):
            last = parts.last(choice)
            if signature is not None:  # a part with a signature is never merged with another
                parts.add("text", channel=channel, choice=choice, members={"thoughtSignature": signature})
            elif last is None or last.channel != channel or last.members:
                parts.add("text", channel=channel, choice=choice)
            record.text(part["text"], channel, choice)
        elif part:
            if isinstance(part.get("toolCall"), dict):
                call = self._tool_call(part["toolCall"], choice)
            elif isinstance(part.get("executableCode"), dict):
                call = self._code(part["executableCode"], choice)
            parts.add("", choice=choice, kept=(frame.raw, place))
        else:
            record.unknown(frame, "a part without any known member")
        if signature is not None:
            if call is not None:
                call.extra.setdefault("thoughtSignature", signature)
            else:
                # It goes back on the part it came with: the text of this channel that ends here.
                end = len(record.text_so_far(channel, choice))
                record.extra.setdefault("thoughtSignatures", []).append({"candidate": choice, "channel": channel, "end": end, "thoughtSignature": signature})

    def _tool_call(self, tool: dict[str, Any], choice: int) -> ToolCall:
        """A tool that the provider runs itself."""
        record = self.record
        name = blank(tool.get("name")) or blank(tool.get("toolType")) or "toolCall"
        call = record.start(id=blank(tool.get("id")), name=name, runs_on="provider", choice=choice)
        if tool.get("args") is not None:
            record.whole_object(call, tool["args"])
        record.end(call)
        return call

    def _code(self, code: dict[str, Any], choice: int) -> ToolCall:
        """Code that the provider runs in its sandbox."""
        record = self.record
        language = blank(code.get("language"))
        extra = {} if language is None else {"language": language}
        call = record.start(id=blank(code.get("id")), name="executableCode", kind="text", runs_on="provider", choice=choice, extra=extra)
        if isinstance(code.get("code"), str):
            record.arguments(call, code["code"])
        record.end(call)
        return call

    # -- calls --------------------------------------------------------------------------------------------------------

    def _function_call(self, piece: dict[str, Any], choice: int, state: _Candidate) -> ToolCall:
        """One ``functionCall``: a whole call, or a piece of one."""
        entries = piece.get("partialArgs")
        if not isinstance(entries, list):
            entries = [] if entries is None else [entries]  # not lost: it is a piece, or contradicts what one has to be
        continues = piece.get("willContinue") is True
        name = blank(piece.get("name"))
        if name is not None:
            if state.open is not None:
                self.record.doubt(state.open.call, "args_incomplete", "another call started before this one was closed")
                state.open = None
            if not entries and not continues:
                return self._whole_call(piece, name, choice, state)
        if state.open is None:
            state.open = self._open(piece, name, choice, state)
        else:
            self._same_id(piece, state)
        current = state.open
        self._take(current, piece, entries)
        # Google's own reader looks at the call's flag only, another one at those of the entries too: both must be silent.
        if not continues and not any(isinstance(entry, dict) and entry.get("willContinue") is True for entry in entries):
            self._close(current)
            state.open = None
        return current.call

    def _whole_call(self, piece: dict[str, Any], name: str, choice: int, state: _Candidate) -> ToolCall:
        record = self.record
        id = blank(piece.get("id"))
        args = piece.get("args")
        known = state.calls.get(id) if id is not None else None
        if known is not None:
            # Only an id tells a call that was sent again from a second one.
            if known.name == name and known.closed and same_json(known.text or "{}", "{}" if args is None else compact_json(args)):
                record.mark_call(known, "call_repeated")
            else:
                record.doubt(known, "args_conflict", "the same id came again with another name or other arguments")
            return known
        call = record.start(id=id, name=name, choice=choice)
        if id is not None:
            state.calls[id] = call
        if args is not None:
            record.whole_object(call, args)
        record.end(call)
        return call

    def _open(self, piece: dict[str, Any], name: str | None, choice: int, state: _Candidate) -> _OpenCall:
        """A call whose arguments will be streamed. Without a name it is refused at the end."""
        record = self.record
        id = blank(piece.get("id"))
        known = state.calls.get(id) if id is not None else None
        call = record.start(id=id if known is None else None, name=name, choice=choice)
        if known is not None:
            for one in (known, call):
                record.doubt(one, "args_conflict", "two calls with streamed arguments came under one id")
            record.mark_call(call, "id_repeated")
        elif id is not None:
            state.calls[id] = call
        return _OpenCall(call, PartialArgs(record.limits))

    def _same_id(self, piece: dict[str, Any], state: _Candidate) -> None:
        """A nameless piece goes to the open call. One that names another id might not belong there."""
        assert state.open is not None
        call, id = state.open.call, blank(piece.get("id"))
        if id is None or id == call.id:
            return
        if call.id is None and id not in state.calls:
            call.id = id
            state.calls[id] = call
        else:
            self.record.doubt(call, "args_ambiguous", "a piece without a name has another id than the open call")

    def _take(self, current: _OpenCall, piece: dict[str, Any], entries: list[Any]) -> None:
        """The pieces of one payload."""
        record, call, args = self.record, current.call, current.args
        if isinstance(piece.get("args"), dict):
            if piece["args"]:
                if current.given is not None and not same_json(compact_json(current.given), compact_json(piece["args"])):
                    record.doubt(call, "args_conflict", "two different arguments objects came beside streamed arguments")
                current.given = piece["args"]
        elif piece.get("args") is not None:
            record.doubt(call, "args_conflict", "arguments beside the streamed ones that are no object")
        if record.duplicate_keys and (entries or piece.get("args")):
            record.doubt(call, "args_duplicate_key", "the payload with this piece holds a key twice")
        try:
            for entry in entries:
                args.add(entry)
        except LimitExceeded as error:
            error.call, error.offset = call.key, record.offset
            raise
        finally:
            text = args.take()
            record.arguments(call, text)
            if not text:
                record.progress += len(entries)  # pieces that wait for their turn are progress too
        if args.conflict is not None:
            record.doubt(call, "args_conflict", args.conflict)

    def _close(self, current: _OpenCall) -> None:
        record, call, args = self.record, current.call, current.args
        if args.unfinished is not None:
            record.doubt(call, "args_incomplete", f"more of {args.unfinished[:80]} was announced and never came")
        if current.given is not None and args.is_empty:
            self._settle(call, compact_json(current.given))
        else:
            if args.out_of_order:
                record.mark_call(call, "args_out_of_order")
                self._settle(call, args.close())
            else:
                record.arguments(call, args.close())
            if current.given is not None and not same_json(call.text, compact_json(current.given)):
                record.doubt(call, "args_conflict", "the arguments object differs from the streamed arguments")
        record.end(call)

    def _settle(self, call: ToolCall, text: str) -> None:
        """The whole text of a call. Where it does not continue what was shown (pieces went back to that), the call gets a
        new text, and the deltas handed out so far do not add up to it."""
        record = self.record
        so_far = call.text
        if text.startswith(so_far):
            record.arguments(call, text[len(so_far) :])
            return
        buffer = ArgumentBuffer(max_depth=record.limits.max_depth, max_chars=record.limits.max_argument_chars, json=True)
        try:
            buffer.append(text)
        except LimitExceeded as error:
            error.call, error.offset = call.key, record.offset
            raise
        call._buffer = buffer
        if not call._announced:
            call._take_held()
            call._hold(text)
