"""The error types and every error code, listed once.

Two roots under ``ToolwireError``: ``UsageError`` says that the library was called wrongly, ``StreamError`` says that the
bytes are wrong. A program that feeds bytes from a network should never see a ``UsageError``, and never needs to fix its
code because of a ``StreamError``. Anything else that escapes from toolwire is a bug of toolwire.
"""

from __future__ import annotations

from typing import Any

#: Every ``StreamError.code``, with what it means. Codes are never reused for another meaning. The ``json.*`` and
#: ``frame.*`` codes are also the C core's; a test compares the two lists.
CODES: dict[str, str] = {
    "json.unexpected_byte": "a byte that can not stand here, e.g. [1,,2]",
    "json.bad_literal": "neither true, false nor null, e.g. nul!",
    "json.bad_number": "no JSON number, e.g. 01 or 1.e5",
    "json.bad_escape": "an escape that JSON does not know, e.g. \\x",
    "json.control_character": "a raw control character inside a string",
    "json.bad_utf8": "a byte that ends a UTF-8 sequence wrongly or starts none",
    "json.lone_surrogate": "half a surrogate pair, e.g. \\ud800 without its partner",
    "json.duplicate_key": "a key that its object already has (duplicate_keys='error')",
    "json.trailing_data": "more than white space after the root value",
    "json.truncated": "the input ended before the root value was complete",
    "json.too_deep": "more nested arrays and objects than max_depth",
    "json.too_long": "more bytes than max_bytes",
    "json.number_too_long": "an integer with more digits than Python converts (sys.set_int_max_str_digits)",
    "frame.too_large": "one frame larger than max_frame_bytes",
    "frame.bad_checksum": "a binary message that its CRC-32 does not fit",
    "frame.bad_length": "a binary message that is shorter than its own parts, or longer than its format allows",
    "frame.bad_header": "a header of a binary message with an unknown type, a value past the end, or a name that was there before",
    "frame.not_event_stream": "the body is no event stream and no JSON, e.g. an HTML page",
    "frame.bad_payload": "a payload that has the wrong shape for its protocol",
    "frame.protocol": "frames in an order that the protocol does not allow",
    "frame.unknown_protocol": "provider='auto' found none of the known protocols",
    "turn.cut": "the body ended before the provider ended the turn",
    "turn.empty": "the body held nothing at all",
    "turn.too_many_calls": "more calls in one turn than Limits.max_calls",
    "turn.too_many_streams": "more responses open on one socket than ResponsesSocket(max_streams=...)",
    "turn.too_much_text": "more text in one turn than Limits.max_text_chars",
    "turn.args_too_long": "argument text of one call longer than Limits.max_argument_chars",
    "turn.bad_partial_args": "streamed argument pieces that contradict each other or exceed their limits",
    "provider.error": "the provider reported an error inside the stream",
}


class ToolwireError(Exception):
    """Base of everything that toolwire raises."""


class UsageError(ToolwireError):
    """The library was called wrongly: ``feed`` after ``finish``, an unknown provider, a schema that is none."""


class StreamError(ToolwireError):
    """The bytes are wrong.

    Attributes:
        code: one of ``CODES``.
        offset: bytes from the start of the input to the first byte that can not continue it, or None where no single
            byte is to blame. The same for every way of cutting the input.
        call: key of the tool call the error belongs to, or None.
        path: keys and indices down to the place in the JSON value, or None.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str,
        offset: int | None = None,
        call: str | None = None,
        path: tuple[str | int, ...] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.offset = offset
        self.call = call
        self.path = path

    def __str__(self) -> str:
        where = [] if self.offset is None else [f"at byte {self.offset}"]
        if self.call is not None:
            where.append(f"call {self.call}")
        if self.path:
            where.append("path $" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in self.path))
        return f"{self.code}{' ' + ', '.join(where) if where else ''}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__.copy())


def _rebuild(cls: type[ToolwireError], args: tuple[Any, ...], state: dict[str, Any]) -> ToolwireError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class MalformedJSON(StreamError, ValueError):
    """No continuation of the input could make it valid JSON (RFC 8259)."""


class TruncatedJSON(StreamError, ValueError):
    """The input ended while the JSON value was still open; more bytes could have made it valid."""


class MalformedFrame(StreamError):
    """The framing, or the order of frames, is none that the protocol allows."""


class LimitExceeded(StreamError, ValueError):
    """A limit was hit.

    Attributes:
        limit: the limit's name.
        value: its value when it was hit.
        option: what raises it, as one would write it.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str,
        limit: str,
        value: int,
        option: str,
        offset: int | None = None,
        call: str | None = None,
        path: tuple[str | int, ...] | None = None,
    ) -> None:
        super().__init__(message, code=code, offset=offset, call=call, path=path)
        self.limit = limit
        self.value = value
        self.option = option


class ProviderError(StreamError):
    """The provider reported an error inside the stream.

    Attributes:
        type: the provider's error type, or None.
        code: the provider's error code as text, or None.
        message: the provider's sentence.
        raw: the error as it stood in the stream (parsed JSON).
    """

    def __init__(self, message: str = "", *, type: str | None, code: str | None, raw: Any, offset: int | None = None) -> None:
        super().__init__(message, code="provider.error", offset=offset)
        self.type = type
        self.code = code  # type: ignore[assignment]  # the provider may give none
        self.raw = raw

    def __str__(self) -> str:
        return f"provider error{f' {self.type}' if self.type else ''}{f' ({self.code})' if self.code else ''}: {self.message}"


class TurnTruncated(StreamError):
    """The body ended before the provider ended the turn.

    Attributes:
        result: the ``TurnResult`` with everything that had arrived. The gate refuses it.
    """

    def __init__(self, message: str = "", *, code: str = "turn.cut", offset: int | None = None, result: Any = None) -> None:
        super().__init__(message, code=code, offset=offset)
        self.result = result


class LedgerError(ToolwireError):
    """The release ledger did not answer. The gate that asked it has released nothing; the cause is in ``__cause__``."""


class GateRefused(ToolwireError):
    """Raised by ``GateDecision.raise_if_refused()``.

    Attributes:
        decision: the ``GateDecision`` with its reasons.
    """

    def __init__(self, message: str, decision: Any) -> None:
        super().__init__(message)
        self.decision = decision
