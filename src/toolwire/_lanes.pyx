# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=False
"""The hot path of a turn: the two delta events, the counts that they change, and *lanes*, which take runs of payloads that only add
text.

An adapter that has handled a payload whose only effect was to add one string to a call or to a channel of text says so
(``TurnRecord.plain``). The next payload that is the same but for that string (see ``_core/tw_template.h``) has the same effect, so it
is carried out here, without asking the adapter again. Anything else that happens ends all lanes.
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from ._calls cimport ArgumentBuffer
from ._framing cimport TW_FRAME_STRAY, Frame, Framer, tw_frame
from ._projection cimport TW_TEMPLATE_HOLES, TW_TEXT_PLAIN, TW_TEXT_SHORT_ESCAPES, Projection, Template, tw_fit, tw_span


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef extern from "_core/tw_json.h":
    uint8_t tw_short_escape(uint8_t)

cdef extern from "_pystr.h":
    object tw_str_from_utf8(const uint8_t *, size_t, uint8_t, size_t)


cdef enum:
    LANES = 16                 # of one turn
    PIECE = 256                # bytes of a text that is put together on the stack


@cython.final
@cython.freelist(64)
cdef class TextDelta:
    """Text that one provider message added. ``channel`` is ``text``, ``reasoning`` or ``refusal``."""

    cdef public str text
    cdef public str channel
    cdef public object choice

    def __init__(self, str text not None, str channel not None="text", choice=0):
        self.text = text
        self.channel = channel
        self.choice = choice

    def __repr__(self):
        return f"TextDelta({self.text!r}, {self.channel!r})"

    def __reduce__(self):
        return TextDelta, (self.text, self.channel, self.choice)


@cython.final
@cython.freelist(64)
cdef class ArgumentsDelta:
    """Argument text that one provider message added to ``call``."""

    cdef public object call
    cdef public str text

    def __init__(self, call, str text not None):
        self.call = call
        self.text = text

    def __repr__(self):
        return f"ArgumentsDelta({self.call.key}, {self.text!r})"

    def __reduce__(self):
        return ArgumentsDelta, (self.call, self.text)


@cython.auto_pickle(False)
cdef class Tally:
    """The counts of a turn that lanes keep up, too: the base of ``TurnRecord``."""

    #: Byte offset of the frame at hand.
    cdef public uint64_t offset
    #: Frames with a payload so far.
    cdef public Py_ssize_t payloads
    #: Characters of text and argument text so far, and of text alone.
    cdef public Py_ssize_t progress, text_chars
    #: The number that the next payload has to have, where there is a counter; where a resumed body has to start, or None.
    cdef public object next_number, resume_point

    def __cinit__(self, *args, **kwargs):
        self.next_number = -1


@cython.final
cdef class _Lane:
    """One template, and where its text goes."""

    cdef Template template
    cdef tw_span *same         # what has to stand in the holes of that kind; the bytes follow in the same block
    cdef str event
    cdef const char *event_name
    cdef Py_ssize_t event_len
    cdef tuple path
    cdef object call           # of an ArgumentsDelta; None: a TextDelta
    cdef str channel
    cdef object choice
    cdef ArgumentBuffer buffer
    cdef list also             # takes each piece of text, too
    cdef bint no_value         # text that may start the JSON value anew is for the adapter

    def __dealloc__(self):
        PyMem_Free(self.same)

    cdef int keep(self, const tw_span *found, uint32_t n) except -1:
        """Copy what stands in the holes that have to stay the same."""
        cdef size_t size = n * sizeof(tw_span)
        cdef uint8_t *at
        cdef uint32_t i
        for i in range(n):
            size += found[i].n
        PyMem_Free(self.same)
        self.same = <tw_span *>PyMem_Malloc(size or 1)
        if self.same == NULL:
            raise MemoryError
        at = <uint8_t *>(self.same + n)
        for i in range(n):
            memcpy(at, found[i].p, found[i].n)
            self.same[i].p = at
            self.same[i].n = found[i].n
            at += found[i].n
        return 0


@cython.final
cdef class Lanes:
    """The lanes of one turn."""

    cdef Projection projection
    cdef list lanes
    #: Payloads taken so far.
    cdef readonly Py_ssize_t taken

    def use(self, Projection projection not None):
        """The protocol is known: lanes may be learnt."""
        self.projection = projection

    def clear(self):
        """Something happened that is no plain delta."""
        self.lanes = None

    def learn(self, Frame frame not None, tuple path not None, ArgumentBuffer buffer not None, call, channel, choice, also,
              bint no_value):
        """The adapter has handled ``frame``; its only effect was to add the string at ``path`` to ``buffer``."""
        cdef const uint8_t *p = frame.p
        cdef size_t n = frame.n
        cdef tw_span found[TW_TEMPLATE_HOLES]
        cdef tw_fit fit
        cdef _Lane lane
        cdef Template template = self.projection.template(path, p, n)
        if template is None or not template.fit(NULL, found, p, n, &fit):
            self.clear()  # a payload that is more than it seems
            return
        if self.lanes is None:
            self.lanes = []
        for lane in self.lanes:
            if lane.call is call and lane.channel == channel and lane.choice == choice and lane.path == path and (
                    lane.template is template or lane.template.stale):
                break
        else:
            lane = _Lane.__new__(_Lane)
            lane.call, lane.channel, lane.choice, lane.path = call, channel, choice, path
            if len(self.lanes) >= LANES:
                self.lanes.pop()
            self.lanes.insert(0, lane)
        lane.template, lane.buffer, lane.also, lane.no_value, lane.event = template, buffer, also, no_value, frame.event
        lane.event_name = PyUnicode_AsUTF8AndSize(lane.event, &lane.event_len)
        lane.keep(found, template.t.same)

    def run(self, Framer framer not None, chunk, Tally tally not None, list events not None, Py_ssize_t room, meet, /):
        """Carry out the frames of one chunk that fit a lane, and call ``meet`` with each of the others.

        Args:
            tally: its counts are kept up.
            events: gets the deltas.
            room: characters of text that the turn may take in all.

        Raises:
            What ``Framer.feed`` does, and what ``meet`` does: the rest of the chunk is then lost.
        """
        cdef tw_frame f
        framer.open(chunk)
        try:
            while framer.next(&f):
                if self.lanes is None or f.kind == TW_FRAME_STRAY or not self.take(&f, tally, events, room):
                    meet(framer.make(&f))
        finally:
            framer.close()

    def run_frames(self, list frames not None, Tally tally not None, list events not None, Py_ssize_t room, meet, /):
        """The same for frames that are there."""
        cdef Frame frame
        cdef tw_frame f
        cdef Py_ssize_t event_len
        for frame in frames:
            f.data, f.data_len, f.offset = frame.p, <size_t>frame.n, frame.offset
            f.event = <const uint8_t *>PyUnicode_AsUTF8AndSize(frame.event, &event_len)
            f.event_len = <size_t>event_len
            if self.lanes is None or frame.stray or not self.take(&f, tally, events, room):
                meet(frame)

    cdef bint take(self, const tw_frame *f, Tally tally, list events, Py_ssize_t room) except -1:
        cdef list lanes = self.lanes
        cdef const uint8_t *event = f.event
        cdef size_t event_len = f.event_len
        cdef Py_ssize_t k, size
        cdef _Lane lane
        cdef tw_fit fit
        cdef uint8_t piece[PIECE]
        cdef str text, shown
        cdef TextDelta td
        cdef ArgumentsDelta ad
        if event_len == 0:
            event, event_len = <const uint8_t *>b"message", 7
        for k in range(PyList_GET_SIZE(lanes)):
            lane = <_Lane>PyList_GET_ITEM(lanes, k)
            if <size_t>lane.event_len == event_len and memcmp(lane.event_name, event, event_len) == 0 and lane.template.fit(
                    lane.same, NULL, f.data, f.data_len, &fit):
                break
        else:
            return False
        if fit.has_counter and fit.counter != tally.next_number:
            return False
        size = fit.text.n
        if lane.no_value and size >= len(lane.buffer) and starts_value(fit.text.p, fit.text.p + size):
            return False
        if size > room - tally.text_chars or size > lane.buffer.max_chars - len(lane.buffer):
            return False  # a limit may be hit: the adapter's way gives the error
        if fit.form == TW_TEXT_PLAIN:
            text = tw_str_from_utf8(fit.text.p, size, 0, 0)
        elif fit.form == TW_TEXT_SHORT_ESCAPES and size <= PIECE:
            text = tw_str_from_utf8(piece, unescaped(fit.text.p, fit.text.p + size, piece), 0, 0)
        else:
            text = self.projection.decode(fit.text.p, fit.text.p + size)
        if fit.has_counter:
            tally.resume_point = tally.next_number
            tally.next_number = fit.counter + 1
        if k:
            lanes[k] = lanes[0]
            lanes[0] = lane
        tally.offset = f.offset
        tally.payloads += 1
        self.taken += 1
        size = len(text)
        if size == 0:
            return True
        if lane.also is not None:
            lane.also.append(text)
        tally.progress += size
        shown = lane.buffer.add(text)
        if lane.call is not None:
            if shown:
                ad = ArgumentsDelta.__new__(ArgumentsDelta)
                ad.call = lane.call
                ad.text = shown
                events.append(ad)
        else:
            tally.text_chars += size
            if shown:
                td = TextDelta.__new__(TextDelta)
                td.text = shown
                td.channel = lane.channel
                td.choice = lane.choice
                events.append(td)
        return True

    def __reduce__(self):
        return _lanes, (self.projection,)  # they are learnt again


def _lanes(projection):
    cdef Lanes lanes = Lanes()
    lanes.projection = projection
    return lanes


cdef size_t unescaped(const uint8_t *p, const uint8_t *end, uint8_t *out) noexcept:
    """Characters of a text of ASCII and short escapes."""
    cdef size_t n = 0
    while p < end:
        if p[0] == b"\\":
            p += 1
            out[n] = tw_short_escape(p[0])
        else:
            out[n] = p[0]
        p += 1
        n += 1
    return n


cdef bint starts_value(const uint8_t *p, const uint8_t *end) noexcept:
    """Does the text of this JSON string start with a bracket, white space aside?"""
    while p < end:
        if p[0] == b" " or p[0] == 9 or p[0] == 10 or p[0] == 13:
            p += 1
        elif p[0] == b"\\" and end - p >= 2 and (p[1] == b"n" or p[1] == b"r" or p[1] == b"t"):
            p += 2
        else:
            # \\uXXXX may stand for anything: let the adapter look.
            return p[0] == b"{" or p[0] == b"[" or (p[0] == b"\\" and end - p >= 2 and p[1] == b"u")
    return False
