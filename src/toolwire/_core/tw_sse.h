/* Event-stream framer: HTML standard sections 9.2.5 "Parsing an event stream" and 9.2.6 "Interpreting an event stream".
 *
 * Lines are bytes and end at CR, LF or CRLF only. Decoding comes later: UTF-8 decoding with replacement gives the same
 * text before and after the split, because CR, LF, ':' and ' ' never stand inside a well-formed sequence and always end
 * an ill-formed one.
 *
 * A frame's size is that of its field lines without their line ends. Every other line but a comment counts while it is
 * being read, because only its end tells what it is; comments are never held and never count.
 */
#ifndef TW_SSE_H
#define TW_SSE_H

#include "tw_frame.h"

/* One field value of the block being collected. As long as the chunk lasts it may stay there; tw_sse_next() copies it
 * before it returns 0. */
enum tw_held_where { TW_HELD_NONE, TW_HELD_IN_CHUNK, TW_HELD_OWNED };

typedef struct tw_held {
    uint8_t where;
    const uint8_t *p; /* IN_CHUNK */
    size_t len;       /* IN_CHUNK */
    tw_buf buf;       /* OWNED: buf.p + skip up to buf.len */
    size_t skip;
} tw_held;

/* The standard sets no bound on a reconnection time. Its digits are kept as they are, so that nothing overflows. */
#define TW_SSE_RETRY_DIGITS 64

#define TW_SSE_RETRY 2

enum tw_sse_state {
    ST_SSE_BOM, /* at offset 0; bom bytes of a byte-order mark have been seen */
    ST_SSE_LINE_START,
    ST_SSE_SAW_CR, /* as LINE_START, but an LF here belongs to the line before */
    ST_SSE_IN_LINE,
    ST_SSE_IN_COMMENT,
    ST_SSE_FAILED
};

typedef struct tw_sse {
    /* options, set by tw_sse_init() */
    size_t max_frame_bytes;
    uint8_t stray;

    /* readable between calls */
    uint8_t state;
    uint8_t bom;
    uint8_t block_open;    /* a field line has been seen since the last blank line; TW_SSE_RETRY: a retry among them */
    uint64_t block_offset; /* of that field line */
    uint64_t data_offset;  /* of the value of the block's first data field */
    uint64_t line_offset;  /* IN_LINE: of the line's first byte */
    uint64_t base;         /* offset of the chunk, or of what comes next */
    size_t held;           /* bytes of the block's field lines */
    uint8_t retry_len;     /* 0: none */
    uint8_t retry[TW_SSE_RETRY_DIGITS]; /* milliseconds in ASCII digits, without leading zeros; all nines: that or more */
    uint64_t id_serial;    /* changes whenever last_id does */
    tw_buf line;           /* IN_LINE: the line so far */
    tw_buf last_id;        /* the event source's last event ID string */
    tw_held data, event, id;
    int error;
    uint64_t error_offset;

    /* the chunk */
    const uint8_t *chunk, *p, *end;
} tw_sse;

/* Sets a zeroed or freed struct up. max_frame_bytes >= 1. */
void tw_sse_init(tw_sse *m, size_t max_frame_bytes, int stray);
void tw_sse_free(tw_sse *m);

void tw_sse_feed(tw_sse *m, const uint8_t *chunk, size_t len);
int tw_sse_next(tw_sse *m, tw_frame *out);

/* The memory in which the data of the frame just handed out lies, which is then the caller's, to free(); NULL if it lies in the chunk. */
uint8_t *tw_sse_steal(tw_sse *m, const tw_frame *f);

/* Forgets the chunk without having read it to its end. The machine may then only be freed, or asked for members. */
void tw_sse_abandon(tw_sse *m);

/* End of input, for a caller who wants what the standard discards: the unfinished line counts as ended (but sets neither
 * retry nor last_id, as it may be cut), then the block is handed out if it has data. Call until 0. */
int tw_sse_flush(tw_sse *m, tw_frame *out);

/* Has anything but comments been seen since the last blank line? Lines that the standard ignores count only while they
 * are unfinished. */
int tw_sse_in_frame(const tw_sse *m);

/* Replace one held value, for restoring a saved machine. src == NULL: none. 0 or -1. */
int tw_held_restore(tw_held *h, const uint8_t *src, size_t n);
const uint8_t *tw_held_bytes(const tw_held *h, size_t *n);

#endif
