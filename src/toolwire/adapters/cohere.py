"""Cohere chat, version 2 (``POST /v2/chat``, ``stream: true``).

- Framing: SSE, every event named; the name repeats ``type``, which counts. ``[DONE]`` may follow the end and says nothing.
- Terminal marker: ``message-end`` with a finish reason. Without one the turn is cut. Tools run on ``TOOL_CALL`` alone.
- A call is what ``tool-call-start`` opens under its ``index``; contents have indexes of their own. ``tool-call-end`` comes for
  cut calls as well: never a permission.
- ``delta.message.tool_calls`` is one object, not a list.
- The plan that the model writes down before its calls (``tool-plan-delta``) is shown as reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..events import Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, compact_json, no_arguments, outcome_of, same_json, word_of
from ._message import Parts, Texts

if TYPE_CHECKING:
    from .._framing import Frame

_ARGUMENTS = (b"delta", b"message", b"tool_calls", b"function", b"arguments")
_TEXT = (b"delta", b"message", b"content", b"text")
_THINKING = (b"delta", b"message", b"content", b"thinking")
_PLAN = (b"delta", b"message", b"tool_plan")


class CohereAdapter(Adapter):
    PROVIDER: ClassVar[str] = "cohere"
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"type", "delta"})
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "type": True,
        "id": True,
        "index": True,
        "delta": {
            "message": {
                "content": {"text": True, "thinking": True},
                "tool_plan": True,
                "tool_calls": {"id": True, "function": {"name": True, "arguments": True}},
            },
            "finish_reason": True,
            "error": True,
            "usage": True,
        },
        "error": True,
        "code": True,
        "message": True,
    }
    REASONS: ClassVar[Mapping[str, Outcome]] = {
        "TOOL_CALL": Outcome.TOOL_CALLS,
        "COMPLETE": Outcome.STOP,
        "STOP_SEQUENCE": Outcome.STOP,
        "MAX_TOKENS": Outcome.LENGTH,
    }

    __slots__ = ("_calls", "_ids", "_parts", "_spare", "_started")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._calls: dict[int, ToolCall] = {}
        self._ids: set[str] = set()
        self._spare = 0
        self._parts = Parts(record)  # of the reasoning: thinking, or a plan for the tools
        self._started = False

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        kind = payload.get("type")
        if type(kind) is not str:
            kind = frame.event
        handler = _HANDLERS.get(kind)
        if handler is None:
            self.record.unknown(frame, f"event {kind}")
            return
        delta = payload.get("delta")
        if type(delta) is not dict:
            delta = {}
        message = delta.get("message")
        handler(self, payload, delta if kind == "message-end" else message if type(message) is dict else {})

    # -- text ---------------------------------------------------------------------------------------------------------

    def _content(self, payload: dict[str, Any], message: dict[str, Any]) -> None:
        content = message.get("content")
        if type(content) is not dict:
            return
        text, thinking = content.get("text"), content.get("thinking")
        if type(thinking) is str:
            self._reason("thinking")
            self.record.plain_text(thinking, "reasoning", 0, _THINKING)
        if type(text) is str:
            self.record.plain_text(text, "text", 0, _TEXT)

    def _plan(self, payload: dict[str, Any], message: dict[str, Any]) -> None:
        plan = message.get("tool_plan")
        if type(plan) is str:
            self._reason("tool_plan")
            self.record.plain_text(plan, "reasoning", 0, _PLAN)

    def _reason(self, kind: str) -> None:
        latest = self._parts.latest("reasoning")
        if latest is None or latest.kind != kind:
            self._parts.add(kind, channel="reasoning")

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The assistant's message as ``/v2/chat`` takes it."""
        message: dict[str, Any] = {"role": "assistant"}
        reasoned = {"tool_plan": "", "thinking": ""}
        for part, text in self._parts.with_texts(texts):
            reasoned[part.kind] += text
        content = [{"type": kind, kind: text} for kind, text in (("thinking", reasoned["thinking"]), ("text", texts.get((0, "text"), ""))) if text]
        calls = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text or "{}"}} for call in self.record.calls]
        for member, value in (("content", content), ("tool_plan", reasoned["tool_plan"]), ("tool_calls", calls)):
            if value:
                message[member] = value
        return [message] if len(message) > 1 else []

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call_start(self, payload: dict[str, Any], message: dict[str, Any]) -> None:
        record = self.record
        id, name, arguments = _parts(message)
        index = payload.get("index")
        if type(index) is not int:
            record.mark("index_missing")
            self._spare -= 1  # no index that a server sends
            index = self._spare
        known = self._calls.get(index)
        if known is not None:
            if id is not None and known.id == id:
                record.mark_call(known, "call_repeated")
                if name is not None and name != known.name:
                    record.doubt(known, "args_ambiguous", f"started again under the name {name!r}")
                if not no_arguments(arguments):
                    text = arguments if type(arguments) is str else compact_json(arguments)
                    if not known.complete or not same_json(known.text, text):
                        record.whole(known, text)
                return
            if not known.closed:
                raise record.protocol_error(f"a second tool-call-start for index {index}: {id or ''}, while {known.id or ''} is open")
            record.mark("index_reused", detail=f"index {index}")
        twin = id is not None and id in self._ids
        call = self._calls[index] = record.start(id=None if twin else id, name=name)
        if twin:
            record.mark_call(call, "id_repeated", detail=str(id))
        elif id is not None:
            self._ids.add(id)
        record.piece(call, arguments)

    def _call_delta(self, payload: dict[str, Any], message: dict[str, Any]) -> None:
        arguments = _parts(message)[2]
        call = self._call(payload)
        if call is None:
            raise self.record.protocol_error(f"tool-call-delta for index {payload.get('index')!r}, which never started")
        if type(arguments) is str and not call.closed:
            self.record.plain_arguments(call, arguments, _ARGUMENTS)
            return
        if call.closed and arguments:
            self.record.doubt(call, "args_ambiguous", "argument text came after the end of its call")
        self.record.piece(call, arguments)

    def _call_end(self, payload: dict[str, Any], message: dict[str, Any]) -> None:
        call = self._call(payload)
        if call is None:
            self.record.mark("orphan_end", detail=f"tool-call-end for index {payload.get('index')!r}")
        else:
            self.record.end(call)

    def _call(self, payload: dict[str, Any]) -> ToolCall | None:
        """The call of this index; without an index the one that is open, if there is just one."""
        index = payload.get("index")
        if type(index) is int:
            return self._calls.get(index)
        self.record.mark("index_missing")
        still = [call for call in self._calls.values() if not call.closed]
        return still[0] if len(still) == 1 else None

    # -- the message --------------------------------------------------------------------------------------------------

    def _message_start(self, payload: dict[str, Any], message: dict[str, Any]) -> None:
        id = blank(payload.get("id"))
        if self._started:
            if id is not None and self.record.response_id is not None and id != self.record.response_id:
                raise self.record.protocol_error(f"a second message-start: message {id}, while {self.record.response_id} is open")
            self.record.mark("message_repeated")
            return
        self._started = True
        self.record.response_id = id

    def _message_end(self, payload: dict[str, Any], delta: dict[str, Any]) -> None:
        record = self.record
        record.set_usage(delta.get("usage"))
        word, error = word_of(delta.get("finish_reason")), delta.get("error")
        if error:
            record.fail(error, type=word, message=error if isinstance(error, str) else None)
        if word is None:
            record.mark("no_finish_reason", detail="message-end without a finish_reason")
            return
        record.finish_reason(word, outcome_of(word, self.REASONS))
        record.terminal = True

    def _quiet(self, payload: dict[str, Any], message: dict[str, Any]) -> None:
        """Citations, ends of contents, debug output: nothing that this library reads."""


def _parts(message: dict[str, Any]) -> tuple[str | None, str | None, Any]:
    """Id, name and arguments of the one call in a message."""
    call = message.get("tool_calls")
    if type(call) is list and len(call) == 1:
        call = call[0]
    if type(call) is not dict:
        return None, None, [call] if call else None  # nothing that can be read: the gate refuses it
    function = call.get("function")
    if type(function) is not dict:
        function = {"arguments": [function]} if function else {}
    return blank(call.get("id")), blank(function.get("name")), function.get("arguments")


_HANDLERS: Mapping[str, Callable[[CohereAdapter, dict[str, Any], dict[str, Any]], None]] = {
    "message-start": CohereAdapter._message_start,
    "content-start": CohereAdapter._content,
    "content-delta": CohereAdapter._content,
    "content-end": CohereAdapter._quiet,
    "tool-plan-delta": CohereAdapter._plan,
    "tool-call-start": CohereAdapter._call_start,
    "tool-call-delta": CohereAdapter._call_delta,
    "tool-call-end": CohereAdapter._call_end,
    "citation-start": CohereAdapter._quiet,
    "citation-end": CohereAdapter._quiet,
    "debug": CohereAdapter._quiet,
    "message-end": CohereAdapter._message_end,
}
#: What tells these streams from others.
EVENTS: frozenset[str] = frozenset(_HANDLERS)
