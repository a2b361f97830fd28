/* What the framers share: the frame they hand out, and the bytes they own.
 *
 * A framer is drained, never called back: tw_<machine>_feed() names a chunk, then tw_<machine>_next() returns
 *
 *    1   *out is a frame; its pointers lead into the chunk or into the machine and hold until the next call
 *    0   the chunk is used up; what is still needed of it has been copied into the machine
 *   -1   failed: .error and .error_offset say why and where; every later call returns -1 too
 *
 * The chunk must stay where it is from feed() until next() has returned 0 or -1, or until tw_<machine>_abandon().
 * tw_<machine>_flush() returns, in the same way, what is unterminated at the end of the input.
 */
#ifndef TW_FRAME_H
#define TW_FRAME_H

#include <stdlib.h>

#include "tw_common.h"

/* Tests put a failing allocator here. */
#ifndef TW_REALLOC
#define TW_REALLOC realloc
#endif

/* An idle buffer beyond this is given back, so that one large frame does not stay paid for. */
#define TW_IDLE_BYTES ((size_t)64 << 10)

enum tw_frame_kind {
    TW_FRAME,       /* an event block, a line, an element */
    TW_FRAME_STRAY, /* a line that the standard would ignore (tw_sse only, when asked for) */
};

typedef struct tw_frame {
    const uint8_t *data;
    size_t data_len;
    const uint8_t *event; /* event name; event_len == 0 means "message" */
    size_t event_len;
    const uint8_t *id; /* last event id as of this frame */
    size_t id_len;
    uint64_t id_serial; /* equal serials mean equal ids; 0 means not settled: do not keep it */
    uint64_t offset;    /* of the frame's first byte in the stream */
    uint64_t data_offset; /* of the payload's first byte */
    uint8_t kind;
    uint8_t terminated;
    uint8_t has_retry; /* a reconnection time came with it (tw_sse only, which has it) */
} tw_frame;

typedef struct tw_buf {
    uint8_t *p;
    size_t len, cap;
} tw_buf;

static inline void tw_buf_free(tw_buf *b)
{
    free(b->p);
    memset(b, 0, sizeof *b);
}

/* The first piece gets what it needs, later ones half as much again: amortised constant work a byte, and little memory for the part of a
 * line that most chunks end with. 0 or -1. */
static inline int tw_buf_append(tw_buf *b, const uint8_t *src, size_t n)
{
    if (n > b->cap - b->len) {
        size_t want = b->len + n, cap = b->cap ? want + want / 2 : want;
        uint8_t *grown;
        if (want < n || want > SIZE_MAX / 2) return -1;
        grown = (uint8_t *)TW_REALLOC(b->p, cap);
        if (!grown) return -1;
        b->p = grown;
        b->cap = cap;
    }
    if (n) memcpy(b->p + b->len, src, n);
    b->len += n;
    return 0;
}

static inline int tw_buf_set(tw_buf *b, const uint8_t *src, size_t n)
{
    b->len = 0;
    return tw_buf_append(b, src, n);
}

/* Only between chunks: a frame handed out may point into an empty buffer until the next call. */
static inline void tw_buf_trim(tw_buf *b)
{
    if (b->len == 0 && b->cap > TW_IDLE_BYTES) tw_buf_free(b);
}

#endif
