# cython: language_level=3, boundscheck=False, wraparound=False
"""The framer for ``application/vnd.amazon.eventstream``: binary messages with headers and checksums."""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcmp

from ._framing cimport Frame, Framer, TW_E_FRAME_TOO_LARGE, TW_E_MEMORY, checked_limit, tw_buf, tw_buf_set, tw_frame

from types import MappingProxyType

from ._framing import _blank
from .errors import MalformedFrame, UsageError


cdef extern from "_core/tw_aws.h" nogil:
    enum:
        TW_AWS_PRELUDE
        TW_AWS_TRUE
        TW_AWS_FALSE
        TW_AWS_BYTES
        TW_AWS_STRING
        TW_AWS_UUID

    ctypedef struct tw_aws_header:
        const uint8_t *name
        const uint8_t *value
        uint8_t name_len
        uint8_t type
        uint16_t value_len
        int64_t number

    ctypedef struct tw_aws:
        size_t max_frame_bytes
        uint64_t base
        uint64_t frame_offset
        tw_buf held
        int error
        uint64_t error_offset
        const uint8_t *headers
        size_t headers_len

    void tw_aws_init(tw_aws *m, size_t max_frame_bytes)
    void tw_aws_free(tw_aws *m)
    void tw_aws_feed(tw_aws *m, const uint8_t *chunk, size_t len)
    int tw_aws_next(tw_aws *m, tw_frame *out)
    void tw_aws_abandon(tw_aws *m)
    int tw_aws_in_frame(const tw_aws *m)
    int tw_aws_header_at(const uint8_t *headers, size_t len, size_t *at, tw_aws_header *out)


cdef extern from "_core/tw_common.h" nogil:
    enum:
        TW_E_FRAME_BAD_CHECKSUM
        TW_E_FRAME_BAD_LENGTH


_MAX_FRAME_BYTES = 16 << 20

#: Which header names the frame, by message type.
_NAMED_BY = {"event": ":event-type", "exception": ":exception-type", "error": ":error-code"}


cdef object _value(const tw_aws_header *h):
    if h.type == TW_AWS_STRING:
        return PyUnicode_DecodeUTF8(<const char *>h.value, h.value_len, "strict")
    if h.type == TW_AWS_BYTES or h.type == TW_AWS_UUID:
        return PyBytes_FromStringAndSize(<const char *>h.value, h.value_len)
    if h.type == TW_AWS_TRUE or h.type == TW_AWS_FALSE:
        return h.number != 0
    return h.number


cdef dict _parsed(const uint8_t *headers, size_t n):
    cdef tw_aws_header h
    cdef size_t at = 0
    cdef dict out = {}
    while tw_aws_header_at(headers, n, &at, &h) > 0:
        out[PyUnicode_DecodeUTF8(<const char *>h.name, h.name_len, "strict")] = _value(&h)
    return out


cdef str _event_of(dict headers):
    name = headers.get(_NAMED_BY.get(headers.get(":message-type")))
    return <str>name if isinstance(name, str) else ""


@cython.final
cdef class _Headers:
    """A block of headers as it stood in the stream, and what it says. Most messages repeat one of a few blocks."""
    cdef bytes block
    cdef object mapping
    cdef str event


@cython.final
cdef class AWSEventStreamFramer(Framer):
    """One frame a message; ``Frame.headers`` has its headers, ``Frame.event`` its event type (or exception type, or error
    code), ``Frame.raw`` its payload. Both checksums are checked. A message that the input cuts off is no frame, and
    ``in_frame`` says so.

    Args:
        max_frame_bytes: the longest message. The format itself allows 128 KiB of headers and 24 MiB of payload.
    """

    cdef tw_aws m
    cdef list _seen  # recent blocks of headers, by a small hash

    def __cinit__(self, *, max_frame_bytes=_MAX_FRAME_BYTES):
        tw_aws_init(&self.m, checked_limit(self, max_frame_bytes))
        self.max_frame_bytes = max_frame_bytes
        self._seen = [None] * 16

    def __dealloc__(self):
        tw_aws_free(&self.m)

    cdef _Headers _headers(self):
        cdef const uint8_t *p = self.m.headers
        cdef size_t n = self.m.headers_len
        cdef size_t at = (n * 7 + (p[n - 1] + 3 * p[n >> 1] if n else 0)) & 15
        cdef _Headers known
        cdef dict parsed
        if self._seen[at] is not None:
            known = <_Headers>self._seen[at]
            if <size_t>PyBytes_GET_SIZE(known.block) == n and memcmp(PyBytes_AS_STRING(known.block), p, n) == 0:
                return known
        parsed = _parsed(p, n)
        known = _Headers.__new__(_Headers)
        known.block = PyBytes_FromStringAndSize(<const char *>p, <Py_ssize_t>n)
        known.mapping = MappingProxyType(parsed)
        known.event = _event_of(parsed)
        if n <= 512:
            self._seen[at] = known
        return known

    cdef object _what(self):
        cdef tw_aws *m = &self.m
        if m.error == TW_E_MEMORY:
            return MemoryError()
        if m.error == TW_E_FRAME_TOO_LARGE:
            return self._too_large(m.error_offset)
        if m.error == TW_E_FRAME_BAD_CHECKSUM:
            return MalformedFrame("the checksum does not fit the bytes before it", code="frame.bad_checksum", offset=m.error_offset)
        if m.error == TW_E_FRAME_BAD_LENGTH:
            return MalformedFrame("a length that no message can have", code="frame.bad_length", offset=m.error_offset)
        return MalformedFrame("a header that is unreadable, or there twice", code="frame.bad_header", offset=m.error_offset)

    cdef void _begin(self, const uint8_t *p, size_t n) noexcept:
        tw_aws_feed(&self.m, p, n)

    cdef int _next(self, tw_frame *f) noexcept:
        return tw_aws_next(&self.m, f)

    cdef Frame make(self, const tw_frame *f):
        cdef Frame made = self.blank(f)
        cdef _Headers headers = self._headers()
        made.id = ""
        made.event = headers.event
        made.named = headers.event != ""
        made.headers = headers.mapping
        return made

    cdef void _abandon(self) noexcept:
        tw_aws_abandon(&self.m)

    cdef bint _in_frame(self) noexcept:
        return tw_aws_in_frame(&self.m)

    @property
    def offset(self):
        """Bytes read. After an error: its offset."""
        return self.m.base

    def __reduce__(self):
        cdef tw_aws *m = &self.m
        common = self._common()
        return _blank, (AWSEventStreamFramer, {"max_frame_bytes": self.max_frame_bytes}), (
            common, m.error, m.frame_offset, m.base, PyBytes_FromStringAndSize(<const char *>m.held.p, <Py_ssize_t>m.held.len),
        )

    def __setstate__(self, tuple state not None):
        cdef tw_aws *m = &self.m
        cdef bytes held
        common, error, frame_offset, base, held = state
        self._set_common(common)
        if len(held) >= TW_AWS_PRELUDE and not len(held) < int.from_bytes(held[:4], "big") <= self.max_frame_bytes:
            raise UsageError("AWSEventStreamFramer: not a state of this version")
        m.frame_offset, m.base = frame_offset, base
        m.error, m.error_offset = error, base
        if tw_buf_set(&m.held, <const uint8_t *>PyBytes_AS_STRING(held), <size_t>PyBytes_GET_SIZE(held)):
            raise MemoryError
