from typing import Any, final

from ._calls import ArgumentBuffer, ToolCall
from ._framing import Frame
from ._projection import Projection
from .events import Channel, Event

@final
class TextDelta:
    text: str
    channel: Channel
    choice: int
    def __init__(self, text: str, channel: Channel = "text", choice: int = 0) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class ArgumentsDelta:
    call: ToolCall
    text: str
    def __init__(self, call: ToolCall, text: str) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Lanes:
    next_number: int
    def __init__(self, projection: Projection) -> None: ...
    @property
    def chars(self) -> int: ...
    @property
    def text_chars(self) -> int: ...
    @property
    def taken(self) -> int: ...
    def clear(self) -> None: ...
    def learn(
        self,
        frame: Frame,
        path: tuple[bytes | int, ...],
        buffer: ArgumentBuffer,
        call: ToolCall | None,
        channel: Channel | None,
        choice: int,
        also: list[str] | None,
        no_value: bool,
    ) -> None: ...
    def take(self, frames: list[Frame], i: int, events: list[Event], room: int) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
