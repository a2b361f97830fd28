"""Ollama's own chat protocol (``POST /api/chat``).

- Framing: newline-delimited JSON, one object a line.
- Terminal marker: a line with ``done: true`` and a ``done_reason``. Without a reason (missing or ""), the model's runner went
  away early: the turn is cut.
- A call arrives whole, its arguments as an object, in any line before the last. Calls are told apart by their order; older
  servers give no ids.
- There is no tool reason: tools run on ``stop``.
- An error in mid-stream is a line ``{"error": ...}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..events import Outcome
from ._base import Adapter, TurnRecord, blank, compact_json, outcome_of, same_json, word_of
from ._message import Texts, arguments_of

if TYPE_CHECKING:
    from .._framing import Frame
    from ..events import ToolCall

_TEXT = (b"message", b"content")
_THINKING = (b"message", b"thinking")
_FIGURES = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


class OllamaAdapter(Adapter):
    PROVIDER: ClassVar[str] = "ollama"
    FRAMING: ClassVar[str] = "ndjson"
    RUNS_ON_STOP: ClassVar[bool] = True
    TOOL_REASON: ClassVar[bool] = False
    CLOSES_CALLS: ClassVar[bool] = False
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"done"})
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "message": {
            "content": True,
            "thinking": True,
            "tool_calls": {"id": True, "function": {"name": True, "arguments": True}},
        },
        "done": True,
        "done_reason": True,
        "error": True,
        "code": True,
        **dict.fromkeys(_FIGURES, True),
    }
    REASONS: ClassVar[Mapping[str, Outcome]] = {"stop": Outcome.STOP, "length": Outcome.LENGTH}

    __slots__ = ("_ids",)

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._ids: dict[str, ToolCall] = {}

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        record = self.record
        message, done = payload.get("message"), payload.get("done")
        if type(message) is dict:
            self._message(message)
        elif done is None:
            record.unknown(frame, "a line with neither a message nor done")
            return
        if done is True:
            self._end(payload)

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The assistant's message as ``/api/chat`` takes it: arguments as objects, no ids that this library made up."""
        message: dict[str, Any] = {"role": "assistant", "content": texts.get((choice, "text"), "")}
        if thinking := texts.get((choice, "reasoning")):
            message["thinking"] = thinking
        calls = []
        for call in self.record.calls:
            id = {} if call.id_is_synthetic else {"id": call.id}
            calls.append({**id, "function": {"name": call.name, "arguments": arguments_of(call)}})
        if calls:
            message["tool_calls"] = calls
        return [message] if len(message) > 2 or message["content"] else []

    def _message(self, message: dict[str, Any]) -> None:
        record = self.record
        thinking, content, calls = message.get("thinking"), message.get("content"), message.get("tool_calls")
        if type(thinking) is str and thinking:
            record.plain_text(thinking, "reasoning", 0, _THINKING)
        if type(content) is str and content:
            record.plain_text(content, "text", 0, _TEXT)
        if type(calls) is list:
            for entry in calls:
                if type(entry) is dict:
                    self._call(entry)
        elif type(calls) is dict:
            self._call(calls)

    def _call(self, entry: dict[str, Any]) -> None:
        record = self.record
        function = entry.get("function")
        if type(function) is not dict:
            function = {}
        id, name, arguments = blank(entry.get("id")), blank(function.get("name")), function.get("arguments")
        known = None if id is None else self._ids.get(id)
        if known is not None and known.name == name and _same(known, arguments):
            # The line was sent again. Without an id nothing tells that from a second call.
            record.mark_call(known, "call_repeated")
            return
        call = record.start(id=None if known is not None else id, name=name)
        if known is not None:
            record.mark_call(call, "id_repeated", detail=str(id))
        elif id is not None:
            self._ids[id] = call
        if type(arguments) is str:
            record.arguments(call, arguments)
        elif arguments is not None:
            record.whole_object(call, arguments)
        record.end(call)

    def _end(self, payload: dict[str, Any]) -> None:
        record = self.record
        record.set_usage({key: payload[key] for key in _FIGURES if payload.get(key) is not None})
        word = word_of(payload.get("done_reason"))
        if word is None:
            record.mark("no_finish_reason", detail="done without a done_reason")
            return
        record.finish_reason(word, outcome_of(word, self.REASONS))
        record.terminal = True


def _same(call: ToolCall, arguments: Any) -> bool:
    text = arguments if type(arguments) is str else "" if arguments is None else compact_json(arguments)
    return same_json(call.text or "{}", text or "{}")
