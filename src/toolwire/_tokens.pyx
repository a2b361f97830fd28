# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, subinterpreters_compatible=no
"""The token faces of the JSON half, for ``toolwire.compat``: events, prefixed events, values at a prefix, lexemes.

The tokenizer is ``_core/tw_json.h``, its sink ``_pytokens.h``. ``Machine`` is the two of them over bytes in any cut; ``Pull`` and
``AsyncPull`` read files through it, ``Push`` is fed.
"""

import decimal
import warnings

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memset

from ._json cimport (
    ST_JSON_DONE,
    ST_JSON_ERROR,
    ST_JSON_IN_NUMBER,
    ST_JSON_NEED_VALUE,
    TW_E_MEMORY,
    TW_OK,
    TW_SURROGATES_ERROR,
    TW_SURROGATES_KEEP,
    json_error,
    raise_pending,
    trailing,
    truncated,
    tw_json,
    tw_json_init,
    tw_json_is_space,
    tw_json_stack_bytes,
    tw_keys,
    tw_num_may_end,
)

from .errors import MalformedJSON, TruncatedJSON, UsageError


cdef extern from "_pytokens.h":
    int ST_JSON_IN_LITERAL
    int TW_EVENTS, TW_PREFIXED, TW_ITEMS, TW_MEMBERS, TW_LEXEMES

    ctypedef struct tw_words:
        PyObject *start_map
        PyObject *map_key
        PyObject *end_map
        PyObject *start_array
        PyObject *end_array
        PyObject *string
        PyObject *number
        PyObject *boolean
        PyObject *null
        PyObject *start_map_event
        PyObject *end_map_event
        PyObject *start_array_event
        PyObject *end_array_event
        PyObject *true_event
        PyObject *false_event
        PyObject *null_event
        PyObject *string_type
        PyObject *number_type
        PyObject *open_object
        PyObject *close_object
        PyObject *open_array
        PyObject *close_array
        PyObject *comma
        PyObject *colon
        PyObject *true_lexeme
        PyObject *false_lexeme
        PyObject *null_lexeme
        PyObject *item
        PyObject *empty
        PyObject *decimal

    ctypedef struct tw_tokens:
        size_t first, last
        PyObject *map_type
        uint8_t mode, use_float, allow_infinite, out_of_range

    int tw_tokens_init(tw_tokens *, const tw_words *, tw_keys *, int) except -1
    int tw_tokens_want(tw_tokens *, const uint8_t *, Py_ssize_t) except -1
    void tw_tokens_clear(tw_tokens *)
    const uint8_t *tw_tokens_run(tw_json *, tw_tokens *, const uint8_t *, const uint8_t *)
    int tw_tokens_end_number(tw_tokens *, tw_json *)
    object tw_queue_take(tw_tokens *)
    bint tw_json_is_between(const tw_json *)
    bint tw_json_is_delimiter(uint8_t)
    bint tw_json_top_is_object(const tw_json *)

# Bytes taken in one go. As many events wait at most; and a tuple or dict that its reader drops is soon there for the next.
cdef enum:
    SLICE = 4096

cdef tw_keys _keys
memset(&_keys, 0, sizeof(_keys))

cdef dict _MODES = {"events": TW_EVENTS, "prefixed": TW_PREFIXED, "items": TW_ITEMS, "members": TW_MEMBERS, "lexemes": TW_LEXEMES}

cdef tw_words _words
cdef list _kept = []  # owns what _words borrows


cdef PyObject *_keep(object word):
    _kept.append(word)
    return <PyObject *>word


# Decimal() by a shorter way. A context without bounds rounds nothing; what Decimal() does not take raises here, too.
cdef object _new_decimal = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, clamp=0,
    traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Underflow, decimal.Clamped, decimal.Inexact],
).create_decimal


cdef _make_words():
    cdef tw_words *w = &_words
    w.start_map, w.map_key, w.end_map = _keep("start_map"), _keep("map_key"), _keep("end_map")
    w.start_array, w.end_array = _keep("start_array"), _keep("end_array")
    w.string, w.number, w.boolean, w.null = _keep("string"), _keep("number"), _keep("boolean"), _keep("null")
    w.start_map_event, w.end_map_event = _keep(("start_map", None)), _keep(("end_map", None))
    w.start_array_event, w.end_array_event = _keep(("start_array", None)), _keep(("end_array", None))
    w.true_event, w.false_event, w.null_event = _keep(("boolean", True)), _keep(("boolean", False)), _keep(("null", None))
    w.string_type, w.number_type = _keep(1), _keep(2)
    w.open_object, w.close_object = _keep((0, "{")), _keep((0, "}"))
    w.open_array, w.close_array = _keep((0, "[")), _keep((0, "]"))
    w.comma, w.colon = _keep((0, ",")), _keep((0, ":"))
    w.true_lexeme, w.false_lexeme, w.null_lexeme = _keep((3, True)), _keep((3, False)), _keep((4, None))
    w.item, w.empty, w.decimal = _keep("item"), _keep(""), _keep(_new_decimal)


_make_words()


# The classes below keep their members until they go: what a finaliser may still call must find them. Cycles are broken at their other
# members; one of nothing but these classes and values of a caller's `map_type` that nobody asked for is not found.

@cython.final
@cython.no_gc_clear
cdef class Machine:
    """Tokenizer and sink, with what was met and not yet handed out.

    Args:
        mode: "events" (``(event, value)``), "prefixed" (``(prefix, event, value)``), "items" (values), "members"
            (``(key, value)``) or "lexemes" (``(type, value)``, commas and colons among them).
        prefix: for "items" and "members", where the values or objects stand.
        map_type: for these, what makes an empty mapping, or None for dict.
        use_float: fractions and exponents give a float, not a Decimal.
        multiple_values: another value may follow the first.
        max_depth: nested arrays and objects allowed.
        wrap: makes the exception that is raised of a ``StreamError``.
    """

    cdef tw_json j
    cdef tw_tokens t
    cdef bytes want
    cdef object map_type
    cdef object wrap
    cdef object error       # to be raised behind what is in the queue
    cdef bint multiple
    cdef bint after_string  # the value that ended last was a string, and nothing followed yet

    def __cinit__(self, str mode, *, str prefix="", map_type=None, use_float=False, multiple_values=False, max_depth=512, wrap=None):
        cdef uint8_t *stack
        if mode not in _MODES:
            raise UsageError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        if not isinstance(max_depth, int) or not 1 <= max_depth <= 1_000_000:
            raise UsageError(f"max_depth must be an integer from 1 to 1,000,000, not {max_depth!r}")
        stack = <uint8_t *>PyMem_Calloc(tw_json_stack_bytes(max_depth), 1)
        if stack == NULL:
            raise MemoryError
        tw_json_init(&self.j, stack, max_depth)
        tw_tokens_init(&self.t, &_words, &_keys, _MODES[mode])
        self.want = prefix.encode("utf-8", "surrogatepass")
        if self.t.mode == TW_ITEMS or self.t.mode == TW_MEMBERS:
            tw_tokens_want(&self.t, <const uint8_t *>PyBytes_AS_STRING(self.want), PyBytes_GET_SIZE(self.want))
        if map_type is not None:
            self.map_type = map_type
            self.t.map_type = <PyObject *>map_type
        self.t.use_float = bool(use_float)
        self.multiple = bool(multiple_values)
        self.wrap = wrap
        self.j.surrogates = TW_SURROGATES_KEEP
        if self.t.mode == TW_LEXEMES:
            self.t.use_float = self.t.allow_infinite = True
            self.multiple = True
            self.j.allow_nan = self.j.allow_control = True
            self.j.surrogates = TW_SURROGATES_ERROR

    def __dealloc__(self):
        tw_tokens_clear(&self.t)
        PyMem_Free(self.j.stack)

    cdef Py_ssize_t run(self, const uint8_t *p, Py_ssize_t n) except -1:
        """Take up to n bytes at p, of lexemes none behind the end of a value. Returns how many."""
        cdef const uint8_t *end = p + n
        cdef const uint8_t *at = p
        cdef const uint8_t *start
        while at < end:
            if self.j.state == ST_JSON_DONE:
                while at < end and tw_json_is_space(at[0]):
                    at += 1
                    self.j.offset += 1
                    self.after_string = False
                if at == end:
                    break
                if not self.multiple or (self.after_string and not tw_json_is_delimiter(at[0])):
                    self.j.state = ST_JSON_ERROR
                    self.fail(trailing(self.j.offset, at[0]))
                    return n
                self.j.state = ST_JSON_NEED_VALUE
            start = at
            at = tw_tokens_run(&self.j, &self.t, at, end)
            if self.j.state == ST_JSON_ERROR:
                self.fail_in_value(at[0] if at < end else -1)
                return n
            if self.j.state == ST_JSON_DONE and self.t.mode == TW_LEXEMES:
                self.after_string = at > start and (at - 1)[0] == c'"'
                return at - p
        return n

    cdef int finish(self) except -1:
        """The input has ended."""
        if self.j.state == ST_JSON_IN_NUMBER and self.j.depth == 0 and tw_num_may_end(self.j.number):
            if tw_tokens_end_number(&self.t, &self.j) != TW_OK:
                return self.fail_in_value(-1)
        if self.j.state == ST_JSON_DONE or self.j.state == ST_JSON_ERROR:
            return 0
        if self.t.mode != TW_LEXEMES:
            return self.fail(truncated(self.j.offset, None))
        if tw_json_is_between(&self.j):
            return 0  # json-stream knows what is open, and says so
        if self.j.state == ST_JSON_IN_LITERAL or (self.j.state == ST_JSON_IN_NUMBER and self.j.depth == 0):
            return self.fail(truncated(self.j.offset, None))
        if self.j.state != ST_JSON_IN_NUMBER:
            what = "string"
        else:  # it may have been longer
            what = "object" if tw_json_top_is_object(&self.j) else "list"
        return self.fail(TruncatedJSON(f"Unterminated {what} at end of file", code="json.truncated", offset=self.j.offset))

    cdef int fail_in_value(self, int c) except -1:
        if self.j.error == TW_E_MEMORY:
            try:
                raise_pending()
            except BaseException as error:
                self.error = error
            return 0
        if self.t.out_of_range:
            return self.fail(MalformedJSON("a number beyond its type's range", code="json.bad_number", offset=self.j.error_offset))
        return self.fail(json_error(&self.j, c, None))

    cdef int fail(self, object error) except -1:
        self.error = error if self.wrap is None else self.wrap(error)
        return 0

    cdef inline bint waiting(self):
        return self.t.first != self.t.last


@cython.no_gc_clear
cdef class Source:
    """A machine and the chunk it is at. What ``Pull``, ``AsyncPull`` and ``Push`` have in common."""

    cdef Machine machine
    cdef bytes chunk
    cdef Py_ssize_t pos
    cdef bint is_text       # the chunk came as a str
    cdef bint warn          # about a str
    cdef bint ended
    cdef bint busy

    def __cinit__(self, Machine machine not None, *_, warn=True):
        self.machine = machine
        self.warn = warn
        self.chunk = b""

    cdef int enter(self) except -1:
        if self.busy:
            raise ValueError("already executing")
        self.busy = True
        return 0

    cdef int give(self, data) except -1:
        """The next chunk; an empty one is the end."""
        self.is_text = isinstance(data, str)
        if self.is_text:
            if self.warn:
                self.warn = False
                warnings.warn("str is read where bytes are wanted: open the file in binary mode", DeprecationWarning, stacklevel=2)
            data = data.encode("utf-8", "surrogatepass")
        self.chunk = data if type(data) is bytes else bytes(memoryview(data))
        self.pos = 0
        if not self.chunk:
            self.ended = True
            self.machine.finish()
        return 0

    cdef bint step(self) except -1:
        """Take a slice of the chunk. False where there is none left. Raises what went wrong once all before it is handed out."""
        cdef Py_ssize_t rest
        if self.machine.error is not None:
            error, self.machine.error = self.machine.error, None
            self.ended = True
            self.chunk = b""
            self.pos = 0
            raise error
        rest = PyBytes_GET_SIZE(self.chunk) - self.pos
        if rest == 0:
            return False
        self.pos += self.machine.run(<const uint8_t *>PyBytes_AS_STRING(self.chunk) + self.pos, SLICE if rest > SLICE else rest)
        return True

    @property
    def remainder(self):
        """What was read and not taken: bytes, or str where that is read."""
        rest = self.chunk[self.pos :]
        return rest.decode("utf-8", "surrogatepass") if self.is_text else rest

    def forget_remainder(self):
        """Go on with what is read next."""
        self.chunk = b""
        self.pos = 0


@cython.no_gc_clear
cdef class Reader(Source):
    """What reads a file.

    Args:
        machine: a ``Machine`` that nobody else feeds.
        read: ``read(size)``, which returns bytes (or str) and at the end nothing.
        size: what to call it with.
        warn: a str gives a DeprecationWarning.
    """

    cdef object read
    cdef object size

    def __cinit__(self, machine, read, size, *, warn=True):
        self.read = read
        self.size = size


@cython.no_gc_clear
cdef class Pull(Reader):
    """An iterator over what a machine finds in a file. The arguments are those of ``Reader``."""

    def __iter__(self):
        return self

    def __next__(self):
        if not self.machine.waiting():
            self.fill()
            if not self.machine.waiting():
                raise StopIteration
        return tw_queue_take(&self.machine.t)

    cdef int fill(self) except -1:
        self.enter()
        try:
            while not self.machine.waiting():
                if not self.step():
                    if self.ended:
                        break
                    self.give(self.read(self.size))
        finally:
            self.busy = False
        return 0


@cython.final
cdef class Ready:
    """An awaitable whose result is there."""

    cdef object value

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(self.value)


@cython.no_gc_clear
cdef class AsyncPull(Reader):
    """An asynchronous iterator over what a machine finds in a file. The arguments are those of ``Reader``; ``read`` is awaited."""

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef Ready ready
        if not self.machine.waiting():
            return self.fill()
        ready = Ready.__new__(Ready)
        ready.value = tw_queue_take(&self.machine.t)
        return ready

    async def fill(self):
        self.enter()
        try:
            while not self.machine.waiting():
                if not self.step():
                    if self.ended:
                        raise StopAsyncIteration
                    self.give(await self.read(self.size))
        finally:
            self.busy = False
        return tw_queue_take(&self.machine.t)


@cython.no_gc_clear
cdef class Push(Source):
    """A sink of chunks that sends what a machine finds in them to another.

    Args:
        machine: a ``Machine`` that nobody else feeds.
        target: called with each event.
    """

    cdef object target

    def __cinit__(self, machine, target, *, warn=True):
        self.target = target

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(b"")

    def send(self, data):
        """Take a chunk; an empty one is the end, and raises StopIteration as a coroutine does that has ended."""
        if self.ended:
            raise StopIteration
        self.push(data)
        if self.ended:
            raise StopIteration

    def close(self):
        """The input has ended. Raises where that is too early; does nothing the second time."""
        if not self.ended:
            self.push(b"")

    cdef int push(self, data) except -1:
        self.enter()
        try:
            self.give(data)
            while True:
                while self.machine.waiting():
                    self.target(tw_queue_take(&self.machine.t))
                if not self.step():
                    break
        finally:
            self.busy = False
        return 0
