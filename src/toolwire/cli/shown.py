"""Text from a stream, made fit for a terminal.

A model writes what it likes: escape sequences that recolour the screen or set its title, carriage returns that paint over the line
before, bidirectional controls that reverse what is read, characters without width. Here all of these become visible escapes.
"""

from __future__ import annotations

import unicodedata

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str, *, lines: bool = False, encoding: str | None = None) -> str:
    """``text`` with everything escaped that is no visible character or blank.

    Args:
        text: anything.
        lines: keep line feeds, and write tabs as four blanks.
        encoding: also escape what this encoding has no bytes for.
    """
    if not text.isprintable():
        text = "".join(character if character.isprintable() else _escaped(character, lines) for character in text)
    if encoding is not None:
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _escaped(character: str, lines: bool) -> str:
    if lines and character in "\n\t":
        return "\n" if character == "\n" else "    "
    if unicodedata.category(character) == "Zs":  # blanks other than the usual one are no danger
        return character
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
