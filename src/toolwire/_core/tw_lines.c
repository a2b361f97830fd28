#include "tw_lines.h"

static const uint8_t BOM[3] = {0xEF, 0xBB, 0xBF};

void tw_lines_init(tw_lines *m, size_t max_frame_bytes)
{
    memset(m, 0, sizeof *m);
    m->max_frame_bytes = max_frame_bytes;
}

void tw_lines_free(tw_lines *m) { tw_buf_free(&m->line); }

void tw_lines_feed(tw_lines *m, const uint8_t *chunk, size_t len)
{
    tw_buf_trim(&m->line);
    m->chunk = m->p = chunk;
    m->end = chunk + len;
}

void tw_lines_abandon(tw_lines *m)
{
    if (m->state != ST_LINES_FAILED) {
        m->error_offset = m->base + (uint64_t)(m->p - m->chunk);
        m->error = TW_E_MEMORY;
        m->state = ST_LINES_FAILED;
    }
    m->base = m->error_offset;
    m->chunk = m->p = m->end = NULL;
}

static TW_NOINLINE int fail(tw_lines *m, int error, uint64_t offset)
{
    m->error = error;
    m->error_offset = offset;
    m->state = ST_LINES_FAILED;
    tw_lines_abandon(m);
    return -1;
}

int tw_lines_in_frame(const tw_lines *m)
{
    return m->line_has_text || (m->state == ST_LINES_BOM && m->bom) || m->error == TW_E_FRAME_TOO_LARGE;
}

static int is_blank(const uint8_t *p, size_t n)
{
    while (n && (*p == ' ' || *p == '\t' || *p == '\r')) {
        p++;
        n--;
    }
    return n == 0;
}

static int hold_line(tw_lines *m, const uint8_t *p, size_t n)
{
    if (n > m->max_frame_bytes - m->line.len) return fail(m, TW_E_FRAME_TOO_LARGE, m->line_offset + m->max_frame_bytes);
    if (tw_buf_append(&m->line, p, n)) return fail(m, TW_E_MEMORY, m->line_offset + m->line.len);
    m->state = ST_LINES_IN_LINE;
    if (!m->line_has_text) m->line_has_text = !is_blank(p, n);
    return 0;
}

static TW_NOINLINE int read_bom(tw_lines *m)
{
    while (m->p < m->end && m->bom < 3 && *m->p == BOM[m->bom]) {
        m->bom++;
        m->p++;
    }
    if (m->bom == 3 || (m->p < m->end && m->bom == 0))
        m->state = ST_LINES_LINE_START;
    else if (m->p < m->end) {
        /* It was none: the bytes seen so far start the first line. */
        m->line_offset = 0;
        return hold_line(m, BOM, m->bom);
    }
    return 0;
}

static int put(tw_frame *out, const uint8_t *line, size_t n, uint64_t offset, int terminated)
{
    memset(out, 0, sizeof *out);
    if (n && line[n - 1] == '\r') n--;
    out->data = line;
    out->data_len = n;
    out->offset = out->data_offset = offset;
    out->terminated = (uint8_t)terminated;
    return 1;
}

int tw_lines_next(tw_lines *m, tw_frame *out)
{
    if (m->state == ST_LINES_FAILED) return -1;
    if (TW_UNLIKELY(m->state == ST_LINES_BOM) && read_bom(m)) return -1;

    while (m->p < m->end) {
        const uint8_t *p = m->p, *lf = (const uint8_t *)memchr(p, '\n', (size_t)(m->end - p));
        size_t n = (size_t)((lf ? lf : m->end) - p);
        uint64_t offset = m->base + (uint64_t)(p - m->chunk);

        if (!lf) {
            if (m->state == ST_LINES_LINE_START) m->line_offset = offset;
            if (hold_line(m, p, n)) return -1;
            m->p = m->end;
            break;
        }
        if (m->state == ST_LINES_IN_LINE) {
            int blank;
            if (hold_line(m, p, n)) return -1;
            m->p = lf + 1;
            n = m->line.len;
            blank = !m->line_has_text;
            m->line.len = 0; /* its bytes stay until the next call */
            m->line_has_text = 0;
            m->state = ST_LINES_LINE_START;
            if (!blank) return put(out, m->line.p, n, m->line_offset, 1);
            continue;
        }
        if (n > m->max_frame_bytes) return fail(m, TW_E_FRAME_TOO_LARGE, offset + m->max_frame_bytes);
        m->p = lf + 1;
        if (!is_blank(p, n)) return put(out, p, n, offset, 1);
    }
    m->base += (uint64_t)(m->end - m->chunk);
    m->chunk = m->p = m->end = NULL;
    return 0;
}

int tw_lines_flush(tw_lines *m, tw_frame *out)
{
    size_t n;
    if (m->state == ST_LINES_FAILED) return -1;
    if (m->state == ST_LINES_BOM && m->bom && m->bom < 3) {
        m->line_offset = 0;
        if (tw_buf_append(&m->line, BOM, m->bom)) return fail(m, TW_E_MEMORY, 0);
        m->line_has_text = 1;
    }
    m->state = ST_LINES_LINE_START;
    if (!m->line_has_text) return 0;
    n = m->line.len;
    m->line.len = 0;
    m->line_has_text = 0;
    return put(out, m->line.p, n, m->line_offset, 0);
}
