"""What a message that is sent back is made of: its parts in order, as far as neither calls nor texts hold them.

The text itself stays in the turn's channels; a part only knows where its own begins. So a part costs nothing while it grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._json import loads
from ..errors import UsageError

if TYPE_CHECKING:
    from ..events import Channel, ToolCall
    from ._base import TurnRecord

#: Text by (choice, channel), as ``TurnResult.texts`` has it.
Texts: TypeAlias = Mapping[tuple[int, str], str]
#: A payload and a place in it.
Kept: TypeAlias = tuple[bytes, tuple[str | int, ...]]


class Part:
    """One block, part or step.

    Attributes:
        kind: the protocol's own word for it.
        channel: where its text is, or None.
        start: where in that channel its text begins.
        call: the call that it is, or None.
        members: what else it has, under the protocol's names.
        kept: the payload that it stands in as it came, and where in it. Only ``value`` reads it.
    """

    __slots__ = ("call", "channel", "choice", "kept", "kind", "members", "start")

    def __init__(self, kind: str, channel: Channel | None, choice: int, start: int, call: ToolCall | None, members: dict[str, Any], kept: Kept | None) -> None:
        self.kept = kept
        self.kind = kind
        self.channel = channel
        self.choice = choice
        self.start = start
        self.call = call
        self.members = members

    def value(self, read: Reader) -> dict[str, Any]:
        """The part as its payload has it, with its ``members``."""
        return {**read.object(self.kept), **self.members}


class Parts:
    """The parts of one response, in order of first sight."""

    __slots__ = ("_all", "_latest", "_record")

    def __init__(self, record: TurnRecord) -> None:
        self._record = record
        self._all: list[Part] = []
        self._latest: dict[tuple[int, Channel], Part] = {}

    def add(
        self,
        kind: str,
        *,
        channel: Channel | None = None,
        choice: int = 0,
        call: ToolCall | None = None,
        members: dict[str, Any] | None = None,
        kept: Kept | None = None,
    ) -> Part:
        """A part begins. Text of its channel is its own until another part of that channel begins."""
        start = 0 if channel is None else len(self._record.text_so_far(channel, choice))
        part = Part(kind, channel, choice, start, call, {} if members is None else members, kept)
        self._all.append(part)
        if channel is not None:
            self._latest[choice, channel] = part
        return part

    def latest(self, channel: Channel, choice: int = 0) -> Part | None:
        """The part that text of this channel goes to."""
        return self._latest.get((choice, channel))

    def last(self, choice: int = 0) -> Part | None:
        """The last part of this choice."""
        return next((part for part in reversed(self._all) if part.choice == choice), None)

    def with_texts(self, texts: Texts, choice: int = 0) -> list[tuple[Part, str]]:
        """Each part of this choice with its text."""
        ends: dict[Channel, int] = {}
        found: list[tuple[Part, str]] = []
        for part in reversed(self._all):
            if part.choice != choice:
                continue
            text = ""
            if part.channel is not None:
                whole = texts.get((choice, part.channel), "")
                text = whole[part.start : ends.get(part.channel, len(whole))]
                ends[part.channel] = part.start
            found.append((part, text))
        found.reverse()
        return found


def arguments_of(call: ToolCall) -> Any:
    """The arguments as a value. Raises UsageError where they are no JSON: such a call can not be sent back as an object."""
    text = call.text
    if not text.strip():
        return {}
    try:
        return loads(text, surrogates="replace")
    except ValueError as error:
        raise UsageError(f"the arguments of call {call.key} ({call.name}) can not be sent back as an object: {error}") from None


class Reader:
    """Reads payloads that were kept as they came; each of them once, whatever number of parts stand in it."""

    __slots__ = ("_read",)

    def __init__(self) -> None:
        self._read: dict[int, Any] = {}

    def value(self, kept: Kept) -> Any:
        """What stands at that place of a payload; None where nothing does."""
        raw, path = kept
        if id(raw) not in self._read:
            self._read[id(raw)] = loads(raw, surrogates="replace")
        value = self._read[id(raw)]
        for key in path:
            try:
                value = value[key]
            except (LookupError, TypeError):
                return None
        return value

    def object(self, kept: Kept | None) -> dict[str, Any]:
        """The same where an object is expected: empty where there is none. The caller's own."""
        value = None if kept is None else self.value(kept)
        return dict(value) if type(value) is dict else {}
