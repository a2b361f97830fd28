"""Values of JSON that is not finished, by the rules of jiter's partial modes: what the parser shows, and the number at the end.

A parser leaves out an open number, since ``12`` may become ``123``; jiter shows it. In mode "on" jiter leaves out an open string.
"""

from __future__ import annotations

import re
from typing import Any

from .._json import MISSING, JSONParser

_NUMBER = re.compile(rb"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
TAIL = 5000  # bytes looked at for it: more than Python's limit of digits
_NEAR = 40  # nearly all numbers are shorter


def partial(parser: JSONParser, tail: bytes, *, strings: bool) -> Any:
    """What jiter makes of the input that ``parser`` was fed, of which ``tail`` is the end; MISSING where there is no value.

    Args:
        strings: with the open string at the end ("trailing-strings"), or without it ("on").

    Finished parts are the parser's own, and the same in the next value; the containers that are open are the caller's.
    """
    value = parser.snapshot()
    if strings and not tail[-1:].isdigit():
        return value  # no number that could end here
    path = parser.path
    if parser.complete or parser.state(path) != "open":
        return value
    if not path:
        if value is MISSING:
            return open_number(tail)
        return MISSING if type(value) is str and not strings else value
    above = value
    for step in path[:-1]:
        above = above[step]
    key: Any = path[-1]
    here = above[key] if (key in above if type(above) is dict else key < len(above)) else MISSING
    if type(here) is dict or type(here) is list or (type(here) is str and strings):
        return value
    number = MISSING if type(here) is str else open_number(tail)
    if type(here) is not str and number is MISSING:
        return value
    value, above = _own(value, path[:-1])
    if number is MISSING:
        del above[key]
    elif here is MISSING and type(above) is list:
        above.append(number)
    else:
        above[key] = number
    return value


def open_number(tail: bytes) -> Any:
    """The number at the end of the input, if it is one as it stands; else MISSING. The caller knows that no string is open."""
    near = tail[-_NEAR:]
    before = near.rstrip(b"0123456789+-.eE")
    if not before and len(tail) > _NEAR:
        near = tail[-TAIL:]
        before = near.rstrip(b"0123456789+-.eE")
    found = _NUMBER.fullmatch(near, len(before))
    if found is None or (before and before[-1:] not in b"[{:, \t\r\n"):
        return MISSING
    text, fraction, exponent = found.groups()
    return int(text) if fraction is None and exponent is None else float(found.group())


def _own(value: Any, path: tuple[str | int, ...]) -> tuple[Any, Any]:
    """A copy of the containers along the path, all else shared: the outermost and the innermost."""
    root = here = value.copy()
    for step in path:
        here[step] = here[step].copy()
        here = here[step]
    return root, here
