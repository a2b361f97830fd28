from typing import Any, Final, Literal, final

from .errors import StreamError
from .marks import Mark

@final
class _Missing:
    def __bool__(self) -> Literal[False]: ...

MISSING: Final[_Missing]

@final
class JSONParser:
    def __init__(
        self,
        *,
        max_depth: int = 512,
        max_bytes: int | None = None,
        surrogates: Literal["error", "replace", "keep"] = "error",
        duplicate_keys: Literal["last", "error"] = "last",
        allow_nan: bool = False,
        allow_control_characters: bool = False,
    ) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview | str, /) -> bool: ...
    def finish(self) -> Any: ...
    def reset(self) -> None: ...
    def snapshot(self) -> Any: ...
    def state(self, path: tuple[str | int, ...]) -> Literal["absent", "open", "complete"]: ...
    @property
    def value(self) -> Any: ...
    @property
    def complete(self) -> bool: ...
    @property
    def consumed(self) -> int | None: ...
    @property
    def offset(self) -> int: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def path(self) -> tuple[str | int, ...]: ...
    @property
    def marks(self) -> tuple[Mark, ...]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def loads(
    data: bytes | bytearray | memoryview | str,
    *,
    max_depth: int = 512,
    max_bytes: int | None = None,
    surrogates: Literal["error", "replace", "keep"] = "error",
    duplicate_keys: Literal["last", "error"] = "last",
    allow_nan: bool = False,
    allow_control_characters: bool = False,
) -> Any: ...
