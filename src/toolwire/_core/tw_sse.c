#include "tw_sse.h"

#include "tw_scan.h"

static const uint8_t BOM[3] = {0xEF, 0xBB, 0xBF};

/* ---- held values ---- */

static void held_drop(tw_held *h)
{
    h->where = TW_HELD_NONE;
    h->buf.len = 0;
}

static int held_own(tw_held *h, const uint8_t *p, size_t n)
{
    h->skip = 0;
    h->where = TW_HELD_OWNED;
    return tw_buf_set(&h->buf, p, n);
}

/* A value that lies in the machine's line buffer must leave it; one in the chunk may stay there for now. */
TW_INLINE int held_set(tw_held *h, const uint8_t *p, size_t n, int in_chunk)
{
    if (!in_chunk) return held_own(h, p, n);
    h->where = TW_HELD_IN_CHUNK;
    h->p = p;
    h->len = n;
    return 0;
}

TW_INLINE int held_keep(tw_held *h) { return h->where == TW_HELD_IN_CHUNK ? held_own(h, h->p, h->len) : 0; }

const uint8_t *tw_held_bytes(const tw_held *h, size_t *n)
{
    if (h->where == TW_HELD_IN_CHUNK) {
        *n = h->len;
        return h->p;
    }
    if (h->where == TW_HELD_OWNED) {
        *n = h->buf.len - h->skip;
        return h->buf.p ? h->buf.p + h->skip : (const uint8_t *)"";
    }
    *n = 0;
    return (const uint8_t *)"";
}

int tw_held_restore(tw_held *h, const uint8_t *src, size_t n)
{
    held_drop(h);
    return src ? held_own(h, src, n) : 0;
}

/* ---- life ---- */

void tw_sse_init(tw_sse *m, size_t max_frame_bytes, int stray)
{
    memset(m, 0, sizeof *m);
    m->max_frame_bytes = max_frame_bytes;
    m->stray = stray != 0;
    m->id_serial = 1;
}

void tw_sse_free(tw_sse *m)
{
    tw_buf_free(&m->line);
    tw_buf_free(&m->last_id);
    tw_buf_free(&m->data.buf);
    tw_buf_free(&m->event.buf);
    tw_buf_free(&m->id.buf);
}

void tw_sse_feed(tw_sse *m, const uint8_t *chunk, size_t len)
{
    tw_buf_trim(&m->line);
    tw_buf_trim(&m->data.buf);
    tw_buf_trim(&m->event.buf);
    tw_buf_trim(&m->id.buf);
    m->chunk = m->p = chunk;
    m->end = chunk + len;
}

void tw_sse_abandon(tw_sse *m)
{
    tw_held *all[3] = {&m->data, &m->event, &m->id};
    for (int i = 0; i < 3; i++)
        if (all[i]->where == TW_HELD_IN_CHUNK) held_drop(all[i]);
    if (m->state != ST_SSE_FAILED) {
        m->error_offset = m->base + (uint64_t)(m->p - m->chunk);
        m->error = TW_E_MEMORY;
        m->state = ST_SSE_FAILED;
    }
    m->base = m->error_offset;
    m->chunk = m->p = m->end = NULL;
}

static TW_NOINLINE int fail(tw_sse *m, int error, uint64_t offset)
{
    m->error = error;
    m->error_offset = offset;
    m->state = ST_SSE_FAILED;
    tw_sse_abandon(m);
    return -1;
}

uint8_t *tw_sse_steal(tw_sse *m, const tw_frame *f)
{
    uint8_t *p = m->data.buf.p;
    if (p == NULL || f->data < p || f->data >= p + m->data.buf.cap) return NULL;
    memset(&m->data.buf, 0, sizeof m->data.buf);
    return p;
}

int tw_sse_in_frame(const tw_sse *m)
{
    return m->block_open || m->state == ST_SSE_IN_LINE || (m->state == ST_SSE_BOM && m->bom) || m->error == TW_E_FRAME_TOO_LARGE;
}

/* ---- 9.2.6: fields ---- */

/* Is the line "name" or "name:..."? If so *v is its value: after the colon and at most one U+0020. */
TW_INLINE int field_is(const uint8_t *line, size_t n, const char *name, size_t name_len, size_t *v)
{
    if (n < name_len || memcmp(line, name, name_len) != 0) return 0;
    if (n == name_len) {
        *v = n; /* "Otherwise, the string is not empty but does not contain a colon": the value is empty */
        return 1;
    }
    if (line[name_len] != ':') return 0;
    *v = name_len + 1;
    if (*v < n && line[*v] == ' ') ++*v;
    return 1;
}

/* Was it one? */
static int set_retry(tw_sse *m, const uint8_t *v, size_t n)
{
    if (n == 0) return 0;
    for (size_t i = 0; i < n; i++)
        /* "consists of only ASCII digits": no sign, no space, no other script's digits */
        if (v[i] < '0' || v[i] > '9') return 0;
    while (n > 1 && *v == '0') {
        v++;
        n--;
    }
    if (n > TW_SSE_RETRY_DIGITS) {
        n = TW_SSE_RETRY_DIGITS;
        memset(m->retry, '9', n);
    } else
        memcpy(m->retry, v, n);
    m->retry_len = (uint8_t)n;
    return 1;
}

static int add_data(tw_sse *m, const uint8_t *line, size_t n, size_t v, int in_chunk)
{
    tw_held *d = &m->data;
    if (TW_LIKELY(d->where == TW_HELD_NONE)) {
        if (in_chunk) return held_set(d, line + v, n - v, 1);
        /* The line was put together in our own buffer: let the buffers change places instead of copying. */
        tw_buf whole = m->line;
        m->line = d->buf;
        m->line.len = 0;
        d->buf = whole;
        d->skip = v;
        d->where = TW_HELD_OWNED;
        return 0;
    }
    if (held_keep(d) || tw_buf_append(&d->buf, (const uint8_t *)"\n", 1)) return -1;
    return tw_buf_append(&d->buf, line + v, n - v);
}

/* One whole line, not blank and no comment. 0, or 1 if it is a stray line to hand out, or -1 (no memory). */
TW_INLINE int take_line(tw_sse *m, const uint8_t *line, size_t n, uint64_t offset, int in_chunk, int ended)
{
    size_t v;
    int bad = 0, retry = 0;
    if (TW_LIKELY(field_is(line, n, "data", 4, &v))) {
        if (m->data.where == TW_HELD_NONE) m->data_offset = offset + v;
        bad = add_data(m, line, n, v, in_chunk);
    } else if (field_is(line, n, "event", 5, &v))
        bad = held_set(&m->event, line + v, n - v, in_chunk);
    else if (field_is(line, n, "id", 2, &v)) {
        if (!memchr(line + v, 0, n - v)) bad = held_set(&m->id, line + v, n - v, in_chunk);
    } else if (field_is(line, n, "retry", 5, &v)) {
        retry = ended && set_retry(m, line + v, n - v);
    } else
        return m->stray;
    if (!m->block_open) {
        m->block_open = 1;
        m->block_offset = offset;
    }
    if (retry) m->block_open |= TW_SSE_RETRY;
    m->held += n;
    return bad;
}

/* The blank line makes the block's id the last event ID, with or without data. */
static int commit_id(tw_sse *m)
{
    size_t n;
    const uint8_t *p = tw_held_bytes(&m->id, &n);
    if (n != m->last_id.len || (n && memcmp(p, m->last_id.p, n) != 0)) {
        if (tw_buf_set(&m->last_id, p, n)) return -1;
        m->id_serial++;
    }
    held_drop(&m->id);
    return 0;
}

TW_INLINE void put_id(const tw_sse *m, tw_frame *out)
{
    out->id = m->last_id.p ? m->last_id.p : (const uint8_t *)"";
    out->id_len = m->last_id.len;
    out->id_serial = m->id_serial;
}

TW_INLINE void put_block(const tw_sse *m, tw_frame *out)
{
    out->kind = TW_FRAME;
    out->has_retry = (m->block_open & TW_SSE_RETRY) != 0;
    out->data = tw_held_bytes(&m->data, &out->data_len);
    out->event = tw_held_bytes(&m->event, &out->event_len);
    out->offset = m->block_offset;
    out->data_offset = m->data_offset;
}

static void put_stray(const tw_sse *m, tw_frame *out, const uint8_t *line, size_t n, uint64_t offset, int ended)
{
    out->kind = TW_FRAME_STRAY;
    out->has_retry = 0;
    out->data = line;
    out->data_len = n;
    out->event = (const uint8_t *)"";
    out->event_len = 0;
    out->offset = out->data_offset = offset;
    out->terminated = (uint8_t)ended;
    put_id(m, out);
}

TW_INLINE void end_block(tw_sse *m)
{
    m->block_open = 0;
    m->held = 0;
    /* The bytes stay where they are until the next call: the frame just handed out points at them. */
    held_drop(&m->data);
    held_drop(&m->event);
}

/* A blank line. 1: *out is a frame. */
TW_INLINE int dispatch(tw_sse *m, tw_frame *out)
{
    int found = m->data.where != TW_HELD_NONE;
    if (m->id.where != TW_HELD_NONE && commit_id(m)) return -1;
    if (found) {
        put_block(m, out);
        put_id(m, out);
        out->terminated = 1;
    }
    end_block(m);
    return found;
}

/* ---- 9.2.5: lines ---- */

/* Bytes of an unfinished line that is no comment. */
static int hold_line(tw_sse *m, const uint8_t *p, size_t n)
{
    if (n > m->max_frame_bytes - m->held - m->line.len)
        return fail(m, TW_E_FRAME_TOO_LARGE, m->line_offset + (m->max_frame_bytes - m->held));
    if (tw_buf_append(&m->line, p, n)) return fail(m, TW_E_MEMORY, m->line_offset + m->line.len);
    m->state = ST_SSE_IN_LINE;
    return 0;
}

/* "one leading U+FEFF BYTE ORDER MARK character must be ignored if any are present". Its bytes may come one by one. */
static TW_NOINLINE int read_bom(tw_sse *m)
{
    while (m->p < m->end && m->bom < 3 && *m->p == BOM[m->bom]) {
        m->bom++;
        m->p++;
    }
    if (m->bom == 3 || (m->p < m->end && m->bom == 0))
        m->state = ST_SSE_LINE_START;
    else if (m->p < m->end) {
        /* It was none: the bytes seen so far start the first line. */
        m->line_offset = 0;
        return hold_line(m, BOM, m->bom);
    }
    return 0;
}

/* "data: ...", or "event: ..." and "data: ...", and a blank line, all in the chunk, with LF: nearly every block of a stream. 1: *out is
 * its frame. 0: look at it line by line; *first is then the first line's end, if that is known. */
TW_INLINE int whole_block(tw_sse *m, tw_frame *out, const uint8_t **first)
{
    const uint8_t *const start = m->p, *p = start, *eol, *event = p;
    size_t event_len = 0, n = 0;
    if (m->end - p > 6 && memcmp(p, "event:", 6) == 0) {
        eol = tw_scan_eol(p + 6, m->end);
        if (eol == m->end || *eol != '\n') return 0;
        event = p + 6 + (p[6] == ' ');
        event_len = (size_t)(eol - event);
        n = (size_t)(eol - p);
        p = eol + 1;
    }
    if (m->end - p < 7 || memcmp(p, "data:", 5) != 0) return 0;
    eol = tw_scan_long_line(p + 5, m->end);
    if (m->end - eol < 2 || eol[0] != '\n' || eol[1] != '\n') {
        if (p == start) *first = eol;
        return 0;
    }
    n += (size_t)(eol - p);
    if (n > m->max_frame_bytes) return 0;
    out->offset = m->base + (uint64_t)(start - m->chunk);
    p += 5 + (p[5] == ' ');
    out->kind = TW_FRAME;
    out->has_retry = 0;
    out->data = p;
    out->data_len = (size_t)(eol - p);
    out->data_offset = m->base + (uint64_t)(p - m->chunk);
    out->event = event;
    out->event_len = event_len;
    out->terminated = 1;
    put_id(m, out);
    m->p = eol + 2;
    return 1;
}

int tw_sse_next(tw_sse *m, tw_frame *out)
{
    if (m->state == ST_SSE_FAILED) return -1;
    if (TW_UNLIKELY(m->state == ST_SSE_BOM) && read_bom(m)) return -1;

    while (m->p < m->end) {
        const uint8_t *p = m->p, *eol = NULL, *line;
        size_t n;
        uint64_t offset;
        int in_chunk = 1, got;

        if (m->state == ST_SSE_SAW_CR) {
            /* The CR at the end of the last chunk ended the line; the LF belongs to it and must not end a second, empty
             * line. */
            m->state = ST_SSE_LINE_START;
            if (*p == '\n') {
                m->p++;
                continue;
            }
        }
        if (m->state == ST_SSE_LINE_START && !m->block_open && m->end - p > 8 && whole_block(m, out, &eol)) return 1;
        /* Every other line of a stream of small frames is blank: not worth a vector. */
        if (eol == NULL) eol = *p == '\n' ? p : tw_scan_long_line(p, m->end);
        n = (size_t)(eol - p);
        line = p;
        offset = m->base + (uint64_t)(p - m->chunk);
        if (TW_UNLIKELY(eol == m->end)) {
            m->p = eol;
            if (m->state == ST_SSE_IN_COMMENT) break;
            if (m->state == ST_SSE_LINE_START) {
                if (*p == ':') {
                    m->state = ST_SSE_IN_COMMENT;
                    break;
                }
                m->line_offset = offset;
            }
            if (hold_line(m, p, n)) return -1;
            break;
        }
        m->p = eol + 1;
        if (m->state == ST_SSE_IN_COMMENT) {
            n = 1;
            line = (const uint8_t *)":";
        } else if (m->state == ST_SSE_IN_LINE) {
            if (hold_line(m, p, n)) return -1;
            in_chunk = 0;
            offset = m->line_offset;
            line = m->line.p;
            n = m->line.len;
        }
        if (*eol == '\n')
            m->state = ST_SSE_LINE_START;
        else if (m->p < m->end) {
            if (*m->p == '\n') m->p++;
            m->state = ST_SSE_LINE_START;
        } else
            m->state = ST_SSE_SAW_CR;

        if (n == 0) {
            if ((got = dispatch(m, out)) > 0) return 1;
        } else if (line[0] == ':')
            continue;
        else {
            if (in_chunk && n > m->max_frame_bytes - m->held)
                return fail(m, TW_E_FRAME_TOO_LARGE, offset + (m->max_frame_bytes - m->held));
            got = take_line(m, line, n, offset, in_chunk, 1);
            m->line.len = 0;
            if (got > 0) {
                put_stray(m, out, line, n, offset, 1);
                return 1;
            }
        }
        if (TW_UNLIKELY(got < 0)) return fail(m, TW_E_MEMORY, offset);
    }

    if (held_keep(&m->data) || held_keep(&m->event) || held_keep(&m->id))
        return fail(m, TW_E_MEMORY, m->base + (uint64_t)(m->end - m->chunk));
    m->base += (uint64_t)(m->end - m->chunk);
    m->chunk = m->p = m->end = NULL;
    return 0;
}

int tw_sse_flush(tw_sse *m, tw_frame *out)
{
    if (m->state == ST_SSE_FAILED) return -1;
    if (m->state == ST_SSE_BOM && m->bom && m->bom < 3) {
        m->line_offset = 0;
        if (tw_buf_append(&m->line, BOM, m->bom)) return fail(m, TW_E_MEMORY, 0);
        m->state = ST_SSE_IN_LINE;
    }
    if (m->state == ST_SSE_IN_LINE) {
        const uint8_t *line = m->line.p;
        size_t n = m->line.len;
        int got = take_line(m, line, n, m->line_offset, 0, 0);
        m->state = ST_SSE_LINE_START;
        m->line.len = 0;
        if (got < 0) return fail(m, TW_E_MEMORY, m->line_offset);
        if (got > 0) {
            put_stray(m, out, line, n, m->line_offset, 0);
            return 1;
        }
    }
    if (m->data.where == TW_HELD_NONE) return 0;
    put_block(m, out);
    put_id(m, out);
    if (m->id.where != TW_HELD_NONE) {
        out->id = tw_held_bytes(&m->id, &out->id_len);
        out->id_serial = 0;
    }
    out->terminated = 0;
    end_block(m);
    return 1;
}
