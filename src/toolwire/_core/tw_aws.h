/* Framer for application/vnd.amazon.eventstream: one frame a message. All numbers are big-endian.
 *
 *   4  length of the whole message          n  headers
 *   4  length of the headers                m  payload
 *   4  CRC-32 of the eight bytes before     4  CRC-32 of all bytes before
 *
 * A length is believed only when the first checksum holds, headers only when the second one does: so a damaged byte is
 * always reported as that. A message that the end of the input cuts off is no frame, and nothing of it is handed out.
 *
 * The machine's only state is how many bytes of the message it holds: below TW_AWS_PRELUDE its lengths are not known yet.
 */
#ifndef TW_AWS_H
#define TW_AWS_H

#include "tw_frame.h"

#define TW_AWS_PRELUDE 12
#define TW_AWS_LEAST 16 /* a message without headers and payload */
#define TW_AWS_MAX_HEADERS ((uint32_t)128 << 10)
#define TW_AWS_MAX_PAYLOAD ((uint32_t)24 << 20)

enum tw_aws_type {
    TW_AWS_TRUE,
    TW_AWS_FALSE,
    TW_AWS_INT8,
    TW_AWS_INT16,
    TW_AWS_INT32,
    TW_AWS_INT64,
    TW_AWS_BYTES,
    TW_AWS_STRING,
    TW_AWS_TIMESTAMP, /* milliseconds since 1970 */
    TW_AWS_UUID,
};

typedef struct tw_aws_header {
    const uint8_t *name, *value;
    uint8_t name_len;
    uint8_t type;
    uint16_t value_len; /* bytes of .value */
    int64_t number;     /* of the types that are one */
} tw_aws_header;

typedef struct tw_aws {
    size_t max_frame_bytes; /* of the whole message */

    /* readable between calls */
    uint64_t base;         /* offset of the chunk, or of what comes next */
    uint64_t frame_offset; /* of the message's first byte, once there is one */
    tw_buf held;           /* the message so far */
    int error;
    uint64_t error_offset;

    /* the headers of the frame that next() has just returned; they hold as long as its payload does */
    const uint8_t *headers;
    size_t headers_len;

    const uint8_t *chunk, *p, *end;
} tw_aws;

void tw_aws_init(tw_aws *m, size_t max_frame_bytes);
void tw_aws_free(tw_aws *m);
void tw_aws_feed(tw_aws *m, const uint8_t *chunk, size_t len);
int tw_aws_next(tw_aws *m, tw_frame *out);
void tw_aws_abandon(tw_aws *m);

/* Does the input so far end inside a message, or has it gone wrong? */
int tw_aws_in_frame(const tw_aws *m);

/* The header at *at, which is moved past it. 1, 0 at the end, or -1: bad, and *at is the guilty byte. Does not look for
 * names that are there twice; a machine has done so before it hands out a frame. */
int tw_aws_header_at(const uint8_t *headers, size_t len, size_t *at, tw_aws_header *out);

/* CRC-32 (IEEE 802.3) of n bytes. */
uint32_t tw_aws_crc32(const uint8_t *p, size_t n);

#endif
