/* JSON array framer: one frame for each element of one top-level array, as soon as the element closes.
 *
 * Only structure is read: strings (with their escapes), depth, and what stands between elements. What is inside an element
 * is the JSON parser's business, so brackets are counted, not matched: "[{]" yields the element "{]", which no parser
 * accepts. Depth is a counter and needs no limit of its own; max_frame_bytes bounds it.
 *
 *     BOM -> NEED_OPEN --[--> NEED_ELEMENT_OR_END --]--> CLOSED
 *                              | element     ^
 *                              v             |
 *        IN_CONTAINER, IN_STRING, IN_SCALAR  |
 *                              | its end     |
 *                              v             |
 *                        AFTER_ELEMENT --,--> NEED_ELEMENT        (AFTER_ELEMENT --]--> CLOSED)
 */
#ifndef TW_ARRAY_H
#define TW_ARRAY_H

#include "tw_frame.h"

enum tw_array_state {
    ST_ARRAY_BOM, /* at offset 0; bom bytes of a byte-order mark have been seen */
    ST_ARRAY_NEED_OPEN,
    ST_ARRAY_NEED_ELEMENT_OR_END,
    ST_ARRAY_NEED_ELEMENT,
    ST_ARRAY_IN_CONTAINER,
    ST_ARRAY_IN_STRING,
    ST_ARRAY_IN_STRING_ESCAPE, /* after the backslash: the next byte ends nothing */
    ST_ARRAY_IN_SCALAR,
    ST_ARRAY_AFTER_ELEMENT,
    ST_ARRAY_CLOSED,
    ST_ARRAY_FAILED
};

typedef struct tw_array {
    size_t max_frame_bytes;

    /* readable between calls */
    uint8_t state;
    uint8_t bom;
    uint8_t closed; /* the array's own ']' has been seen */
    uint64_t depth; /* open containers of the element */
    uint64_t element_offset;
    uint64_t base; /* offset of the chunk, or of what comes next */
    tw_buf element; /* the bytes of an element that began in an earlier chunk */
    int error;
    uint64_t error_offset;
    uint8_t error_byte;  /* what stood there */
    uint8_t error_state; /* what was needed there */

    const uint8_t *chunk, *p, *end;
} tw_array;

void tw_array_init(tw_array *m, size_t max_frame_bytes);
void tw_array_free(tw_array *m);
void tw_array_feed(tw_array *m, const uint8_t *chunk, size_t len);
int tw_array_next(tw_array *m, tw_frame *out);
void tw_array_abandon(tw_array *m);

/* End of input: the unfinished element, if there is one. Call until 0. */
int tw_array_flush(tw_array *m, tw_frame *out);

/* Is an element unfinished? */
int tw_array_in_frame(const tw_array *m);

#endif
