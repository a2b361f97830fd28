#include "tw_array.h"

#include "tw_scan.h"

static const uint8_t BOM[3] = {0xEF, 0xBB, 0xBF};

/* The first quote or backslash. */
static const uint8_t *scan_string(const uint8_t *p, const uint8_t *end)
{
#if TW_SSE2
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned bits = (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
        if (bits) return p + tw_ctz32(bits);
        p += 16;
    }
#endif
    while (p < end && *p != '"' && *p != '\\') p++;
    return p;
}

/* The first quote, bracket or brace. Bit 0x20 is all that tells [ from { and ] from }. */
static const uint8_t *scan_structure(const uint8_t *p, const uint8_t *end)
{
#if TW_SSE2
    const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p), w = _mm_or_si128(v, bit);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_or_si128(_mm_cmpeq_epi8(w, open), _mm_cmpeq_epi8(w, close)));
        unsigned bits = (unsigned)_mm_movemask_epi8(hit);
        if (bits) return p + tw_ctz32(bits);
        p += 16;
    }
#endif
    while (p < end && *p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}') p++;
    return p;
}

/* RFC 8259 section 2 */
TW_INLINE int is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static int is_scalar_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

void tw_array_init(tw_array *m, size_t max_frame_bytes)
{
    memset(m, 0, sizeof *m);
    m->max_frame_bytes = max_frame_bytes;
}

void tw_array_free(tw_array *m) { tw_buf_free(&m->element); }

void tw_array_feed(tw_array *m, const uint8_t *chunk, size_t len)
{
    tw_buf_trim(&m->element);
    m->chunk = m->p = chunk;
    m->end = chunk + len;
}

void tw_array_abandon(tw_array *m)
{
    if (m->state != ST_ARRAY_FAILED) {
        m->error_offset = m->base + (uint64_t)(m->p - m->chunk);
        m->error = TW_E_MEMORY;
        m->state = ST_ARRAY_FAILED;
    }
    m->base = m->error_offset;
    m->chunk = m->p = m->end = NULL;
}

static TW_NOINLINE int fail(tw_array *m, int error, uint64_t offset)
{
    m->error = error;
    m->error_offset = offset;
    m->error_state = m->state;
    m->state = ST_ARRAY_FAILED;
    tw_array_abandon(m);
    return -1;
}

static int fail_at(tw_array *m, int error, const uint8_t *p)
{
    m->error_byte = *p;
    return fail(m, error, m->base + (uint64_t)(p - m->chunk));
}

int tw_array_in_frame(const tw_array *m)
{
    return (m->state >= ST_ARRAY_IN_CONTAINER && m->state <= ST_ARRAY_IN_SCALAR) || m->error == TW_E_FRAME_TOO_LARGE;
}

static int too_large(const tw_array *m, size_t more) { return more > m->max_frame_bytes - m->element.len; }

/* The element ends before `end`; its last bytes start at `from`. */
static int put(tw_array *m, tw_frame *out, const uint8_t *from, const uint8_t *end)
{
    size_t n = (size_t)(end - from);
    memset(out, 0, sizeof *out);
    if (m->element.len) {
        if (tw_buf_append(&m->element, from, n)) return fail(m, TW_E_MEMORY, m->element_offset);
        out->data = m->element.p;
        out->data_len = m->element.len;
        m->element.len = 0; /* its bytes stay until the next call */
    } else {
        out->data = from;
        out->data_len = n;
    }
    out->offset = out->data_offset = m->element_offset;
    out->terminated = 1;
    m->state = ST_ARRAY_AFTER_ELEMENT;
    return 1;
}

/* The first byte of an element. 0 or -1. */
static int open_element(tw_array *m, const uint8_t *p)
{
    uint8_t c = *p;
    int state;
    if (c == '{' || c == '[')
        state = ST_ARRAY_IN_CONTAINER;
    else if (c == '"')
        state = ST_ARRAY_IN_STRING;
    else if (c == '-' || (c >= '0' && c <= '9') || c == 't' || c == 'f' || c == 'n')
        state = ST_ARRAY_IN_SCALAR;
    else
        return fail_at(m, TW_E_JSON_UNEXPECTED_BYTE, p);
    m->state = (uint8_t)state;
    m->depth = state == ST_ARRAY_IN_CONTAINER;
    m->element_offset = m->base + (uint64_t)(p - m->chunk);
    return 0;
}

/* Inside an element: moves m->p to just past the element and returns 1, or to the end of the chunk and returns 0, or to a
 * byte that no scalar holds and returns -1. */
static int read_element(tw_array *m)
{
    const uint8_t *p = m->p, *end = m->end;
    int done = 0;
    while (p < end && !done) {
        switch (m->state) {
        case ST_ARRAY_IN_CONTAINER:
            p = scan_structure(p, end);
            if (p == end) break;
            if (*p == '"')
                m->state = ST_ARRAY_IN_STRING;
            else if ((*p | 0x20) == '{')
                m->depth++;
            else
                done = --m->depth == 0;
            p++;
            break;
        case ST_ARRAY_IN_STRING:
            p = scan_string(p, end);
            if (p == end) break;
            if (*p == '\\')
                m->state = ST_ARRAY_IN_STRING_ESCAPE;
            else {
                m->state = ST_ARRAY_IN_CONTAINER;
                done = m->depth == 0;
            }
            p++;
            break;
        case ST_ARRAY_IN_STRING_ESCAPE:
            p++;
            m->state = ST_ARRAY_IN_STRING;
            break;
        default: /* IN_SCALAR: only a delimiter ends it */
            while (p < end && is_scalar_byte(*p)) p++;
            if (p == end) break;
            done = *p == ',' || *p == ']' || is_space(*p) ? 1 : -1;
            break;
        }
    }
    m->p = p;
    return done;
}

int tw_array_next(tw_array *m, tw_frame *out)
{
    if (m->state == ST_ARRAY_FAILED) return -1;

    while (m->p < m->end) {
        const uint8_t *p = m->p;
        uint8_t c = *p;

        if (tw_array_in_frame(m)) {
            int done;
            const uint8_t *from = p;
            if (m->state == ST_ARRAY_IN_CONTAINER && m->element.len == 0) m->p++; /* its own bracket is counted already */
            if (m->state == ST_ARRAY_IN_STRING && m->element.len == 0) m->p++;    /* its own quote */
            done = read_element(m);
            if (too_large(m, (size_t)(m->p - from)))
                return fail(m, TW_E_FRAME_TOO_LARGE, m->element_offset + m->max_frame_bytes);
            if (done > 0) return put(m, out, from, m->p);
            if (done < 0) return fail_at(m, TW_E_JSON_UNEXPECTED_BYTE, m->p);
            if (tw_buf_append(&m->element, from, (size_t)(m->p - from))) return fail(m, TW_E_MEMORY, m->element_offset);
            break;
        }
        if (m->state == ST_ARRAY_BOM) {
            if (c == BOM[m->bom]) {
                if (++m->bom == 3) m->state = ST_ARRAY_NEED_OPEN;
                m->p++;
                continue;
            }
            if (m->bom) return fail_at(m, TW_E_JSON_UNEXPECTED_BYTE, p);
            m->state = ST_ARRAY_NEED_OPEN;
        }
        if (is_space(c)) {
            m->p++;
            continue;
        }
        switch (m->state) {
        case ST_ARRAY_NEED_OPEN:
            if (c != '[') return fail_at(m, TW_E_JSON_UNEXPECTED_BYTE, p);
            m->state = ST_ARRAY_NEED_ELEMENT_OR_END;
            m->p++;
            break;
        case ST_ARRAY_NEED_ELEMENT_OR_END:
            if (c == ']') {
                m->state = ST_ARRAY_CLOSED;
                m->closed = 1;
                m->p++;
                break;
            }
            if (open_element(m, p)) return -1;
            break;
        case ST_ARRAY_NEED_ELEMENT:
            if (open_element(m, p)) return -1;
            break;
        case ST_ARRAY_AFTER_ELEMENT:
            if (c != ',' && c != ']') return fail_at(m, TW_E_JSON_UNEXPECTED_BYTE, p);
            m->state = c == ',' ? ST_ARRAY_NEED_ELEMENT : ST_ARRAY_CLOSED;
            m->closed = c == ']';
            m->p++;
            break;
        default: /* CLOSED */
            return fail_at(m, TW_E_JSON_TRAILING_DATA, p);
        }
    }
    m->base += (uint64_t)(m->end - m->chunk);
    m->chunk = m->p = m->end = NULL;
    return 0;
}

int tw_array_flush(tw_array *m, tw_frame *out)
{
    static const uint8_t nothing = 0;
    if (m->state == ST_ARRAY_FAILED) return -1;
    if (!tw_array_in_frame(m) || m->element.len == 0) return 0;
    put(m, out, &nothing, &nothing);
    out->terminated = 0;
    m->element.len = 0;
    return 1;
}
