"""Google Interactions (``POST /{version}/interactions``, ``stream: true``).

The ordinary turn: ``interaction.created``; for each step ``step.start`` (a call's id and name), ``step.delta`` (text, or
fragments of argument text), ``step.stop``; ``interaction.completed``, whose ``interaction.status`` says how it went; then
``[DONE]``, which means nothing. The step's ``index`` is the key, steps may be interleaved.

What differs from it:

* Servers before June 2026 say ``interaction.start``, ``content.start``, ``content.delta``, ``content.stop`` and
  ``interaction.complete``, and send a client call whole in one delta. Both sets of names are read.
* Every event may have an ``event_id``: a body resumed after one starts with the next. Events seen before are dropped.
* ``arguments`` in ``step.start`` is a placeholder or the whole object. It counts where no fragment came, and must mean the
  same as the fragments where some did.
* The last event may list all steps: what it adds to the deltas comes out, where it disagrees the deltas stay and the call is
  not trusted.
* Steps such as ``google_search_call`` run at the provider; their arguments come whole.

``interaction.status_update`` never ends a turn, nor does a completed event that says ``in_progress`` or ``queued``. The
WebSocket flavour has other events and is not read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..events import Channel, Outcome, ToolCall
from ._base import Adapter, TurnRecord, blank, compact_json, is_index, no_arguments, outcome_of, same_json
from ._message import Kept, Part, Parts, Reader, Texts, arguments_of

if TYPE_CHECKING:
    from .._framing import Frame

#: ``idle`` and what comes after 2026 are UNKNOWN; ``requires_continuation`` and the failures are common to all providers.
STATUSES: Final[Mapping[str, Outcome]] = {"requires_action": Outcome.TOOL_CALLS, "completed": Outcome.STOP}

_NOT_ENDED = frozenset({"in_progress", "queued"})  # background work: poll for it

#: Event ids kept for finding repeats. A resume repeats what came since the last event, far less than this.
_REMEMBERED_EVENTS = 16_384

_CLIENT_CALL = "function_call"
_PLAIN_STEPS = frozenset({"model_output", "thought", "user_input", "function_result", "text", "image", "audio", "video", "document"})
_PLAIN_DELTAS = frozenset({"text_annotation_delta", "text_annotation", "image", "audio", "video", "document", "function_result"})

#: What a call's step has besides id, name and arguments, and what has to be sent back with it.
_SENT_BACK = ("signature", "server_name")
_INPUTS = ("user_input", "function_result")  # steps that the request has brought
_DELTAS = "deltas"  # of a step: what came that is neither text nor a call

_TEXT = {"type": True, "text": True}
_STEP: Mapping[str, Any] = {
    "type": True,
    "id": True,
    "name": True,
    "server_name": True,
    "arguments": True,
    "signature": True,
    "text": True,
    "content": _TEXT,
    "summary": _TEXT,
    "error": True,
}
_INTERACTION: Mapping[str, Any] = {"id": True, "status": True, "usage": True, "continuation_token": True, "steps": _STEP, "outputs": _STEP}


class _Step:
    """One step of the turn: a call, or something else."""

    __slots__ = ("call", "given", "kind", "part", "stopped")

    def __init__(self, kind: str, call: ToolCall | None, part: Part) -> None:
        self.kind = kind
        self.call = call
        self.part = part
        self.given: str | None = None  # arguments that stood in the start event, as JSON text
        self.stopped = False


class InteractionsAdapter(Adapter):
    """``google-interactions``. Terminal marker: ``interaction.completed`` with a final status."""

    PROVIDER: ClassVar[str] = "google-interactions"
    PROJECTION: ClassVar[Mapping[str, Any]] = {
        "event_type": True,
        "event_id": True,
        "index": True,
        "interaction": _INTERACTION,
        "step": _STEP,
        "content": _STEP,
        "delta": {**_STEP, "partial_arguments": True},
        "metadata": {"total_usage": True},
        **_INTERACTION,
        "object": True,
        "type": True,
        "error": True,
        "code": True,
        "message": True,
    }
    RUNS_ON_STOP: ClassVar[bool] = True
    GOOD_MEMBERS: ClassVar[frozenset[str]] = frozenset({"event_type", "interaction", "step", "delta", "status", "steps"})
    RAISES_ON_CUT: ClassVar[bool] = True
    RESUMES_BY: ClassVar[str | None] = "last_event_id"

    __slots__ = ("_final", "_goes_on", "_ids", "_parts", "_seen", "_signature", "_steps")

    def __init__(self, record: TurnRecord) -> None:
        super().__init__(record)
        self._steps: dict[int, _Step] = {}
        self._ids: set[str] = set()  # of calls
        self._parts = Parts(record)
        self._goes_on = False
        self._final: Kept | None = None  # where all steps stand once more
        self._seen: OrderedDict[str, None] = OrderedDict()  # event ids
        self._signature: str | None = None  # of a thought, until the next call

    def handle(self, payload: dict[str, Any], frame: Frame) -> None:
        record = self.record
        event_id = blank(payload.get("event_id"))
        if event_id is not None:
            if event_id in self._seen:
                record.mark("repeated_events", detail=event_id)
                return
            self._seen[event_id] = None
            if len(self._seen) > _REMEMBERED_EVENTS:
                self._seen.popitem(last=False)
        event = payload.get("event_type")
        if not isinstance(event, str):
            event = frame.event
            if payload.get("object") == "interaction" or (event == "message" and isinstance(payload.get("status"), str) and "steps" in payload):
                # A whole interaction in place of a stream: as if it stood in the last event.
                record.mark("whole_completion")
                self._completed({"interaction": payload}, frame, ())
                return
        handler = _HANDLERS.get(event)
        if handler is None:
            record.unknown(frame, event)
        else:
            handler(self, payload, frame)
        if event_id is not None:
            record.resume_point = event_id

    def at_end(self, clean: bool) -> bool:
        for step in self._steps.values():
            if not step.stopped:
                self._settle(step)
        return self.record.terminal

    def replay(self, texts: Texts, choice: int) -> list[dict[str, Any]]:
        """The steps as ``input`` of the Interactions API takes them: as the last event lists them, else as they came. A stored interaction
        needs none of them: its id goes into ``previous_interaction_id``."""
        read = Reader()
        if self._final is not None and not self._goes_on:  # it lists the steps of its own response
            steps = read.value(self._final)
            found = [step for step in steps if type(step) is dict]
        else:
            found = [_written(part, text, read) for part, text in self._parts.with_texts(texts)]
        return [step for step in found if step.get("type") not in _INPUTS]

    def goes_on(self, before: Adapter) -> None:
        assert isinstance(before, InteractionsAdapter)
        self._parts = before._parts
        self._goes_on = True

    def continuation(self) -> dict[str, Any]:
        """Of a stored interaction, whose next request brings no input. One that is not stored is asked for with the input it had."""
        token, id = self.record.extra.get("continuation_token"), self.record.response_id
        return {**({} if token is None else {"continuation_token": token}), **({} if id is None else {"previous_interaction_id": id})}

    # -- the interaction ----------------------------------------------------------------------------------------------

    def _created(self, payload: dict[str, Any], frame: Frame) -> None:
        record = self.record
        interaction = payload.get("interaction")
        id = blank(interaction.get("id")) if isinstance(interaction, dict) else None
        if id is not None and record.response_id is not None:
            if id != record.response_id:
                raise record.protocol_error(f"interaction {id[:80]!r} starts inside {record.response_id[:80]!r}")
            record.mark("message_repeated")
        record.response_id = record.response_id or id

    def _status(self, payload: dict[str, Any], frame: Frame) -> None:
        self.record.set_usage(payload.get("usage"))
        self._token(payload)

    def _completed(self, payload: dict[str, Any], frame: Frame, place: tuple[str, ...] = ("interaction",)) -> None:
        record = self.record
        interaction = payload.get("interaction")
        if not isinstance(interaction, dict):
            interaction = {}
        record.response_id = record.response_id or blank(interaction.get("id"))
        record.set_usage(interaction.get("usage"))
        self._token(interaction)
        status = blank(interaction.get("status"))
        if status in _NOT_ENDED:
            return
        for name in ("steps", "outputs"):
            steps = interaction.get(name)
            if isinstance(steps, list):
                if steps:
                    self._final = frame.raw, (*place, name)
                self._final_steps([step for step in steps if isinstance(step, dict)])
        if status is None:
            record.finish_reason("", Outcome.UNKNOWN)
        else:
            record.finish_reason(status, outcome_of(status, STATUSES))
        record.terminal = True

    def _token(self, holder: dict[str, Any]) -> None:
        token = blank(holder.get("continuation_token"))
        if token is not None:
            self.record.extra["continuation_token"] = token

    # -- steps --------------------------------------------------------------------------------------------------------

    def _step_start(self, payload: dict[str, Any], frame: Frame) -> None:
        self._start(self._index(payload), payload.get("step"), frame, "step")

    def _content_start(self, payload: dict[str, Any], frame: Frame) -> None:
        self._start(self._index(payload), payload.get("content"), frame, "content")

    def _start(self, index: int, block: Any, frame: Frame, member: str) -> None:
        record = self.record
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            record.unknown(frame, "a step without a type")
            kind, block = "", {}
        kept = frame.raw, (member,)
        if _is_call(kind):
            self._start_call(index, kind, block, kept)
            return
        self._leave(index)
        self._steps[index] = _Step(kind, None, self._parts.add(kind, channel="reasoning" if kind == "thought" else "text", kept=kept))
        if kind not in _PLAIN_STEPS and not kind.endswith("_result"):
            record.unknown(frame, kind)
            return
        self._plain_step(kind, block)

    def _plain_step(self, kind: str, block: dict[str, Any]) -> None:
        """What a step without a call may hold at its start."""
        record = self.record
        text, thought = _texts(kind, block)
        record.text(text)
        record.text(thought, "reasoning")
        if kind == "thought":
            self._thought_signature(block.get("signature"), None)
        self._error(block)

    def _start_call(self, index: int, kind: str, block: dict[str, Any], kept: Kept) -> _Step:
        record = self.record
        id, name = blank(block.get("id")), blank(block.get("name"))
        old = self._steps.get(index)
        if old is not None and old.call is not None and id is not None and id == old.call.id and name in (None, old.call.name):
            record.mark_call(old.call, "call_repeated")
            self._placeholder(old, block)
            return old
        reused = self._leave(index)
        client = kind == _CLIENT_CALL
        repeated = id is not None and id in self._ids
        call = record.start(id=None if repeated else id, name=name or (None if client else kind), runs_on="client" if client else "provider")
        if repeated:
            record.mark_call(call, "id_repeated", detail=id or "")
        elif id is not None:
            self._ids.add(id)
        if reused:
            record.mark_call(call, "index_reused")
        step = self._steps[index] = _Step(kind, call, self._parts.add(kind, call=call, kept=kept))
        self._extra(call, block)
        if self._signature is not None and client:
            call.extra["thought_signature"] = self._signature
            self._signature = None
        self._placeholder(step, block)
        return step

    def _leave(self, index: int) -> bool:
        """A step starts where there was one. Was it a call?"""
        old = self._steps.get(index)
        if old is None or old.call is None:
            return False
        if not old.stopped:
            self._settle(old)
            self.record.doubt(old.call, "args_incomplete", f"step {index} was started again before it was stopped")
        return True

    def _placeholder(self, step: _Step, block: dict[str, Any]) -> None:
        """``arguments`` of a start event: nothing, or the whole."""
        arguments = block.get("arguments")
        if no_arguments(arguments):
            return
        call = step.call
        assert call is not None
        if self.record.duplicate_keys and not isinstance(arguments, str):
            self.record.doubt(call, "args_duplicate_key", "the payload with this object holds a key twice")
        given = arguments if isinstance(arguments, str) else compact_json(arguments)
        if step.given is not None and not same_json(step.given, given):
            self.record.doubt(call, "args_conflict", "two start events with different arguments")
        step.given = given

    def _extra(self, call: ToolCall, block: dict[str, Any]) -> None:
        for member in _SENT_BACK:
            value = blank(block.get(member))
            if value is not None:
                call.extra[member] = value

    def _stop(self, payload: dict[str, Any], frame: Frame) -> None:
        self.record.set_usage(payload.get("usage"))
        step = self._steps.get(self._index(payload))
        if step is None:
            self.record.unknown(frame, "the stop of a step that never started")
            return
        if not step.stopped:
            step.stopped = True
            self._settle(step)
            if step.call is not None:
                self.record.end(step.call)

    def _settle(self, step: _Step) -> None:
        """No more fragments come: what the start event said counts, or has to agree."""
        call, given = step.call, step.given
        if call is None or given is None:
            return
        step.given = None
        if not call.text:
            self.record.whole(call, given)
        elif not same_json(call.text, given):
            self.record.doubt(call, "args_conflict", "the arguments at the step's start differ from the deltas")

    # -- deltas -------------------------------------------------------------------------------------------------------

    def _delta(self, payload: dict[str, Any], frame: Frame) -> None:
        record = self.record
        delta = payload.get("delta")
        kind = delta.get("type") if isinstance(delta, dict) else None
        if not isinstance(delta, dict) or not isinstance(kind, str):
            index = payload.get("index", 0)
            step = self._steps.get(index) if is_index(index) else None
            record.unreadable(None if step is None else step.call, delta)
            record.unknown(frame, "a delta without a type")
            return
        index = self._index(payload)
        step = self._steps.get(index)
        if kind == "arguments_delta":
            self._fragment(index, step, delta, frame)
        elif _is_call(kind):
            self._whole_call(index, step, kind, delta, frame)
        elif kind == "text":
            text = delta.get("text")
            if isinstance(text, str):
                record.text(text, "reasoning" if step is not None and step.kind == "thought" else "text")
        elif kind == "thought_summary":
            record.text(_joined(delta.get("content")) or _joined(delta.get("text")), "reasoning")
        elif kind == "thought_signature":
            self._thought_signature(delta.get("signature"), step)
        elif step is not None and (kind in _PLAIN_DELTAS or kind.endswith("_result")):
            at = len(record.text_so_far(step.part.channel or "text"))
            step.part.members.setdefault(_DELTAS, []).append((at, (frame.raw, ("delta",))))
        elif kind not in _PLAIN_DELTAS and not kind.endswith("_result"):
            record.unknown(frame, kind)
        metadata = payload.get("metadata")
        if isinstance(metadata, dict):
            record.set_usage(metadata.get("total_usage"))

    def _fragment(self, index: int, step: _Step | None, delta: dict[str, Any], frame: Frame) -> None:
        """A fragment of argument text."""
        record = self.record
        if step is None:
            raise record.protocol_error(f"arguments for step {index}, which never started")
        call = step.call
        if call is None:
            raise record.protocol_error(f"arguments for step {index}, which is no call ({step.kind[:40]!r})")
        self._extra(call, delta)
        text = delta.get("arguments")
        if text is None:
            text = delta.get("partial_arguments")  # the field's name in SDK 2.0.0
        if no_arguments(text):
            return
        if step.stopped:
            record.doubt(call, "args_ambiguous", f"a delta came after step {index} was stopped")
        if isinstance(text, str):
            record.arguments(call, text)
        else:
            self._whole_arguments(call, text)

    def _whole_call(self, index: int, step: _Step | None, kind: str, delta: dict[str, Any], frame: Frame) -> None:
        """A call in one delta: a client call under the older names, any call that the provider runs."""
        record = self.record
        id, name = blank(delta.get("id")), blank(delta.get("name"))
        if step is None or step.call is None or (id is not None and step.call.id is not None and id != step.call.id):
            step = self._start_call(index, kind, {"id": id, "name": name}, (frame.raw, ("delta",)))
        call = step.call
        assert call is not None
        if kind != step.kind:
            record.doubt(call, "args_conflict", f"a {kind[:40]} delta in a {step.kind[:40]} step")
        if step.stopped:
            record.doubt(call, "args_ambiguous", f"a delta came after step {index} was stopped")
        if call.id is None and id is not None and id not in self._ids:
            call.id = id
            self._ids.add(id)
        if name is not None and name != call.name:
            if call.name is None:
                record.named(call, name)
            elif call.runs_on == "client":
                record.doubt(call, "args_conflict", "the step's start and its delta have different names")
        self._extra(call, delta)
        arguments = delta.get("arguments")
        if not no_arguments(arguments):
            self._whole_arguments(call, arguments)

    def _whole_arguments(self, call: ToolCall, arguments: Any) -> None:
        """Arguments that came whole, for the first time or once more."""
        record = self.record
        text = arguments if isinstance(arguments, str) else compact_json(arguments)
        if record.duplicate_keys and not isinstance(arguments, str):
            record.doubt(call, "args_duplicate_key", "the payload with this object holds a key twice")
        if not call.complete:
            record.whole(call, text)
        elif same_json(call.text, text):
            record.mark_call(call, "args_repeated")
        else:
            record.doubt(call, "args_conflict", "two different arguments objects came for one call")

    def _thought_signature(self, signature: Any, step: _Step | None) -> None:
        """A thought goes back as a step of its own, with its signature; the call it led to keeps a copy."""
        signature = blank(signature)
        if signature is not None:
            if step is not None:
                step.part.members["signature"] = signature
            self._signature = signature
            self.record.extra.setdefault("thought_signatures", []).append(signature)

    def _error(self, block: dict[str, Any]) -> None:
        """A model output may be an error (``google.rpc.Status``)."""
        error = block.get("error")
        if isinstance(error, dict) and error:
            self.record.fail(error, code=error.get("code"), message=blank(error.get("message")) or compact_json(error))

    def _index(self, payload: dict[str, Any]) -> int:
        index = payload.get("index", 0)  # JSON made from protobuf leaves out a zero
        if not is_index(index):
            raise self.record.protocol_error(f"a step's index is {str(index)[:40]!r}")
        return index

    # -- the provider's last word -------------------------------------------------------------------------------------

    def _final_steps(self, steps: list[dict[str, Any]]) -> None:
        """All steps once more, as the last event lists them."""
        texts = {"text": "", "reasoning": ""}
        by_id = {call.id: call for call in self.record.calls if call.id is not None}
        nameless = [call for call in self.record.calls if call.id is None]
        for step in steps:
            kind = step.get("type")
            if not isinstance(kind, str):
                continue
            if _is_call(kind):
                self._final_call(kind, step, by_id, nameless)
            elif kind in ("model_output", "thought", "text"):
                text, thought = _texts(kind, step)
                texts["text"] += text
                texts["reasoning"] += thought
                self._error(step)
        channels: tuple[Channel, ...] = ("text", "reasoning")
        for channel in channels:
            text, so_far = texts[channel], self.record.text_so_far(channel)
            if text.startswith(so_far):
                self.record.text(text[len(so_far) :], channel)
            elif text:
                self.record.mark("text_conflict", detail=channel)

    def _final_call(self, kind: str, step: dict[str, Any], by_id: dict[str, ToolCall], nameless: list[ToolCall]) -> None:
        record = self.record
        id = blank(step.get("id"))
        name = blank(step.get("name")) or (None if kind == _CLIENT_CALL else kind)
        call = by_id.get(id) if id is not None else None
        if call is None:  # ids are blank where the interaction is not stored: then order and name tell
            call = next((one for one in nameless if one.name == name), None)
            if call is not None:
                nameless.remove(call)
        if call is None:
            call = record.start(id=id, name=name, runs_on="client" if kind == _CLIENT_CALL else "provider")
            record.mark_call(call, "args_final_only")
            self._extra(call, step)
            if step.get("arguments") is not None:
                self._whole_arguments(call, step["arguments"])
            record.end(call)
            return
        self._extra(call, step)
        if name is not None and call.name is not None and name != call.name:
            record.doubt(call, "args_conflict", "the final steps give the call another name")
        arguments = step.get("arguments")
        if arguments is None or (no_arguments(arguments) and not call.text):
            return
        text = arguments if isinstance(arguments, str) else compact_json(arguments)
        if not same_json(call.text, text):
            if call.complete:
                record.doubt(call, "args_conflict", "the final steps differ from the deltas")
            else:
                record.whole(call, text)


def _written(part: Part, text: str, read: Reader) -> dict[str, Any]:
    """One step as it goes back: its start, and what the deltas made of it."""
    call = part.call
    step = read.object(part.kept)
    if call is not None:
        kept = {key: call.extra[key] for key in _SENT_BACK if key in call.extra}
        step = {**step, **kept, "type": part.kind, "name": call.name, "arguments": arguments_of(call)}
        if part.kind != _CLIENT_CALL and step["name"] == part.kind:
            del step["name"]  # it has none of its own
        if not call.id_is_synthetic:
            step["id"] = call.id
        return step
    if part.kind == "text":  # the older names have no steps
        return {**step, "text": text}
    content: list[dict[str, Any]] = []
    shown = 0
    for at, kept_delta in part.members.get(_DELTAS, ()):
        delta = read.object(kept_delta)
        if str(delta.get("type", "")).endswith("_result"):
            step.update(delta)
            continue
        if text[shown : at - part.start]:
            content.append({"type": "text", "text": text[shown : at - part.start]})
        shown = at - part.start
        content.append(delta)
    if text[shown:]:
        content.append({"type": "text", "text": text[shown:]})
    if content:
        step["summary" if part.kind == "thought" else "content"] = content
    if "signature" in part.members:
        step["signature"] = part.members["signature"]
    return step


def _is_call(kind: str) -> bool:
    """Is this type of a step or delta a call? All but ``function_call`` run at the provider, new ones included."""
    return kind.endswith("_call")


def _texts(kind: str, block: dict[str, Any]) -> tuple[str, str]:
    """Text and thought summary of a step."""
    if kind == "thought":
        return "", _joined(block.get("summary")) or _joined(block.get("content"))
    if kind == "model_output":
        return _joined(block.get("content")), ""
    return (_joined(block.get("text")), "") if kind == "text" else ("", "")


def _joined(content: Any) -> str:
    """The text of a string, a content object, or a list of them."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    return "".join(item["text"] for item in content if isinstance(item, dict) and isinstance(item.get("text"), str))


_HANDLERS: Final[Mapping[str, Callable[[InteractionsAdapter, dict[str, Any], Frame], None]]] = {
    "interaction.created": InteractionsAdapter._created,
    "interaction.start": InteractionsAdapter._created,
    "interaction.status_update": InteractionsAdapter._status,
    "step.start": InteractionsAdapter._step_start,
    "content.start": InteractionsAdapter._content_start,
    "step.delta": InteractionsAdapter._delta,
    "content.delta": InteractionsAdapter._delta,
    "step.stop": InteractionsAdapter._stop,
    "content.stop": InteractionsAdapter._stop,
    "interaction.completed": InteractionsAdapter._completed,
    "interaction.complete": InteractionsAdapter._completed,
}
