from collections.abc import Callable
from typing import Any, final

from ._calls import ArgumentBuffer, ToolCall
from ._framing import Frame, Framer
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

class Tally:
    offset: int
    payloads: int
    progress: int
    text_chars: int
    next_number: int
    resume_point: Any

@final
class Lanes:
    @property
    def taken(self) -> int: ...
    def use(self, projection: Projection) -> None: ...
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
    def run(self, framer: Framer, chunk: Any, tally: Tally, events: list[Event], room: int, meet: Callable[[Frame], None], /) -> None: ...
    def run_frames(self, frames: list[Frame], tally: Tally, events: list[Event], room: int, meet: Callable[[Frame], None], /) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
