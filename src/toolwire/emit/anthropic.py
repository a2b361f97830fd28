"""Anthropic Messages: ``message_start``, content blocks, ``message_delta``, ``message_stop``.

- A block ends where another one starts. Only that of a call that the source has not closed, or that has no text yet, stays open,
  to the end of the turn if need be: more of its arguments may come. So blocks of parallel calls out of Chat overlap.
- Refusal text is text. A call with free text (a custom tool) becomes one with the object ``{"input": text}``.
- A filtered turn ends with ``refusal``: the protocol has no other word for it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..adapters.anthropic import AnthropicAdapter
from ..events import Outcome
from ._shape import CallLine, Ending, Header, Shape, TextLine, compact, quoted


class AnthropicShape(Shape):
    PROVIDER = AnthropicAdapter.PROVIDER
    REASONS = AnthropicAdapter.REASONS
    ID_PREFIX = "msg_"
    RUNS_ON_STOP: ClassVar[bool] = False
    FALLBACK: ClassVar[bool] = True
    EMPTY_IS_OBJECT: ClassVar[bool] = True
    WORDS = {
        Outcome.LENGTH: "max_tokens",
        Outcome.FILTERED: "refusal",
        Outcome.REFUSED: "refusal",
        Outcome.PAUSED: "pause_turn",
        Outcome.CONTINUE: "requires_continuation",
        Outcome.CANCELLED: "cancelled",
        Outcome.UNKNOWN: "unknown",
    }

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self._blocks = 0
        self._open_text: int | None = None
        self._before: list[CallLine] = []  # calls since the last fallback
        self._ending: list[CallLine] = []  # calls with text that the source closed, whose blocks end with the next start

    def begin(self, out: list[str]) -> None:
        message: dict[str, Any] = {
            "id": self.header.id,
            "type": "message",
            "role": "assistant",
            "model": self.header.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        _event(out, {"type": "message_start", "message": message})

    def _block(self, out: list[str], block: dict[str, Any]) -> int:
        self._close_text(out)
        for line in self._ending:
            self._end_call(out, line)
        self._ending.clear()
        index = self._blocks
        self._blocks += 1
        _event(out, {"type": "content_block_start", "index": index, "content_block": block})
        return index

    def _close_text(self, out: list[str]) -> None:
        if self._open_text is not None:
            _event(out, {"type": "content_block_stop", "index": self._open_text})
            self._open_text = None

    def call_start(self, out: list[str], line: CallLine) -> None:
        call = line.call
        if "superseded" not in call.doubts:
            self._fallback(out)
        self._before.append(line)
        type_ = "tool_use" if line.client else "server_tool_use"
        line.index = self._block(out, {"type": type_, "id": line.id, "name": call.name or "", "input": {}})
        line.head = _delta(line.index, "input_json_delta", "partial_json")
        line.tail = "}}\n\n"
        if call.kind == "text":
            out += (line.head, quoted('{"input":"'), line.tail)

    def _fallback(self, out: list[str]) -> None:
        """Another model took over after calls that are superseded."""
        # The first one tells: a fallback supersedes all calls before it.
        if self._before and "superseded" in self._before[0].call.doubts:
            for line in self._before:
                self._end_call(out, line, whole=line.closed)
            index = self._block(out, {"type": "fallback"})
            _event(out, {"type": "content_block_stop", "index": index})
            self._before = []

    def arguments(self, out: list[str], line: CallLine, text: str) -> None:
        if line.closed and not line.sent:
            self._ending.append(line)
        written = quoted(text)
        out += (line.head, written if line.call.kind == "json" else quoted(written[1:-1]), line.tail)

    def call_end(self, out: list[str], line: CallLine) -> None:
        # Not yet: the end of a Responses turn may add to the text.
        line.closed = True
        if line.sent:
            self._ending.append(line)

    def _end_call(self, out: list[str], line: CallLine, *, whole: bool = True) -> None:
        if line.ended:
            return
        line.ended = True
        # The object around free text that was cut stays open.
        if line.call.kind == "text" and whole:
            out += (line.head, quoted('"}'), line.tail)
        _event(out, {"type": "content_block_stop", "index": line.index})

    def text_start(self, out: list[str], line: TextLine) -> None:
        thinking = line.channel == "reasoning"
        if thinking:
            self._open_text = self._block(out, {"type": "thinking", "thinking": "", "signature": ""})
            line.head = _delta(self._open_text, "thinking_delta", "thinking")
        else:
            self._open_text = self._block(out, {"type": "text", "text": ""})
            line.head = _delta(self._open_text, "text_delta", "text")
        line.tail = "}}\n\n"

    def text(self, out: list[str], line: TextLine, text: str) -> None:
        out.append(f"{line.head}{quoted(text)}{line.tail}")

    def stop(self, out: list[str], ending: Ending, calls: list[CallLine]) -> None:
        self._close_text(out)
        self._fallback(out)
        for line in calls:
            self._end_call(out, line, whole=not ending.word or line.closed)
        word = ending.word or ("tool_use" if ending.for_tools else "end_turn")
        usage: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0}
        if ending.raw_usage is not None:
            usage |= ending.raw_usage
        elif ending.usage is not None:
            count = ending.usage
            usage = {
                "input_tokens": max(count.input - count.cached - count.written, 0),
                "output_tokens": count.output,
                "cache_read_input_tokens": count.cached,
                "cache_creation_input_tokens": count.written,
            }
        _event(out, {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": None}, "usage": usage})
        _event(out, {"type": "message_stop"})

    def fail(self, out: list[str], type: str, code: str | None, message: str) -> None:
        error = {"type": type, "message": message} | ({} if code is None else {"code": code})
        _event(out, {"type": "error", "error": error})


def _event(out: list[str], payload: dict[str, Any]) -> None:
    out.append(f"event: {payload['type']}\ndata: {compact(payload)}\n\n")


def _delta(index: int, type_: str, member: str) -> str:
    return f'event: content_block_delta\ndata: {{"type":"content_block_delta","index":{index},"delta":{{"type":"{type_}","{member}":'
