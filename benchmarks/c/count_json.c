/* Instructions of the JSON tokenizer alone: a file is read again and again in chunks of a given size, into a sink that counts.
 *
 *   gcc -std=c11 -O2 -o count_json benchmarks/c/count_json.c
 *   valgrind --tool=callgrind ./count_json FILE CHUNK PASSES
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../src/toolwire/_core/tw_json.h"

typedef struct counts {
    uint64_t tokens, bytes;
} counts;

#define ONE_TOKEN { (void)j; s->tokens++; return TW_OK; }
static int count_object_start(counts *s, tw_json *j) ONE_TOKEN
static int count_array_start(counts *s, tw_json *j) ONE_TOKEN
static int count_object_end(counts *s, tw_json *j) ONE_TOKEN
static int count_array_end(counts *s, tw_json *j) ONE_TOKEN
static int count_text_start(counts *s, tw_json *j) ONE_TOKEN
static int count_text_end(counts *s, tw_json *j) ONE_TOKEN
static int count_code(counts *s, tw_json *j, uint32_t c) { (void)j; s->bytes += c; return TW_OK; }
static int count_literal(counts *s, tw_json *j, int which) { (void)j; s->bytes += (unsigned)which; return TW_OK; }
static void count_lone_surrogate(counts *s, tw_json *j, uint64_t at) { (void)j; s->bytes += at; }
static void count_control_character(counts *s, tw_json *j, uint64_t at) { (void)j; s->bytes += at; }

static int count_text(counts *s, tw_json *j, const uint8_t *p, size_t n, unsigned lead, size_t cont)
{
    (void)j;
    (void)p;
    s->bytes += n + lead + cont;
    return TW_OK;
}

static int count_string(counts *s, tw_json *j, const uint8_t *p, size_t n, unsigned lead, size_t cont)
{
    s->tokens++;
    return count_text(s, j, p, n, lead, cont);
}

static int count_number_part(counts *s, tw_json *j, const uint8_t *p, size_t n) { return count_text(s, j, p, n, 0, 0); }

static int count_number(counts *s, tw_json *j, const uint8_t *p, size_t n, int is_int, const tw_decimal *d)
{
    (void)d;
    s->tokens++;
    return count_text(s, j, p, n, (unsigned)is_int, 0);
}

#define TW_JSON_RUN run_counting
#define TW_SINK_T counts
#define TW_SINK(name) count_##name
#include "../../src/toolwire/_core/tw_json.h"
#include "read_file.h"

int main(int argc, char **argv)
{
    size_t size, chunk, at;
    uint8_t *data, *stack = calloc(tw_json_stack_bytes(512), 1);
    counts s = {0, 0};
    if (argc != 4 || stack == NULL || (data = read_file(argv[1], &size)) == NULL) return 2;
    chunk = strtoull(argv[2], NULL, 10);
    for (long pass = strtol(argv[3], NULL, 10); pass > 0; pass--) {
        tw_json j;
        tw_json_init(&j, stack, 512);
        for (at = 0; at < size; at += chunk) run_counting(&j, &s, data + at, data + (size - at < chunk ? size : at + chunk));
        if (j.state != ST_JSON_DONE) return 1;
    }
    printf("%llu tokens, %llu bytes\n", (unsigned long long)s.tokens, (unsigned long long)s.bytes);
    free(data);
    free(stack);
    return 0;
}
