# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=False
"""A tool call as it grows: its argument text, the JSON in it, and ``ToolCall`` itself."""

import re

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8String, PyUnicode_Substring
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from ._json cimport (
    ST_JSON_DONE, Feeder, JSONParser, StringTap, copy_characters, join_surrogates, tw_grow_set_length, tw_json, tw_str_clear,
    tw_str_fits, tw_str_length, tw_str_renew,
)

from ._json import MISSING
from .errors import LimitExceeded, StreamError, UsageError
from .marks import Mark


cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object)
    void *PyUnicode_DATA(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    Py_UCS4 PyUnicode_MAX_CHAR_VALUE(object)

cdef extern from "_core/tw_trial.h":
    int tw_json_rejects(const tw_json *, const uint8_t *, size_t)


_LONE = re.compile("[\ud800-\udfff]")


@cython.final
cdef class ArgumentBuffer(Feeder):
    """The argument text of one call (or the text of one channel), and the JSON in it.

    Text is kept exactly. It is parsed only as far as somebody asks for its value, and no character twice. Never raises for
    wrong JSON: ``error`` tells.

    Args:
        max_chars: characters allowed.
        max_depth: nested arrays and objects allowed.
        json: False for text that is no JSON: then there is only ``text``.
    """

    def __cinit__(self, *, max_chars, max_depth=512, json=True):
        self.max_chars = max_chars
        self.max_depth = max_depth
        self.json = json
        self.held = ""

    def __dealloc__(self):
        tw_str_clear(&self.grown)

    def __len__(self):
        return tw_str_length(&self.grown)

    def append(self, str text not None):
        """Add text.

        Returns:
            The text as it may be shown now: halves of a surrogate pair are joined, the first waits for the second, and one
            that stays alone is U+FFFD (marked).

        Raises:
            LimitExceeded: more than ``max_chars``. Nothing was added.
        """
        return self.add(text)

    cdef str add(self, str text):
        cdef Py_ssize_t n = PyUnicode_GET_LENGTH(text), at = tw_str_length(&self.grown)
        cdef Py_UCS4 widest
        if n == 0:
            return text
        if n > self.max_chars - at:
            raise LimitExceeded(
                f"more than {self.max_chars} characters of argument text", code="turn.args_too_long",
                limit="max_argument_chars", value=self.max_chars, option="Limits(max_argument_chars=...)",
            )
        if self.held or not PyUnicode_IS_COMPACT_ASCII(text):
            text = self.clean(text)
            n = PyUnicode_GET_LENGTH(text)
            if n == 0:
                return text
        widest = PyUnicode_MAX_CHAR_VALUE(text)
        if not tw_str_fits(&self.grown, n, widest, 1):
            tw_str_renew(&self.grown, n, widest)
        tw_grow_set_length(self.grown.o, at + n)
        if widest == 0x7f and PyUnicode_MAX_CHAR_VALUE(<object>self.grown.o) == 0x7f:
            memcpy(<char *>PyUnicode_DATA(<object>self.grown.o) + at, PyUnicode_DATA(text), n)
        else:
            copy_characters(self.grown.o, at, text, n)
        return text

    cdef str clean(self, str text):
        if not self.held:
            try:
                PyUnicode_AsUTF8String(text)
                return text
            except UnicodeEncodeError:
                pass
        text, self.held = join_surrogates(self.held, text)
        return self.replace_lone(text)

    def give_up_half(self, str text not None):
        """``text`` is said to be what follows, from a source that has it whole: is that so for half a surrogate pair that
        waits for its partner? Then it waits no longer."""
        if self.held and text.encode("utf-16-le", "surrogatepass")[:2] != self.held.encode("utf-16-le", "surrogatepass"):
            return False
        self.held = ""
        return True

    cdef str replace_lone(self, str text):
        found = list(_LONE.finditer(text))
        if found:
            if self.lone is None:
                self.lone = []
            if len(self.lone) < 100:
                self.lone += [tw_str_length(&self.grown) + m.start() for m in found[:100]]
            text = _LONE.sub("\ufffd", text)
        return text

    cdef int sync(self) except -1:
        """Give the parser what it has not seen. Errors stay in the parser.

        It may be asked again while the parser is at work (by a finaliser or another thread). Then it begins anew with another one, so
        that what it answers never depends on that.
        """
        cdef Py_ssize_t n = tw_str_length(&self.grown), start = self.parsed
        cdef JSONParser parser = self.parser
        cdef object text
        if parser is None or parser.busy:
            parser = self.parser = JSONParser(max_depth=self.max_depth, surrogates="replace")
            start = 0
        if start == n or parser.error is not None:
            return 0
        self.parsed = n
        text = <object>self.grown.o  # kept alive, and so in its place, should text be added meanwhile
        try:
            if PyUnicode_MAX_CHAR_VALUE(text) == 0x7f:
                parser.check_open()
                parser.run(<const uint8_t *>PyUnicode_DATA(text) + start, n - start)
            else:
                parser.feed(PyUnicode_Substring(text, start, n))
        except StreamError:
            pass
        except BaseException:
            self.parsed = start
            self.start_over()
            raise
        return 0

    cdef int start_over(self) except -1:
        """What came over the parser is no error of the text: it is read anew when next asked for, unless the parser is at work."""
        if not self.parser.busy:
            self.parser, self.parsed = None, 0
        return 0

    @property
    def text(self):
        """The exact text so far."""
        return "" if self.grown.o == NULL else <object>self.grown.o

    @property
    def value(self):
        """The live value, see ``JSONParser.value``."""
        self.sync()
        return self.parser.live()

    def snapshot(self):
        """See ``JSONParser.snapshot``."""
        self.sync()
        return self.parser.snapshot()

    @property
    def complete(self):
        """Is the root value closed, with nothing but white space behind it?"""
        self.sync()
        return self.parser.j.state == ST_JSON_DONE and self.parser.error is None and self.parser.trailing_error() is None

    @property
    def error(self):
        """What is wrong with the text so far, or None. Truncation is an error only after ``finish()``."""
        if not self.json:
            return None
        self.sync()
        if self.parser.error is not None:
            return self.parser.error
        return self.parser.trailing_error() if self.parser.j.state == ST_JSON_DONE else None

    def tap(self, path):
        """See ``JSONParser.tap``."""
        cdef StringTap tap
        self.sync()
        tap = StringTap(self.parser, path)
        tap.feeder = self
        return tap

    def finish(self, *, bint whole=True):
        """No more text will come. ``whole``: this is the end, so a root number is complete now. Returns text that had waited
        (see ``append``)."""
        waited, self.held = self.held, ""
        if waited:
            waited = self.append(self.replace_lone(waited))
        if self.json and whole and not self.ended:
            if tw_str_length(&self.grown):
                self.sync()
                if self.parser.error is None:
                    try:
                        self.parser.finish()
                    except StreamError:
                        pass
                    except BaseException:
                        self.start_over()
                        raise
            self.ended = True
        return waited

    def rejects(self, str text not None):
        """Could ``text``, appended here, never be valid JSON? Changes nothing."""
        cdef bytes data = text.encode("utf-8", "replace")
        cdef int rejected
        self.sync()
        if self.parser.error is not None:
            return True
        rejected = tw_json_rejects(&self.parser.j, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
        if rejected < 0:
            raise MemoryError
        return rejected > 0

    @property
    def marks(self):
        """What was tolerated, as a tuple of ``Mark``."""
        cdef tuple marks = ()
        if self.lone:
            marks = tuple(Mark("lone_surrogate", at) for at in self.lone)
        if self.json and tw_str_length(&self.grown):
            self.sync()
            marks = marks + self.parser.marks
        return marks

    def __reduce__(self):
        return _restore_buffer, (self.max_chars, self.max_depth, self.json, self.text, self.parser, self.parsed, self.held,
                                 self.lone, self.ended)


def _restore_buffer(max_chars, max_depth, json, text, parser, parsed, held, lone, ended):
    cdef ArgumentBuffer b = ArgumentBuffer(max_chars=max_chars, max_depth=max_depth, json=json)
    b.append(text)
    b.parser, b.parsed, b.held, b.lone, b.ended = parser, parsed, held, lone, ended
    return b


@cython.final
cdef class ToolCall:
    """One tool call, growing while the turn arrives. A draft until the gate has released it.

    Attributes:
        key: identifies the call within its turn; never the name, never reused. Stable for the same bytes.
        id: the provider's id; None while it has not come; a deterministic synthetic one at the end of the turn if the
            provider gave none.
        id_is_synthetic: the id is ours, do not send it to a provider that keeps its own.
        name: the tool's name, or None while it has not come.
        kind: "json" (arguments are JSON) or "text" (free text: a patch, code, a command).
        runs_on: "client", or "provider" for tools that the provider runs itself.
        choice: index of the choice or candidate the call belongs to.
        extra: what must be sent back with the call (signatures, caller, namespace ...), under the provider's names.
        marks: what was tolerated (see ``toolwire.marks.MARKS``).
        doubts: reasons why this call can not be trusted, each with a detail; the gate refuses on any of them.
        closed: the provider closed the call's block. Never a permission.
    """

    def __init__(self, str key not None, *, id, name, str kind not None, str runs_on not None, choice, limits):
        self.key = key
        self.id = id
        self.name = name
        self.kind = kind
        self.runs_on = runs_on
        self.choice = choice
        self._buffer = ArgumentBuffer(max_depth=limits.max_depth, max_chars=limits.max_argument_chars, json=kind == "json")

    # Most calls need none of these three: they are made on first use.

    @property
    def extra(self):
        if self._extra is None:
            self._extra = {}
        return self._extra

    @property
    def doubts(self):
        if self._doubts is None:
            self._doubts = {}
        return self._doubts

    @property
    def _mark_list(self):
        if self._marks is None:
            self._marks = {}
        return self._marks

    @property
    def _marked(self):
        """Was anything about the call itself tolerated?"""
        return bool(self._marks)

    def _hold(self, str text not None):
        """Argument text that came before the name: it is handed out with it."""
        if self._held is None:
            self._held = []
        self._held.append(text)

    def _take_held(self):
        cdef str text = "" if self._held is None else "".join(self._held)
        self._held = None
        return text

    @property
    def text(self):
        """The exact argument text so far."""
        return self._buffer.text

    @property
    def value(self):
        """The live arguments: every finished value and the open string so far; ``MISSING`` before the first. Grows in
        place. For ``kind == "text"`` the text itself."""
        cdef ArgumentBuffer buffer = self._buffer
        if not buffer.json:
            return buffer.text
        buffer.sync()
        value = buffer.parser.live()
        return {} if value is MISSING and self._empty_is_object else value

    def snapshot(self):
        """Like ``value``, but later feeds never change it. Shares what is finished: read it, do not change it."""
        cdef ArgumentBuffer buffer = self._buffer
        if not buffer.json:
            return buffer.text
        value = buffer.snapshot()
        return {} if value is MISSING and self._empty_is_object else value

    def tap(self, path, /):
        """Hand out the text of one string of the arguments as it grows, see ``StringTap``: a file body that streams into an editor.
        A draft, like ``value``: whether the call may run is for the gate.

        Should the provider take back arguments that it streamed (the call is then in doubt), the tap keeps what it gave and is
        never ``complete``.

        Args:
            path: keys and indices from the root of the arguments, as in ``JSONParser.tap``.

        Raises:
            UsageError: ``path`` is none, or the arguments are free text.
        """
        if not self._buffer.json:
            raise UsageError("the arguments of this call are free text: ArgumentsDelta.text is what is new")
        return self._buffer.tap(path)

    @property
    def complete(self):
        """Are the arguments whole? JSON: the root value is closed, and nothing but white space follows. Text: the
        provider closed the block. Whether the call may run is another question, for the gate."""
        if not self._buffer.json:
            return self.closed
        return self._buffer.complete or (self._empty_is_object and not len(self._buffer))

    @property
    def error(self):
        """What is wrong with the argument text so far as JSON, or None."""
        return self._buffer.error

    @property
    def marks(self):
        return (*self._marks.values(), *self._buffer.marks) if self._marks else self._buffer.marks

    def __repr__(self):
        state = "complete" if self.complete else "open"
        return f"<ToolCall {self.key} {self.name!r} id={self.id!r} {len(self._buffer)} characters, {state}>"

    def __reduce__(self):
        state = (self.key, self.id, self.id_is_synthetic, self.name, self.kind, self.runs_on, self.choice, self.closed, self._announced,
                 self._empty_is_object, self._extra, self._doubts, self._marks, self._held, self._buffer)
        return _new_call, (), state

    def __setstate__(self, state):
        (self.key, self.id, self.id_is_synthetic, self.name, self.kind, self.runs_on, self.choice, self.closed, self._announced,
         self._empty_is_object, self._extra, self._doubts, self._marks, self._held, self._buffer) = state


def _new_call():
    return ToolCall.__new__(ToolCall)
