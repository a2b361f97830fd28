"""OpenAI Chat Completions: ``chat.completion.chunk`` frames, then ``[DONE]``.

- Reasoning goes out as ``reasoning_content``, what has to be sent back with a call as ``extra_content`` at its end.
- Calls that the provider runs have no place here: they are left out.
- A refusal is text in ``refusal`` before a plain ``stop``. Beside calls the word is ``content_filter``: on ``stop`` many clients
  run what they have.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..adapters.openai_chat import OpenAIChatAdapter
from ..events import Outcome
from ._shape import CallLine, Ending, Header, Shape, TextLine, compact, quoted

_MEMBERS = {"text": "content", "reasoning": "reasoning_content", "refusal": "refusal"}
_REFUSED = "The provider ended the turn with a refusal."


class ChatShape(Shape):
    PROVIDER = OpenAIChatAdapter.PROVIDER
    REASONS = OpenAIChatAdapter.REASONS
    ID_PREFIX = "chatcmpl-"
    CHOICES: ClassVar[int] = 128  # the most that the API makes; each is begun, so that one high index must not cost more
    PROVIDER_CALLS: ClassVar[bool] = False
    WORDS = {
        Outcome.LENGTH: "length",
        Outcome.FILTERED: "content_filter",
        Outcome.REFUSED: "stop",
        Outcome.PAUSED: "pause_turn",
        Outcome.CONTINUE: "requires_continuation",
        Outcome.CANCELLED: "cancelled",
        Outcome.UNKNOWN: "unknown",
    }

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self._choices = 0  # choices that were begun, 0 to this
        self._calls: dict[int, int] = {}  # calls of each choice
        self._refusals: set[int] = set()
        head = {"id": header.id, "object": "chat.completion.chunk", "created": header.created, "model": header.model}
        self._head = f"data: {compact(head)[:-1]},"

    def begin(self, out: list[str]) -> None:
        self._choice(out, 0)

    def _choice(self, out: list[str], choice: int) -> None:
        # The official SDK keeps choices in a list: 0 has to be there before 1.
        while self._choices <= choice:
            self._chunk(out, self._choices, {"role": "assistant", "content": None})
            self._choices += 1

    def _chunk(self, out: list[str], choice: int, delta: dict[str, Any], reason: str | None = None) -> None:
        head, tail = self._frame(choice, reason)
        out += (head, compact(delta), tail)

    def _frame(self, choice: int, reason: str | None = None) -> tuple[str, str]:
        tail = f',"logprobs":null,"finish_reason":{compact(reason)}}}]}}\n\n'
        return f'{self._head}"choices":[{{"index":{choice},"delta":', tail

    def call_start(self, out: list[str], line: CallLine) -> None:
        call = line.call
        self._choice(out, call.choice)
        line.index = self._calls.get(call.choice, 0)
        self._calls[call.choice] = line.index + 1
        kind, member = ("function", "arguments") if call.kind == "json" else ("custom", "input")
        about = {} if call.name is None else {"name": call.name}
        entry = {"index": line.index, "id": line.id, "type": kind, kind: {**about, member: ""}}
        self._chunk(out, call.choice, {"tool_calls": [entry]})
        head, tail = self._frame(call.choice)
        line.head = f'{head}{{"tool_calls":[{{"index":{line.index},"{kind}":{{"{member}":'
        line.tail = f"}}}}]}}{tail}"

    def arguments(self, out: list[str], line: CallLine, text: str) -> None:
        # Readers that put up with growing snapshots or whole repetitions look for them where a fragment starts like a value
        # and is as long as all that came before.
        if len(text) >= line.sent and line.sent and text[0] in "{[":
            line.restarts = True
        out.append(f"{line.head}{quoted(text)}{line.tail}")

    def text_start(self, out: list[str], line: TextLine) -> None:
        self._choice(out, line.choice)
        if line.channel == "refusal":
            self._refusals.add(line.choice)
        if not line.head:
            head, tail = self._frame(line.choice)
            line.head = f'{head}{{"{_MEMBERS[line.channel]}":'
            line.tail = f"}}{tail}"

    def text(self, out: list[str], line: TextLine, text: str) -> None:
        out.append(f"{line.head}{quoted(text)}{line.tail}")

    def stop(self, out: list[str], ending: Ending, calls: list[CallLine]) -> None:
        for line in calls:
            if line.call.extra:
                kind, member = ("function", "arguments") if line.call.kind == "json" else ("custom", "input")
                entry = {"index": line.index, kind: {member: ""}, "extra_content": line.call.extra}
                self._chunk(out, line.call.choice, {"tool_calls": [entry]})
        for choice in range(self._choices):
            word = ending.word
            if not word:
                word = "tool_calls" if ending.for_tools and (choice in self._calls or not self._calls) else "stop"
            elif ending.outcome is Outcome.REFUSED:
                if self._calls:
                    word = "content_filter"
                if not self._refusals:
                    self._chunk(out, choice, {"refusal": _REFUSED})
            self._chunk(out, choice, {}, word)
        usage: Any = ending.raw_usage
        if usage is None and ending.usage is not None:
            count = ending.usage
            usage = {
                "prompt_tokens": count.input,
                "completion_tokens": count.output,
                "total_tokens": count.input + count.output,
                "prompt_tokens_details": {"cached_tokens": count.cached},
                "completion_tokens_details": {"reasoning_tokens": count.reasoning},
            }
        if usage is not None:
            out.append(f'{self._head}"choices":[],"usage":{compact(usage)}}}\n\n')
        out.append("data: [DONE]\n\n")

    def fail(self, out: list[str], type: str, code: str | None, message: str) -> None:
        out.append(f"data: {compact({'error': {'message': message, 'type': type, 'param': None, 'code': code}})}\n\n")
