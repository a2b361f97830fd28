/* Templates: what fits one is valid, holds the same where something is wanted, and is read without a byte too many.
 *
 * Every document lies in memory of exactly its size, for the address sanitizer. Documents are changed at random: bytes replaced,
 * left out, put in, pieces of other documents put in their place.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int allocations_left = -1; /* -1: as many as are asked for */
static void *test_malloc(size_t n)
{
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return malloc(n ? n : 1);
}
#define TW_MALLOC test_malloc
#include "../../src/toolwire/_core/tw_template.c"

static int passed, failed;
static int escaped_keys; /* documents may have them */

static void check(int ok, const char *what, const uint8_t *p, size_t n)
{
    if (ok) {
        passed++;
        return;
    }
    failed++;
    if (failed < 20) printf("FAILED %s: %.*s\n", what, (int)n, (const char *)p);
    fflush(stdout);
}

static uint32_t seed = 20240607;
static uint32_t rnd(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed % n;
}

/* {"choices": {"index": all, "delta": {"text": all}}, "kind": all}, the text at choices[0].delta.text, the counter "n". */
static tw_field delta_fields[] = {{"text", 4, NULL, NULL}};
static tw_node delta = {delta_fields, 1};
static tw_field choice_fields[] = {{"index", 5, NULL, NULL}, {"delta", 5, NULL, &delta}};
static tw_node choice = {choice_fields, 2};
static tw_field root_fields[] = {{"choices", 7, NULL, &choice}, {"kind", 4, NULL, NULL}, {"n", 1, NULL, NULL}};
static tw_node root = {root_fields, 3};
static const tw_step path[] = {{"choices", 7, 0}, {NULL, 0, 0}, {"delta", 5, 0}, {"text", 4, 0}};
static const tw_aim aim = {&root, path, 4, "n", 1, 64};

static const char *const documents[] = {
    "{\"id\":\"a\",\"n\":1,\"kind\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"text\":\"one\"},\"why\":null}],\"more\":{\"p\":[1,2,3],\"q\":\"z\"}}",
    "{\"id\":\"b\",\"n\":2,\"kind\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"text\":\"\"},\"why\":null}],\"more\":{\"p\":[1,2],\"q\":\"z\"}}",
    "{\"id\":\"c\",\"n\":30,\"kind\":\"y\",\"choices\":[{\"index\":1,\"delta\":{\"text\":\"\\u00e9 \\\"q\\\"\"},\"why\":\"k\"}],\"more\":{\"p\":[{\"r\":-1.5e3}],\"q\":\"\"}}",
    "{\"id\":\"d\",\"n\":4,\"kind\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"text\":\"caf\xC3\xA9\"},\"why\":true}],\"more\":[[],{}]}",
    "{ \"kind\" : null , \"choices\" : [ { \"delta\" : { \"text\" : \"sp ace\" } } ] }",
    "{ \"kind\" : 7 , \"choices\" : [ { \"delta\" : { \"text\" : \"sp\" } } ] }",
};
#define DOCUMENTS (sizeof documents / sizeof *documents)

static uint8_t *exact(const uint8_t *p, size_t n)
{
    uint8_t *q = (uint8_t *)malloc(n ? n : 1);
    memcpy(q, p, n);
    return q;
}

static int valid(const uint8_t *p, size_t n)
{
    uint8_t stack[64 / 8 + 1];
    tw_json j;
    tw_null sink = {0};
    tw_json_init(&j, stack, 64);
    j.surrogates = TW_SURROGATES_KEEP;
    const uint8_t *q = tw_null_run(&j, &sink, p, p + n);
    return j.state == ST_JSON_DONE && behind_space(q, p + n) == p + n;
}

static int fits(const tw_template *t, const tw_span *same, const uint8_t *p, size_t n)
{
    tw_fit fit;
    tw_span found[TW_TEMPLATE_HOLES];
    int ok = tw_template_fit(t, same, found, p, n, &fit);
    if (!ok) return 0;
    check(valid(p, n), "what fits is valid", p, n);
    check(fit.text.p > p && fit.text.p[-1] == '"' && fit.text.p + fit.text.n < p + n && fit.text.p[fit.text.n] == '"', "the text is in its quotes", p, n);
    check(fit.form != TW_TEXT_PLAIN || tw_scan_plain(fit.text.p, fit.text.p + fit.text.n) == fit.text.p + fit.text.n, "plain text is plain", p, n);
    if (same == NULL)
        for (uint32_t i = 0; i < t->same; i++) check(found[i].n && found[i].p >= p && found[i].p + found[i].n < p + n, "a value that was found", p, n);
    /* It makes the same template again, so it differs in the holes only. (An object with an escape in a key becomes a hole.) */
    if (!escaped_keys || memchr(p, '\\', n) == NULL) {
        tw_template again;
        check(tw_template_make(&again, t, &aim, p, n) == 1 && again.len == t->len && again.n == t->n && memcmp(again.bytes, t->bytes, t->len) == 0 &&
                  memcmp(again.holes, t->holes, t->n * sizeof *t->holes) == 0,
              "what fits changes nothing", p, n);
        tw_template_free(&again);
    }
    return 1;
}

static void mutate(const tw_template *t, const tw_span *same, const char *document)
{
    uint8_t work[1024];
    size_t n = strlen(document);
    memcpy(work, document, n);
    for (uint32_t k = 0, edits = 1 + rnd(3); k < edits; k++) {
        static const char some[] = "\"\\,:{}[]0123456789eE.+-tfn \n\x01\x7f\x80\xC3\xE2\xF0";
        size_t at = rnd((uint32_t)n);
        switch (rnd(4)) {
        case 0: work[at] = (uint8_t)some[rnd(sizeof some - 1)]; break;
        case 1: memmove(work + at, work + at + 1, n - at - 1); n--; break;
        case 2: memmove(work + at + 1, work + at, n - at); work[at] = (uint8_t)some[rnd(sizeof some - 1)]; n++; break;
        default: {
            const char *other = documents[rnd(DOCUMENTS)];
            size_t from = rnd((uint32_t)strlen(other)), len = 1 + rnd(12);
            if (from + len > strlen(other)) len = strlen(other) - from;
            if (at + len > n) len = n - at;
            memcpy(work + at, other + from, len);
        }
        }
    }
    uint8_t *p = exact(work, n);
    fits(t, same, p, n);
    free(p);
}

/* Before a page that may not be touched: documents as a whole, every beginning of them, and what a trial run (tw_trial.h) says of every
 * rest of one, which has to be what comes. */
static void before_a_guard_page(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *mem = mmap(NULL, page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end = mem + page;
    if (mem == MAP_FAILED || mprotect(end, page, PROT_NONE)) abort();
    for (size_t i = 0; i < DOCUMENTS; i++) {
        const uint8_t *a = (const uint8_t *)documents[i];
        size_t n = strlen(documents[i]);
        tw_template one, both;
        tw_fit fit;
        memcpy(end - n, a, n);
        check(tw_template_make(&one, NULL, &aim, end - n, n) == 1, "made at the end of a page", a, n);
        check(tw_template_make(&both, &one, &aim, end - n, n) == 1, "made of two at the end of a page", a, n);
        for (size_t cut = 0; cut <= n; cut++) {
            tw_span found[TW_TEMPLATE_HOLES];
            uint8_t stack[64 / 8 + 1];
            tw_json j;
            tw_null sink = {0};
            memcpy(end - cut, a, cut);
            check(tw_template_fit(&one, NULL, found, end - cut, cut, &fit) == (cut == n), "a beginning at the end of a page", a, cut);
            tw_json_init(&j, stack, 64);
            tw_null_run(&j, &sink, end - cut, end);
            memcpy(end - (n - cut), a + cut, n - cut);
            check(tw_json_rejects(&j, end - (n - cut), n - cut) == 0, "the rest of a document is not rejected", a + cut, n - cut);
            if (cut < n) {
                end[-1] = 0x01;
                check(tw_json_rejects(&j, end - (n - cut), n - cut) == 1, "the rest of a document with a wrong end is rejected", a + cut, n - cut);
            }
        }
        tw_template_free(&one);
        tw_template_free(&both);
    }
    munmap(mem, page * 2);
}

/* What nobody reads, with containers and scalars in each other's place: what fits a template of two may be any third. */
static void changing_shapes(void)
{
    static const char *const some[] = {"1", "[]", "{}", "[[1],5]", "[[2],5]", "[7,5]", "[1,[5]]", "[{\"a\":1}]", "[{\"a\":[1,2]}]", "{\"a\":[]}", "{\"a\":[[],3]}"};
    const size_t n = sizeof some / sizeof *some;
    char text[3][128];
    for (size_t i = 0; i < n * n * n; i++) {
        size_t which[3] = {i % n, i / n % n, i / n / n};
        tw_template one, both;
        for (int k = 0; k < 3; k++)
            snprintf(text[k], sizeof text[k], "{\"m\":%s,\"choices\":[{\"delta\":{\"text\":\"t\"}}]}", some[which[k]]);
        check(tw_template_make(&one, NULL, &aim, (const uint8_t *)text[0], strlen(text[0])) == 1, "made", (const uint8_t *)text[0], strlen(text[0]));
        if (tw_template_make(&both, &one, &aim, (const uint8_t *)text[1], strlen(text[1])) == 1) {
            check(fits(&both, NULL, (const uint8_t *)text[0], strlen(text[0])), "the first fits", (const uint8_t *)text[0], strlen(text[0]));
            check(fits(&both, NULL, (const uint8_t *)text[1], strlen(text[1])), "the second fits", (const uint8_t *)text[1], strlen(text[1]));
            fits(&both, NULL, (const uint8_t *)text[2], strlen(text[2]));
        } else
            check(0, "made of two", (const uint8_t *)text[1], strlen(text[1]));
        tw_template_free(&both);
        tw_template_free(&one);
    }
}

int main(void)
{
    size_t i, j, k;
    before_a_guard_page();
    changing_shapes();
    for (i = 0; i < DOCUMENTS; i++) {
        const uint8_t *a = (const uint8_t *)documents[i];
        size_t an = strlen(documents[i]);
        tw_template one;
        uint8_t *own = exact(a, an);
        check(tw_template_make(&one, NULL, &aim, own, an) == 1, "a document makes a template", a, an);
        check(fits(&one, NULL, own, an), "a document fits its own template", a, an);
        free(own);
        for (k = 0; k < 20000; k++) mutate(&one, NULL, documents[i]);
        for (size_t cut = 0; cut < an; cut++) {
            own = exact(a, cut);
            check(!fits(&one, NULL, own, cut), "a beginning does not fit", a, cut);
            free(own);
        }
        for (j = 0; j < DOCUMENTS; j++) {
            const uint8_t *b = (const uint8_t *)documents[j];
            size_t bn = strlen(documents[j]);
            tw_template both;
            int made = tw_template_make(&both, &one, &aim, b, bn);
            int alike = (i < 4) == (j < 4);
            check(made == alike, "documents of one shape make a template together", b, bn);
            if (made == 1) {
                tw_span found[TW_TEMPLATE_HOLES];
                tw_fit fit;
                uint8_t *p = exact(b, bn), *q = exact(a, an);
                check(tw_template_fit(&both, NULL, found, p, bn, &fit), "the second fits", b, bn);
                check(fits(&both, found, p, bn), "the second fits with its own values", b, bn);
                check(fits(&both, NULL, q, an), "the first fits still", a, an);
                check(fits(&both, found, q, an) == (i == j || (i < 4 && (i == 2) == (j == 2))),
                      "a wanted value that differs does not fit", a, an);
                for (k = 0; k < 5000; k++) mutate(&both, rnd(2) ? found : NULL, documents[rnd(2) ? i : j]);
                free(p);
                free(q);
            }
            tw_template_free(&both);
        }
        tw_template_free(&one);
    }
    /* What does not lend itself. */
    {
        static const char *const none[] = {
            "[]", "1", "{}", "{\"choices\":[]}", "{\"choices\":[{\"delta\":{\"text\":1}}]}", "{\"choices\":[{\"delta\":{\"text\":\"a\",\"text\":\"b\"}}]}",
            "{\"choices\":[{\"delta\":{\"text\":\"a\"}},{}]}", "{\"choices\":[{\"delta\":{\"te\\u0078t\":\"a\"}}]}",
            "{\"n\":1.5,\"choices\":[{\"delta\":{\"text\":\"a\"}}]}", "{\"n\":1234567890123456789,\"choices\":[{\"delta\":{\"text\":\"a\"}}]}",
        };
        for (i = 0; i < sizeof none / sizeof *none; i++) {
            tw_template t;
            check(tw_template_make(&t, NULL, &aim, (const uint8_t *)none[i], strlen(none[i])) == 0, "no template", (const uint8_t *)none[i], strlen(none[i]));
        }
    }
    for (allocations_left = 0; allocations_left < 2;) {
        int left = allocations_left;
        tw_template t;
        check(tw_template_make(&t, NULL, &aim, (const uint8_t *)documents[0], strlen(documents[0])) == -1 && t.bytes == NULL && t.holes == NULL, "no memory", (const uint8_t *)"", 0);
        allocations_left = left + 1;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
