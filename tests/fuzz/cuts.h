/* What the fuzz targets share: the input says how it is cut. */
#ifndef CUTS_H
#define CUTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A byte of options, one with the number of cuts (mod 16), a byte for the length of each chunk but the last, the document. */
typedef struct plan {
    unsigned options;
    size_t cuts[16], n_cuts; /* places in the document, ascending */
    const uint8_t *p;
    size_t n;
} plan;

static inline int read_plan(plan *plan, const uint8_t *data, size_t size)
{
    size_t at = 0;
    if (size < 2 || size - 2 < (data[1] & 15)) return 0;
    plan->options = data[0];
    plan->n_cuts = data[1] & 15;
    plan->p = data + 2 + plan->n_cuts;
    plan->n = size - 2 - plan->n_cuts;
    for (size_t i = 0; i < plan->n_cuts; i++) {
        at += data[2 + i];
        plan->cuts[i] = at < plan->n ? at : plan->n;
    }
    return 1;
}

static inline void demand(int ok, const char *what)
{
    if (ok) return;
    fflush(stdout);
    fprintf(stderr, "FOUND: %s\n", what);
    abort();
}

static inline void demand_same(const char *what, const void *a, size_t a_len, const void *b, size_t b_len)
{
    if (a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0)) return;
    fprintf(stderr, "  one   %.*s\n  other %.*s\n", (int)a_len, (const char *)a, (int)b_len, (const char *)b);
    demand(0, what);
}

#endif
