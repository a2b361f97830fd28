#include "tw_template.h"

#include <stdlib.h>

#include "tw_trial.h"

/* Tests put a failing allocator here. */
#ifndef TW_MALLOC
#define TW_MALLOC malloc
#endif

/* -- reading validated JSON ------------------------------------------------------------------------------------------- */

static const uint8_t *behind_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && tw_json_is_space(*p)) p++;
    return p;
}

/* Behind the string that starts at p (its quote). */
static const uint8_t *behind_string(const uint8_t *p, const uint8_t *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\') p++;
    return p < end ? p + 1 : end;
}

/* Behind the value that starts at p. Holes inside it are nothing at all, which this does not mind. */
static const uint8_t *behind_value(const uint8_t *p, const uint8_t *end)
{
    int depth = 0;
    while (p < end) {
        switch (*p) {
        case '"': p = behind_string(p, end); break;
        case '{': case '[': depth++; p++; break;
        case '}': case ']':
            if (depth == 0) return p;
            depth--; p++;
            break;
        default:
            if (depth == 0) {
                while (p < end && !tw_json_is_delimiter(*p)) p++;
                return p;
            }
            p++;
            continue;
        }
        if (depth == 0) return p;
    }
    return p;
}

/* Behind the number of a payload (digits alone, so few that it fits 64 bits) that stands at p, or NULL. */
static const uint8_t *behind_counter(const uint8_t *p, const uint8_t *end, uint64_t *counter)
{
    const uint8_t *q = p;
    uint64_t v = 0;
    for (; q < end && (uint8_t)(*q - '0') <= 9 && q - p < 18; q++) v = v * 10 + (uint64_t)(*q - '0');
    *counter = v;
    return q == p || (q - p > 1 && *p == '0') ? NULL : q;
}

/* Might this value be an integer from 0 on? */
static int could_count(const uint8_t *p, const uint8_t *end)
{
    if (*p == '-') return p + 1 < end && p[1] == '0';
    return (uint8_t)(*p - '0') <= 9;
}

/* -- making ----------------------------------------------------------------------------------------------------------- */

#define LARGE 64

/* The new document and the old template are walked side by side. */
typedef struct loom {
    const uint8_t *end;         /* of the document */
    const tw_template *old;     /* or NULL */
    const uint8_t *a, *a_end;   /* where the old one stands */
    uint32_t h;                 /* its next hole */
    const tw_aim *aim;
    uint8_t *out;               /* the new one: never longer than the document */
    uint32_t len, n, same;
    tw_hole holes[TW_TEMPLATE_HOLES];
    int found;                  /* the text was met */
} loom;

static int at_hole(const loom *m)
{
    return m->old != NULL && m->h < m->old->n && m->old->bytes + m->old->holes[m->h].at == m->a;
}

static void put(loom *m, const uint8_t *p, const uint8_t *q)
{
    memcpy(m->out + m->len, p, (size_t)(q - p));
    m->len += (uint32_t)(q - p);
}

/* Bytes that both have to have. */
static int put_same(loom *m, const uint8_t *p, const uint8_t *q)
{
    size_t n = (size_t)(q - p);
    if (m->old != NULL && n) {
        if (at_hole(m) || (size_t)(m->a_end - m->a) < n || memcmp(m->a, p, n) != 0) return 0;
        m->a += n;
    }
    put(m, p, q);
    return 1;
}

static const uint8_t *put_space(loom *m, const uint8_t *p)
{
    const uint8_t *q = behind_space(p, m->end);
    if (!put_same(m, p, q)) return NULL;
    if (m->old != NULL && !at_hole(m) && m->a < m->a_end && tw_json_is_space(*m->a)) return NULL; /* it had more */
    return q;
}

/* open: containers around the hole. */
static int put_hole(loom *m, int kind, uint32_t open)
{
    uint32_t room = m->aim->max_depth > open ? m->aim->max_depth - open : 0;
    if (m->n == TW_TEMPLATE_HOLES) return 0;
    m->holes[m->n].at = (uint16_t)m->len;
    m->holes[m->n].kind = (uint8_t)kind;
    m->holes[m->n].room = (uint8_t)(room < TW_TEMPLATE_DEPTH ? room : TW_TEMPLATE_DEPTH);
    m->n++;
    m->same += kind == TW_HOLE_SAME;
    return 1;
}

/* The old one has a hole of this kind here. */
static int take_hole(loom *m, int kind)
{
    if (m->old == NULL) return 1;
    if (!at_hole(m) || m->old->holes[m->h].kind != kind) return 0;
    m->h++;
    return 1;
}

/* Has the old one no hole before a? */
static int without_holes(const loom *m, const uint8_t *a)
{
    return m->h == m->old->n || m->old->bytes + m->old->holes[m->h].at >= a;
}

static void skip_old(loom *m)
{
    m->a = behind_value(m->a, m->a_end);
    while (m->h < m->old->n && m->old->bytes + m->old->holes[m->h].at < m->a) m->h++;
}

static const uint8_t *container(loom *m, const uint8_t *p, const tw_node *node, int wanted, int at, uint32_t open);

/* Does the array at p begin with a scalar? */
static int flat(const uint8_t *p, const uint8_t *end)
{
    p = behind_space(p + 1, end);
    return p < end && *p != '{' && *p != '[' && *p != ']';
}

/* One value. wanted: all of it (node NULL) or in part. at: steps of the path taken so far, or -1 off the path. */
static const uint8_t *value(loom *m, const uint8_t *p, const tw_node *node, int wanted, int at, uint32_t open)
{
    const uint8_t *q;
    int holds;
    if (p >= m->end || open > TW_TEMPLATE_DEPTH) return NULL;
    if (at == m->aim->path_len) {
        if (*p != '"' || m->found) return NULL;
        m->found = 1;
        q = behind_string(p, m->end);
        return put_same(m, p, p + 1) && take_hole(m, TW_HOLE_TEXT) && put_hole(m, TW_HOLE_TEXT, open) && put_same(m, q - 1, q) ? q : NULL;
    }
    holds = *p == '{' || *p == '[';
    if (at_hole(m)) {
        int kind = m->old->holes[m->h].kind;
        if (kind != TW_HOLE_ANY && (kind != TW_HOLE_SAME || holds)) return NULL;
        m->h++;
        return put_hole(m, kind, open) ? behind_value(p, m->end) : NULL;
    }
    if (m->old == NULL) {
        if (holds && at >= 0) return container(m, p, node, wanted, at, open);
        q = behind_value(p, m->end);
        put(m, p, q);
        return q;
    }
    if (m->a == m->a_end || *m->a == '}' || *m->a == ']') return NULL;
    if (!wanted && *p == '[' && *m->a == '[' && flat(p, m->end) && without_holes(m, behind_value(m->a, m->a_end))) {
        /* An array of scalars is one hole rather than many: its length may change. */
        const uint8_t *a = behind_value(m->a, m->a_end);
        q = behind_value(p, m->end);
        if (a - m->a == q - p && memcmp(m->a, p, (size_t)(q - p)) == 0) {
            m->a = a;
            put(m, p, q);
            return q;
        }
    } else if (holds && (*m->a == '{' || *m->a == '[')) {
        const uint8_t *a = m->a;
        uint32_t h = m->h, len = m->len, n = m->n, same = m->same;
        q = container(m, p, node, wanted, at, open);
        if (q != NULL || wanted) return q;
        m->a = a;
        m->h = h;
        m->len = len;
        m->n = n;
        m->same = same;
    } else if (!holds && *m->a != '{' && *m->a != '[') {
        const uint8_t *a = behind_value(m->a, m->a_end);
        q = behind_value(p, m->end);
        if (a - m->a == q - p && memcmp(m->a, p, (size_t)(q - p)) == 0) {
            m->a = a;
            put(m, p, q);
            return q;
        }
    } else if (wanted || behind_value(p, m->end) - p > LARGE || behind_value(m->a, m->a_end) - m->a > LARGE)
        return NULL; /* another kind of payload: as one hole, a large container would be read anew each time */
    skip_old(m);
    return put_hole(m, wanted ? TW_HOLE_SAME : TW_HOLE_ANY, open) ? behind_value(p, m->end) : NULL;
}

static const uint8_t *array(loom *m, const uint8_t *p, const tw_node *node, int wanted, int at, uint32_t open)
{
    uint32_t index = 0;
    while (p != NULL && p < m->end && *p != ']') {
        const tw_step *step = at >= 0 ? &m->aim->path[at] : NULL;
        p = value(m, p, node, wanted, step != NULL && step->name == NULL && step->index == index ? at + 1 : -1, open);
        if (p == NULL || (p = put_space(m, p)) == NULL) return NULL;
        if (p < m->end && *p == ',') {
            if (!put_same(m, p, p + 1)) return NULL;
            p = put_space(m, p + 1);
        }
        index++;
    }
    /* What the other elements say may be what the adapter went by: the path means the text only where it is alone. */
    return at >= 0 && index != 1 ? NULL : p;
}

/* A member's name and its colon. *node: what is wanted of its value; *wanted: whether any of it is; *at as in value(). */
static const uint8_t *name(loom *m, const uint8_t *p, const tw_node **node, int *wanted, int *at)
{
    const uint8_t *q = behind_string(p, m->end);
    const tw_node *all = *node;
    size_t n = (size_t)(q - p) - 2;
    int on_path = *at;
    p++;
    if (memchr(p, '\\', n) != NULL) return NULL; /* an escaped key: not worth a template */
    if (all != NULL) {
        *node = NULL;
        *wanted = 0;
        for (uint32_t i = 0; i < all->n; i++) {
            if (all->fields[i].len == n && memcmp(all->fields[i].name, p, n) == 0) {
                *wanted = 1;
                *node = all->fields[i].child;
                break;
            }
        }
    }
    *at = -1;
    if (on_path >= 0) {
        const tw_step *step = &m->aim->path[on_path];
        if (step->name != NULL && step->len == n && memcmp(step->name, p, n) == 0) *at = on_path + 1;
    }
    if (!put_same(m, p - 1, q) || (p = put_space(m, q)) == NULL || !put_same(m, p, p + 1)) return NULL;
    return put_space(m, p + 1);
}

static const uint8_t *object(loom *m, const uint8_t *p, const tw_node *all, int wanted_all, int at_all, uint32_t open)
{
    while (p != NULL && p < m->end && *p != '}') {
        const tw_node *node = all;
        const uint8_t *key = p + 1;
        int wanted = wanted_all, at = at_all;
        if (at_hole(m) || (p = name(m, p, &node, &wanted, &at)) == NULL) return NULL;
        if (open == 1 && m->aim->counter != NULL && (size_t)(p - key) > m->aim->counter_len && key[m->aim->counter_len] == '"' &&
            memcmp(key, m->aim->counter, m->aim->counter_len) == 0 && p < m->end) {
            const uint8_t *q = behind_value(p, m->end);
            uint64_t counter;
            if (behind_counter(p, m->end, &counter) == q) {
                if (!take_hole(m, TW_HOLE_COUNTER) || !put_hole(m, TW_HOLE_COUNTER, open)) return NULL;
            } else if (could_count(p, m->end) || !put_same(m, p, q))
                return NULL; /* what does not count is part of the shape: a hole of another kind would take numbers, too */
            p = q;
        } else
            p = value(m, p, node, wanted, at, open);
        if (p == NULL || (p = put_space(m, p)) == NULL) return NULL;
        if (p < m->end && *p == ',') {
            if (!put_same(m, p, p + 1)) return NULL;
            p = put_space(m, p + 1);
        }
    }
    return p;
}

static const uint8_t *container(loom *m, const uint8_t *p, const tw_node *node, int wanted, int at, uint32_t open)
{
    int is_object = *p == '{';
    if (!put_same(m, p, p + 1) || (p = put_space(m, p + 1)) == NULL) return NULL;
    p = is_object ? object(m, p, node, wanted, at, open + 1) : array(m, p, node, wanted, at, open + 1);
    return p != NULL && p < m->end && put_same(m, p, p + 1) ? p + 1 : NULL;
}

void tw_template_free(tw_template *t)
{
    free(t->bytes);
    free(t->holes);
    memset(t, 0, sizeof *t);
}

int tw_template_make(tw_template *t, const tw_template *old, const tw_aim *aim, const uint8_t *p, size_t n)
{
    loom m;
    int made;
    memset(t, 0, sizeof *t);
    if (n == 0 || n > TW_TEMPLATE_BYTES) return 0;
    m.end = p + n;
    m.old = old;
    m.a = old ? old->bytes : NULL;
    m.a_end = old ? old->bytes + old->len : NULL;
    m.aim = aim;
    m.h = m.len = m.n = m.same = 0;
    m.found = 0;
    t->bytes = m.out = (uint8_t *)TW_MALLOC(n);
    if (m.out == NULL) return -1;
    p = put_space(&m, p);
    if (p != NULL && (p = value(&m, p, aim->wanted, 1, 0, 0)) != NULL) p = put_space(&m, p);
    made = p == m.end && m.found && (old == NULL || (m.a == m.a_end && m.h == old->n));
    if (made) {
        t->holes = (tw_hole *)TW_MALLOC(m.n * sizeof *t->holes);
        if (t->holes == NULL) made = -1;
    }
    if (made != 1) {
        tw_template_free(t);
        return made;
    }
    memcpy(t->holes, m.holes, m.n * sizeof *t->holes);
    t->len = m.len;
    t->n = m.n;
    t->same = m.same;
    return 1;
}

/* -- fitting ---------------------------------------------------------------------------------------------------------- */

/* The functions below return what is behind a valid value at p, or NULL. A number may be followed by anything: what follows is
 * compared with the template. */

static TW_NOINLINE const uint8_t *any_slow(const uint8_t *p, const uint8_t *end, uint32_t room)
{
    uint8_t stack[TW_TEMPLATE_DEPTH / 8 + 1];
    tw_json j;
    tw_null sink = {0};
    tw_json_init(&j, stack, room);
    j.surrogates = TW_SURROGATES_KEEP;
    p = tw_null_run(&j, &sink, p, end);
    return j.state == ST_JSON_DONE ? p : NULL;
}

static const uint8_t *digits(const uint8_t *p, const uint8_t *end)
{
#if TW_EIGHT_DIGITS
    for (uint64_t x; end - p >= 8; p += 8) {
        memcpy(&x, p, 8);
        x = tw_other_than_digits(x ^ UINT64_C(0x3030303030303030));
        if (x) return p + (tw_ctz64(x) >> 3);
    }
#endif
    while (p < end && (uint8_t)(*p - '0') <= 9) p++;
    return p;
}

static const uint8_t *number(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q;
    if (p < end && *p == '-') p++;
    if (p < end && *p == '0')
        q = p + 1;
    else if ((q = digits(p, end)) == p)
        return NULL;
    if (q < end && *q == '.') {
        p = q + 1;
        if ((q = digits(p, end)) == p) return NULL;
    }
    if (q < end && (*q | 0x20) == 'e') {
        p = q + 1;
        if (p < end && (*p == '+' || *p == '-')) p++;
        if ((q = digits(p, end)) == p) return NULL;
    }
    return q;
}

static const uint8_t *word(const uint8_t *p, const uint8_t *end, const char *word, size_t n)
{
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static const uint8_t *scalar(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q;
    switch (*p) {
    case '"':
        q = tw_scan_plain(p + 1, end);
        return q < end && *q == '"' ? q + 1 : any_slow(p, end, 0);
    case 'n': return word(p, end, "null", 4);
    case 't': return word(p, end, "true", 4);
    case 'f': return word(p, end, "false", 5);
    default: return number(p, end);
    }
}

/* An array of numbers without white space (the bytes of a token), or NULL for anything else. */
static const uint8_t *numbers(const uint8_t *p, const uint8_t *end)
{
    do {
        p = number(p + 1, end);
    } while (p != NULL && p < end && *p == ',');
    return p != NULL && p < end && *p == ']' ? p + 1 : NULL;
}

static const uint8_t *any(const uint8_t *p, const uint8_t *end, uint32_t room)
{
    const uint8_t *q;
    if (*p != '{' && *p != '[') return scalar(p, end);
    if (*p == '[' && room && (q = numbers(p, end)) != NULL) return q;
    return any_slow(p, end, room);
}

int tw_template_fit(const tw_template *t, const tw_span *same, tw_span *found, const uint8_t *p, size_t n, tw_fit *fit)
{
    const uint8_t *q = p, *const end = p + n, *r;
    uint32_t at = 0;
    fit->has_counter = 0;
    for (const tw_hole *h = t->holes, *last = h + t->n; h < last; h++) {
        size_t fixed = h->at - at;
        if ((size_t)(end - q) <= fixed || memcmp(q, t->bytes + at, fixed) != 0) return 0;
        q += fixed;
        at = h->at;
        switch (h->kind) {
        case TW_HOLE_TEXT:
            fit->form = TW_TEXT_PLAIN;
            r = tw_scan_plain(q, end);
            while (end - r > 2 && *r == '\\' && tw_short_escape(r[1])) {
                fit->form = TW_TEXT_SHORT_ESCAPES;
                r = tw_scan_plain(r + 2, end);
            }
            if (r == end) return 0;
            if (*r != '"') {
                fit->form = TW_TEXT_ANY;
                r = any_slow(q - 1, end, 0);
                if (r == NULL) return 0;
                r--;
            }
            fit->text.p = q;
            fit->text.n = (size_t)(r - q);
            break;
        case TW_HOLE_COUNTER:
            r = behind_counter(q, end, &fit->counter);
            if (r == NULL) return 0;
            fit->has_counter = 1;
            break;
        case TW_HOLE_SAME:
            if (same != NULL) {
                if ((size_t)(end - q) < same->n || memcmp(q, same->p, same->n) != 0) return 0;
                r = q + same->n;
                same++;
            } else {
                r = scalar(q, end);
                if (r == NULL) return 0;
                found->p = q;
                found->n = (size_t)(r - q);
                found++;
            }
            break;
        default:
            r = any(q, end, h->room);
            if (r == NULL) return 0;
        }
        q = r;
    }
    return (size_t)(end - q) == t->len - at && memcmp(q, t->bytes + at, t->len - at) == 0;
}
