/* A trial run: is a text valid JSON, or the beginning of it? Keeps nothing. */
#ifndef TW_TRIAL_H
#define TW_TRIAL_H

#include <stdlib.h>

#include "tw_json.h"

/* Would this text be an error behind what was read so far? Runs a copy of the machine with a sink that keeps nothing. */
typedef struct tw_null { int unused; } tw_null;
#define TW_NULL2(name) static inline int tw_n_##name(tw_null *s, tw_json *j) { (void)s; (void)j; return TW_OK; }
TW_NULL2(object_start)
TW_NULL2(array_start)
TW_NULL2(object_end)
TW_NULL2(array_end)
TW_NULL2(text_start)
TW_NULL2(text_end)
#undef TW_NULL2
static inline int tw_n_string(tw_null *s, tw_json *j, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    (void)s; (void)j; (void)p; (void)n; (void)lead; (void)cont;
    return TW_OK;
}
#define tw_n_text tw_n_string
static inline int tw_n_code(tw_null *s, tw_json *j, uint32_t c) { (void)s; (void)j; (void)c; return TW_OK; }
static inline int tw_n_number_part(tw_null *s, tw_json *j, const uint8_t *p, size_t n) { (void)s; (void)j; (void)p; (void)n; return TW_OK; }
static inline int tw_n_number(tw_null *s, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    (void)s; (void)j; (void)p; (void)n; (void)is_int; (void)d;
    return TW_OK;
}
static inline int tw_n_literal(tw_null *s, tw_json *j, int which) { (void)s; (void)j; (void)which; return TW_OK; }
static inline void tw_n_lone_surrogate(tw_null *s, tw_json *j, uint64_t offset) { (void)s; (void)j; (void)offset; }
#define tw_n_control_character tw_n_lone_surrogate

#define TW_JSON_RUN tw_null_run
#define TW_SINK_T tw_null
#define TW_SINK(name) tw_n_##name
#include "tw_json.h"

/* 1, 0, or -1 (no memory). */
static inline int tw_json_rejects(const tw_json *j, const uint8_t *p, size_t n)
{
    tw_json trial = *j;
    tw_null sink = {0};
    const uint8_t *end = p + n;
    size_t stack = tw_json_stack_bytes(j->max_depth);
    uint8_t *copy = (uint8_t *)malloc(stack);
    if (copy == NULL) return -1;
    memcpy(copy, j->stack, stack);
    trial.stack = copy;
    if (trial.state != ST_JSON_DONE) p = tw_null_run(&trial, &sink, p, end);
    free(copy);
    if (trial.state == ST_JSON_DONE)
        while (p < end && tw_json_is_space(*p)) p++;
    return trial.state == ST_JSON_ERROR || p < end;
}

#endif
