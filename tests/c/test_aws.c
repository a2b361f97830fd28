/* The framer of binary messages without Python: every cut, each chunk at the end of a page that a no-access page follows,
 * every flipped bit, every beginning, headers at their limits, and an allocator that fails.
 *
 *   gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined [-DTW_NO_SIMD] -o t tests/c/test_aws.c
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long alloc_countdown = -1; /* the n-th allocation from now fails; -1: none does */

static void *test_realloc(void *p, size_t n)
{
    if (alloc_countdown >= 0 && alloc_countdown-- == 0) return NULL;
    return realloc(p, n);
}
#define TW_REALLOC test_realloc
#include "../../src/toolwire/_core/tw_aws.c"

static int passed, failed;

static void check(int ok, const char *what, const char *where)
{
    if (ok)
        passed++;
    else {
        failed++;
        printf("FAILED %s: %s\n", what, where);
    }
}

/* ---- an encoder that shares nothing with the machine ---- */

static uint32_t slow_crc32(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320 : crc >> 1;
    }
    return ~crc;
}

static size_t put32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(value >> (24 - 8 * i));
    return 4;
}

static size_t encode_lengths(uint8_t *out, uint32_t total, uint32_t headers_len, const void *headers, size_t n, const void *payload, size_t m)
{
    size_t at = put32(out, total);
    at += put32(out + at, headers_len);
    at += put32(out + at, slow_crc32(out, at));
    if (n) memcpy(out + at, headers, n);
    at += n;
    if (m) memcpy(out + at, payload, m);
    at += m;
    return at + put32(out + at, slow_crc32(out, at));
}

static size_t encode(uint8_t *out, const void *headers, size_t n, const void *payload, size_t m)
{
    return encode_lengths(out, (uint32_t)(n + m + 16), (uint32_t)n, headers, n, payload, m);
}

/* ---- a log of what came out ---- */

typedef struct log_ {
    char p[4096];
    size_t len;
} log_;

static uint8_t *guard;

static void open_guard(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    uint8_t *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + room, page, PROT_NONE)) abort();
    guard = p + room;
}

static void put_frame(log_ *l, const tw_aws *m, const tw_frame *f)
{
    tw_aws_header h;
    size_t at = 0;
    l->len += (size_t)snprintf(l->p + l->len, sizeof l->p - l->len, "@%llu+%llu", (unsigned long long)f->offset,
                               (unsigned long long)(f->data_offset - f->offset));
    while (tw_aws_header_at(m->headers, m->headers_len, &at, &h) > 0)
        l->len += (size_t)snprintf(l->p + l->len, sizeof l->p - l->len, " %.*s=%u:%lld:%u", h.name_len, (const char *)h.name, h.type,
                                   (long long)h.number, h.value_len);
    l->len += (size_t)snprintf(l->p + l->len, sizeof l->p - l->len, " %.*s|", (int)f->data_len, (const char *)f->data);
}

static void feed(tw_aws *m, log_ *l, const uint8_t *p, size_t n)
{
    tw_frame f;
    if (n == 0) return;
    memcpy(guard - n, p, n);
    tw_aws_feed(m, guard - n, n);
    while (tw_aws_next(m, &f) > 0) put_frame(l, m, &f);
    memset(guard - n, '~', n);
}

static void run(size_t max, const uint8_t *p, size_t n, const size_t *cuts, size_t n_cuts, log_ *l)
{
    tw_aws m;
    size_t at = 0;
    tw_aws_init(&m, max);
    l->len = 0;
    for (size_t i = 0; i < n_cuts; i++) {
        feed(&m, l, p + at, cuts[i] - at);
        at = cuts[i];
    }
    feed(&m, l, p + at, n - at);
    l->len += (size_t)snprintf(l->p + l->len, sizeof l->p - l->len, "in_frame=%d error=%d@%llu offset=%llu", tw_aws_in_frame(&m), m.error,
                               (unsigned long long)(m.error ? m.error_offset : 0), (unsigned long long)m.base);
    tw_aws_free(&m);
}

static void every_cut(size_t max, const uint8_t *p, size_t n, const char *expected, const char *name)
{
    log_ whole, cut;
    size_t *each = calloc(n + 1, sizeof *each), rest = 12345;
    if (!each) abort();
    run(max, p, n, NULL, 0, &whole);
    if (expected && strcmp(whole.p, expected)) {
        printf("  got      %s\n  expected %s\n", whole.p, expected);
        check(0, name, "whole");
    } else
        check(1, name, "whole");
    for (size_t i = 1; i < n; i++) each[i - 1] = i;
    run(max, p, n, each, n ? n - 1 : 0, &cut);
    check(!strcmp(whole.p, cut.p), name, "byte by byte");
    for (size_t i = 1; i < n; i++) {
        run(max, p, n, &i, 1, &cut);
        check(!strcmp(whole.p, cut.p), name, "one cut");
    }
    for (int round = 0; round < 20; round++) {
        size_t k = 0;
        for (size_t i = 1; i < n; i++) {
            rest = rest * 1103515245u + 12345u;
            if ((rest >> 16) % 5 == 0) each[k++] = i;
        }
        run(max, p, n, each, k, &cut);
        check(!strcmp(whole.p, cut.p), name, "random cuts");
    }
    free(each);
}

/* ---- cases ---- */

static const char ALL_TYPES[] = "\1a\0" "\1b\1" "\1c\2\x80" "\1d\3\xFF\xFE" "\1e\4\x7F\xFF\xFF\xFF" "\1f\5\x80\0\0\0\0\0\0\0"
                                "\1g\6\0\2xy" "\1h\7\0\3\xE2\x82\xAC" "\1i\10\0\0\1\x9A\0\0\0\1" "\1j\x09" "0123456789abcdef";

typedef struct tcase {
    const char *name, *headers;
    size_t headers_len;
    const char *expected;
} tcase;
#define CASE(name, headers, expected) {name, headers, sizeof(headers) - 1, expected}

static const tcase BAD[] = {
    CASE("no type", "\1a", "error=17@12"),
    CASE("name past the end", "\5a\0", "error=17@12"),
    CASE("ill-formed name", "\1\xFF\0", "error=17@12"),
    CASE("unknown type", "\1a\0\1b\x0A", "error=17@17"),
    CASE("no value", "\1a\2", "error=17@15"),
    CASE("half a value", "\1a\5\0\0\0\0\0\0\0", "error=17@15"),
    CASE("half a length", "\1a\7\0", "error=17@15"),
    CASE("text past the end", "\1a\7\0\3xy", "error=17@15"),
    CASE("ill-formed text", "\1a\7\0\1\xFF", "error=17@17"),
    CASE("name twice", "\1a\0\1b\0\1a\1", "error=17@18"),
    CASE("name twice before nonsense", "\1a\0\1a\0\1b\x63", "error=17@15"),
    CASE("name twice among many",
         "\1a\0\1b\0\1c\0\1d\0\1e\0\1f\0\1g\0\1h\0\1i\0\1j\0\1k\0\1l\0\1m\0\1n\0\1o\0\1p\0\1q\0\1c\0\1b\0", "error=17@63"),
};

static void cases(void)
{
    uint8_t stream[1024];
    size_t n = encode(stream, NULL, 0, NULL, 0), first;
    n += encode(stream + n, ALL_TYPES, sizeof ALL_TYPES - 1, "{\"a\":1}", 7);
    n += encode(stream + n, "\0\7\0\0", 4, "x", 1);
    every_cut(1 << 20, stream, n,
              "@0+12 |@16+90 a=0:1:0 b=1:0:0 c=2:-128:1 d=3:-2:2 e=4:2147483647:4 f=5:-9223372036854775808:8 g=6:0:2 h=7:0:3 "
              "i=8:1760936591361:8 j=9:0:16 {\"a\":1}|@117+16 =7:0:0 x|in_frame=0 error=0@0 offset=138",
              "all types");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        char expected[80];
        const char *at = strchr(BAD[i].expected, '@');
        first = encode(stream, BAD[i].headers, BAD[i].headers_len, "{}", 2);
        snprintf(expected, sizeof expected, "in_frame=1 %s offset=%s", BAD[i].expected, at + 1);
        every_cut(1 << 20, stream, first, expected, BAD[i].name);
    }
    n = encode_lengths(stream, 15, 0, NULL, 0, NULL, 0);
    every_cut(1 << 20, stream, n, "in_frame=1 error=16@0 offset=0", "shorter than its own parts");
    n = encode_lengths(stream, 20, 5, NULL, 0, "abcd", 4);
    every_cut(1 << 20, stream, n, "in_frame=1 error=16@4 offset=4", "headers longer than the message");
    n = encode_lengths(stream, 1 << 20, (128 << 10) + 1, NULL, 0, NULL, 0);
    every_cut(1 << 30, stream, n, "in_frame=1 error=16@4 offset=4", "headers beyond the format");
    n = encode_lengths(stream, (24 << 20) + 17, 0, NULL, 0, NULL, 0);
    every_cut(1 << 30, stream, n, "in_frame=1 error=16@0 offset=0", "payload beyond the format");
    n = encode(stream, NULL, 0, "1234", 4);
    first = n + encode(stream + n, NULL, 0, "12345", 5);
    every_cut(20, stream, first, "@0+12 1234|in_frame=1 error=14@20 offset=20", "a message beyond the limit");
}

static void every_flip_and_beginning(void)
{
    uint8_t stream[256], broken[256];
    size_t first = encode(stream, NULL, 0, "one", 3), n;
    log_ l;
    n = first + encode(stream + first, "\1k\7\0\1v", 6, "two", 3);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        size_t frame = bit / 8 < first ? 0 : first, half = n / 2;
        memcpy(broken, stream, n);
        broken[bit / 8] ^= (uint8_t)(1 << bit % 8);
        run(1 << 20, broken, n, &half, 1, &l);
        check(strstr(l.p, " error=15@") != NULL, "flipped bit", "is a wrong checksum");
        check((frame == 0) == (strchr(l.p, '|') == NULL), "flipped bit", "frames before it, and no other");
    }
    for (size_t k = 0; k <= n; k++) {
        run(1 << 20, stream, k, NULL, 0, &l);
        check((strstr(l.p, "in_frame=1 error=0@0") != NULL) == (k != 0 && k != first && k != n), "beginning", "in_frame");
        check((strchr(l.p, '|') != NULL) == (k >= first), "beginning", "whole messages only");
    }
}

/* Headers that differ only in their last byte, as many as fit: the search for a second name must not take squares of it. */
static void many_headers(void)
{
    size_t cap = TW_AWS_MAX_HEADERS + 64, n = 0, len, at;
    uint8_t *headers = malloc(cap), *message = malloc(cap + 64);
    tw_aws m;
    tw_frame f;
    if (!headers || !message) abort();
    for (unsigned i = 0; n + 5 <= TW_AWS_MAX_HEADERS; i++) {
        headers[n++] = 3;
        headers[n++] = (uint8_t)(i & 127);
        headers[n++] = (uint8_t)(i >> 7 & 127);
        headers[n++] = (uint8_t)(i >> 14 & 127);
        headers[n++] = 0;
    }
    len = encode(message, headers, n, "x", 1);
    tw_aws_init(&m, 1 << 20);
    tw_aws_feed(&m, message, len);
    check(tw_aws_next(&m, &f) == 1 && f.data_len == 1, "many headers", "taken");
    tw_aws_free(&m);
    at = n - 5;
    memcpy(headers + at, headers, 5);
    len = encode(message, headers, n, "x", 1);
    tw_aws_init(&m, 1 << 20);
    tw_aws_feed(&m, message, len);
    check(tw_aws_next(&m, &f) == -1 && m.error == TW_E_FRAME_BAD_HEADER && m.error_offset == 12 + at, "many headers", "the last is the first again");
    tw_aws_free(&m);
    free(headers);
    free(message);
}

static void checksums(void)
{
    uint8_t bytes[300];
    uint32_t seed = 1;
    check(tw_aws_crc32((const uint8_t *)"123456789", 9) == 0xCBF43926, "crc32", "its published check value");
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
    for (size_t from = 0; from < 9; from++)
        for (size_t n = 0; from + n <= sizeof bytes; n++)
            if (tw_aws_crc32(bytes + from, n) != slow_crc32(bytes + from, n)) check(0, "crc32", "against one bit at a time");
    passed++;
}

static void failing_allocator(void)
{
    uint8_t stream[512];
    size_t n = encode(stream, BAD[11].headers, BAD[11].headers_len - 6, "payload", 7);
    log_ l;
    for (long k = 0; k < 6; k++)
        for (size_t cut = 0; cut < n; cut++) {
            alloc_countdown = k;
            run(1 << 20, stream, n, &cut, 1, &l);
            alloc_countdown = -1;
            check(strchr(l.p, '|') != NULL || strstr(l.p, " error=18@") != NULL, "failing allocator", "a frame or an error");
        }
}

int main(void)
{
    open_guard(1 << 16);
    checksums();
    cases();
    every_flip_and_beginning();
    many_headers();
    failing_allocator();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
