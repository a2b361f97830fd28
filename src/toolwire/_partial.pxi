"""Values of JSON that is not finished, by the rules of jiter's partial modes, and the same for a text that grows: for
``toolwire.compat``. Part of ``_json.pyx``."""


cpdef object open_number(JSONParser parser):
    """The number that the input stops in, if it is one as it stands; else MISSING. A parser leaves it out: ``12`` may become
    ``123``."""
    cdef bytes text
    parser.check_idle()
    if parser.j.state != ST_JSON_IN_NUMBER or not tw_num_may_end(parser.j.number):
        return MISSING
    text = PyBytes_FromStringAndSize(<char *>parser.b.scratch, parser.b.scratch_len)
    return int(text) if parser.j.number <= TW_NUM_INT else float(text)


cpdef bint in_scalar(JSONParser parser):
    """Does the input stop in a number, ``true``, ``false`` or ``null``?"""
    parser.check_idle()
    return parser.j.state == ST_JSON_IN_NUMBER or parser.j.state == ST_JSON_IN_LITERAL


cpdef object partial(JSONParser parser, bint strings):
    """What jiter makes of what the parser was fed: what is shown, and the number at the end; MISSING where there is no value.

    Args:
        strings: with the open string at the end ("trailing-strings"), or without it ("on").

    Finished parts are the parser's own, and the same in the next value; the containers that are open are the caller's.
    """
    if parser.b.in_text and not strings:
        return with_last(parser, MISSING)
    number = open_number(parser)
    return parser.snapshot() if number is MISSING else with_last(parser, number)


cdef object with_last(JSONParser parser, object last):
    """A snapshot with another value, or none, in the place of the open one. Only containers along the way are copied."""
    cdef tuple path = tw_build_path(&parser.b, &parser.j)
    cdef Py_ssize_t end = len(path) - 1
    if end < 0:
        return last
    snapshot = parser.snapshot()
    value = above = snapshot.copy()
    for step in path[:end]:
        here = above[step] = above[step].copy()
        above = here
    step = path[end]
    if type(above) is list:
        above[step:] = () if last is MISSING else (last,)
    elif last is not MISSING:
        above[step] = last
    else:
        above.pop(step, None)
    return value


cdef class Growing:
    """A text that grows, given whole each time: of one that begins with the last, only what is new is parsed.

    This is the way that nearly all of them take. Of the others ``_slowly(data)`` makes the value; a subclass defines it.
    """

    cdef public bytes _latest
    cdef public JSONParser _parser
    cdef public bint _strings  # as in ``partial``
    cdef public bint _busy     # in another thread, or further up in this one

    def __call__(self, json_data, /):
        """The value of the text. Raises ValueError where there is none."""
        cdef Py_ssize_t known = PyBytes_GET_SIZE(self._latest), n
        cdef const uint8_t *p
        if not self._busy and PyBytes_CheckExact(json_data):
            p = <const uint8_t *>PyBytes_AS_STRING(json_data)
            n = PyBytes_GET_SIZE(json_data)
            if n >= known and memcmp(p, PyBytes_AS_STRING(self._latest), known) == 0:
                self._busy = True
                self._latest = json_data
                try:
                    self._parser.check_open()
                    if self._parser.j.state != ST_JSON_DONE:  # what follows is not looked at
                        self._parser.run(p + known, n - known)
                    value = partial(self._parser, self._strings)
                    if value is not MISSING:
                        return value
                except (StreamError, ValueError):
                    pass  # it stays, so that the other way meets it, too
                finally:
                    self._busy = False
        return self._slowly(json_data)
