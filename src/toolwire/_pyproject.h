/* The sink of projections: whole documents, of which only the wanted members become objects. */
#ifndef TW_PYPROJECT_H
#define TW_PYPROJECT_H

#include "_pybuild.h"
#include "_core/tw_template.h"

/* Is the value that begins now wanted? Then *node says what of it. */
static inline int tw_p_wanted(const tw_build *b, const tw_node **node)
{
    const tw_level *f;
    if (b->skip) return 0;
    if (b->depth == 0) { *node = b->node; return 1; }
    f = &b->frames[b->depth - 1];
    if (f->key != NULL) { *node = f->next; return 1; }
    if (PyDict_CheckExact(f->container)) return 0;
    *node = f->node; /* what is wanted of an array is wanted of each element */
    return 1;
}

static inline int tw_p_object_start(tw_build *b, tw_json *j)
{
    const tw_node *node;
    if (!tw_p_wanted(b, &node)) { b->skip++; return TW_OK; }
    return tw_push(b, j, PyDict_New(), node);
}

static inline int tw_p_array_start(tw_build *b, tw_json *j)
{
    const tw_node *node;
    if (!tw_p_wanted(b, &node)) { b->skip++; return TW_OK; }
    return tw_push(b, j, PyList_New(0), node);
}

static inline int tw_p_end(tw_build *b, tw_json *j)
{
    (void)j;
    if (b->skip) { b->skip--; return TW_OK; }
    return tw_pop(b);
}
#define tw_p_object_end tw_p_end
#define tw_p_array_end tw_p_end

static int tw_p_key(tw_build *b, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    tw_level *f = &b->frames[b->depth - 1];
    const tw_node *node = f->node;
    uint32_t i;
    if (node == NULL) {
        f->next = NULL;
        return tw_set_key(b, j, tw_key(b, p, n, lead, cont));
    }
    for (i = 0; i < node->n; i++) {
        const tw_field *field = &node->fields[i];
        if (field->len == n && (n == 0 || memcmp(field->name, p, n) == 0)) {
            Py_XSETREF(f->key, Py_NewRef((PyObject *)field->key));
            f->next = field->child;
            b->key_offset = j->token_offset;
            return TW_OK;
        }
    }
    Py_CLEAR(f->key);
    return TW_OK;
}

static inline int tw_p_string(tw_build *b, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    const tw_node *node;
    if (b->skip) return TW_OK;
    if (j->in_key) return tw_p_key(b, j, p, n, lead, cont);
    if (!tw_p_wanted(b, &node)) return TW_OK;
    return tw_b_string(b, j, p, n, lead, cont);
}

static inline int tw_p_text_start(tw_build *b, tw_json *j)
{
    const tw_node *node;
    b->scratch_len = b->cont = 0;
    b->lead = 0;
    b->ignore = b->skip || (!j->in_key && !tw_p_wanted(b, &node));
    return TW_OK;
}

static inline int tw_p_text(tw_build *b, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    return b->ignore ? TW_OK : tw_b_text(b, j, p, n, lead, cont);
}

static inline int tw_p_code(tw_build *b, tw_json *j, uint32_t c) { return b->ignore ? TW_OK : tw_b_code(b, j, c); }

static inline int tw_p_text_end(tw_build *b, tw_json *j)
{
    if (b->ignore) return TW_OK;
    if (j->in_key) return tw_p_key(b, j, b->scratch, b->scratch_len, b->lead, b->cont);
    return tw_b_text_end(b, j);
}

static inline int tw_p_number_part(tw_build *b, tw_json *j, const uint8_t *p, size_t n)
{
    const tw_node *node;
    return tw_p_wanted(b, &node) ? tw_b_number_part(b, j, p, n) : TW_OK;
}

static inline int tw_p_number(tw_build *b, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    const tw_node *node;
    return tw_p_wanted(b, &node) ? tw_b_number(b, j, p, n, is_int, d) : TW_OK;
}

static inline int tw_p_literal(tw_build *b, tw_json *j, int which)
{
    const tw_node *node;
    return tw_p_wanted(b, &node) ? tw_b_literal(b, j, which) : TW_OK;
}

static inline void tw_p_lone_surrogate(tw_build *b, tw_json *j, uint64_t offset) { (void)b; (void)j; (void)offset; }
static inline void tw_p_control_character(tw_build *b, tw_json *j, uint64_t offset) { (void)b; (void)j; (void)offset; }

#define TW_JSON_RUN tw_project_run
#define TW_SINK_T tw_build
#define TW_SINK(name) tw_p_##name
#include "_core/tw_json.h"

#endif
