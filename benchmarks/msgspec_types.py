"""The chat chunk as msgspec Structs: only the members an adapter reads (on its own, as msgspec resolves annotations here)."""

import msgspec


class Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class Entry(msgspec.Struct):
    index: int
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[Entry] | None = None


class Choice(msgspec.Struct):
    delta: Delta
    finish_reason: str | None = None


class Chunk(msgspec.Struct):
    choices: list[Choice]
