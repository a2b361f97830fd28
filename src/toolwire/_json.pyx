# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=False
"""The JSON half of the core: ``JSONParser`` and ``loads``.

The tokenizer is ``_core/tw_json.h``, its Python sinks are in ``_pybuild.h``. This module gives them a Python face: it takes
bytes out of Python objects, runs the machine, and turns its error codes into exceptions.
"""

import sys
from collections import namedtuple

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_XINCREF
from cpython.unicode cimport PyUnicode_AsUTF8String, PyUnicode_Substring
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from .errors import LimitExceeded, MalformedJSON, StreamError, TruncatedJSON, UsageError
from .marks import Mark


cdef extern from "Python.h":
    bint PyUnicode_CheckExact(object)
    bint PyUnicode_IS_COMPACT_ASCII(object)
    void *PyUnicode_DATA(object)
    char *PyByteArray_AS_STRING(object)
    Py_ssize_t PyByteArray_GET_SIZE(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    Py_UCS4 PyUnicode_MAX_CHAR_VALUE(object)
    void PyErr_SetRaisedExceptionNone "PyErr_Clear"()


cdef extern from "_pytap.h":
    enum: TW_STEP_KEY, TW_STEP_INDEX, TW_STEP_ANY, TW_STEP_ELEMENT
    ctypedef struct tw_step:
        PyObject *key
        Py_ssize_t index
        uint8_t kind
    ctypedef struct tw_watch:
        PyObject *tap
        PyObject *queue
        uint32_t n_steps, level
        uint8_t strings, paths, forget
        tw_step *steps
    ctypedef struct tw_watches:
        tw_watch **slot
        uint32_t n, top

    const uint8_t *tw_watches_run(tw_json *, tw_build *, tw_watches *, const uint8_t *, const uint8_t *)
    bint tw_watch_step(const tw_watch *, const tw_build *, uint32_t)
    bint tw_watch_wants(const tw_watch *, const tw_build *, uint32_t)
    object tw_watch_path(const tw_build *, uint32_t)
    int tw_watches_add(tw_watches *, const tw_build *, tw_watch *) except -1
    void tw_watches_drop(tw_watches *, const tw_watch *, bint)
    void tw_watches_free(tw_watches *)
    Py_ssize_t tw_forgotten(const tw_build *, uint32_t)


class _Missing:
    """The type of ``MISSING``: no value has begun yet. False as a condition, equal to itself only."""

    __slots__ = ()

    def __repr__(self):
        return "MISSING"

    def __bool__(self):
        return False

    def __reduce__(self):
        return "MISSING"


MISSING = _Missing()


cdef str _byte(int c):
    if c < 0:
        return "the end of the input"
    if 0x20 < c < 0x7f:
        return repr(chr(c))
    return f"byte 0x{c:02x}"


cdef object json_error(tw_json *j, int c, object path):
    """The exception for a machine that stopped at byte ``c``; None where the sink has already raised one."""
    cdef int code = j.error
    offset = j.error_offset
    if code == TW_E_MEMORY:
        return None
    if code == TW_E_JSON_TOO_DEEP:
        return LimitExceeded(
            f"more than {j.max_depth} nested arrays and objects; max_depth={j.max_depth}",
            code="json.too_deep", limit="max_depth", value=j.max_depth, option="max_depth=...", offset=offset, path=path,
        )
    if code == TW_E_JSON_NUMBER_TOO_LONG:
        digits = sys.get_int_max_str_digits()
        return LimitExceeded(
            f"an integer of more than {digits} digits; sys.get_int_max_str_digits() is {digits}",
            code="json.number_too_long", limit="int_max_str_digits", value=digits,
            option="sys.set_int_max_str_digits(...)", offset=offset, path=path,
        )
    if code == TW_E_JSON_BAD_LITERAL:
        name, text = "bad_literal", f"{_byte(c)} inside a literal: only true, false and null are words of JSON"
    elif code == TW_E_JSON_BAD_NUMBER:
        name, text = "bad_number", f"{_byte(c)} can not stand here in a number"
    elif code == TW_E_JSON_BAD_ESCAPE:
        name, text = "bad_escape", f"{_byte(c)} can not stand here in a JSON escape"
    elif code == TW_E_JSON_CONTROL_CHARACTER:
        name, text = "control_character", f"{_byte(c)} is a control character and must be escaped inside a string"
    elif code == TW_E_JSON_BAD_UTF8:
        name, text = "bad_utf8", f"{_byte(c)} can not stand here in UTF-8"
    elif code == TW_E_JSON_LONE_SURROGATE:
        name, text = "lone_surrogate", f"{_byte(c)} where the other half of a surrogate pair is due"
    elif code == TW_E_JSON_DUPLICATE_KEY:
        name, text = "duplicate_key", "the object has this key already"
    else:
        name, text = "unexpected_byte", f"{_byte(c)} can not stand here"
    return MalformedJSON(text, code="json." + name, offset=offset, path=path)


cdef Py_ssize_t first_content(const uint8_t *p, Py_ssize_t n) noexcept:
    """Index of the first byte that is no JSON white space, or -1."""
    cdef Py_ssize_t i
    for i in range(n):
        if not tw_json_is_space(p[i]):
            return i
    return -1


cdef object trailing(uint64_t offset, int c):
    return MalformedJSON(f"{_byte(c)} after the root value", code="json.trailing_data", offset=offset)


cdef object truncated(uint64_t offset, object path):
    return TruncatedJSON("the input ended before the value was complete", code="json.truncated", offset=offset, path=path)


cdef object join_surrogates(str held, str text):
    """Join halves of surrogate pairs that came apart: ``(text, held)``, where ``held`` is a high surrogate at the end
    whose other half may still come. Lone halves in the middle stay."""
    cdef Py_ssize_t last
    text = (held + text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    last = len(text) - 1
    if last >= 0 and "\ud800" <= text[last] <= "\udbff":
        return text[:last], text[last]
    return text, ""


cdef _check_options(max_depth, max_bytes, duplicate_keys):
    if not isinstance(max_depth, int) or not 1 <= max_depth <= 1_000_000:
        raise UsageError(f"max_depth must be an integer from 1 to 1,000,000, not {max_depth!r}")
    if max_bytes is not None and (not isinstance(max_bytes, int) or max_bytes < 0):
        raise UsageError(f"max_bytes must be None or an integer that is not negative, not {max_bytes!r}")
    if duplicate_keys not in ("last", "error"):
        raise UsageError(f"duplicate_keys must be 'last' or 'error', not {duplicate_keys!r}")


cdef int _surrogates(option) except -1:
    if option == "error":
        return TW_SURROGATES_ERROR
    if option == "replace":
        return TW_SURROGATES_REPLACE
    if option == "keep":
        return TW_SURROGATES_KEEP
    raise UsageError(f"surrogates must be 'error', 'replace' or 'keep', not {option!r}")


@cython.final
cdef class JSONParser:
    """A resumable JSON parser: feed it bytes or text in any pieces, read the value at any time.

    RFC 8259, strict. Three states that are never confused: incomplete (``complete`` is False), malformed (an exception,
    the same one again on every later call until ``reset()``) and complete.

    Args:
        max_depth: nested arrays and objects allowed.
        max_bytes: bytes allowed in all, or None.
        surrogates: half a surrogate pair is an "error", is replaced by U+FFFD and marked ("replace"), or kept as
            ``json.loads`` keeps it ("keep").
        duplicate_keys: the "last" one counts and a mark is set, or it is an "error".
        allow_nan: read NaN, Infinity and -Infinity (marked).
        allow_control_characters: read raw control characters inside strings (marked).
    """

    def __cinit__(self, *, max_depth=512, max_bytes=None, surrogates="error", duplicate_keys="last", allow_nan=False,
                  allow_control_characters=False):
        cdef uint8_t *stack
        cdef int on_surrogates = _surrogates(surrogates)
        tw_build_init(&self.b, tw_keys_here())
        _check_options(max_depth, max_bytes, duplicate_keys)
        stack = <uint8_t *>PyMem_Calloc(tw_json_stack_bytes(max_depth), 1)
        if stack == NULL:
            raise MemoryError
        tw_json_init(&self.j, stack, max_depth)
        self.j.surrogates = on_surrogates
        self.j.allow_nan = bool(allow_nan)
        self.j.allow_control = bool(allow_control_characters)
        self.b.refuse_duplicates = duplicate_keys == "error"
        self.max_bytes = UINT64_MAX if max_bytes is None else max_bytes

    def __dealloc__(self):
        tw_build_clear(&self.b)
        PyMem_Free(self.j.stack)
        tw_watches_free(self.watches)

    # -- feeding ------------------------------------------------------------------------------------------------------

    cdef int run(self, const uint8_t *p, Py_ssize_t n) except -1:
        """Feed n bytes at p. Sets ``self.error`` and raises it where they are wrong."""
        cdef const uint8_t *stop = p
        cdef Py_ssize_t take = n
        if self.max_bytes - self.fed < <uint64_t>n:
            take = <Py_ssize_t>(self.max_bytes - self.fed)
        self.busy = True
        if self.b.lent != TW_NOT_LENT and tw_build_take_back(&self.b) < 0:
            self.j.state = ST_JSON_ERROR
            self.j.error = TW_E_MEMORY
            self.j.error_offset = self.fed
        elif self.j.state != ST_JSON_DONE:
            if self.watches == NULL or self.watches.n == 0:
                stop = tw_build_run(&self.j, &self.b, p, p + take)
            else:
                stop = tw_watches_run(&self.j, &self.b, self.watches, p, p + take)
            if (self.b.in_text and not (self.j.state == ST_JSON_ERROR and self.j.error == TW_E_MEMORY)
                    and tw_show_open(&self.b, &self.j) != TW_OK):
                self.j.state = ST_JSON_ERROR
                self.j.error = TW_E_MEMORY
                self.j.error_offset = self.fed
        if self.j.state == ST_JSON_ERROR or (self.j.state == ST_JSON_DONE and stop < p + take) or take < n:
            return self.odd(stop, p + take, take, take < n)
        self.busy = False
        self.fed += <uint64_t>take
        return 0

    cdef int odd(self, const uint8_t *stop, const uint8_t *end, Py_ssize_t take, bint too_long) except -1:
        """The rest of ``run`` where the bytes are wrong, too many, or go on behind the value."""
        try:
            if self.j.state == ST_JSON_ERROR:
                self.fed = self.j.error_offset
                if self.j.error == TW_E_MEMORY:
                    raise_pending()
                raise json_error(&self.j, stop[0] if stop < end else -1, tw_build_path(&self.b, &self.j))
            if self.j.state == ST_JSON_DONE and stop < end:
                if self.rest is None:
                    self.rest = bytearray()
                self.rest += (<const char *>stop)[: end - stop]
            self.fed += <uint64_t>take
            if too_long:
                raise LimitExceeded(
                    f"more than {self.max_bytes} bytes; max_bytes={self.max_bytes}", code="json.too_long",
                    limit="max_bytes", value=self.max_bytes, option="max_bytes=...", offset=self.max_bytes,
                    path=tw_build_path(&self.b, &self.j),
                )
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.busy = False
        return 0

    cdef int run_str(self, str text) except -1:
        """Feed a str that is not ASCII."""
        cdef bytes data
        held = self.held
        if held is None:
            try:
                data = PyUnicode_AsUTF8String(text)
            except UnicodeEncodeError:
                held = ""
        if held is not None:
            text, held = join_surrogates(held, text)
            data = text.encode("utf-8", "surrogatepass")
            self.held = held or None
            self.j.raw_surrogates = True
        try:
            return self.run(<const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        finally:
            self.j.raw_surrogates = False

    cdef int run_copy(self, data) except -1:
        """Feed what is neither bytes nor str. A copy: others may write to the memory while it is read (a socket, a second thread)."""
        cdef Py_buffer view
        cdef bytes copy
        try:
            PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        except TypeError:
            raise UsageError(f"feed() takes bytes or str, not {type(data).__name__}") from None
        except BufferError as error:
            raise UsageError(f"feed() takes contiguous memory: {error}") from None
        try:
            copy = PyBytes_FromStringAndSize(<const char *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        self.check_open()  # again: an exporter written in Python has run its own code
        if copy:
            self.release_held()
            self.run(<const uint8_t *>PyBytes_AS_STRING(copy), PyBytes_GET_SIZE(copy))
        return 0

    cdef int release_held(self) except -1:
        """A high surrogate whose other half never came: it is read as what it is."""
        cdef bytes data
        if self.held is None:
            return 0
        data = (<str>self.held).encode("utf-8", "surrogatepass")
        self.held = None
        self.j.raw_surrogates = True
        try:
            return self.run(<const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        finally:
            self.j.raw_surrogates = False

    cdef int check_idle(self) except -1:
        if self.busy:
            raise UsageError("the parser is busy: it was called again from inside its own feed()")
        return 0

    cdef int check_open(self) except -1:
        self.check_idle()
        if self.error is not None:
            raise self.error.with_traceback(None)
        if self.finished:
            raise UsageError("feed() after finish(): call reset() to parse another document")
        return 0

    def feed(self, data, /):
        """Take the next piece of the document, cut anywhere.

        Args:
            data: any bytes-like object, or a str (which may end on half a surrogate pair).

        Returns:
            True from the byte on that closes the root value.

        Raises:
            MalformedJSON: no continuation can be valid. ``value`` keeps what was good; the same error is raised again by
                every later call until ``reset()``.
            LimitExceeded: ``max_depth``, ``max_bytes``, or Python's limit of integer digits; sticky likewise.
            UsageError: after ``finish()``, or re-entered.
        """
        self.check_open()
        if PyBytes_CheckExact(data) and self.held is None:
            self.run(<const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        elif isinstance(data, str):
            if PyUnicode_IS_COMPACT_ASCII(data) and self.held is None:
                self.run(<const uint8_t *>PyUnicode_DATA(data), PyUnicode_GET_LENGTH(data))
            elif data:
                self.run_str(str(data))
        else:
            self.run_copy(data)
        return self.j.state == ST_JSON_DONE

    def finish(self):
        """The input has ended.

        Returns:
            The value. A root number is complete only now, unless a delimiter followed it.

        Raises:
            TruncatedJSON: the root value is not complete.
            MalformedJSON: something other than white space follows it, or what ``feed`` raised before.
        """
        cdef int status
        self.check_idle()
        if self.error is not None:
            raise self.error.with_traceback(None)
        if self.held is not None and self.j.state == ST_JSON_IN_STRING:
            # The other half could still have come.
            self.error = truncated(self.fed, tw_build_path(&self.b, &self.j))
            raise self.error
        self.release_held()
        if self.j.state == ST_JSON_IN_NUMBER and self.j.depth == 0 and tw_num_may_end(self.j.number):
            status = tw_b_number(&self.b, &self.j, NULL, 0, self.j.number <= TW_NUM_INT, NULL)
            if status != TW_OK:
                self.j.state = ST_JSON_ERROR
                self.j.error = status
                self.j.error_offset = self.j.token_offset
                try:
                    if status == TW_E_MEMORY:
                        raise_pending()
                    raise json_error(&self.j, -1, ())
                except BaseException as error:
                    self.error = error
                    raise
            self.j.consumed = self.j.offset
            self.j.state = ST_JSON_DONE
        if self.j.state != ST_JSON_DONE:
            self.error = truncated(self.fed, tw_build_path(&self.b, &self.j))
            raise self.error
        error = self.trailing_error()
        if error is not None:
            self.error = error
            raise error
        self.finished = True
        return self.live()

    cdef object trailing_error(self):
        cdef const uint8_t *rest
        cdef Py_ssize_t n
        if self.rest is None:
            return None
        rest = <const uint8_t *>PyByteArray_AS_STRING(self.rest)
        n = PyByteArray_GET_SIZE(self.rest)
        while self.blank < n and tw_json_is_space(rest[self.blank]):
            self.blank += 1
        return None if self.blank == n else trailing(self.j.consumed + <uint64_t>self.blank, rest[self.blank])

    def reset(self):
        """Forget everything but the options; start a new document. Taps stay, and forget what was not read."""
        cdef tw_json fresh
        self.check_idle()
        tw_json_init(&fresh, self.j.stack, self.j.max_depth)
        fresh.surrogates = self.j.surrogates
        fresh.allow_nan = self.j.allow_nan
        fresh.allow_control = self.j.allow_control
        self.j = fresh
        self.fed = 0
        self.blank = 0
        self.error = self.rest = self.held = None
        self.finished = False
        unread = self.restart_taps()
        tw_build_clear(&self.b)
        del unread  # now that all is fresh: a finaliser may feed

    cdef object restart_taps(self):
        cdef uint32_t i
        cdef list unread = []
        cdef _Tap tap
        if self.watches == NULL:
            return unread
        self.busy = True
        self.watches.top = 0
        for i in range(self.watches.n):
            if self.watches.slot[i] != NULL:
                tap = <_Tap>self.watches.slot[i].tap
                self.watches.slot[i].level = 0
                unread.append(tap.take())
                tap.restart()
        self.busy = False
        return unread

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def value(self):
        """The live value: finished values and the open string so far; ``MISSING`` before the first.

        It grows in place. An open container may be changed by the caller; the parser then goes on with what is there.
        """
        return self.live()

    cdef object live(self):
        if self.b.root == NULL:
            return MISSING
        if self.b.depth:
            if self.b.lent != TW_NOT_LENT and tw_build_take_back(&self.b) < 0:
                raise_pending()
            self.b.exposed = True
        return <object>self.b.root

    def snapshot(self):
        """A value that later feeds never change. What is finished is shared between snapshots: read it, do not change it.

        Dropped before the next ``feed`` it costs the open containers, and those wider than 64 entries nothing; kept, the
        next ``feed`` pays once for what it has to copy. After ``value`` was read every open container is copied.
        """
        cdef PyObject *snapshot
        if self.b.root == NULL:
            return MISSING
        if self.busy:
            self.b.exposed = True  # the feed at work goes on with its containers: none can be lent
        snapshot = tw_build_snapshot(&self.b)
        if snapshot == NULL:
            raise_pending()
        return steal(snapshot)

    @property
    def complete(self):
        """Is the root value closed?"""
        return self.j.state == ST_JSON_DONE

    @property
    def consumed(self):
        """UTF-8 byte offset just past the root value, or None until it is closed."""
        return self.j.consumed if self.j.state == ST_JSON_DONE else None

    @property
    def offset(self):
        """Bytes fed in all; after an error, the byte it points at."""
        return self.fed

    @property
    def unused_data(self):
        """The bytes after the root value, never parsed."""
        return b"" if self.rest is None else bytes(self.rest)

    @property
    def path(self):
        """Where the parser stands: keys and indices down to the value that is open or must come next."""
        return tw_build_path(&self.b, &self.j)

    @property
    def marks(self):
        """What was tolerated, as a tuple of ``Mark``."""
        if self.b.marks == NULL:
            return ()
        # In the order of their places: a repeated key is noticed when its second value is shown, which depends on cuts.
        marks = [Mark(name, offset, path) for name, offset, path in sorted(<list>self.b.marks, key=lambda mark: mark[1])]
        if self.b.more_marks:
            marks.append(Mark("more_marks", times=self.b.more_marks))
        return tuple(marks)

    def state(self, path):
        """May the field at ``path`` (keys and indices from the root) be shown as settled?

        Returns:
            "absent", "open" (it has begun, and may still change) or "complete".
        """
        cdef uint32_t d = 0
        cdef bint live = True      # still on the way down to the open value
        cdef bint begun = self.j.state not in (ST_JSON_NEED_VALUE, ST_JSON_NEED_VALUE_OR_END, ST_JSON_NEED_COLON)
        if self.b.root == NULL:
            return "open" if not len(path) and begun and self.j.state != ST_JSON_ERROR else "absent"
        here = <object>self.b.root
        for step in path:
            if live and d < self.b.depth:
                due = <object>self.b.frames[d].key if self.b.frames[d].key != NULL else None
                if isinstance(here, dict):
                    at_open = due is not None and type(step) is str and step == due
                else:
                    at_open = type(step) is int and step == self.b.frames[d].count
                    if type(step) is int and not at_open and step >= 0:
                        step -= tw_forgotten(&self.b, d)
                d += 1
                if at_open:
                    if d < self.b.depth:
                        here = <object>self.b.frames[d].container
                        continue
                    if step is not path[len(path) - 1]:
                        return "absent"
                    if isinstance(here, dict):
                        return "open" if begun or step in here else "absent"
                    return "open" if tw_build_path_due(&self.b, &self.j) and begun else "absent"
                live = False
            else:
                live = False
            if isinstance(here, dict):
                if type(step) is not str or step not in here:
                    return "absent"
            elif isinstance(here, list):
                if type(step) is not int or not 0 <= step < len(here):
                    return "absent"
            else:
                return "absent"
            here = here[step]
        if live:
            if d < self.b.depth:
                return "open"
            return "complete" if self.j.state == ST_JSON_DONE else "open"
        return "complete"

    # -- taps ---------------------------------------------------------------------------------------------------------

    def tap(self, path, /):
        """Hand out the text of the string at ``path`` as it grows, see ``StringTap``.

        Args:
            path: keys and indices from the root; ``"*"`` is any key or index, ``Key("*")`` the key of that name.

        Raises:
            UsageError: ``path`` is none, or the parser was asked from inside its own ``feed()``.
        """
        return StringTap(self, path)

    def items(self, path, /, *, forget=False, paths=False):
        """Hand out the elements of the array at ``path``, each once, as they close, see ``ItemTap``.

        Args:
            path: as in ``tap``; ``()`` is the root.
            forget: an element leaves the array when it is handed out. ``value``, snapshots and ``finish()`` then show the rest.
            paths: hand out pairs of an element's path and the element.

        Raises:
            UsageError: as ``tap``.
        """
        return ItemTap(self, path, forget=forget, paths=paths)

    def __repr__(self):
        state = "malformed" if self.error is not None else "complete" if self.complete else "incomplete"
        return f"<JSONParser {state}, {self.fed} bytes>"

    # -- pickle -------------------------------------------------------------------------------------------------------

    def __reduce__(self):
        cdef uint32_t i
        if self.busy:
            raise UsageError("the parser is busy and can not be pickled now")
        if self.b.lent != TW_NOT_LENT and tw_build_take_back(&self.b) < 0:
            raise_pending()
        options = {
            "max_depth": self.j.max_depth,
            "max_bytes": None if self.max_bytes == UINT64_MAX else self.max_bytes,
            "surrogates": ("error", "replace", "keep")[self.j.surrogates],
            "duplicate_keys": "error" if self.b.refuse_duplicates else "last",
            "allow_nan": bool(self.j.allow_nan),
            "allow_control_characters": bool(self.j.allow_control),
        }
        machine = (
            self.j.offset, self.j.consumed, self.j.error_offset, self.j.token_offset, self.j.escape_offset,
            self.j.high_offset, self.j.depth, self.j.state, self.j.error, self.j.in_key, self.j.text_open,
            bytes([self.j.part[0], self.j.part[1], self.j.part[2], self.j.part[3]]), self.j.part_len, self.j.part_want,
            self.j.hex_left, self.j.number, self.j.number_parts, self.j.literal, self.j.literal_pos, self.j.hex, self.j.high,
            PyBytes_FromStringAndSize(<char *>self.j.stack, tw_json_stack_bytes(self.j.max_depth)),
        )
        frames = [
            (<object>self.b.frames[i].container, <object>self.b.frames[i].key if self.b.frames[i].key != NULL else None,
             self.b.frames[i].count)
            for i in range(self.b.depth)
        ]
        build = (
            self.b.root != NULL, <object>self.b.root if self.b.root != NULL else None, frames,
            PyBytes_FromStringAndSize(<char *>self.b.scratch, self.b.scratch_len), self.b.cont, self.b.lead, self.b.in_text,
            <object>self.b.open.o if self.b.open.o != NULL else None, self.b.key_offset,
            <object>self.b.marks if self.b.marks != NULL else None, self.b.more_marks,
        )
        return _restore_parser, (options, machine, build, self.fed, self.error, self.rest, self.held, self.finished)


cdef extern from *:
    """
    /* Cython visits the members that are Python objects; the live value hangs below a C struct. These two are put in front
     * of what Cython made, once, when the module is loaded. */
    static traverseproc tw_parser_traverse_rest;
    static inquiry tw_parser_clear_rest;
    static Py_ssize_t tw_parser_build_at, tw_parser_machine_at;

    static int tw_parser_traverse(PyObject *self, visitproc visit, void *arg)
    {
        int r = tw_build_traverse((tw_build *)(void *)((char *)self + tw_parser_build_at), visit, arg);
        return r ? r : tw_parser_traverse_rest(self, visit, arg);
    }

    static int tw_parser_clear(PyObject *self)
    {
        /* A finaliser may still call it: the machine is put where it takes nothing. */
        ((tw_json *)(void *)((char *)self + tw_parser_machine_at))->state = ST_JSON_ERROR;
        tw_build_clear((tw_build *)(void *)((char *)self + tw_parser_build_at));
        return tw_parser_clear_rest(self);
    }

    static void tw_parser_collect(PyObject *type, Py_ssize_t build_at, Py_ssize_t machine_at)
    {
        PyTypeObject *t = (PyTypeObject *)type;
        tw_parser_build_at = build_at;
        tw_parser_machine_at = machine_at;
        tw_parser_traverse_rest = t->tp_traverse;
        tw_parser_clear_rest = t->tp_clear;
        t->tp_traverse = tw_parser_traverse;
        t->tp_clear = tw_parser_clear;
    }
    """
    void tw_parser_collect(object, Py_ssize_t, Py_ssize_t)


cdef void _let_parsers_be_collected():
    cdef JSONParser p = JSONParser()
    tw_parser_collect(JSONParser, <char *>&p.b - <char *><PyObject *>p, <char *>&p.j - <char *><PyObject *>p)


_let_parsers_be_collected()


cdef bint tw_build_path_due(const tw_build *b, const tw_json *j):
    return <uint32_t>len(tw_build_path(b, j)) == b.depth


def _restore_parser(options, machine, build, fed, error, rest, held, finished):
    cdef JSONParser p = JSONParser(**options)
    cdef uint32_t i
    cdef bytes part, stack, scratch
    cdef tw_json *j = &p.j
    (j.offset, j.consumed, j.error_offset, j.token_offset, j.escape_offset, j.high_offset, depth, j.state, j.error, j.in_key,
     j.text_open, part, j.part_len, j.part_want, j.hex_left, j.number, j.number_parts, j.literal, j.literal_pos, j.hex, j.high,
     stack) = machine
    has_root, root, frames, scratch, p.b.cont, p.b.lead, p.b.in_text, open_text, p.b.key_offset, marks, p.b.more_marks = build
    if len(stack) != <Py_ssize_t>tw_json_stack_bytes(j.max_depth) or depth > j.max_depth or depth != len(frames) or len(part) != 4:
        raise UsageError("this pickle holds no JSONParser")
    memcpy(j.stack, PyBytes_AS_STRING(stack), len(stack))
    memcpy(j.part, PyBytes_AS_STRING(part), 4)
    j.depth = depth
    if tw_scratch_add(&p.b, <const uint8_t *>PyBytes_AS_STRING(scratch), len(scratch)) != TW_OK:
        raise_pending()
    if has_root:
        p.b.root = own(root)
    if frames:
        p.b.frames = <tw_level *>PyMem_Calloc(len(frames), sizeof(tw_level))
        if p.b.frames == NULL:
            raise MemoryError
        p.b.frames_cap = len(frames)
        for container, key, count in frames:
            if type(container) is not dict and type(container) is not list:
                raise UsageError("this pickle holds no JSONParser")
            i = p.b.depth
            p.b.frames[i].container = own(container)
            p.b.frames[i].key = own(key) if key is not None else NULL
            p.b.frames[i].count = count
            p.b.depth += 1
    if open_text is not None:
        if len(open_text) == 0:
            tw_str_empty(&p.b.open)
        else:
            tw_str_renew(&p.b.open, len(open_text), PyUnicode_MAX_CHAR_VALUE(open_text))
            tw_grow_set_length(p.b.open.o, len(open_text))
            copy_characters(p.b.open.o, 0, open_text, len(open_text))
        if tw_slot_set(&p.b, <object>p.b.open.o, tw_slot_get(&p.b)) != TW_OK:
            raise_pending()
    if marks is not None:
        p.b.marks = own(list(marks))
    p.b.exposed = True  # who else holds these containers is not known
    p.fed, p.error, p.rest, p.held, p.finished = fed, error, rest, held, finished
    return p


cdef PyObject *own(object o) noexcept:
    Py_XINCREF(<PyObject *>o)
    return <PyObject *>o


cdef extern from *:
    """
    static inline PyObject *tw_steal(PyObject *o) { return o; }
    """
    object steal "tw_steal"(PyObject *)


def loads(data, *, max_depth=512, max_bytes=None, surrogates="error", duplicate_keys="last", allow_nan=False,
          allow_control_characters=False):
    """Parse a whole document, by the same rules and the same core as ``JSONParser``.

    Args:
        data: any bytes-like object, or a str. The options are those of ``JSONParser``.

    Returns:
        The value, equal to ``json.loads``' for every document that both accept.

    Raises:
        MalformedJSON, TruncatedJSON, LimitExceeded: as ``JSONParser.feed`` and ``finish``.
    """
    cdef JSONParser p = JSONParser(max_depth=max_depth, max_bytes=max_bytes, surrogates=surrogates, duplicate_keys=duplicate_keys,
                                   allow_nan=allow_nan, allow_control_characters=allow_control_characters)
    p.feed(data)
    return p.finish()


include "_partial.pxi"
include "_taps.pxi"
