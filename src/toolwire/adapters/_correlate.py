"""Which call does a fragment belong to? The correlation algorithm of OpenAI-shaped chat streams.

In the protocol as OpenAI speaks it the index decides. Fifty servers have habits: no index, index 0 for every call, a new id
on each fragment, the name on each fragment, whole calls sent twice. One algorithm covers them, in the order id, index, name;
what it can not decide is never guessed: every call the fragment could belong to becomes ambiguous, and the gate refuses.

A *fragment* is one entry of ``tool_calls``. Blank ids and names count as absent, and so does the id "null".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from .._calls import ArgumentBuffer
from ..events import ToolCall
from ._base import TurnRecord, blank, compact_json, is_index


class Slot:
    """One call, and what its fragments were known by."""

    __slots__ = ("aliases", "call", "growing", "index", "resend", "whole")

    def __init__(self, call: ToolCall, index: int | None, id: str | None) -> None:
        self.call = call
        self.index = index
        self.aliases: tuple[str, ...] = (id,) if id else ()
        self.resend: ArgumentBuffer | None = None  # the call is being sent once more: compared at the end
        self.whole = False  # the arguments came as one object
        self.growing = 0  # length of a text that may be one of growing snapshots: the first piece, and what extended it as one


class Correlator:
    """The calls of one choice."""

    __slots__ = ("_by_id", "_by_index", "_copies", "choice", "record", "slots")

    def __init__(self, record: TurnRecord, choice: int) -> None:
        self.record = record
        self.choice = choice
        self.slots: list[Slot] = []
        self._by_index: dict[int, Slot] = {}  # the latest call at each index
        self._by_id: dict[str, list[Slot]] = {}
        self._copies: list[tuple[Slot, Slot]] | None = None  # (first, second): the same name at the same index, without ids

    # -- the hot path -------------------------------------------------------------------------------------------------

    def plain(self, index: Any, text: Any, path: tuple[bytes | int, ...]) -> bool:
        """The ordinary continuation: a known index, text, nothing else. True if that is what it was."""
        if type(index) is not int or type(text) is not str:
            return False
        slot = self._by_index.get(index)
        if slot is None or slot.resend is not None or slot.whole:
            return False
        self._add_text(slot, text, path)
        return True

    # -- the algorithm ------------------------------------------------------------------------------------------------

    def fragment(self, *, index: Any, id: Any, name: Any, arguments: Any, kind: str = "json", extra: dict[str, Any] | None = None) -> None:
        """Take one fragment."""
        index = index if is_index(index) else None
        id = str(id) if is_index(id) else blank(id)
        id = None if id == "null" else id
        name = blank(name)
        starts = name is not None and _starts_value(arguments)
        found = self._find(index, id, name, starts, arguments)
        if isinstance(found, Slot):
            slot = found
            self._learn(slot, index, id, name)
        elif found == "new":
            slot = self._open(index, id, name, kind)
        elif found == "nothing":
            if extra and self.slots:
                _merge(self.slots[-1].call.extra, extra)
            return
        else:
            self._ambiguous(found, arguments)
            return
        if extra:
            _merge(slot.call.extra, extra)
        self._take(slot, name, arguments, starts)

    def _find(self, index: int | None, id: str | None, name: str | None, starts: bool, arguments: Any) -> Slot | Literal["new", "nothing"] | list[Slot]:
        """The slot to continue, "new", "nothing" (a fragment that says nothing about any call), or the slots in doubt."""
        at_index = self._by_index.get(index) if index is not None else None
        if id is not None and id in self._by_id:
            same = self._by_id[id]
            if index is not None:
                for slot in same:
                    if slot.index == index or (slot.index is None and at_index is None):
                        return slot if name is None or slot.call.name in (None, name) else [slot]
                if name is not None:
                    return "new"  # the same id for another call
                if at_index is not None:
                    return [at_index, *same]
                return same[0] if len(same) == 1 else same
            named = [s for s in same if name is None or s.call.name in (None, name)]
            return named[0] if len(named) == 1 else (named or same)
        if id is not None:
            if at_index is None:
                return "new"
            known = at_index.call.name
            if not at_index.aliases:  # its id comes late
                if name is None or known is None or (name == known and not (starts and self._done(at_index))):
                    return at_index
                return "new" if name == known or self._done(at_index) else [at_index]
            if name is None:
                return at_index  # a new id on each fragment: the first one counts
            if known is None:
                return at_index if not self._done(at_index) else "new"
            if name != known or starts or self._done(at_index):
                return "new"
            return [at_index]
        if at_index is not None:
            known = at_index.call.name
            if name is None or known is None:
                return at_index
            if name == known:
                if starts and self._done(at_index):
                    return "new" if not at_index.aliases else at_index
                return at_index
            return "new" if self._done(at_index) else [at_index]
        if name is not None:
            return "new"
        if arguments is None or arguments == "":
            return "nothing"
        if index is not None:
            return "new"  # text at an index never seen: a call whose name may still come
        running = [s for s in self.slots if not self._done(s)]
        if len(running) == 1:
            return running[0]
        return running or "new"

    @staticmethod
    def _done(slot: Slot) -> bool:
        """Is the value complete? Used to correlate only, never as a permission."""
        return slot.whole or (len(slot.call._buffer) > 0 and slot.call.complete)

    def _open(self, index: int | None, id: str | None, name: str | None, kind: str) -> Slot:
        taken = id is not None and id in self._by_id
        call = self.record.start(id=None if taken else id, kind="text" if kind == "text" else "json", choice=self.choice)
        slot = Slot(call, index, id)
        if taken:
            self.record.mark_call(call, "id_repeated", detail=id or "")
        if index is None:
            self.record.mark_call(call, "index_missing")
        else:
            first = self._by_index.get(index)
            if first is not None:
                self.record.mark_call(call, "index_reused")
                if id is None and name is not None and first.call.name == name:
                    if self._copies is None:
                        self._copies = []
                    self._copies.append((first, slot))
            self._by_index[index] = slot
        if id is not None:
            self._by_id.setdefault(id, []).append(slot)
        self.slots.append(slot)
        if name is not None:
            self.record.named(call, name)
        return slot

    def _learn(self, slot: Slot, index: int | None, id: str | None, name: str | None) -> None:
        if id is not None and id not in slot.aliases:
            if slot.aliases:
                self.record.mark_call(slot.call, "id_changed", detail=id)
            else:
                slot.call.id = id
            if len(slot.aliases) < 64:  # a new id on each of a million fragments is not remembered each
                slot.aliases += (id,)
                self._by_id.setdefault(id, []).append(slot)
        if index is not None and slot.index is None:
            slot.index = index
            self._by_index.setdefault(index, slot)
        if name is not None and slot.call.name is None:
            if len(slot.call._buffer):
                self.record.mark_call(slot.call, "name_late")
            self.record.named(slot.call, name)

    def _ambiguous(self, slots: Iterable[Slot], arguments: Any) -> None:
        seen = arguments if isinstance(arguments, str) else ""
        for slot in slots:
            self.record.doubt(slot.call, "args_ambiguous", f"a fragment could belong to more than one call: {seen[:80]!r}")

    # -- argument text ------------------------------------------------------------------------------------------------

    def _take(self, slot: Slot, name: str | None, arguments: Any, starts: bool) -> None:
        if slot.resend is None and starts and self._done(slot):
            # The call starts again after it was whole: the same text is a re-send, any other a contradiction.
            slot.resend = ArgumentBuffer(max_chars=self.record.limits.max_argument_chars, json=False)
        if arguments is None or arguments == "":
            return
        if slot.resend is not None:
            self.record.touched += 1  # nothing to see yet, but plain pieces of this call are no longer plain
            slot.resend.append(arguments if isinstance(arguments, str) else compact_json(arguments))
        elif isinstance(arguments, str):
            if slot.whole:
                if arguments.strip():
                    self.record.doubt(slot.call, "args_conflict", "argument text after the arguments came as an object")
            else:
                self._add_text(slot, arguments)
        elif isinstance(arguments, (dict, list)):
            if slot.whole or len(slot.call._buffer):
                self.record.doubt(slot.call, "args_conflict", "a second argument object, or one after argument text")
            else:
                slot.whole = True
                self.record.mark_call(slot.call, "args_as_object")
                self.record.whole_object(slot.call, arguments)
        else:
            self.record.doubt(slot.call, "args_conflict", f"arguments are neither text nor an object: {arguments!r}")

    def _add_text(self, slot: Slot, text: str, path: tuple[bytes | int, ...] | None = None) -> None:
        """Append text, unless it repeats what is there: growing snapshots, or the whole text once more.

        Both are taken for what they are only where appending could never be valid JSON: a fragment that starts like the
        text so far may be an ordinary fragment.
        """
        length = len(slot.call._buffer)
        if text and text[0] in "{[" and len(text) >= length > 0 and self.record.profile != "strict" and slot.call.kind == "json":
            so_far = slot.call.text
            again = len(text) == len(so_far) and slot.call.complete
            # Growing snapshots grow from the second piece on, without exception: after an ordinary fragment it is none.
            if (again or slot.growing == length) and text.startswith(so_far) and slot.call._buffer.rejects(text):
                self.record.mark_call(slot.call, "args_repeated" if again else "args_cumulative")
                if len(text) > len(so_far):
                    self.record.arguments(slot.call, text[len(so_far) :])
                    slot.growing = len(slot.call._buffer)
                return
        elif slot.call._marked and "args_cumulative" in slot.call._mark_list and text.strip():
            self.record.doubt(slot.call, "args_conflict", "a piece that does not extend the growing argument text")
        if path is None or slot.call._marked:
            self.record.arguments(slot.call, text)
        else:
            self.record.plain_arguments(slot.call, text, path, no_value=True)
        if length == 0:
            slot.growing = len(slot.call._buffer)

    def settle(self) -> None:
        """The end: judge re-sends and copies."""
        for slot in self.slots:
            if slot.resend is not None:
                slot.resend.finish()
                if slot.resend.text.strip() == slot.call.text.strip():
                    self.record.mark_call(slot.call, "call_repeated")
                else:
                    self.record.doubt(slot.call, "args_conflict", f"the call was sent again with other arguments: {slot.resend.text[:80]!r}")
        for first, second in self._copies or ():
            if first.call.text.strip() == second.call.text.strip():
                self.record.doubt(second.call, "already_released", f"the same as call {first.call.key}, without an id that tells them apart")


def _starts_value(arguments: Any) -> bool:
    if isinstance(arguments, str):
        return arguments.lstrip(" \t\r\n")[:1] in ("{", "[")
    return isinstance(arguments, (dict, list))


def _merge(extra: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        known = extra.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        else:
            extra[key] = value
