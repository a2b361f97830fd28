"""Taps: what hands out one string as it grows, or one array's elements as they close. Part of ``_json.pyx``; the machine's side is
``_pytap.h``."""


class Key(str):
    """A step of a path that is this very key: ``Key("*")`` is the key ``*``, where ``"*"`` is any key or index."""

    __slots__ = ()


TextPiece = namedtuple("TextPiece", ("path", "text", "complete"))
TextPiece.__doc__ = """New text of one string: where it stands, what was not handed out before, and is this the string's end?"""


cdef class Feeder:
    """What has bytes for a parser, and gives them when somebody wants to see more."""

    cdef int sync(self) except -1:
        return 0


@cython.no_gc_clear  # __dealloc__ signs off at the parser, which must be there. Each cycle runs through a list or a dict as well.
cdef class _Tap:
    """A path, what ended there and was not read yet, and the parser. The parser does not hold its taps: a tap that is dropped
    costs nothing any more."""

    def __dealloc__(self):
        if self.watch != NULL and self.parser is not None and self.parser.watches != NULL:
            tw_watches_drop(self.parser.watches, self.watch, self.parser.busy)
        PyMem_Free(self.watch)

    cdef int attach(self, JSONParser parser, path, bint items) except -1:
        """Read the path. ``items``: it leads to arrays, and their elements are wanted."""
        cdef Py_ssize_t n
        cdef tw_step *at
        if not isinstance(path, (tuple, list)):
            raise UsageError(f"a path is a tuple of keys and indices, such as ('files', 0, 'body'), not {path!r}")
        self.parser = parser
        self.steps = tuple(path)
        n = len(self.steps)
        self.watch = <tw_watch *>PyMem_Calloc(1, sizeof(tw_watch) + (n + 1) * sizeof(tw_step))
        if self.watch == NULL:
            raise MemoryError
        at = self.watch.steps
        for step in self.steps:
            if isinstance(step, str):
                at.kind = TW_STEP_ANY if step == "*" and not isinstance(step, Key) else TW_STEP_KEY
                at.key = <PyObject *>step
            elif isinstance(step, int) and not isinstance(step, bool) and step >= 0:
                at.kind = TW_STEP_INDEX
                at.index = min(step, sys.maxsize)
            else:
                raise UsageError(f"a step of a path is a key (str) or an index (int, not negative), not {step!r}")
            at += 1
        at.kind = TW_STEP_ELEMENT
        self.watch.n_steps = n + items
        self.watch.tap = <PyObject *>self
        self.take()
        return 0

    cdef int begin(self, bint seek) except -1:
        """Watch from now on. ``seek``: first give what the parser has finished there already."""
        cdef JSONParser p = self.parser
        p.check_idle()
        if p.watches == NULL:
            p.watches = <tw_watches *>PyMem_Calloc(1, sizeof(tw_watches))
            if p.watches == NULL:
                raise MemoryError
        p.busy = True  # allocating may run a finaliser that feeds
        try:
            if self.watch.forget and p.b.lent != TW_NOT_LENT and tw_build_take_back(&p.b) < 0:
                raise_pending()
            if seek:
                self.find()
            tw_watches_add(p.watches, &p.b, self.watch)
        finally:
            p.busy = False
        return 0

    cdef int find(self) except -1:
        """Give what stands finished on the path, in the order of the document."""
        cdef tw_build *b = &self.parser.b
        cdef Py_ssize_t end = self.watch.n_steps
        cdef bint is_open = b.depth > 0 or b.in_text
        cdef list work = []
        if b.root != NULL:
            work.append((<object>b.root, (), is_open))
        while work:
            value, path, is_open = work.pop()
            if len(path) < end:
                work += reversed(self.below(value, path, is_open))
            elif not is_open and (not self.watch.strings or type(value) is str):
                self.queue.append((path, value) if self.watch.paths else value)
        return 0

    cdef list below(self, object here, tuple path, bint is_open):
        """What the next step leads to: (value, path, is_open) for each."""
        cdef tw_build *b = &self.parser.b
        cdef uint32_t d = len(path)
        cdef tw_step *step = &self.watch.steps[d]
        cdef tw_level *f = &b.frames[d] if is_open and d < b.depth else NULL
        cdef Py_ssize_t first = 0, n
        cdef list found = []
        if type(here) is list:
            n = len(here)
            if f != NULL:
                first = tw_forgotten(b, d)
                n = min(n, f.count - first)  # the last one shown may be the open one
            for i, value in enumerate(here[:n], first):
                if step.kind == TW_STEP_ANY or step.kind == TW_STEP_ELEMENT or (step.kind == TW_STEP_INDEX and step.index == i):
                    found.append((value, (*path, i), False))
            if self.watch.forget and d + 1 == self.watch.n_steps:
                del here[:n]
        elif type(here) is dict and (step.kind == TW_STEP_ANY or step.kind == TW_STEP_KEY):
            due = <object>f.key if f != NULL and f.key != NULL else None
            for key in list(here) if step.kind == TW_STEP_ANY else [<object>step.key]:
                if key in here and (due is None or key != due):
                    found.append((here[key], (*path, str.__str__(key)), False))
        if f != NULL and d + 1 < b.depth and tw_watch_step(self.watch, b, d + 1):
            found.append((<object>b.frames[d + 1].container, (*path, <object>f.key if f.key != NULL else f.count), True))
        return found

    cdef int ready(self) except -1:
        """Before anything is read."""
        if self.feeder is not None:
            self.feeder.sync()
        return self.parser.check_idle()

    cdef object take(self):
        """The queue; a new one is put in its place."""
        queue, self.queue = self.queue, []
        self.watch.queue = <PyObject *>self.queue
        return queue

    cdef void restart(self):
        pass

    def __repr__(self):
        return f"<{type(self).__name__} {self.steps} of {self.parser!r}>"


@cython.final
@cython.no_gc_clear
cdef class StringTap(_Tap):
    """The text of the string at one path, as it grows: ``JSONParser.tap(path)``.

    After each ``feed``, ``read()`` gives what is new. With ``"*"`` in its path, or where a key comes twice, a tap meets several
    strings. It hands them out one after the other, in the order in which they end, and never two in one ``read()``: ``path`` says
    which one was read, ``complete`` whether that one was read to its end. ``pieces()`` gives all there is.

    A tap may be opened at any time: it begins at the beginning of every string that is still there. What was read is kept by
    whoever read it, so reading a string of any length in any number of steps costs its length once.

    A path that is never met, or met by a value that is no string, gives nothing (``JSONParser.state(path)`` tells). After an
    error, or a cut, the text so far can still be read, and is not ``complete``. ``reset()`` of the parser starts the tap anew. A
    tap is pickled together with its parser: put both into one pickle.

    Attributes:
        path: where the string stands that was read last, without ``"*"``; None before.
    """

    def __cinit__(self, JSONParser parser not None, path, *, bint _seek=True):
        self.attach(parser, path, False)
        self.watch.strings = self.watch.paths = True
        self.begin(_seek)

    cdef object next_piece(self):
        cdef JSONParser p = self.parser
        cdef Py_ssize_t n
        if self.head and 2 * self.head >= len(self.queue):
            del self.queue[:self.head]
            self.head = 0
        # What is handed out is made first: without memory for it nothing has moved.
        if self.head < len(self.queue):
            path, text = self.queue[self.head]
            if self.offset:
                text = PyUnicode_Substring(text, self.offset, len(text))
            piece = TextPiece(path, text, True)
            self.queue[self.head] = None
            self.head += 1
            self.path = path
            self.offset = 0
            self.ended = True
            return piece
        if p.b.in_text and p.b.open.o != NULL and tw_watch_wants(self.watch, &p.b, p.b.depth):
            n = PyUnicode_GET_LENGTH(<object>p.b.open.o)
            if n > self.offset:
                if self.offset == 0:
                    p.busy = True  # allocating may run a finaliser that feeds
                    try:
                        self.path = tw_watch_path(&p.b, p.b.depth)
                    finally:
                        p.busy = False
                piece = TextPiece(self.path, PyUnicode_Substring(<object>p.b.open.o, self.offset, n), False)
                self.offset = n
                self.ended = False
                return piece
        return None

    def read(self):
        """The text of one string that is new since the last ``read()``; "" if there is none. Look at ``path`` and ``complete``
        afterwards.

        Raises:
            UsageError: called from inside the parser's own ``feed()``.
        """
        self.ready()
        piece = self.next_piece()
        return "" if piece is None else piece[1]

    def pieces(self):
        """All that is new, as a list of ``TextPiece(path, text, complete)``: the pieces of one string follow each other, and its
        last one, which may have no text, is complete.

        Raises:
            UsageError: as ``read``.
        """
        cdef list pieces = []
        self.ready()
        while True:
            piece = self.next_piece()
            if piece is None:
                return pieces
            pieces.append(piece)

    @property
    def complete(self):
        """Has the string at ``path`` ended, and was all of it read?"""
        self.ready()
        if self.ended or self.path is None or self.head == len(self.queue):
            return bool(self.ended)
        return self.offset == len(self.queue[self.head][1])

    cdef void restart(self):
        self.path = None
        self.head = self.offset = 0
        self.ended = False

    def __reduce__(self):
        return _restore_string_tap, (self.parser, self.steps, self.feeder, self.queue[self.head:], self.path, self.offset, self.ended)


def _restore_string_tap(parser, steps, feeder, queue, path, offset, ended):
    cdef StringTap tap = StringTap(parser, steps, _seek=False)
    tap.queue += queue
    tap.feeder, tap.path, tap.offset, tap.ended = feeder, path, offset, ended
    return tap


@cython.final
@cython.no_gc_clear
cdef class ItemTap(_Tap):
    """The elements of the array at one path, each once, as they close: ``JSONParser.items(path)``.

    ``read()`` gives those that ended since the last one, in the order of their ends: containers with all that is in them, strings,
    words, and numbers once a delimiter has followed. With ``"*"`` in the path the elements of every array that it leads to are
    handed out; ``paths=True`` tells them apart. An item tap may be opened at any time: the elements that are there come first.

    What is handed out is what ``value`` shows: the tree and its reader share it. With ``forget`` it leaves the tree, and its
    reader is the only one to hold it: an array without end then takes no memory. Indices in ``path``, ``state()`` and marks
    count what was forgotten, too. The tap keeps what nobody reads: read after each ``feed``.

    Other values at the path give nothing. After an error, or a cut, the elements that had ended can still be read. ``reset()`` and
    pickling as for ``StringTap``.
    """

    def __cinit__(self, JSONParser parser not None, path, *, bint forget=False, bint paths=False, bint _seek=True):
        self.attach(parser, path, True)
        self.watch.forget = forget
        self.watch.paths = paths
        self.begin(_seek)

    def read(self):
        """The elements that closed since the last ``read()``, as a list: yours, to keep or to change.

        Raises:
            UsageError: called from inside the parser's own ``feed()``.
        """
        self.ready()
        return self.take()

    def __reduce__(self):
        return _restore_item_tap, (self.parser, self.steps, self.feeder, self.queue, bool(self.watch.forget), bool(self.watch.paths))


def _restore_item_tap(parser, steps, feeder, queue, forget, paths):
    cdef ItemTap tap = ItemTap(parser, steps, forget=forget, paths=paths, _seek=False)
    tap.queue += queue
    tap.feeder = feeder
    return tap
