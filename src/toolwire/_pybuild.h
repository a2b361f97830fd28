/* The tokenizer's Python sink: the builder of live values.
 *
 * Ownership. A frame owns its container, and so does the slot that shows it (the parent's, or `root`): a container that
 * nobody else holds has two references. The open string likewise: one of `open`, one of its slot.
 *
 * The caller may change what it was shown at any time. So nothing here trusts that a slot still holds what was put there:
 * it is looked up, and put back if it is gone.
 */
#ifndef TW_PYBUILD_H
#define TW_PYBUILD_H

#include <Python.h>
#include "_pystr.h"
#include "_core/tw_json.h"
#include "_core/tw_number.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* two modules include this file, each uses a part of it */
#endif

#define TW_KEYS 256         /* remembered keys */
#define TW_KEY_BYTES 32     /* longest key that is remembered */
#define TW_MARKS 1000       /* marks kept by one parser */
#define TW_COPY_WIDTH 64    /* a snapshot copies open containers up to this many entries, and lends wider ones */

/* Keys seen before, so that equal keys are one object with its hash known. Direct-mapped: a clash replaces. */
typedef struct tw_known_key { PyObject *key; uint64_t head, tail; size_t n; } tw_known_key;
typedef struct tw_keys { tw_known_key slot[TW_KEYS]; } tw_keys;

/* The keys of this interpreter: bounded, and only a cache. */
#ifndef TW_SUBINTERPRETERS
static inline tw_keys *tw_keys_here(void)
{
    static tw_keys keys; /* such a build is loaded into one interpreter of a process */
    return &keys;
}
#else
#define TW_KEYS_NAME "toolwire keys"
#ifdef _MSC_VER
#define TW_THREAD_LOCAL __declspec(thread)
#else
#define TW_THREAD_LOCAL _Thread_local
#endif

static void tw_keys_free(PyObject *capsule)
{
    tw_keys *keys = (tw_keys *)PyCapsule_GetPointer(capsule, TW_KEYS_NAME);
    int i;
    for (i = 0; i < TW_KEYS; i++) Py_XDECREF(keys->slot[i].key);
    PyMem_RawFree(keys);
}

/* NULL where there is no memory for them: then keys are not remembered. */
static tw_keys *tw_keys_here(void)
{
    static TW_THREAD_LOCAL struct { int64_t interpreter; tw_keys *keys; } last = {-1, NULL}; /* no id is given to two interpreters */
    PyInterpreterState *here = PyInterpreterState_Get();
    PyObject *dict, *capsule;
    tw_keys *keys = NULL;
    if (last.interpreter == PyInterpreterState_GetID(here)) return last.keys;
    dict = PyInterpreterState_GetDict(here);
    if (dict == NULL) return NULL;
    capsule = PyDict_GetItemString(dict, TW_KEYS_NAME);
    if (capsule != NULL) {
        keys = (tw_keys *)PyCapsule_GetPointer(capsule, TW_KEYS_NAME);
    } else if ((keys = (tw_keys *)PyMem_RawCalloc(1, sizeof *keys)) != NULL) {
        capsule = PyCapsule_New(keys, TW_KEYS_NAME, tw_keys_free);
        if (capsule == NULL) {
            PyMem_RawFree(keys);
            keys = NULL;
        } else if (PyDict_SetItemString(dict, TW_KEYS_NAME, capsule) < 0) {
            keys = NULL; /* freed with the capsule */
        }
        Py_XDECREF(capsule);
    }
    if (keys == NULL) {
        PyErr_Clear();
        return NULL;
    }
    last.interpreter = PyInterpreterState_GetID(here);
    last.keys = keys;
    return keys;
}
#endif

typedef struct tw_node tw_node; /* _core/tw_template.h */
typedef struct tw_watch tw_watch; /* _pytap.h */
typedef struct tw_watches tw_watches;

typedef struct tw_level {
    PyObject *container;
    PyObject *key;       /* objects: the key whose value is due or open */
    Py_ssize_t count;    /* finished entries */
    const tw_node *node; /* projection: what is wanted of this container; NULL: all */
    const tw_node *next; /* projection: the same for the value of `key` */
} tw_level;

typedef struct tw_build {
    PyObject *root;
    tw_level *frames;
    uint8_t *scratch;    /* UTF-8 of a string, or digits, that are not whole in one piece */
    size_t scratch_len;
    size_t scratch_cap;
    size_t cont;         /* continuation bytes in scratch */
    PyObject *marks;     /* list of (name, offset, path), or NULL */
    tw_keys *keys;
    const tw_node *node; /* projection: what is wanted of the root; NULL: all */
    tw_str open;         /* the open value string, once a chunk ended inside it */
    uint64_t key_offset;
    uint32_t depth;
    uint32_t frames_cap;
    uint32_t lent;       /* frames from this one on were lent to a snapshot; TW_NOT_LENT: none */
    uint32_t skip;       /* projection: depth inside a value that nobody wants */
    uint32_t more_marks; /* marks met and not kept */
    uint8_t lead;        /* largest lead byte in scratch */
    uint8_t in_text;     /* a value string is open */
    uint8_t ignore;      /* projection: the string at hand is not wanted */
    uint8_t exposed;     /* the live root was handed out */
    uint8_t refuse_duplicates;
} tw_build;

#define TW_NOT_LENT UINT32_MAX

static void tw_build_init(tw_build *b, tw_keys *keys)
{
    memset(b, 0, sizeof *b);
    b->keys = keys;
    b->lent = TW_NOT_LENT;
}

/* What a function returns whose exception is set, or is that there is no memory. */
static inline PyObject *tw_null_result(void)
{
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return NULL;
}

/* Drops everything but the options. Objects are taken out before they are released: releasing may run foreign code. */
static void tw_build_clear(tw_build *b)
{
    tw_level *frames = b->frames;
    uint32_t depth = b->depth, i;
    PyObject *root = b->root, *marks = b->marks, *open = b->open.o;
    uint8_t *scratch = b->scratch;
    b->frames = NULL;
    b->frames_cap = b->depth = b->skip = b->more_marks = 0;
    b->root = b->marks = b->open.o = NULL;
    b->open.room = 0;
    b->scratch = NULL;
    b->scratch_len = b->scratch_cap = b->cont = 0;
    b->lead = b->in_text = b->ignore = b->exposed = 0;
    b->lent = TW_NOT_LENT;
    for (i = 0; i < depth; i++) {
        Py_XDECREF(frames[i].container);
        Py_XDECREF(frames[i].key);
    }
    PyMem_Free(frames);
    PyMem_Free(scratch);
    Py_XDECREF(open);
    Py_XDECREF(root);
    Py_XDECREF(marks);
}

/* The garbage collector's view: containers and marks. The rest can hold no cycle. */
static int tw_build_traverse(const tw_build *b, visitproc visit, void *arg)
{
    uint32_t i;
    Py_VISIT(b->root);
    Py_VISIT(b->marks);
    for (i = 0; i < b->depth; i++) Py_VISIT(b->frames[i].container);
    return 0;
}

static TW_NOINLINE int tw_scratch_grow(tw_build *b, size_t n)
{
    size_t cap = b->scratch_cap ? b->scratch_cap : 64;
    uint8_t *mem;
    while (cap - b->scratch_len < n) {
        if (cap > SIZE_MAX / 4) return TW_E_MEMORY;
        cap *= 2;
    }
    mem = (uint8_t *)PyMem_Realloc(b->scratch, cap);
    if (mem == NULL) return TW_E_MEMORY;
    b->scratch = mem;
    b->scratch_cap = cap;
    return TW_OK;
}

static inline int tw_scratch_add(tw_build *b, const uint8_t *p, size_t n)
{
    if (TW_UNLIKELY(b->scratch_cap - b->scratch_len < n) && tw_scratch_grow(b, n) != TW_OK) {
        PyErr_NoMemory();
        return TW_E_MEMORY;
    }
    if (n) memcpy(b->scratch + b->scratch_len, p, n);
    b->scratch_len += n;
    return TW_OK;
}

/* Large leftovers of one long key or cut string are not kept for the life of the parser. */
static inline void tw_scratch_reset(tw_build *b)
{
    b->scratch_len = b->cont = 0;
    b->lead = 0;
    if (TW_UNLIKELY(b->scratch_cap > 4096)) {
        PyMem_Free(b->scratch);
        b->scratch = NULL;
        b->scratch_cap = 0;
    }
}

/* Where the value at hand stands: keys and indices down to it. */
static PyObject *tw_path(const tw_build *b, int in_element)
{
    uint32_t n = b->depth, i;
    PyObject *path;
    if (n > 0) {
        /* The innermost container adds a step only if one of its values has begun or must come next. */
        const tw_level *top = &b->frames[n - 1];
        if (!(PyDict_CheckExact(top->container) ? top->key != NULL : in_element)) n--;
    }
    path = PyTuple_New((Py_ssize_t)n);
    if (path == NULL) return NULL;
    for (i = 0; i < n; i++) {
        PyObject *step = b->frames[i].key != NULL ? Py_NewRef(b->frames[i].key) : PyLong_FromSsize_t(b->frames[i].count);
        if (step == NULL) {
            Py_DECREF(path);
            return NULL;
        }
        PyTuple_SET_ITEM(path, (Py_ssize_t)i, step);
    }
    return path;
}

/* Between two runs of the machine only: j->state is not kept up to date inside one. */
static PyObject *tw_build_path(const tw_build *b, const tw_json *j)
{
    return tw_path(b, !(j->state == ST_JSON_NEED_VALUE_OR_END || j->state == ST_JSON_AFTER_VALUE));
}

/* A mark for the value at hand, which has begun. Memory that is lacking here costs the mark, not the parse. */
static TW_NOINLINE void tw_mark(tw_build *b, const char *name, uint64_t offset)
{
    PyObject *path, *entry;
    if (b->marks != NULL && PyList_GET_SIZE(b->marks) >= TW_MARKS) {
        b->more_marks++;
        return;
    }
    if (b->marks == NULL && (b->marks = PyList_New(0)) == NULL) { PyErr_Clear(); return; }
    path = tw_path(b, 1);
    entry = path == NULL ? NULL : Py_BuildValue("sKN", name, (unsigned long long)offset, path);
    if (entry == NULL || PyList_Append(b->marks, entry) < 0) PyErr_Clear();
    Py_XDECREF(entry);
}

/* -- slots ------------------------------------------------------------------------------------------------------------ */

/* The value that stands in the slot of the open value, borrowed, or NULL. */
static PyObject *tw_slot_get(const tw_build *b)
{
    const tw_level *f;
    if (b->depth == 0) return b->root;
    f = &b->frames[b->depth - 1];
    if (f->key != NULL) {
        PyObject *v = PyDict_GetItemWithError(f->container, f->key);
        if (v == NULL) PyErr_Clear();
        return v;
    }
    return PyList_GET_SIZE(f->container) > 0 ? PyList_GET_ITEM(f->container, PyList_GET_SIZE(f->container) - 1) : NULL;
}

/* Show v in the slot; `old` is what was shown there so far, or NULL. */
static int tw_slot_set(tw_build *b, PyObject *v, PyObject *old)
{
    tw_level *f;
    int r;
    if (b->depth == 0) {
        Py_XSETREF(b->root, Py_NewRef(v));
        return TW_OK;
    }
    f = &b->frames[b->depth - 1];
    if (f->key != NULL) r = PyDict_SetItem(f->container, f->key, v);
    else if (old != NULL && tw_slot_get(b) == old) r = PyList_SetItem(f->container, PyList_GET_SIZE(f->container) - 1, Py_NewRef(v));
    else r = PyList_Append(f->container, v);
    return r < 0 ? TW_E_MEMORY : TW_OK;
}

/* Steals v. */
static inline int tw_list_append(PyObject *list, PyObject *v)
{
    int r;
#if TW_GROW_IN_PLACE /* the same versions: those whose lists are known */
    Py_ssize_t n = PyList_GET_SIZE(list);
    if (TW_LIKELY(n < ((PyListObject *)list)->allocated)) {
        PyList_SET_ITEM(list, n, v);
        Py_SET_SIZE((PyVarObject *)list, n + 1);
        return 0;
    }
    if (n == 0) { /* what the first append would do, in fewer steps */
        PyObject **items = (PyObject **)PyMem_Malloc(4 * sizeof *items);
        if (TW_LIKELY(items != NULL && ((PyListObject *)list)->ob_item == NULL)) {
            items[0] = v;
            ((PyListObject *)list)->ob_item = items;
            ((PyListObject *)list)->allocated = 4;
            Py_SET_SIZE((PyVarObject *)list, 1);
            return 0;
        }
        PyMem_Free(items);
    }
#endif
    r = PyList_Append(list, v);
    Py_DECREF(v);
    return r;
}

/* A finished value, or a container that opens: steals v (which may be NULL after a failed allocation). */
static inline int tw_put(tw_build *b, const tw_json *j, PyObject *v)
{
    tw_level *f;
    int r;
    if (TW_UNLIKELY(v == NULL)) return TW_E_MEMORY;
    if (TW_UNLIKELY(b->depth == 0)) {
        Py_XSETREF(b->root, v);
        return TW_OK;
    }
    f = &b->frames[b->depth - 1];
    if (f->key != NULL) {
        Py_ssize_t before = PyDict_GET_SIZE(f->container);
        r = PyDict_SetItem(f->container, f->key, v);
        if (TW_UNLIKELY(PyDict_GET_SIZE(f->container) == before) && r == 0) tw_mark(b, "duplicate_key", b->key_offset);
        Py_DECREF(v);
    } else {
        r = tw_list_append(f->container, v);
    }
    return TW_UNLIKELY(r < 0) ? TW_E_MEMORY : TW_OK;
}

/* The value of the top frame's slot is finished. */
static inline void tw_value_done(tw_build *b)
{
    if (b->depth > 0) {
        tw_level *f = &b->frames[b->depth - 1];
        f->count++;
        Py_CLEAR(f->key);
    }
}

static TW_NOINLINE int tw_frames_grow(tw_build *b)
{
    uint32_t cap = b->frames_cap ? b->frames_cap * 2 : 2;
    tw_level *mem = (tw_level *)PyMem_Realloc(b->frames, cap * sizeof *mem);
    if (mem == NULL) {
        PyErr_NoMemory();
        return TW_E_MEMORY;
    }
    b->frames = mem;
    b->frames_cap = cap;
    return TW_OK;
}

static inline int tw_push(tw_build *b, const tw_json *j, PyObject *container, const tw_node *node)
{
    tw_level *f;
    int e;
    if (container == NULL) return TW_E_MEMORY;
    if (b->depth == b->frames_cap && tw_frames_grow(b) != TW_OK) {
        Py_DECREF(container);
        return TW_E_MEMORY;
    }
    e = tw_put(b, j, Py_NewRef(container));
    if (e != TW_OK) {
        Py_DECREF(container);
        return e;
    }
    f = &b->frames[b->depth++];
    f->container = container;
    f->key = NULL;
    f->count = 0;
    f->node = node;
    f->next = NULL;
    return TW_OK;
}

static inline int tw_pop(tw_build *b)
{
    PyObject *container = b->frames[--b->depth].container;
    Py_CLEAR(b->frames[b->depth].key);
    Py_DECREF(container);
    tw_value_done(b);
    return TW_OK;
}

/* -- strings and keys ------------------------------------------------------------------------------------------------- */

/* A key that is met for the first time, or anew. */
static TW_NOINLINE PyObject *tw_key_learn(tw_known_key *known, const uint8_t *p, size_t n, uint64_t head, uint64_t tail)
{
    PyObject *key = tw_str_from_utf8(p, n, 0, 0);
    if (key == NULL || PyObject_Hash(key) == -1) {
        Py_XDECREF(key);
        return NULL;
    }
    known->head = head;
    known->tail = tail;
    known->n = n;
    Py_XSETREF(known->key, Py_NewRef(key));
    return key;
}

static inline PyObject *tw_key(tw_build *b, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    tw_known_key *known;
    uint64_t head, tail, h;
    if (TW_UNLIKELY(n == 0 || lead != 0 || n > TW_KEY_BYTES || b->keys == NULL)) return tw_str_from_utf8(p, n, lead, cont);
    /* Up to 16 bytes are known by their first and last eight. */
    if (n >= 8) {
        memcpy(&head, p, 8);
        memcpy(&tail, p + n - 8, 8);
    } else if (n >= 4) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        head = first;
        tail = last;
    } else {
        head = (uint64_t)p[0] | (uint64_t)p[n >> 1] << 8 | (uint64_t)p[n - 1] << 16;
        tail = 0;
    }
    h = (head ^ (tail << 29 | tail >> 35) ^ n) * UINT64_C(0x9E3779B97F4A7C15); /* a bad spread costs a miss, no more */
    known = &b->keys->slot[(h >> 40) % TW_KEYS];
    if (TW_LIKELY(known->key != NULL && known->head == head && known->tail == tail && known->n == n) &&
        (n <= 16 || memcmp(PyUnicode_DATA(known->key), p, n) == 0))
        return Py_NewRef(known->key);
    return tw_key_learn(known, p, n, head, tail);
}

static int tw_set_key(tw_build *b, const tw_json *j, PyObject *key)
{
    tw_level *f = &b->frames[b->depth - 1];
    if (key == NULL) return TW_E_MEMORY;
    if (b->refuse_duplicates) {
        int has = PyDict_Contains(f->container, key);
        if (has != 0) {
            Py_DECREF(key);
            return has < 0 ? TW_E_MEMORY : TW_E_JSON_DUPLICATE_KEY;
        }
    }
    Py_XSETREF(f->key, key);
    b->key_offset = j->token_offset;
    return TW_OK;
}

/* Append to the open string, in place where nobody else holds it. */
static int tw_open_add(tw_build *b, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    PyObject *old = b->open.o;
#if TW_GROW_IN_PLACE
    Py_UCS4 maxchar = tw_str_maxchar(lead);
    Py_ssize_t chars = (Py_ssize_t)(n - cont);
    int held = !b->exposed || tw_slot_get(b) == old;
    if (TW_LIKELY(held && tw_str_fits(&b->open, chars, maxchar, 2))) {
        tw_str_append(&b->open, p, n, lead, cont);
        return TW_OK;
    }
    held = tw_slot_get(b) == old;
    /* Out of its slot, the string has one reference and can be resized rather than copied. */
    if (held && Py_REFCNT(old) == 2) {
        if (tw_slot_set(b, Py_None, old) != TW_OK) return TW_E_MEMORY;
        old = Py_None;
    }
    if (tw_str_renew(&b->open, chars, maxchar) < 0) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        tw_slot_set(b, b->open.o, old); /* shows what was good; its own failure changes nothing */
        PyErr_Restore(type, value, trace);
        return TW_E_MEMORY;
    }
    tw_str_append(&b->open, p, n, lead, cont);
    return tw_slot_set(b, b->open.o, held ? old : NULL);
#else
    Py_XINCREF(old);
    if (tw_str_concat(&b->open, p, n, lead, cont) < 0) { Py_XDECREF(old); return TW_E_MEMORY; }
    {
        int e = tw_slot_set(b, b->open.o, old);
        Py_XDECREF(old);
        return e;
    }
#endif
}

/* The chunk ended, or went wrong, inside a value string: show what there is of it. */
static int tw_show_open(tw_build *b, const tw_json *j)
{
    int e;
    if (!b->in_text || b->open.o != NULL) return TW_OK;
    if (b->scratch_len == 0) {
        if (tw_str_empty(&b->open) < 0) return TW_E_MEMORY;
    } else {
        if (tw_str_renew(&b->open, (Py_ssize_t)(b->scratch_len - b->cont), tw_str_maxchar(b->lead)) < 0) return TW_E_MEMORY;
#if TW_GROW_IN_PLACE
        tw_str_append(&b->open, b->scratch, b->scratch_len, b->lead, b->cont);
#else
        tw_str_write(PyUnicode_DATA(b->open.o), PyUnicode_KIND(b->open.o), 0, b->scratch, b->scratch_len, b->cont);
#endif
    }
    e = tw_put(b, j, Py_NewRef(b->open.o));
    if (e != TW_OK) tw_str_clear(&b->open);
    else tw_scratch_reset(b);
    return e;
}

/* The open string ended: put it in its final form, and show that to whoever gives a place for it. */
static int tw_close_open(tw_build *b, PyObject **final)
{
    PyObject *o = b->open.o;
    int e = TW_OK;
    if (tw_slot_get(b) != o) e = tw_slot_set(b, o, NULL);
#if TW_GROW_IN_PLACE
    if (e == TW_OK) {
        Py_ssize_t n = PyUnicode_GET_LENGTH(o);
        if (n == 1) { /* the interpreter's own one-character string */
            PyObject *own = PyUnicode_FromOrdinal((int)PyUnicode_READ_CHAR(o, 0));
            if (own == NULL) e = TW_E_MEMORY;
            else {
                e = tw_slot_set(b, own, o);
                Py_SETREF(b->open.o, own);
            }
        } else if (b->open.room - n > n / 4 + TW_STR_SLACK && tw_str_writable(o, 2)) {
            e = tw_slot_set(b, Py_None, o);
            if (e == TW_OK) {
                tw_str_set_length(o, n);
                if (PyUnicode_Resize(&b->open.o, n + 1) < 0) PyErr_Clear(); /* as good untrimmed */
                o = b->open.o;
                tw_str_set_length(o, n);
                e = tw_slot_set(b, o, Py_None);
            }
        }
    }
#endif
    if (final != NULL) *final = Py_NewRef(b->open.o);
    tw_str_clear(&b->open);
    return e;
}

/* What is too long for the short ways. */
static TW_NOINLINE PyObject *tw_number_from_text(const uint8_t *p, size_t n, int is_int, int *too_long)
{
    char small[64], *text = small, *stop;
    PyObject *v;
    if (n >= sizeof small) {
        text = (char *)PyMem_Malloc(n + 1);
        if (text == NULL) return PyErr_NoMemory();
    }
    memcpy(text, p, n);
    text[n] = 0;
    if (is_int) {
        v = PyLong_FromString(text, &stop, 10);
        if (v == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) { /* sys.set_int_max_str_digits() */
            PyErr_Clear();
            *too_long = 1;
        }
    } else {
        double d = PyOS_string_to_double(text, &stop, NULL);
        v = d == -1.0 && PyErr_Occurred() ? NULL : PyFloat_FromDouble(d);
    }
    if (text != small) PyMem_Free(text);
    return v;
}

static inline PyObject *tw_number_object(const uint8_t *p, size_t n, const tw_decimal *d, int *too_long)
{
    *too_long = 0;
    if (d->is_int) {
        int64_t i;
        if (TW_LIKELY(tw_decimal_int64(d, &i))) {
#if LONG_MAX >= INT64_MAX
            return PyLong_FromLong((long)i); /* quicker than its sister for what fits one digit */
#else
            return PyLong_FromLongLong(i);
#endif
        }
    } else {
        double f;
        if (TW_LIKELY(tw_decimal_double(d, &f))) return PyFloat_FromDouble(f);
    }
    return tw_number_from_text(p, n, d->is_int, too_long);
}

static inline PyObject *tw_literal_object(int which)
{
    switch (which) {
    case TW_LIT_NULL: return Py_NewRef(Py_None);
    case TW_LIT_FALSE: return Py_NewRef(Py_False);
    case TW_LIT_TRUE: return Py_NewRef(Py_True);
    case TW_LIT_NAN: return PyFloat_FromDouble(Py_NAN);
    case TW_LIT_INF: return PyFloat_FromDouble(Py_HUGE_VAL);
    default: return PyFloat_FromDouble(-Py_HUGE_VAL);
    }
}

/* -- the builder's sink ----------------------------------------------------------------------------------------------- */

static inline int tw_b_object_start(tw_build *b, tw_json *j) { return tw_push(b, j, PyDict_New(), NULL); }
static inline int tw_b_array_start(tw_build *b, tw_json *j) { return tw_push(b, j, PyList_New(0), NULL); }
static inline int tw_b_object_end(tw_build *b, tw_json *j) { (void)j; return tw_pop(b); }
static inline int tw_b_array_end(tw_build *b, tw_json *j) { (void)j; return tw_pop(b); }

static inline int tw_b_text_start(tw_build *b, tw_json *j)
{
    b->scratch_len = b->cont = 0;
    b->lead = 0;
    b->in_text = !j->in_key;
    return TW_OK;
}

static inline int tw_b_text(tw_build *b, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    (void)j;
    if (b->open.o != NULL) return tw_open_add(b, p, n, lead, cont);
    if (lead > b->lead) b->lead = lead;
    b->cont += cont;
    return tw_scratch_add(b, p, n);
}

static inline int tw_b_code(tw_build *b, tw_json *j, uint32_t c)
{
    uint8_t utf8[4];
    size_t n = tw_utf8_encode(c, utf8);
    return tw_b_text(b, j, utf8, n, n > 1 ? utf8[0] : 0, n - 1);
}

static inline int tw_b_number_part(tw_build *b, tw_json *j, const uint8_t *p, size_t n)
{
    if (!j->number_parts) b->scratch_len = 0;
    return tw_scratch_add(b, p, n);
}

/* Strings, numbers and literals end in two steps: the value is shown in its slot, and the slot is done. */

static inline int tw_done(tw_build *b, int e)
{
    if (TW_LIKELY(e == TW_OK)) tw_value_done(b);
    return e;
}

/* `final` as in tw_close_open(). */
static inline int tw_put_text(tw_build *b, tw_json *j, PyObject **final)
{
    int e;
    if (b->open.o != NULL) {
        e = tw_close_open(b, final);
    } else {
        PyObject *v = tw_str_from_utf8(b->scratch, b->scratch_len, b->lead, b->cont);
        if (final != NULL) *final = Py_XNewRef(v);
        e = tw_put(b, j, v);
        tw_scratch_reset(b);
    }
    b->in_text = 0;
    return e;
}

/* A number, or NULL and why in *e. */
static inline PyObject *tw_make_number(tw_build *b, tw_json *j, const uint8_t *p, size_t n, const tw_decimal *d, int *e)
{
    tw_decimal joined;
    int too_long;
    PyObject *v;
    if (TW_UNLIKELY(d == NULL)) {
        /* The number's text as one piece: what was kept of it, then [p, p + n). */
        if (j->number_parts) {
            *e = tw_scratch_add(b, p, n);
            if (*e != TW_OK) return NULL;
            p = b->scratch;
            n = b->scratch_len;
        }
        tw_number_read(p, p + n, &joined);
        d = &joined;
    }
    v = tw_number_object(p, n, d, &too_long);
    if (TW_UNLIKELY(j->number_parts)) tw_scratch_reset(b);
    if (TW_UNLIKELY(v == NULL)) *e = too_long ? TW_E_JSON_NUMBER_TOO_LONG : TW_E_MEMORY;
    return v;
}

static inline PyObject *tw_make_literal(tw_build *b, tw_json *j, int which)
{
    if (TW_UNLIKELY(which >= TW_LIT_NAN)) tw_mark(b, "nan", j->token_offset);
    return tw_literal_object(which);
}

static inline int tw_b_string(tw_build *b, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    if (j->in_key) return tw_set_key(b, j, tw_key(b, p, n, lead, cont));
    return tw_done(b, tw_put(b, j, tw_str_from_utf8(p, n, lead, cont)));
}

static inline int tw_b_text_end(tw_build *b, tw_json *j)
{
    if (j->in_key) {
        PyObject *key = tw_key(b, b->scratch, b->scratch_len, b->lead, b->cont);
        tw_scratch_reset(b);
        return tw_set_key(b, j, key);
    }
    return tw_done(b, tw_put_text(b, j, NULL));
}

static inline int tw_b_number(tw_build *b, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    int e;
    PyObject *v = tw_make_number(b, j, p, n, d, &e);
    (void)is_int;
    return TW_UNLIKELY(v == NULL) ? e : tw_done(b, tw_put(b, j, v));
}

static inline int tw_b_literal(tw_build *b, tw_json *j, int which) { return tw_done(b, tw_put(b, j, tw_make_literal(b, j, which))); }

static inline void tw_b_lone_surrogate(tw_build *b, tw_json *j, uint64_t offset) { tw_mark(b, "lone_surrogate", offset); }
static inline void tw_b_control_character(tw_build *b, tw_json *j, uint64_t offset) { tw_mark(b, "control_character", offset); }

#define TW_JSON_RUN tw_build_run
#define TW_SINK_T tw_build
#define TW_SINK(name) tw_b_##name
#include "_core/tw_json.h"

/* -- snapshots -------------------------------------------------------------------------------------------------------- */

static PyObject *tw_copy_container(PyObject *c)
{
    return PyDict_CheckExact(c) ? PyDict_Copy(c) : PyList_GetSlice(c, 0, PyList_GET_SIZE(c));
}

/* Put `fresh` where `old` stands in `container` (a key's slot, or the last element). 1: done, 0: it is not there, -1: error. */
static int tw_swap_child(PyObject *container, PyObject *key, PyObject *old, PyObject *fresh)
{
    if (key != NULL) {
        PyObject *v = PyDict_GetItemWithError(container, key);
        if (v == old) return PyDict_SetItem(container, key, fresh) < 0 ? -1 : 1;
        return v == NULL && PyErr_Occurred() ? -1 : 0;
    }
    if (PyList_GET_SIZE(container) > 0 && PyList_GET_ITEM(container, PyList_GET_SIZE(container) - 1) == old)
        return PyList_SetItem(container, PyList_GET_SIZE(container) - 1, Py_NewRef(fresh)) < 0 ? -1 : 1;
    return 0;
}

/* A value that later feeds never change: the open containers are copied, what is finished is shared.
 *
 * A wide open container is not copied but lent: the snapshot gets the live one, and the next feed looks whether somebody
 * still holds it. If so the parser goes on with a copy, once; if the snapshot was dropped, nothing was copied at all.
 * That is only possible while the live value itself was not handed out. */
static PyObject *tw_build_snapshot(tw_build *b)
{
    PyObject *snapshot = NULL, *parent = NULL;
    uint32_t i;
    if (b->root == NULL) return NULL;
    if (b->depth == 0) return Py_NewRef(b->root);
    for (i = 0; i < b->depth; i++) {
        PyObject *live = b->frames[i].container, *copy;
        Py_ssize_t width = PyDict_CheckExact(live) ? PyDict_GET_SIZE(live) : PyList_GET_SIZE(live);
        int lend = TW_GROW_IN_PLACE && !b->exposed && width > TW_COPY_WIDTH;
        if (lend) {
            if (i < b->lent) b->lent = i;
            if (snapshot == NULL) snapshot = Py_NewRef(live);
            break; /* its parent's copy shows it already */
        }
        copy = tw_copy_container(live);
        if (copy == NULL) goto failed;
        if (snapshot == NULL) {
            snapshot = copy;
        } else {
            int r = tw_swap_child(parent, b->frames[i - 1].key, live, copy);
            Py_DECREF(copy);
            if (r < 0) goto failed;
            if (r == 0) break; /* the caller took it out of the live value: nothing below it shows */
        }
        parent = copy;
    }
    return snapshot;
failed:
    Py_XDECREF(snapshot);
    return NULL;
}

/* Before anything changes: take back what was lent, or go on with a copy of what is still held. */
static TW_NOINLINE int tw_build_take_back(tw_build *b)
{
    uint32_t i = b->lent;
    b->lent = TW_NOT_LENT;
    for (; i < b->depth; i++) {
        PyObject *live = b->frames[i].container, *copy;
        if (Py_REFCNT(live) <= 2) continue;
        copy = tw_copy_container(live);
        if (copy == NULL) return -1;
        if (i == 0) Py_SETREF(b->root, Py_NewRef(copy));
        else if (tw_swap_child(b->frames[i - 1].container, b->frames[i - 1].key, live, copy) < 0) {
            Py_DECREF(copy);
            return -1;
        }
        b->frames[i].container = copy;
        Py_DECREF(live);
    }
    return 0;
}

#endif
