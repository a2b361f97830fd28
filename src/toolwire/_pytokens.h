/* The sinks of token faces: one makes events of what the tokenizer meets, the other the values that stand at one place. Both put
 * them into a queue.
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
    PyObject *item, *empty, *decimal; /* the last one makes a Decimal of a str */
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
    tw_build b;           /* its scratch and keys; nothing is built in it */
    const tw_words *words;
    tw_event *queue;
    size_t first, last, cap;
    tw_place *places;
    uint32_t n_places, places_cap;
    tw_join *joins;
    PyObject *spare;      /* the tuple that was handed out last, or NULL */
    uint8_t mode;
    uint8_t use_float;
    uint8_t allow_infinite; /* a number beyond the floats is infinite, else refused */
    uint8_t out_of_range;   /* why a number was refused: not for its digits */
    uint8_t first_in;       /* TW_LEXEMES: no comma is due */
    /* TW_ITEMS and TW_MEMBERS */
    uint8_t ignore;       /* the string at hand is not wanted */
    uint32_t skip;        /* depth inside a value that nobody wants */
    uint32_t open;        /* containers of the value being built */
    uint32_t starts_cap;
    size_t *starts;       /* where in `parts` each of them starts */
    PyObject **parts;     /* what is in them so far, owned: elements, and keys each before its value */
    size_t n_parts, parts_cap;
    const uint8_t *want;  /* the wanted prefix; borrowed */
    Py_ssize_t want_len;
    PyObject *map_type;   /* borrowed; NULL: dict */
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

/* Gives back everything. Objects are taken out before they are released: releasing may run foreign code. */
static void tw_tokens_clear(tw_tokens *s)
{
    tw_event *queue = s->queue;
    tw_place *places = s->places;
    tw_join *joins = s->joins;
    PyObject **parts = s->parts, *spare = s->spare;
    size_t first = s->first, last = s->last, n_parts = s->n_parts;
    uint32_t n = s->n_places, i;
    s->queue = NULL;
    s->first = s->last = s->cap = 0;
    s->places = NULL;
    s->n_places = s->places_cap = 0;
    s->joins = NULL;
    s->spare = NULL;
    s->parts = NULL;
    s->n_parts = s->parts_cap = 0;
    s->open = 0;
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
    Py_XDECREF(spare);
    while (n_parts > 0) Py_DECREF(parts[--n_parts]);
    PyMem_Free(parts);
    PyMem_Free(s->starts);
    s->starts = NULL;
    s->starts_cap = 0;
    tw_build_clear(&s->b);
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

/* A tuple of `size`, for an event. The last one is used again where its reader has dropped it, as zip() does: of the strings, numbers
 * and constants that events hold none is the garbage collector's business. */
static inline PyObject *tw_tuple_for_event(tw_tokens *s, Py_ssize_t size)
{
    PyObject *tuple = s->spare;
#if TW_GROW_IN_PLACE /* the same versions */
    if (TW_LIKELY(tuple != NULL && Py_REFCNT(tuple) == 1)) {
        Py_ssize_t i;
        for (i = 0; i < size; i++) {
            PyObject *old = PyTuple_GET_ITEM(tuple, i);
            PyTuple_SET_ITEM(tuple, i, NULL);
            Py_DECREF(old);
        }
#if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)tuple)->ob_hash = -1;
#endif
        return Py_NewRef(tuple);
    }
#endif
    tuple = PyTuple_New(size);
    if (TW_GROW_IN_PLACE && tuple != NULL && s->mode != TW_MEMBERS) Py_XSETREF(s->spare, Py_NewRef(tuple));
    return tuple;
}

/* The next event, of which there must be one. */
static inline PyObject *tw_queue_take(tw_tokens *s)
{
    tw_event event = s->queue[s->first];
    PyObject *tuple = NULL;
    Py_ssize_t i = 0;
    if (event.name != NULL || event.prefix != NULL) {
        tuple = tw_tuple_for_event(s, s->mode == TW_PREFIXED ? 3 : 2);
        if (TW_UNLIKELY(tuple == NULL)) return NULL; /* it can be asked for again */
    }
    if (++s->first == s->last) s->first = s->last = 0;
    if (tuple == NULL) return event.value;
    if (event.prefix != NULL) PyTuple_SET_ITEM(tuple, i++, event.prefix);
    if (event.name != NULL) PyTuple_SET_ITEM(tuple, i++, Py_NewRef(event.name));
    PyTuple_SET_ITEM(tuple, i, event.value);
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

/* The prefix of a value below the container whose place is at `index`. Records repeat theirs, so these are remembered: each in one of
 * two slots, of which the second takes what has to leave the first. */
static PyObject *tw_child_prefix(tw_tokens *s, uint32_t index, PyObject *key)
{
    PyObject *prefix = s->places[index].prefix, *joined;
    tw_join *first, *second;
    size_t h;
    if (index <= 1) return Py_NewRef(key); /* the root's own prefix is no part of it */
    h = (size_t)(((uint64_t)(uintptr_t)prefix * 3 + (uintptr_t)key) * UINT64_C(0x9E3779B97F4A7C15) >> 40) % (TW_JOINS / 2);
    first = &s->joins[2 * h];
    second = first + 1;
    if (TW_LIKELY(first->prefix == prefix && first->key == key)) return Py_NewRef(first->joined);
    if (TW_LIKELY(second->prefix == prefix && second->key == key)) return Py_NewRef(second->joined);
    joined = tw_join_new(prefix, key);
    if (joined != NULL && PyUnicode_GET_LENGTH(joined) <= TW_JOIN_CHARS) {
        tw_join left = *second;
        *second = *first;
        first->prefix = Py_NewRef(prefix);
        first->key = Py_NewRef(key);
        first->joined = Py_NewRef(joined);
        Py_XDECREF(left.prefix);
        Py_XDECREF(left.key);
        Py_XDECREF(left.joined);
    }
    return joined;
}

/* -- what both sinks need ---------------------------------------------------------------------------------------------- */

static inline void tw_text_begin(tw_tokens *s)
{
    s->b.scratch_len = s->b.cont = 0;
    s->b.lead = 0;
}

static inline int tw_text_add(tw_tokens *s, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    if (lead > s->b.lead) s->b.lead = lead;
    s->b.cont += cont;
    return tw_scratch_add(&s->b, p, n);
}

static inline int tw_text_add_code(tw_tokens *s, uint32_t c)
{
    uint8_t utf8[4];
    size_t n = tw_utf8_encode(c, utf8);
    return tw_text_add(s, utf8, n, n > 1 ? utf8[0] : 0, n - 1);
}

static inline int tw_number_add_part(tw_tokens *s, const tw_json *j, const uint8_t *p, size_t n)
{
    if (!j->number_parts) s->b.scratch_len = 0;
    return tw_scratch_add(&s->b, p, n);
}

/* A number that is no integer where floats are not wanted. NULL with an exception, or with *refused. */
static TW_NOINLINE PyObject *tw_number_decimal(tw_tokens *s, const uint8_t *p, size_t n, int *refused)
{
    PyObject *v, *text = tw_str_from_utf8(p, n, 0, 0);
    *refused = 0;
    if (text == NULL) return NULL;
    v = PyObject_CallOneArg(s->words->decimal, text);
    Py_DECREF(text);
    if (v == NULL && PyErr_ExceptionMatches(PyExc_ArithmeticError)) { /* an exponent beyond what Decimal holds */
        PyErr_Clear();
        *refused = s->out_of_range = 1;
    }
    return v;
}

/* The number that ends, as tw_json.h hands it out. NULL with an exception, or with *refused. */
static inline PyObject *tw_number_whole(tw_tokens *s, const tw_json *j, const uint8_t *p, size_t n, const tw_decimal *d, int *refused)
{
    tw_decimal joined;
    PyObject *v;
    *refused = 0;
    if (TW_UNLIKELY(d == NULL)) {
        /* The number's text as one piece: what was kept of it, then [p, p + n). */
        if (j->number_parts) {
            if (tw_scratch_add(&s->b, p, n) != TW_OK) return NULL;
            p = s->b.scratch;
            n = s->b.scratch_len;
        }
        tw_number_read(p, p + n, &joined);
        d = &joined;
    }
    if (d->is_int) {
        v = tw_number_object(p, n, d, refused);
    } else if (s->use_float) {
        v = tw_number_object(p, n, d, refused);
        if (v != NULL && TW_UNLIKELY(Py_IS_INFINITY(PyFloat_AS_DOUBLE(v))) && !s->allow_infinite) {
            Py_CLEAR(v);
            *refused = s->out_of_range = 1;
        }
    } else {
        v = tw_number_decimal(s, p, n, refused);
    }
    if (TW_UNLIKELY(j->number_parts)) tw_scratch_reset(&s->b);
    return v;
}

/* -- the sink of events ------------------------------------------------------------------------------------------------- */

/* The comma or colon before a value or key. */
static inline int tw_lexeme_before(tw_tokens *s, const tw_json *j, int key)
{
    PyObject *what = NULL;
    if (!key && j->depth > 0 && tw_json_top_is_object(j)) what = s->words->colon;
    else if (j->depth > 0 && !s->first_in) what = s->words->comma;
    s->first_in = 0;
    return what == NULL ? TW_OK : tw_queue_add(s, NULL, NULL, Py_NewRef(what));
}

/* A scalar. Steals v. */
static inline int tw_e_scalar(tw_tokens *s, const tw_json *j, PyObject *name, PyObject *type, PyObject *v)
{
    if (s->mode == TW_PREFIXED) return tw_queue_add(s, Py_NewRef(s->places[s->n_places - 1].child), name, v);
    if (s->mode == TW_EVENTS) return tw_queue_add(s, NULL, name, v);
    if (v == NULL || tw_lexeme_before(s, j, 0) != TW_OK) {
        Py_XDECREF(v);
        return TW_E_MEMORY;
    }
    return tw_queue_add(s, NULL, type, v);
}

/* A scalar of which there is one. */
static inline int tw_e_constant(tw_tokens *s, const tw_json *j, PyObject *name, PyObject *event, PyObject *lexeme, PyObject *v)
{
    if (s->mode == TW_PREFIXED) return tw_queue_add(s, Py_NewRef(s->places[s->n_places - 1].child), name, Py_NewRef(v));
    if (s->mode == TW_EVENTS) return tw_queue_add(s, NULL, NULL, Py_NewRef(event));
    if (tw_lexeme_before(s, j, 0) != TW_OK) return TW_E_MEMORY;
    return tw_queue_add(s, NULL, NULL, Py_NewRef(lexeme));
}

static inline int tw_e_start(tw_tokens *s, const tw_json *j, int is_object)
{
    const tw_words *w = s->words;
    tw_place *top;
    if (s->mode == TW_EVENTS) return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->start_map_event : w->start_array_event));
    if (s->mode == TW_LEXEMES) {
        if (tw_lexeme_before(s, j, 0) != TW_OK) return TW_E_MEMORY;
        s->first_in = 1;
        return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->open_object : w->open_array));
    }
    top = &s->places[s->n_places - 1];
    if (tw_queue_add(s, Py_NewRef(top->child), is_object ? w->start_map : w->start_array, Py_NewRef(Py_None)) != TW_OK ||
        tw_places_push(s, Py_NewRef(top->child), NULL, 0, 0) != TW_OK)
        return TW_E_MEMORY;
    if (is_object) return TW_OK;
    top = &s->places[s->n_places - 1];
    top->child = tw_child_prefix(s, s->n_places - 1, w->item);
    return top->child == NULL ? TW_E_MEMORY : TW_OK;
}

static inline int tw_e_end(tw_tokens *s, int is_object)
{
    const tw_words *w = s->words;
    tw_place *top;
    if (s->mode == TW_EVENTS) return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->end_map_event : w->end_array_event));
    if (s->mode == TW_LEXEMES) {
        s->first_in = 0;
        return tw_queue_add(s, NULL, NULL, Py_NewRef(is_object ? w->close_object : w->close_array));
    }
    top = &s->places[--s->n_places];
    Py_XDECREF(top->child);
    return tw_queue_add(s, top->prefix, is_object ? w->end_map : w->end_array, Py_NewRef(Py_None));
}

/* Steals key. */
static inline int tw_e_key(tw_tokens *s, const tw_json *j, PyObject *key)
{
    tw_place *top;
    if (s->mode == TW_EVENTS || key == NULL) return tw_queue_add(s, NULL, s->words->map_key, key);
    if (s->mode == TW_LEXEMES) {
        if (tw_lexeme_before(s, j, 1) != TW_OK) {
            Py_DECREF(key);
            return TW_E_MEMORY;
        }
        return tw_queue_add(s, NULL, s->words->string_type, key);
    }
    top = &s->places[s->n_places - 1];
    Py_XSETREF(top->child, tw_child_prefix(s, s->n_places - 1, key));
    if (top->child == NULL) {
        Py_DECREF(key);
        return TW_E_MEMORY;
    }
    return tw_queue_add(s, Py_NewRef(top->prefix), s->words->map_key, key);
}

static inline int tw_e_object_start(tw_tokens *s, tw_json *j) { return tw_e_start(s, j, 1); }
static inline int tw_e_array_start(tw_tokens *s, tw_json *j) { return tw_e_start(s, j, 0); }
static inline int tw_e_object_end(tw_tokens *s, tw_json *j) { (void)j; return tw_e_end(s, 1); }
static inline int tw_e_array_end(tw_tokens *s, tw_json *j) { (void)j; return tw_e_end(s, 0); }

static inline int tw_e_string(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    if (j->in_key) return tw_e_key(s, j, tw_key(&s->b, p, n, lead, cont));
    return tw_e_scalar(s, j, s->words->string, s->words->string_type, tw_str_from_utf8(p, n, lead, cont));
}

static inline int tw_e_text_start(tw_tokens *s, tw_json *j)
{
    (void)j;
    tw_text_begin(s);
    return TW_OK;
}

static inline int tw_e_text(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    (void)j;
    return tw_text_add(s, p, n, lead, cont);
}

static inline int tw_e_code(tw_tokens *s, tw_json *j, uint32_t c)
{
    (void)j;
    return tw_text_add_code(s, c);
}

static inline int tw_e_text_end(tw_tokens *s, tw_json *j)
{
    int e = tw_e_string(s, j, s->b.scratch, s->b.scratch_len, s->b.lead, s->b.cont);
    tw_scratch_reset(&s->b);
    return e;
}

static inline int tw_e_number_part(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n) { return tw_number_add_part(s, j, p, n); }

static inline int tw_e_number(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    int refused;
    PyObject *v = tw_number_whole(s, j, p, n, d, &refused);
    (void)is_int;
    if (TW_UNLIKELY(refused)) return TW_E_JSON_NUMBER_TOO_LONG;
    return tw_e_scalar(s, j, s->words->number, s->words->number_type, v);
}

static inline int tw_e_literal(tw_tokens *s, tw_json *j, int which)
{
    const tw_words *w = s->words;
    switch (which) {
    case TW_LIT_NULL: return tw_e_constant(s, j, w->null, w->null_event, w->null_lexeme, Py_None);
    case TW_LIT_TRUE: return tw_e_constant(s, j, w->boolean, w->true_event, w->true_lexeme, Py_True);
    case TW_LIT_FALSE: return tw_e_constant(s, j, w->boolean, w->false_event, w->false_lexeme, Py_False);
    default: return tw_e_scalar(s, j, w->number, w->number_type, tw_literal_object(which));
    }
}

static inline void tw_e_lone_surrogate(tw_tokens *s, tw_json *j, uint64_t offset) { (void)s; (void)j; (void)offset; }
static inline void tw_e_control_character(tw_tokens *s, tw_json *j, uint64_t offset) { (void)s; (void)j; (void)offset; }

#define TW_JSON_RUN tw_events_run
#define TW_SINK_T tw_tokens
#define TW_SINK(name) tw_e_##name
#include "_core/tw_json.h"

/* -- the sink of values ------------------------------------------------------------------------------------------------- */

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

/* Is the value that begins now to become an object? */
static inline int tw_v_wanted(const tw_tokens *s)
{
    return s->open > 0 || (s->skip == 0 && s->places[s->n_places - 1].child_at == TW_WANTED);
}

static TW_NOINLINE int tw_parts_grow(tw_tokens *s)
{
    size_t cap = s->parts_cap ? s->parts_cap * 2 : 64;
    PyObject **mem = (PyObject **)PyMem_Realloc(s->parts, cap * sizeof *mem);
    if (mem == NULL) {
        PyErr_NoMemory();
        return TW_E_MEMORY;
    }
    s->parts = mem;
    s->parts_cap = cap;
    return TW_OK;
}

/* A value that is whole, or a key: into the container being built, else it is what was wanted. Steals v. */
static inline int tw_v_add(tw_tokens *s, PyObject *v)
{
    if (TW_UNLIKELY(v == NULL)) return TW_E_MEMORY;
    if (TW_UNLIKELY(s->open == 0)) return tw_queue_add(s, Py_XNewRef(s->places[s->n_places - 1].child), NULL, v);
    if (TW_UNLIKELY(s->n_parts == s->parts_cap) && tw_parts_grow(s) != TW_OK) {
        Py_DECREF(v);
        return TW_E_MEMORY;
    }
    s->parts[s->n_parts++] = v;
    return TW_OK;
}

static int tw_v_start(tw_tokens *s, int is_object)
{
    tw_place *top;
    if (s->skip) { s->skip++; return TW_OK; }
    if (tw_v_wanted(s)) {
        if (TW_UNLIKELY(s->open == s->starts_cap)) {
            uint32_t cap = s->starts_cap ? s->starts_cap * 2 : 8;
            size_t *mem = (size_t *)PyMem_Realloc(s->starts, cap * sizeof *mem);
            if (mem == NULL) { PyErr_NoMemory(); return TW_E_MEMORY; }
            s->starts = mem;
            s->starts_cap = cap;
        }
        s->starts[s->open++] = s->n_parts;
        return TW_OK;
    }
    top = &s->places[s->n_places - 1];
    if (top->child_at == TW_ELSEWHERE) { s->skip = 1; return TW_OK; }
    if (tw_places_push(s, NULL, NULL, top->child_at, TW_ELSEWHERE) != TW_OK) return TW_E_MEMORY;
    if (!is_object) {
        top = &s->places[s->n_places - 1];
        top->child_at = tw_child_at(s, top, s->n_places > 2, (const uint8_t *)"item", 4);
    }
    return TW_OK;
}

/* A dict, or what `map_type` makes, of n keys and values. They are not taken. */
static PyObject *tw_v_object(const tw_tokens *s, PyObject *const *parts, size_t n)
{
    PyObject *o = s->map_type == NULL ? PyDict_New() : PyObject_CallNoArgs(s->map_type);
    size_t i;
    for (i = 0; o != NULL && i < n; i += 2) {
        int r = TW_LIKELY(s->map_type == NULL) ? PyDict_SetItem(o, parts[i], parts[i + 1]) : PyObject_SetItem(o, parts[i], parts[i + 1]);
        if (TW_UNLIKELY(r < 0)) Py_CLEAR(o);
    }
    return o;
}

static int tw_v_end(tw_tokens *s, int is_object)
{
    PyObject *o;
    size_t start;
    if (s->skip) { s->skip--; return TW_OK; }
    if (s->open == 0) {
        Py_XDECREF(s->places[--s->n_places].child);
        return TW_OK;
    }
    start = s->starts[s->open - 1];
    if (is_object) {
        o = tw_v_object(s, s->parts + start, s->n_parts - start);
        if (o == NULL) return TW_E_MEMORY;
        while (s->n_parts > start) Py_DECREF(s->parts[--s->n_parts]);
    } else {
        Py_ssize_t n = (Py_ssize_t)(s->n_parts - start), i;
        o = PyList_New(n);
        if (o == NULL) return TW_E_MEMORY;
        for (i = 0; i < n; i++) PyList_SET_ITEM(o, i, s->parts[start + (size_t)i]);
        s->n_parts = start;
    }
    s->open--;
    return tw_v_add(s, o);
}

static int tw_v_key(tw_tokens *s, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    tw_place *top = &s->places[s->n_places - 1];
    if (s->mode == TW_MEMBERS && top->at == s->want_len) {
        Py_XSETREF(top->child, tw_key(&s->b, p, n, lead, cont));
        top->child_at = TW_WANTED;
        return top->child == NULL ? TW_E_MEMORY : TW_OK;
    }
    top->child_at = tw_child_at(s, top, s->n_places > 2, p, n);
    return TW_OK;
}

static inline int tw_v_object_start(tw_tokens *s, tw_json *j) { (void)j; return tw_v_start(s, 1); }
static inline int tw_v_array_start(tw_tokens *s, tw_json *j) { (void)j; return tw_v_start(s, 0); }
static inline int tw_v_object_end(tw_tokens *s, tw_json *j) { (void)j; return tw_v_end(s, 1); }
static inline int tw_v_array_end(tw_tokens *s, tw_json *j) { (void)j; return tw_v_end(s, 0); }

static inline int tw_v_string(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    if (j->in_key) {
        if (TW_LIKELY(s->open > 0)) return tw_v_add(s, tw_key(&s->b, p, n, lead, cont));
        return s->skip ? TW_OK : tw_v_key(s, p, n, lead, cont);
    }
    return tw_v_wanted(s) ? tw_v_add(s, tw_str_from_utf8(p, n, lead, cont)) : TW_OK;
}

static inline int tw_v_text_start(tw_tokens *s, tw_json *j)
{
    tw_text_begin(s);
    s->ignore = j->in_key ? s->skip > 0 : !tw_v_wanted(s);
    return TW_OK;
}

static inline int tw_v_text(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    (void)j;
    return s->ignore ? TW_OK : tw_text_add(s, p, n, lead, cont);
}

static inline int tw_v_code(tw_tokens *s, tw_json *j, uint32_t c)
{
    (void)j;
    return s->ignore ? TW_OK : tw_text_add_code(s, c);
}

static inline int tw_v_text_end(tw_tokens *s, tw_json *j)
{
    int e;
    if (s->ignore) return TW_OK;
    e = tw_v_string(s, j, s->b.scratch, s->b.scratch_len, s->b.lead, s->b.cont);
    tw_scratch_reset(&s->b);
    return e;
}

static inline int tw_v_number_part(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n)
{
    return tw_v_wanted(s) ? tw_number_add_part(s, j, p, n) : TW_OK;
}

static inline int tw_v_number(tw_tokens *s, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    PyObject *v;
    int refused;
    (void)is_int;
    if (!tw_v_wanted(s)) return TW_OK;
    v = tw_number_whole(s, j, p, n, d, &refused);
    return TW_UNLIKELY(refused) ? TW_E_JSON_NUMBER_TOO_LONG : tw_v_add(s, v);
}

static inline int tw_v_literal(tw_tokens *s, tw_json *j, int which)
{
    (void)j;
    return tw_v_wanted(s) ? tw_v_add(s, tw_literal_object(which)) : TW_OK;
}

static inline void tw_v_lone_surrogate(tw_tokens *s, tw_json *j, uint64_t offset) { (void)s; (void)j; (void)offset; }
static inline void tw_v_control_character(tw_tokens *s, tw_json *j, uint64_t offset) { (void)s; (void)j; (void)offset; }

#define TW_JSON_RUN tw_values_run
#define TW_SINK_T tw_tokens
#define TW_SINK(name) tw_v_##name
#include "_core/tw_json.h"

/* -- the machine ---------------------------------------------------------------------------------------------------------- */

static const uint8_t *tw_tokens_run(tw_json *j, tw_tokens *s, const uint8_t *p, const uint8_t *end)
{
    return s->mode == TW_ITEMS || s->mode == TW_MEMBERS ? tw_values_run(j, s, p, end) : tw_events_run(j, s, p, end);
}

/* Does the machine stand outside any token? */
static inline int tw_json_is_between(const tw_json *j) { return j->state <= ST_JSON_AFTER_VALUE; }

/* The input ended: a number at the root that may end is whole. */
static int tw_tokens_end_number(tw_tokens *s, tw_json *j)
{
    int values = s->mode == TW_ITEMS || s->mode == TW_MEMBERS;
    int e = values ? tw_v_number(s, j, NULL, 0, 0, NULL) : tw_e_number(s, j, NULL, 0, 0, NULL);
    j->state = e == TW_OK ? ST_JSON_DONE : ST_JSON_ERROR;
    if (e != TW_OK) {
        j->error = (uint8_t)e;
        j->error_offset = j->token_offset;
    }
    return e;
}

#endif
