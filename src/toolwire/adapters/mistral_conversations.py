"""Mistral Conversations: agents, with tools that Mistral runs itself.

- Framing: SSE, every event named; the name repeats ``type``, which counts.
- Terminal marker: ``conversation.response.done``. It has no reason of its own: beside calls for the client it means that they are
  wanted. ``conversation.response.error`` is an error object, sticky.
- A call is what ``function.call.delta`` names by ``tool_call_id``; name and id are repeated on each piece. Nothing closes it but the
  end, so a call that the token limit cut can be told by its JSON only.
- ``confirmation_status`` other than "allowed" asks a person (or has been denied): shown, never run.
- ``tool.execution.*``: a tool that Mistral runs. ``agent.handoff.*``: another agent goes on; text and calls go on as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..events import Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, word_of
from ._message import Texts

if TYPE_CHECKING:
    from .._framing import Frame

_ARGUMENTS = (b"arguments",)
_CONTENT = (b"content",)
_DONE = "conversation.response.done"
_ERROR = "conversation.response.error"


class MistralConversationsAdapter(Adapter):
    PROVIDER: ClassVar[str] = "mistral"
    CLOSES_CALLS: ClassVar[bool] = False
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"usage"})
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "type": True,
        "id": True,
        "conversation_id": True,
        "content": {"type": True, "text": True, "thinking": {"type": True, "text": True}},
        "output_index": True,
        "name": True,
        "tool_call_id": True,
        "arguments": True,
        "confirmation_status": True,
        "next_agent_id": True,
        "next_agent_name": True,
        "usage": True,
        "error": True,
        "code": True,
        "message": True,
    }

    __slots__ = ("_calls", "_places", "_run")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._calls: dict[str, ToolCall] = {}  # the client's, by tool_call_id
        self._places: dict[str, Any] = {}  # the output_index of each
        self._run: dict[str, ToolCall] = {}  # the provider's, by id

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        kind = payload.get("type")
        if type(kind) is not str:
            kind = frame.event
        handler = _HANDLERS.get(kind)
        if handler is None:
            self.record.unknown(frame, f"event {kind}")
        else:
            handler(self, payload)

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """Nothing: Mistral keeps the conversation (``extra["conversation_id"]``), the next request brings the new entries only."""
        return []

    # -- text ---------------------------------------------------------------------------------------------------------

    def _message(self, payload: dict[str, Any]) -> None:
        content = payload.get("content")
        if type(content) is str:
            self.record.plain_text(content, "text", 0, _CONTENT)
        for part in content if type(content) is list else (content,):
            if type(part) is not dict:
                continue
            if type(part.get("text")) is str:
                self.record.text(part["text"])
            thinking = part.get("thinking")
            for piece in thinking if type(thinking) is list else ():
                if type(piece) is dict and type(piece.get("text")) is str:
                    self.record.text(piece["text"], "reasoning")

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call(self, payload: dict[str, Any]) -> None:
        record = self.record
        name, place, status = blank(payload.get("name")), payload.get("output_index"), word_of(payload.get("confirmation_status"))
        id = blank(payload.get("tool_call_id")) or blank(payload.get("id"))
        asks = status is not None and status != "allowed"
        call = self._calls.get(id or "")
        if call is None:
            if id is None and name is None:
                record.mark("ignored_frames", detail="function.call.delta with neither id nor name")
                for each in self._calls.values():
                    record.doubt(each, "args_ambiguous", "a piece of argument text that names no call")
                return
            call = record.start(id=id, name=name, runs_on="provider" if asks else "client")
            self._calls[id or ""] = call
            self._places[id or ""] = place
        elif call.name is None and name is not None:
            record.mark_call(call, "name_late")
            record.named(call, name)
        elif name is not None and name != call.name:
            record.doubt(call, "args_ambiguous", f"goes on under the name {name!r}")
        elif id is None or place != self._places[id]:
            # Without an id the one name could stand for two calls; one id at two places of the output is two calls, or one sent twice.
            record.doubt(call, "args_ambiguous", f"id {id!r} stands at output_index {self._places[id or '']!r} and {place!r}")
        if asks and "needs_approval" not in call.marks:
            record.mark_call(call, "needs_approval", detail=str(status))
        self._arguments(call, payload.get("arguments"))

    def _arguments(self, call: ToolCall, arguments: Any) -> None:
        if type(arguments) is str:
            self.record.plain_arguments(call, arguments, _ARGUMENTS)
        else:
            self.record.piece(call, arguments)

    # -- tools that Mistral runs --------------------------------------------------------------------------------------

    def _running(self, payload: dict[str, Any]) -> ToolCall:
        id = blank(payload.get("id"))
        call = self._run.get(id or "")
        if call is None:
            call = self._run[id or ""] = self.record.start(id=id, name=blank(payload.get("name")), runs_on="provider")
        return call

    def _execution(self, payload: dict[str, Any]) -> None:
        self._arguments(self._running(payload), payload.get("arguments"))

    def _execution_done(self, payload: dict[str, Any]) -> None:
        self.record.end(self._running(payload))

    # -- the response -------------------------------------------------------------------------------------------------

    def _started(self, payload: dict[str, Any]) -> None:
        """The conversation's id outlives this turn, so it is no id of the response."""
        id = blank(payload.get("conversation_id"))
        if id is None:
            return
        known = self.record.extra.setdefault("conversation_id", id)
        if known != id:
            raise self.record.protocol_error(f"a second {payload.get('type')}: conversation {id}, while {known} is open")

    def _handoff(self, payload: dict[str, Any]) -> None:
        for member in ("next_agent_id", "next_agent_name"):
            value = blank(payload.get(member))
            if value is not None:
                self.record.extra[member] = value

    def _done(self, payload: dict[str, Any]) -> None:
        record = self.record
        record.set_usage(payload.get("usage"))
        for call in record.calls:
            record.end(call)
        wanted = any("needs_approval" not in call.marks for call in self._calls.values())
        record.finish_reason(_DONE, Outcome.TOOL_CALLS if wanted else Outcome.STOP)
        record.terminal = True

    def _error(self, payload: dict[str, Any]) -> None:
        """An error that lacks its code; any other is taken out before (see ``report_error``)."""
        message = payload.get("message")
        self.record.fail(dict(payload), type=_ERROR, code=payload.get("code"), message=message if type(message) is str else _ERROR)


_HANDLERS: Mapping[str, Callable[[MistralConversationsAdapter, dict[str, Any]], None]] = {
    "conversation.response.started": MistralConversationsAdapter._started,
    "message.output.delta": MistralConversationsAdapter._message,
    "function.call.delta": MistralConversationsAdapter._call,
    "tool.execution.started": MistralConversationsAdapter._execution,
    "tool.execution.delta": MistralConversationsAdapter._execution,
    "tool.execution.done": MistralConversationsAdapter._execution_done,
    "agent.handoff.started": MistralConversationsAdapter._handoff,
    "agent.handoff.done": MistralConversationsAdapter._handoff,
    _DONE: MistralConversationsAdapter._done,
    _ERROR: MistralConversationsAdapter._error,
}
#: What tells these streams from others.
EVENTS: frozenset[str] = frozenset(_HANDLERS)
