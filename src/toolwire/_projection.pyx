# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=False
"""Whole documents of which only a part is wanted: ``Projection``, and the templates that it keeps of them."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from ._framing cimport Frame
from ._json cimport (
    ST_JSON_DONE, ST_JSON_ERROR, ST_JSON_IN_NUMBER, TW_E_MEMORY, TW_NUM_INT, TW_OK, TW_SURROGATES_KEEP, first_content, json_error,
    raise_pending, trailing, truncated, tw_b_number, tw_build, tw_build_clear, tw_build_init, tw_json, tw_json_init,
    tw_json_stack_bytes, tw_keys_here, tw_num_may_end,
)

from ._json import MISSING
from .errors import UsageError


cdef extern from "_pyproject.h":
    const uint8_t *tw_project_run(tw_json *, tw_build *, const uint8_t *, const uint8_t *)

cdef extern from "_core/tw_template.h":
    int tw_template_make(tw_template *, const tw_template *, const tw_aim *, const uint8_t *, size_t)
    void tw_template_free(tw_template *)
    int tw_template_fit(const tw_template *, const tw_span *, tw_span *, const uint8_t *, size_t, tw_fit *)


cdef enum:
    TEMPLATES = 32             # kept by one projection
    PATH = 12                  # steps of a path
    STACK = 128                # bytes of the machine's stack that need no memory of their own: 1,000 levels


@cython.final
cdef class Template:
    """What payloads of one kind have in common, see ``_core/tw_template.h``. Never changes; made by ``Projection``."""

    def __dealloc__(self):
        tw_template_free(&self.t)

    cdef bint fit(self, const tw_span *same, tw_span *found, const uint8_t *p, size_t n, tw_fit *fit) noexcept:
        return tw_template_fit(&self.t, same, found, p, n, fit)


@cython.final
cdef class Projection:
    """Reads whole JSON documents, and builds objects only for the members that somebody wants.

    The whole document is validated all the same.

    Args:
        spec: the wanted members as nested dicts. True takes the whole value of a member. Lists are walked through: what is
            wanted of a list is wanted of each of its elements. Scalars where the spec expects a container come out as they
            are.
        max_depth: nested arrays and objects allowed.
        counter: name of the root's member that numbers the documents, or None.
    """

    def __cinit__(self, spec, *, max_depth=512, counter=None):
        if not isinstance(max_depth, int) or not 1 <= max_depth <= 1_000_000:
            raise UsageError(f"max_depth must be an integer from 1 to 1,000,000, not {max_depth!r}")
        self.names = []
        self.counter = None if counter is None else counter.encode()
        self.templates = []
        self.spec = spec
        self.max_depth = max_depth
        self.root = self.compile(spec)

    def __dealloc__(self):
        free_node(self.root)

    cdef tw_node *compile(self, spec) except? NULL:
        cdef tw_node *node
        cdef bytes name
        if spec is True:
            return NULL
        if not isinstance(spec, dict):
            raise UsageError(f"a projection is made of dicts and True, not {spec!r}")
        node = <tw_node *>PyMem_Calloc(1, sizeof(tw_node))
        if node == NULL:
            raise MemoryError
        try:
            node.fields = <tw_field *>PyMem_Calloc(len(spec) or 1, sizeof(tw_field))
            if node.fields == NULL:
                raise MemoryError
            for key, inner in spec.items():
                name = key.encode()
                self.names += (name, key)
                node.fields[node.n].name = PyBytes_AS_STRING(name)
                node.fields[node.n].len = PyBytes_GET_SIZE(name)
                node.fields[node.n].key = <void *>key
                node.fields[node.n].child = self.compile(inner)
                node.n += 1
        except BaseException:
            free_node(node)
            raise
        return node

    def apply(self, data, record=None):
        """Parse one whole document. Turns share projections, and may be at work in several threads.

        Args:
            data: bytes or str, or a ``Frame``, of which it reads the payload.
            record: its ``duplicate_keys`` is set: did a wanted member stand in the document twice?

        Returns:
            The value, reduced to the wanted members. Lone surrogates from escapes are kept: text may be cut between them.

        Raises:
            MalformedJSON, TruncatedJSON, LimitExceeded: as ``loads``.
        """
        cdef tw_json j
        cdef tw_build b
        cdef const uint8_t *p = NULL
        cdef const uint8_t *end = NULL
        cdef const uint8_t *stop
        cdef Py_ssize_t i
        cdef int status
        cdef bytes raw = None
        cdef uint8_t small[STACK]
        cdef uint8_t *stack = small
        if type(data) is Frame:
            p = (<Frame>data).p
            end = p + (<Frame>data).n
        elif isinstance(data, str):
            raw = (<str>data).encode("utf-8", "surrogatepass")
        elif PyBytes_CheckExact(data):
            raw = data
        else:
            raw = bytes(data)
        if raw is not None:
            p = <const uint8_t *>PyBytes_AS_STRING(raw)
            end = p + PyBytes_GET_SIZE(raw)
        if tw_json_stack_bytes(self.max_depth) > STACK:
            stack = <uint8_t *>PyMem_Malloc(tw_json_stack_bytes(self.max_depth))
            if stack == NULL:
                raise MemoryError
        tw_json_init(&j, stack, self.max_depth)
        j.surrogates = TW_SURROGATES_KEEP
        j.raw_surrogates = isinstance(data, str)
        tw_build_init(&b, tw_keys_here())
        b.node = self.root
        try:
            stop = tw_project_run(&j, &b, p, end)
            if j.state == ST_JSON_ERROR:
                if j.error == TW_E_MEMORY:
                    raise_pending()
                raise json_error(&j, stop[0] if stop < end else -1, None)
            if j.state == ST_JSON_IN_NUMBER and j.depth == 0 and tw_num_may_end(j.number):
                status = tw_b_number(&b, &j, NULL, 0, j.number <= TW_NUM_INT, NULL)
                if status != TW_OK:
                    j.error = status
                    j.error_offset = j.token_offset
                    if status == TW_E_MEMORY:
                        raise_pending()
                    raise json_error(&j, -1, None)
            elif j.state != ST_JSON_DONE:
                raise truncated(end - p, None)
            i = first_content(stop, end - stop)
            if i >= 0:
                raise trailing(stop + i - p, stop[i])
            if record is not None:
                record.duplicate_keys = b.marks != NULL
            return <object>b.root if b.root != NULL else MISSING
        finally:
            tw_build_clear(&b)
            if stack != small:
                PyMem_Free(stack)

    # -- templates ----------------------------------------------------------------------------------------------------

    cdef Template template(self, tuple path, const uint8_t *p, size_t n):
        """A template that this document fits, whose text stands at ``path``; None if it does not lend itself to that."""
        cdef Template known, made
        cdef tw_fit fit
        cdef tw_span found[TW_TEMPLATE_HOLES]
        cdef Py_ssize_t i
        for known in self.templates:
            if known.path == path and known.fit(NULL, found, p, n, &fit):
                return known
        for i in range(len(self.templates)):
            known = <Template>self.templates[i]
            if known.path == path:
                made = self.make(known, path, p, n)
                if made is not None:
                    known.stale = True
                    self.templates[i] = made
                    return made
        made = self.make(None, path, p, n)
        if made is not None:
            if len(self.templates) >= TEMPLATES:
                (<Template>self.templates.pop()).stale = True
            self.templates.insert(0, made)
        return made

    cdef Template make(self, Template old, tuple path, const uint8_t *p, size_t n):
        cdef Template made = Template.__new__(Template)
        cdef tw_step steps[PATH]
        cdef tw_aim aim
        cdef int r
        if len(path) > PATH:
            raise UsageError(f"the path to a text has at most {PATH} steps, not {len(path)}")
        aim.wanted = self.root
        aim.path = steps
        aim.path_len = 0
        aim.counter = NULL if self.counter is None else PyBytes_AS_STRING(self.counter)
        aim.counter_len = 0 if self.counter is None else PyBytes_GET_SIZE(self.counter)
        aim.max_depth = self.max_depth
        for step in path:
            memset(&steps[aim.path_len], 0, sizeof(tw_step))
            if type(step) is int:
                steps[aim.path_len].index = step
            else:
                steps[aim.path_len].name = PyBytes_AS_STRING(step)
                steps[aim.path_len].len = PyBytes_GET_SIZE(step)
            aim.path_len += 1
        r = tw_template_make(&made.t, NULL if old is None else &old.t, &aim, p, n)
        if r < 0:
            raise MemoryError
        made.path = path
        return made if r else None

    cdef str decode(self, const uint8_t *p, const uint8_t *end):
        """The text between the quotes at p - 1 and end: a valid string."""
        cdef tw_json j
        cdef tw_build b
        cdef uint8_t stack[4]
        tw_json_init(&j, stack, 1)
        j.surrogates = TW_SURROGATES_KEEP
        tw_build_init(&b, NULL)
        try:
            tw_project_run(&j, &b, p - 1, end + 1)
            if j.state != ST_JSON_DONE or b.root == NULL:
                raise_pending()
            return <str>b.root
        finally:
            tw_build_clear(&b)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self  # it never changes

    def __reduce__(self):
        return _restore_projection, (self.spec, self.max_depth, None if self.counter is None else self.counter.decode())


def _restore_projection(spec, max_depth, counter):
    return Projection(spec, max_depth=max_depth, counter=counter)


cdef void free_node(tw_node *node) noexcept:
    cdef uint32_t i
    if node != NULL:
        if node.fields != NULL:
            for i in range(node.n):
                free_node(node.fields[i].child)
            PyMem_Free(node.fields)
        PyMem_Free(node)
