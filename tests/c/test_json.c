/* The JSON tokenizer without Python, with a sink that writes a log. Each case runs whole, byte by byte and at every single
 * cut, every chunk at the end of a page that a no-access page follows, so that an over-read of one byte crashes. Then every
 * file given as an argument runs whole and byte by byte, and the two logs are compared.
 *
 *   gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined [-DTW_NO_SIMD] -o t tests/c/test_json.c
 *   ./t [FILE...]
 *
 * The log, one token each, with the offset of its first byte where the machine knows it:
 *
 *     [ ] { }            containers                     "text"@n  a string        K"text"@n  a key
 *     i12@n f1.5@n       a number, integer or not       null@n true@n ...         a literal
 *     ~"text"            what an open string has so far (at the end of the input, or before an error)
 *     #surrogate@n #control@n                           what was tolerated
 *     .n                 complete, with n bytes consumed       ...  more bytes are due       !code@n  error
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/toolwire/_core/tw_json.h"

static int passed, failed;
static const char *told; /* one line a case is enough */

static void check(int ok, const char *what, const char *got, const char *want)
{
    if (ok) {
        passed++;
        return;
    }
    failed++;
    if (what != told) printf("FAILED %s\n   got  %.2000s\n   want %.2000s\n", what, got, want);
    told = what;
}

/* ---- the sink ---- */

typedef struct buffer {
    char *p;
    size_t len, cap;
} buffer;

static void put(buffer *b, const void *p, size_t n)
{
    if (b->len + n + 1 > b->cap) {
        b->cap = (b->len + n + 1) * 2;
        b->p = realloc(b->p, b->cap);
        if (b->p == NULL) exit(2);
    }
    if (n > 0) memcpy(b->p + b->len, p, n);
    b->len += n;
    b->p[b->len] = 0;
}

static void put_text(buffer *b, const char *s) { put(b, s, strlen(s)); }

typedef struct sink {
    buffer log;
    buffer text;     /* the open string, or the number bytes kept */
    int in_text;
    int broken;      /* the sink's contract was broken; see `fault` */
    const char *fault;
    long refuse;     /* the n-th token from now is refused; -1: none is */
    uint64_t at;     /* offset of the chunk at hand and its place in memory, to check pointers */
    const uint8_t *chunk, *chunk_end;
} sink;

static void fault(sink *s, const char *what)
{
    s->broken = 1;
    s->fault = what;
}

/* Ends a token in the log, and refuses it where the test asked for that. */
static int done(sink *s)
{
    put_text(&s->log, " ");
    if (s->refuse >= 0 && s->refuse-- == 0) return TW_E_JSON_DUPLICATE_KEY;
    return TW_OK;
}

static void put_at(sink *s, uint64_t at)
{
    char t[32];
    snprintf(t, sizeof t, "@%llu", (unsigned long long)at);
    put_text(&s->log, t);
}

static int width(unsigned lead) { return lead == 0 ? 0 : lead <= 0xC3 ? 1 : lead < 0xF0 ? 2 : 4; }

/* A span must lie in the chunk at hand, or have been put together from it; lead and cont must describe it. */
static void check_span(sink *s, const uint8_t *p, size_t n, unsigned lead, size_t cont)
{
    unsigned want_lead = 0;
    size_t want_cont = 0, i;
    int inside = n > 0 && p >= s->chunk && p + n <= s->chunk_end;
    if (!inside && n > TW_JSON_PIECE) fault(s, "a span outside the chunk");
    for (i = 0; i < n; i++) {
        if (p[i] >= 0xC0 && p[i] > want_lead) want_lead = p[i];
        if ((p[i] & 0xC0) == 0x80) want_cont++;
        if (inside && (p[i] == '"' || p[i] == '\\')) fault(s, "a quote or a backslash in text");
    }
    if (width(lead) != width(want_lead)) fault(s, "lead is not as wide as the largest lead byte");
    if (cont != want_cont) fault(s, "cont is not the number of continuation bytes");
    if (n > 0 && (p[0] & 0xC0) == 0x80) fault(s, "text that starts inside a character");
}

static int log_object_start(sink *s, tw_json *j) { (void)j; put_text(&s->log, "{"); return done(s); }
static int log_array_start(sink *s, tw_json *j) { (void)j; put_text(&s->log, "["); return done(s); }
static int log_object_end(sink *s, tw_json *j) { (void)j; put_text(&s->log, "}"); return done(s); }
static int log_array_end(sink *s, tw_json *j) { (void)j; put_text(&s->log, "]"); return done(s); }

static int end_string(sink *s, tw_json *j)
{
    put_text(&s->log, j->in_key ? "K\"" : "\"");
    put(&s->log, s->text.p, s->text.len);
    put_text(&s->log, "\"");
    put_at(s, j->token_offset);
    s->text.len = 0;
    return done(s);
}

static int log_string(sink *s, tw_json *j, const uint8_t *p, size_t n, unsigned lead, size_t cont)
{
    if (s->in_text) fault(s, "string() inside a string in pieces");
    check_span(s, p, n, lead, cont);
    s->text.len = 0;
    put(&s->text, p, n);
    return end_string(s, j);
}

static int log_text_start(sink *s, tw_json *j)
{
    (void)j;
    if (s->in_text) fault(s, "text_start() twice");
    s->in_text = 1;
    s->text.len = 0;
    put(&s->text, "", 0);
    return TW_OK;
}

static int log_text(sink *s, tw_json *j, const uint8_t *p, size_t n, unsigned lead, size_t cont)
{
    (void)j;
    if (!s->in_text) fault(s, "text() without text_start()");
    check_span(s, p, n, lead, cont);
    put(&s->text, p, n);
    return TW_OK;
}

static int log_code(sink *s, tw_json *j, uint32_t c)
{
    char t[16];
    if (!s->in_text) fault(s, "code() without text_start()");
    if (c >= 0xD800 && c <= 0xDFFF) {
        if (j->surrogates != TW_SURROGATES_KEEP) fault(s, "a lone surrogate where none is kept");
        snprintf(t, sizeof t, "<%X>", (unsigned)c);
        put_text(&s->text, t);
    } else {
        uint8_t u[4];
        size_t n = 0;
        if (c < 0x80) {
            u[n++] = (uint8_t)c;
        } else {
            if (c < 0x800) u[n++] = (uint8_t)(0xC0 | c >> 6);
            else {
                if (c < 0x10000) u[n++] = (uint8_t)(0xE0 | c >> 12);
                else {
                    u[n++] = (uint8_t)(0xF0 | c >> 18);
                    u[n++] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
                }
                u[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
            }
            u[n++] = (uint8_t)(0x80 | (c & 0x3F));
        }
        put(&s->text, u, n);
    }
    return TW_OK;
}

static int log_text_end(sink *s, tw_json *j)
{
    if (!s->in_text) fault(s, "text_end() without text_start()");
    s->in_text = 0;
    return end_string(s, j);
}

static int log_number_part(sink *s, tw_json *j, const uint8_t *p, size_t n)
{
    (void)j;
    if (n > 0 && (p < s->chunk || p + n > s->chunk_end)) fault(s, "a number part outside the chunk");
    put(&s->text, p, n);
    return TW_OK;
}

static int log_number(sink *s, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    if (d != NULL && (d->is_int != is_int || d->negative != (p[0] == '-'))) fault(s, "another number was read");
    put(&s->text, p, n);
    put_text(&s->log, is_int ? "i" : "f");
    put(&s->log, s->text.p, s->text.len);
    put_at(s, j->token_offset);
    s->text.len = 0;
    return done(s);
}

static int log_literal(sink *s, tw_json *j, int which)
{
    static const char *const names[] = {"null", "false", "true", "NaN", "Infinity", "-Infinity"};
    put_text(&s->log, names[which]);
    put_at(s, j->token_offset);
    return done(s);
}

static void log_lone_surrogate(sink *s, tw_json *j, uint64_t at)
{
    (void)j;
    put_text(&s->log, "#surrogate");
    put_at(s, at);
    put_text(&s->log, " ");
}

static void log_control_character(sink *s, tw_json *j, uint64_t at)
{
    (void)j;
    put_text(&s->log, "#control");
    put_at(s, at);
    put_text(&s->log, " ");
}

#define TW_JSON_RUN run_logged
#define TW_SINK_T sink
#define TW_SINK(name) log_##name
#include "../../src/toolwire/_core/tw_json.h"

/* ---- the runner ---- */

static const char *code_name(int error)
{
    switch (error) {
    case TW_E_JSON_UNEXPECTED_BYTE: return "unexpected_byte";
    case TW_E_JSON_BAD_LITERAL: return "bad_literal";
    case TW_E_JSON_BAD_NUMBER: return "bad_number";
    case TW_E_JSON_BAD_ESCAPE: return "bad_escape";
    case TW_E_JSON_CONTROL_CHARACTER: return "control_character";
    case TW_E_JSON_BAD_UTF8: return "bad_utf8";
    case TW_E_JSON_LONE_SURROGATE: return "lone_surrogate";
    case TW_E_JSON_DUPLICATE_KEY: return "refused";
    case TW_E_JSON_TOO_DEEP: return "too_deep";
    default: return "?";
    }
}

/* Memory whose last byte is followed by a page that may not be touched. */
static uint8_t *guarded, *guard_end;

static void guard_open(size_t most)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (most / page + 1) * page;
    guarded = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guarded == MAP_FAILED || mprotect(guarded + size, page, PROT_NONE) != 0) exit(2);
    guard_end = guarded + size;
}

static void guard_close(void) { munmap(guarded, (size_t)(guard_end - guarded)); }

typedef struct options {
    uint32_t max_depth;
    uint8_t surrogates, allow_nan, allow_control;
} options;

static const options strict = {8, TW_SURROGATES_ERROR, 0, 0};

typedef struct machine {
    tw_json j;
    sink s;
    uint8_t *stack;
    uint64_t fed;
    int stopped;
} machine;

static void open_machine(machine *m, const options *o)
{
    memset(m, 0, sizeof *m);
    m->stack = calloc(tw_json_stack_bytes(o->max_depth), 1);
    if (m->stack == NULL) exit(2);
    tw_json_init(&m->j, m->stack, o->max_depth);
    m->j.surrogates = o->surrogates;
    m->j.allow_nan = o->allow_nan;
    m->j.allow_control = o->allow_control;
    m->s.refuse = -1;
    put(&m->s.log, "", 0);
    put(&m->s.text, "", 0);
}

static void feed(machine *m, const uint8_t *p, size_t n)
{
    uint8_t *chunk = guard_end - n;
    const uint8_t *stop;
    if (m->stopped) return;
    if (n > 0) memcpy(chunk, p, n);
    m->s.chunk = chunk;
    m->s.chunk_end = guard_end;
    stop = run_logged(&m->j, &m->s, chunk, guard_end);
    if (stop < chunk || stop > guard_end) fault(&m->s, "stopped outside the chunk");
    if (m->j.state == ST_JSON_ERROR) {
        /* A refused number is blamed on its first byte, which may lie chunks back; everything else on the byte stopped at. */
        if (m->j.error != TW_E_JSON_DUPLICATE_KEY && m->fed + (uint64_t)(stop - chunk) != m->j.error_offset)
            fault(&m->s, "error_offset is not where it stopped");
        m->stopped = 1;
    } else if (m->j.state == ST_JSON_DONE) {
        if (m->fed + (uint64_t)(stop - chunk) != m->j.consumed) fault(&m->s, "consumed is not where it stopped");
        m->stopped = 1;
    } else if (stop != guard_end) {
        fault(&m->s, "bytes were left although nothing ended");
    }
    m->fed += n;
    if (!m->stopped && m->j.offset != m->fed) fault(&m->s, "offset does not count the earlier chunks");
}

/* The log's last words. At the end of the input a root number ends. */
static char *close_machine(machine *m)
{
    char t[64];
    int number = m->j.state == ST_JSON_IN_NUMBER && m->j.depth == 0 && tw_num_may_end(m->j.number);
    if (number) {
        log_number(&m->s, &m->j, NULL, 0, m->j.number == TW_NUM_ZERO || m->j.number == TW_NUM_INT, NULL);
        snprintf(t, sizeof t, ".%llu", (unsigned long long)m->j.offset);
    } else {
        if (m->s.in_text && !m->j.in_key && m->s.text.len > 0) {
            put_text(&m->s.log, "~\"");
            put(&m->s.log, m->s.text.p, m->s.text.len);
            put_text(&m->s.log, "\" ");
        }
        if (m->j.state == ST_JSON_ERROR) snprintf(t, sizeof t, "!%s@%llu", code_name(m->j.error), (unsigned long long)m->j.error_offset);
        else if (m->j.state == ST_JSON_DONE) snprintf(t, sizeof t, ".%llu", (unsigned long long)m->j.consumed);
        else snprintf(t, sizeof t, "...");
    }
    put_text(&m->s.log, t);
    if (m->s.broken) {
        put_text(&m->s.log, " BROKEN: ");
        put_text(&m->s.log, m->s.fault);
    }
    free(m->stack);
    free(m->s.text.p);
    return m->s.log.p;
}

/* Chunks: [0, cut), [cut, n); with cut == 0 the whole; with size > 0 pieces of that size. */
static char *run(const options *o, const uint8_t *p, size_t n, size_t cut, size_t size, long refuse)
{
    machine m;
    size_t i;
    open_machine(&m, o);
    m.s.refuse = refuse;
    if (size > 0) {
        for (i = 0; i < n; i += size) feed(&m, p + i, n - i < size ? n - i : size);
    } else {
        if (cut > 0) feed(&m, p, cut);
        feed(&m, p, 0); /* an empty chunk means nothing */
        feed(&m, p + cut, n - cut);
    }
    return close_machine(&m);
}

static void every_cut(const char *name, const options *o, const uint8_t *p, size_t n, const char *want, long refuse)
{
    size_t i;
    char *log;
    for (i = 0; i < n || i == 0; i++) {
        log = run(o, p, n, i, 0, refuse);
        check(strcmp(log, want) == 0, name, log, want);
        free(log);
    }
    for (i = 1; i <= 3; i++) {
        log = run(o, p, n, 0, i, refuse);
        check(strcmp(log, want) == 0, name, log, want);
        free(log);
    }
}

/* ---- the cases ---- */

#define KEEP {8, TW_SURROGATES_KEEP, 0, 0}
#define REPLACE {8, TW_SURROGATES_REPLACE, 0, 0}
#define LENIENT {8, TW_SURROGATES_KEEP, 1, 1}
#define STRICT {8, TW_SURROGATES_ERROR, 0, 0}
#define LONG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *input;
    options o;
    const char *log;
} cases[] = {
    /* RFC 8259 section 2: white space, structure, the root. */
    {"", STRICT, "..."},
    {" \t\r\n", STRICT, "..."},
    {"[]", STRICT, "[ ] .2"},
    {" { } x", STRICT, "{ } .4"},
    {"[1,2.5,\"x\",null]", STRICT, "[ i1@1 f2.5@3 \"x\"@7 null@11 ] .16"},
    {"{\"a\":[1,{\"b\":{}}],\"c\" : \"d\"}", STRICT, "{ K\"a\"@1 [ i1@6 { K\"b\"@9 { } } ] K\"c\"@18 \"d\"@24 } .28"},
    {"[[[[[[[[]]]]]]]]", STRICT, "[ [ [ [ [ [ [ [ ] ] ] ] ] ] ] ] .16"},
    {"[[[[[[[[[", STRICT, "[ [ [ [ [ [ [ [ !too_deep@8"},
    {"{\"a\":{\"a\":1", {1, 0, 0, 0}, "{ K\"a\"@1 !too_deep@5"},
    {"0,0", STRICT, "i0@0 .1"}, /* what follows a number at the root is no next element */
    {"-1.5,-2", STRICT, "f-1.5@0 .4"},
    {"[1,,2]", STRICT, "[ i1@1 !unexpected_byte@3"},
    {"[,", STRICT, "[ !unexpected_byte@1"},
    {"[1,]", STRICT, "[ i1@1 !unexpected_byte@3"},
    {"{\"a\":1,}", STRICT, "{ K\"a\"@1 i1@5 !unexpected_byte@7"},
    {"{,", STRICT, "{ !unexpected_byte@1"},
    {"{\"a\",", STRICT, "{ K\"a\"@1 !unexpected_byte@4"},
    {"{\"a\" 1", STRICT, "{ K\"a\"@1 !unexpected_byte@5"},
    {"{1", STRICT, "{ !unexpected_byte@1"},
    {"[1}", STRICT, "[ i1@1 !unexpected_byte@2"},
    {"{\"a\":1]", STRICT, "{ K\"a\"@1 i1@5 !unexpected_byte@6"},
    {"[\"a\" \"b\"", STRICT, "[ \"a\"@1 !unexpected_byte@5"},
    {"]", STRICT, "!unexpected_byte@0"},
    {"\xef\xbb\xbf{}", STRICT, "!unexpected_byte@0"},
    {"'a'", STRICT, "!unexpected_byte@0"},
    {"[1", STRICT, "[ ..."},
    {"{\"a\"", STRICT, "{ K\"a\"@1 ..."},
    {"{\"a", STRICT, "{ ..."},
    /* Section 3: literals. */
    {"true", STRICT, "true@0 .4"},
    {"[null,true,false]", STRICT, "[ null@1 true@6 false@11 ] .17"},
    {"nul!", STRICT, "!bad_literal@3"},
    {"truex", STRICT, "true@0 .4"},
    {"[falsex", STRICT, "[ false@1 !unexpected_byte@6"},
    {"fals", STRICT, "..."},
    {"True", STRICT, "!unexpected_byte@0"},
    {"[NaN,Infinity,-Infinity]", LENIENT, "[ NaN@1 Infinity@5 -Infinity@14 ] .24"},
    {"[NaN", STRICT, "[ !unexpected_byte@1"},
    {"-I", STRICT, "!bad_number@1"},
    {"Infinitx", LENIENT, "!bad_literal@7"},
    /* Section 6: numbers. At the root they end at a delimiter. */
    {"0", STRICT, "i0@0 .1"},
    {"-0", STRICT, "i-0@0 .2"},
    {"12,", STRICT, "i12@0 .2"},
    {" 12 ", STRICT, "i12@1 .3"},
    {"1e5]", STRICT, "f1e5@0 .3"},
    {"12\"", STRICT, "!bad_number@2"},
    {"12x", STRICT, "!bad_number@2"},
    {"[0,-1.50E+07,1e-2]", STRICT, "[ i0@1 f-1.50E+07@3 f1e-2@13 ] .18"},
    {"[123456789012345678901234567890]", STRICT, "[ i123456789012345678901234567890@1 ] .32"},
    {"01", STRICT, "!bad_number@1"},
    {"-", STRICT, "..."},
    {"1.", STRICT, "..."},
    {"1e+", STRICT, "..."},
    {"1.e", STRICT, "!bad_number@2"},
    {"1e+x", STRICT, "!bad_number@3"},
    {"--", STRICT, "!bad_number@1"},
    {"+1", STRICT, "!unexpected_byte@0"},
    {".5", STRICT, "!unexpected_byte@0"},
    /* Section 7: strings and escapes. */
    {"\"\"", STRICT, "\"\"@0 .2"},
    {"\"abc", STRICT, "~\"abc\" ..."},
    {"\"a\\nb\\\"\\\\\\/\\b\\f\\r\\t\"", STRICT, "\"a\nb\"\\/\b\f\r\t\"@0 .20"},
    {"\"\\u0041\\u00e9\\u20AC\"", STRICT, "\"A\xc3\xa9\xe2\x82\xac\"@0 .20"},
    {"\"\\ud83d\\ude00\"", STRICT, "\"\xf0\x9f\x98\x80\"@0 .14"},
    {"\"\\uDBFF\\uDFFF\"", STRICT, "\"\xf4\x8f\xbf\xbf\"@0 .14"},
    {"[\"" LONG "\",\"" LONG "\\n" LONG "\"]", STRICT, "[ \"" LONG "\"@1 \"" LONG "\n" LONG "\"@68 ] .201"},
    {"{\"a\\tb\":\"" LONG "\\q", STRICT, "{ K\"a\tb\"@1 ~\"" LONG "\" !bad_escape@74"},
    {"\"ab\\x", STRICT, "~\"ab\" !bad_escape@4"},
    {"\"\\u00g", STRICT, "!bad_escape@5"},
    {"\"\\u00", STRICT, "..."},
    {"\"a\nb", STRICT, "~\"a\" !control_character@2"},
    {"\"a\x1f", STRICT, "~\"a\" !control_character@2"},
    {"\"a\x7f\"", STRICT, "\"a\x7f\"@0 .4"},
    {"[\"a\nb\",\"\t\"]", LENIENT, "[ #control@3 \"a\nb\"@1 #control@8 \"\t\"@7 ] .11"},
    /* Half a pair: the byte that makes it certain, or what the option asks for. */
    {"\"\\ud800x", STRICT, "!lone_surrogate@7"},
    {"\"\\ud800\"", STRICT, "!lone_surrogate@7"},
    {"\"a\\ud800\\n", STRICT, "~\"a\" !lone_surrogate@9"},
    {"\"\\ud800\\u0", STRICT, "!lone_surrogate@9"},
    {"\"\\ud800\\ud8", STRICT, "!lone_surrogate@10"},
    {"\"\\udc", STRICT, "!lone_surrogate@4"},
    {"\"\\udc00\\ud800\"", KEEP, "#surrogate@1 #surrogate@7 \"<DC00><D800>\"@0 .14"},
    {"\"\\ud800\\ud83d\\ude00\"", KEEP, "#surrogate@1 \"<D800>\xf0\x9f\x98\x80\"@0 .20"},
    {"\"\\ud800\\u0041\"", REPLACE, "#surrogate@1 \"\xef\xbf\xbd""A\"@0 .14"},
    {"\"\\ud800\\n\\ud800x\"", REPLACE, "#surrogate@1 #surrogate@9 \"\xef\xbf\xbd\n\xef\xbf\xbdx\"@0 .17"},
    {"\"\\ud800", REPLACE, "..."},
    /* Section 8.1: UTF-8 (Unicode standard, table 3-7). */
    {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", STRICT, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"@0 .11"},
    {"\"\xf0\x9f\x98", STRICT, "..."},
    {"\"a\xff", STRICT, "~\"a\" !bad_utf8@2"},
    {"\"a\x80", STRICT, "~\"a\" !bad_utf8@2"},
    {"\"\xc0\x80", STRICT, "!bad_utf8@1"},
    {"\"\xc1", STRICT, "!bad_utf8@1"},
    {"\"\xc3\"", STRICT, "!bad_utf8@2"},
    {"\"\xe0\x9f\xbf", STRICT, "!bad_utf8@2"},
    {"\"\xe0\xa0\x80\"", STRICT, "\"\xe0\xa0\x80\"@0 .5"},
    {"\"\xed\x9f\xbf\xee\x80\x80\"", STRICT, "\"\xed\x9f\xbf\xee\x80\x80\"@0 .8"},
    {"\"\xed\xa0\x80", KEEP, "!bad_utf8@2"},
    {"\"\xe2\x82\"", STRICT, "!bad_utf8@3"},
    {"\"\xf0\x8f", STRICT, "!bad_utf8@2"},
    {"\"\xf4\x8f\xbf\xbf\"", STRICT, "\"\xf4\x8f\xbf\xbf\"@0 .6"},
    {"\"\xf4\x90", STRICT, "!bad_utf8@2"},
    {"\"\xf5", STRICT, "!bad_utf8@1"},
    {"\"\xf0\x9f\x98\\", STRICT, "!bad_utf8@4"},
    {"{\"\xe2\x82\xac" LONG "\":\"" LONG "\xc3\xa9" LONG "\"}", STRICT, "{ K\"\xe2\x82\xac" LONG "\"@1 \"" LONG "\xc3\xa9" LONG "\"@71 } .204"},
};

static void test_cases(void)
{
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        every_cut(cases[i].input, &cases[i].o, (const uint8_t *)cases[i].input, strlen(cases[i].input), cases[i].log, -1);
    every_cut("a NUL in a string", &strict, (const uint8_t *)"[\"a\0b\"]", 7, "[ ~\"a\" !control_character@3", -1);
    every_cut("a NUL between tokens", &strict, (const uint8_t *)"[\0]", 3, "[ !unexpected_byte@1", -1);
}

/* A scan in blocks must see a special byte, and a wide one, at every place of a block. */
static void test_every_place_in_a_block(void)
{
    static const char *const special[] = {"\\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\n", "\xff", "\\ud83d\\ude00", "\x7f"};
    static const char *const plain[] = {"\n", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", NULL, NULL, "\xf0\x9f\x98\x80", "\x7f"};
    char input[256], want[256], fill[80];
    size_t k, before, after = 0;
    memset(fill, 'x', sizeof fill);
    for (k = 0; k < sizeof special / sizeof *special; k++)
        for (before = 0; before < 70; before++) {
            after = (before * 7) % 37;
            snprintf(input, sizeof input, "\"%.*s%s%.*s\"", (int)before, fill, special[k], (int)after, fill);
            if (plain[k] != NULL)
                snprintf(want, sizeof want, "\"%.*s%s%.*s\"@0 .%zu", (int)before, fill, plain[k], (int)after, fill, strlen(input));
            else if (before > 0)
                snprintf(want, sizeof want, "~\"%.*s\" !%s@%zu", (int)before, fill, k == 4 ? "control_character" : "bad_utf8", before + 1);
            else
                snprintf(want, sizeof want, "!%s@1", k == 4 ? "control_character" : "bad_utf8");
            every_cut("every place in a block", &strict, (const uint8_t *)input, strlen(input), want, -1);
        }
}

static unsigned below(uint32_t *seed, size_t n) { return (unsigned)(((*seed = *seed * 1664525u + 1013904223u) >> 8) % n); }

/* Long strings of every kind of text, one in four with something wrong in it: whole, which goes by blocks, against byte by byte,
 * which does not. */
static void test_long_strings(void)
{
    static const char *const kinds[] = {"plain text ", "x", "\\n", "\\\"", "\\\\", "\\u00e9", "\\u4e2d", "\\ud83d\\ude00", "\xd0\xb6", "\xc3\xa9", "\xe4\xb8\xad",
                                        "\xe0\xa4\x85", "\xed\x9e\xa3", "\xf0\x9f\x98\x80", "\xef\xbf\xbf", " "};
    static const char *const wrong[] = {"\xc1\x81", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe4\xb8", "\xd0", "\xd0\xd0", "\x80", "\xf4\x90\x80\x80", "\n",
                                        "\\x", "\\u12g4", "\\ud800", "\\udc00", "\\ud800\\u0041", "\xe4\xb8\x41", "\xff"};
    uint32_t seed = 1;
    uint8_t *input = malloc(9000);
    int round;
    for (round = 0; round < 4000; round++) {
        size_t n = 0, aim = below(&seed, round % 8 ? 300 : 8000);
        char *whole, *bytes;
        input[n++] = '"';
        while (n < aim) {
            const char *kind = kinds[below(&seed, sizeof kinds / sizeof *kinds)];
            unsigned times = 1 + below(&seed, below(&seed, 4) ? 4 : 40);
            while (times-- && n < aim) {
                memcpy(input + n, kind, strlen(kind));
                n += strlen(kind);
            }
            if (round % 4 == 3 && below(&seed, 10) == 0) {
                kind = wrong[below(&seed, sizeof wrong / sizeof *wrong)];
                memcpy(input + n, kind, strlen(kind));
                n += strlen(kind);
            }
        }
        input[n++] = '"';
        whole = run(&strict, input, n, 0, 0, -1);
        bytes = run(&strict, input, n, 0, 1, -1);
        check(strcmp(whole, bytes) == 0 && strstr(whole, "BROKEN") == NULL, "long strings", whole, bytes);
        free(whole);
        free(bytes);
    }
    free(input);
}

/* All byte strings of one and two bytes, in every surrounding that matters: whole and in single bytes. */
static void test_short_inputs(void)
{
    static const char *const heads[] = {"", "[", "{", "{\"a\"", "{\"a\":", "[1", "[0", "[-", "[1.", "[1e", "[1e+", "[t", "\"", "\"\\", "\"\\u", "\"\\ud8",
                                        "\"\\ud800", "\"\\ud800\\", "\"\\ud800\\u", "\"\xe0", "\"\xed", "\"\xf0", "\"\xf4", "\"\xf4\x8f"};
    options modes[3] = {STRICT, KEEP, LENIENT};
    uint8_t input[16];
    size_t h, n;
    unsigned a, b, m;
    modes[1].surrogates = TW_SURROGATES_REPLACE;
    for (m = 0; m < 3; m++)
        for (h = 0; h < sizeof heads / sizeof *heads; h++)
            for (a = 0; a < 256; a++)
                for (b = 0; b < 256; b += a % 16 == 0 || a == '\\' || a == 'u' ? 1 : 17) {
                    char *whole, *bytes;
                    n = strlen(heads[h]);
                    memcpy(input, heads[h], n);
                    input[n++] = (uint8_t)a;
                    input[n++] = (uint8_t)b;
                    whole = run(&modes[m], input, n, 0, 0, -1);
                    bytes = run(&modes[m], input, n, 0, 1, -1);
                    check(strcmp(whole, bytes) == 0 && strstr(whole, "BROKEN") == NULL, heads[h], bytes, whole);
                    free(whole);
                    free(bytes);
                }
}

/* A sink may refuse any token; where the blame lies must not depend on the cuts. */
static void test_refusing_sink(void)
{
    static const char input[] = "{\"a\":[1,-2.5e3,\"x\\n\xc3\xa9\",true],\"b\\t\":{\"c\":null},\"d\":\"plain\"} ";
    static const char *const want[] = {"!refused@0", "!refused@3", "!refused@5", "!refused@6", "!refused@8", "!refused@21"};
    long k;
    for (k = 0; k < 19; k++) {
        char *whole = run(&strict, (const uint8_t *)input, sizeof input - 1, 0, 0, k);
        const char *end = strchr(whole, '!');
        if (k < 6) check(end != NULL && strcmp(end, want[k]) == 0, "refused token", whole, want[k]);
        check((end != NULL) == (k < 16), "refused token", whole, k < 16 ? "an error" : "none");
        every_cut("refused token", &strict, (const uint8_t *)input, sizeof input - 1, whole, k);
        free(whole);
    }
}

static void test_file(const char *path)
{
    static const size_t sizes[] = {1, 2, 7, 64};
    FILE *f = fopen(path, "rb");
    buffer data = {0};
    char block[65536], *whole, *cut;
    const options modes[2] = {STRICT, LENIENT};
    size_t n, i, m;
    if (f == NULL) {
        check(0, path, "can not be read", "");
        return;
    }
    put(&data, "", 0);
    while ((n = fread(block, 1, sizeof block, f)) > 0) put(&data, block, n);
    fclose(f);
    guard_close();
    guard_open(data.len + 1);
    for (m = 0; m < 2; m++) {
        options o = modes[m];
        o.max_depth = 200000;
        whole = run(&o, (const uint8_t *)data.p, data.len, 0, 0, -1);
        check(strstr(whole, "BROKEN") == NULL, path, whole, "the sink's contract");
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            cut = run(&o, (const uint8_t *)data.p, data.len, 0, sizes[i], -1);
            check(strcmp(whole, cut) == 0, path, cut, whole);
            free(cut);
        }
        if (data.len < 2000) every_cut(path, &o, (const uint8_t *)data.p, data.len, whole, -1);
        free(whole);
    }
    free(data.p);
}

int main(int argc, char **argv)
{
    int i;
    guard_open(1 << 16);
    test_cases();
    test_every_place_in_a_block();
    test_long_strings();
    test_short_inputs();
    test_refusing_sink();
    for (i = 1; i < argc; i++) test_file(argv[i]);
    guard_close();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
