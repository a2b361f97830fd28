/* The tokenizer: whole, cut, and in single bytes it says the same, token for token, offset for offset; whatever the options, and
 * whichever token the sink refuses. The sink checks the tokenizer's promises (tests/c/test_json.c), chunks lie before a guard page.
 * What a trial run (tw_trial.h) says of the rest of a document must be what comes.
 */
#define main test_main
#include "../c/test_json.c"
#undef main
#include "../../src/toolwire/_core/tw_trial.h"
#include "cuts.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    guard_open(1 << 20);
    return 0;
}

static void play(const options *o, const plan *plan, int raw, long refuse, size_t size, buffer *log)
{
    machine m;
    size_t at = 0;
    open_machine(&m, o);
    m.s.refuse = refuse;
    m.j.raw_surrogates = (uint8_t)raw;
    if (size) {
        for (; at < plan->n; at += size) feed(&m, plan->p + at, plan->n - at < size ? plan->n - at : size);
    } else {
        for (size_t i = 0; i < plan->n_cuts; at = plan->cuts[i++]) feed(&m, plan->p + at, plan->cuts[i] - at);
        feed(&m, plan->p + at, plan->n - at);
    }
    close_machine(&m);
    *log = m.s.log;
    demand(!m.s.broken, m.s.broken ? m.s.fault : "");
}

/* Does the tokenizer, from where it stands after the first chunk, reject the rest? */
static void try_rest(const options *o, const plan *plan, int raw)
{
    machine m;
    tw_null sink = {0};
    const uint8_t *p = plan->p, *cut = p + plan->cuts[0], *end = p + plan->n;
    int rejects;
    open_machine(&m, o);
    m.j.raw_surrogates = (uint8_t)raw;
    p = tw_null_run(&m.j, &sink, p, cut);
    if (p == cut && m.j.state != ST_JSON_ERROR) {
        rejects = tw_json_rejects(&m.j, cut, (size_t)(end - cut));
        if (m.j.state != ST_JSON_DONE) p = tw_null_run(&m.j, &sink, p, end);
        if (m.j.state == ST_JSON_DONE)
            while (p < end && tw_json_is_space(*p)) p++;
        demand(rejects == (m.j.state == ST_JSON_ERROR || p < end), "a trial run that was wrong");
    }
    free(m.stack);
    free(m.s.text.p);
    free(m.s.log.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    plan plan, once;
    options o;
    buffer whole, cut;
    long refuse = -1;
    int raw;
    if (!read_plan(&plan, data, size)) return 0;
    o.surrogates = (uint8_t)((plan.options & 3) % 3);
    o.allow_nan = plan.options >> 2 & 1;
    o.allow_control = plan.options >> 3 & 1;
    o.max_depth = plan.options & 16 ? 3 : 200;
    raw = plan.options >> 5 & 1;
    if (plan.options & 64 && plan.n_cuts) refuse = (long)plan.cuts[0] & 15;
    once = plan;
    once.n_cuts = 0;
    play(&o, &once, raw, refuse, 0, &whole);
    play(&o, &plan, raw, refuse, 0, &cut);
    demand_same("whole and cut differ", whole.p, whole.len, cut.p, cut.len);
    free(cut.p);
    play(&o, &plan, raw, refuse, 1, &cut);
    demand_same("whole and single bytes differ", whole.p, whole.len, cut.p, cut.len);
    free(cut.p);
    free(whole.p);
    if (plan.n_cuts) try_rest(&o, &plan, raw);
    return 0;
}
