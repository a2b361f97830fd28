# cython: language_level=3
cimport cython
from libc.stdint cimport uint8_t, uint64_t


cdef extern from "_core/tw_frame.h" nogil:
    enum:
        TW_FRAME_STRAY

    ctypedef struct tw_buf:
        uint8_t *p
        size_t len

    ctypedef struct tw_frame:
        const uint8_t *data
        size_t data_len
        const uint8_t *event
        size_t event_len
        const uint8_t *id
        size_t id_len
        uint64_t id_serial
        uint64_t offset
        uint64_t data_offset
        uint8_t kind
        uint8_t terminated
        uint8_t has_retry

    int tw_buf_set(tw_buf *b, const uint8_t *src, size_t n)


cdef extern from "_core/tw_sse.h" nogil:
    ctypedef struct tw_held:
        uint8_t where

    enum:
        TW_SSE_RETRY_DIGITS
        TW_HELD_NONE
        ST_SSE_FAILED

    ctypedef struct tw_sse:
        size_t max_frame_bytes
        uint8_t stray
        uint8_t state
        uint8_t bom
        uint8_t block_open
        uint64_t block_offset
        uint64_t data_offset
        uint64_t line_offset
        uint64_t base
        size_t held
        uint8_t retry_len
        uint8_t *retry
        uint64_t id_serial
        tw_buf line
        tw_buf last_id
        tw_held data
        tw_held event
        tw_held id
        int error
        uint64_t error_offset

    void tw_sse_init(tw_sse *m, size_t max_frame_bytes, int stray)
    void tw_sse_free(tw_sse *m)
    void tw_sse_feed(tw_sse *m, const uint8_t *chunk, size_t len)
    int tw_sse_next(tw_sse *m, tw_frame *out)
    void tw_sse_abandon(tw_sse *m)
    int tw_sse_flush(tw_sse *m, tw_frame *out)
    int tw_sse_in_frame(const tw_sse *m)
    uint8_t *tw_sse_steal(tw_sse *m, const tw_frame *f)
    int tw_held_restore(tw_held *h, const uint8_t *src, size_t n)
    const uint8_t *tw_held_bytes(const tw_held *h, size_t *n)


cdef extern from "_core/tw_lines.h" nogil:
    enum:
        ST_LINES_BOM
        ST_LINES_FAILED

    ctypedef struct tw_lines:
        size_t max_frame_bytes
        uint8_t state
        uint8_t bom
        uint8_t line_has_text
        uint64_t line_offset
        uint64_t base
        tw_buf line
        int error
        uint64_t error_offset

    void tw_lines_init(tw_lines *m, size_t max_frame_bytes)
    void tw_lines_free(tw_lines *m)
    void tw_lines_feed(tw_lines *m, const uint8_t *chunk, size_t len)
    int tw_lines_next(tw_lines *m, tw_frame *out)
    void tw_lines_abandon(tw_lines *m)
    int tw_lines_flush(tw_lines *m, tw_frame *out)
    int tw_lines_in_frame(const tw_lines *m)


cdef extern from "_core/tw_array.h" nogil:
    enum:
        ST_ARRAY_BOM
        ST_ARRAY_NEED_OPEN
        ST_ARRAY_NEED_ELEMENT_OR_END
        ST_ARRAY_NEED_ELEMENT
        ST_ARRAY_IN_SCALAR
        ST_ARRAY_AFTER_ELEMENT
        ST_ARRAY_CLOSED
        ST_ARRAY_FAILED

    ctypedef struct tw_array:
        size_t max_frame_bytes
        uint8_t state
        uint8_t bom
        uint8_t closed
        uint64_t depth
        uint64_t element_offset
        uint64_t base
        tw_buf element
        int error
        uint64_t error_offset
        uint8_t error_byte
        uint8_t error_state

    void tw_array_init(tw_array *m, size_t max_frame_bytes)
    void tw_array_free(tw_array *m)
    void tw_array_feed(tw_array *m, const uint8_t *chunk, size_t len)
    int tw_array_next(tw_array *m, tw_frame *out)
    void tw_array_abandon(tw_array *m)
    int tw_array_flush(tw_array *m, tw_frame *out)
    int tw_array_in_frame(const tw_array *m)


cdef extern from "_core/tw_wellformed.h" nogil:
    int tw_is_wellformed(const uint8_t *p, size_t n)


cdef extern from "_core/tw_common.h" nogil:
    enum:
        TW_E_JSON_UNEXPECTED_BYTE
        TW_E_JSON_TRAILING_DATA
        TW_E_FRAME_TOO_LARGE
        TW_E_MEMORY


cdef class Frame:
    cdef const uint8_t *p        # the payload, which lies in what `owner` owns
    cdef Py_ssize_t n
    cdef object owner            # .raw; as long as nobody asked for that, the chunk or the memory that holds the payload
    cdef readonly str event
    cdef readonly str id
    cdef readonly uint64_t offset
    cdef readonly uint64_t data_offset
    cdef readonly bint terminated
    cdef readonly bint stray
    cdef readonly bint named
    cdef readonly object headers  # a mapping, or None
    cdef readonly object retry
    cdef str text                # .data once it has been asked for
    cdef signed char wellformed  # 1: it is UTF-8, -1: it is not, 0: not looked at yet

    cdef bytes get_raw(self)
    cdef bint _is_wellformed(self)
    cdef tuple _as_value(self)


cdef size_t checked_limit(object framer, object max_frame_bytes) except 0


cdef class Framer:
    """What all framers share. A subclass gives the machine: how it begins a chunk, its next frame, its end, its error.

    ``open``, ``next`` until it returns 0, ``close``: frames one by one, of which ``make`` makes an object if one is wanted.
    """
    cdef readonly object max_frame_bytes
    cdef object _error           # sticky: raised by every call after the one that met it
    cdef bytes _chunk            # the one at hand
    cdef bint _busy
    cdef bint _finished
    cdef bint _ended_in_frame    # in_frame when finish() was called

    @cython.final
    cdef int open(self, chunk) except -1

    @cython.final
    cdef int next(self, tw_frame *f) except -1

    @cython.final
    cdef int close(self) except -1

    @cython.final
    cdef Frame blank(self, const tw_frame *f, object memory=*)

    cdef Frame make(self, const tw_frame *f)
    cdef void _begin(self, const uint8_t *p, size_t n) noexcept
    cdef int _next(self, tw_frame *f) noexcept
    cdef int _last(self, tw_frame *f) noexcept
    cdef object _what(self)
    cdef void _abandon(self) noexcept
    cdef bint _in_frame(self) noexcept
    cdef object _too_large(self, uint64_t offset)
    cdef int _ready(self) except -1
    cdef tuple _common(self)
    cdef int _set_common(self, tuple state) except -1
