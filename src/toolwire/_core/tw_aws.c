#include "tw_aws.h"

#include "tw_wellformed.h"

/* ---- CRC-32 (IEEE 802.3, reflected polynomial EDB88320), eight bytes at a time ----
 *
 * TABLE[k][i] is what byte i does to the remainder when k more bytes follow it. That is linear: each entry is the sum of
 * its bits' eight, which are all that stands here. */

#define BITS(i, a, b, c, d, e, f, g, h)                                                                               \
    (((i) & 1 ? a : 0) ^ ((i) & 2 ? b : 0) ^ ((i) & 4 ? c : 0) ^ ((i) & 8 ? d : 0) ^ ((i) & 16 ? e : 0) ^             \
     ((i) & 32 ? f : 0) ^ ((i) & 64 ? g : 0) ^ ((i) & 128 ? h : 0))
#define X4(i, ...) BITS(i, __VA_ARGS__), BITS(i + 1, __VA_ARGS__), BITS(i + 2, __VA_ARGS__), BITS(i + 3, __VA_ARGS__)
#define X16(i, ...) X4(i, __VA_ARGS__), X4(i + 4, __VA_ARGS__), X4(i + 8, __VA_ARGS__), X4(i + 12, __VA_ARGS__)
#define X64(i, ...) X16(i, __VA_ARGS__), X16(i + 16, __VA_ARGS__), X16(i + 32, __VA_ARGS__), X16(i + 48, __VA_ARGS__)
#define ROW(...) {X64(0, __VA_ARGS__), X64(64, __VA_ARGS__), X64(128, __VA_ARGS__), X64(192, __VA_ARGS__)}

static const uint32_t TABLE[8][256] = {
    ROW(0x77073096, 0xEE0E612C, 0x076DC419, 0x0EDB8832, 0x1DB71064, 0x3B6E20C8, 0x76DC4190, 0xEDB88320),
    ROW(0x191B3141, 0x32366282, 0x646CC504, 0xC8D98A08, 0x4AC21251, 0x958424A2, 0xF0794F05, 0x3B83984B),
    ROW(0x01C26A37, 0x0384D46E, 0x0709A8DC, 0x0E1351B8, 0x1C26A370, 0x384D46E0, 0x709A8DC0, 0xE1351B80),
    ROW(0xB8BC6765, 0xAA09C88B, 0x8F629757, 0xC5B428EF, 0x5019579F, 0xA032AF3E, 0x9B14583D, 0xED59B63B),
    ROW(0x3D6029B0, 0x7AC05360, 0xF580A6C0, 0x30704BC1, 0x60E09782, 0xC1C12F04, 0x58F35849, 0xB1E6B092),
    ROW(0xCB5CD3A5, 0x4DC8A10B, 0x9B914216, 0xEC53826D, 0x03D6029B, 0x07AC0536, 0x0F580A6C, 0x1EB014D8),
    ROW(0xA6770BB4, 0x979F1129, 0xF44F2413, 0x33EF4E67, 0x67DE9CCE, 0xCFBD399C, 0x440B7579, 0x8816EAF2),
    ROW(0xCCAA009E, 0x4225077D, 0x844A0EFA, 0xD3E51BB5, 0x7CBB312B, 0xF9766256, 0x299DC2ED, 0x533B85DA),
};

static inline uint32_t little(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t tw_aws_crc32(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xFFFFFFFF;
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t a = crc ^ little(p), b = little(p + 4);
        crc = TABLE[7][a & 255] ^ TABLE[6][a >> 8 & 255] ^ TABLE[5][a >> 16 & 255] ^ TABLE[4][a >> 24] ^ TABLE[3][b & 255] ^
              TABLE[2][b >> 8 & 255] ^ TABLE[1][b >> 16 & 255] ^ TABLE[0][b >> 24];
    }
    for (; n; p++, n--) crc = crc >> 8 ^ TABLE[0][(crc ^ *p) & 255];
    return ~crc;
}

/* ---- headers ---- */

static inline uint32_t big32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static int64_t big_signed(const uint8_t *p, size_t n)
{
    uint64_t value = p[0] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++) value = value << 8 | p[i];
    return value <= INT64_MAX ? (int64_t)value : -(int64_t)(UINT64_MAX - value) - 1;
}

int tw_aws_header_at(const uint8_t *headers, size_t len, size_t *at, tw_aws_header *out)
{
    static const uint8_t SIZE[] = {0, 0, 1, 2, 4, 8, 0, 0, 8, 16};
    size_t i = *at, size;
    if (i == len) return 0;
    memset(out, 0, sizeof *out);
    out->name_len = headers[i];
    if (out->name_len >= len - i - 1) return -1; /* the type has to follow as well */
    out->name = headers + i + 1;
    if (!tw_is_wellformed(out->name, out->name_len)) return -1;
    i += 1 + (size_t)out->name_len;
    out->type = headers[i];
    if (out->type > TW_AWS_UUID) {
        *at = i;
        return -1;
    }
    i++;
    size = SIZE[out->type];
    if (out->type == TW_AWS_BYTES || out->type == TW_AWS_STRING) {
        if (len - i < 2) goto bad_value;
        size = (size_t)headers[i] << 8 | headers[i + 1];
        if (size > len - i - 2) goto bad_value;
        i += 2;
    }
    if (size > len - i) goto bad_value;
    out->value = headers + i;
    out->value_len = (uint16_t)size;
    if (out->type == TW_AWS_STRING && !tw_is_wellformed(out->value, size)) goto bad_value;
    if (out->type <= TW_AWS_FALSE)
        out->number = out->type == TW_AWS_TRUE;
    else if (out->type <= TW_AWS_INT64 || out->type == TW_AWS_TIMESTAMP)
        out->number = big_signed(out->value, size);
    *at = i + size;
    return 1;

bad_value:
    *at = i;
    return -1;
}

static int compare_names(const uint8_t *a, const uint8_t *b)
{
    if (*a != *b) return *a < *b ? -1 : 1;
    return memcmp(a + 1, b + 1, *a);
}

/* By name, and the same name by place. */
static int compare_headers(const void *a, const void *b)
{
    const uint8_t *x = *(const uint8_t *const *)a, *y = *(const uint8_t *const *)b;
    int by_name = compare_names(x, y);
    return by_name ? by_name : x < y ? -1 : x > y;
}

#define FEW 16

/* The first header that is wrong: 0, or the error with *at on its byte. Many headers are sorted, as comparing each with
 * each would let one message take seconds. */
static int check_headers(const uint8_t *headers, size_t len, size_t *at)
{
    const uint8_t *few[FEW], **names = few;
    size_t n = 0, count = 0, next = 0, first = len;
    tw_aws_header header;
    int got;
    *at = 0;
    while ((got = tw_aws_header_at(headers, len, &next, &header)) > 0) {
        if (count < FEW) few[count] = header.name - 1;
        count++;
    }
    if (count > FEW) {
        names = (const uint8_t **)TW_REALLOC(NULL, count * sizeof *names);
        if (!names) return TW_E_MEMORY;
        for (size_t i = 0; n < count && tw_aws_header_at(headers, len, &i, &header) > 0;) names[n++] = header.name - 1;
        qsort(names, count, sizeof *names, compare_headers);
        for (size_t i = 1; i < count; i++)
            if (compare_names(names[i - 1], names[i]) == 0 && (size_t)(names[i] - headers) < first) first = (size_t)(names[i] - headers);
        free((void *)names);
    } else {
        for (size_t i = 1; i < count && first == len; i++)
            for (size_t k = 0; k < i; k++)
                if (compare_names(names[k], names[i]) == 0) first = (size_t)(names[i] - headers);
    }
    *at = first < len ? first : next; /* what is there twice stands before what can not be read */
    return first < len || got < 0 ? TW_E_FRAME_BAD_HEADER : TW_OK;
}

/* ---- messages ---- */

void tw_aws_init(tw_aws *m, size_t max_frame_bytes)
{
    memset(m, 0, sizeof *m);
    m->max_frame_bytes = max_frame_bytes;
}

void tw_aws_free(tw_aws *m) { tw_buf_free(&m->held); }

void tw_aws_feed(tw_aws *m, const uint8_t *chunk, size_t len)
{
    tw_buf_trim(&m->held);
    m->chunk = m->p = chunk;
    m->end = chunk + len;
}

void tw_aws_abandon(tw_aws *m)
{
    if (!m->error) {
        m->error = TW_E_MEMORY;
        m->error_offset = m->base + (uint64_t)(m->p - m->chunk);
    }
    m->base = m->error_offset;
    m->chunk = m->p = m->end = NULL;
}

static TW_NOINLINE int fail(tw_aws *m, int error, uint64_t at)
{
    m->error = error;
    m->error_offset = m->frame_offset + at;
    tw_aws_abandon(m);
    return -1;
}

int tw_aws_in_frame(const tw_aws *m) { return m->held.len > 0 || m->error; }

/* The first of the four bytes that should be the checksum of the n bytes before them and is not; 4 if all are. */
static unsigned wrong_byte(const uint8_t *message, size_t n)
{
    uint32_t difference = tw_aws_crc32(message, n) ^ big32(message + n);
    unsigned i = 0;
    while (i < 4 && !(difference >> (24 - 8 * i) & 255)) i++;
    return i;
}

/* The lengths in a whole prelude: 0 or -1. */
static int check_prelude(tw_aws *m, const uint8_t *prelude)
{
    uint32_t total = big32(prelude), headers = big32(prelude + 4);
    unsigned wrong = wrong_byte(prelude, 8);
    if (wrong < 4) return fail(m, TW_E_FRAME_BAD_CHECKSUM, 8 + wrong);
    if (total < TW_AWS_LEAST) return fail(m, TW_E_FRAME_BAD_LENGTH, 0);
    if (headers > total - TW_AWS_LEAST || headers > TW_AWS_MAX_HEADERS) return fail(m, TW_E_FRAME_BAD_LENGTH, 4);
    if (total - TW_AWS_LEAST - headers > TW_AWS_MAX_PAYLOAD) return fail(m, TW_E_FRAME_BAD_LENGTH, 0);
    if (total > m->max_frame_bytes) return fail(m, TW_E_FRAME_TOO_LARGE, 0);
    return 0;
}

/* A whole message, whose prelude was checked: 1 or -1. */
static int take(tw_aws *m, const uint8_t *message, size_t total, tw_frame *out)
{
    size_t headers = big32(message + 4), at;
    unsigned wrong = wrong_byte(message, total - 4);
    int error;
    if (wrong < 4) return fail(m, TW_E_FRAME_BAD_CHECKSUM, total - 4 + wrong);
    error = check_headers(message + TW_AWS_PRELUDE, headers, &at);
    if (error) return fail(m, error, TW_AWS_PRELUDE + at);
    m->headers = message + TW_AWS_PRELUDE;
    m->headers_len = headers;
    memset(out, 0, sizeof *out);
    out->data = m->headers + headers;
    out->data_len = total - TW_AWS_LEAST - headers;
    out->offset = m->frame_offset;
    out->data_offset = m->frame_offset + TW_AWS_PRELUDE + headers;
    out->terminated = 1;
    return 1;
}

/* Bytes of the chunk into the message that is held, until it has `wanted`: 1, 0 when the chunk is used up before, -1. */
static int hold(tw_aws *m, size_t wanted)
{
    size_t need = wanted - m->held.len, there = (size_t)(m->end - m->p), n = need < there ? need : there;
    if (n && tw_buf_append(&m->held, m->p, n)) return fail(m, TW_E_MEMORY, m->held.len);
    m->p += n;
    return n == need;
}

int tw_aws_next(tw_aws *m, tw_frame *out)
{
    if (m->error) return -1;
    while (m->p < m->end) {
        size_t total, there = (size_t)(m->end - m->p);
        int got;
        if (m->held.len == 0) {
            m->frame_offset = m->base + (uint64_t)(m->p - m->chunk);
            if (there >= TW_AWS_PRELUDE) {
                const uint8_t *message = m->p;
                if (check_prelude(m, message)) return -1;
                total = big32(message);
                if (total <= there) {
                    m->p += total;
                    return take(m, message, total, out);
                }
            }
        }
        if (m->held.len < TW_AWS_PRELUDE) {
            got = hold(m, TW_AWS_PRELUDE);
            if (got < 0) return -1;
            if (got == 0) break;
            if (check_prelude(m, m->held.p)) return -1;
        }
        total = big32(m->held.p);
        got = hold(m, total);
        if (got < 0) return -1;
        if (got == 0) break;
        m->held.len = 0; /* its bytes stay until the next call */
        got = take(m, m->held.p, total, out);
        return got;
    }
    m->base += (uint64_t)(m->end - m->chunk);
    m->chunk = m->p = m->end = NULL;
    return 0;
}
