# cython: language_level=3
"""What the other extension modules may use of calls."""

from ._json cimport Feeder, JSONParser, tw_str


cdef class ArgumentBuffer(Feeder):
    cdef tw_str grown
    cdef JSONParser parser
    cdef Py_ssize_t parsed      # characters that the parser has
    cdef Py_ssize_t max_chars
    cdef int max_depth
    cdef bint json
    cdef str held               # a high surrogate that ended the last piece
    cdef list lone              # offsets of surrogates that were replaced
    cdef bint ended

    cdef str add(self, str text)
    cdef str clean(self, str text)
    cdef str replace_lone(self, str text)
    cdef int sync(self) except -1
    cdef int start_over(self) except -1


cdef class ToolCall:
    cdef readonly str key
    cdef public object id
    cdef public bint id_is_synthetic
    cdef public object name
    cdef readonly str kind
    cdef public str runs_on
    cdef readonly object choice
    cdef public bint closed
    cdef public bint _announced
    cdef public bint _empty_is_object   # set at a good end: empty argument text is {}
    cdef dict _extra
    cdef dict _doubts
    cdef dict _marks
    cdef list _held                     # argument text that came before the name, not yet handed out
    cdef public ArgumentBuffer _buffer
