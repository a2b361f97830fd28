"""The items of OpenAI Responses: which of them are calls, what is remembered of one, and arguments that stream as an object."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from ..events import Channel, ToolCall
from ._base import blank, compact_json
from ._message import Kept


def member_of(*path: str) -> Callable[[dict[str, Any]], Any]:
    """A reader of one member of an item; None where the item has no such thing."""

    def read(item: dict[str, Any]) -> Any:
        value: Any = item
        for name in path:
            value = value.get(name) if type(value) is dict else None
        return value

    return read


def _computer(item: dict[str, Any]) -> Any:
    """One action, or in newer models a batch of them."""
    action = item.get("action")
    return {"actions": item["actions"]} if action is None and item.get("actions") is not None else action


def _queries(item: dict[str, Any]) -> Any:
    queries = item.get("queries")
    return None if queries is None else {"queries": queries}


class CallKind(NamedTuple):
    """What is known of one type of item that is a call."""

    kind: Literal["json", "text"]
    client: bool
    read: Callable[[dict[str, Any]], Any]  # the arguments in the item: text, an object, or None
    extra: tuple[str, ...] = ()  # what has to be sent back, besides what all calls have
    named: bool = False  # the item has a name of its own; all others go by their type


CALLS: Mapping[str, CallKind] = {
    "function_call": CallKind("json", True, member_of("arguments"), named=True),
    "custom_tool_call": CallKind("text", True, member_of("input"), named=True),
    "shell_call": CallKind("json", True, member_of("action"), ("environment",)),
    "apply_patch_call": CallKind("json", True, member_of("operation")),
    "computer_call": CallKind("json", True, _computer, ("pending_safety_checks",)),
    "local_shell_call": CallKind("json", True, member_of("action")),
    "tool_search_call": CallKind("json", False, member_of("arguments"), ("execution",)),
    # Needs a person, whose answer is an mcp_approval_response. Nothing that a client may run.
    "mcp_approval_request": CallKind("json", False, member_of("arguments"), ("server_label",), named=True),
    "mcp_call": CallKind("json", False, member_of("arguments"), ("server_label", "approval_request_id"), named=True),
    "code_interpreter_call": CallKind("text", False, member_of("code"), ("container_id",)),
    "program": CallKind("text", False, member_of("code"), ("fingerprint",)),
    "web_search_call": CallKind("json", False, member_of("action")),
    "file_search_call": CallKind("json", False, _queries),
    "image_generation_call": CallKind("json", False, lambda item: None),
}
#: What has to be sent back with any call.
EXTRA = ("id", "caller", "namespace", "async")

#: Calls that can be written from what the deltas said: where their text goes.
_WRITTEN: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}

QUIET_ITEMS = frozenset(
    {
        "mcp_list_tools",
        "mcp_approval_response",
        "function_call_output",
        "custom_tool_call_output",
        "computer_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "tool_search_output",
        "program_output",
        "compaction",
        "item_reference",
    }
)
TEXT_ITEMS = frozenset({"message", "reasoning"})

PART: Mapping[str, Any] = {"type": True, "text": True, "refusal": True}
ITEM: Mapping[str, Any] = {
    "type": True,
    "call_id": True,
    "name": True,
    "status": True,
    "arguments": True,
    "input": True,
    "code": True,
    "action": True,
    "actions": True,
    "operation": True,
    "queries": True,
    "content": PART,
    "summary": PART,
    **dict.fromkeys(EXTRA, True),
    **{name: True for kind in CALLS.values() for name in kind.extra},
}
RESPONSE: Mapping[str, Any] = {
    "id": True,
    "status": True,
    "output": ITEM,
    "usage": True,
    "error": True,
    "incomplete_details": {"reason": True},
    "status_details": {"reason": True, "error": True},
}

#: Parts of messages and reasoning, by part type: which part it is, and where its text goes.
PARTS: Mapping[str, tuple[str, Channel, str]] = {
    "output_text": ("text", "text", "text"),
    "refusal": ("refusal", "refusal", "refusal"),
    "reasoning_text": ("reasoning", "reasoning", "text"),
    "summary_text": ("summary", "reasoning", "text"),
}


class ObjectStream:
    """Arguments that are an object of which one member streams (the diff of a patch, the commands of a shell call), written
    as JSON while they come. What stands before that member in the item's start comes before it, the rest when the item is
    done.
    """

    __slots__ = ("head", "listed", "member", "pieces")

    def __init__(self, member: str, listed: bool, given: Any) -> None:
        self.member = member
        self.listed = listed
        self.head: dict[str, Any] = {}
        self.pieces: list[list[str]] = []  # one list a string
        if type(given) is dict and member in given:
            for key, value in given.items():
                if key == member:
                    break
                self.head[key] = value

    def add(self, number: int, text: str) -> str:
        """A piece of string ``number``, as JSON text."""
        written = ""
        if not self.pieces:
            written = compact_json({**self.head, self.member: [""] if self.listed else ""})[: -3 if self.listed else -2]
            self.pieces.append([])
        elif number >= len(self.pieces):
            written = '","'
            self.pieces.append([])
        self.pieces[-1].append(text)
        return written + compact_json(text)[1:-1]

    def so_far(self, number: int) -> str:
        """String ``number`` as far as it came."""
        if not 0 <= number < len(self.pieces):
            return ""
        self.pieces[number] = ["".join(self.pieces[number])]
        return self.pieces[number][0]

    def rest(self, final: Any) -> str | None:
        """What the whole object adds to the text so far; None where it contradicts it."""
        if type(final) is not dict or any(key not in final or canonical(final[key]) != canonical(value) for key, value in self.head.items()):
            return None
        strings: Any = final.get(self.member) if self.listed else [final.get(self.member)]
        if type(strings) is not list or not all(type(each) is str for each in strings) or len(strings) < len(self.pieces):
            return None
        seen = [whole_characters("".join(pieces)) for pieces in self.pieces]
        strings = [whole_characters(each) for each in strings]
        last = strings[len(seen) - 1]
        if seen[:-1] != strings[: len(seen) - 1] or not last.startswith(seen[-1]):
            return None
        written = "".join([compact_json(last[len(seen[-1]) :])[1:], *("," + compact_json(each) for each in strings[len(seen) :])])
        others = {key: value for key, value in final.items() if key not in self.head and key != self.member}
        return written + ("]" if self.listed else "") + ("," + compact_json(others)[1:] if others else "}")


class Item:
    """One output item."""

    __slots__ = ("call", "call_id", "done", "given", "id", "index", "kept", "open", "parts", "status", "stream", "tail", "twin", "type")

    def __init__(self, type: str | None, id: str | None, index: int | None) -> None:
        self.type = type  # None: only deltas were seen so far
        self.id = id
        self.call_id: str | None = None
        self.index = index
        self.call: ToolCall | None = None
        self.open = True
        self.status: str | None = None  # the last one
        self.done = False  # status is the provider's last word so far, not a first one
        self.twin = False  # its id belongs to an earlier call
        self.parts: dict[tuple[str, int], list[str]] = {}
        self.tail: list[str] | None = None  # text of an item whose start lies before this body
        self.kept: Kept | None = None  # where the finished item stands
        self.given: Any = None  # the arguments as the item's start had them
        self.stream: ObjectStream | None = None


def written(item: Item, last: dict[str, Any]) -> dict[str, Any]:
    """An item as it goes back. ``last``: the item as its last event has it; some servers have none, then what the deltas said is written.
    Empty where there is nothing to write."""
    call = item.call
    member = _WRITTEN.get(item.type or "")
    if call is not None and member is not None:
        what = last or {"type": item.type, "name": call.name, member: call.text, **call.extra}
        return {**what, "call_id": call.id}
    if not last and item.type == "message":
        texts = {kind: whole_characters("".join(pieces)) for (kind, _), pieces in item.parts.items()}
        content = [
            {"type": "output_text", "text": text, "annotations": []} if kind == "text" else {"type": "refusal", "refusal": text} for kind, text in texts.items()
        ]
        return {"type": "message", "role": "assistant", "status": "completed", "content": content} if content else {}
    return last


def is_another(item: Item, raw: dict[str, Any]) -> bool:
    """Does a second start at the same place start something else?"""
    if raw.get("type") != item.type:
        return True
    id, call_id = blank(raw.get("id")), blank(raw.get("call_id"))
    if call_id is not None and item.call_id is not None:
        return call_id != item.call_id
    return id is not None and item.id is not None and id != item.id


def type_of_part(part: dict[str, Any]) -> str:
    """The type of the item that has this part."""
    return "message" if part.get("type") in ("output_text", "refusal") else "reasoning"


def waits_for_program(item: Item) -> bool:
    """A call made by a program of the provider's stays in progress until its result is there."""
    if item.status != "in_progress" or item.call is None:
        return False
    caller = item.call.extra.get("caller")
    return type(caller) is dict and caller.get("type") == "program"


def canonical(value: Any) -> str:
    """Equal for equal JSON, whatever the order of keys. Unlike ``==`` it tells 1 from true."""
    return json.dumps(value, sort_keys=True)


def whole_characters(text: str) -> str:
    """Deltas may be cut inside a surrogate pair; joined here."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def same_text(final: str, deltas: str) -> bool:
    """Is a final text what the deltas add up to? Halves of a surrogate pair that were cut apart count twice in the deltas."""
    return len(final) <= len(deltas) <= 2 * len(final) and whole_characters(final) == whole_characters(deltas)
