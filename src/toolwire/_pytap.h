/* Parsers that are being watched: they build as others do, and give what ends at a watched place to whoever watches.
 *
 * Theirs is another instance of the tokenizer, compiled by itself: a parser without taps runs the very code that it would run if
 * there were none.
 *
 * A watch knows how far down the open containers lead along its path (`level`), which changes only where one of them opens or
 * ends. So a value off the path costs one comparison of depths, and no path is built but for values that are given.
 */
#ifndef TW_PYTAP_H
#define TW_PYTAP_H

#include "_pybuild.h"

enum tw_step_kind { TW_STEP_KEY, TW_STEP_INDEX, TW_STEP_ANY, TW_STEP_ELEMENT };

typedef struct tw_step {
    PyObject *key;    /* TW_STEP_KEY; borrowed from the tap's path */
    Py_ssize_t index; /* TW_STEP_INDEX */
    uint8_t kind;
} tw_step;

struct tw_watch {
    PyObject *tap;   /* the Python object that this is part of */
    PyObject *queue; /* its list of what ended; borrowed */
    uint32_t n_steps;
    uint32_t level;  /* the outermost open containers that stand on the path */
    uint8_t strings; /* only strings are wanted */
    uint8_t paths;   /* the queue takes (path, value), not the value */
    uint8_t forget;  /* what was given leaves its list */
    tw_step steps[];
};

struct tw_watches {
    tw_watch **slot; /* NULL where a tap was dropped while the machine ran */
    uint32_t n;
    uint32_t cap;
    uint32_t top;    /* no level is higher */
};

/* Does the value at hand in container d - 1 stand where step d - 1 of the path leads? */
static inline int tw_watch_step(const tw_watch *watch, const tw_build *b, uint32_t d)
{
    const tw_step *step = &watch->steps[d - 1];
    const tw_level *f = &b->frames[d - 1];
    switch (step->kind) {
    case TW_STEP_ANY: return 1;
    case TW_STEP_ELEMENT: return PyList_CheckExact(f->container);
    case TW_STEP_INDEX: return f->key == NULL && f->count == step->index && PyList_CheckExact(f->container);
    default:
        return f->key != NULL && (f->key == step->key || (PyUnicode_GET_LENGTH(f->key) == PyUnicode_GET_LENGTH(step->key) &&
                                                          PyUnicode_Compare(f->key, step->key) == 0));
    }
}

/* Does the value at hand in the d outermost containers stand on the path, no further than its end? */
static inline int tw_watch_leads_to(const tw_watch *watch, const tw_build *b, uint32_t d)
{
    return watch->level == d && watch->n_steps >= d && (d == 0 || tw_watch_step(watch, b, d));
}

/* ... and at its very end? */
static inline int tw_watch_wants(const tw_watch *watch, const tw_build *b, uint32_t d)
{
    return watch->n_steps == d && tw_watch_leads_to(watch, b, d);
}

/* Where the value at hand in the d outermost containers stands. */
PyObject *tw_watch_path(const tw_build *b, uint32_t d);

/* How many elements of open container d were forgotten: of those that ended, the ones that are no longer shown. */
Py_ssize_t tw_forgotten(const tw_build *b, uint32_t d);

/* Watch from now on. Returns 0, or -1 with an exception. */
int tw_watches_add(tw_watches *w, const tw_build *b, tw_watch *watch);

/* `busy`: the machine is running. */
void tw_watches_drop(tw_watches *w, const tw_watch *watch, int busy);
void tw_watches_free(tw_watches *w);

/* tw_build_run() for a parser that is watched. */
const uint8_t *tw_watches_run(tw_json *j, tw_build *b, tw_watches *w, const uint8_t *p, const uint8_t *end);

#endif
