# cython: language_level=3, boundscheck=False, wraparound=False
"""Framers: bytes as they arrive in, whole frames out. The machines are C (``_core``); this file turns what they hand out
into objects and knows nothing of the formats.

No Python code runs inside a machine. It does run between two frames of one chunk, when an allocation starts the garbage
collector and that a finaliser: hence ``_busy``, and hence no way into a framer that does not look at it.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

import json
from types import MappingProxyType

from ._json import loads
from .errors import LimitExceeded, MalformedJSON, UsageError
from .marks import Mark


cdef extern from "_core/tw_scan.h" nogil:
    const uint8_t *tw_scan_ascii(const uint8_t *p, const uint8_t *end)


cdef extern from *:
    """
    static PyObject *tw_ascii(const uint8_t *p, size_t n)
    {
        PyObject *o = PyUnicode_New((Py_ssize_t)n, 127);
        if (o != NULL) memcpy(PyUnicode_DATA(o), p, n);
        return o;
    }
    """
    str _ascii "tw_ascii"(const uint8_t *, size_t)


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL


_MAX_FRAME_BYTES = 16 << 20

cdef enum:
    PINNED = 64 << 10          # bytes of a chunk that a frame may keep alive


# ---- frames ----

@cython.final
cdef class _Memory:
    """What a machine had put together, for one frame to keep."""
    cdef uint8_t *p

    def __dealloc__(self):
        free(self.p)


@cython.final
@cython.freelist(256)
@cython.no_gc
cdef class Frame:
    """One payload as it stood in the stream: an event block, a line, an array element, a message.

    Until ``raw`` is asked for it keeps the chunk alive that it came in, if that is not larger than 64 KiB.

    Args:
        raw: the payload bytes; data lines joined by LF.
        event: the event's name.
        id: the last event id as of this frame.
        offset: bytes from the start of the stream to the frame's first byte (for an event block: of its first field line).
        data_offset: the same to the payload's first byte (of its first line, where it has several).
        terminated: whether the frame's own end was seen.
        stray: whether this is a line that the event-stream standard ignores.
        headers: the message's own headers by name, read-only; None for formats that have none.
        retry: the reconnection time in milliseconds that came with this frame, or None.
        named: whether the stream gave the event's name, which it may also do for "message".
    """

    def __init__(
        self, bytes raw not None=b"", *, str event not None="message", str id not None="", uint64_t offset=0,
        data_offset=None, bint terminated=True, bint stray=False, headers=None, retry=None, named=None,
    ):
        self.owner = raw
        self.p = <const uint8_t *>PyBytes_AS_STRING(raw)
        self.n = PyBytes_GET_SIZE(raw)
        self.event = event
        self.id = id
        self.offset = offset
        self.data_offset = offset if data_offset is None else data_offset
        self.terminated = terminated
        self.stray = stray
        self.headers = None if headers is None else MappingProxyType(dict(headers))
        self.retry = retry
        self.named = event != "message" if named is None else bool(named)
        self.text = None
        self.wellformed = 0

    cdef bytes get_raw(self):
        cdef bytes raw
        if type(self.owner) is bytes and PyBytes_GET_SIZE(self.owner) == self.n:
            return <bytes>self.owner  # the payload can not be another part of it that is as long
        raw = PyBytes_FromStringAndSize(<const char *>self.p, self.n)
        self.owner = raw
        self.p = <const uint8_t *>PyBytes_AS_STRING(raw)
        return raw

    @property
    def raw(self):
        """The payload bytes; data lines joined by LF."""
        return self.get_raw()

    @property
    def size(self):
        """Bytes of the payload."""
        return self.n

    cdef bint _is_wellformed(self):
        if self.wellformed == 0:
            self.wellformed = 1 if tw_is_wellformed(self.p, <size_t>self.n) else -1
        return self.wellformed > 0

    @property
    def data(self):
        """The payload as text, decoded on first use. Ill-formed UTF-8 is shown as U+FFFD, one for each maximal subpart."""
        if self.text is None:
            # Python's "replace" follows the same practice as the WHATWG decoder; the tests compare the two.
            self.text = _decode(self.p, <size_t>self.n)
        return self.text

    def json(self):
        """The payload as a value: that of ``json.loads(frame.data)``, with its errors."""
        try:
            return loads(self.get_raw())
        except ValueError:
            return json.loads(self.data)

    @property
    def marks(self):
        """What was tolerated: ``("invalid_utf8",)`` or ``()``."""
        if self._is_wellformed():
            return ()
        return (Mark("invalid_utf8", self.offset),)

    def __reduce__(self):
        cdef object headers = None if self.headers is None else dict(self.headers)
        return _frame, (
            self.get_raw(), self.event, self.id, self.offset, self.data_offset, self.terminated, self.stray, headers, self.retry,
            self.named,
        )

    def __eq__(self, other):
        if not isinstance(other, Frame):
            return NotImplemented
        return self._as_value() == (<Frame>other)._as_value() and self.headers == (<Frame>other).headers

    def __hash__(self):
        return hash(self._as_value())

    cdef tuple _as_value(self):
        return self.get_raw(), self.event, self.id, self.offset, self.terminated, self.stray, self.retry

    def __repr__(self):
        cdef str shown = repr(self.get_raw()[:40]) + ("..." if self.n > 40 else "")
        cdef str rest = f", id={self.id!r}" if self.id else ""
        if not self.terminated:
            rest += ", terminated=False"
        if self.stray:
            rest += ", stray=True"
        return f"Frame({shown}, event={self.event!r}, offset={self.offset}{rest})"


def _frame(raw, event, id, offset, data_offset, terminated, stray, headers, retry, named=None):
    return Frame(
        raw, event=event, id=id, offset=offset, data_offset=data_offset, terminated=terminated, stray=stray, headers=headers,
        retry=retry, named=named,
    )


cdef inline bytes _take(const uint8_t *p, size_t n):
    return PyBytes_FromStringAndSize(<const char *>p, <Py_ssize_t>n)


cdef str _decode(const uint8_t *p, size_t n):
    if n > 1 and tw_scan_ascii(p, p + n) == p + n:
        return _ascii(p, n)
    return PyUnicode_DecodeUTF8(<const char *>p, <Py_ssize_t>n, "replace")


cdef inline bytes _saved_held(const tw_held *h):
    cdef size_t n
    cdef const uint8_t *p
    if h.where == TW_HELD_NONE:
        return None
    p = tw_held_bytes(h, &n)
    return _take(p, n)


cdef int _restore_held(tw_held *h, bytes value) except -1:
    if value is not None and tw_held_restore(h, <const uint8_t *>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value)):
        raise MemoryError
    return 0


cdef int _restore_buf(tw_buf *b, bytes value) except -1:
    if tw_buf_set(b, <const uint8_t *>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value)):
        raise MemoryError
    return 0


cdef size_t checked_limit(object framer, object max_frame_bytes) except 0:
    if not isinstance(max_frame_bytes, int) or not 1 <= max_frame_bytes < 1 << 62:
        raise UsageError(f"{type(framer).__name__}: max_frame_bytes must be a positive int, not {max_frame_bytes!r}")
    return max_frame_bytes


cdef object _misused(object framer, str what):
    return UsageError(f"{type(framer).__name__}{what}")


cdef object _no_bytes(object framer, str wanted, object chunk):
    return _misused(framer, f".feed() takes {wanted}, not {type(chunk).__name__}")


cdef bytes _message_bytes(object framer, object message):
    if isinstance(message, str):
        # Half a surrogate pair becomes ill-formed UTF-8, which the frame then marks.
        return message.encode("utf-8", "surrogatepass")
    if not PyObject_CheckBuffer(message):
        raise _no_bytes(framer, "str or bytes-like messages", message)
    return bytes(message)


def _blank(cls, options):
    """Unpickling: a new framer, to which ``__setstate__`` then gives its memory."""
    return cls(**options)


# ---- what all framers share ----

cdef class Framer:
    """Base of the framers; it has no format of its own.

    Frames never depend on how the bytes are cut. When the bytes are wrong, every good frame comes out first; the error is
    raised by the next call, and by every call after that.
    """

    def __cinit__(self, *args, **kwargs):
        if type(self) is Framer:
            raise UsageError("Framer is only the base of the framers")

    cdef void _begin(self, const uint8_t *p, size_t n) noexcept:
        pass

    cdef int _next(self, tw_frame *f) noexcept:
        return 0

    cdef int _last(self, tw_frame *f) noexcept:
        return 0

    cdef object _what(self):
        return MemoryError()

    cdef void _abandon(self) noexcept:
        pass

    cdef bint _in_frame(self) noexcept:
        return False

    cdef object _too_large(self, uint64_t offset):
        cdef str option = f"{type(self).__name__}(max_frame_bytes=...)"
        return LimitExceeded(
            f"a frame is longer than max_frame_bytes={self.max_frame_bytes}; {option} raises the limit",
            code="frame.too_large", limit="max_frame_bytes", value=self.max_frame_bytes, option=option, offset=offset,
        )

    cdef int _ready(self) except -1:
        if self._busy:
            raise _misused(self, " was called while it was at work (by a finaliser or another thread)")
        if self._error is not None:
            # Without the traceback of the last time: it would grow, and keep the callers' frames alive.
            raise self._error.with_traceback(None)
        return 0

    cdef int open(self, chunk) except -1:
        """Begin a chunk. Errors as ``feed``."""
        cdef Py_buffer view
        self._ready()
        if self._finished:
            raise _misused(self, ".feed() after finish()")
        if PyBytes_CheckExact(chunk):
            self._chunk = <bytes>chunk
        else:
            if not PyObject_CheckBuffer(chunk):
                raise _no_bytes(self, "bytes-like chunks", chunk)
            self._busy = True  # an exporter written in Python runs its own code here
            try:
                try:
                    PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
                except BufferError as error:
                    raise _misused(self, f".feed() takes contiguous chunks: {error}") from None
                try:
                    self._chunk = PyBytes_FromStringAndSize(<const char *>view.buf, view.len)
                finally:
                    PyBuffer_Release(&view)
            finally:
                self._busy = False
        self._busy = True
        if PyBytes_GET_SIZE(self._chunk):
            self._begin(<const uint8_t *>PyBytes_AS_STRING(self._chunk), <size_t>PyBytes_GET_SIZE(self._chunk))
        return 0

    cdef int next(self, tw_frame *f) except -1:
        """1: *f is the next frame, until the next call. 0: there is no more in this chunk."""
        cdef int got
        if self._chunk is None:
            return 0
        got = self._next(f) if PyBytes_GET_SIZE(self._chunk) else 0
        if got > 0:
            return 1
        if got < 0:
            self._error = self._what()
            self._abandon()
        self._chunk = None
        return 0

    cdef int close(self) except -1:
        """The chunk is done with; what was not read of it is lost, and nothing can follow."""
        if self._chunk is not None:
            self._chunk = None
            self._abandon()
        self._busy = False
        return 0

    cdef Frame blank(self, const tw_frame *f, object memory=None):
        """A frame with the payload and the places of *f; memory: what owns the payload, if neither chunk nor machine does."""
        cdef Frame made = Frame.__new__(Frame)
        cdef bytes chunk = self._chunk
        cdef const uint8_t *start
        cdef bytes copy
        made.offset = f.offset
        made.data_offset = f.data_offset
        made.terminated = f.terminated
        made.n = <Py_ssize_t>f.data_len
        if memory is not None:
            made.owner = memory
            made.p = f.data
            return made
        if chunk is not None and PyBytes_GET_SIZE(chunk) <= PINNED:
            start = <const uint8_t *>PyBytes_AS_STRING(chunk)
            if start <= f.data <= start + PyBytes_GET_SIZE(chunk):
                made.owner = chunk
                made.p = f.data
                return made
        copy = _take(f.data, f.data_len)
        made.owner = copy
        made.p = <const uint8_t *>PyBytes_AS_STRING(copy)
        return made

    cdef Frame make(self, const tw_frame *f):
        """The object for *f, which ``next`` has just given."""
        cdef Frame made = self.blank(f)
        made.event = "message"
        made.id = ""
        return made

    @cython.critical_section
    def feed(self, chunk, /):
        """Read one chunk, which may end anywhere.

        Args:
            chunk: bytes-like. An empty one changes nothing. ``bytes`` are not copied.

        Returns:
            The frames that ended in this chunk.

        Raises:
            UsageError: ``chunk`` is not bytes-like, or ``finish`` was called before. The framer is as it was.
            StreamError: an earlier call met wrong bytes. The same error is raised from then on.
        """
        cdef list out = []
        cdef tw_frame f
        self.open(chunk)
        try:
            while self.next(&f):
                out.append(self.make(&f))
        except BaseException as error:
            self._error = error  # frames were lost: nothing good can follow
            raise
        finally:
            self.close()
        return out

    @cython.critical_section
    def finish(self, *, bint flush=False):
        """End of input. A second call returns nothing.

        Args:
            flush: hand out the unterminated frame, with ``terminated == False``, which is otherwise dropped.

        Returns:
            That frame, if there is one (an ``SSEFramer`` with ``stray`` may have a line besides).

        Raises:
            StreamError: an earlier call met wrong bytes. The same error is raised from then on.
        """
        cdef list out = []
        cdef tw_frame f
        cdef int got
        self._ready()
        if self._finished:
            return out
        self._ended_in_frame = self._in_frame()
        self._finished = True
        if flush:
            self._busy = True
            try:
                while True:
                    got = self._last(&f)
                    if got < 0:
                        raise MemoryError
                    if got == 0:
                        break
                    out.append(self.make(&f))
            except BaseException as error:
                self._error = error
                raise
            finally:
                self._busy = False
        return out

    @property
    def error(self):
        """What every call from now on raises, or None."""
        return self._error

    @property
    def in_frame(self):
        """Whether the input so far ends inside a frame. After ``finish`` it says whether the whole input did."""
        return self._ended_in_frame if self._finished else self._in_frame()

    @property
    def last_event_id(self):
        """The id with which a client would reconnect; always "" where the format has none."""
        return ""

    @property
    def retry(self):
        """The reconnection time in milliseconds that the stream asked for, or None."""
        return None

    cdef tuple _common(self):
        if self._busy:
            raise _misused(self, " was pickled while it was at work")
        return self._error, self._finished, self._ended_in_frame

    cdef int _set_common(self, tuple state) except -1:
        if self._busy:
            raise _misused(self, " was called while it was at work (by a finaliser or another thread)")
        self._error, self._finished, self._ended_in_frame = state
        return 0


# ---- event streams ----


@cython.final
cdef class SSEFramer(Framer):
    """Event-stream framer (HTML standard sections 9.2.5 and 9.2.6).

    Args:
        max_frame_bytes: the largest frame: its field lines without their line ends. Comments do not count.
        stray: also hand out, as frames of their own (``Frame.stray``), the lines that the standard ignores.
        last_event_id: the id to begin with, where this stream continues another.
    """

    cdef tw_sse m
    cdef str _id            # str of the machine's last id ...
    cdef uint64_t _id_serial  # ... as of this serial
    cdef list _names        # event names seen lately, by a small hash

    def __cinit__(self, *, max_frame_bytes=_MAX_FRAME_BYTES, bint stray=False, str last_event_id not None=""):
        cdef bytes id
        tw_sse_init(&self.m, checked_limit(self, max_frame_bytes), stray)
        self.max_frame_bytes = max_frame_bytes
        self._id = ""
        self._id_serial = 1
        if last_event_id:
            if "\0" in last_event_id or "\n" in last_event_id or "\r" in last_event_id:
                raise UsageError("SSEFramer: last_event_id can not hold NUL, CR or LF")
            id = last_event_id.encode("utf-8", "surrogatepass")
            _restore_buf(&self.m.last_id, id)
            self._id = last_event_id

    def __dealloc__(self):
        tw_sse_free(&self.m)

    cdef str _name(self, const uint8_t *p, size_t n):
        """The event name as a str; the same object again for a name seen lately."""
        cdef Py_ssize_t size
        cdef const char *known
        cdef object name
        cdef size_t at
        if n > 64:
            return _decode(p, n)
        at = (n * 7 + p[0] + 3 * p[n - 1] + 5 * p[n >> 1]) & 15
        if self._names is None:
            self._names = [None] * 16
        name = self._names[at]
        if name is not None:
            known = PyUnicode_AsUTF8AndSize(name, &size)
            if <size_t>size == n and memcmp(known, p, n) == 0:
                return <str>name
        name = _decode(p, n)
        self._names[at] = name
        return <str>name

    cdef str _last_id(self, const tw_frame *f):
        if f.id_serial == 0:
            return _decode(f.id, f.id_len)
        if f.id_serial != self._id_serial:
            self._id = _decode(f.id, f.id_len)
            self._id_serial = f.id_serial
        return self._id

    cdef Frame make(self, const tw_frame *f):
        cdef Frame made
        cdef _Memory memory
        if f.data_len >= PINNED and self._chunk is not None:
            memory = _Memory.__new__(_Memory)
            memory.p = tw_sse_steal(&self.m, f)
            made = self.blank(f, memory if memory.p != NULL else None)
        else:
            made = self.blank(f)
        made.id = self._last_id(f)
        if f.has_retry:
            made.retry = self.retry
        if f.kind == TW_FRAME_STRAY:
            made.stray = True
            made.event = ""
        elif f.event_len == 0:
            made.event = "message"
        else:
            made.event = self._name(f.event, f.event_len)
            made.named = True
        return made

    cdef void _begin(self, const uint8_t *p, size_t n) noexcept:
        tw_sse_feed(&self.m, p, n)

    cdef int _next(self, tw_frame *f) noexcept:
        return tw_sse_next(&self.m, f)

    cdef int _last(self, tw_frame *f) noexcept:
        return tw_sse_flush(&self.m, f)

    cdef object _what(self):
        return MemoryError() if self.m.error == TW_E_MEMORY else self._too_large(self.m.error_offset)

    cdef void _abandon(self) noexcept:
        tw_sse_abandon(&self.m)

    cdef bint _in_frame(self) noexcept:
        return tw_sse_in_frame(&self.m)

    @property
    def stray(self):
        """Whether lines that the standard ignores are handed out."""
        return bool(self.m.stray)

    @property
    def offset(self):
        """Bytes read. After an error: its offset."""
        return self.m.base

    @property
    def last_event_id(self):
        """The id with which a client would reconnect: that of the last block that a blank line ended."""
        if self.m.id_serial != self._id_serial:
            self._id = _decode(self.m.last_id.p, self.m.last_id.len)
            self._id_serial = self.m.id_serial
        return self._id

    @property
    def retry(self):
        """The reconnection time in milliseconds that the stream asked for, or None. More than 64 digits count as 64 nines."""
        return int(_take(self.m.retry, self.m.retry_len)) if self.m.retry_len else None

    def __reduce__(self):
        cdef tw_sse *m = &self.m
        common = self._common()
        return _blank, (SSEFramer, {"max_frame_bytes": self.max_frame_bytes, "stray": bool(m.stray)}), (
            common, m.error, m.state, m.bom, m.block_open, m.block_offset, m.data_offset, m.line_offset, m.base, m.held,
            _take(m.retry, m.retry_len),
            _take(m.line.p, m.line.len), _take(m.last_id.p, m.last_id.len),
            _saved_held(&m.data), _saved_held(&m.event), _saved_held(&m.id),
        )

    def __setstate__(self, tuple state not None):
        cdef tw_sse *m = &self.m
        cdef bytes retry, line, last_id, data, event, id
        (common, error, state_, bom, open_, block_offset, data_offset, line_offset,
         base, held, retry, line, last_id, data, event, id) = state
        self._set_common(common)
        if state_ > ST_SSE_FAILED or bom > 3 or len(line) + held > m.max_frame_bytes or len(retry) > TW_SSE_RETRY_DIGITS:
            raise UsageError("SSEFramer: not a state of this version")
        m.state, m.bom, m.block_open, m.block_offset, m.line_offset = state_, bom, open_, block_offset, line_offset
        m.data_offset = data_offset
        m.base, m.held, m.retry_len = base, held, len(retry)
        memcpy(m.retry, PyBytes_AS_STRING(retry), m.retry_len)
        m.error, m.error_offset = error, m.base
        m.id_serial += 1
        _restore_buf(&m.line, line)
        _restore_buf(&m.last_id, last_id)
        _restore_held(&m.data, data)
        _restore_held(&m.event, event)
        _restore_held(&m.id, id)


# ---- newline-delimited JSON ----

@cython.final
cdef class NDJSONFramer(Framer):
    """One frame a line; lines end at LF or CRLF, and those of white space only are skipped.

    Args:
        max_frame_bytes: the longest line, without its LF.
    """

    cdef tw_lines m

    def __cinit__(self, *, max_frame_bytes=_MAX_FRAME_BYTES):
        tw_lines_init(&self.m, checked_limit(self, max_frame_bytes))
        self.max_frame_bytes = max_frame_bytes

    def __dealloc__(self):
        tw_lines_free(&self.m)

    cdef void _begin(self, const uint8_t *p, size_t n) noexcept:
        tw_lines_feed(&self.m, p, n)

    cdef int _next(self, tw_frame *f) noexcept:
        return tw_lines_next(&self.m, f)

    cdef int _last(self, tw_frame *f) noexcept:
        return tw_lines_flush(&self.m, f)

    cdef object _what(self):
        return MemoryError() if self.m.error == TW_E_MEMORY else self._too_large(self.m.error_offset)

    cdef void _abandon(self) noexcept:
        tw_lines_abandon(&self.m)

    cdef bint _in_frame(self) noexcept:
        return tw_lines_in_frame(&self.m)

    @property
    def offset(self):
        """Bytes read. After an error: its offset."""
        return self.m.base

    def __reduce__(self):
        cdef tw_lines *m = &self.m
        common = self._common()
        return _blank, (NDJSONFramer, {"max_frame_bytes": self.max_frame_bytes}), (
            common, m.error, m.state, m.bom, m.line_has_text, m.line_offset, m.base, _take(m.line.p, m.line.len),
        )

    def __setstate__(self, tuple state not None):
        cdef tw_lines *m = &self.m
        common, error, state_, bom, has_text, line_offset, base, line = state
        self._set_common(common)
        if state_ > ST_LINES_FAILED or bom > 3 or <size_t>len(line) > m.max_frame_bytes:
            raise UsageError("NDJSONFramer: not a state of this version")
        m.state, m.bom, m.line_has_text, m.line_offset, m.base = state_, bom, has_text, line_offset, base
        m.error, m.error_offset = error, m.base
        _restore_buf(&m.line, line)


# ---- a JSON array ----

@cython.final
cdef class JSONArrayFramer(Framer):
    """One frame for each element of one top-level JSON array, as soon as it closes. The elements are not validated.

    Args:
        max_frame_bytes: the longest element.
    """

    cdef tw_array m

    def __cinit__(self, *, max_frame_bytes=_MAX_FRAME_BYTES):
        tw_array_init(&self.m, checked_limit(self, max_frame_bytes))
        self.max_frame_bytes = max_frame_bytes

    def __dealloc__(self):
        tw_array_free(&self.m)

    cdef object _what(self):
        cdef tw_array *m = &self.m
        cdef int need = m.error_state
        if m.error == TW_E_MEMORY:
            return MemoryError()
        if m.error == TW_E_FRAME_TOO_LARGE:
            return self._too_large(m.error_offset)
        found = f"byte 0x{m.error_byte:02x}"
        if 0x20 < m.error_byte < 0x7F:
            found = repr(chr(m.error_byte))
        if m.error == TW_E_JSON_TRAILING_DATA:
            return MalformedJSON(f"{found} after the array", code="json.trailing_data", offset=m.error_offset)
        if need <= ST_ARRAY_NEED_OPEN:
            wanted = "'['"
        elif need == ST_ARRAY_NEED_ELEMENT_OR_END:
            wanted = "an array element or ']'"
        elif need == ST_ARRAY_NEED_ELEMENT:
            wanted = "an array element"
        elif need == ST_ARRAY_IN_SCALAR:
            wanted = "the end of an array element"
        else:
            wanted = "',' or ']'"
        return MalformedJSON(f"{found} where {wanted} should be", code="json.unexpected_byte", offset=m.error_offset)

    cdef void _begin(self, const uint8_t *p, size_t n) noexcept:
        tw_array_feed(&self.m, p, n)

    cdef int _next(self, tw_frame *f) noexcept:
        return tw_array_next(&self.m, f)

    cdef int _last(self, tw_frame *f) noexcept:
        return tw_array_flush(&self.m, f)

    cdef void _abandon(self) noexcept:
        tw_array_abandon(&self.m)

    cdef bint _in_frame(self) noexcept:
        return tw_array_in_frame(&self.m)

    @property
    def closed(self):
        """Whether the array's own ``]`` has been seen. Only then has the whole body arrived."""
        return bool(self.m.closed)

    @property
    def offset(self):
        """Bytes read. After an error: its offset."""
        return self.m.base

    def __reduce__(self):
        cdef tw_array *m = &self.m
        common = self._common()
        return _blank, (JSONArrayFramer, {"max_frame_bytes": self.max_frame_bytes}), (
            common, m.error, m.state, m.bom, m.closed, m.depth, m.element_offset, m.base, _take(m.element.p, m.element.len),
        )

    def __setstate__(self, tuple state not None):
        cdef tw_array *m = &self.m
        common, error, state_, bom, closed, depth, element_offset, base, element = state
        self._set_common(common)
        if state_ > ST_ARRAY_FAILED or bom > 3 or (state_ == ST_ARRAY_BOM and bom == 3) or <size_t>len(element) > m.max_frame_bytes:
            raise UsageError("JSONArrayFramer: not a state of this version")
        m.state, m.bom, m.closed, m.depth, m.element_offset, m.base = state_, bom, closed, depth, element_offset, base
        m.error, m.error_offset = error, m.base
        _restore_buf(&m.element, element)


# ---- messages ----

@cython.final
cdef class MessageFramer(Framer):
    """One frame for each message of a transport that has messages, such as a WebSocket.

    Args:
        max_frame_bytes: the longest message, in UTF-8.
    """

    cdef size_t limit
    cdef uint64_t base

    def __cinit__(self, *, max_frame_bytes=_MAX_FRAME_BYTES):
        self.limit = checked_limit(self, max_frame_bytes)
        self.max_frame_bytes = max_frame_bytes

    @cython.critical_section
    def feed(self, chunk, /):
        """Read one whole message.

        Args:
            chunk: the message, ``str`` or bytes-like. An empty message is a frame too.

        Returns:
            One frame, or none if the message is too long.

        Raises:
            UsageError: ``chunk`` is neither, or ``finish`` was called before. The framer is as it was.
            LimitExceeded: an earlier message was too long. The same error is raised from then on.
        """
        cdef bytes raw
        cdef uint64_t offset = self.base
        self._ready()
        if self._finished:
            raise _misused(self, ".feed() after finish()")
        self._busy = True
        try:
            raw = _message_bytes(self, chunk)
        finally:
            self._busy = False
        if <size_t>PyBytes_GET_SIZE(raw) > self.limit:
            self.base += self.limit
            self._error = self._too_large(self.base)
            return []
        self.base += <uint64_t>PyBytes_GET_SIZE(raw)
        return [Frame(raw, offset=offset)]

    @property
    def offset(self):
        """Bytes read. After an error: its offset."""
        return self.base

    def __reduce__(self):
        return _blank, (MessageFramer, {"max_frame_bytes": self.max_frame_bytes}), (self._common(), self.base)

    def __setstate__(self, tuple state not None):
        common, base = state
        self._set_common(common)
        self.base = base
