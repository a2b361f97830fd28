"""The recordings of a folder: which provider speaks in each, and how it is framed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import StreamError, UsageError
from ..turn import PROVIDERS, Turn

#: File suffix -> framing, content type.
SUFFIXES: Final = {
    ".sse": ("sse", "text/event-stream; charset=utf-8"),
    ".ndjson": ("ndjson", "application/x-ndjson"),
    ".jsonl": ("ndjson", "application/x-ndjson"),
    ".json": ("json-array", "application/json; charset=UTF-8"),
    ".bin": ("aws-eventstream", "application/vnd.amazon.eventstream"),
}
_NOT_A_BODY: Final = ".expect.json"


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded body. ``name`` is its path below the folder; ``provider`` is None where nothing tells."""

    name: str
    path: Path
    provider: str | None
    framing: str
    content_type: str


def find(folder: str | os.PathLike[str]) -> dict[str, Recording]:
    """All recordings below a folder, by name, in order of name.

    A folder that has a provider's name holds recordings of that provider; elsewhere the first frames tell.

    Raises:
        UsageError: it is no folder, or has no recordings.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"{os.fspath(folder)} is no folder")
    found = {recording.name: recording for recording in _found(root)}
    if not found:
        raise UsageError(f"no recordings in {os.fspath(folder)}: {', '.join(SUFFIXES)}")
    return found


def _found(root: Path) -> Iterator[Recording]:
    for path in sorted(root.rglob("*")):
        if path.suffix in SUFFIXES and not path.name.endswith(_NOT_A_BODY) and path.is_file():
            framing, content_type = SUFFIXES[path.suffix]
            folders = path.relative_to(root).parts[:-1] + (root.name,)
            provider = next((part for part in folders if part in PROVIDERS), None) or _detected(path, framing)
            yield Recording(path.relative_to(root).as_posix(), path, provider, framing, content_type)


def _detected(path: Path, framing: str) -> str | None:
    turn = Turn("auto", framing=framing)  # type: ignore[arg-type]
    with contextlib.suppress(StreamError):
        turn.feed(path.read_bytes())
    return turn.provider if turn.provider in PROVIDERS else None
