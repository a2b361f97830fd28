/* The sink of token faces: what the tokenizer meets, as events in a queue, or as the values that stand at one place.
 *
 * Events wait in the queue as their parts and become tuples when they are asked for: a tuple that its reader drops is gone
 * before the next is made, so that the garbage collector never sees a heap of them.
 */
#ifndef TW_PYTOKENS_H
#define TW_PYTOKENS_H

#include "_pybuild.h"

enum tw_tokens_mode {
    TW_EVENTS,   /* (event, value) */
    TW_PREFIXED, /* (prefix, event, value) */
    TW_ITEMS,    /* each value at the prefix */
    TW_MEMBERS,  /* (key, value) of each member of the objects at the prefix */
    TW_LEXEMES   /* (type, value), the commas and colons included */
};

/* The words that events are made of; borrowed from the module. Those that end in _event are whole events. */
typedef struct tw_words {
    PyObject *start_map, *map_key, *end_map, *start_array, *end_array, *string, *number, *boolean, *null;
    PyObject *start_map_event, *end_map_event, *start_array_event, *end_array_event, *true_event, *false_event, *null_event;
    PyObject *string_type, *number_type;
    PyObject *open_object, *close_object, *open_array, *close_array, *comma, *colon, *true_lexeme, *false_lexeme, *null_lexeme;
    PyObject *item, *empty, *decimal;
} tw_words;

/* Owned: `prefix` and `value`. Without name and prefix the event is its value, without one of them a pair. */
typedef struct tw_event {
    PyObject *prefix;
    PyObject *name;
    PyObject *value;
} tw_event;

/* A container on the way to what is wanted. Number 0 stands for the document, its `child` for the root value. */
typedef struct tw_place {
    PyObject *prefix;    /* TW_PREFIXED: the container's own, and that of the value at hand */
    PyObject *child;
    Py_ssize_t at;       /* else: how much of the wanted prefix they cover, or one of the two below */
    Py_ssize_t child_at;
} tw_place;

#define TW_ELSEWHERE (-1)
#define TW_WANTED (-2)

#define TW_JOINS 256      /* remembered prefixes */
#define TW_JOIN_CHARS 256 /* longest that is remembered */

typedef struct tw_join { PyObject *prefix, *key, *joined; } tw_join;

typedef struct tw_tokens {
    tw_build b;           /* its scratch, its keys, and as its frames the containers of the value being built */
    const tw_words *words;
    tw_event *queue;
    size_t first, last, cap;
    tw_place *places;
    uint32_t n_places, places_cap;
    uint32_t skip;        /* depth inside a value that nobody wants */
    tw_join *joins;
    const uint8_t *want;  /* the wanted prefix; borrowed */
    Py_ssize_t want_len;
    PyObject *map_type;   /* borrowed; NULL: dict */
    PyObject *member;     /* TW_MEMBERS: the key of the value being built */
    uint8_t mode;
    uint8_t use_float;
    uint8_t allow_infinite; /* a number beyond the floats is infinite, else refused */
    uint8_t out_of_range;   /* why a number was refused: not for its digits */
    uint8_t first_in;     /* TW_LEXEMES: no comma is due */
    uint8_t ignore;       /* the string or number at hand is not wanted */
} tw_tokens;

static int tw_places_push(tw_tokens *s, PyObject *prefix, PyObject *child, Py_ssize_t at, Py_ssize_t child_at)
{
    tw_place *place;
    if (TW_UNLIKELY(s->n_places == s->places_cap)) {
        uint32_t cap = s->places_cap ? s->places_cap * 2 : 8;
        tw_place *mem = (tw_place *)PyMem_Realloc(s->places, cap * sizeof *mem);
        if (mem == NULL) {
            Py_XDECREF(prefix);
            Py_XDECREF(child);
            PyErr_NoMemory();
            return TW_E_MEMORY;
        }
        s->places = mem;
        s->places_cap = cap;
    }
    place = &s->places[s->n_places++];
    place->prefix = prefix;
    place->child = child;
    place->at = at;
    place->child_at = child_at;
    return TW_OK;
}

/* Returns 0, or -1 with an exception. */
static int tw_tokens_init(tw_tokens *s, const tw_words *words, tw_keys *keys, int mode)
{
    memset(s, 0, sizeof *s);
    tw_build_init(&s->b, keys);
    s->words = words;
    s->mode = (uint8_t)mode;
    if (mode == TW_PREFIXED) {
        s->joins = (tw_join *)PyMem_Calloc(TW_JOINS, sizeof *s->joins);
        if (s->joins == NULL) { PyErr_NoMemory(); return -1; }
        return tw_places_push(s, NULL, Py_NewRef(words->empty), 0, 0) == TW_OK ? 0 : -1;
    }
    return 0;
}

/* What is wanted by TW_ITEMS and TW_MEMBERS; `want` lives as long as the machine. */
static int tw_tokens_want(tw_tokens *s, const uint8_t *want, Py_ssize_t n)
{
    s->want = want;
    s->want_len = n;
    return tw_places_push(s, NULL, NULL, 0, s->mode == TW_ITEMS && n == 0 ? TW_WANTED : 0) == TW_OK ? 0 : -1;
}

/* Everything but the options. Objects are taken out before they are released: releasing may run foreign code. */
static void tw_tokens_clear(tw_tokens *s)
{
    tw_event *queue = s->queue;
    tw_place *places = s->places;
    tw_join *joins = s->joins;
    PyObject *member = s->member;
    size_t first = s->first, last = s->last;
    uint32_t n = s->n_places, i;
    s->queue = NULL;
    s->first = s->last = s->cap = 0;
    s->places = NULL;
    s->n_places = s->places_cap = 0;
    s->joins = NULL;
    s->member = NULL;
    for (; first < last; first++) {
        Py_XDECREF(queue[first].prefix);
        Py_XDECREF(queue[first].value);
    }
    for (i = 0; i < n; i++) {
        Py_XDECREF(places[i].prefix);
        Py_XDECREF(places[i].child);
    }
    for (i = 0; joins != NULL && i < TW_JOINS; i++) {
        Py_XDECREF(joins[i].prefix);
        Py_XDECREF(joins[i].key);
        Py_XDECREF(joins[i].joined);
    }
    PyMem_Free(queue);
    PyMem_Free(places);
    PyMem_Free(joins);
    Py_XDECREF(member);
    tw_build_clear(&s->b);
}

static int tw_tokens_traverse(const tw_tokens *s, visitproc visit, void *arg)
{
    size_t i;
    for (i = s->first; i < s->last; i++) Py_VISIT(s->queue[i].value);
    return tw_build_traverse(&s->b, visit, arg);
}

/* -- the queue -------------------------------------------------------------------------------------------------------- */

static TW_NOINLINE int tw_queue_grow(tw_tokens *s)
{
    size_t cap = s->cap ? s->cap * 2 : 64;
    tw_event *mem = (tw_event *)PyMem_Realloc(s->queue, cap * sizeof *mem);
    if (mem == NULL) {
        PyErr_NoMemory();
        return TW_E_MEMORY;
    }
    s->queue = mem;
    s->cap = cap;
    return TW_OK;
}

/* Steals prefix and value, which may be NULL after a failed allocation. */
static inline int tw_queue_add(tw_tokens *s, PyObject *prefix, PyObject *name, PyObject *value)
{
    tw_event *event;
    if (TW_UNLIKELY(value == NULL || (s->last == s->cap && tw_queue_grow(s) != TW_OK))) {
        Py_XDECREF(prefix);
        Py_XDECREF(value);
        return TW_E_MEMORY;
    }
    event = &s->queue[s->last++];
    event->prefix = prefix;
    event->name = name;
    event->value = value;
    return TW_OK;
}

/* The next event, of which there must be one. */
static inline PyObject *tw_queue_take(tw_tokens *s)
{
    tw_event event = s->queue[s->first++];
    PyObject *tuple;
    if (s->first == s->last) s->first = s->last = 0;
    if (event.name == NULL && event.prefix == NULL) return event.value;
    tuple = PyTuple_New(event.name != NULL && event.prefix != NULL ? 3 : 2);
    if (tuple == NULL) {
        Py_XDECREF(event.prefix);
        Py_DECREF(event.value);
        return NULL;
    }
    if (event.prefix != NULL) PyTuple_SET_ITEM(tuple, 0, event.prefix);
    if (event.name != NULL) PyTuple_SET_ITEM(tuple, event.prefix != NULL, Py_NewRef(event.name));
    PyTuple_SET_ITEM(tuple, PyTuple_GET_SIZE(tuple) - 1, event.value);
    return tuple;
}

/* -- prefixes --------------------------------------------------------------------------------------------------------- */

/* prefix + "." + key */
static TW_NOINLINE PyObject *tw_join_new(PyObject *prefix, PyObject *key)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(prefix), m = PyUnicode_GET_LENGTH(key);
    Py_UCS4 widest = PyUnicode_MAX_CHAR_VALUE(prefix), other = PyUnicode_MAX_CHAR_VALUE(key);
    PyObject *o;
    if (n > PY_SSIZE_T_MAX - m - 1) return PyErr_NoMemory();
    o = PyUnicode_New(n + 1 + m, widest > other ? widest : other);
    if (o == NULL) return NULL;
    if (PyUnicode_CopyCharacters(o, 0, prefix, 0, n) < 0 || PyUnicode_CopyCharacters(o, n + 1, key, 0, m) < 0) {
        Py_DECREF(o);
        return NULL;
    }
    PyUnicode_WRITE(PyUnicode_KIND(o), PyUnicode_DATA(o), n, '.');
    return o;
}

/* The prefix of a value below the container whose place is at `index`. Records repeat theirs, so these are remembered. */
static PyObject *tw_child_prefix(tw_tokens *s, uint32_t index, PyObject *key)
{
    PyObject *prefix = s->places[index].prefix, *joined;
    tw_join *join;
    if (index <= 1) return Py_NewRef(key); /* the root's own prefix is no part of it */
    join = &s->joins[((((uintptr_t)prefix >> 4) * 31) ^ ((uintptr_t)key >> 4)) % TW_JOINS];
    if (TW_LIKELY(join->prefix == prefix && join->key == key)) return Py_NewRef(join->joined);
    joined = tw_join_new(prefix, key);
    if (joined != NULL && PyUnicode_GET_LENGTH(joined) <= TW_JOIN_CHARS) {
        Py_XSETREF(join->prefix, Py_NewRef(prefix));
        Py_XSETREF(join->key, Py_NewRef(key));
        Py_XSETREF(join->joined, Py_NewRef(joined));
    }
    return joined;
}

/* How much of the wanted prefix a value covers that stands below `place` under this key. */
static Py_ssize_t tw_child_at(const tw_tokens *s, const tw_place *place, int dot, const uint8_t *p, size_t n)
{
    Py_ssize_t at = place->at;
    if (dot) {
        if (at == s->want_len || s->want[at] != '.') return TW_ELSEWHERE;
        at++;
    }
    if ((size_t)(s->want_len - at) < n || (n && memcmp(s->want + at, p, n) != 0)) return TW_ELSEWHERE;
    at += (Py_ssize_t)n;
    return s->mode == TW_ITEMS && at == s->want_len ? TW_WANTED : at;
}

/* -- values ----------------------------------------------------------------------------------------------------------- */

/* Is the value that begins now to become an object? */
static inline int tw_t_wanted(const tw_tokens *s)
{
    if (s->mode != TW_ITEMS && s->mode != TW_MEMBERS) return 1;
    if (s->skip) return 0;
    return s->b.depth > 0 || s->places[s->n_places - 1].child_at == TW_WANTED;
}

/* The comma or colon before a value or key. */
static inline int tw_lexeme_before(tw_tokens *s, const tw_json *j, int key)
{
    PyObject *what = NULL;
    if (!key && j->depth > 0 && tw_json_top_is_object(j)) what = s->words->colon;
    else if (j->depth > 0 && !s->first_in) what = s->words->comma;
    s->first_in = 0;
    return what == NULL ? TW_OK : tw_queue_add(s, NULL, NULL, Py_NewRef(what));
}

/* Into the container being built: steals v. */
static inline int tw_t_add(tw_tokens *s, PyObject *v)
{
    tw_level *f = &s->b.frames[s->b.depth - 1];
    int r;
    if (v == NULL) return TW_E_MEMORY;
    if (f->key == NULL) return TW_UNLIKELY(tw_list_append(f->container, v) < 0) ? TW_E_MEMORY : TW_OK;
    r = TW_LIKELY(s->map_type == NULL) ? PyDict_SetItem(f->container, f->key, v) : PyObject_SetItem(f->container, f->key, v);
    Py_DECREF(v);
    return TW_UNLIKELY(r < 0) ? TW_E_MEMORY : TW_OK;
}

/* A wanted value is whole: steals v. */
static inline int tw_t_deliver(tw_tokens *s, PyObject *v)
{
    PyObject *member = s->member;
    s->member = NULL;
    return tw_queue_add(s, member, NULL, v);
}

/* A scalar that is wanted. `event` and `lexeme` are whole events where there are such; else `name` and `type` go with v. Steals v. */
static inline int tw_t_scalar(tw_tokens *s, tw_json *j, PyObject *name, PyObject *event, PyObject *type, PyObject *lexeme, PyObject *v)
{
    switch (s->mode) {
    case TW_EVENTS:
        if (event == NULL) return tw_queue_add(s, NULL, name, v);
        Py_DECREF(v);
        return tw_queue_add(s, NULL, NULL, Py_NewRef(event));
    case TW_PREFIXED: return tw_queue_add(s, Py_NewRef(s->places[s->n_places - 1].child), name, v);
    case TW_LEXEMES:
        if (v == NULL || tw_lexeme_before(s, j, 0) != TW_OK) {
            Py_XDECREF(v);
            return TW_E_MEMORY;
        }
        if (lexeme == NULL) return tw_queue_add(s, NULL, type, v);
        Py_DECREF(v);
        return tw_queue_add(s, NULL, NULL, Py_NewRef(lexeme));
    default:
        if (s->b.depth > 0) return tw_t_add(s, v);
        if (s->mode == TW_MEMBERS && v != NULL) s->member = Py_NewRef(s->places[s->n_places - 1].child);
        return tw_t_deliver(s, v);
    }
}

static inline int tw_t_open_built(tw_tokens *s, int is_object)
{
    PyObject *container = !is_object ? PyList_New(0) : s->map_type == NULL ? PyDict_New() : PyObject_CallNoArgs(s->map_type);
    tw_level *f;
    if (container == NULL) return TW_E_MEMORY;
    if ((s->b.depth == s->b.frames_cap && tw_frames_grow(&s->b) != TW_OK) ||
        (s->b.depth > 0 && tw_t_add(s, Py_NewRef(container)) != TW_OK)) {
        Py_DECREF(container);
        return TW_E_MEMORY;
    }
    if (s->b.depth == 0 && s->mode == TW_MEMBERS) s->member = Py_NewRef(s->places[s->n_places - 1].child);
    f = &s->b.frames[s->b.depth++];
    f->container = container;
    f->key = NULL;
    return TW_OK;
}

static inline int tw_t_start(tw_tokens *s, tw_json *j, int is_object)
{
    const tw_words *w = s->words;
    tw_place *top;
    switch (s->mode) {
    case TW_EVENTS: return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->start_map_event : w->start_array_event));
    case TW_LEXEMES:
        if (tw_lexeme_before(s, j, 0) != TW_OK) return TW_E_MEMORY;
        s->first_in = 1;
        return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->open_object : w->open_array));
    case TW_PREFIXED:
        top = &s->places[s->n_places - 1];
        if (tw_queue_add(s, Py_NewRef(top->child), is_object ? w->start_map : w->start_array, Py_NewRef(Py_None)) != TW_OK ||
            tw_places_push(s, Py_NewRef(top->child), NULL, 0, 0) != TW_OK)
            return TW_E_MEMORY;
        if (is_object) return TW_OK;
        top = &s->places[s->n_places - 1];
        top->child = tw_child_prefix(s, s->n_places - 1, w->item);
        return top->child == NULL ? TW_E_MEMORY : TW_OK;
    default:
        if (s->skip) { s->skip++; return TW_OK; }
        if (tw_t_wanted(s)) return tw_t_open_built(s, is_object);
        top = &s->places[s->n_places - 1];
        if (top->child_at == TW_ELSEWHERE) { s->skip = 1; return TW_OK; }
        if (tw_places_push(s, NULL, NULL, top->child_at, TW_ELSEWHERE) != TW_OK) return TW_E_MEMORY;
        top = &s->places[s->n_places - 1];
        if (!is_object) top->child_at = tw_child_at(s, top, s->n_places > 2, (const uint8_t *)"item", 4);
        return TW_OK;
    }
}

static inline int tw_t_end(tw_tokens *s, tw_json *j, int is_object)
{
    const tw_words *w = s->words;
    tw_place *top;
    PyObject *container;
    (void)j;
    switch (s->mode) {
    case TW_EVENTS: return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->end_map_event : w->end_array_event));
    case TW_LEXEMES:
        s->first_in = 0;
        return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->close_object : w->close_array));
    case TW_PREFIXED:
        top = &s->places[--s->n_places];
        Py_XDECREF(top->child);
        return tw_queue_add(s, top->prefix, is_object ? w->end_map : w->end_array, Py_NewRef(Py_None));
    default:
        if (s->skip) { s->skip--; return TW_OK; }
        if (s->b.depth == 0) {
            top = &s->places[--s->n_places];
            Py_XDECREF(top->child);
            return TW_OK;
        }
        container = s->b.frames[--s->b.depth].container;
        Py_CLEAR(s->b.frames[s->b.depth].key);
        if (s->b.depth == 0) return tw_t_deliver(s, container);
        Py_DECREF(container);
        return TW_OK;
    }
}

static inline int tw_t_key(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    const tw_words *w = s->words;
    tw_place *top;
    PyObject *key;
    switch (s->mode) {
    case TW_EVENTS: return tw_queue_add(s, NULL, w->map_key, tw_key(&s->b, p, n, lead, cont));
    case TW_LEXEMES:
        if (tw_lexeme_before(s, j, 1) != TW_OK) return TW_E_MEMORY;
        return tw_queue_add(s, NULL, w->string_type, tw_key(&s->b, p, n, lead, cont));
    case TW_PREFIXED:
        key = tw_key(&s->b, p, n, lead, cont);
        if (key == NULL) return TW_E_MEMORY;
        top = &s->places[s->n_places - 1];
        Py_XSETREF(top->child, tw_child_prefix(s, s->n_places - 1, key));
        if (top->child == NULL) {
            Py_DECREF(key);
            return TW_E_MEMORY;
        }
        return tw_queue_add(s, Py_NewRef(top->prefix), w->map_key, key);
    default:
        if (s->skip) return TW_OK;
        if (s->b.depth > 0) {
            key = tw_key(&s->b, p, n, lead, cont);
            if (key == NULL) return TW_E_MEMORY;
            Py_XSETREF(s->b.frames[s->b.depth - 1].key, key);
            return TW_OK;
        }
        top = &s->places[s->n_places - 1];
        if (s->mode == TW_MEMBERS && top->at == s->want_len) {
            key = tw_key(&s->b, p, n, lead, cont);
            if (key == NULL) return TW_E_MEMORY;
            Py_XSETREF(top->child, key);
            top->child_at = TW_WANTED;
        } else {
            top->child_at = tw_child_at(s, top, s->n_places > 2, p, n);
        }
        return TW_OK;
    }
}

static inline int tw_t_object_start(tw_tokens *s, tw_json *j) { return tw_t_start(s, j, 1); }
static inline int tw_t_array_start(tw_tokens *s, tw_json *j) { return tw_t_start(s, j, 0); }
static inline int tw_t_object_end(tw_tokens *s, tw_json *j) { return tw_t_end(s, j, 1); }
static inline int tw_t_array_end(tw_tokens *s, tw_json *j) { return tw_t_end(s, j, 0); }

static inline int tw_t_string(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    if (j->in_key) return tw_t_key(s, j, p, n, lead, cont);
    if (!tw_t_wanted(s)) return TW_OK;
    return tw_t_scalar(s, j, s->words->string, NULL, s->words->string_type, NULL, tw_str_from_utf8(p, n, lead, cont));
}

static inline int tw_t_text_start(tw_tokens *s, tw_json *j)
{
    s->b.scratch_len = s->b.cont = 0;
    s->b.lead = 0;
    s->ignore = j->in_key ? s->skip > 0 : !tw_t_wanted(s);
    return TW_OK;
}

static inline int tw_t_text(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    (void)j;
    if (s->ignore) return TW_OK;
    if (lead > s->b.lead) s->b.lead = lead;
    s->b.cont += cont;
    return tw_scratch_add(&s->b, p, n);
}

static inline int tw_t_code(tw_tokens *s, tw_json *j, uint32_t c)
{
    uint8_t utf8[4];
    size_t n = tw_utf8_encode(c, utf8);
    return tw_t_text(s, j, utf8, n, n > 1 ? utf8[0] : 0, n - 1);
}

static inline int tw_t_text_end(tw_tokens *s, tw_json *j)
{
    int e;
    if (s->ignore) return TW_OK;
    e = tw_t_string(s, j, s->b.scratch, s->b.scratch_len, s->b.lead, s->b.cont);
    tw_scratch_reset(&s->b);
    return e;
}

static inline int tw_t_number_part(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n)
{
    if (!j->number_parts) s->b.scratch_len = 0;
    return tw_t_wanted(s) ? tw_scratch_add(&s->b, p, n) : TW_OK;
}

/* What the number is, or NULL with an exception, or with *refused. */
static inline PyObject *tw_t_number_object(tw_tokens *s, const uint8_t *p, size_t n, const tw_decimal *d, int *refused)
{
    PyObject *v, *text;
    *refused = 0;
    if (d->is_int || s->use_float) {
        v = tw_number_object(p, n, d, refused);
        if (v != NULL && !d->is_int && !s->allow_infinite && TW_UNLIKELY(Py_IS_INFINITY(PyFloat_AS_DOUBLE(v)))) {
            Py_DECREF(v);
            *refused = s->out_of_range = 1;
            return NULL;
        }
        return v;
    }
    text = tw_str_from_utf8(p, n, 0, 0);
    if (text == NULL) return NULL;
    v = PyObject_CallOneArg(s->words->decimal, text);
    Py_DECREF(text);
    if (v == NULL && PyErr_ExceptionMatches(PyExc_ArithmeticError)) { /* an exponent beyond what Decimal holds */
        PyErr_Clear();
        *refused = s->out_of_range = 1;
    }
    return v;
}

static inline int tw_t_number(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    tw_decimal joined;
    PyObject *v;
    int refused;
    (void)is_int;
    if (!tw_t_wanted(s)) return TW_OK;
    if (TW_UNLIKELY(d == NULL)) {
        /* The number's text as one piece: what was kept of it, then [p, p + n). */
        if (j->number_parts) {
            if (tw_scratch_add(&s->b, p, n) != TW_OK) return TW_E_MEMORY;
            p = s->b.scratch;
            n = s->b.scratch_len;
        }
        tw_number_read(p, p + n, &joined);
        d = &joined;
    }
    v = tw_t_number_object(s, p, n, d, &refused);
    if (TW_UNLIKELY(j->number_parts)) tw_scratch_reset(&s->b);
    if (TW_UNLIKELY(refused)) return TW_E_JSON_NUMBER_TOO_LONG;
    return tw_t_scalar(s, j, s->words->number, NULL, s->words->number_type, NULL, v);
}

static inline int tw_t_literal(tw_tokens *s, tw_json *j, int which)
{
    const tw_words *w = s->words;
    if (!tw_t_wanted(s)) return TW_OK;
    switch (which) {
    case TW_LIT_NULL: return tw_t_scalar(s, j, w->null, w->null_event, NULL, w->null_lexeme, Py_NewRef(Py_None));
    case TW_LIT_TRUE: return tw_t_scalar(s, j, w->boolean, w->true_event, NULL, w->true_lexeme, Py_NewRef(Py_True));
    case TW_LIT_FALSE: return tw_t_scalar(s, j, w->boolean, w->false_event, NULL, w->false_lexeme, Py_NewRef(Py_False));
    default: return tw_t_scalar(s, j, w->number, NULL, w->number_type, NULL, tw_literal_object(which));
    }
}

static inline void tw_t_lone_surrogate(tw_tokens *s, tw_json *j, uint64_t offset) { (void)s; (void)j; (void)offset; }
static inline void tw_t_control_character(tw_tokens *s, tw_json *j, uint64_t offset) { (void)s; (void)j; (void)offset; }

#define TW_JSON_RUN tw_tokens_run
#define TW_SINK_T tw_tokens
#define TW_SINK(name) tw_t_##name
#include "_core/tw_json.h"

/* Does the machine stand outside any token? */
static inline int tw_json_is_between(const tw_json *j)
{
    return j->state <= ST_JSON_AFTER_VALUE;
}

/* The input ended: a number at the root that may end is whole. */
static int tw_tokens_end_number(tw_tokens *s, tw_json *j)
{
    int e = tw_t_number(s, j, NULL, 0, 0, NULL);
    j->state = e == TW_OK ? ST_JSON_DONE : ST_JSON_ERROR;
    if (e != TW_OK) {
        j->error = (uint8_t)e;
        j->error_offset = j->token_offset;
    }
    return e;
}

#endif
