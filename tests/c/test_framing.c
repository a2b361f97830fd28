/* The framers without Python: every case whole, byte by byte and at every single cut, with each chunk at the end of a page
 * that a no-access page follows, so that an over-read of one byte crashes; and with an allocator that fails.
 *
 *   gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined [-DTW_NO_SIMD] -o t tests/c/test_framing.c
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long alloc_countdown = -1; /* the n-th allocation from now fails; -1: none does */
static size_t alloc_peak, alloc_calls;

static void *test_realloc(void *p, size_t n)
{
    if (alloc_countdown >= 0 && alloc_countdown-- == 0) return NULL;
    alloc_calls++;
    if (n > alloc_peak) alloc_peak = n;
    return realloc(p, n);
}
#define TW_REALLOC test_realloc
#define BOM BOM_SSE
#define fail fail_sse
#include "../../src/toolwire/_core/tw_sse.c"
#undef BOM
#undef fail
#define BOM BOM_LINES
#define fail fail_lines
#define hold_line hold_line_lines
#define read_bom read_bom_lines
#include "../../src/toolwire/_core/tw_lines.c"
#undef BOM
#undef fail
#define put put_array
#include "../../src/toolwire/_core/tw_array.c"
#include "../../src/toolwire/_core/tw_wellformed.h"

static int passed, failed;

static void check(int ok, const char *what, const char *where)
{
    if (ok) {
        passed++;
    } else {
        failed++;
        printf("FAILED %s: %s\n", what, where);
    }
}

/* ---- a log of what came out ---- */

typedef struct log {
    char *p;
    size_t len, cap;
} log_;

static void put_bytes(log_ *l, const void *p, size_t n)
{
    if (l->len + n + 1 > l->cap) {
        l->cap = (l->len + n + 1) * 2;
        l->p = realloc(l->p, l->cap);
        if (!l->p) abort();
    }
    if (n) memcpy(l->p + l->len, p, n);
    l->len += n;
    l->p[l->len] = 0;
}

static void put_text(log_ *l, const char *s) { put_bytes(l, s, strlen(s)); }

static int log_places; /* the payload's place, too */

static void put_frame(log_ *l, const tw_frame *f)
{
    char head[96];
    snprintf(head, sizeof head, "%s@%llu ", f->kind == TW_FRAME_STRAY ? "stray" : f->terminated ? "frame" : "open",
             (unsigned long long)f->offset);
    put_text(l, head);
    if (log_places) {
        snprintf(head, sizeof head, "+%llu ", (unsigned long long)(f->data_offset - f->offset));
        put_text(l, head);
    }
    if (f->event_len) {
        put_text(l, "<");
        put_bytes(l, f->event, f->event_len);
        put_text(l, ">");
    }
    if (f->id_len) {
        put_text(l, "#");
        put_bytes(l, f->id, f->id_len);
        put_text(l, " ");
    }
    put_bytes(l, f->data, f->data_len);
    put_text(l, "|");
}

static void put_end(log_ *l, const char *state, int error, uint64_t error_offset, uint64_t offset)
{
    char text[96];
    snprintf(text, sizeof text, "%s error=%d@%llu offset=%llu", state, error, (unsigned long long)(error ? error_offset : 0),
             (unsigned long long)offset);
    put_text(l, text);
}

/* ---- the three machines under one face ---- */

enum which { SSE, SSE_STRAY, LINES, ARRAY };

typedef struct machine {
    enum which which;
    tw_sse sse;
    tw_lines lines;
    tw_array array;
} machine;

static void m_init(machine *m, enum which which, size_t max)
{
    m->which = which;
    tw_sse_init(&m->sse, max, which == SSE_STRAY);
    tw_lines_init(&m->lines, max);
    tw_array_init(&m->array, max);
}

static void m_free(machine *m)
{
    tw_sse_free(&m->sse);
    tw_lines_free(&m->lines);
    tw_array_free(&m->array);
}

static void m_feed(machine *m, const uint8_t *p, size_t n)
{
    if (m->which <= SSE_STRAY) tw_sse_feed(&m->sse, p, n);
    if (m->which == LINES) tw_lines_feed(&m->lines, p, n);
    if (m->which == ARRAY) tw_array_feed(&m->array, p, n);
}

static int m_next(machine *m, tw_frame *f, int flush)
{
    if (m->which == LINES) return flush ? tw_lines_flush(&m->lines, f) : tw_lines_next(&m->lines, f);
    if (m->which == ARRAY) return flush ? tw_array_flush(&m->array, f) : tw_array_next(&m->array, f);
    return flush ? tw_sse_flush(&m->sse, f) : tw_sse_next(&m->sse, f);
}

/* The page before the guard page. A chunk is put so that it ends where the guard begins, and wiped when it is used up: a
 * machine that kept a pointer into it hands out rubbish. */
static uint8_t *guard;
static size_t room;

static void open_guard(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p;
    room = (bytes + page - 1) / page * page;
    p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + room, page, PROT_NONE)) abort();
    guard = p + room;
}

static void feed(machine *m, log_ *l, const uint8_t *p, size_t n)
{
    tw_frame f;
    int got;
    if (n == 0) return;
    memcpy(guard - n, p, n);
    m_feed(m, guard - n, n);
    while ((got = m_next(m, &f, 0)) > 0) put_frame(l, &f);
    memset(guard - n, '~', n);
}

static void finish(machine *m, log_ *l)
{
    tw_frame f;
    char state[64];
    if (m->which <= SSE_STRAY) {
        size_t n;
        snprintf(state, sizeof state, "in_frame=%d retry=", tw_sse_in_frame(&m->sse));
        put_text(l, state);
        put_bytes(l, m->sse.retry, m->sse.retry_len);
        put_text(l, " last=");
        n = m->sse.last_id.len;
        put_bytes(l, m->sse.last_id.p, n);
        put_end(l, "", m->sse.error, m->sse.error_offset, m->sse.base);
    } else if (m->which == LINES) {
        snprintf(state, sizeof state, "in_frame=%d", tw_lines_in_frame(&m->lines));
        put_end(l, state, m->lines.error, m->lines.error_offset, m->lines.base);
    } else {
        snprintf(state, sizeof state, "in_frame=%d closed=%d", tw_array_in_frame(&m->array), m->array.closed);
        put_end(l, state, m->array.error, m->array.error_offset, m->array.base);
    }
    put_text(l, " ");
    while (m_next(m, &f, 1) > 0) put_frame(l, &f);
}

static void run(enum which which, size_t max, const uint8_t *p, size_t n, const size_t *cuts, size_t n_cuts, log_ *l)
{
    machine m;
    size_t at = 0;
    m_init(&m, which, max);
    l->len = 0;
    for (size_t i = 0; i < n_cuts; i++) {
        feed(&m, l, p + at, cuts[i] - at);
        at = cuts[i];
    }
    feed(&m, l, p + at, n - at);
    finish(&m, l);
    m_free(&m);
}

static int same(const log_ *a, const log_ *b) { return a->len == b->len && memcmp(a->p, b->p, a->len) == 0; }

static void every_cut(enum which which, size_t max, const uint8_t *p, size_t n, const char *expected, const char *name)
{
    log_ whole = {0}, cut = {0};
    size_t *each = calloc(n + 1, sizeof *each), rest = 12345;
    run(which, max, p, n, NULL, 0, &whole);
    if (expected && strcmp(whole.p, expected)) {
        printf("  got      %s\n  expected %s\n", whole.p, expected);
        check(0, name, "whole");
    } else
        check(1, name, "whole");
    for (size_t i = 1; i < n; i++) each[i - 1] = i;
    run(which, max, p, n, each, n ? n - 1 : 0, &cut);
    check(same(&whole, &cut), name, "byte by byte");
    for (size_t i = 1; i < n; i++) {
        run(which, max, p, n, &i, 1, &cut);
        if (!same(&whole, &cut)) {
            char where[40];
            snprintf(where, sizeof where, "cut at %zu", i);
            printf("  max %zu whole %s\n  cut   %s\n", max, whole.p, cut.p);
            check(0, name, where);
        }
    }
    passed++;
    for (int round = 0; round < 20; round++) {
        size_t k = 0;
        for (size_t i = 1; i < n; i++) {
            rest = rest * 1103515245u + 12345u;
            if ((rest >> 16) % 5 == 0) each[k++] = i;
        }
        run(which, max, p, n, each, k, &cut);
        check(same(&whole, &cut), name, "random cuts");
    }
    free(each);
    free(whole.p);
    free(cut.p);
}

/* ---- cases ---- */

typedef struct tcase {
    enum which which;
    size_t max;
    const char *name, *input;
    size_t len;
    const char *expected;
} tcase;

#define CASE(which, max, name, input, expected) {which, max, name, input, sizeof(input) - 1, expected}
#define BIG 1000

static const tcase CASES[] = {
    CASE(SSE, BIG, "nothing", "", "in_frame=0 retry= last= error=0@0 offset=0 "),
    CASE(SSE, BIG, "one event", "data: x\n\n", "frame@0 x|in_frame=0 retry= last= error=0@0 offset=9 "),
    CASE(SSE, BIG, "cr", "data: x\rdata:y\r\r", "frame@0 x\ny|in_frame=0 retry= last= error=0@0 offset=16 "),
    CASE(SSE, BIG, "crlf", "data: x\r\ndata:  y\r\n\r\n", "frame@0 x\n y|in_frame=0 retry= last= error=0@0 offset=21 "),
    CASE(SSE, BIG, "mixed ends", "data:a\n\rdata:b\r\n\ndata:c\r\rdata:d\r\n\r\n",
         "frame@0 a|frame@8 b|frame@17 c|frame@25 d|in_frame=0 retry= last= error=0@0 offset=35 "),
    CASE(SSE, BIG, "lf cr is two ends", "data:a\n\r\ndata:b\n\n", "frame@0 a|frame@9 b|in_frame=0 retry= last= error=0@0 offset=17 "),
    CASE(SSE, BIG, "bom", "\xEF\xBB\xBF" "data:1\n\n\xEF\xBB\xBF" "data:2\n\ndata:3\n\n",
         "frame@3 1|frame@22 3|in_frame=0 retry= last= error=0@0 offset=30 "),
    CASE(SSE_STRAY, BIG, "two boms", "\xEF\xBB\xBF\xEF\xBB\xBF" "data:1\n\n",
         "stray@3 \xEF\xBB\xBF" "data:1|in_frame=0 retry= last= error=0@0 offset=14 "),
    CASE(SSE_STRAY, BIG, "almost a bom", "\xEF\xBB" "data:1\n\ndata:2\n\n",
         "stray@0 \xEF\xBB" "data:1|frame@10 2|in_frame=0 retry= last= error=0@0 offset=18 "),
    CASE(SSE, BIG, "bom alone", "\xEF\xBB\xBF", "in_frame=0 retry= last= error=0@0 offset=3 "),
    CASE(SSE_STRAY, BIG, "half a bom", "\xEF\xBB", "in_frame=1 retry= last= error=0@0 offset=2 stray@0 \xEF\xBB|"),
    CASE(SSE, BIG, "comments", ":\n: data: no\ndata: yes\n:x\ndata: more\n\n:", "frame@13 yes\nmore|in_frame=0 retry= last= error=0@0 offset=39 "),
    CASE(SSE, BIG, "names", "event: a\nevent: b\ndata: 1\n\ndata: 2\n\nevent:c\nevent\ndata:3\n\nevent:d\n\ndata:4\n\n",
         "frame@0 <b>1|frame@27 2|frame@36 3|frame@67 4|in_frame=0 retry= last= error=0@0 offset=75 "),
    CASE(SSE, BIG, "ids", "id: 1\ndata:a\n\ndata:b\n\nid: 2\n\ndata:c\n\nid\ndata:d\n\nid:9\nid:b\0d\ndata:e\n\nid: z\ndata:f",
         "frame@0 #1 a|frame@14 #1 b|frame@29 #2 c|frame@37 d|frame@48 #9 e|in_frame=1 retry= last=9 error=0@0 offset=80 open@68 #z f|"),
    CASE(SSE, BIG, "retry", "retry: 1500\n\nretry: 12x\nretry: -5\nretry:\nretry: 1 \ndata: x\n\nretry: 7",
         "frame@13 x|in_frame=1 retry=1500 last= error=0@0 offset=68 "),
    CASE(SSE, BIG, "retry too large", "retry: 000099999999999999999999999999999\n", "in_frame=1 retry=99999999999999999999999999999 last= error=0@0 offset=41 "),
    CASE(SSE, BIG, "empty data", "data\n\ndata:\n\ndata\ndata\n\nevent: x\n\n", "frame@0 |frame@6 |frame@13 \n|in_frame=0 retry= last= error=0@0 offset=34 "),
    CASE(SSE, BIG, "not quite fields", "dat: 1\ndatas: 2\n data: 3\ndata : 4\nDATA: 5\nevents: x\nid2: 3\nda\n\n",
         "in_frame=0 retry= last= error=0@0 offset=63 "),
    CASE(SSE_STRAY, BIG, "stray", "data: 1\n{\"error\":\r\n1}\ndata: 2\n\nid: 4\nx\ndata: 3\n\ny",
         "stray@8 {\"error\":|stray@19 1}|frame@0 1\n2|stray@37 x|frame@31 #4 3|in_frame=1 retry= last=4 error=0@0 offset=49 stray@48 #4 y|"),
    CASE(SSE, BIG, "stray off", "{}\n\n{}", "in_frame=1 retry= last= error=0@0 offset=6 "),
    CASE(SSE_STRAY, BIG, "stray in an open block", "data: 1\nz", "in_frame=1 retry= last= error=0@0 offset=9 stray@8 z|open@0 1|"),
    CASE(SSE, BIG, "no blank line", "data: 1\n", "in_frame=1 retry= last= error=0@0 offset=8 open@0 1|"),
    CASE(SSE, BIG, "no line end", "data: 1\n\nevent: e\ndata: 2", "frame@0 1|in_frame=1 retry= last= error=0@0 offset=25 open@9 <e>2|"),
    CASE(SSE, BIG, "long line",
         "data: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n\n",
         "frame@0 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef|"
         "in_frame=0 retry= last= error=0@0 offset=104 "),
    CASE(SSE, 10, "limit reached", "data: 1234\n\n:comments are longer\ndata:1\ndata\n\n",
         "frame@0 1234|frame@33 1\n|in_frame=0 retry= last= error=0@0 offset=46 "),
    CASE(SSE, 10, "line too long", "data: 1\n\ndata: 12345\n\n", "frame@0 1|in_frame=1 retry= last= error=14@19 offset=19 "),
    CASE(SSE, 10, "unfinished line too long", "data: 12345", "in_frame=1 retry= last= error=14@10 offset=10 "),
    CASE(SSE, 10, "block too long", "data:12\ndata\n\n", "in_frame=1 retry= last= error=14@11 offset=11 "),
    CASE(SSE, 10, "name flood", "event:a\nevent:b\n", "in_frame=1 retry= last= error=14@11 offset=11 "),
    CASE(SSE, 10, "id flood", "id:a\nid:b\nid:c\n", "in_frame=1 retry= last= error=14@12 offset=12 "),
    CASE(SSE, 10, "unknown lines do not add up", "xxxxxxxx\nxxxxxxxx\nxxxxxxxx\ndata:1\n\n", "frame@27 1|in_frame=0 retry= last= error=0@0 offset=35 "),
    CASE(SSE, 1, "almost a bom against the limit", "\xEF\xBB" "d", "in_frame=1 retry= last= error=14@1 offset=1 "),

    CASE(LINES, BIG, "lines", "{\"a\":1}\n\n[2]\r\n \t\r\n 3 \n4", "frame@0 {\"a\":1}|frame@9 [2]|frame@18  3 |in_frame=1 error=0@0 offset=23 open@22 4|"),
    CASE(LINES, BIG, "lines with bom", "\xEF\xBB\xBF{}\n", "frame@3 {}|in_frame=0 error=0@0 offset=6 "),
    CASE(LINES, BIG, "lines with half a bom", "\xEF\xBB{}\n", "frame@0 \xEF\xBB{}|in_frame=0 error=0@0 offset=5 "),
    CASE(LINES, BIG, "cr ends no line", "1\r2\r\r\n3\r", "frame@0 1\r2\r|in_frame=1 error=0@0 offset=8 open@6 3|"),
    CASE(LINES, BIG, "white space at the end", "1\n  ", "frame@0 1|in_frame=0 error=0@0 offset=4 "),
    CASE(LINES, 4, "line limit", "1234\n123\r\n12345\n", "frame@0 1234|frame@5 123|in_frame=1 error=14@14 offset=14 "),

    CASE(ARRAY, BIG, "empty array", " [ ] \n", "in_frame=0 closed=1 error=0@0 offset=6 "),
    CASE(ARRAY, BIG, "array", "[{\"a\":[1,\"}\\\"]\"]}\n,\r\n{}\t,[[]],\"x\\\\\",-1.5e+3 ,true,null]",
         "frame@1 {\"a\":[1,\"}\\\"]\"]}|frame@21 {}|frame@25 [[]]|frame@30 \"x\\\\\"|frame@36 -1.5e+3|frame@45 true|frame@50 null|"
         "in_frame=0 closed=1 error=0@0 offset=55 "),
    CASE(ARRAY, BIG, "array with bom", "\xEF\xBB\xBF[1]", "frame@4 1|in_frame=0 closed=1 error=0@0 offset=6 "),
    CASE(ARRAY, BIG, "array with half a bom", "\xEF\xBB[1]", "in_frame=0 closed=0 error=1@2 offset=2 "),
    CASE(ARRAY, BIG, "no array", "{\"error\":1}", "in_frame=0 closed=0 error=1@0 offset=0 "),
    CASE(ARRAY, BIG, "array not closed", "[{\"a\":1}", "frame@1 {\"a\":1}|in_frame=0 closed=0 error=0@0 offset=8 "),
    CASE(ARRAY, BIG, "element not closed", "[1,{\"a\":\"\\", "frame@1 1|in_frame=1 closed=0 error=0@0 offset=10 open@3 {\"a\":\"\\|"),
    CASE(ARRAY, BIG, "scalar not closed", "[12", "in_frame=1 closed=0 error=0@0 offset=3 open@1 12|"),
    CASE(ARRAY, BIG, "two commas", "[1,,2]", "frame@1 1|in_frame=0 closed=0 error=1@3 offset=3 "),
    CASE(ARRAY, BIG, "comma before end", "[1,]", "frame@1 1|in_frame=0 closed=0 error=1@3 offset=3 "),
    CASE(ARRAY, BIG, "leading comma", "[,1]", "in_frame=0 closed=0 error=1@1 offset=1 "),
    CASE(ARRAY, BIG, "no comma", "[{} {}]", "frame@1 {}|in_frame=0 closed=0 error=1@4 offset=4 "),
    CASE(ARRAY, BIG, "scalar runs into a string", "[1\"a\"]", "in_frame=0 closed=0 error=1@2 offset=2 "),
    CASE(ARRAY, BIG, "trailing", "[1] x", "frame@1 1|in_frame=0 closed=1 error=9@4 offset=4 "),
    CASE(ARRAY, BIG, "no element", "[x]", "in_frame=0 closed=0 error=1@1 offset=1 "),
    CASE(ARRAY, 5, "element limit", "[\"123\",[1,2],12345,{\"a\":1}]", "frame@1 \"123\"|frame@7 [1,2]|frame@13 12345|in_frame=1 closed=0 error=14@24 offset=24 "),
    CASE(ARRAY, 3, "limit before a bad byte", "[1234\"]", "in_frame=1 closed=0 error=14@4 offset=4 "),
    CASE(ARRAY, 4, "bad byte at the limit", "[1234\"]", "in_frame=0 closed=0 error=1@5 offset=5 "),
    CASE(ARRAY, BIG, "long strings", "[\"0123456789abcdef0123456789abcde\\\"f0123456789\",{\"k\":\"0123456789abcdef0123456789abcdef\\\\\"}]",
         "frame@1 \"0123456789abcdef0123456789abcde\\\"f0123456789\"|frame@48 {\"k\":\"0123456789abcdef0123456789abcdef\\\\\"}|"
         "in_frame=0 closed=1 error=0@0 offset=91 "),
};

/* Small documents made of the pieces that matter: only the cuts are compared. */
static const char *const SSE_PIECES[] = {"data:", "data", "event:", "id:", "retry:", "7", " ", "x", ":", "\n", "\n\n", "\r", "\r\n", "\xEF\xBB\xBF", "\xEF", NULL};
static const char *const LINE_PIECES[] = {"1", " ", "\r", "\n", "\n", "\r\n", "\xEF\xBB\xBF", "\xEF\xBB", NULL};
static const char *const ARRAY_PIECES[] = {"[", "[", "{", "}", "]", ",", ",", "\"", "\"a\"", "\\", "12", " ", NULL};

static void random_documents(enum which which, const char *const *pieces, int rounds)
{
    uint64_t seed = 88172645463325252u + (uint64_t)which;
    size_t n_pieces = 0;
    char doc[64];
    while (pieces[n_pieces]) n_pieces++;
    for (int round = 0; round < rounds; round++) {
        size_t n = 0, wanted = 1 + (size_t)round % 48;
        if (which == ARRAY) doc[n++] = '[';
        while (n < wanted) {
            const char *piece;
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            piece = pieces[(seed >> 20) % n_pieces];
            memcpy(doc + n, piece, strlen(piece));
            n += strlen(piece);
        }
        every_cut(which, 6 + (size_t)round % 40, (const uint8_t *)doc, n, NULL, "random document");
    }
}

/* Whichever allocation fails: an error, no crash, no leak (the address sanitizer looks for those). */
static void failing_allocator(enum which which, const char *input)
{
    size_t n = strlen(input);
    for (long k = 0; k < 12; k++)
        for (size_t cut = 1; cut < n; cut++) {
            log_ l = {0};
            alloc_countdown = k;
            run(which, 1 << 20, (const uint8_t *)input, n, &cut, 1, &l);
            alloc_countdown = -1;
            free(l.p);
        }
    check(1, "failing allocator", "survived");
}

/* Memory stays near the limit, whatever never ends; and a line in small chunks is not allocated anew for each of them. */
static void floods(void)
{
    static const char *const lines[] = {":comment", "event: e\n", "id: 1\n", "x\n", "\n", "retry: 5\n", "data: x\n", "data: a\n\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        machine m;
        tw_frame f;
        size_t n = strlen(lines[i]);
        m_init(&m, SSE, 1 << 16);
        alloc_peak = 0;
        for (int k = 0; k < 200000; k++) {
            m_feed(&m, (const uint8_t *)lines[i], n);
            while (m_next(&m, &f, 0) > 0) {}
        }
        check(alloc_peak <= 1 << 17, "flood stays small", lines[i]);
        m_free(&m);
    }
}

static void long_line_in_small_chunks(void)
{
    machine m;
    tw_frame f;
    uint8_t chunk[1024];
    int frames = 0;
    memset(chunk, 'x', sizeof chunk);
    m_init(&m, SSE, 16 << 20);
    alloc_calls = 0;
    m_feed(&m, (const uint8_t *)"data:", 5);
    while (m_next(&m, &f, 0) > 0) frames++;
    for (int k = 0; k < 8192; k++) {
        m_feed(&m, chunk, sizeof chunk);
        while (m_next(&m, &f, 0) > 0) frames++;
    }
    m_feed(&m, (const uint8_t *)"\n\n", 2);
    while (m_next(&m, &f, 0) > 0) {
        frames++;
        check(f.data_len == 8192 * sizeof chunk && f.data[0] == 'x' && f.data[f.data_len - 1] == 'x', "long line", "data");
    }
    check(frames == 1 && alloc_calls < 40, "long line", "allocations grow with the logarithm of its length");
    m_free(&m);
}

static void wellformed(void)
{
    static const struct { const char *s; int ok; } T[] = {
        {"", 1}, {"abc", 1}, {"0123456789abcdef\xC3\xA4", 1}, {"\xE2\x82\xAC", 1}, {"\xF0\x9F\x98\x80", 1}, {"\xF4\x8F\xBF\xBF", 1},
        {"\xC0\x80", 0}, {"\xC1\xBF", 0}, {"\xE0\x9F\x80", 0}, {"\xED\xA0\x80", 0}, {"\xED\x9F\xBF", 1}, {"\xEE\x80\x80", 1},
        {"\xF0\x8F\x80\x80", 0}, {"\xF4\x90\x80\x80", 0}, {"\xF5\x80\x80\x80", 0}, {"\x80", 0}, {"\xE2\x82", 0}, {"\xE2\x28\xA1", 0},
        {"\xFF", 0}, {"0123456789abcdef0123456789abcdef\xE2", 0},
    };
    for (size_t i = 0; i < sizeof T / sizeof *T; i++) {
        size_t n = strlen(T[i].s);
        memcpy(guard - n, T[i].s, n);
        check(tw_is_wellformed(guard - n, n) == T[i].ok, "wellformed", T[i].s);
    }
}

int main(void)
{
    open_guard(1 << 16);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const tcase *c = &CASES[i];
        every_cut(c->which, c->max, (const uint8_t *)c->input, c->len, c->expected, c->name);
    }
    random_documents(SSE, SSE_PIECES, 3000);
    random_documents(SSE_STRAY, SSE_PIECES, 3000);
    random_documents(LINES, LINE_PIECES, 1500);
    random_documents(ARRAY, ARRAY_PIECES, 3000);
    failing_allocator(SSE, "event: e\nid: 1\ndata: 1\ndata: 2\n\ndata: 3\n\n");
    failing_allocator(SSE_STRAY, "stray line\ndata: 1\nstray\n\nid: 5\n\n");
    failing_allocator(LINES, "{\"a\":1}\n\n[2]\n3");
    failing_allocator(ARRAY, "[{\"a\":1},2,\"3\"]");
    floods();
    long_line_in_small_chunks();
    wellformed();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
