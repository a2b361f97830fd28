# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=False
"""The hot path of a turn: the two delta events, and *lanes*, which take runs of payloads that only add text.

An adapter that has handled a payload whose only effect was to add one string to a call or to a channel of text says so
(``TurnRecord.plain``). The next payload that is the same but for that string (see ``_pytemplate.h``) has the same effect, so it is
carried out here, without asking the adapter again. Anything else that happens ends all lanes.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from ._framing cimport Frame
from ._json cimport ArgumentBuffer, Projection, tw_build, tw_build_clear, tw_build_init, tw_build_run, tw_json, tw_json_init, tw_node

from .errors import UsageError


cdef extern from "_pytemplate.h":
    ctypedef struct tw_template:
        uint8_t *bytes
        uint32_t len
        uint32_t n
    ctypedef struct tw_step:
        const char *name
        size_t len
        uint32_t index
    ctypedef struct tw_fit:
        const uint8_t *text
        const uint8_t *text_end
        int plain
        uint64_t counter
        int has_counter
    enum:
        TW_HOLES
    int ST_JSON_DONE, TW_SURROGATES_KEEP
    int tw_template_make(tw_template *, const uint8_t *, size_t, const tw_node *, const tw_step *, int, const tw_step *, int, uint32_t)
    void tw_template_free(tw_template *)
    int tw_template_fit(const tw_template *, const uint8_t *, size_t, tw_fit *, uint8_t *)
    void tw_template_freeze(tw_template *, const uint8_t *)
    object tw_str_from_utf8(const uint8_t *, size_t, uint8_t, size_t)


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


@cython.final
cdef class _Lane:
    """One template, and where its text goes."""

    cdef tw_template template
    cdef bint made             # False: one payload was seen, the template is that
    cdef str event
    cdef tuple path
    cdef object call           # of an ArgumentsDelta; None: a TextDelta
    cdef str channel
    cdef object choice
    cdef ArgumentBuffer buffer
    cdef list also             # takes each piece of text, too
    cdef bint no_value         # text that starts a JSON value is for the adapter

    def __dealloc__(self):
        tw_template_free(&self.template)


cdef class Lanes:
    """The lanes of one turn.

    Args:
        projection: the adapter's.
        counter: name of the member that numbers the events, or None.
    """

    cdef Projection projection
    cdef object counter_name
    cdef tw_step counter
    cdef int counter_len
    cdef list lanes
    cdef tw_build build        # for text with escapes
    cdef uint8_t stack[4]
    #: The number that the next event has to have.
    cdef public object next_number
    #: What ``take`` took: characters of text and argument text, of text alone, payloads.
    cdef readonly Py_ssize_t chars, text_chars, taken

    def __cinit__(self, Projection projection, counter=None):
        tw_build_init(&self.build, NULL)
        self.projection = projection
        self.lanes = []
        self.next_number = -1
        if counter is not None:
            self.counter_name = counter.encode()
            self.counter.name = PyBytes_AS_STRING(self.counter_name)
            self.counter.len = PyBytes_GET_SIZE(self.counter_name)
            self.counter_len = 1

    def __dealloc__(self):
        tw_build_clear(&self.build)

    def clear(self):
        """Something happened that is no plain delta."""
        if self.lanes:
            self.lanes = []

    def learn(self, Frame frame not None, tuple path not None, ArgumentBuffer buffer not None, call, channel, choice, also,
              bint no_value):
        """The adapter has handled ``frame``; its only effect was to add the string at ``path`` to ``buffer``.

        The second such payload finishes the template: what it shares with the first is fixed.
        """
        cdef _Lane lane
        cdef uint8_t same[TW_HOLES]
        cdef tw_fit fit
        for lane in self.lanes:
            if lane.call is call and lane.channel == channel and lane.choice == choice and lane.path == path:
                break
        else:
            lane = _Lane()
            lane.call, lane.channel, lane.choice, lane.path = call, channel, choice, path
            if len(self.lanes) >= 16:
                self.lanes.pop()
            self.lanes.insert(0, lane)
        lane.buffer, lane.also, lane.no_value, lane.event = buffer, also, no_value, frame.event
        if not lane.made and lane.template.bytes != NULL and fits(&lane.template, frame.raw, &fit, same):
            tw_template_freeze(&lane.template, same)
            lane.made = True
            return
        tw_template_free(&lane.template)
        lane.made = False
        if not self.make(lane, frame.raw):
            self.clear()  # a payload that is more than it seems

    cdef bint make(self, _Lane lane, bytes raw) except -1:
        cdef tw_step steps[12]
        cdef int n = 0, r
        if len(lane.path) > 12:
            raise UsageError("a lane's path has at most 12 steps")
        for step in lane.path:
            if type(step) is int:
                steps[n].name = NULL
                steps[n].index = step
            else:
                steps[n].name = PyBytes_AS_STRING(step)
                steps[n].len = PyBytes_GET_SIZE(step)
            n += 1
        r = tw_template_make(&lane.template, <const uint8_t *>PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw), self.projection.root,
                             steps, n, &self.counter, self.counter_len, self.projection.max_depth)
        if r < 0:
            raise MemoryError
        return r

    cdef str decode(self, const uint8_t *p, const uint8_t *end):
        """The text between the quotes at p - 1 and end."""
        cdef tw_json j
        tw_json_init(&j, self.stack, 1)
        j.surrogates = TW_SURROGATES_KEEP
        tw_build_run(&j, &self.build, p - 1, end + 1)
        if j.state != ST_JSON_DONE or self.build.root == NULL:
            raise MemoryError
        text = <str>self.build.root
        tw_build_clear(&self.build)
        return text

    def take(self, list frames not None, Py_ssize_t i, list events not None, Py_ssize_t room):
        """Carry out ``frames[i:]`` as long as they fit a lane.

        Args:
            events: gets the deltas.
            room: characters of text that the turn may still take.

        Returns:
            Index of the first frame that fits none.
        """
        cdef _Lane lane
        cdef Frame frame
        cdef tw_fit fit
        cdef Py_ssize_t n = PyList_GET_SIZE(frames), k, count, size
        cdef const uint8_t *p
        cdef str text, shown
        cdef TextDelta td
        cdef ArgumentsDelta ad
        cdef list lanes = self.lanes
        cdef long long number = self.next_number if self.next_number < 1 << 62 else -1  # a counter has 18 digits
        self.chars = self.text_chars = self.taken = 0
        count = PyList_GET_SIZE(lanes)
        while i < n:
            frame = <Frame>PyList_GET_ITEM(frames, i)
            if frame.stray:
                break
            for k in range(count):
                lane = <_Lane>PyList_GET_ITEM(lanes, k)
                if not lane.made or (frame.event is not lane.event and frame.event != lane.event):
                    continue
                if fits(&lane.template, frame.raw, &fit, NULL):
                    break
            else:
                break
            if fit.has_counter and <long long>fit.counter != number:
                break
            p = fit.text
            size = fit.text_end - p
            if lane.no_value and starts_value(p, fit.text_end):
                break
            if size > room - self.text_chars or size > lane.buffer.max_chars - len(lane.buffer):
                break  # a limit may be hit: the adapter's way gives the error
            if fit.plain:
                text = tw_str_from_utf8(p, size, 0, 0)
            else:
                text = self.decode(p, fit.text_end)
            if fit.has_counter:
                number += 1
                self.next_number = number
            i += 1
            self.taken += 1
            size = len(text)
            if size == 0:
                continue
            if lane.also is not None:
                lane.also.append(text)
            self.chars += size
            shown = lane.buffer.add(text)
            if lane.call is not None:
                if shown:
                    ad = ArgumentsDelta.__new__(ArgumentsDelta)
                    ad.call = lane.call
                    ad.text = shown
                    events.append(ad)
            else:
                self.text_chars += size
                if shown:
                    td = TextDelta.__new__(TextDelta)
                    td.text = shown
                    td.channel = lane.channel
                    td.choice = lane.choice
                    events.append(td)
            if k:
                lanes[k] = lanes[0]
                lanes[0] = lane
        return i

    def __reduce__(self):
        # Lanes are learnt again; only the number is state.
        name = None if self.counter_name is None else self.counter_name.decode()
        return _restore_lanes, (self.projection, name, self.next_number)


def _restore_lanes(projection, counter, next_number):
    cdef Lanes lanes = Lanes(projection, counter)
    lanes.next_number = next_number
    return lanes


cdef inline bint fits(const tw_template *t, bytes raw, tw_fit *fit, uint8_t *same) noexcept:
    return tw_template_fit(t, <const uint8_t *>PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw), fit, same)


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
