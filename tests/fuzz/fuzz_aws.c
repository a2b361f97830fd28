/* Binary messages. The input is a list of records: most become messages with right checksums, which no mutation would hit upon; some
 * have a byte broken, some are bytes as they stand. Whole and cut are compared; a message that was not broken has to come out as it
 * went in; no frame has a name twice, nor anything that lies outside the chunk (which ends before a guard page).
 */
#define main test_main
#include "../c/test_aws.c"
#undef main
#undef fail
#include "cuts.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    open_guard(1 << 20);
    return 0;
}

typedef struct trace {
    uint8_t p[1 << 18];
    size_t len;
} trace;

static void note(trace *t, const void *p, size_t n)
{
    demand(t->len + n <= sizeof t->p, "more came out than went in");
    if (n) memcpy(t->p + t->len, p, n);
    t->len += n;
}

static void note_number(trace *t, uint64_t n) { note(t, &n, sizeof n); }

static void note_frame(trace *t, const tw_aws *m, const tw_frame *f)
{
    tw_aws_header h, other;
    size_t at = 0, k;
    note_number(t, f->offset);
    note_number(t, f->data_offset);
    while (tw_aws_header_at(m->headers, m->headers_len, &at, &h) > 0) {
        note(t, h.name, h.name_len);
        note(t, &h.type, 1);
        note_number(t, (uint64_t)h.number);
        note(t, h.value, h.value_len);
        for (k = at; tw_aws_header_at(m->headers, m->headers_len, &k, &other) > 0;)
            demand(h.name_len != other.name_len || memcmp(h.name, other.name, h.name_len) != 0, "a name twice");
    }
    demand(at == m->headers_len, "headers that end early");
    note_number(t, f->data_len);
    note(t, f->data, f->data_len);
}

static void feed_piece(tw_aws *m, trace *t, const uint8_t *p, size_t n)
{
    tw_frame f;
    if (n == 0) return;
    memcpy(guard - n, p, n);
    tw_aws_feed(m, guard - n, n);
    while (tw_aws_next(m, &f) > 0) note_frame(t, m, &f);
    memset(guard - n, '~', n);
}

static void play(const uint8_t *p, size_t n, const size_t *cuts, size_t n_cuts, size_t max, trace *t)
{
    tw_aws m;
    size_t at = 0;
    t->len = 0;
    tw_aws_init(&m, max);
    for (size_t i = 0; i < n_cuts && cuts[i] < n; at = cuts[i++]) feed_piece(&m, t, p + at, cuts[i] - at);
    feed_piece(&m, t, p + at, n - at);
    note_number(t, (uint64_t)tw_aws_in_frame(&m));
    note_number(t, (uint64_t)m.error);
    note_number(t, m.error ? m.error_offset : 0);
    note_number(t, m.base);
    tw_aws_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t stream[1 << 17];
    static trace whole, cut;
    static const size_t limits[4] = {1 << 20, 16, 40, 300};
    size_t n = 0, good = 0, i, each[16];
    int broken = 0;
    plan plan;
    if (!read_plan(&plan, data, size)) return 0;
    /* A record: what to do with it, bytes of headers, bytes of payload, those bytes. */
    for (i = 0; plan.n - i >= 3 && n + 1024 < sizeof stream;) {
        uint8_t what = plan.p[i];
        size_t headers = plan.p[i + 1], payload = plan.p[i + 2], start = n;
        i += 3;
        if (headers > plan.n - i) headers = plan.n - i;
        if (payload > plan.n - i - headers) payload = plan.n - i - headers;
        if (what == 255) {
            memcpy(stream + n, plan.p + i, headers + payload);
            n += headers + payload;
            broken = 1;
        } else {
            n += encode(stream + n, plan.p + i, headers, plan.p + i + headers, payload);
            if (what >= 200 && payload) stream[start + plan.p[i + headers] % (n - start)] ^= (uint8_t)(1 << what % 8);
            if (what >= 200) broken = 1;
            if (!broken && headers == 0) good++;
            else broken = 1;
        }
        i += headers + payload;
    }
    if (n == 0) return 0;
    for (i = 0; i < plan.n_cuts; i++) each[i] = plan.cuts[i] * 3 % n; /* the stream is longer than what it is made of */
    for (i = 1; i < plan.n_cuts; i++)
        if (each[i] < each[i - 1]) each[i] = each[i - 1];
    play(stream, n, NULL, 0, limits[plan.options & 3], &whole);
    play(stream, n, each, plan.n_cuts, limits[plan.options & 3], &cut);
    demand_same("whole and cut differ", whole.p, whole.len, cut.p, cut.len);
    if ((plan.options & 3) == 0) {
        /* The messages without headers before the first that is odd: each must be a frame. */
        tw_aws m;
        tw_frame f;
        tw_aws_init(&m, 1 << 20);
        tw_aws_feed(&m, stream, n);
        for (; good; good--) demand(tw_aws_next(&m, &f) == 1 && m.headers_len == 0, "a good message that is refused");
        tw_aws_free(&m);
    }
    return 0;
}
