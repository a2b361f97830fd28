"""The JSON rules once more, slow and obvious: a recursive descent over one prefix of a document.

Never shipped. It knows nothing of chunks, so whatever a parser says must agree with it at every prefix. Its one definition
that matters: an error's offset is the first byte with which no valid document goes on. With ``surrogates="error"`` a
document with half a surrogate pair is not valid, so the byte that makes the half certain is that byte.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

ABSENT: Any = type("ABSENT", (), {"__repr__": lambda self: "MISSING"})()  # reads like tw.MISSING in a comparison of reprs

SPACE = b" \t\n\r"
DELIMITERS = SPACE + b",:[]{}"
SHORT = {ord('"'): '"', ord("\\"): "\\", ord("/"): "/", ord("b"): "\b", ord("f"): "\f", ord("n"): "\n", ord("r"): "\r", ord("t"): "\t"}
HEX = b"0123456789abcdefABCDEF"


@dataclass
class Reading:
    """What may be said after a prefix."""

    state: str  # "incomplete" | "complete" | "malformed"
    value: Any = ABSENT
    consumed: int | None = None
    codes: frozenset[str] = frozenset()  # more than one where a byte is wrong in two ways
    offset: int | None = None
    marks: set[str] = field(default_factory=set)


class NeedMore(Exception):
    pass


class Bad(Exception):
    pass


class Reader:
    def __init__(self, data: bytes, *, at_end: bool, max_depth: int, surrogates: str, duplicate_keys: str, allow_nan: bool, allow_control_characters: bool):
        self.data, self.i, self.at_end = data, 0, at_end
        self.max_depth, self.surrogates, self.duplicate_keys = max_depth, surrogates, duplicate_keys
        self.allow_nan, self.allow_control_characters = allow_nan, allow_control_characters
        self.root: Any = ABSENT
        self.marks: set[str] = set()

    def peek(self) -> int:
        if self.i == len(self.data):
            raise NeedMore
        return self.data[self.i]

    def bad(self, *codes: str, at: int | None = None) -> NoReturn:
        raise Bad(frozenset("json." + c for c in codes), self.i if at is None else at)

    def space(self) -> None:
        while self.peek() in SPACE:
            self.i += 1

    # -- values. ``show`` puts a value where it belongs; it is called once there is something to show.

    def document(self) -> None:
        def show(value: Any) -> None:
            self.root = value

        self.space()
        self.value(show, depth=0)

    def value(self, show: Callable[[Any], None], depth: int) -> None:
        c = self.peek()
        if c in b"[{":
            if depth == self.max_depth:
                self.bad("too_deep")
            self.i += 1
            if c == ord("["):
                self.array(show, depth + 1)
            else:
                self.object(show, depth + 1)
        elif c == ord('"'):
            self.i += 1
            self.string(show)
        elif c in b"-0123456789":
            self.number(show, depth)
        elif c in b"tfn":
            self.literal(*{ord("t"): (b"true", True), ord("f"): (b"false", False), ord("n"): (b"null", None)}[c], show)
        elif self.allow_nan and c in b"NI":
            self.literal(*{ord("N"): (b"NaN", float("nan")), ord("I"): (b"Infinity", float("inf"))}[c], show)
        else:
            self.bad("unexpected_byte")

    def array(self, show: Callable[[Any], None], depth: int) -> None:
        items: list[Any] = []
        show(items)
        self.space()
        if self.peek() == ord("]"):
            self.i += 1
            return
        while True:
            at = len(items)

            def put(value: Any, at: int = at) -> None:
                items[at:] = [value]

            self.value(put, depth)
            self.space()
            c = self.peek()
            if c not in b",]":
                self.bad("unexpected_byte")
            self.i += 1
            if c == ord("]"):
                return
            self.space()

    def object(self, show: Callable[[Any], None], depth: int) -> None:
        members: dict[str, Any] = {}
        seen: set[str] = set()
        show(members)
        self.space()
        if self.peek() == ord("}"):
            self.i += 1
            return
        while True:
            if self.peek() != ord('"'):
                self.bad("unexpected_byte")
            self.i += 1
            holder: list[str] = []
            self.string(lambda text, holder=holder: holder.append(text))
            key = holder[-1]
            if key in seen and self.duplicate_keys == "error":
                self.bad("duplicate_key", at=self.i - 1)
            self.space()
            if self.peek() != ord(":"):
                self.bad("unexpected_byte")
            self.i += 1
            self.space()

            def put(value: Any, key: str = key, again: bool = key in seen) -> None:
                if again:  # marked once the second value takes the first one's place
                    self.marks.add("duplicate_key")
                members[key] = value

            self.value(put, depth)
            seen.add(key)
            self.space()
            c = self.peek()
            if c not in b",}":
                self.bad("unexpected_byte")
            self.i += 1
            if c == ord("}"):
                return
            self.space()

    def literal(self, word: bytes, value: Any, show: Callable[[Any], None], *also: str) -> None:
        for c in word:
            if self.peek() != c:
                self.bad("bad_literal", *also)
            self.i += 1
        if isinstance(value, float):
            self.marks.add("nan")
        show(value)

    def number(self, show: Callable[[Any], None], depth: int) -> None:
        start = self.i
        if self.peek() == ord("-"):
            self.i += 1
            if self.peek() == ord("I") and self.allow_nan:
                return self.literal(b"Infinity", float("-inf"), show, "bad_number")
        self.digits(leading_zero=False)
        integer = True
        try:
            if self.peek() == ord("."):
                integer = False
                self.i += 1
                self.digits()
            if self.peek() in b"eE":
                integer = False
                self.i += 1
                if self.peek() in b"+-":
                    self.i += 1
                self.digits()
            # At the root anything but a delimiter is malformed. In a container every byte that could not be meant as part of
            # the number ends it; what is wrong with that byte is then for the container to say.
            c = self.peek()
            if c not in DELIMITERS if depth == 0 else chr(c).isascii() and (chr(c).isalnum() or chr(c) in ".+-"):
                self.bad("bad_number")
        except NeedMore:
            # Only the end of the input, and only at the root, ends a number without a delimiter.
            if not (self.at_end and depth == 0 and self.data[self.i - 1] in b"0123456789"):
                raise
        text = self.data[start : self.i].decode()
        limit = sys.get_int_max_str_digits()
        if integer and limit and len(text.lstrip("-")) > limit:
            self.bad("number_too_long", at=start)
        show(int(text) if integer else float(text))

    def digits(self, *, leading_zero: bool = True) -> None:
        first = self.peek()
        if first not in b"0123456789":
            self.bad("bad_number")
        self.i += 1
        while self.i < len(self.data) and self.data[self.i] in b"0123456789":
            if first == ord("0") and not leading_zero:
                self.bad("bad_number")
            self.i += 1

    # -- strings

    def string(self, show: Callable[[Any], None]) -> None:
        text = ""
        high: int | None = None  # a high surrogate whose partner may still come
        try:
            while True:
                c = self.peek()
                if high is not None and c != ord("\\"):
                    text += self.lone(high, c)
                    high = None
                if c == ord('"'):
                    self.i += 1
                    return
                if c == ord("\\"):
                    self.i += 1
                    if high is not None and self.surrogates != "error" and self.peek() != ord("u"):
                        text += self.lone(high, None)
                        high = None
                    unit = self.escape(high)
                    if high is not None and 0xDC00 <= unit <= 0xDFFF:
                        text += chr(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00))
                        high = None
                        continue
                    if high is not None:
                        text += self.lone(high, None)
                        high = None
                    if 0xD800 <= unit <= 0xDBFF:
                        high = unit
                    elif 0xDC00 <= unit <= 0xDFFF:
                        text += self.lone(unit, None)
                    else:
                        text += chr(unit)
                elif c < 0x20:
                    if not self.allow_control_characters:
                        self.bad("control_character")
                    self.marks.add("control_character")
                    text += chr(c)
                    self.i += 1
                else:
                    text += self.character()
        finally:
            show(text)  # also when the input ends or goes wrong here: the good part stays

    def lone(self, unit: int, c: int | None) -> str:
        """Half a pair, now certain because of the byte c (or because an escape ended)."""
        if self.surrogates == "error":
            assert c is not None, "strict escapes have been refused at their first wrong digit"
            also = ["control_character"] if c < 0x20 else ["bad_utf8"] if c >= 0x80 else []
            self.bad("lone_surrogate", *also)
        self.marks.add("lone_surrogate")
        return "\ufffd" if self.surrogates == "replace" else chr(unit)

    def escape(self, high: int | None) -> int:
        """What follows a backslash, as a UTF-16 code unit. Strict mode: only what can become whole Unicode."""
        strict = self.surrogates == "error"
        also = ["lone_surrogate"] if strict and high is not None else []
        c = self.peek()
        if c in SHORT:
            if strict and high is not None:
                self.bad("lone_surrogate")
            self.i += 1
            return ord(SHORT[c])
        if c != ord("u"):
            self.bad("bad_escape", *also)
        self.i += 1
        digits = b""
        for place in range(4):
            c = self.peek()
            if c not in HEX:
                self.bad("bad_escape", *also)
            if strict and high is not None and ((place == 0 and c not in b"dD") or (place == 1 and c not in b"cdefCDEF")):
                self.bad("lone_surrogate")
            if strict and high is None and place == 1 and digits in b"dD" and c in b"cdefCDEF":
                self.bad("lone_surrogate")
            digits += bytes([c])
            self.i += 1
        return int(digits, 16)

    def character(self) -> str:
        """One character of UTF-8 (Unicode standard, table 3-7)."""
        lead = self.peek()
        if lead < 0x80:
            ranges = []
        elif 0xC2 <= lead <= 0xDF:
            ranges = [(0x80, 0xBF)]
        elif 0xE0 <= lead <= 0xEF:
            ranges = [{0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F)}.get(lead, (0x80, 0xBF)), (0x80, 0xBF)]
        elif 0xF0 <= lead <= 0xF4:
            ranges = [{0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(lead, (0x80, 0xBF)), (0x80, 0xBF), (0x80, 0xBF)]
        else:
            self.bad("bad_utf8")
        start = self.i
        self.i += 1
        for low, top in ranges:
            if not low <= self.peek() <= top:
                self.bad("bad_utf8")
            self.i += 1
        return self.data[start : self.i].decode()


def read(
    data: bytes,
    *,
    at_end: bool = False,
    max_depth: int = 512,
    max_bytes: int | None = None,
    surrogates: str = "error",
    duplicate_keys: str = "last",
    allow_nan: bool = False,
    allow_control_characters: bool = False,
) -> Reading:
    """What holds after the prefix ``data``; with ``at_end`` what ``finish()`` must say."""
    too_long = max_bytes is not None and len(data) > max_bytes
    reader = Reader(
        data[:max_bytes] if too_long else data,
        at_end=at_end and not too_long,
        max_depth=max_depth,
        surrogates=surrogates,
        duplicate_keys=duplicate_keys,
        allow_nan=allow_nan,
        allow_control_characters=allow_control_characters,
    )
    reading = Reading("complete")
    try:
        reader.document()
        reading.consumed = reader.i
    except NeedMore:
        reading.state = "incomplete"
    except Bad as bad:
        reading.state = "malformed"
        reading.codes, reading.offset = bad.args
    reading.value, reading.marks = reader.root, reader.marks
    if reading.state != "malformed":
        if too_long:
            reading.state, reading.codes, reading.offset = "malformed", frozenset({"json.too_long"}), max_bytes
        elif at_end and reading.state == "incomplete":
            reading.codes, reading.offset = frozenset({"json.truncated"}), len(data)
        elif at_end and data[reader.i :].strip(SPACE):
            at = next(i for i in range(reader.i, len(data)) if data[i] not in SPACE)
            reading.state, reading.codes, reading.offset = "malformed", frozenset({"json.trailing_data"}), at
    return reading
