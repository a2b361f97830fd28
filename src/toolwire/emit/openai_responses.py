"""OpenAI Responses: ``response.created``, output items with their deltas, and one of ``response.completed``, ``.incomplete`` and
``.failed``.

- Each stretch of text, reasoning or refusal is an item of its own; it ends where another item starts.
- Calls of the client are ``function_call`` or ``custom_tool_call``; calls that the provider runs are ``mcp_call``, with free text
  ``code_interpreter_call`` under the tool's own name.
- A call's item ends with the turn, not with the source's block: clients run a call as soon as its item is done.
- The end repeats all items, as readers of whole responses expect it.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from ..adapters.openai_responses import ResponsesAdapter
from ..events import Outcome
from ._shape import CallLine, Ending, Header, Shape, TextLine, compact, quoted


class _Call(NamedTuple):
    """How one kind of call is written."""

    item: str
    events: str  # the start of its events' names
    member: str


_FUNCTION = _Call("function_call", "response.function_call_arguments", "arguments")
_CUSTOM = _Call("custom_tool_call", "response.custom_tool_call_input", "input")
_MCP = _Call("mcp_call", "response.mcp_call_arguments", "arguments")
_CODE = _Call("code_interpreter_call", "response.code_interpreter_call_code", "code")
_APPROVAL = _Call("mcp_approval_request", "response.mcp_call_arguments", "arguments")


def _kind(line: CallLine) -> _Call:
    call = line.call
    if line.client:
        return _FUNCTION if call.kind == "json" else _CUSTOM
    if "needs_approval" in call.marks:
        return _APPROVAL
    return _MCP if call.kind == "json" else _CODE


class _Text(NamedTuple):
    """How one channel is written: the item, its part, and the names of the events."""

    item: dict[str, Any]
    list: str  # the member that holds the parts
    part: dict[str, Any]
    member: str  # of the part and of the event that has the whole text
    number: str
    events: str
    part_events: str
    more: str  # what else belongs to a delta


_TEXTS = {
    "text": _Text(
        {"type": "message", "role": "assistant"},
        "content",
        {"type": "output_text", "annotations": []},
        "text",
        "content_index",
        "response.output_text",
        "response.content_part",
        ',"logprobs":[]',
    ),
    "refusal": _Text(
        {"type": "message", "role": "assistant"}, "content", {"type": "refusal"}, "refusal", "content_index", "response.refusal", "response.content_part", ""
    ),
    "reasoning": _Text(
        {"type": "reasoning"},
        "summary",
        {"type": "summary_text"},
        "text",
        "summary_index",
        "response.reasoning_summary_text",
        "response.reasoning_summary_part",
        "",
    ),
}
_REFUSED = "The provider ended the turn with a refusal."


class ResponsesShape(Shape):
    PROVIDER = ResponsesAdapter.PROVIDER
    REASONS = ResponsesAdapter.REASONS
    ID_PREFIX = "resp_"
    STARTS_BEFORE_ERROR: ClassVar[bool] = True
    TOOL_REASON: ClassVar[bool] = False
    WORDS = {
        Outcome.LENGTH: "max_output_tokens",
        Outcome.FILTERED: "content_filter",
        Outcome.REFUSED: "",
        Outcome.PAUSED: "pause_turn",
        Outcome.CONTINUE: "requires_continuation",
        Outcome.CANCELLED: "cancelled",
        Outcome.UNKNOWN: "unknown",
    }

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self._number = 0  # of the next event
        self._output: list[dict[str, Any]] = []  # items as they ended, or as they started
        self._text: tuple[TextLine, int, str] | None = None  # the open one, its place and its item's id
        self._refusals = False
        # Items are sent back in later requests, next to those of other responses: their ids have to differ.
        self._suffix = header.id.removeprefix(self.ID_PREFIX)

    def _event(self, out: list[str], type_: str, members: dict[str, Any]) -> None:
        out.append(f"event: {type_}\ndata: {compact({'type': type_, 'sequence_number': self._number, **members})}\n\n")
        self._number += 1

    def _response(self, status: str, **members: Any) -> dict[str, Any]:
        return {
            "response": {
                "id": self.header.id,
                "object": "response",
                "created_at": self.header.created,
                "status": status,
                "error": None,
                "incomplete_details": None,
                "model": self.header.model,
                "output": [],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "usage": None,
                **members,
            }
        }

    def begin(self, out: list[str]) -> None:
        self._event(out, "response.created", self._response("in_progress"))

    def _added(self, out: list[str], item: dict[str, Any]) -> int:
        index = len(self._output)
        self._output.append(item)
        self._event(out, "response.output_item.added", {"output_index": index, "item": item})
        return index

    def _done(self, out: list[str], index: int, item: dict[str, Any]) -> None:
        self._output[index] = item
        self._event(out, "response.output_item.done", {"output_index": index, "item": item})

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._suffix}_{len(self._output)}"

    # -- calls --------------------------------------------------------------------------------------------------------

    def call_start(self, out: list[str], line: CallLine) -> None:
        self._close_text(out, "completed")
        kind = _kind(line)
        id = self._id("fc" if kind is _FUNCTION else "ctc") if line.client else line.id
        item = {"id": id, "type": kind.item, "status": "in_progress", **({"call_id": line.id} if line.client else {})}
        if kind is _MCP or kind is _APPROVAL:
            item["server_label"] = line.call.extra.get("server_label") or line.call.extra.get("server_name") or ""
        item |= {"name": line.call.name or "", kind.member: ""}
        line.index = self._added(out, item)
        line.head = f'event: {kind.events}.delta\ndata: {{"type":"{kind.events}.delta","sequence_number":'
        line.tail = f',"item_id":{quoted(id)},"output_index":{line.index},"delta":'

    def arguments(self, out: list[str], line: CallLine, text: str) -> None:
        line.pieces.append(text)
        out.append(f"{line.head}{self._number}{line.tail}{quoted(text)}}}\n\n")
        self._number += 1

    def _end_call(self, out: list[str], line: CallLine, status: str, *, same: bool) -> None:
        kind = _kind(line)
        item = self._output[line.index]
        text = "".join(line.pieces)
        if status == "completed":
            self._event(out, f"{kind.events}.done", {"item_id": item["id"], "output_index": line.index, kind.member: text})
        extra = line.call.extra if same else {}  # other providers' members may have the same names
        self._done(out, line.index, {**extra, **item, "status": status, kind.member: text})

    # -- text ---------------------------------------------------------------------------------------------------------

    def text_start(self, out: list[str], line: TextLine) -> None:
        self._close_text(out, "completed")
        about = _TEXTS[line.channel]
        self._refusals = self._refusals or line.channel == "refusal"
        id = self._id("rs" if line.channel == "reasoning" else "msg")
        index = self._added(out, {"id": id, "status": "in_progress", **about.item, about.list: []})
        where = {"item_id": id, "output_index": index, about.number: 0}
        self._event(out, f"{about.part_events}.added", {**where, "part": {**about.part, about.member: ""}})
        self._text = line, index, id
        line.pieces = []
        line.head = f'event: {about.events}.delta\ndata: {{"type":"{about.events}.delta","sequence_number":'
        line.tail = f',{compact(where)[1:-1]}{about.more},"delta":'

    def text(self, out: list[str], line: TextLine, text: str) -> None:
        line.pieces.append(text)
        out.append(f"{line.head}{self._number}{line.tail}{quoted(text)}}}\n\n")
        self._number += 1

    def _close_text(self, out: list[str], status: str) -> None:
        if self._text is None:
            return
        line, index, id = self._text
        self._text = None
        about = _TEXTS[line.channel]
        where = {"item_id": id, "output_index": index, about.number: 0}
        text = "".join(line.pieces)
        part = {**about.part, about.member: text}
        whole: dict[str, Any] = {"logprobs": []} if about.more else {}
        self._event(out, f"{about.events}.done", {**where, **whole, about.member: text})
        self._event(out, f"{about.part_events}.done", {**where, "part": part})
        self._done(out, index, {**self._output[index], "status": status, about.list: [part]})

    # -- the end ------------------------------------------------------------------------------------------------------

    def stop(self, out: list[str], ending: Ending, calls: list[CallLine]) -> None:
        word = ending.word
        if ending.outcome is Outcome.REFUSED:
            if not self._refusals:
                line = TextLine("refusal", 0)
                self.text_start(out, line)
                self.text(out, line, _REFUSED)
            # A response that completed lets its calls run: beside calls a refusal is told as a filter.
            word = "content_filter" if any(line.client for line in calls) else ""
        status = "incomplete" if word else "completed"
        self._close_text(out, status)
        for call in calls:
            self._end_call(out, call, status, same=ending.same)
        usage: Any = ending.raw_usage
        if usage is None and ending.usage is not None:
            count = ending.usage
            usage = {
                "input_tokens": count.input,
                "input_tokens_details": {"cached_tokens": count.cached},
                "output_tokens": count.output,
                "output_tokens_details": {"reasoning_tokens": count.reasoning},
                "total_tokens": count.input + count.output,
            }
        details = {"reason": word} if word else None
        self._event(out, f"response.{status}", self._response(status, output=self._output, usage=usage, incomplete_details=details))

    def fail(self, out: list[str], type: str, code: str | None, message: str) -> None:
        error = {"code": code or type, "message": message, "type": type}
        self._event(out, "response.failed", self._response("failed", error=error))
