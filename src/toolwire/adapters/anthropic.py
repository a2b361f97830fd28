"""Anthropic Messages (``POST /v1/messages``, ``stream: true``), and servers that speak its shape.

- Framing: SSE, every event named; the name repeats ``data.type``, which counts. Proxies drop names, so a name counts only where
  the payload has no type.
- Terminal marker: ``message_stop`` after a ``stop_reason``. Without a reason it ends nothing: the turn is cut.
- A call is a content block. Its ``content_block_stop`` comes for a block that was cut as well: never a permission.
- Argument text is what the deltas add up to. ``input`` in the start block is a placeholder when it is empty, and the whole
  argument when it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import UsageError
from ..events import Channel, Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, compact_json, no_arguments, outcome_of, same_json, word_of
from ._message import Part, Parts, Reader, Texts, arguments_of

if TYPE_CHECKING:
    from .._framing import Frame

#: What a call's block has besides id, name and input, and what has to be sent back with it.
_SENT_BACK = ("caller", "toolset_name", "server_name")

_BLOCK: Mapping[str, Any] = {
    "type": True,
    "id": True,
    "name": True,
    "input": True,
    "text": True,
    "thinking": True,
    "signature": True,
    "citations": True,
    **dict.fromkeys(_SENT_BACK, True),
}

#: Block types that hold no call and no text that streams. Their results stand whole in the start block.
_QUIET_BLOCKS = frozenset(
    {
        "redacted_thinking",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_result",
        "advisor_tool_result",
        "container_upload",
        "mcp_tool_listing",
        "compaction",
        "fallback",
    }
)
_ARGUMENTS = (b"delta", b"partial_json")
_TEXT = (b"delta", b"text")
_THINKING = (b"delta", b"thinking")
_TEXT_BLOCKS = frozenset({"text", "thinking"})
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_QUIET_DELTAS = frozenset({"signature_delta", "citations_delta", "compaction_delta"})
#: What quiet deltas add to their block.
_ADDED = ("signature", "citation", "content", "encrypted_content")


class _Block:
    """One content block: its type and, for a call, the call."""

    __slots__ = ("call", "given", "id", "live", "open", "part", "type")

    def __init__(self, type: str, id: str | None, call: ToolCall | None, part: Part) -> None:
        self.part = part
        self.type = type
        self.id = id
        self.call = call
        self.open = True
        self.given = False  # the start block held the whole input
        self.live = call  # the call, as long as its deltas are nothing out of the ordinary


class AnthropicAdapter(Adapter):
    PROVIDER: ClassVar[str] = "anthropic"
    CLOSES_CALLS: ClassVar[bool] = True
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"type"})
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "type": True,
        "index": True,
        "delta": {"type": True, "text": True, "partial_json": True, "thinking": True, "stop_reason": True, **dict.fromkeys(_ADDED, True)},
        "content_block": _BLOCK,
        # An object in message_start, a sentence in an error.
        "message": {"id": True, "content": _BLOCK, "stop_reason": True, "usage": True},
        "usage": True,
        "error": True,
        "code": True,
        # A whole message, where one stands in place of a stream.
        "id": True,
        "content": _BLOCK,
        "stop_reason": True,
    }
    REASONS: ClassVar[Mapping[str, Outcome]] = {
        "tool_use": Outcome.TOOL_CALLS,
        "end_turn": Outcome.STOP,
        "stop_sequence": Outcome.STOP,
        "max_tokens": Outcome.LENGTH,
        "refusal": Outcome.REFUSED,
    }

    __slots__ = ("_blocks", "_by_id", "_finished", "_message_id", "_mixed", "_open", "_parts", "_spare", "_started", "_superseded")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._blocks: dict[int, _Block] = {}
        self._by_id: dict[str, _Block] = {}
        self._open: dict[int, _Block] = {}  # blocks that have not stopped
        self._parts = Parts(record)
        self._mixed = False  # text went to a block while another of its kind had begun after it
        self._spare = 0
        self._superseded = 0  # calls before the last fallback block
        self._started = False
        self._message_id: str | None = None
        self._finished = False  # a stop_reason came

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        kind = payload.get("type")
        if type(kind) is not str:
            kind = frame.event
            if kind == "message":
                # Neither a type nor a name: metrics objects that a transport mixes in.
                self.record.mark("ignored_frames", detail="a payload without type")
                return
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, payload, frame)
        else:
            self.record.unknown(frame, f"event {kind}")

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _block_delta(self, payload: dict[str, Any], frame: Frame) -> None:
        index = payload.get("index")
        block = self._blocks.get(index) if type(index) is int else self._only_open_block()
        if block is None:
            raise self.record.protocol_error(f"content_block_delta for block {index!r}, which never started")
        delta = payload.get("delta")
        kind = delta.get("type") if type(delta) is dict else None
        if type(delta) is not dict or type(kind) is not str:
            self.record.unreadable(block.call, delta)
            self.record.unknown(frame, "a delta without a type")
            return
        # The type of the block decides, not that of the delta: servers put input_json_delta into result blocks.
        if kind == "input_json_delta":
            text = delta.get("partial_json")
            if text is None or text == "":
                return
            call = block.live
            if call is not None and type(text) is str and not self._finished:
                self.record.plain_arguments(call, text, _ARGUMENTS)
                return
            call = block.call
            if call is None:
                self.record.mark("misplaced_delta", detail=f"{kind} in a {block.type} block")
                return
            if block.given:
                self.record.doubt(call, "args_conflict", "the start block held the whole input, and deltas came as well")
                return
            if not block.open:
                self.record.doubt(call, "args_ambiguous", "argument text came after the end of its block")
            self.record.piece(call, text)
        elif kind == "text_delta" or kind == "thinking_delta":
            text = delta.get("text" if kind == "text_delta" else "thinking")
            if type(text) is not str or not text:
                return
            if block.type not in _TEXT_BLOCKS:
                self.record.mark("misplaced_delta", detail=f"{kind} in a {block.type} block")
                return
            if not block.open:
                self.record.mark("delta_after_stop", detail=f"block {index}")
            self._mixed = self._mixed or self._parts.latest("text" if kind == "text_delta" else "reasoning") is not block.part
            if kind == "text_delta":
                self.record.plain_text(text, "text", 0, _TEXT)
            else:
                self.record.plain_text(text, "reasoning", 0, _THINKING)
        elif kind in _QUIET_DELTAS:
            _add(block.part.members, delta)
            return
        else:
            self.record.unknown(frame, f"delta {kind}")
            return
        if self._finished:
            self.record.mark("delta_after_finish")

    def _block_start(self, payload: dict[str, Any], frame: Frame) -> None:
        content = payload.get("content_block")
        if type(content) is not dict:
            self.record.unknown(frame, "a content_block_start without a block")
            return
        index = payload.get("index")
        if type(index) is not int:
            self.record.mark("index_missing")
            self._spare -= 1  # no index that a server sends
            index = self._spare
        kind = blank(content.get("type")) or ""
        id = blank(content.get("id"))
        known = self._blocks.get(index)
        if known is not None:
            if known.type == kind and known.id == id and (known.open or id is not None):
                self._repeated(known, content)
                return
            if known.open:
                raise self.record.protocol_error(
                    f"a second content_block_start for block {index}: {kind} {id or ''}, while {known.type} {known.id or ''} is open"
                )
            self.record.mark("index_reused", detail=f"block {index}")
        self._blocks[index] = self._open[index] = self._begin(content, kind, id, frame)

    def _repeated(self, block: _Block, content: dict[str, Any]) -> None:
        """The same block started again. Dropped; what it says differently is a conflict."""
        call = block.call
        if call is None:
            self.record.mark("repeated_events", detail=f"content_block_start of a {block.type} block")
            return
        self.record.mark_call(call, "call_repeated")
        name = blank(content.get("name"))
        if name is not None and name != call.name:
            self.record.doubt(call, "args_ambiguous", f"started again under the name {name!r}")
        value = content.get("input")
        if not no_arguments(value) and not (call.complete and same_json(call.text, compact_json(value))):
            self._input(block, call, value, False)

    def _begin(self, content: dict[str, Any], kind: str, id: str | None, frame: Frame, place: tuple[str | int, ...] = ("content_block",)) -> _Block:
        """A block that was not there before. ``place``: where it stands in the payload. In a message nothing follows it."""
        whole = len(place) > 1
        if kind in _CALL_BLOCKS:
            block = self._begin_call(content, kind, id, whole)
        elif kind in _TEXT_BLOCKS:
            block = self._begin_text(content, kind, id)
        else:
            block = _Block(kind, id, None, self._parts.add(kind, kept=(frame.raw, place)))
            if kind == "fallback":
                self._supersede()
            elif kind not in _QUIET_BLOCKS:
                self.record.unknown(frame, f"block {kind}")
        if whole:
            self._close(block)
        return block

    def _begin_call(self, content: dict[str, Any], kind: str, id: str | None, whole: bool) -> _Block:
        record = self.record
        twin = self._by_id.get(id) if id is not None else None
        call = record.start(
            id=id if twin is None else None,
            name=blank(content.get("name")),
            runs_on="client" if kind == "tool_use" else "provider",
            extra={key: content[key] for key in _SENT_BACK if content.get(key) is not None},
        )
        block = _Block(kind, id, call, self._parts.add(kind, call=call))
        if twin is not None:
            record.mark_call(call, "id_repeated", detail=str(id))
        elif id is not None:
            self._by_id[id] = block
        self._input(block, call, content.get("input"), whole)
        return block

    def _begin_text(self, content: dict[str, Any], kind: str, id: str | None) -> _Block:
        channel: Channel = "text" if kind == "text" else "reasoning"
        members = {key: content[key] for key, of in (("signature", str), ("citations", list)) if content.get(key) and type(content[key]) is of}
        part = self._parts.add(kind, channel=channel, members=members)
        text = content.get("text" if kind == "text" else "thinking")
        if type(text) is str:
            self.record.text(text, channel)
        return _Block(kind, id, None, part)

    def _supersede(self) -> None:
        """Another model took over. The refusal of the first may have cut the call just before this block."""
        for earlier in self.record.calls[self._superseded :]:
            self.record.doubt(earlier, "superseded", "a fallback block follows: another model took over")
        self._superseded = len(self.record.calls)

    def _input(self, block: _Block, call: ToolCall, value: Any, whole: bool) -> None:
        """``input`` of a start block: empty or missing it is a placeholder, else the whole argument."""
        if no_arguments(value) and not (value == {} and whole):
            return
        block.given, block.live = True, None
        self.record.mark_call(call, "args_as_object")
        self.record.whole_object(call, value)

    def _close(self, block: _Block) -> None:
        block.open, block.live = False, None
        if block.call is not None:
            self.record.end(block.call)

    def _block_stop(self, payload: dict[str, Any], frame: Frame) -> None:
        index = payload.get("index")
        if type(index) is not int and len(self._open) == 1:
            self.record.mark("index_missing")
            index = next(iter(self._open))
        block = self._blocks.get(index) if type(index) is int else None
        if block is None or type(index) is not int:
            self.record.mark("orphan_end", detail=f"content_block_stop for block {index!r}")
            return
        self._open.pop(index, None)
        self._close(block)

    def _only_open_block(self) -> _Block | None:
        """The block that a delta without an index means: the one that is open, if there is just one."""
        self.record.mark("index_missing")
        return next(iter(self._open.values())) if len(self._open) == 1 else None

    # -- the message --------------------------------------------------------------------------------------------------

    def _message_start(self, payload: dict[str, Any], frame: Frame) -> None:
        message = payload.get("message")
        if type(message) is not dict:
            message = {}
        id = blank(message.get("id"))
        if self._started:
            if id is not None and self._message_id is not None and id != self._message_id:
                raise self.record.protocol_error(f"a second message_start: message {id}, while {self._message_id} is open")
            self.record.mark("message_repeated")
            return
        self._message(message, id, frame, ("message", "content"))

    def _message(self, message: dict[str, Any], id: str | None, frame: Frame, place: tuple[str, ...]) -> None:
        self._started = True
        self._message_id = self.record.response_id = id
        content = message.get("content")
        if type(content) is list:
            # Calls that a program made stand here whole; they take the first indexes, as in the finished message.
            for index, block in enumerate(content):
                if type(block) is dict:
                    self._blocks[index] = self._begin(block, blank(block.get("type")) or "", blank(block.get("id")), frame, (*place, index))
        self._reason(message.get("stop_reason"))
        self.record.set_usage(message.get("usage"))

    def _message_delta(self, payload: dict[str, Any], frame: Frame) -> None:
        delta = payload.get("delta")
        if type(delta) is dict:
            self._reason(delta.get("stop_reason"))
        self.record.set_usage(payload.get("usage"))

    def _reason(self, word: Any) -> None:
        # A later null never erases a reason.
        word = word_of(word)
        if word is not None:
            self._finished = True
            self.record.finish_reason(word, outcome_of(word, self.REASONS))

    def _message_stop(self, payload: dict[str, Any], frame: Frame) -> None:
        # Without a stop_reason the message was not ended, whatever the marker says.
        if self._finished:
            self.record.terminal = True
        else:
            self.record.mark("no_finish_reason", detail="message_stop without a stop_reason")

    def _whole_message(self, payload: dict[str, Any], frame: Frame) -> None:
        """A message that is not streamed."""
        if self._started:
            raise self.record.protocol_error("a whole message in the middle of a streamed one")
        self.record.mark("whole_completion")
        self._message(payload, blank(payload.get("id")), frame, ("content",))
        self._message_stop(payload, frame)

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The message as the Messages API takes it. Without empty texts, which it refuses, and calls that a fallback has superseded."""
        if self._mixed:
            raise UsageError("the texts of two blocks came mixed with each other: they can not be told apart any more")
        content: list[dict[str, Any]] = []
        read = Reader()
        for part, text in self._parts.with_texts(texts):
            call = part.call
            if call is not None:
                if "superseded" not in call.doubts:
                    content.append({"type": part.kind, "id": call.id, "name": call.name, "input": arguments_of(call), **call.extra})
            elif part.kind == "text":
                if text:
                    content.append({"type": "text", "text": text, **part.members})
            elif part.kind == "thinking":
                content.append({"type": "thinking", "thinking": text, "signature": "", **part.members})
            else:
                content.append(part.value(read))
        return [{"role": "assistant", "content": content}] if content else []

    def _ping(self, payload: dict[str, Any], frame: Frame) -> None:
        return


def _add(members: dict[str, Any], delta: dict[str, Any]) -> None:
    """What a delta without text or arguments adds to its block."""
    for key in ("signature", "content", "encrypted_content"):
        value = delta.get(key)
        if type(value) is str:
            members[key] = members.get(key, "") + value
    if delta.get("citation") is not None:
        members.setdefault("citations", []).append(delta["citation"])


_HANDLERS: Mapping[str, Callable[[AnthropicAdapter, dict[str, Any], Frame], None]] = {
    "content_block_delta": AnthropicAdapter._block_delta,
    "content_block_start": AnthropicAdapter._block_start,
    "content_block_stop": AnthropicAdapter._block_stop,
    "message_start": AnthropicAdapter._message_start,
    "message_delta": AnthropicAdapter._message_delta,
    "message_stop": AnthropicAdapter._message_stop,
    "ping": AnthropicAdapter._ping,
    "message": AnthropicAdapter._whole_message,
}
