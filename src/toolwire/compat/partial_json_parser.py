"""The face of partial-json-parser 0.2: ``from toolwire.compat.partial_json_parser import loads``."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any

from .._json import MISSING
from ._closing import closed
from ._prefix import plain_prefix

__all__ = ["ALL", "Allow", "decode", "ensure_json", "loads", "parse_json"]


class Allow(IntFlag):
    """Which values may be partial; the peer's flags."""

    STR = auto()
    NUM = auto()
    ARR = auto()
    OBJ = auto()
    NULL = auto()
    BOOL = auto()
    NAN = auto()
    INFINITY = auto()
    _INFINITY = auto()

    INF = INFINITY | _INFINITY
    SPECIAL = NULL | BOOL | INF | NAN
    ATOM = STR | NUM | SPECIAL
    COLLECTION = ARR | OBJ
    ALL = ATOM | COLLECTION


ALL = Allow.ALL


def __getattr__(name: str) -> Any:
    """The flags by name; the peer's errors, which its functions raise; and its other names, which nothing here replaces."""
    if name in Allow.__members__:
        return Allow[name]
    if name in ("JSON", "JSONDecodeError", "MalformedJSON", "PartialJSON", "fix", "fix_fast"):
        return getattr(importlib.import_module("partial_json_parser"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def parse_json(json_string: str, allow_partial: int = ALL, parser: Callable[[str], Any] | None = None, use_fast_fix: bool = True) -> Any:
    """The value of JSON that may have been cut.

    Input that is good so far is read by this library, if all kinds of values may be partial and ``parser`` is not given. Of anything else, and of
    input that stops inside a number or an escape, the peer's own function says what it makes; it is imported then.

    Args:
        json_string: the text.
        allow_partial: flags of the peer's ``Allow``: which values may be partial.
        parser: makes the value of the completed text instead.
        use_fast_fix: for the peer.

    Raises:
        ValueError: the peer's errors are kinds of it.
    """
    if parser is None and int(allow_partial) & ALL == ALL and isinstance(json_string, str):
        value = _plain(json_string, words=True, fast=use_fast_fix)
        if value is not MISSING:
            return value
    import partial_json_parser as peer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return peer.parse_json(json_string, allow_partial, parser, use_fast_fix)


loads = decode = parse_json
_SPACE = " \t\r\n"


def _plain(text: str, *, words: bool | None, fast: bool) -> Any:
    """``plain_prefix``, of what the peer looks at: it drops white space at the end, in an open string, too, and loses its place where there is
    some before a value that it does not scan fast."""
    text = text.rstrip(_SPACE)
    if text[-1:].isspace() or (text[:1].isspace() and not (fast and text.lstrip()[:1] in ("[", "{"))):
        return MISSING
    return plain_prefix(text, control_characters=False, words=words)


def ensure_json(json_string: str, allow_partial: int = ALL, use_fast_fix: bool = True) -> str:
    """The text, completed: JSON with the value of ``parse_json``. The peer's own text where ``parse_json`` would ask the peer,
    and where the input stops in a word."""
    if not isinstance(json_string, str):
        raise TypeError(f"ensure_json() takes text, not {type(json_string).__name__}")
    if int(allow_partial) & ALL == ALL and _plain(json_string, words=None, fast=use_fast_fix) is not MISSING:
        with contextlib.suppress(UnicodeEncodeError):
            return closed(json_string.rstrip(_SPACE).encode(), strings=True).decode()
    import partial_json_parser as peer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return str(peer.ensure_json(json_string, allow_partial, use_fast_fix))
