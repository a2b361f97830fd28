/* Line framer for newline-delimited JSON: one frame a line, ended by LF, with a CR before it or without.
 *
 * A CR alone ends nothing: JSON text may hold it as white space. Lines of JSON white space only (RFC 8259 section 2) are
 * skipped, and so is one byte-order mark at offset 0. A line's size is that of its bytes before the LF, a CR included.
 */
#ifndef TW_LINES_H
#define TW_LINES_H

#include "tw_frame.h"

enum tw_lines_state { ST_LINES_BOM, ST_LINES_LINE_START, ST_LINES_IN_LINE, ST_LINES_FAILED };

typedef struct tw_lines {
    size_t max_frame_bytes;

    /* readable between calls */
    uint8_t state;
    uint8_t bom;           /* bytes of a byte-order mark seen so far */
    uint8_t line_has_text; /* IN_LINE: the line has more than white space */
    uint64_t line_offset;  /* IN_LINE: of the line's first byte */
    uint64_t base;         /* offset of the chunk, or of what comes next */
    tw_buf line;           /* IN_LINE: the line so far */
    int error;
    uint64_t error_offset;

    const uint8_t *chunk, *p, *end;
} tw_lines;

void tw_lines_init(tw_lines *m, size_t max_frame_bytes);
void tw_lines_free(tw_lines *m);
void tw_lines_feed(tw_lines *m, const uint8_t *chunk, size_t len);
int tw_lines_next(tw_lines *m, tw_frame *out);
void tw_lines_abandon(tw_lines *m);

/* End of input: the unfinished line, if it is more than white space. Call until 0. */
int tw_lines_flush(tw_lines *m, tw_frame *out);

/* Is there more than white space in the unfinished line? */
int tw_lines_in_frame(const tw_lines *m);

#endif
