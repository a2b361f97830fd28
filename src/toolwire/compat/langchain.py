"""The face of ``langchain_core.utils.json.parse_partial_json`` (1.x)."""

from __future__ import annotations

from typing import Any

from .._json import MISSING
from ._prefix import plain_prefix

__all__ = ["parse_partial_json"]


def parse_partial_json(s: str, *, strict: bool = False) -> Any:
    """The value of JSON that may have been cut, as LangChain makes it.

    Input that is good so far is read by this library. Of anything else, and of input that stops inside an escape or a number, LangChain's own
    function says what it makes; it is imported then.

    Args:
        s: the text.
        strict: no raw control characters in strings.

    Raises:
        json.JSONDecodeError: as LangChain does.
    """
    value = plain_prefix(s, control_characters=not strict, words=False) if isinstance(s, str) else MISSING
    if value is not MISSING:
        return value
    from langchain_core.utils.json import parse_partial_json as peer  # type: ignore[import-not-found, unused-ignore]

    return peer(s, strict=strict)
