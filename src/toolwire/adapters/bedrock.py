"""Amazon Bedrock ConverseStream, and the models that stream the same events through InvokeModel (Nova).

- Framing: binary messages (``aws-eventstream``): the event's name is a header, its members are the payload. Or events that a
  client has decoded already, one JSON object a line or chunk: ``{"<event>": {<members>}}``.
- Terminal marker: ``messageStop`` with a ``stopReason``. ``metadata`` normally follows; it is read and not required. So that
  nothing after the marker is lost, an exception least of all, the turn has ended only when the body has.
- A call is a content block, opened by a ``contentBlockStart``. Text has no start. ``contentBlockStop`` comes for blocks that
  were cut as well: never a permission.
- Payloads carry a padding string ``p``, which means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import UsageError
from ..events import Channel, Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, outcome_of, word_of
from ._message import Part, Parts, Reader, Texts, arguments_of

if TYPE_CHECKING:
    from .._framing import Frame

#: Parts of a delta that hold neither text nor arguments of a call.
_QUIET_DELTAS = frozenset({"toolResult", "citation", "image"})
#: What a start may open besides a call.
_QUIET_STARTS = frozenset({"toolResult", "image"})
_DELTAS = "deltas"  # of such a part: what came after its start

_EVENT: Mapping[str, Any] = {
    "role": True,
    "contentBlockIndex": True,
    "start": {"toolUse": {"toolUseId": True, "name": True, "type": True}, **dict.fromkeys(_QUIET_STARTS, {})},
    "delta": {
        "text": True,
        "toolUse": {"input": True},
        "reasoningContent": {"text": True, "signature": True, "redactedContent": True},
        **dict.fromkeys(_QUIET_DELTAS, {}),
    },
    "stopReason": True,
    "usage": True,
}
_EVENT_NAMES = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
EXCEPTIONS = (
    "internalServerException",
    "modelStreamErrorException",
    "modelTimeoutException",
    "serviceUnavailableException",
    "throttlingException",
    "validationException",
)


class _Block:
    """One content block. ``call`` is None for blocks of text, reasoning or what this library does not read."""

    __slots__ = ("call", "kind", "open", "part")

    def __init__(self, kind: str, part: Part | None = None, call: ToolCall | None = None) -> None:
        self.kind = kind
        self.part = part  # None until something is in it
        self.call = call
        self.open = True


class BedrockAdapter(Adapter):
    PROVIDER: ClassVar[str] = "bedrock"
    FRAMING: ClassVar[str] = "aws-eventstream"
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"contentBlockIndex", "stopReason", "role"})
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        # Both shapes: the members at the top, and one level down under the event's name.
        **_EVENT,
        **dict.fromkeys(_EVENT_NAMES, _EVENT),
        **dict.fromkeys(EXCEPTIONS, True),
        "error": True,
        "code": True,
        "message": True,
    }
    REASONS: ClassVar[Mapping[str, Outcome]] = {
        "tool_use": Outcome.TOOL_CALLS,
        "end_turn": Outcome.STOP,
        "stop_sequence": Outcome.STOP,
        "max_tokens": Outcome.LENGTH,
        "guardrail_intervened": Outcome.FILTERED,
        "content_filtered": Outcome.FILTERED,
    }

    __slots__ = ("_blocks", "_ids", "_mixed", "_parts", "_started", "_stopped")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._blocks: dict[int, _Block] = {}
        self._ids: set[str] = set()
        self._parts = Parts(record)
        self._mixed = False  # text went to a block while another of its kind had begun after it
        self._started = False
        self._stopped = False  # messageStop came, with a reason

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        if frame.headers is not None:
            self._event(frame.event, payload, frame)
            return
        found = False
        for name, members in payload.items():
            if name in _HANDLERS or name in EXCEPTIONS:
                found = True
                self._event(name, members if type(members) is dict else {}, frame)
        if not found:
            self.record.unknown(frame, "an object that names no event")

    def _event(self, name: str, members: dict[str, Any], frame: Frame) -> None:
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(self, members, frame)
        elif name in EXCEPTIONS:
            message = members.get("message")
            self.record.fail({"type": name, **members}, type=name, message=message if isinstance(message, str) else name)
        elif name != "initial-response":
            self.record.unknown(frame, f"event {name}")

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _block_start(self, members: dict[str, Any], frame: Frame) -> None:
        record = self.record
        index, start = members.get("contentBlockIndex"), members.get("start")
        if type(index) is not int or type(start) is not dict:
            raise record.protocol_error("a contentBlockStart without an index, or without a start")
        tool = start.get("toolUse")
        if type(tool) is not dict:
            kind = next(iter(start), "text")
            if kind not in _QUIET_STARTS:
                record.unknown(frame, f"block {kind}")
            self._open(index, _Block(kind, self._parts.add(kind, kept=(frame.raw, (*_members(frame, "contentBlockStart"), "start", kind)))))
            return
        id, name = blank(tool.get("toolUseId")), blank(tool.get("name"))
        known = self._blocks.get(index)
        if known is not None and known.call is not None and id is not None and known.call.id == id:
            record.mark_call(known.call, "call_repeated")
            if name is not None and name != known.call.name:
                record.doubt(known.call, "args_ambiguous", f"started again under the name {name!r}")
            return
        if known is not None and known.open and known.call is not None:
            raise record.protocol_error(f"a second contentBlockStart for block {index}: {id or ''}, while {known.call.id or ''} is open")
        twin = id is not None and id in self._ids
        call = record.start(id=None if twin else id, name=name, runs_on="provider" if tool.get("type") == "server_tool_use" else "client")
        if twin:
            record.mark_call(call, "id_repeated", detail=str(id))
        elif id is not None:
            self._ids.add(id)
        self._open(index, _Block("toolUse", self._parts.add("toolUse", call=call), call))

    def _open(self, index: int, block: _Block) -> _Block:
        known = self._blocks.get(index)
        if known is not None and known.call is not None:
            if known.open:
                raise self.record.protocol_error(f"block {index} started again as {block.kind}, while its call is open")
            self.record.mark("index_reused", detail=f"block {index}")
        self._blocks[index] = block
        return block

    def _block_delta(self, members: dict[str, Any], frame: Frame) -> None:
        record = self.record
        index, delta = members.get("contentBlockIndex"), members.get("delta")
        if type(delta) is not dict:
            block = self._blocks.get(index) if type(index) is int else None
            record.unreadable(None if block is None else block.call, delta)
            record.unknown(frame, "a contentBlockDelta without a delta")
            return
        if type(index) is not int:
            raise record.protocol_error("a contentBlockDelta without an index")
        known = False
        for kind, value in delta.items():
            if kind == "text" or kind == "reasoningContent":
                self._text(index, kind, value)
            elif kind == "toolUse":
                self._input(index, value)
            elif kind not in _QUIET_DELTAS:
                continue
            else:
                block = self._blocks.get(index)
                if block is not None and block.part is not None and block.kind == kind:
                    place = (*_members(frame, "contentBlockDelta"), "delta", kind)
                    block.part.members.setdefault(_DELTAS, []).append((frame.raw, place))
            known = True
        if not known:
            record.unknown(frame, "a delta of an unknown kind")
        elif self._stopped:
            record.mark("delta_after_finish")

    def _text(self, index: int, kind: str, value: Any) -> None:
        record = self.record
        members = value if type(value) is dict else {"text": value}
        text = members.get("text")
        if type(text) is not str:
            text = ""
        added = {key: members[key] for key in ("signature", "redactedContent") if type(members.get(key)) is str}
        if not text and not added:
            return
        block = self._blocks.get(index)
        if block is None:
            block = self._open(index, _Block("text"))
        if block.kind == "toolUse":
            record.mark("misplaced_delta", detail=f"{kind} in a toolUse block")
            return
        channel: Channel = "text" if kind == "text" else "reasoning"
        part = block.part
        if part is None or part.channel != channel:
            part = block.part = self._parts.add(kind, channel=channel)
        for key, more in added.items():
            part.members[key] = part.members.get(key, "") + more
        if text:
            if not block.open:
                record.mark("delta_after_stop", detail=f"block {index}")
            self._mixed = self._mixed or self._parts.latest(channel) is not part
            record.text(text, channel)

    def _input(self, index: int, value: Any) -> None:
        record = self.record
        text = value.get("input") if type(value) is dict else None
        block = self._blocks.get(index)
        if type(value) is not dict and block is not None:
            record.unreadable(block.call, value)
        if text is None or text == "":
            return
        if block is None:
            raise record.protocol_error(f"toolUse input for block {index}, which never started")
        call = block.call
        if call is None:
            record.mark("misplaced_delta", detail=f"toolUse in a {block.kind} block")
            return
        if not block.open:
            record.doubt(call, "args_ambiguous", "argument text came after the end of its block")
        record.piece(call, text)

    def _block_stop(self, members: dict[str, Any], frame: Frame) -> None:
        index = members.get("contentBlockIndex")
        block = self._blocks.get(index) if type(index) is int else None
        if block is None:
            self.record.mark("orphan_end", detail=f"contentBlockStop for block {index!r}")
            return
        block.open = False
        if block.call is not None:
            self.record.end(block.call)

    # -- the message --------------------------------------------------------------------------------------------------

    def _message_start(self, members: dict[str, Any], frame: Frame) -> None:
        if self._started:
            self.record.mark("message_repeated")
        self._started = True

    def _message_stop(self, members: dict[str, Any], frame: Frame) -> None:
        word = word_of(members.get("stopReason"))
        if word is None:
            self.record.mark("no_finish_reason", detail="messageStop without a stopReason")
            return
        self._stopped = True
        self.record.finish_reason(word, outcome_of(word, self.REASONS))

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The message as Converse takes it, with bytes as base64. Without citations."""
        if self._mixed:
            raise UsageError("the texts of two blocks came mixed with each other: they can not be told apart any more")
        content: list[dict[str, Any]] = []
        for part, text in self._parts.with_texts(texts):
            call, members = part.call, part.members
            if call is not None:
                kind = {"type": "server_tool_use"} if call.runs_on == "provider" else {}
                content.append({"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments_of(call), **kind}})
            elif part.kind == "text":
                content.append({"text": text})
            elif part.kind != "reasoningContent":
                content.append({part.kind: _joined(part)})
            elif "redactedContent" in members:
                content.append({"reasoningContent": {"redactedContent": members["redactedContent"]}})
            else:
                content.append({"reasoningContent": {"reasoningText": {"text": text, **members}}})
        return [{"role": "assistant", "content": content}] if content else []

    def _metadata(self, members: dict[str, Any], frame: Frame) -> None:
        self.record.set_usage(members.get("usage"))

    def at_end(self, clean: bool) -> bool:
        # An exception may come after ``messageStop``, and half a message could be one.
        self.record.terminal = self._stopped and clean
        return self.record.terminal


def _members(frame: Frame, event: str) -> tuple[str, ...]:
    """Where in a payload the members of its event are."""
    return () if frame.headers is not None else (event,)


def _joined(part: Part) -> dict[str, Any]:
    """A tool's result or an image: what its start says, and what the deltas add to it."""
    read = Reader()
    whole = read.object(part.kept)
    for kept in part.members.get(_DELTAS, ()):
        delta = read.value(kept)
        if type(delta) is list:
            so_far = whole.get("content")
            whole["content"] = [*(so_far if type(so_far) is list else ()), *delta]
        elif type(delta) is dict:
            whole.update(delta)
    return whole


_HANDLERS: Mapping[str, Callable[[BedrockAdapter, dict[str, Any], Frame], None]] = {
    "contentBlockDelta": BedrockAdapter._block_delta,
    "contentBlockStart": BedrockAdapter._block_start,
    "contentBlockStop": BedrockAdapter._block_stop,
    "messageStart": BedrockAdapter._message_start,
    "messageStop": BedrockAdapter._message_stop,
    "metadata": BedrockAdapter._metadata,
}
