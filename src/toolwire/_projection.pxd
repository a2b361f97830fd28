# cython: language_level=3
"""What the other extension modules may use of projections and templates."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "_core/tw_template.h":
    ctypedef struct tw_field
    ctypedef struct tw_node:
        tw_field *fields
        uint32_t n
    ctypedef struct tw_field:
        const char *name
        size_t len
        void *key
        tw_node *child
    ctypedef struct tw_step:
        const char *name
        size_t len
        uint32_t index
    ctypedef struct tw_aim:
        const tw_node *wanted
        const tw_step *path
        int path_len
        const char *counter
        size_t counter_len
        uint32_t max_depth
    ctypedef struct tw_template:
        uint32_t same
    ctypedef struct tw_span:
        const uint8_t *p
        size_t n
    ctypedef struct tw_fit:
        tw_span text
        int form
        uint64_t counter
        int has_counter
    enum:
        TW_TEMPLATE_HOLES
        TW_TEXT_SHORT_ESCAPES
        TW_TEXT_PLAIN


cdef class Template:
    cdef tw_template t
    cdef tuple path
    cdef bint stale            # one that stands for more has taken its place

    cdef bint fit(self, const tw_span *same, tw_span *found, const uint8_t *p, size_t n, tw_fit *fit) noexcept


cdef class Projection:
    cdef tw_node *root
    cdef object names           # keeps names and keys alive
    cdef object spec
    cdef bytes counter
    cdef list templates
    cdef uint32_t max_depth

    cdef tw_node *compile(self, spec) except? NULL
    cdef Template template(self, tuple path, const uint8_t *p, size_t n)
    cdef Template make(self, Template old, tuple path, const uint8_t *p, size_t n)
    cdef str decode(self, const uint8_t *p, const uint8_t *end)
