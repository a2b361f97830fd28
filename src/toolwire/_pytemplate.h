/* Templates: what makes the next delta of a stream cheap.
 *
 * The payloads of one stream are alike but for the text they add and a few values that nobody reads. A template is a payload
 * that was parsed and validated, with *holes*: the text, a counter, and values that the projection does not want. A later
 * payload that equals it outside the holes, and has a valid value in each, is itself valid and means the same but for the
 * text: whether a document is valid depends on its bytes alone.
 *
 * Built from validated bytes only, so nothing here checks the grammar of what is not a hole.
 */
#ifndef TW_PYTEMPLATE_H
#define TW_PYTEMPLATE_H

#include "_pybuild.h"

#define TW_HOLES 24       /* a payload with more is not made a template */
#define TW_TEMPLATE_MAX 4096
#define TW_PATH_MAX 12
#define TW_HOLE_DEPTH 96  /* a deeper value in a hole does not fit */

enum tw_hole_kind { TW_HOLE_TEXT, TW_HOLE_COUNTER, TW_HOLE_ANY };

/* [start, end) of the template: for TEXT what stands between the quotes, else the whole value. `room`: levels of containers
 * that a value there may have without being too deep for the document. */
typedef struct tw_hole { uint32_t start, end; uint16_t kind, room; } tw_hole;

typedef struct tw_template {
    uint8_t *bytes;
    uint32_t len;
    uint32_t n;
    tw_hole holes[TW_HOLES];
} tw_template;

/* One step of a path: a key, or (name NULL) an index. */
typedef struct tw_step { const char *name; size_t len; uint32_t index; } tw_step;

typedef struct tw_scan_state {
    const uint8_t *base, *end;
    tw_template *t;
    const tw_step *path;     /* to the text */
    int path_len;
    const tw_step *counter;
    int counter_len;
    uint32_t max_depth;      /* of the document */
    int found;
} tw_scan_state;

static const uint8_t *tw_t_space(const tw_scan_state *s, const uint8_t *p)
{
    while (p < s->end && tw_json_is_space(*p)) p++;
    return p;
}

/* Behind the string that starts at p (its quote). */
static const uint8_t *tw_t_string(const tw_scan_state *s, const uint8_t *p)
{
    for (p++; p < s->end && *p != '"'; p++)
        if (*p == '\\') p++;
    return p < s->end ? p + 1 : NULL;
}

/* Behind the value that starts at p. */
static const uint8_t *tw_t_skip(const tw_scan_state *s, const uint8_t *p)
{
    int depth = 0;
    for (;;) {
        if (p >= s->end) return depth == 0 ? s->end : NULL;
        switch (*p) {
        case '"':
            p = tw_t_string(s, p);
            if (p == NULL) return NULL;
            break;
        case '{': case '[': depth++; p++; break;
        case '}': case ']':
            if (depth == 0) return p;
            depth--; p++;
            break;
        default:
            if (depth == 0) {
                while (p < s->end && !tw_json_is_delimiter(*p)) p++;
                return p;
            }
            p++;
            continue;
        }
        if (depth == 0) return p;
    }
}

/* open: containers around the hole. */
static int tw_t_hole(tw_scan_state *s, const uint8_t *start, const uint8_t *end, int kind, int open)
{
    tw_hole *h;
    uint32_t room = s->max_depth > (uint32_t)open ? s->max_depth - (uint32_t)open : 0;
    if (s->t->n == TW_HOLES) return -1;
    h = &s->t->holes[s->t->n++];
    h->start = (uint32_t)(start - s->base);
    h->end = (uint32_t)(end - s->base);
    h->kind = (uint16_t)kind;
    h->room = (uint16_t)(room < TW_HOLE_DEPTH ? room : TW_HOLE_DEPTH);
    return 0;
}

/* One wanted value. at, cat: steps of the paths to text and counter that were taken so far, or -1 off the path. */
static const uint8_t *tw_t_value(tw_scan_state *s, const uint8_t *p, const tw_node *node, int at, int cat, int depth)
{
    const uint8_t *q;
    uint32_t index = 0;
    if (depth > TW_PATH_MAX || p >= s->end) return NULL;
    if (*p == '"') {
        q = tw_t_string(s, p);
        if (q != NULL && at == s->path_len) {
            if (tw_t_hole(s, p + 1, q - 1, TW_HOLE_TEXT, depth) < 0) return NULL;
            s->found++;
        }
        return q;
    }
    if (*p != '{' && *p != '[') {
        q = tw_t_skip(s, p);
        if (q != NULL && cat == s->counter_len && s->counter_len && tw_t_hole(s, p, q, TW_HOLE_COUNTER, depth) < 0) return NULL;
        return q;
    }
    if (at < 0 && node == NULL) return tw_t_skip(s, p);
    if (*p == '[') {
        p = tw_t_space(s, p + 1);
        while (p < s->end && *p != ']') {
            int next = at >= 0 && at < s->path_len && s->path[at].name == NULL && s->path[at].index == index ? at + 1 : -1;
            p = tw_t_value(s, p, node, next, -1, depth + 1);
            if (p == NULL) return NULL;
            p = tw_t_space(s, p);
            if (p < s->end && *p == ',') p = tw_t_space(s, p + 1);
            index++;
        }
        /* What the other elements say may be what the adapter went by: the path means the text only where it is alone. */
        if (at >= 0 && index != 1) return NULL;
        return p < s->end ? p + 1 : NULL;
    }
    p = tw_t_space(s, p + 1);
    while (p < s->end && *p != '}') {
        const uint8_t *key = p + 1, *key_end;
        const tw_node *child = NULL;
        int wanted = node == NULL, next = -1, cnext = -1;
        size_t n;
        uint32_t i;
        p = tw_t_string(s, p);
        if (p == NULL) return NULL;
        key_end = p - 1;
        n = (size_t)(key_end - key);
        if (memchr(key, '\\', n) != NULL) return NULL; /* an escaped key: not worth a template */
        if (node != NULL) {
            for (i = 0; i < node->n; i++) {
                if (node->fields[i].len == n && memcmp(node->fields[i].name, key, n) == 0) {
                    wanted = 1;
                    child = node->fields[i].child;
                    break;
                }
            }
        }
        if (at >= 0 && at < s->path_len && s->path[at].name != NULL && s->path[at].len == n && memcmp(s->path[at].name, key, n) == 0) next = at + 1;
        if (cat >= 0 && cat < s->counter_len && s->counter[cat].len == n && memcmp(s->counter[cat].name, key, n) == 0) cnext = cat + 1;
        p = tw_t_space(s, p);
        p = tw_t_space(s, p + 1); /* ':' */
        if (wanted) {
            p = tw_t_value(s, p, child, next, cnext, depth + 1);
        } else {
            const uint8_t *start = p;
            p = tw_t_skip(s, p);
            if (p != NULL && tw_t_hole(s, start, p, TW_HOLE_ANY, depth + 1) < 0) return NULL;
        }
        if (p == NULL) return NULL;
        p = tw_t_space(s, p);
        if (p < s->end && *p == ',') p = tw_t_space(s, p + 1);
    }
    return p < s->end ? p + 1 : NULL;
}

/* Make a template of a validated document. 1: made; 0: it does not lend itself; -1: no memory. */
static int tw_template_make(tw_template *t, const uint8_t *p, size_t n, const tw_node *node, const tw_step *path, int path_len,
                            const tw_step *counter, int counter_len, uint32_t max_depth)
{
    tw_scan_state s = {p, p + n, t, path, path_len, counter, counter_len, max_depth, 0};
    const uint8_t *q;
    t->n = 0;
    if (n > TW_TEMPLATE_MAX) return 0;
    q = tw_t_value(&s, tw_t_space(&s, p), node, 0, 0, 0);
    if (q == NULL || tw_t_space(&s, q) != s.end || s.found != 1) return 0;
    t->bytes = (uint8_t *)PyMem_Malloc(n ? n : 1);
    if (t->bytes == NULL) return -1;
    memcpy(t->bytes, p, n);
    t->len = (uint32_t)n;
    return 1;
}

static void tw_template_free(tw_template *t)
{
    PyMem_Free(t->bytes);
    t->bytes = NULL;
    t->len = t->n = 0;
}

/* Behind any valid value of up to `depth` levels at p, or NULL. */
static TW_NOINLINE const uint8_t *tw_t_any(const uint8_t *p, const uint8_t *end, uint32_t depth)
{
    uint8_t stack[TW_HOLE_DEPTH / 8 + 1];
    tw_json j;
    tw_null sink = {0};
    const uint8_t *q;
    tw_json_init(&j, stack, depth);
    j.surrogates = TW_SURROGATES_KEEP;
    q = tw_null_run(&j, &sink, p, end);
    return j.state == ST_JSON_DONE ? q : NULL;
}

/* What a payload that fits has in the template's holes. */
typedef struct tw_fit {
    const uint8_t *text, *text_end; /* between the quotes */
    int plain;                      /* the text is ASCII without escapes */
    uint64_t counter;
    int has_counter;
} tw_fit;

/* Does the payload fit? Where it is NULL, `same` is not filled; else same[i] says that hole i holds the template's bytes. */
static int tw_template_fit(const tw_template *t, const uint8_t *p, size_t n, tw_fit *fit, uint8_t *same)
{
    const uint8_t *q = p, *const end = p + n, *r;
    uint32_t at = 0, i;
    memset(fit, 0, sizeof *fit);
    for (i = 0; i < t->n; i++) {
        const tw_hole *h = &t->holes[i];
        size_t fixed = h->start - at;
        if ((size_t)(end - q) < fixed || memcmp(q, t->bytes + at, fixed) != 0) return 0;
        q += fixed;
        at = h->end;
        if (q == end) return 0;
        switch (h->kind) {
        case TW_HOLE_TEXT:
            r = tw_scan_plain(q, end);
            if (r == end) return 0;
            fit->plain = *r == '"';
            if (!fit->plain) {
                r = tw_t_any(q - 1, end, 0);
                if (r == NULL) return 0;
                r--;
            }
            fit->text = q;
            fit->text_end = r;
            break;
        case TW_HOLE_COUNTER: {
            uint64_t v = 0;
            for (r = q; r < end && (uint8_t)(*r - '0') <= 9 && r - q < 18; r++) v = v * 10 + (uint64_t)(*r - '0');
            if (r == q || r == end || (r - q > 1 && *q == '0')) return 0;
            fit->counter = v;
            fit->has_counter = 1;
            break;
        }
        default:
            r = NULL;
            if (*q == '"') {
                const uint8_t *e = tw_scan_plain(q + 1, end);
                if (e < end && *e == '"') r = e + 1;
            }
            if (r == NULL) r = tw_t_any(q, end, h->room);
            if (r == NULL) return 0;
        }
        if (same != NULL) same[i] = (uint8_t)((size_t)(r - q) == h->end - h->start && memcmp(q, t->bytes + h->start, (size_t)(r - q)) == 0);
        q = r;
    }
    return (size_t)(end - q) == t->len - at && memcmp(q, t->bytes + at, t->len - at) == 0;
}

/* Holes that held the same twice are taken for fixed: fewer to look at, and one that changes after all costs a miss. */
static void tw_template_freeze(tw_template *t, const uint8_t *same)
{
    uint32_t i, n = 0;
    for (i = 0; i < t->n; i++)
        if (t->holes[i].kind != TW_HOLE_ANY || !same[i]) t->holes[n++] = t->holes[i];
    t->n = n;
}

#endif
