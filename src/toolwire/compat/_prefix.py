"""The part of partial JSON on which all parsers agree: input that is good so far and does not stop inside an escape or a number."""

from __future__ import annotations

import re
from typing import Any

from .._json import MISSING, JSONParser, in_scalar, open_number
from ..errors import StreamError

#: Half an escape, or a high surrogate whose partner has not come, behind an odd number of backslashes.
_HALF = re.compile(r"(\\+)(?:u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2})?\Z")
_WORD = re.compile(r"(?<![^\[:,\s])[A-Za-z]+\Z")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf")}
_NEAR = 16


def plain_prefix(text: str, *, control_characters: bool, words: bool | None) -> Any:
    """The value of such input; MISSING where it is another, so that the peer's own code has to say what it makes of it.

    Args:
        control_characters: raw ones may stand in strings.
        words: a word at the end, or half of one, stands for the whole; or is left out; or (None) is another input.
    """
    if "\ud800" <= text[-1:] <= "\udbff":
        return MISSING  # the parser waits for the other half, the peer does not
    parser = JSONParser(allow_nan=True, surrogates="keep", allow_control_characters=control_characters)
    try:
        if parser.feed(text):
            return parser.finish()
    except StreamError:
        return MISSING
    path: tuple[Any, ...] = parser.path
    value = parser.snapshot()
    if parser.state(path) != "open":
        return value
    above = here = value
    for step in path:
        above = here
        here = here[step] if (step in here if type(here) is dict else step < len(here)) else MISSING
    near = text[-_NEAR:]
    if path and here is not MISSING and in_scalar(parser):
        return MISSING  # a key that comes again
    if type(here) is dict or type(here) is list:
        return value
    if type(here) is str:
        half = _HALF.search(near)
        return MISSING if half is not None and len(half[1]) % 2 else value
    if here is not MISSING:
        return MISSING  # a key that comes again
    last = _WORD.search(near)
    if last is None:
        try:
            last_value = open_number(parser)
        except ValueError:  # more digits than Python converts
            return MISSING
    elif words:
        last_value = next((meant for word, meant in _WORDS.items() if word.startswith(last[0])), MISSING)
    else:
        return value if path and words is not None else MISSING
    if last_value is MISSING or not path:
        return last_value
    if type(above) is dict:
        above[path[-1]] = last_value
    else:
        above.append(last_value)
    return value
