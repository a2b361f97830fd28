/* Instructions of the event-stream framer alone: a file is read again and again in chunks of a given size.
 *
 *   gcc -std=c11 -O2 -o count_sse benchmarks/c/count_sse.c
 *   valgrind --tool=callgrind ./count_sse FILE CHUNK PASSES
 */
#include <stdio.h>

#include "../../src/toolwire/_core/tw_sse.c"
#include "read_file.h"

int main(int argc, char **argv)
{
    size_t size, chunk, at, frames = 0, bytes = 0;
    uint8_t *data;
    if (argc != 4 || (data = read_file(argv[1], &size)) == NULL) return 2;
    chunk = strtoull(argv[2], NULL, 10);
    for (long pass = strtol(argv[3], NULL, 10); pass > 0; pass--) {
        tw_sse m;
        tw_frame frame;
        int more = 0;
        memset(&m, 0, sizeof m);
        tw_sse_init(&m, (size_t)16 << 20, 0);
        for (at = 0; at < size; at += chunk) {
            tw_sse_feed(&m, data + at, size - at < chunk ? size - at : chunk);
            while ((more = tw_sse_next(&m, &frame)) == 1) {
                frames++;
                bytes += frame.data_len;
            }
            if (more < 0) return 1;
        }
        tw_sse_free(&m);
    }
    printf("%zu frames, %zu bytes\n", frames, bytes);
    free(data);
    return 0;
}
