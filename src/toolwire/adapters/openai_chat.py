"""OpenAI Chat Completions (``chat.completion.chunk``), and the many servers that speak its shape.

Source: OpenAI's ``ChatCompletionChunk``; the habits of other servers are in ``_correlate``.

- Framing: SSE, unnamed events, last message ``[DONE]``.
- Terminal marker: ``[DONE]``, together with a finish reason for every choice. Without ``[DONE]`` a clean end of the body
  will do (marked ``no_done_marker``; the strict profile refuses).
- A call's block is never closed on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..events import Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, is_index, outcome_of, word_of
from ._correlate import Correlator
from ._message import Texts

if TYPE_CHECKING:
    from .._framing import Frame

_FUNCTION = {"name": True, "arguments": True}
_ARGUMENTS = (b"choices", 0, b"delta", b"tool_calls", 0, b"function", b"arguments")
_CONTENT = (b"choices", 0, b"delta", b"content")
_LEGACY = -1  # the place of a ``function_call``: no index that a server sends
_DELTA: Mapping[str, Any] = {
    "content": True,
    "reasoning_content": True,
    "reasoning": True,
    "refusal": True,
    "tool_calls": {
        "index": True,
        "id": True,
        "type": True,
        "function": _FUNCTION,
        "custom": {"name": True, "input": True},
        "extra_content": True,
    },
    "function_call": _FUNCTION,
}


class OpenAIChatAdapter(Adapter):
    PROVIDER: ClassVar[str] = "openai-chat"
    RUNS_ON_STOP: ClassVar[bool] = True
    CLOSES_CALLS: ClassVar[bool] = False
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"choices", "usage"})
    ERROR_BESIDES: ClassVar[frozenset[str]] = frozenset({"choices"})
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "id": True,
        "object": True,
        "type": True,
        "choices": {"index": True, "delta": _DELTA, "message": _DELTA, "finish_reason": True},
        "usage": True,
        "error": True,
        "code": True,
        "message": True,
        "x_groq": {"error": True, "usage": True},
    }
    REASONS: ClassVar[Mapping[str, Outcome]] = {
        "stop": Outcome.STOP,
        "length": Outcome.LENGTH,
        "tool_calls": Outcome.TOOL_CALLS,
        "function_call": Outcome.TOOL_CALLS,
        "content_filter": Outcome.FILTERED,
    }

    __slots__ = ("_choices", "_finished", "_thinks")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._choices: dict[int, Correlator] = {}
        self._finished: dict[int, str] = {}
        self._thinks: str | None = None  # the member that reasoning came in

    # -- payloads -----------------------------------------------------------------------------------------------------

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        record = self.record
        if record.response_id is None:
            record.response_id = blank(payload.get("id"))
        choices = payload.get("choices")
        if type(choices) is list:
            for choice in choices:
                if type(choice) is dict:
                    self._choice(choice)
        usage = payload.get("usage")
        if usage:
            record.set_usage(usage)
        groq = payload.get("x_groq")
        if groq and type(groq) is dict:
            if groq.get("error"):
                record.fail(groq["error"])
            record.set_usage(groq.get("usage"))

    def _choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index")
        number = index if is_index(index) else 0
        correlator = self._choices.get(number)
        if correlator is None:
            correlator = self._choices[number] = Correlator(self.record, number)
        delta = choice.get("delta")
        if type(delta) is dict:
            self._delta(delta, number, correlator)
        elif type(message := choice.get("message")) is dict:
            # A whole completion, also inside a stream: the message is one delta with everything in it. Beside a delta it
            # repeats it.
            self.record.mark("whole_completion")
            self._delta(message, number, correlator)
        reason = word_of(choice.get("finish_reason"))
        if reason is not None:
            self._finished.setdefault(number, reason)
            self.record.finish_reason(reason, outcome_of(reason, self.REASONS), number)

    def _delta(self, delta: dict[str, Any], number: int, correlator: Correlator) -> None:
        record = self.record
        before = record.progress
        calls = delta.get("tool_calls")
        if type(calls) is not list:
            calls = [calls] if calls else []  # one server sends its only entry without the list
        if len(delta) == 1 and calls and not self._finished:  # what most deltas are
            for entry in calls:
                self._entry(entry, correlator)
            return
        content = delta.get("content")
        if content:
            self._content(content, number)
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if type(reasoning) is str:
            self._thinks = "reasoning_content" if delta.get("reasoning_content") else "reasoning"
            record.text(reasoning, "reasoning", number)
        refusal = delta.get("refusal")
        if type(refusal) is str:
            record.text(refusal, "refusal", number)
        for entry in calls:
            self._entry(entry, correlator)
        legacy = delta.get("function_call")
        if type(legacy) is dict:
            # One call a choice, without id and index: the choice is its key.
            correlator.fragment(index=_LEGACY, id=None, name=legacy.get("name"), arguments=legacy.get("arguments"))
        if number in self._finished and record.progress != before:
            record.mark("delta_after_finish")

    def _content(self, content: Any, number: int) -> None:
        if type(content) is str:
            self.record.plain_text(content, "text", number, _CONTENT)
        elif type(content) is list:
            # Parts, as some servers send them: text, and reasoning as parts of its own.
            for part in content:
                if type(part) is not dict:
                    continue
                if type(part.get("text")) is str:
                    self.record.text(part["text"], "text", number)
                thinking = part.get("thinking")
                for piece in thinking if type(thinking) is list else ():
                    if type(piece) is dict and type(piece.get("text")) is str:
                        self._thinks = "content"
                        self.record.text(piece["text"], "reasoning", number)

    def _entry(self, entry: Any, correlator: Correlator) -> None:
        if type(entry) is not dict:
            if entry:  # it could be a piece of any call
                correlator.fragment(index=None, id=None, name=None, arguments=[entry])
            return
        function = entry.get("function")
        extra = entry.get("extra_content")
        if type(function) is dict:
            if len(entry) == 2 and len(function) == 1 and correlator.plain(entry.get("index"), function.get("arguments"), _ARGUMENTS):
                return
            correlator.fragment(
                index=entry.get("index"),
                id=entry.get("id"),
                name=function.get("name"),
                arguments=function.get("arguments"),
                extra=extra if type(extra) is dict else None,
            )
            return
        custom = entry.get("custom")
        if type(custom) is dict:
            correlator.fragment(index=entry.get("index"), id=entry.get("id"), name=custom.get("name"), arguments=custom.get("input"), kind="text")
        elif function or custom:
            correlator.fragment(index=entry.get("index"), id=entry.get("id"), name=None, arguments=[function or custom])
        elif type(extra) is dict:
            correlator.fragment(index=entry.get("index"), id=entry.get("id"), name=None, arguments=None, extra=extra)

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The assistant's message as Chat Completions takes it. Reasoning goes back in the member that it came in."""
        message: dict[str, Any] = {"role": "assistant", "content": texts.get((choice, "text")) or None}
        if self._thinks is not None and (reasoning := texts.get((choice, "reasoning"))):
            if self._thinks == "content":
                text = [{"type": "text", "text": message["content"]}] if message["content"] else []
                message["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]}, *text]
            else:
                message[self._thinks] = reasoning
        if refusal := texts.get((choice, "refusal")):
            message["refusal"] = refusal
        slots = self._choices[choice].slots if choice in self._choices else []
        if len(slots) == 1 and slots[0].index == _LEGACY:
            message["function_call"] = {"name": slots[0].call.name, "arguments": slots[0].call.text}
        elif slots:
            message["tool_calls"] = [_tool_call(slot.call) for slot in slots]
        return [message] if len(message) > 2 or message["content"] else []

    # -- the end ------------------------------------------------------------------------------------------------------

    def done_marker(self) -> None:
        self.record.terminal = True

    def at_end(self, clean: bool) -> bool:
        record = self.record
        for correlator in self._choices.values():
            correlator.settle()
        for call in record.calls:
            if call.kind == "text":
                call.closed = True  # nothing on the wire closes it; the end of the turn does
        finished = bool(self._choices) and all(number in self._finished for number in self._choices)
        if record.terminal:
            if finished:
                return True
            if record.profile == "tolerant" and record.calls and all(call.complete for call in record.calls):
                record.mark("no_finish_reason")
                # No word of the provider's stands against a refusal, so that it counts, as it does beside a plain stop.
                refused = any(channel == "refusal" for _, channel in record.channels)
                record.finish_reason("", Outcome.REFUSED if refused else Outcome.TOOL_CALLS)
                return True
            return False
        if not finished or not clean or record.profile == "strict":
            return False
        record.mark("no_done_marker")
        return True


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """One entry of ``tool_calls``, with its text as it came."""
    if call.kind == "text":
        entry: dict[str, Any] = {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.text}}
    else:
        entry = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text or "{}"}}
    return {**entry, "extra_content": call.extra} if call.extra else entry
