/* Instructions of templates alone: the lines of a file are chat payloads; all are fitted into the template of the first two.
 *
 *   gcc -std=c11 -O2 -o count_template benchmarks/c/count_template.c
 *   valgrind --tool=callgrind ./count_template FILE 0 PASSES
 */
#include <stdio.h>

#include "../../src/toolwire/_core/tw_template.c"
#include "read_file.h"

static tw_field function[] = {{"name", 4, NULL, NULL}, {"arguments", 9, NULL, NULL}};
static tw_node function_node = {function, 2};
static tw_field call[] = {{"index", 5, NULL, NULL}, {"id", 2, NULL, NULL}, {"function", 8, NULL, &function_node}};
static tw_node call_node = {call, 3};
static tw_field delta[] = {{"content", 7, NULL, NULL}, {"tool_calls", 10, NULL, &call_node}};
static tw_node delta_node = {delta, 2};
static tw_field choice[] = {{"index", 5, NULL, NULL}, {"delta", 5, NULL, &delta_node}, {"finish_reason", 13, NULL, NULL}};
static tw_node choice_node = {choice, 3};
static tw_field root[] = {{"id", 2, NULL, NULL}, {"choices", 7, NULL, &choice_node}};
static tw_node root_node = {root, 2};
static const tw_step path[] = {{"choices", 7, 0}, {NULL, 0, 0}, {"delta", 5, 0}, {"tool_calls", 10, 0}, {NULL, 0, 0}, {"function", 8, 0}, {"arguments", 9, 0}};
static const tw_aim aim = {&root_node, path, 7, NULL, 0, 512};

int main(int argc, char **argv)
{
    size_t size, fitted = 0, lines = 0;
    uint8_t *data;
    if (argc != 4 || (data = read_file(argv[1], &size)) == NULL) return 2;
    for (long pass = strtol(argv[3], NULL, 10); pass > 0; pass--) {
        tw_template one, both = {0};
        tw_span same[TW_TEMPLATE_HOLES];
        tw_fit fit;
        size_t line = 0;
        for (const uint8_t *p = data, *end = data + size, *next; p < end; p = next + 1, line++) {
            next = (const uint8_t *)memchr(p, '\n', (size_t)(end - p));
            if (next == NULL) next = end;
            if (line == 0 && tw_template_make(&one, NULL, &aim, p, (size_t)(next - p)) != 1) return 1;
            if (line == 1) {
                if (tw_template_make(&both, &one, &aim, p, (size_t)(next - p)) != 1) return 1;
                if (!tw_template_fit(&both, NULL, same, p, (size_t)(next - p), &fit)) return 1;
            }
            if (line > 1) fitted += (size_t)tw_template_fit(&both, same, NULL, p, (size_t)(next - p), &fit);
        }
        lines += line;
        tw_template_free(&one);
        tw_template_free(&both);
    }
    printf("%zu of %zu lines fit\n", fitted, lines);
    free(data);
    return 0;
}
