# cython: language_level=3
"""What the other extension modules may use of the JSON half."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "_pybuild.h" nogil:
    const int TW_GROW_IN_PLACE
    const uint32_t TW_NOT_LENT

    ctypedef struct tw_keys:
        pass
    ctypedef struct tw_json:
        uint64_t offset, consumed, error_offset, token_offset, escape_offset, high_offset
        uint8_t *stack
        uint32_t depth, max_depth
        uint8_t state, error, in_key, text_open, surrogates, allow_nan, allow_control, raw_surrogates
        uint8_t part[4]
        uint8_t part_len, part_want, hex_left, number, number_parts, literal, literal_pos
        uint16_t hex, high
    ctypedef struct tw_decimal
    ctypedef struct tw_node
    ctypedef struct tw_watch
    ctypedef struct tw_watches
    ctypedef struct tw_level:
        PyObject *container
        PyObject *key
        Py_ssize_t count
        const tw_node *node
        const tw_node *next
    ctypedef struct tw_str:
        PyObject *o
        Py_ssize_t room
    ctypedef struct tw_build:
        PyObject *root
        tw_level *frames
        uint8_t *scratch
        size_t scratch_len, scratch_cap, cont
        PyObject *marks
        const tw_node *node
        tw_str open
        uint64_t key_offset
        uint32_t depth, frames_cap, lent, more_marks
        uint8_t lead, in_text, exposed, refuse_duplicates

    int ST_JSON_NEED_VALUE, ST_JSON_NEED_VALUE_OR_END, ST_JSON_NEED_COLON, ST_JSON_IN_STRING
    int ST_JSON_IN_NUMBER, ST_JSON_IN_LITERAL, ST_JSON_DONE, ST_JSON_ERROR
    int TW_OK, TW_NUM_INT
    int TW_E_JSON_UNEXPECTED_BYTE, TW_E_JSON_BAD_LITERAL, TW_E_JSON_BAD_NUMBER, TW_E_JSON_BAD_ESCAPE
    int TW_E_JSON_CONTROL_CHARACTER, TW_E_JSON_BAD_UTF8, TW_E_JSON_LONE_SURROGATE, TW_E_JSON_DUPLICATE_KEY
    int TW_E_JSON_TOO_DEEP, TW_E_JSON_NUMBER_TOO_LONG, TW_E_MEMORY
    int TW_SURROGATES_ERROR, TW_SURROGATES_REPLACE, TW_SURROGATES_KEEP

    size_t tw_json_stack_bytes(uint32_t)
    void tw_json_init(tw_json *, uint8_t *, uint32_t)
    bint tw_json_is_space(uint8_t)
    bint tw_num_may_end(uint8_t)


cdef extern from "_pybuild.h":
    tw_keys *tw_keys_here()
    void tw_build_init(tw_build *, tw_keys *)
    void tw_build_clear(tw_build *)
    const uint8_t *tw_build_run(tw_json *, tw_build *, const uint8_t *, const uint8_t *)
    int tw_show_open(tw_build *, const tw_json *)
    int tw_b_number(tw_build *, tw_json *, const uint8_t *, size_t, int, const tw_decimal *)
    PyObject *tw_build_snapshot(tw_build *)
    int tw_build_take_back(tw_build *)
    object tw_build_path(const tw_build *, const tw_json *)
    PyObject *tw_slot_get(const tw_build *)
    int tw_slot_set(tw_build *, object, PyObject *)
    void tw_str_clear(tw_str *)
    int tw_str_empty(tw_str *) except -1
    int tw_str_renew(tw_str *, Py_ssize_t, Py_UCS4) except -1
    bint tw_str_fits(const tw_str *, Py_ssize_t, Py_UCS4, Py_ssize_t)
    void tw_str_append(tw_str *, const uint8_t *, size_t, uint8_t, size_t)
    Py_ssize_t tw_str_length(const tw_str *)
    void tw_grow_set_length(PyObject *, Py_ssize_t)
    int copy_characters "tw_copy_characters"(PyObject *, Py_ssize_t, object, Py_ssize_t) except -1
    int tw_scratch_add(tw_build *, const uint8_t *, size_t)
    object raise_pending "tw_null_result"()


cdef class JSONParser:
    cdef tw_json j
    cdef tw_build b
    cdef uint64_t fed
    cdef uint64_t max_bytes
    cdef object error          # sticky
    cdef object rest           # bytearray behind the root value, or None
    cdef Py_ssize_t blank      # bytes of it that are known to be white space
    cdef object held           # a high surrogate that ended the last str, or None
    cdef tw_watches *watches   # of the taps; NULL before the first
    cdef bint busy
    cdef bint finished

    cdef int run(self, const uint8_t *p, Py_ssize_t n) except -1
    cdef int odd(self, const uint8_t *stop, const uint8_t *end, Py_ssize_t take, bint too_long) except -1
    cdef int run_str(self, str text) except -1
    cdef int run_copy(self, data) except -1
    cdef int release_held(self) except -1
    cdef int check_idle(self) except -1
    cdef int check_open(self) except -1
    cdef object restart_taps(self)
    cdef object live(self)
    cdef object trailing_error(self)


cdef class Feeder:
    cdef int sync(self) except -1


cdef class _Tap:
    cdef tw_watch *watch
    cdef JSONParser parser
    cdef Feeder feeder          # has what the parser was not given yet; or None
    cdef tuple steps            # the path as it was given
    cdef list queue             # what ended and was not read
    cdef object __weakref__

    cdef int attach(self, JSONParser parser, path, bint items) except -1
    cdef int begin(self, bint seek) except -1
    cdef int ready(self) except -1
    cdef object take(self)
    cdef void restart(self)
    cdef int find(self) except -1
    cdef list below(self, object here, tuple path, bint is_open)


cdef class StringTap(_Tap):
    cdef readonly tuple path
    cdef Py_ssize_t head        # strings of the queue that were handed out
    cdef Py_ssize_t offset      # characters of the next string that were handed out
    cdef bint ended             # the string at `path` was handed out to its end

    cdef object next_piece(self)


cdef class ItemTap(_Tap):
    pass


cdef object json_error(tw_json *, int, object)
cdef object trailing(uint64_t, int)
cdef object truncated(uint64_t, object)
cdef Py_ssize_t first_content(const uint8_t *, Py_ssize_t) noexcept
cdef object join_surrogates(str, str)
