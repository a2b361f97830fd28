#include "_pytap.h"

PyObject *tw_watch_path(const tw_build *b, uint32_t d)
{
    PyObject *path = PyTuple_New((Py_ssize_t)d);
    uint32_t i;
    if (path == NULL) return NULL;
    for (i = 0; i < d; i++) {
        PyObject *step = b->frames[i].key != NULL ? Py_NewRef(b->frames[i].key) : PyLong_FromSsize_t(b->frames[i].count);
        if (step == NULL) {
            Py_DECREF(path);
            return NULL;
        }
        PyTuple_SET_ITEM(path, (Py_ssize_t)i, step);
    }
    return path;
}

Py_ssize_t tw_forgotten(const tw_build *b, uint32_t d)
{
    const tw_level *f = &b->frames[d];
    int open = d + 1 < b->depth || (b->in_text && b->open.o != NULL);
    Py_ssize_t gone = PyList_CheckExact(f->container) ? f->count + open - PyList_GET_SIZE(f->container) : 0;
    return gone > 0 ? gone : 0;
}

/* -- who watches ------------------------------------------------------------------------------------------------------ */

/* How far the open containers lead along the path. */
static void tw_watch_find_level(tw_watch *watch, const tw_build *b)
{
    watch->level = 0;
    while (watch->level < b->depth && watch->level < watch->n_steps && (watch->level == 0 || tw_watch_step(watch, b, watch->level)))
        watch->level++;
}

static void tw_watches_compact(tw_watches *w)
{
    uint32_t i, n = 0;
    for (i = 0; i < w->n; i++)
        if (w->slot[i] != NULL) w->slot[n++] = w->slot[i];
    w->n = n;
}

int tw_watches_add(tw_watches *w, const tw_build *b, tw_watch *watch)
{
    if (w->n == w->cap) {
        uint32_t cap = w->cap ? w->cap * 2 : 2;
        tw_watch **mem = (tw_watch **)PyMem_Realloc(w->slot, cap * sizeof *mem);
        if (mem == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        w->slot = mem;
        w->cap = cap;
    }
    w->slot[w->n++] = watch;
    tw_watch_find_level(watch, b);
    if (watch->level > w->top) w->top = watch->level;
    return 0;
}

void tw_watches_free(tw_watches *w)
{
    if (w != NULL) PyMem_Free(w->slot);
    PyMem_Free(w);
}

/* A running machine may be going through the slots, so they stay where they are. */
void tw_watches_drop(tw_watches *w, const tw_watch *watch, int busy)
{
    uint32_t i;
    for (i = 0; i < w->n; i++)
        if (w->slot[i] == watch) w->slot[i] = NULL;
    if (!busy) tw_watches_compact(w);
}

typedef struct tw_watched {
    tw_build *b;
    tw_watches *w;
} tw_watched;

/* -- what they see ---------------------------------------------------------------------------------------------------- */

/* A container opens in the innermost one. */
static TW_NOINLINE void tw_watch_enter(tw_watched *s)
{
    uint32_t i, d = s->b->depth;
    for (i = 0; i < s->w->n; i++) {
        tw_watch *watch = s->w->slot[i];
        if (watch != NULL && watch->n_steps > d && tw_watch_leads_to(watch, s->b, d)) watch->level = s->w->top = d + 1;
    }
}

/* The innermost container ends. */
static TW_NOINLINE void tw_watch_leave(tw_watched *s)
{
    uint32_t i, d = s->b->depth;
    for (i = 0; i < s->w->n; i++) {
        tw_watch *watch = s->w->slot[i];
        if (watch != NULL && watch->level == d) watch->level = d - 1;
    }
    s->w->top = d - 1;
}

/* The value v at hand in the d outermost containers is finished. Foreign code may run here (a collection), so a tap that is being
 * given something is held. Returns 0, 1 where v must be forgotten, -1 with an exception. */
static int tw_watch_give(tw_watched *s, uint32_t d, PyObject *v)
{
    int forget = 0, failed = 0;
    PyObject *path = NULL;
    uint32_t i;
    for (i = 0; i < s->w->n && !failed; i++) {
        tw_watch *watch = s->w->slot[i];
        PyObject *entry, *tap;
        if (watch == NULL || !tw_watch_wants(watch, s->b, d) || (watch->strings && !PyUnicode_Check(v))) continue;
        tap = Py_NewRef(watch->tap);
        if (watch->paths && path == NULL) path = tw_watch_path(s->b, d);
        entry = !watch->paths ? Py_NewRef(v) : path == NULL ? NULL : PyTuple_Pack(2, path, v);
        failed = entry == NULL || PyList_Append(watch->queue, entry) < 0;
        forget |= watch->forget;
        Py_XDECREF(entry);
        Py_DECREF(tap);
    }
    Py_XDECREF(path);
    return failed ? -1 : forget;
}

/* Take v, the last element of the innermost list, out of it, unless the caller has done so. */
static int tw_watch_forget(tw_build *b, PyObject *v)
{
    PyObject *list = b->frames[b->depth - 1].container;
    Py_ssize_t n = PyList_GET_SIZE(list);
    if (n == 0 || PyList_GET_ITEM(list, n - 1) != v) return TW_OK;
    return PyList_SetSlice(list, n - 1, n, NULL) < 0 ? TW_E_MEMORY : TW_OK;
}

/* v, which may be watched, was shown in its slot: the slot is done. Steals v. */
static TW_NOINLINE int tw_watch_done(tw_watched *s, PyObject *v)
{
    int e = TW_OK, r = tw_watch_give(s, s->b->depth, v);
    tw_value_done(s->b);
    if (r != 0) e = r < 0 ? TW_E_MEMORY : tw_watch_forget(s->b, v);
    Py_DECREF(v);
    return e;
}

/* v may be watched. Steals it. */
static TW_NOINLINE int tw_watch_value(tw_watched *s, const tw_json *j, PyObject *v)
{
    int e = tw_put(s->b, j, Py_NewRef(v));
    if (e == TW_OK) return tw_watch_done(s, v);
    Py_DECREF(v);
    return e;
}

/* The innermost container is finished, and may be watched. */
static TW_NOINLINE int tw_watch_container(tw_watched *s)
{
    PyObject *v = Py_NewRef(s->b->frames[s->b->depth - 1].container);
    int r = tw_watch_give(s, s->b->depth - 1, v), e = TW_OK;
    tw_pop(s->b);
    if (r != 0) e = r < 0 ? TW_E_MEMORY : tw_watch_forget(s->b, v);
    Py_DECREF(v);
    return e;
}

/* -- the sink --------------------------------------------------------------------------------------------------------- */

static inline int tw_w_object_start(tw_watched *s, tw_json *j)
{
    if (s->w->top == s->b->depth) tw_watch_enter(s);
    return tw_b_object_start(s->b, j);
}

static inline int tw_w_array_start(tw_watched *s, tw_json *j)
{
    if (s->w->top == s->b->depth) tw_watch_enter(s);
    return tw_b_array_start(s->b, j);
}

static inline int tw_w_end(tw_watched *s, tw_json *j)
{
    (void)j;
    if (s->w->top == s->b->depth) tw_watch_leave(s);
    return TW_LIKELY(s->w->top != s->b->depth - 1) ? tw_pop(s->b) : tw_watch_container(s);
}
#define tw_w_object_end tw_w_end
#define tw_w_array_end tw_w_end

/* v as in tw_put(). */
static inline int tw_w_value(tw_watched *s, const tw_json *j, PyObject *v)
{
    if (TW_LIKELY(v == NULL || s->w->top != s->b->depth)) return tw_done(s->b, tw_put(s->b, j, v));
    return tw_watch_value(s, j, v);
}

static inline int tw_w_string(tw_watched *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    if (j->in_key) return tw_b_string(s->b, j, p, n, lead, cont);
    return tw_w_value(s, j, tw_str_from_utf8(p, n, lead, cont));
}

static inline int tw_w_text_end(tw_watched *s, tw_json *j)
{
    PyObject *v = NULL;
    int e;
    if (j->in_key || s->w->top != s->b->depth) return tw_b_text_end(s->b, j);
    e = tw_put_text(s->b, j, &v);
    if (e == TW_OK) return tw_watch_done(s, v);
    Py_XDECREF(v);
    return e;
}

static inline int tw_w_number(tw_watched *s, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    int e;
    PyObject *v = tw_make_number(s->b, j, p, n, d, &e);
    (void)is_int;
    return TW_UNLIKELY(v == NULL) ? e : tw_w_value(s, j, v);
}

static inline int tw_w_literal(tw_watched *s, tw_json *j, int which) { return tw_w_value(s, j, tw_make_literal(s->b, j, which)); }

static inline int tw_w_text_start(tw_watched *s, tw_json *j) { return tw_b_text_start(s->b, j); }
static inline int tw_w_code(tw_watched *s, tw_json *j, uint32_t c) { return tw_b_code(s->b, j, c); }
static inline void tw_w_lone_surrogate(tw_watched *s, tw_json *j, uint64_t offset) { tw_b_lone_surrogate(s->b, j, offset); }
static inline void tw_w_control_character(tw_watched *s, tw_json *j, uint64_t offset) { tw_b_control_character(s->b, j, offset); }
static inline int tw_w_number_part(tw_watched *s, tw_json *j, const uint8_t *p, size_t n) { return tw_b_number_part(s->b, j, p, n); }

static inline int tw_w_text(tw_watched *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    return tw_b_text(s->b, j, p, n, lead, cont);
}

#define TW_JSON_RUN tw_watch_run
#define TW_SINK_T tw_watched
#define TW_SINK(name) tw_w_##name
#include "_core/tw_json.h"

const uint8_t *tw_watches_run(tw_json *j, tw_build *b, tw_watches *w, const uint8_t *p, const uint8_t *end)
{
    tw_watched watched = {b, w};
    tw_watches_compact(w);
    return tw_watch_run(j, &watched, p, end);
}
