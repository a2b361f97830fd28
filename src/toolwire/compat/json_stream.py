"""A tokenizer for json-stream 2: ``json_stream.load(file, tokenizer=toolwire.compat.json_stream.tokenizer)``.

json-stream itself is not imported. What differs from its own tokenizers is listed in docs/ijson.md.
"""

from __future__ import annotations

import io
from typing import Any

from .._tokens import Machine, Pull

__all__ = ["Tokenizer", "tokenizer"]


class Tokenizer(Pull):
    """An iterator over the tokens of a file, as ``(type, value)``: operators are 0, strings 1, numbers 2, booleans 3, null 4.

    Args:
        stream: a file, of bytes (UTF-8) or str.
        buffering: bytes or characters asked of it at a time; -1: as many as suits.
        correct_cursor: ``park_cursor()`` will be called. What can not be sought in is then read byte by byte.
        max_depth: nested arrays and objects allowed.

    Raises while iterated:
        MalformedJSON, LimitExceeded: both ValueError, with code and offset.
        TruncatedJSON: likewise, where the input ends inside a token. Where it ends between two, the iterator ends.
    """

    _stream: Any
    _mark: Any  # where the chunk at hand began, and how long it is: of text streams with correct_cursor
    _chars: int

    def __new__(cls, stream: Any, *, buffering: int = -1, correct_cursor: bool = False, max_depth: int = 512) -> Tokenizer:
        seekable = stream.seekable() if correct_cursor else True
        if not seekable and buffering > 1:
            raise ValueError("correct_cursor and a buffer need a stream that can be sought in")
        size = 1 if not seekable else io.DEFAULT_BUFFER_SIZE if buffering < 1 else buffering
        read = stream.read
        if correct_cursor and seekable and isinstance(stream.read(0), str):

            def read(n: int) -> Any:
                self._mark = stream.tell()
                text = stream.read(n)
                self._chars = len(text)
                return text

        self = super().__new__(cls, Machine("lexemes", max_depth=max_depth), read, size, warn=False)
        self._stream = stream
        return self

    def park_cursor(self) -> None:
        """Put the stream's cursor behind what was tokenized; iterating goes on from where it then stands.

        Exact between two values of the root. Inside one, tokens that were not yet asked for are behind the cursor, and still to come.
        """
        rest = self.remainder
        if not rest:
            return
        if isinstance(rest, bytes):
            self._stream.seek(-len(rest), io.SEEK_CUR)
        else:
            self._stream.seek(self._mark)
            self._stream.read(self._chars - len(rest))
        self.forget_remainder()


#: What json-stream's argument is called.
tokenizer = Tokenizer
