"""OpenAI Responses, over SSE or WebSocket messages, and servers that speak its shape.

- Framing: SSE with named events; the name repeats ``data.type``, which counts.
- Terminal marker: ``response.completed``, ``.incomplete`` or ``.failed``; in the Realtime form
  ``response.done``. The ``status`` inside has the last word where it is worse than the event's name. ``[DONE]`` means nothing here.
- Items are joined by ``output_index``; item ids may change from event to event, and some servers have no index, then the item id
  joins them. The id that a tool result has to name is ``call_id``, which stands in the item only.
- Argument text comes up to four times: as deltas, in ``.done``, in ``output_item.done`` and in the terminal ``response.output``.
  Each may add to what came before, none may contradict it. The same goes for text.
- ``output_item.done`` comes for items that were cut as well: an item's status is a veto, never a permission.
- A body that was resumed (``starting_after``) may start in the middle of an item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ..events import Channel, Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, compact_json, no_arguments, outcome_of, word_of
from ._message import Reader, Texts
from ._responses_items import (
    CALLS,
    EXTRA,
    ITEM,
    PART,
    PARTS,
    QUIET_ITEMS,
    RESPONSE,
    TEXT_ITEMS,
    CallKind,
    Item,
    ObjectStream,
    canonical,
    is_another,
    member_of,
    same_text,
    type_of_part,
    waits_for_program,
    written,
)

if TYPE_CHECKING:
    from .._framing import Frame


_QUIET_EVENTS = frozenset(
    {
        "response.output_text.annotation.added",
        "response.reasoning_summary_part.added",
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.mcp_list_tools.failed",
        "response.shell_call_output_content.delta",
        "response.shell_call_output_content.done",
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call.interpreting",
        "response.code_interpreter_call.completed",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.image_generation_call.in_progress",
        "response.image_generation_call.generating",
        "response.image_generation_call.partial_image",
        "response.image_generation_call.completed",
        "response.audio.delta",
        "response.audio.done",
        "response.audio.transcript.delta",
        "response.audio.transcript.done",
        "response.compaction.compacting",
        "response.steer.accepted",
        "response.steer.pending",
        "response.steer.failed",
        "response.inject.created",
        "response.inject.failed",
    }
)


_DELTA_PATH = (b"delta",)


class ResponsesAdapter(Adapter):
    PROVIDER: ClassVar[str] = "openai-responses"
    COUNTER: ClassVar[str | None] = "sequence_number"
    RUNS_ON_STOP: ClassVar[bool] = True
    TOOL_REASON: ClassVar[bool] = False
    CLOSES_CALLS: ClassVar[bool] = True
    RESUMES_BY: ClassVar[str | None] = "starting_after"
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"type"})
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "type": True,
        "sequence_number": True,
        "output_index": True,
        "item_id": True,
        "content_index": True,
        "summary_index": True,
        "command_index": True,
        "delta": True,
        "text": True,
        "refusal": True,
        "arguments": True,
        "input": True,
        "code": True,
        "diff": True,
        "command": True,
        "part": PART,
        "item": ITEM,
        "response": RESPONSE,
        "message": True,
        # A whole response, where one stands in place of a stream.
        "object": True,
        **RESPONSE,
    }
    #: ``incomplete_details.reason``.
    REASONS: ClassVar[Mapping[str, Outcome]] = {
        "max_output_tokens": Outcome.LENGTH,
        "max_messages": Outcome.LENGTH,
        "content_filter": Outcome.FILTERED,
    }

    __slots__ = ("_all", "_claimed", "_created", "_cut", "_first", "_forgotten", "_items", "_latest", "_missing", "_open", "_resumed", "_seam")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._items: dict[int | str, Item] = {}  # by output_index, and by item id
        self._all: list[Item] = []
        self._claimed: dict[str, Item] = {}  # by the id that the call goes by
        self._open: dict[str, Item] = {}  # calls that have not ended, by key
        self._latest: dict[str, Item] = {}  # the last item of each type
        self._created = False
        # Event numbers.
        self._first: int | None = None
        record.next_number = -2  # no number at all: servers that do not count send -1
        self._missing: set[int] = set()
        self._forgotten = False  # more numbers are missing than are remembered
        self._seam = -1  # the number that has to follow on a resume
        self._resumed = False
        self._cut = False

    def resumed(self) -> None:
        self._seam = self.record.next_number

    # -- events -------------------------------------------------------------------------------------------------------

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        kind = payload.get("type")
        if type(kind) is not str:
            kind = frame.event
            if payload.get("object") == "response":
                self._whole_response(payload, frame)
                return
            if kind == "message":
                self.record.mark("ignored_frames", detail="a payload without type")
                return
        number = payload.get("sequence_number")
        late = False
        if type(number) is int:
            if number == self.record.next_number:
                self.record.next_number = number + 1
                self.record.resume_point = number
            else:
                place = self._out_of_order(number, kind)
                if place == "repeated":
                    return
                late = place == "late"
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, payload, frame)
        elif kind not in _QUIET_EVENTS:
            self.record.unknown(frame, f"event {kind}")
        if late:
            self._touched(payload, number)

    def _out_of_order(self, number: int, kind: str) -> str:
        """Where an event stands whose number is not the next one."""
        record = self.record
        if number < 0:
            return ""  # a placeholder of servers that do not count
        if self._first is None:
            self._first = number
            self._resumed = number > 0 and kind != "response.created" and not self._created
            self.record.next_number = number + 1
            self._seam = self.record.next_number if self._resumed else -1
            record.resume_point = number
            return ""
        if number > self.record.next_number:
            # The number of an error event went with it (see report_error).
            if record.error is None:
                self._gap(self.record.next_number, number)
            self.record.next_number = number + 1
            record.resume_point = number
            return ""
        if number in self._missing or self._forgotten or number < self._first:
            self._missing.discard(number)
            record.mark("late_event", detail=f"event {number} after {self.record.next_number - 1}")
            return "late"
        record.mark("repeated_events", detail=f"event {number}")
        self._seam = self.record.next_number
        return "repeated"

    def _gap(self, start: int, stop: int) -> None:
        record = self.record
        detail = f"event {start}" if stop - start == 1 else f"events {start} to {stop - 1}"
        if record.profile == "strict":
            raise record.protocol_error(f"{detail} missing")
        record.mark("sequence_gap", detail=detail)
        if start == self._seam:
            # The body before was cut, and what was missing there did not come now either.
            self._cut = True
        room = record.limits.max_open_gaps - len(self._missing)
        if stop - start > room:
            self._forgotten = True
            stop = start + max(room, 0)
        self._missing.update(range(start, stop))

    def _touched(self, payload: dict[str, Any], number: Any) -> None:
        """An event came later than its number: its call may have got text in the wrong order."""
        item = self._find(payload)
        if item is not None and item.call is not None:
            self.record.doubt(item.call, "args_ambiguous", f"event {number} came late")

    # -- which item ---------------------------------------------------------------------------------------------------

    def _find(self, payload: dict[str, Any]) -> Item | None:
        """The item that an event belongs to: by output_index, else by item id."""
        index, id = payload.get("output_index"), payload.get("item_id")
        item = self._items.get(index) if type(index) is int else None
        if type(id) is not str:
            return item
        other = self._items.get(id)
        if item is None:
            return other
        if other is not None and other is not item:
            for each in (item, other):
                if each.call is not None:
                    self.record.doubt(each.call, "args_ambiguous", f"output_index {index} and item_id {id!r} name two items")
        elif item.id is not None and item.id != id:
            self._id_changed(item)
            item.id = id
        return item

    def _needed(self, payload: dict[str, Any]) -> Item:
        """Like ``_find``, for events that mean nothing without their item."""
        item = self._find(payload)
        if item is None and type(payload.get("output_index")) is not int and blank(payload.get("item_id")) is None and self._open:
            return self._only_open_call()
        if item is None:
            if not self._resumed:
                raise self.record.protocol_error(
                    f"{payload.get('type')} for output_index {payload.get('output_index')!r}, item {payload.get('item_id')!r}, which was never added"
                )
            item = self._register(None, payload.get("item_id"), payload.get("output_index"))
            item.tail = []
        return item

    def _only_open_call(self) -> Item:
        """The call that an event without index and id means. With several open ones it could be any of them."""
        self.record.mark("index_missing")
        last = next(reversed(self._open.values()))
        if len(self._open) > 1 and last.call is not None and "args_ambiguous" not in last.call.doubts:
            for item in self._open.values():
                if item.call is not None:
                    self.record.doubt(item.call, "args_ambiguous", "an event without output_index and item_id, while several calls were open")
        return last

    def _register(self, type_: str | None, id: Any, index: Any) -> Item:
        self.record.touched += 1  # what an event without an index means may be another item from here on
        id = blank(id)
        item = Item(type_, id, index if type(index) is int else None)
        self._all.append(item)
        if item.index is not None:
            self._items[item.index] = item
        if id is not None:
            self._items.setdefault(id, item)
        return item

    def _known(self, raw: dict[str, Any], index: Any) -> Item | None:
        """The item of an ``output_item`` event, if it was seen before."""
        id, call_id = blank(raw.get("id")), blank(raw.get("call_id"))
        item = self._items.get(index) if type(index) is int else None
        if item is None and id is not None:
            item = self._items.get(id)
        if item is None and type(index) is not int and call_id is not None:
            item = self._claimed.get(call_id)
        if item is not None and item.index is not None and type(index) is int and item.index != index:
            if call_id is None or item.call_id != call_id or item.call is None:
                return None  # another place in the output is another item
            # The same item id and call id at two places: one call told twice, or two under one name.
            self.record.doubt(item.call, "args_ambiguous", f"item {id!r} stands at output_index {item.index} and {index}")
        return item

    def _id_changed(self, item: Item) -> None:
        self.record.mark("item_id_changed")
        if item.call is not None:
            self.record.mark_call(item.call, "item_id_changed")

    # -- items --------------------------------------------------------------------------------------------------------

    def _item_added(self, payload: dict[str, Any], frame: Frame) -> None:
        raw = payload.get("item")
        if type(raw) is not dict:
            return  # gateways announce nothing at all, too
        index = payload.get("output_index")
        item = self._known(raw, index)
        if item is not None and item.type is not None:
            if is_another(item, raw):
                raise self.record.protocol_error(
                    f"a second output_item.added at output_index {index!r}: {raw.get('type')} {raw.get('call_id') or raw.get('id')}, "
                    f"where {item.type} {item.call_id or item.id} stands"
                )
            if item.call is not None:
                self.record.mark_call(item.call, "call_repeated")
                self._again(item.call, CALLS[item.type], raw)
            elif item.parts or not item.open:
                self.record.mark("repeated_events", detail="output_item.added")
            return
        item = self._fill(item or self._register(None, raw.get("id"), index), raw, frame)
        item.status = word_of(raw.get("status"))
        call = item.call
        if call is not None and item.tail is None:
            # Normally empty. Servers that know more say more; "{}" is a placeholder.
            item.given = CALLS[item.type or ""].read(raw)
            if type(item.given) is str and item.given != "{}":
                self.record.arguments(call, item.given)

    def _again(self, call: ToolCall, about: CallKind, raw: dict[str, Any]) -> None:
        """A second start of one item: what it says differently is a doubt."""
        name, text = blank(raw.get("name")), about.read(raw)
        if about.named and name is not None and call.name not in (None, name):
            self.record.doubt(call, "args_ambiguous", f"one item under two names: {call.name!r} and {name!r}")
        if type(text) is str and text != "{}" and not call.text.startswith(text):
            self.record.whole(call, text)

    def _item_done(self, payload: dict[str, Any], frame: Frame) -> None:
        raw = payload.get("item")
        if type(raw) is not dict:
            return
        index = payload.get("output_index")
        item = self._known(raw, index)
        if item is None:
            item = self._register(None, raw.get("id"), index)
        if item.type is not None and item.type != raw.get("type"):
            raise self.record.protocol_error(f"output_item.done at output_index {index!r} is a {raw.get('type')}, where {item.type} stands")
        self._last_word(item, raw, frame)
        item.status, item.done, item.open = word_of(raw.get("status")), True, False
        item.kept = frame.raw, ("item",)
        if item.call is not None:
            self._open.pop(item.call.key, None)
            self.record.end(item.call)

    def _fill(self, item: Item, raw: dict[str, Any], frame: Frame) -> Item:
        """What an item is, at first sight of it as a whole."""
        kind = raw.get("type")
        item.type = kind if type(kind) is str else ""
        self._latest[item.type] = item
        about = CALLS.get(item.type)
        if about is not None:
            name = blank(raw.get("name"))
            item.call = self.record.start(
                name=name if about.named else name or item.type,
                kind=about.kind,
                runs_on="client" if about.client else "provider",
            )
            if item.type == "mcp_approval_request":
                self.record.mark_call(item.call, "needs_approval")
            self._open[item.call.key] = item
            self._about(item, item.call, raw)
        elif item.type not in TEXT_ITEMS and item.type not in QUIET_ITEMS:
            self.record.unknown(frame, f"item {item.type}")
        return item

    def _about(self, item: Item, call: ToolCall, raw: dict[str, Any]) -> None:
        """Ids, name, and what has to be sent back: the last word counts."""
        about = CALLS[item.type or ""]
        id, call_id = blank(raw.get("id")), blank(raw.get("call_id"))
        if (id is not None and item.id not in (None, id)) or (call_id is not None and item.call_id not in (None, call_id)):
            self._id_changed(item)
        item.id = id or item.id
        item.call_id = call_id or item.call_id
        mine = item.call_id or item.id
        if mine is not None and mine != call.id and not item.twin:
            if self._claimed.setdefault(mine, item) is item:
                call.id = mine
            else:
                item.twin = True
                call.id = None
                self.record.mark_call(call, "id_repeated", detail=mine)
        name = blank(raw.get("name"))
        if name is not None and call.name is None:
            self.record.named(call, name)
        elif name is not None and name != call.name and about.named:
            self.record.doubt(call, "args_ambiguous", f"one item under two names: {call.name!r} and {name!r}")
        for key in (*EXTRA, *about.extra):
            if raw.get(key) is not None:
                call.extra[key] = raw[key]
        if item.type == "shell_call":
            environment = raw.get("environment")
            if environment is not None and member_of("environment", "type")(raw) != "local":
                call.runs_on = "provider"
        elif item.type == "tool_search_call" and raw.get("execution") is not None:
            call.runs_on = "client" if raw["execution"] == "client" else "provider"

    def _last_word(self, item: Item, raw: dict[str, Any], frame: Frame) -> None:
        """A finished item: what it adds to the deltas, and what it contradicts."""
        first = item.type is None
        if first:
            self._fill(item, raw, frame)
        call = item.call
        if call is None:
            self._last_texts(item, raw)
            return
        if not first:
            self._about(item, call, raw)
        final = CALLS[item.type or ""].read(raw)
        tail = "".join(item.tail) if item.tail else ""
        item.tail = None
        if final is None and tail:
            self.record.arguments(call, tail)
            self.record.doubt(call, "args_incomplete", "the start of the argument text lies before this body")
        elif tail and type(final) is str and not final.endswith(tail):
            self.record.doubt(call, "args_conflict", "the final text does not end with the deltas")
        stream, item.stream = item.stream, None
        if final is None and stream is None and type(item.given) is not str and not no_arguments(item.given):
            final = item.given  # the item's start had them whole
        if stream is None or final is None:
            self._final(call, final)
            return
        rest = stream.rest(final)
        if rest is None:
            self.record.doubt(call, "args_conflict", "the final object differs from the deltas")
        else:
            self.record.arguments(call, rest)

    def _final(self, call: ToolCall, final: Any) -> None:
        """The whole arguments, from any of the places that have them. None says nothing."""
        if final is None:
            return
        if type(final) is str:
            self.record.whole(call, final)
        elif not call.text:
            self.record.mark_call(call, "args_as_object")
            self.record.whole_object(call, final)
        elif "args_conflict" in call.doubts:
            return
        elif not call.complete or canonical(call.snapshot()) != canonical(final):
            self.record.doubt(call, "args_conflict", "the final object differs from what came before")

    # -- arguments ----------------------------------------------------------------------------------------------------

    def _arguments_delta(self, payload: dict[str, Any], frame: Frame) -> None:
        index = payload.get("output_index")
        item = self._items.get(index) if type(index) is int else None
        if item is None or payload.get("item_id") != item.id:
            item = self._needed(payload)
        text = payload.get("delta")
        if text is None or text == "":
            return
        call = item.call
        if call is not None and item.open and type(text) is str:
            self.record.plain_arguments(call, text, _DELTA_PATH)
        else:
            self._odd_delta(item, payload, text)

    def _odd_delta(self, item: Item, payload: dict[str, Any], text: Any) -> None:
        """Argument text for an item that is closed, is no call, or has not been seen as a whole; or what is no text."""
        if item.call is not None:
            if not item.open:
                self.record.doubt(item.call, "args_ambiguous", "argument text came after the end of its item")
            self.record.piece(item.call, text)
        elif item.type is None and item.tail is not None:
            item.tail.append(text if type(text) is str else compact_json(text))
        else:
            self.record.mark("misplaced_delta", detail=f"{payload.get('type')} for a {item.type} item")

    def _arguments_done(self, payload: dict[str, Any], text: Any) -> None:
        item = self._needed(payload)
        if item.call is not None:
            self._final(item.call, text)
        elif item.tail is not None and type(text) is str:
            tail = "".join(item.tail)
            item.tail = [text if text.endswith(tail) else tail]

    def _streamed(self, item: Item, member: str, number: Any, text: Any) -> None:
        """A piece of one string in the member that streams."""
        call = item.call
        if call is None or text is None or text == "":
            return
        if type(text) is not str:
            self.record.doubt(call, "args_conflict", f"a piece of {member} is no text: {text!r}")
            return
        if not item.open:
            self._odd_delta(item, {}, text)
            return
        if type(number) is not int:
            number = 0
        if item.stream is None:
            item.stream = ObjectStream(member, member == "commands", item.given)
        elif number < len(item.stream.pieces) - 1:
            self.record.doubt(call, "args_ambiguous", "pieces of several commands are mixed")
        self.record.arguments(call, item.stream.add(number, text))

    def _streamed_whole(self, item: Item, member: str, number: Any, text: Any) -> None:
        """One string in that member, whole."""
        if item.call is None or text is None:
            return
        if type(text) is not str:
            self.record.doubt(item.call, "args_conflict", f"the final {member} is no text: {text!r}")
            return
        so_far = item.stream.so_far(number if type(number) is int else 0) if item.stream is not None else ""
        if text.startswith(so_far):
            if item.open:
                self._streamed(item, member, number, text[len(so_far) :])
        elif not same_text(text, so_far):
            self.record.doubt(item.call, "args_conflict", f"the final {member} differs from the deltas")

    # -- text ---------------------------------------------------------------------------------------------------------

    def _text_item(self, payload: dict[str, Any], type_: str) -> Item:
        """The item of a piece of text. Text belongs to the turn, so one that was never added does no harm."""
        item = self._find(payload)
        if item is None and type(payload.get("output_index")) is not int and blank(payload.get("item_id")) is None:
            item = self._latest.get(type_)
        if item is None:
            item = self._latest[type_] = self._register(type_, payload.get("item_id"), payload.get("output_index"))
            item.tail = []
        return item

    def _last_text(self, item: Item, part: tuple[str, int], channel: Channel, text: Any) -> None:
        """The whole text of one part, from any of the places that have it."""
        if type(text) is not str:
            return
        seen = "".join(item.parts.get(part, ()))
        if text.startswith(seen):
            item.parts[part] = [text]
            self.record.text(text[len(seen) :], channel)
            return
        item.parts[part] = [seen]
        if item.tail is not None and self._resumed and text.endswith(seen):
            return  # the part began before this body
        if not same_text(text, seen):
            self.record.mark("text_conflict")

    def _last_texts(self, item: Item, raw: dict[str, Any]) -> None:
        for member in ("summary", "content"):
            parts = raw.get(member)
            for number, part in enumerate(parts if type(parts) is list else ()):
                if type(part) is dict:
                    self._part(item, number, part)

    def _part(self, item: Item, number: Any, part: dict[str, Any]) -> None:
        kind = part.get("type")
        about = PARTS.get(kind) if type(kind) is str else None
        if about is not None:
            name, channel, member = about
            self._last_text(item, (name, number if type(number) is int else 0), channel, part.get(member))

    def _part_added(self, payload: dict[str, Any], frame: Frame) -> None:
        """Normally empty; text that stands here is the start of the part's text."""
        part = payload.get("part")
        if type(part) is dict and (part.get("text") or part.get("refusal")):
            item = self._text_item(payload, type_of_part(part))
            if not item.parts:
                self._part(item, payload.get("content_index"), part)

    def _part_done(self, payload: dict[str, Any], frame: Frame) -> None:
        part = payload.get("part")
        if type(part) is dict:
            number = payload.get("content_index")
            self._part(self._text_item(payload, type_of_part(part)), payload.get("summary_index") if number is None else number, part)

    # -- the response -------------------------------------------------------------------------------------------------

    def _same_response(self, response: Any, kind: Any) -> dict[str, Any]:
        """The response object of a lifecycle event; its id has to stay the same."""
        if type(response) is not dict:
            return {}
        record = self.record
        id = blank(response.get("id"))
        if record.response_id is None:
            record.response_id = id
        elif id is not None and id != record.response_id:
            if record.profile == "strict" or (kind == "response.created" and self._created):
                raise record.protocol_error(f"{kind} of response {id}, while {record.response_id} is open")
            record.mark("response_id_changed")
        return response

    def _lifecycle(self, payload: dict[str, Any], frame: Frame) -> None:
        kind = payload.get("type")
        response = self._same_response(payload.get("response"), kind)
        if kind == "response.created":
            if self._created:
                self.record.mark("message_repeated")
            self._created = True
        # A response that was cancelled, or failed, while it waited in the background: no further event says so.
        if response.get("status") == "cancelled":
            self._end(response, "cancelled", frame)
        elif response.get("status") == "failed" or response.get("error"):
            self._end(response, "failed", frame)

    def _done(self, payload: dict[str, Any], frame: Frame) -> None:
        """Realtime's one end for all; without a status it says nothing."""
        response = self._same_response(payload.get("response"), payload.get("type"))
        self._end(response, word_of(response.get("status")) or "in_progress", frame)

    def _end(self, response: dict[str, Any], event: str, frame: Frame, place: tuple[str, ...] = ("response", "output")) -> None:
        """The end of the response. ``event`` is the status that the event's name stands for, ``place`` where its output stands."""
        record = self.record
        error, status = response.get("error") or member_of("status_details", "error")(response), response.get("status")
        status = status if type(status) is str else word_of(status) or event
        if status == "completed":
            status = event
        if status in ("in_progress", "queued") and not error and event != "failed":
            record.mark("no_finish_reason", detail=f"response.{event} with status {status}")
            return
        output = response.get("output")
        if type(output) is list:
            self._snapshot(output, frame, place)
        record.set_usage(response.get("usage"))
        if error or "failed" in (status, event):
            status = "failed"
            about = error if type(error) is dict else {}
            message = about.get("message")
            record.fail(
                error or {"status": status},
                type=blank(about.get("type")),
                code=about.get("code"),
                message=message if type(message) is str else "the response failed" if not error else None,
            )
        if status == "incomplete":
            details = "incomplete_details" if response.get("incomplete_details") else "status_details"
            word = word_of(member_of(details, "reason")(response)) or status
            record.finish_reason(word, outcome_of(word, self.REASONS))
        else:
            record.finish_reason(status, Outcome.STOP if status == "completed" else outcome_of(status, {}))
        record.terminal = True

    def _whole_response(self, payload: dict[str, Any], frame: Frame) -> None:
        """A response that is not streamed."""
        self.record.mark("whole_completion")
        self._same_response(payload, "response")
        status = payload.get("status")
        self._end(payload, status if type(status) is str else "completed", frame, ("output",))

    def _snapshot(self, output: list[Any], frame: Frame, place: tuple[str, ...]) -> None:
        """The items of the finished response: the last place that adds to them, and the last that contradicts them."""
        matched: set[int] = set()
        texts: dict[str, Iterator[Item]] = {}
        for index, raw in enumerate(output):
            if type(raw) is not dict:
                continue
            item = self._match(raw, index, matched)
            kind = raw.get("type")
            if item is None and type(kind) is str and kind in TEXT_ITEMS:
                # Neither place nor id: texts stand in the order in which they came.
                same = texts.get(kind)
                if same is None:
                    same = texts[kind] = iter([each for each in self._all if each.type == kind])
                item = next((each for each in same if id(each) not in matched), None)
            if item is None:
                item = Item(None, blank(raw.get("id")), None)
                self._all.append(item)
            matched.add(id(item))
            item.kept = frame.raw, (*place, index)
            self._last_word(item, raw, frame)
            status = word_of(raw.get("status"))
            if status is not None or not item.done:
                item.status = status
            item.done = True
            if item.call is not None and (status in (None, "completed") or waits_for_program(item)):
                self.record.end(item.call)

    def _match(self, raw: dict[str, Any], index: int, matched: set[int]) -> Item | None:
        """The item seen before that an item of the snapshot is. Ids first; the place counts where they have changed, or
        where there are none."""
        kind, item_id, call_id = raw.get("type"), blank(raw.get("id")), blank(raw.get("call_id"))
        here = self._items.get(index)
        if here is not None and (id(here) in matched or here.type not in (None, kind)):
            here = None
        if here is not None and ((call_id is not None and here.call_id == call_id) or (call_id is None and item_id is not None and here.id == item_id)):
            return here
        by_call_id = self._claimed.get(call_id) if call_id is not None else None
        by_id = self._items.get(item_id) if item_id is not None else None
        for item in (by_call_id, by_id):
            if item is not None and id(item) not in matched and item.type in (None, kind):
                return item
        if here is not None and here.call is not None:
            name = blank(raw.get("name"))
            if name is not None and here.call.name not in (None, name):
                return None
        return here

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The items as ``input`` of the Responses API takes them: as their last event or the finished response has them."""
        read = Reader()
        ordered = sorted(self._all, key=lambda item: len(self._all) if item.index is None else item.index)
        items = (written(item, read.object(item.kept)) for item in ordered)
        return [item for item in items if item]

    def at_end(self, clean: bool) -> bool:
        record = self.record
        for item in self._all:
            call = item.call
            if call is None:
                if item.tail and not item.parts:
                    # Text that began before this body, of an item that never ended. Kept; it has neither id nor name.
                    call = item.call = record.start()
                    record.arguments(call, "".join(item.tail))
                elif item.done and item.type == "message" and item.status == "incomplete" and record.terminal:
                    # A response can not be complete with a message in it that is not.
                    record.finish_reason("incomplete", Outcome.LENGTH)
            elif item.done and item.status is not None:
                if waits_for_program(item):
                    record.mark_call(call, "status_in_progress")
                elif item.status in ("incomplete", "in_progress") or (call.runs_on == "client" and item.status != "completed"):
                    record.doubt(call, "args_incomplete", f"the item's last status is {item.status!r}")
        return record.terminal and not self._cut


# -- the table ----------------------------------------------------------------------------------------------------------

_Handler: TypeAlias = Callable[[ResponsesAdapter, dict[str, Any], "Frame"], None]


def _text_delta(type_: str, part: str, number: str, channel: Channel) -> _Handler:
    def handle(self: ResponsesAdapter, payload: dict[str, Any], frame: Frame) -> None:
        text = payload.get("delta")
        if type(text) is not str:
            return
        index = payload.get("output_index")
        item = self._items.get(index) if type(index) is int else None
        if item is None:
            item = self._text_item(payload, type_)
        index = payload.get(number)
        key = (part, index if type(index) is int else 0)
        pieces = item.parts.get(key)
        if pieces is None:
            pieces = item.parts[key] = [text]
        else:
            pieces.append(text)
        if not item.open:
            self.record.mark("delta_after_stop", detail=f"a {type_} item")
        self.record.plain_text(text, channel, 0, _DELTA_PATH, pieces)

    return handle


def _text_done(type_: str, part: str, number: str, channel: Channel, member: str) -> _Handler:
    def handle(self: ResponsesAdapter, payload: dict[str, Any], frame: Frame) -> None:
        index = payload.get(number)
        self._last_text(self._text_item(payload, type_), (part, index if type(index) is int else 0), channel, payload.get(member))

    return handle


def _arguments_done(member: str) -> _Handler:
    def handle(self: ResponsesAdapter, payload: dict[str, Any], frame: Frame) -> None:
        self._arguments_done(payload, payload.get(member))

    return handle


def _streamed(member: str, number: str, field: str, whole: bool) -> _Handler:
    def handle(self: ResponsesAdapter, payload: dict[str, Any], frame: Frame) -> None:
        add = self._streamed_whole if whole else self._streamed
        add(self._needed(payload), member, payload.get(number), payload.get(field))

    return handle


def _ends(status: str) -> _Handler:
    def handle(self: ResponsesAdapter, payload: dict[str, Any], frame: Frame) -> None:
        self._end(self._same_response(payload.get("response"), payload.get("type")), status, frame)

    return handle


_HANDLERS: Mapping[str, _Handler] = {
    "response.created": ResponsesAdapter._lifecycle,
    "response.queued": ResponsesAdapter._lifecycle,
    "response.in_progress": ResponsesAdapter._lifecycle,
    "response.completed": _ends("completed"),
    "response.incomplete": _ends("incomplete"),
    "response.failed": _ends("failed"),
    "response.done": ResponsesAdapter._done,
    "response.output_item.added": ResponsesAdapter._item_added,
    "response.output_item.done": ResponsesAdapter._item_done,
    "response.content_part.added": ResponsesAdapter._part_added,
    "response.content_part.done": ResponsesAdapter._part_done,
    "response.reasoning_summary_part.done": ResponsesAdapter._part_done,
    "response.output_text.delta": _text_delta("message", "text", "content_index", "text"),
    "response.output_text.done": _text_done("message", "text", "content_index", "text", "text"),
    "response.refusal.delta": _text_delta("message", "refusal", "content_index", "refusal"),
    "response.refusal.done": _text_done("message", "refusal", "content_index", "refusal", "refusal"),
    "response.reasoning_summary_text.delta": _text_delta("reasoning", "summary", "summary_index", "reasoning"),
    "response.reasoning_summary_text.done": _text_done("reasoning", "summary", "summary_index", "reasoning", "text"),
    "response.reasoning_text.delta": _text_delta("reasoning", "reasoning", "content_index", "reasoning"),
    "response.reasoning_text.done": _text_done("reasoning", "reasoning", "content_index", "reasoning", "text"),
    "response.function_call_arguments.delta": ResponsesAdapter._arguments_delta,
    "response.function_call_arguments.done": _arguments_done("arguments"),
    "response.custom_tool_call_input.delta": ResponsesAdapter._arguments_delta,
    "response.custom_tool_call_input.done": _arguments_done("input"),
    "response.mcp_call_arguments.delta": ResponsesAdapter._arguments_delta,
    "response.mcp_call_arguments.done": _arguments_done("arguments"),
    "response.code_interpreter_call_code.delta": ResponsesAdapter._arguments_delta,
    "response.code_interpreter_call_code.done": _arguments_done("code"),
    "response.apply_patch_call_operation_diff.delta": _streamed("diff", "command_index", "delta", whole=False),
    "response.apply_patch_call_operation_diff.done": _streamed("diff", "command_index", "diff", whole=True),
    "response.shell_call_command.added": _streamed("commands", "command_index", "command", whole=False),
    "response.shell_call_command.delta": _streamed("commands", "command_index", "delta", whole=False),
    "response.shell_call_command.done": _streamed("commands", "command_index", "command", whole=True),
}
