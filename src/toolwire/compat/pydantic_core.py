"""The face of ``pydantic_core.from_json`` (2.x), which is jiter's under another name."""

from __future__ import annotations

from typing import Any, Literal

from .jiter import from_json as _from_json

__all__ = ["from_json"]


def from_json(
    data: str | bytes | bytearray,
    *,
    allow_inf_nan: bool = True,
    cache_strings: bool | Literal["all", "keys", "none"] = True,
    allow_partial: bool | Literal["off", "on", "trailing-strings"] = False,
) -> Any:
    """Parse JSON, whole or, with ``allow_partial``, as far as it has come; see ``toolwire.compat.jiter.from_json``.

    Args:
        data: text or UTF-8.
        allow_inf_nan: ``NaN``, ``Infinity`` and ``-Infinity`` are numbers.
        cache_strings: means nothing here.
        allow_partial: jiter's ``partial_mode``.

    Raises:
        ValueError: in jiter's words.
    """
    if isinstance(data, str):
        raw = data.encode()
    elif isinstance(data, bytes | bytearray):
        raw = bytes(data)
    else:  # bytes() takes a number, too
        raise TypeError("Expected bytes, bytearray or str")
    return _from_json(raw, allow_inf_nan=allow_inf_nan, cache_mode=cache_strings, partial_mode=allow_partial)
