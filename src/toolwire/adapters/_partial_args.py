"""Google's streamed arguments: leaves with a JSON path each, put together into argument text that only grows.

The ordinary call: pieces come in document order, so their text can be written as they come. ``$.room`` "kit" gives
``{"room":"kit``, ``$.room`` "chen" gives ``chen``, ``$.levels[0]`` 40 gives ``","levels":[40``, and the end ``]}``.

All pieces go into a tree. A cursor walks the tree in order of first sight (arrays by index) and writes what it passes::

    {"room":"kitchen","levels":[40        the text so far
                                  ^       the cursor: it stays inside whatever may still grow

It leaves a string or container only when something stands behind it, never a string of which another piece was announced
(``willContinue``), and never a place of an array that is still empty. Pieces that come in another order so wait in the tree
until it is their turn, and what was written stays right. Only a piece that changes what the cursor has passed (more of a
string that another member followed, a new member of an object that was left, another number in place of the first) breaks
the order: then nothing more is written, and ``close()`` gives the whole text anew.

Each node is written once, or twice where the order broke, so the work is linear in the bytes of the pieces.

Not followed: a number at the end of the text is no finished JSON number, so that a live value shows it with the next piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import LimitExceeded

if TYPE_CHECKING:
    from ..limits import Limits

Path: TypeAlias = tuple[str | int, ...]

# RFC 9535 section 2.7 (normalized paths) plus the shorthand ``.name`` of section 2.5.1, which is what the servers send. A
# shorthand name may hold more than the RFC allows (``.content-type``): it ends at the next dot or bracket, and can not be a
# wildcard. ``[]`` is Google's own.
_SEGMENT = re.compile(
    r"""\.(?P<name>(?!\*(?:[.\[]|\Z))[^.\[\]'"]+)
    |\[(?P<index>0|[1-9][0-9]*)\]
    |\['(?P<single>(?:[^'\\]|\\.)*)'\]
    |\["(?P<double>(?:[^"\\]|\\.)*)"\]
    |(?P<end>\[\]\Z)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", "'": "'", '"': '"'}

_MAX_INDEX_DIGITS = 18  # more would only cost time to convert; far beyond any limit


def parse_path(text: str) -> tuple[Path, bool]:
    """Read one ``jsonPath``.

    Returns:
        Keys and indices, and whether the path ends in ``[]``. An index of more than 18 digits comes out as 10**18.

    Raises:
        ValueError: it is no path to one place.
    """
    if not text.startswith("$"):
        raise ValueError(f"bad jsonPath {text[:80]!r}: it does not start with $")
    at = 1
    segments: list[str | int] = []
    while at < len(text):
        match = _SEGMENT.match(text, at)
        if match is None:
            raise ValueError(f"bad jsonPath {text[:80]!r}: no name, index or quoted key at its character {at}")
        kind, found = match.lastgroup, match[match.lastgroup or 0]
        at = match.end()
        if kind == "end":
            return tuple(segments), True
        if kind == "name":
            segments.append(found)
        elif kind == "index":
            segments.append(int(found) if len(found) <= _MAX_INDEX_DIGITS else 10**_MAX_INDEX_DIGITS)
        else:
            segments.append(_unescape(found, text))
    return tuple(segments), False


def _unescape(key: str, path: str) -> str:
    if "\\" not in key:
        return key

    def plain(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        try:
            return _ESCAPES[match[2]]
        except KeyError:
            raise ValueError(f"bad jsonPath {path[:80]!r}: no such escape \\{match[2]}") from None

    key = _ESCAPE.sub(plain, key)
    # Both halves of a surrogate pair may be escaped; joined they are one character.
    return key.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Container:
    __slots__ = ("children", "ended", "is_array", "keys", "passed", "size", "written")

    def __init__(self, is_array: bool) -> None:
        self.is_array = is_array
        self.children: dict[str | int, int] = {}  # numbers of nodes: a tree of references would be too deep to pickle
        self.keys: list[str] = []  # of an object, in order of first sight
        self.size = 0  # members; of an array the highest index + 1
        self.written = 0  # members that the cursor has entered
        self.ended = False  # an array terminator came
        self.passed = False


class _String:
    __slots__ = ("passed", "pieces", "written")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.written = 0
        self.passed = False


class _Scalar:
    __slots__ = ("passed", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.passed = False


class PartialArgs:
    """The arguments of one call, growing.

    Attributes:
        conflict: what contradicts itself or can not be read, or None. The first one stays; such a piece changes nothing.
        out_of_order: a piece changed what was already written: ``take()`` gives nothing more, ``close()`` all.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._nodes: list[_Container | _String | _Scalar] = [_Container(False)]
        self._stack = [0]  # the cursor: nodes on the way down to where it stands
        self._begun = False
        self._changed = True
        self._pieces = 0
        self._chars = 2  # a lower bound of the final text, to stop what only waits in the tree
        self._promised: dict[int, str] = {}  # strings of which another piece was announced, with their paths
        self._last: tuple[str, Path, bool] | None = None
        self.conflict: str | None = None
        self.out_of_order = False

    @property
    def is_empty(self) -> bool:
        """Has no piece brought anything yet?"""
        return len(self._nodes) == 1

    @property
    def unfinished(self) -> str | None:
        """The path of a string of which another piece was announced that has not come, or None."""
        return next(iter(self._promised.values()), None)

    # -- pieces -------------------------------------------------------------------------------------------------------

    def add(self, piece: Any) -> None:
        """Take one entry of ``partialArgs``.

        Raises:
            LimitExceeded: too many pieces, too deep, too high an index, too much text. The piece was not taken.
        """
        self._pieces += 1
        if self._pieces > self._limits.max_partial_args:
            raise self._limit("max_partial_args", self._limits.max_partial_args, "pieces of streamed arguments in one call")
        try:
            self._add(piece)
        except ValueError as error:
            if isinstance(error, LimitExceeded):
                raise
            if self.conflict is None:
                self.conflict = str(error)

    def _add(self, piece: Any) -> None:
        if not isinstance(piece, Mapping) or not isinstance(piece.get("jsonPath"), str):
            raise ValueError("bad jsonPath: a piece has none")
        text: str = piece["jsonPath"]
        if self._last is None or self._last[0] != text:
            self._last = (text, *parse_path(text))
        _, path, terminator = self._last
        more = piece.get("willContinue") is True
        kind, value = _value(piece)
        if kind is None:
            self._mark_end(text, path, terminator, more)
            return
        if terminator:
            raise ValueError(f"a value at {text[:80]}: [] names no place")
        number = self._find(path)
        if kind == "stringValue":
            self._string(number, text, path, value, more)
            return
        new = _Scalar(json.dumps(value))
        if number is None:
            self._create(path, new, len(new.text))
            return
        node = self._nodes[number]
        if not isinstance(node, _Scalar):
            raise ValueError(f"a {kind} at {text[:80]}, where {_NAMES[_kind(node)]} stands")
        if node.text != new.text:
            node.text = new.text
            self._touch(node)

    def _string(self, number: int | None, text: str, path: Path, value: str, more: bool) -> None:
        if number is None:
            node: _Container | _String | _Scalar = _String()
            number = self._create(path, node, 2)
        else:
            node = self._nodes[number]
        if not isinstance(node, _String):
            raise ValueError(f"a stringValue at {text[:80]}, where {_NAMES[_kind(node)]} stands")
        if value:
            self._grow(len(value))
            node.pieces.append(value)
            self._touch(node)
        self._promise(number, text, more)

    def _mark_end(self, text: str, path: Path, terminator: bool, more: bool) -> None:
        """A piece without a value: the end of an array or of a string, or an empty container."""
        number = self._find(path)
        if number is None:
            # With willContinue the value itself is still to come, and what it will be is not known.
            if terminator or not more:
                node = _Container(terminator)
                node.ended = terminator
                self._create(path, node, 2)
            return
        node_there = self._nodes[number]
        if terminator:
            if not isinstance(node_there, _Container) or not node_there.is_array:
                raise ValueError(f"an array ends at {text[:80]}, where {_NAMES[_kind(node_there)]} stands")
            if not node_there.ended:
                node_there.ended = self._changed = True
        elif isinstance(node_there, _String):
            self._promise(number, text, more)

    def _promise(self, number: int, text: str, more: bool) -> None:
        if more:
            self._promised[number] = text
        elif self._promised.pop(number, None) is not None:
            self._changed = True

    # -- the tree -----------------------------------------------------------------------------------------------------

    def _find(self, path: Path) -> int | None:
        """The node at ``path``, or None."""
        number = 0
        for segment in path:
            node = self._nodes[number]
            if not isinstance(node, _Container):
                raise ValueError(f"a member {str(segment)[:80]!r} of {_NAMES[_kind(node)]}")
            if node.is_array is not isinstance(segment, int):
                raise ValueError(f"a member {str(segment)[:80]!r} of {_NAMES[_kind(node)]}")
            child = node.children.get(segment)
            if child is None:
                return None
            number = child
        return number

    def _create(self, path: Path, leaf: _Container | _String | _Scalar, chars: int) -> int:
        """Put a leaf at ``path``, and the containers on the way. Nothing stands there yet."""
        depth = len(path) + isinstance(leaf, _Container)
        if depth > self._limits.max_depth:
            raise self._limit("max_depth", self._limits.max_depth, "nested arrays and objects in streamed arguments")
        number = 0
        holes = 0
        for segment in path:
            child = None
            if number >= 0:
                node = self._nodes[number]
                assert isinstance(node, _Container)
                child = node.children.get(segment)
            if isinstance(segment, int):
                if segment > self._limits.max_array_index:
                    raise self._limit("max_array_index", self._limits.max_array_index, "as an index in streamed arguments")
                if child is None:
                    holes += max(0, segment - (node.size if number >= 0 else 0))  # type: ignore[union-attr]
            elif child is None:
                chars += len(segment) + 3
            number = -1 if child is None else child
        self._grow(chars + 5 * holes)  # a hole is written as ``null,``
        number = 0
        for at, segment in enumerate(path):
            node = self._nodes[number]
            assert isinstance(node, _Container)
            child = node.children.get(segment)
            if child is None:
                child = len(self._nodes)
                last = at + 1 == len(path)
                self._nodes.append(leaf if last else _Container(isinstance(path[at + 1], int)))
                node.children[segment] = child
                if isinstance(segment, int):
                    node.size = max(node.size, segment + 1)
                else:
                    node.keys.append(segment)
                    node.size += 1
                self._touch(node)
            number = child
        return number

    def _touch(self, node: _Container | _String | _Scalar) -> None:
        self._changed = True
        if node.passed:
            self.out_of_order = True

    def _grow(self, chars: int) -> None:
        if chars > self._limits.max_argument_chars - self._chars:
            raise self._limit("max_argument_chars", self._limits.max_argument_chars, "characters of streamed arguments")
        self._chars += chars

    def _limit(self, limit: str, value: int, what: str) -> LimitExceeded:
        return LimitExceeded(f"more than {value} {what}", code="turn.bad_partial_args", limit=limit, value=value, option=f"Limits({limit}=...)")

    # -- the text -----------------------------------------------------------------------------------------------------

    def take(self) -> str:
        """The text that can be written now and was not before."""
        if self.out_of_order or not self._changed:
            return ""
        return self._write(False)

    def close(self) -> str:
        """No more pieces come. The rest of the text; all of it if the pieces came ``out_of_order``."""
        if self.out_of_order:
            for node in self._nodes:
                if not isinstance(node, _Scalar):
                    node.written = 0
            self._stack, self._begun = [0], False
        return self._write(True)

    def _write(self, final: bool) -> str:
        """Move the cursor as far as it may go."""
        self._changed = False
        out: list[str] = []
        if not self._begun:
            self._begun = True
            out.append("{")
        stack, nodes = self._stack, self._nodes
        leave = len(stack) if final else 0  # how many nodes at the top of the stack have something behind them
        while stack:
            node = nodes[stack[-1]]
            if isinstance(node, _String):
                if node.written < len(node.pieces):
                    out.append(json.dumps("".join(node.pieces[node.written :]), ensure_ascii=False)[1:-1])
                    node.written = len(node.pieces)
                if not final and stack[-1] in self._promised:
                    break
            elif isinstance(node, _Container) and node.written < node.size:
                child = node.children.get(node.written if node.is_array else node.keys[node.written])
                if child is None and not final:
                    break  # a hole that may still be filled
                lead = "," if node.written else ""
                if not node.is_array:
                    lead += json.dumps(node.keys[node.written], ensure_ascii=False) + ":"
                node.written += 1
                if child is None:
                    out.append(lead + "null")
                    continue
                entered = nodes[child]
                if isinstance(entered, _Scalar):
                    out.append(lead + entered.text)
                    entered.passed = True
                    continue
                out.append(lead + _OPEN[_kind(entered)])
                stack.append(child)
                leave = 0
                continue
            elif isinstance(node, _Container) and node.ended:
                leave = max(leave, 1)
            if leave == 0 and not final:
                leave = self._behind()
                if leave == 0:
                    break
            out.append(_CLOSE[_kind(node)])
            node.passed = True
            stack.pop()
            leave -= 1
        return "".join(out)

    def _behind(self) -> int:
        """How many nodes at the top of the stack does the cursor leave on its way to the next one? Each step of this search
        is paid for by a node that is left."""
        for up in range(1, len(self._stack)):
            node = self._nodes[self._stack[-1 - up]]
            if isinstance(node, _Container) and node.written < node.size:
                return up
        return 0


def _value(piece: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Which of the values a piece has, and the value. ``null`` is "not set" for all but ``nullValue``."""
    kinds = [kind for kind in ("stringValue", "numberValue", "boolValue") if piece.get(kind) is not None]
    null = piece.get("nullValue", False)
    if null is not False and (null is not None or not kinds):
        kinds.append("nullValue")
    if not kinds:
        return None, None
    if len(kinds) > 1:
        raise ValueError(f"{' and '.join(kinds)} in one piece at {str(piece.get('jsonPath'))[:80]}")
    kind = kinds[0]
    if kind == "nullValue":
        return kind, None
    value = piece[kind]
    if type(value) not in _TYPES[kind]:
        raise ValueError(f"a {kind} that is none at {str(piece.get('jsonPath'))[:80]}: {str(value)[:40]!r}")
    return kind, value


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {"stringValue": (str,), "numberValue": (int, float), "boolValue": (bool,)}
_NAMES: Final = {"object": "an object", "array": "an array", "string": "a string", "scalar": "a number, true, false or null"}
_OPEN: Final = {"object": "{", "array": "[", "string": '"'}
_CLOSE: Final = {"object": "}", "array": "]", "string": '"'}


def _kind(node: _Container | _String | _Scalar) -> str:
    if isinstance(node, _Container):
        return "array" if node.is_array else "object"
    return "string" if isinstance(node, _String) else "scalar"
