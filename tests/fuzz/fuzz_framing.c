/* The text framers: however the input is cut, the same frames, places, errors and leftovers come out. Chunks lie before a guard page,
 * see tests/c/test_framing.c. Oracles: for event streams and lines a splitter that has the whole input, for arrays the tokenizer.
 *
 *   -DMACHINE=SSE, LINES or ARRAY
 */
#define main test_main
#include "../c/test_framing.c"
#undef main
#undef fail
#include "../../src/toolwire/_core/tw_trial.h"
#include "cuts.h"

#define NO_LIMIT ((size_t)1 << 20)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    open_guard(NO_LIMIT);
    log_places = 1;
    return 0;
}

static int is_json(const uint8_t *p, size_t n)
{
    static uint8_t stack[NO_LIMIT / 8 + 1];
    const uint8_t *end = p + n;
    tw_json j;
    tw_null sink = {0};
    tw_json_init(&j, stack, NO_LIMIT);
    j.surrogates = TW_SURROGATES_KEEP;
    p = tw_null_run(&j, &sink, p, end);
    while (p < end && tw_json_is_space(*p)) p++;
    return p == end && (j.state == ST_JSON_DONE || (j.state == ST_JSON_IN_NUMBER && j.depth == 0 && tw_num_may_end(j.number)));
}

/* ---- oracles: event, id and data of each frame that a line end or a blank line ended ---- */

static void tell(log_ *l, const void *event, size_t event_len, const void *id, size_t id_len, const void *data, size_t data_len)
{
    put_bytes(l, event, event_len);
    put_text(l, "#");
    put_bytes(l, id, id_len);
    put_text(l, ":");
    put_bytes(l, data, data_len);
    put_text(l, "|");
}

static int named(const uint8_t *line, size_t n, const char *name) { return n == strlen(name) && memcmp(line, name, n) == 0; }

/* HTML standard, 9.2.5 and 9.2.6. */
static void split_events(const uint8_t *p, size_t n, log_ *out)
{
    const uint8_t *end = p + n, *eol;
    log_ data = {0}, event = {0}, id = {0};
    int has_data = 0;
    if (n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    for (;; p = eol + 1 + (*eol == '\r' && eol + 1 < end && eol[1] == '\n')) {
        const uint8_t *colon, *value;
        size_t name;
        for (eol = p; eol < end && *eol != '\n' && *eol != '\r';) eol++;
        if (eol == end) break;
        if (eol == p) {
            if (has_data) tell(out, event.p, event.len, id.p, id.len, data.p, data.len);
            data.len = event.len = 0;
            has_data = 0;
            continue;
        }
        colon = memchr(p, ':', (size_t)(eol - p));
        name = (size_t)((colon ? colon : eol) - p);
        value = colon ? colon + 1 : eol;
        if (value < eol && *value == ' ') value++;
        if (named(p, name, "data")) {
            if (has_data) put_text(&data, "\n");
            put_bytes(&data, value, (size_t)(eol - value));
            has_data = 1;
        } else if (named(p, name, "event")) {
            event.len = 0;
            put_bytes(&event, value, (size_t)(eol - value));
        } else if (named(p, name, "id") && !memchr(value, 0, (size_t)(eol - value))) {
            id.len = 0;
            put_bytes(&id, value, (size_t)(eol - value));
        }
    }
    free(data.p);
    free(event.p);
    free(id.p);
}

static void split_lines(const uint8_t *p, size_t n, log_ *out)
{
    const uint8_t *end = p + n, *lf, *q;
    if (n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    for (; (lf = memchr(p, '\n', (size_t)(end - p))) != NULL; p = lf + 1) {
        for (q = p; q < lf && (*q == ' ' || *q == '\t' || *q == '\r');) q++;
        if (q < lf) tell(out, "", 0, "", 0, p, (size_t)(lf - p) - (lf[-1] == '\r'));
    }
}

static void compare_with_oracle(enum which which, const uint8_t *p, size_t n)
{
    log_ want = {0}, got = {0};
    machine m;
    tw_frame f;
    m_init(&m, which, NO_LIMIT);
    m_feed(&m, p, n);
    while (n && m_next(&m, &f, 0) > 0) {
        if (f.kind == TW_FRAME) tell(&got, f.event, f.event_len, f.id, f.id_len, f.data, f.data_len);
        if (which == ARRAY && is_json(p, n)) demand(is_json(f.data, f.data_len), "an element of a valid array that is not JSON");
    }
    if (which == ARRAY) {
        const uint8_t *first = p;
        while (first < p + n && tw_json_is_space(*first)) first++;
        if (first < p + n && *first == '[' && is_json(p, n)) demand(m.array.closed && !m.array.error, "a valid array that is refused");
    } else {
        (which == LINES ? split_lines : split_events)(p, n, &want);
        demand_same("the frames are not the oracle's", want.p, want.len, got.p, got.len);
    }
    m_free(&m);
    free(want.p);
    free(got.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t limits[4] = {NO_LIMIT, 1, 12, 40};
    log_ whole = {0}, cut = {0};
    enum which which = MACHINE;
    plan plan;
    size_t max, each[4096], n;
    if (!read_plan(&plan, data, size)) return 0;
    if (which == SSE && (plan.options & 4)) which = SSE_STRAY;
    max = limits[plan.options & 3];
    run(which, max, plan.p, plan.n, NULL, 0, &whole);
    run(which, max, plan.p, plan.n, plan.cuts, plan.n_cuts, &cut);
    demand_same("whole and cut differ", whole.p, whole.len, cut.p, cut.len);
    if (plan.options & 8) {
        for (n = 0; n < plan.n && n < sizeof each / sizeof *each; n++) each[n] = n;
        run(which, max, plan.p, plan.n, each, n, &cut);
        demand_same("whole and single bytes differ", whole.p, whole.len, cut.p, cut.len);
    }
    if (plan.n) compare_with_oracle(which, plan.p, plan.n);
    free(whole.p);
    free(cut.p);
    return 0;
}
