"""The face of jiter 0.19: ``from toolwire.compat.jiter import from_json``, and ``GrowingJSON`` for buffers that grow.

jiter itself need not be installed. What differs is listed in docs/partial-json.md.
"""

from __future__ import annotations

import decimal
import json
import re
import sys
import threading
import unicodedata
from typing import Any, Literal, TypeAlias

from .._json import MISSING, Growing, JSONParser, loads, partial
from ..errors import StreamError, TruncatedJSON, UsageError
from ._closing import TOKEN, closed

__all__ = ["GrowingJSON", "LosslessFloat", "cache_clear", "cache_usage", "from_json"]

CacheMode: TypeAlias = Literal[True, False, "all", "keys", "none"]
PartialMode: TypeAlias = Literal[True, False, "off", "on", "trailing-strings"]
FloatMode: TypeAlias = Literal["float", "decimal", "lossless-float"]

_DEPTH = 201  # as jiter
_OFF, _ON, _STRINGS = range(3)
_PARTIAL: dict[Any, int] = {False: _OFF, "off": _OFF, True: _ON, "on": _ON, "trailing-strings": _STRINGS}
_CACHE = (True, False, "all", "keys", "none")


class LosslessFloat:
    """A number with a fraction or an exponent, in the digits that it came in."""

    __slots__ = ("_text",)

    def __init__(self, json_float: bytes) -> None:
        value = from_json(json_float)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("expected value at line 1 column 1")
        self._text = json_float.decode()

    def as_decimal(self) -> decimal.Decimal:
        """The exact value."""
        return decimal.Decimal(self._text)

    def __float__(self) -> float:
        return float(self._text)

    def __bytes__(self) -> bytes:
        return self._text.encode()

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"LosslessFloat({self._text})"


def from_json(
    json_data: bytes,
    /,
    *,
    allow_inf_nan: bool = True,
    cache_mode: CacheMode = "all",
    partial_mode: PartialMode = False,
    catch_duplicate_keys: bool = False,
    float_mode: FloatMode = "float",
) -> Any:
    """Parse JSON, whole or, with ``partial_mode``, as far as it has come.

    Args:
        json_data: UTF-8.
        allow_inf_nan: ``NaN``, ``Infinity`` and ``-Infinity`` are numbers.
        cache_mode: means nothing here.
        partial_mode: "off"; "on": input that ends early gives what is finished and the number at the end; "trailing-strings": and the open
            string as far as it came.
        catch_duplicate_keys: a key that its object has is an error.
        float_mode: what numbers with a fraction or exponent become.

    Raises:
        ValueError: in jiter's words.
    """
    mode = _checked(cache_mode, partial_mode, float_mode)
    data = bytes(json_data) if isinstance(json_data, bytearray) else json_data
    if not isinstance(data, bytes):
        raise TypeError(f"from_json() takes bytes, not {type(data).__name__}")
    keys: Any = "error" if catch_duplicate_keys else "last"
    if mode == _OFF:
        try:
            value = loads(data, max_depth=_DEPTH, allow_nan=allow_inf_nan, duplicate_keys=keys)
        except StreamError as error:
            raise _as_jiter(error, data, mode) from None
        return value if float_mode == "float" else _with_floats(data, float_mode)
    parser = JSONParser(max_depth=_DEPTH, allow_nan=allow_inf_nan, duplicate_keys=keys)
    value, end = _partial(parser, data, data, mode)
    return value if float_mode == "float" else _with_floats(closed(data[:end], strings=mode == _STRINGS), float_mode)


def cache_clear() -> None:
    """Nothing: this library's cache holds keys only, in one small table."""


def cache_usage() -> int:
    """0: see ``cache_clear``."""
    return 0


class GrowingJSON(Growing):
    """``from_json`` for buffers that grow: of a buffer that begins with one seen before, only what is new is parsed.

    Buffers are told apart by their content, so several may grow at once, also in several threads. Parts that are finished are the same
    objects in all results of a buffer; the rest is each result's own.

    Args:
        partial_mode: as for ``from_json``, but not "off".
        allow_inf_nan: likewise.
        catch_duplicate_keys: likewise.
        max_buffers: how many growing buffers are remembered; the one that was longest not used is forgotten first, and is then parsed
            from its beginning.
    """

    def __init__(
        self,
        *,
        partial_mode: Literal[True, "on", "trailing-strings"] = "trailing-strings",
        allow_inf_nan: bool = True,
        catch_duplicate_keys: bool = False,
        max_buffers: int = 8,
    ) -> None:
        self._mode = _checked("all", partial_mode, "float")
        if self._mode == _OFF:
            raise ValueError("a growing buffer needs a partial mode: 'on' or 'trailing-strings'")
        if type(max_buffers) is not int or max_buffers < 1:
            raise ValueError(f"max_buffers must be a positive integer, not {max_buffers!r}")
        self._nan = allow_inf_nan
        self._keys: Any = "error" if catch_duplicate_keys else "last"
        self._room = max_buffers
        self._strings = self._mode == _STRINGS
        self._lock = threading.RLock()
        self._latest = b""
        self._parser = self._new_parser()
        self._others: list[tuple[bytes, JSONParser]] = []  # the one used last is last

    def _new_parser(self) -> JSONParser:
        return JSONParser(max_depth=_DEPTH, allow_nan=self._nan, duplicate_keys=self._keys)

    def _slowly(self, json_data: bytes) -> Any:
        if not isinstance(json_data, bytes | bytearray | memoryview):
            raise TypeError(f"GrowingJSON takes bytes, not {type(json_data).__name__}")
        with self._lock:
            if self._busy:
                raise UsageError("GrowingJSON was called again from inside itself")
            self._busy = True
            try:
                data = json_data if type(json_data) is bytes else bytes(json_data)
                if not data.startswith(self._latest):
                    self._change(data)
                parser, new = self._parser, data[len(self._latest) :]
                self._latest = data
                return _partial(parser, new, data, self._mode)[0]
            finally:
                self._busy = False

    def _change(self, data: bytes) -> None:
        """Go on with the longest buffer that this one begins with, or with a new one."""
        others = self._others
        others.append((self._latest, self._parser))
        best = max((number for number, (known, _) in enumerate(others) if data.startswith(known)), key=lambda number: len(others[number][0]), default=None)
        self._latest, self._parser = (b"", self._new_parser()) if best is None else others.pop(best)
        del others[: -self._room + 1 or len(others)]


def _checked(cache_mode: Any, partial_mode: Any, float_mode: Any) -> int:
    if cache_mode not in _CACHE:
        raise ValueError("Invalid string cache mode, should be `'all'`, '`keys`', `'none`' or a `bool`")
    if not isinstance(partial_mode, bool | str):
        raise TypeError(_BAD_MODE)
    if partial_mode not in _PARTIAL:
        raise ValueError(_BAD_MODE)
    if float_mode not in ("float", "decimal", "lossless-float"):
        raise ValueError("Invalid float mode, should be `'float'`, `'decimal'` or `'lossless-float'`")
    return _PARTIAL[partial_mode]


_BAD_MODE = "Invalid partial mode, should be `'off'`, `'on'`, `'trailing-strings'` or a `bool`"


def _partial(parser: JSONParser, new: bytes, data: bytes, mode: int) -> tuple[Any, int]:
    """Feed what is new, and say what jiter would of the whole, and how far it would read."""
    try:
        if not parser.complete:  # jiter does not look at what follows either
            parser.feed(new)
        value = partial(parser, mode == _STRINGS)
        end = len(data) if parser.consumed is None else parser.consumed
    except StreamError as error:
        good_until = _good_until(error, data, mode)
        end = 0 if good_until is None else good_until
        good = JSONParser(max_depth=_DEPTH, allow_nan=True)
        good.feed(data[:end])
        value = partial(good, mode == _STRINGS)
        if value is MISSING:
            raise _as_jiter(error, data, mode) from None
    except ValueError:  # Python's limit on digits, met by a number that may go on
        raise _too_long(data, len(data.rstrip(b"-0123456789"))) from None
    if value is MISSING:
        raise _as_jiter(TruncatedJSON("", code="json.truncated", offset=len(data)), data, mode)
    return value, end


# -- in jiter's words ---------------------------------------------------------------------------------------------------


_SPACE = b" \t\r\n"
_WORDS = {
    "json.bad_number": "invalid number",
    "json.bad_escape": "invalid escape",
    "json.bad_literal": "expected ident",
    "json.bad_utf8": "invalid unicode code point",
    "json.control_character": "control character (\\u0000-\\u001F) found while parsing a string",
    "json.too_deep": "recursion limit exceeded",
    "json.trailing_data": "trailing characters",
}
_QUOTES = re.compile(rb'\\.|"', re.DOTALL)
_ESCAPE = re.compile(rb"\\u[0-9a-fA-F]{0,3}\Z")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_DIGITS = re.compile(rb"[0-9a-fA-F]*")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_CONSTANTS = (b"true", b"false", b"null", b"NaN", b"Infinity")


def _good_until(error: StreamError, data: bytes, mode: int) -> int | None:
    """How far jiter reads in a partial mode, where this is wrong; None if it is wrong there, too.

    It takes what comes before a missing comma or bracket. It looks at an escape when all four digits have come, at a key that came before
    when its colon has, and, unless it is to show open strings, into a string when its end has come.
    """
    at = error.offset
    if at is None:
        return None
    if error.code in ("json.unexpected_byte", "json.bad_number"):
        return at if _unexpected(data, at, error.code).startswith(("expected `,`", "trailing characters")) else None
    if error.code == "json.duplicate_key":
        return None if data[at + 1 :].lstrip(_SPACE) else len(data)
    if error.code == "json.bad_utf8":
        return at if mode == _ON and not _closes(data, at) and _is_good_so_far(_NOT_ASCII.sub(b"?", data)) else None
    escape = _escape(error, data)
    return escape if escape is not None and len(data) < escape + 6 else None


def _escape(error: StreamError, data: bytes) -> int | None:
    """Where the escape begins whose digits are wrong."""
    if error.offset is None or error.code not in ("json.bad_escape", "json.lone_surrogate"):
        return None
    escape = _ESCAPE.search(data, max(error.offset - 5, 0), error.offset)
    return None if escape is None else escape.start()


def _as_jiter(error: StreamError, data: bytes, mode: int) -> ValueError:
    at = len(data) if error.offset is None else error.offset
    code = str(error.code)
    escape = _escape(error, data)
    if escape is not None:
        digits = data[escape + 2 : escape + 6]
        if len(digits) < 4:
            words, at = "EOF while parsing a string", len(data)
        elif good := _DIGITS.match(digits):
            words, at = ("invalid escape", escape + 2 + good.end()) if good.end() < 4 else ("lone leading surrogate in hex escape", escape + 5)
    elif code == "json.truncated":
        words = f"EOF while parsing {_open_at_end(data)}"
    elif code in ("json.unexpected_byte", "json.bad_number"):
        words = _unexpected(data, at, code)
    elif code == "json.duplicate_key":
        behind = len(data) - len(data[at + 1 :].lstrip(_SPACE))
        if data[behind : behind + 1] == b":":
            quotes = [match.start() for match in _QUOTES.finditer(data, 0, at + 1) if match.group() == b'"']
            words, at = f"Detected duplicate key {_as_rust(loads(data[quotes[-2] : quotes[-1] + 1]))}", behind + 1
        else:
            words, at = "EOF while parsing an object" if behind == len(data) else "expected `:`", behind
    elif code == "json.lone_surrogate":
        words = "unexpected end of hex escape"
    elif code == "json.number_too_long":
        return _too_long(data, at)
    elif code == "json.bad_utf8" and mode != _STRINGS and not _closes(data, at):
        words, at = "EOF while parsing a string", len(data)  # jiter looks for the end of a string before it looks into it
    else:
        words = _WORDS.get(code, error.message)
    return ValueError(f"{words} at {_place(data, at)}")


def _too_long(data: bytes, start: int) -> ValueError:
    return ValueError(f"number out of range at {_place(data, start + data.startswith(b'-', start) + sys.get_int_max_str_digits() + 1)}")


def _as_rust(key: str) -> str:
    """A string as Rust shows it to those who look for bugs."""
    shown = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    plain = [each.isprintable() and unicodedata.category(each) not in ("Mn", "Me") for each in key]
    parts = [shown.get(each) or (each if as_is else f"\\u{{{ord(each):x}}}") for each, as_is in zip(key, plain, strict=True)]
    return f'"{"".join(parts)}"'


def _place(data: bytes, at: int) -> str:
    """Counted as jiter does: the column of the byte itself, and of a line end 0 on the next line."""
    upto = data[: at + 1]
    return f"line {upto.count(10) + 1} column {len(upto) - 1 - upto.rfind(10)}"


def _is_good_so_far(data: bytes) -> bool:
    try:
        JSONParser(max_depth=_DEPTH, allow_nan=True).feed(data)
    except StreamError:
        return False
    return True


def _closes(data: bytes, at: int) -> bool:
    """Does a string that is open at this place end?"""
    return any(match.group() == b'"' for match in _QUOTES.finditer(data, at))


def _in_string(data: bytes) -> bool:
    """Does the input end inside a string or a key?"""
    return sum(match.group() == b'"' for match in _QUOTES.finditer(data)) % 2 == 1


def _container(data: bytes) -> tuple[str, bool]:
    """What the input, good so far, ends in: "object", "list" or "" (the root). And whether a key waits for its colon or value."""
    kinds = [""]
    in_key = key_waits = False
    for token in TOKEN.finditer(data):
        first = token.group()[:1]
        key_waits = in_key and first == b'"' or first == b":"
        in_key = first == b"{" or first == b"," and kinds[-1] == "object"
        if first in (b"{", b"["):
            kinds.append("object" if first == b"{" else "list")
        elif first in (b"}", b"]"):
            kinds.pop()
    return kinds[-1], key_waits


def _open_at_end(data: bytes) -> str:
    if _in_string(data):
        return "a string"
    text = data.rstrip(_SPACE)
    last = text[-1:]
    if last in (b"", b",", b":") or not (last in b'"]}[{' or _ends_well(data, text)):
        return "a value"
    kind, _ = _container(data)
    return {"object": "an object", "list": "a list", "": "a value"}[kind]


def _number_at_end(data: bytes) -> bool:
    """Does the text, whose last part is no string, end with a number that may end there?"""
    before = data.rstrip(b"0123456789+-.eE")
    return bool(_NUMBER.fullmatch(data, len(before))) and (not before or before[-1:] in b"[{:, \t\r\n")


def _ends_well(data: bytes, text: bytes) -> bool:
    """Does the text end with a finished number or constant?"""
    return text.endswith(_CONSTANTS) or _number_at_end(text)


def _unexpected(data: bytes, at: int, code: str) -> str:
    before = data[:at]
    text = before.rstrip(_SPACE)
    last = text[-1:]
    if code == "json.bad_number" and (data[at : at + 1].isdigit() or not _number_at_end(before)):
        return "invalid number"
    kind, key_waits = _container(before)
    if last == b"," and data[at : at + 1] == {"object": b"}", "list": b"]", "": None}[kind]:
        return "trailing comma"
    if last in (b"", b"[", b":"):
        return "expected value"
    if last in (b"{", b","):
        return "key must be a string" if kind == "object" else "expected value"
    if key_waits:
        return "expected `:`"
    return {"object": "expected `,` or `}`", "list": "expected `,` or `]`", "": "trailing characters"}[kind]


# -- numbers as they stand ----------------------------------------------------------------------------------------------


def _with_floats(data: bytes, mode: str) -> Any:
    """A document once more, known to be good, with its fractions in another type."""

    def make(text: str) -> Any:
        try:
            return decimal.Decimal(text)
        except decimal.InvalidOperation as error:  # an exponent beyond what it holds
            at = next(token.end() for token in TOKEN.finditer(data) if token.group() == text.encode())
            raise ValueError(f'Internal error: "InvalidOperation: {error}" at {_place(data, at)}') from None

    as_is: Any = make if mode == "decimal" else lambda text: LosslessFloat(text.encode())
    return json.loads(data, parse_float=as_is, parse_constant=as_is)
