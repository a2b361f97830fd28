/* Resumable JSON tokenizer (RFC 8259), parameterised by its sink.
 *
 * The machine is a header so that a sink is inlined into it: the Python builder, the projection, the C tests and the
 * fuzzers run the very same code. See STATES.md for the states.
 *
 * Before including this file a second time with TW_JSON_RUN defined, define
 *
 *     TW_JSON_RUN    name of the function to make: TW_JSON_RUN(tw_json *, TW_SINK_T *, const uint8_t *p, const uint8_t *end)
 *     TW_SINK_T      the sink's type
 *     TW_SINK(name)  the sink's function for `name`, e.g. #define TW_SINK(n) my_##n
 *
 * The function reads [p, end) and returns the first byte it did not take: end, the byte after the root value, or the
 * byte an error points at. Look at j->state (ST_JSON_DONE, ST_JSON_ERROR) afterwards.
 *
 * Sinks return TW_OK or an error code, which sticks at the token's last byte (for numbers, at its first). They may allocate, so foreign code
 * may run inside them: the owner must refuse re-entry, and nothing of the machine is cached across a sink call.
 *
 *     int object_start(s, j)   int array_start(s, j)   int object_end(s, j)   int array_end(s, j)
 *     int string(s, j, p, n, lead, cont)     a whole string or key (j->in_key), valid UTF-8 without escapes
 *     int text_start(s, j)                   a string or key comes in pieces:
 *     int text(s, j, p, n, lead, cont)         whole characters, valid UTF-8
 *     int code(s, j, c)                        one character from an escape; a lone surrogate only in mode "keep"
 *     int text_end(s, j)
 *     int number_part(s, j, p, n)            a number goes on in the next chunk: keep these bytes
 *     int number(s, j, p, n, is_int, d)      the number ends; the bytes kept come first. d: the number read, or NULL
 *     int literal(s, j, which)               TW_LIT_...
 *     void lone_surrogate(s, j, offset)      half a pair was met and tolerated
 *     void control_character(s, j, offset)   a raw control character was tolerated
 *
 * `lead` is the largest UTF-8 lead byte among the bytes, or another of a character as wide: 0 if all are ASCII, at most 0xC3 for
 * Latin-1, 0xDF or 0xEF for the rest of Unicode's first plane, more beyond. `cont` is the number of continuation bytes: n - cont
 * characters, of which the widest is known, without another look at the bytes.
 */
#ifndef TW_JSON_H
#define TW_JSON_H

#include "tw_common.h"
#include "tw_number.h"
#include "tw_scan.h"

enum tw_json_state {
    ST_JSON_NEED_VALUE,            /* at the root, after ':' or after ',' in an array */
    ST_JSON_NEED_VALUE_OR_END,     /* after '[' */
    ST_JSON_NEED_KEY,              /* after ',' in an object */
    ST_JSON_NEED_KEY_OR_END,       /* after '{' */
    ST_JSON_NEED_COLON,            /* after a key */
    ST_JSON_AFTER_VALUE,           /* inside a container, a value just ended */
    ST_JSON_IN_STRING,
    ST_JSON_IN_STRING_UTF8,        /* inside a multi-byte character; its bytes so far are in j->part */
    ST_JSON_IN_STRING_ESCAPE,      /* after '\' */
    ST_JSON_IN_STRING_HEX,         /* inside \uXXXX */
    ST_JSON_IN_STRING_NEED_LOW,    /* after \uD8xx: a low surrogate should follow */
    ST_JSON_IN_STRING_NEED_LOW_U,  /* ... and its '\' was seen */
    ST_JSON_IN_NUMBER,
    ST_JSON_IN_LITERAL,
    ST_JSON_DONE,                  /* the root value is complete */
    ST_JSON_ERROR
};

/* Where a number stands. The order matters: from TW_NUM_ZERO on, those for which tw_num_may_end() holds. */
enum tw_json_number_state {
    TW_NUM_MINUS,    /* -     */
    TW_NUM_ZERO,     /* 0     */
    TW_NUM_INT,      /* 12    */
    TW_NUM_DOT,      /* 12.   */
    TW_NUM_FRAC,     /* 12.3  */
    TW_NUM_E,        /* 12e   */
    TW_NUM_E_SIGN,   /* 12e+  */
    TW_NUM_EXP       /* 12e+3 */
};

enum tw_json_literal { TW_LIT_NULL, TW_LIT_FALSE, TW_LIT_TRUE, TW_LIT_NAN, TW_LIT_INF, TW_LIT_NEG_INF };

enum tw_json_surrogates { TW_SURROGATES_ERROR, TW_SURROGATES_REPLACE, TW_SURROGATES_KEEP };

typedef struct tw_json {
    uint64_t offset;          /* bytes of earlier chunks */
    uint64_t consumed;        /* offset just past the root value, once it is complete */
    uint64_t error_offset;
    uint64_t token_offset;    /* first byte of the string, number or literal at hand */
    uint64_t escape_offset;   /* the '\' of the escape at hand */
    uint64_t high_offset;     /* the '\' of a high surrogate that waits for its partner */
    uint8_t *stack;           /* a bit a level, set for objects; owned by whoever called tw_json_init */
    uint32_t depth;
    uint32_t max_depth;
    uint8_t state;
    uint8_t error;            /* enum tw_error */
    uint8_t in_key;           /* the string at hand is a key */
    uint8_t text_open;        /* text_start() was called for the string at hand */
    uint8_t surrogates;
    uint8_t allow_nan;
    uint8_t allow_control;
    uint8_t raw_surrogates;   /* the chunk comes from a str: surrogates may stand in it, as three bytes */
    uint8_t part[4];          /* bytes of an unfinished character */
    uint8_t part_len;
    uint8_t part_want;        /* how many bytes that character has */
    uint8_t hex_left;
    uint8_t number;           /* enum tw_json_number_state */
    uint8_t number_parts;     /* number_part() was called for the number at hand */
    uint8_t literal;
    uint8_t literal_pos;
    uint16_t hex;
    uint16_t high;            /* a high surrogate that waits for its partner, or 0 */
} tw_json;

/* Bytes of stack that a machine with this max_depth needs. */
static inline size_t tw_json_stack_bytes(uint32_t max_depth) { return (size_t)max_depth / 8 + 1; }

static inline void tw_json_init(tw_json *j, uint8_t *stack, uint32_t max_depth)
{
    memset(j, 0, sizeof *j);
    j->stack = stack;
    j->max_depth = max_depth;
    j->state = ST_JSON_NEED_VALUE;
}

static inline int tw_json_top_is_object(const tw_json *j)
{
    uint32_t top = j->depth - 1;
    return j->stack[top >> 3] >> (top & 7) & 1;
}

static inline int tw_num_may_end(uint8_t s) { return s == TW_NUM_ZERO || s == TW_NUM_INT || s == TW_NUM_FRAC || s == TW_NUM_EXP; }

static inline int tw_json_is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* Bytes that may end a number at the root: white space or a structural character. */
static inline int tw_json_is_delimiter(uint8_t c)
{
    return tw_json_is_space(c) || c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}';
}

/* Could this byte be meant as part of a number or word? Behind a number it then belongs to a number gone wrong (01, 1x), which
 * is not shown; any other byte ends the number, which is shown, and is judged by what follows. */
static inline int tw_json_is_wordy(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '+' || c == '-';
}

/* -1: no hexadecimal digit. */
static inline int tw_hex_value(uint8_t c)
{
    static const uint8_t table[256] = { /* one more than the value */
        ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8, ['8'] = 9, ['9'] = 10,
        ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
        ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    };
    return (int)table[c] - 1;
}

static inline const char *tw_literal_text(uint8_t which)
{
    switch (which) {
    case TW_LIT_NULL: return "null";
    case TW_LIT_FALSE: return "false";
    case TW_LIT_TRUE: return "true";
    case TW_LIT_NAN: return "NaN";
    case TW_LIT_INF: return "Infinity";
    default: return "-Infinity";
    }
}

/* Length of the UTF-8 sequence that this lead byte starts, or 0 (RFC 3629: C0, C1 and F5..FF start none). */
static inline unsigned tw_utf8_length(uint8_t lead)
{
    if (lead < 0xC2) return 0;
    if (lead < 0xE0) return 2;
    if (lead < 0xF0) return 3;
    return lead < 0xF5 ? 4 : 0;
}

/* May `c` follow `lead` as the second byte? Overlong forms, code points beyond U+10FFFF and, unless `surrogates`,
 * the surrogates are ruled out here, so that an error points at the first byte that can not continue. */
static inline int tw_utf8_second_ok(uint8_t lead, uint8_t c, int surrogates)
{
    if ((c & 0xC0) != 0x80) return 0;
    switch (lead) {
    case 0xE0: return c >= 0xA0;
    case 0xED: return c <= 0x9F || surrogates;
    case 0xF0: return c >= 0x90;
    case 0xF4: return c <= 0x8F;
    default: return 1;
    }
}

/* Bytes that a string with escapes is put together in, before the sink gets it. */
#define TW_JSON_PIECE 2048

static inline size_t tw_utf8_encode(uint32_t c, uint8_t *out)
{
    if (c < 0x80) { out[0] = (uint8_t)c; return 1; }
    if (c < 0x800) { out[0] = (uint8_t)(0xC0 | c >> 6); out[1] = (uint8_t)(0x80 | (c & 0x3F)); return 2; }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* The character that '\' and c stand for, or 0. */
static inline uint8_t tw_short_escape(uint8_t c)
{
    static const uint8_t table[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
    };
    return table[c];
}

/* Copies plain text and short escapes, as the characters they stand for, from p to out + *at: up to anything else, and no further than
 * that a block is left to read and to write. Returns where it stopped; *at is moved along. */
TW_INLINE const uint8_t *tw_copy_text(const uint8_t *p, const uint8_t *end, uint8_t *out, size_t *at, size_t size)
{
    size_t i = *at;
#if TW_SSE2
    while (end - p > 2 * 32 && i + 3 * 32 <= size) {
        const uint8_t *const block = p;
        const __m128i *q = (const __m128i *)(const void *)p;
        uint32_t bits = tw_block_ends_plain(_mm_loadu_si128(q)) | tw_block_ends_plain(_mm_loadu_si128(q + 1)) << 16;
        /* From one byte that ends plain text to the next, by their bits alone: what is copied waits for nothing. */
        for (;;) {
            const uint8_t *stop = bits ? block + tw_ctz32(bits) : block + 32;
            uint8_t c;
            memcpy(out + i, p, 32);
            if (stop > p) {
                i += (size_t)(stop - p);
                p = stop;
            }
            if (!bits) break;
            c = tw_short_escape(p[1]);
            if (*p != '\\' || !c) {
                *at = i;
                return p;
            }
            out[i++] = c;
            p += 2;
            bits &= ~(UINT32_C(3) << (stop - block)); /* what follows a backslash may be another, or a quote */
        }
    }
#endif
    while (end - p >= 2 && i + 2 <= size) {
        uint8_t c = *p;
        if (tw_ends_plain(c)) {
            if (c != '\\' || (c = tw_short_escape(p[1])) == 0) break;
            p++;
        }
        out[i++] = c;
        p++;
    }
    *at = i;
    return p;
}

/* The four hexadecimal digits at p, or a negative number where one is none. */
static inline int32_t tw_hex4(const uint8_t *p)
{
    int32_t a = tw_hex_value(p[0]), b = tw_hex_value(p[1]), c = tw_hex_value(p[2]), d = tw_hex_value(p[3]);
    return (a | b | c | d) < 0 ? -1 : a << 12 | b << 8 | c << 4 | d;
}

/* Reads an escape, a surrogate pair included, that stands whole in [p, end) and is right: *c is its character, and the byte
 * behind it is returned. NULL for all else, which is for the states to judge. */
static inline const uint8_t *tw_read_escape(const uint8_t *p, const uint8_t *end, uint32_t *c)
{
    int32_t unit, low;
    if (end - p < 2) return NULL;
    if (p[1] != 'u') {
        *c = tw_short_escape(p[1]);
        return *c ? p + 2 : NULL;
    }
    if (end - p < 6 || (unit = tw_hex4(p + 2)) < 0) return NULL;
    p += 6;
    *c = (uint32_t)unit;
    if (TW_LIKELY((unit & 0xF800) != 0xD800)) return p;
    if (unit >= 0xDC00 || end - p < 6 || p[0] != '\\' || p[1] != 'u') return NULL;
    low = tw_hex4(p + 2);
    if (low < 0xDC00 || low > 0xDFFF) return NULL;
    *c = 0x10000u + ((uint32_t)(unit - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
    return p + 6;
}

#endif /* TW_JSON_H */

#ifdef TW_JSON_RUN

static const uint8_t *TW_JSON_RUN(tw_json *j, TW_SINK_T *s, const uint8_t *p, const uint8_t *const end)
{
    const uint8_t *const base = p;
    const uint8_t *run;        /* start of the plain text not yet handed out */
    uint8_t lead;              /* largest lead byte in it */
    size_t cont;               /* continuation bytes in it */
    uint8_t piece[TW_JSON_PIECE]; /* text with its escapes read, not yet handed out either; comes before the run */
    size_t fill;
    uint8_t piece_lead;
    size_t piece_cont;
    uint8_t c;
    int e;

#define AT(q) (j->offset + (uint64_t)((q) - base))
#define FAIL(code, q) do { j->error = (uint8_t)(code); j->error_offset = AT(q); p = (q); goto failed; } while (0)
#define CALL(expr, q) do { if (TW_UNLIKELY((e = (expr)) != TW_OK)) FAIL(e, q); } while (0)
#define STOP(st) do { j->state = (st); goto out; } while (0)
#define SKIP_SPACE(st) do { \
        for (;;) { \
            if (TW_UNLIKELY(p == end)) STOP(st); \
            c = *p; \
            if (TW_LIKELY(c > ' ') || !tw_json_is_space(c)) break; \
            p++; \
        } \
    } while (0)
/* Hand out the text so far; the string is now one that comes in pieces. */
#define FLUSH(q) do { \
        if (!j->text_open) { CALL(TW_SINK(text_start)(s, j), q); j->text_open = 1; } \
        if (fill) { CALL(TW_SINK(text)(s, j, piece, fill, piece_lead, piece_cont), q); fill = piece_cont = 0; piece_lead = 0; } \
        if ((q) > run) CALL(TW_SINK(text)(s, j, run, (size_t)((q) - run), lead, cont), q); \
    } while (0)
/* Does the run fit behind the piece, an escape's character and the rest of a block as well? */
#define FITS(q) (fill + (size_t)((q) - run) <= TW_JSON_PIECE - 16)
#define JOIN(q) do { \
        if ((q) - run) memcpy(piece + fill, run, (size_t)((q) - run)); \
        fill += (size_t)((q) - run); \
        if (lead > piece_lead) piece_lead = lead; \
        piece_cont += cont; \
    } while (0)

    switch (j->state) {
    case ST_JSON_NEED_VALUE: goto need_value;
    case ST_JSON_NEED_VALUE_OR_END: goto need_value_or_end;
    case ST_JSON_NEED_KEY: goto need_key;
    case ST_JSON_NEED_KEY_OR_END: goto need_key_or_end;
    case ST_JSON_NEED_COLON: goto need_colon;
    case ST_JSON_AFTER_VALUE: goto after_value;
    case ST_JSON_IN_STRING: goto in_string;
    case ST_JSON_IN_STRING_UTF8: goto in_string_utf8;
    case ST_JSON_IN_STRING_ESCAPE: goto in_string_escape;
    case ST_JSON_IN_STRING_HEX: goto in_string_hex;
    case ST_JSON_IN_STRING_NEED_LOW: goto in_string_need_low;
    case ST_JSON_IN_STRING_NEED_LOW_U: goto in_string_need_low_u;
    case ST_JSON_IN_NUMBER: goto in_number;
    case ST_JSON_IN_LITERAL: goto in_literal;
    default: return p;
    }

need_value_or_end:
    SKIP_SPACE(ST_JSON_NEED_VALUE_OR_END);
    if (c == ']') goto close_array;
    goto value;

need_value:
    SKIP_SPACE(ST_JSON_NEED_VALUE);
value:
    switch (c) {
    case '"':
        j->in_key = 0;
        goto string;
    case '{':
        if (j->depth >= j->max_depth) FAIL(TW_E_JSON_TOO_DEEP, p);
        CALL(TW_SINK(object_start)(s, j), p);
        j->stack[j->depth >> 3] |= (uint8_t)(1u << (j->depth & 7));
        j->depth++;
        p++;
        goto need_key_or_end;
    case '[':
        if (j->depth >= j->max_depth) FAIL(TW_E_JSON_TOO_DEEP, p);
        CALL(TW_SINK(array_start)(s, j), p);
        j->stack[j->depth >> 3] &= (uint8_t)~(1u << (j->depth & 7));
        j->depth++;
        p++;
        goto need_value_or_end;
    case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
        goto number;
    case 'n': j->literal = TW_LIT_NULL; break;
    case 'f': j->literal = TW_LIT_FALSE; break;
    case 't': j->literal = TW_LIT_TRUE; break;
    case 'N':
        if (!j->allow_nan) FAIL(TW_E_JSON_UNEXPECTED_BYTE, p);
        j->literal = TW_LIT_NAN;
        break;
    case 'I':
        if (!j->allow_nan) FAIL(TW_E_JSON_UNEXPECTED_BYTE, p);
        j->literal = TW_LIT_INF;
        break;
    default:
        FAIL(TW_E_JSON_UNEXPECTED_BYTE, p);
    }
    j->token_offset = AT(p);
    j->literal_pos = 0;

in_literal: {
        const char *text = tw_literal_text(j->literal);
        while (text[j->literal_pos]) {
            if (p == end) STOP(ST_JSON_IN_LITERAL);
            if (*p != (uint8_t)text[j->literal_pos]) FAIL(TW_E_JSON_BAD_LITERAL, p);
            p++;
            j->literal_pos++;
        }
        CALL(TW_SINK(literal)(s, j, j->literal), p);
        goto value_done;
    }

number: {
        /* Whole in the chunk, as nearly all are: read in one go. Anything else, and what is wrong, goes byte by byte. */
        tw_decimal d;
        run = p;
        p = tw_number_read(run, end, &d);
        if (TW_LIKELY(p != NULL && p < end && !tw_json_is_wordy(*p)) && (j->depth > 0 || tw_json_is_delimiter(*p))) {
            j->token_offset = AT(run);
            j->number_parts = 0;
            if (TW_UNLIKELY((e = TW_SINK(number)(s, j, run, (size_t)(p - run), d.is_int, &d)) != TW_OK)) goto number_refused;
            if (j->depth == 0) goto value_done;
            /* The next of an array of numbers. */
            if (*p == ',' && end - p > 1 && ((uint8_t)(p[1] - '0') <= 9 || p[1] == '-') && !tw_json_top_is_object(j)) {
                p++;
                goto number;
            }
            goto after_value;
        }
        p = run;
    }
    c = *p;
    j->number = c == '-' ? TW_NUM_MINUS : c == '0' ? TW_NUM_ZERO : TW_NUM_INT;
    j->token_offset = AT(p);
    j->number_parts = 0;
    p++;
    goto number_go;
in_number:
    run = p;
number_go:
    for (;; p++) {
        if (TW_UNLIKELY(p == end)) {
            if (p > run) { CALL(TW_SINK(number_part)(s, j, run, (size_t)(p - run)), p); j->number_parts = 1; }
            STOP(ST_JSON_IN_NUMBER);
        }
        c = *p;
        switch (j->number) {
        case TW_NUM_MINUS:
            if (c == '0') j->number = TW_NUM_ZERO;
            else if (c >= '1' && c <= '9') j->number = TW_NUM_INT;
            else if (c == 'I' && j->allow_nan) {
                j->literal = TW_LIT_NEG_INF;
                j->literal_pos = 1;
                goto in_literal;
            }
            else FAIL(TW_E_JSON_BAD_NUMBER, p);
            continue;
        case TW_NUM_INT:
            while (p < end && (uint8_t)(*p - '0') <= 9) p++;
            if (p == end) { p--; continue; }
            c = *p;
            /* fall through */
        case TW_NUM_ZERO:
            if (c == '.') { j->number = TW_NUM_DOT; continue; }
            if (c == 'e' || c == 'E') { j->number = TW_NUM_E; continue; }
            break;
        case TW_NUM_DOT:
            if ((uint8_t)(c - '0') <= 9) { j->number = TW_NUM_FRAC; continue; }
            FAIL(TW_E_JSON_BAD_NUMBER, p);
        case TW_NUM_FRAC:
            while (p < end && (uint8_t)(*p - '0') <= 9) p++;
            if (p == end) { p--; continue; }
            c = *p;
            if (c == 'e' || c == 'E') { j->number = TW_NUM_E; continue; }
            break;
        case TW_NUM_E:
            if (c == '+' || c == '-') { j->number = TW_NUM_E_SIGN; continue; }
            /* fall through */
        case TW_NUM_E_SIGN:
            if ((uint8_t)(c - '0') <= 9) { j->number = TW_NUM_EXP; continue; }
            FAIL(TW_E_JSON_BAD_NUMBER, p);
        default: /* TW_NUM_EXP */
            if ((uint8_t)(c - '0') <= 9) continue;
            break;
        }
        break;
    }
    /* A number ends before a byte that is none of its own. At the root only a delimiter may follow; inside a container
     * AFTER_VALUE judges the byte. A letter, digit or sign in its place is a number gone wrong: 01, 1x, 1.5.2 */
    if (j->depth == 0 ? !tw_json_is_delimiter(c) : tw_json_is_wordy(c)) FAIL(TW_E_JSON_BAD_NUMBER, p);
    if (TW_LIKELY((e = TW_SINK(number)(s, j, run, (size_t)(p - run), j->number <= TW_NUM_INT, NULL)) == TW_OK)) goto value_done;
number_refused:
    /* A number that is refused is refused as a whole. */
    j->error = (uint8_t)e;
    j->error_offset = j->token_offset;
    goto failed;

need_key_or_end:
    SKIP_SPACE(ST_JSON_NEED_KEY_OR_END);
    if (c == '}') goto close_object;
    goto key;
need_key:
    SKIP_SPACE(ST_JSON_NEED_KEY);
key:
    if (c != '"') FAIL(TW_E_JSON_UNEXPECTED_BYTE, p);
    j->in_key = 1;

string:
    j->token_offset = AT(p);
    j->text_open = 0;
    p++;
in_string:
    run = p;
    lead = 0;
    cont = 0;
    fill = piece_cont = 0;
    piece_lead = 0;
    for (;;) {
        p = tw_scan_plain(p, end);
        if (TW_UNLIKELY(p == end)) {
            FLUSH(p);
            STOP(ST_JSON_IN_STRING);
        }
        c = *p;
        if (c == '"') break;
        if (c == '\\') {
            /* Escapes that are whole and right are read here, the rest is left to the states. */
            uint32_t code;
            if (TW_UNLIKELY(!FITS(p))) { FLUSH(p); run = p; lead = 0; cont = 0; }
            JOIN(p);
            run = p;
            lead = 0;
            cont = 0;
            for (;;) {
                const uint8_t *after;
                size_t n;
                p = tw_copy_text(p, end, piece, &fill, TW_JSON_PIECE - 16);
                if (p == end || *p != '\\' || fill > TW_JSON_PIECE - 16 || (after = tw_read_escape(p, end, &code)) == NULL) break;
                n = tw_utf8_encode(code, piece + fill);
                if (n > 1) {
                    if (piece[fill] > piece_lead) piece_lead = piece[fill];
                    piece_cont += n - 1;
                }
                fill += n;
                p = after;
            }
            if (TW_LIKELY(p > run)) {
                run = p;
                continue;
            }
            FLUSH(p);
            j->escape_offset = AT(p);
            p++;
            goto in_string_escape;
        }
        if (c < 0x20) {
            if (!j->allow_control) { FLUSH(p); FAIL(TW_E_JSON_CONTROL_CHARACTER, p); }
            TW_SINK(control_character)(s, j, AT(p));
            p++;
            continue;
        }
        /* Runs of non-ASCII text: characters that lie whole in the chunk stay part of the run. */
#if TW_SSSE3
        if (end - p >= 32 && tw_has_ssse3()) {
            uint8_t most;
            const uint8_t *q = tw_scan_utf8(p, end, &cont, &most);
            if (TW_LIKELY(q > p)) {
                if (most > lead) lead = most;
                p = q;
                continue;
            }
        }
#endif
        do {
#if TW_SSE2
            if (end - p >= 16) {
                __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
                int wide;
                unsigned n = c < 0xE0 ? tw_block_of_two(v, &wide) : tw_block_of_three(v);
                if (TW_LIKELY(n)) {
                    uint8_t most = c >= 0xE0 ? 0xEF : wide ? 0xDF : 0xC3;
                    cont += c < 0xE0 ? n / 2 : n / 3 * 2;
                    if (most > lead) lead = most;
                    p += n;
                    if (p + 1 < end && p[1] >= 0x80 && !tw_ends_plain(*p)) p++; /* a space between two words */
                    continue;
                }
            }
#endif
            unsigned want = tw_utf8_length(c), have;
            if (TW_UNLIKELY(!want)) { FLUSH(p); FAIL(TW_E_JSON_BAD_UTF8, p); }
            if (TW_UNLIKELY((size_t)(end - p) < want || (c == 0xED && p[1] > 0x9F))) {
                FLUSH(p);
                j->part[0] = c;
                j->part_len = 1;
                j->part_want = (uint8_t)want;
                p++;
                goto in_string_utf8;
            }
            if (TW_UNLIKELY(!tw_utf8_second_ok(c, p[1], 0))) { FLUSH(p); FAIL(TW_E_JSON_BAD_UTF8, p + 1); }
            for (have = 2; have < want; have++)
                if (TW_UNLIKELY((p[have] & 0xC0) != 0x80)) { FLUSH(p); FAIL(TW_E_JSON_BAD_UTF8, p + have); }
            if (c > lead) lead = c;
            cont += want - 1;
            p += want;
        } while (p < end && (c = *p) >= 0x80);
    }
    if (TW_LIKELY(!j->text_open && fill == 0)) {
        CALL(TW_SINK(string)(s, j, run, (size_t)(p - run), lead, cont), p);
    } else if (!j->text_open && FITS(p)) {
        JOIN(p);
        CALL(TW_SINK(string)(s, j, piece, fill, piece_lead, piece_cont), p);
    } else {
        FLUSH(p);
        CALL(TW_SINK(text_end)(s, j), p);
    }
    p++;
    if (j->in_key) goto need_colon;
    goto value_done;

in_string_utf8:
    /* Byte by byte, over any number of chunks: the rare way. */
    while (j->part_len < j->part_want) {
        if (p == end) STOP(ST_JSON_IN_STRING_UTF8);
        c = *p;
        if (j->part_len == 1 ? !tw_utf8_second_ok(j->part[0], c, j->raw_surrogates) : (c & 0xC0) != 0x80)
            FAIL(TW_E_JSON_BAD_UTF8, p);
        if (j->part_len == 1 && j->part[0] == 0xED && c > 0x9F && j->surrogates == TW_SURROGATES_ERROR)
            FAIL(TW_E_JSON_LONE_SURROGATE, p);
        j->part[j->part_len++] = c;
        p++;
    }
    if (j->part[0] == 0xED && j->part[1] > 0x9F) {
        /* Only from a str: pairs were joined before, so this half has no partner. */
        TW_SINK(lone_surrogate)(s, j, AT(p) - 3);
        CALL(TW_SINK(code)(s, j, j->surrogates == TW_SURROGATES_REPLACE
                                     ? 0xFFFDu
                                     : 0xD000u | (uint32_t)(j->part[1] & 0x3F) << 6 | (j->part[2] & 0x3Fu)), p);
    } else {
        CALL(TW_SINK(text)(s, j, j->part, j->part_want, j->part[0], (size_t)j->part_want - 1), p);
    }
    goto in_string;

in_string_escape: {
        uint32_t out;
        if (p == end) STOP(ST_JSON_IN_STRING_ESCAPE);
        if (*p == 'u') {
            p++;
            j->hex = 0;
            j->hex_left = 4;
            goto in_string_hex;
        }
        out = tw_short_escape(*p);
        if (!out) FAIL(TW_E_JSON_BAD_ESCAPE, p);
        p++;
        CALL(TW_SINK(code)(s, j, out), p);
        goto in_string;
    }

in_string_hex:
    while (j->hex_left) {
        int v;
        if (p == end) STOP(ST_JSON_IN_STRING_HEX);
        v = tw_hex_value(*p);
        if (v < 0) FAIL(TW_E_JSON_BAD_ESCAPE, p);
        if (j->surrogates == TW_SURROGATES_ERROR) {
            /* Point at the digit that rules out every valid pair: \udc.. has no partner before it; after a high
             * surrogate only \udc.. to \udf.. may come. */
            if (j->high ? (j->hex_left == 4 && v != 0xD) || (j->hex_left == 3 && v < 0xC)
                        : j->hex_left == 3 && j->hex == 0xD && v >= 0xC)
                FAIL(TW_E_JSON_LONE_SURROGATE, p);
        }
        j->hex = (uint16_t)(j->hex << 4 | v);
        j->hex_left--;
        p++;
    }
    {
        uint16_t unit = j->hex;
        if (TW_LIKELY(unit < 0xD800 || unit > 0xDFFF) && !j->high) {
            CALL(TW_SINK(code)(s, j, unit), p);
            goto in_string;
        }
        if (j->high && unit >= 0xDC00 && unit <= 0xDFFF) {
            uint32_t pair = 0x10000u + ((uint32_t)(j->high - 0xD800) << 10) + (uint32_t)(unit - 0xDC00);
            j->high = 0;
            CALL(TW_SINK(code)(s, j, pair), p);
            goto in_string;
        }
        if (j->high) {
            uint16_t high = j->high;
            j->high = 0;
            TW_SINK(lone_surrogate)(s, j, j->high_offset);
            CALL(TW_SINK(code)(s, j, j->surrogates == TW_SURROGATES_REPLACE ? 0xFFFDu : high), p);
        }
        if (unit >= 0xD800 && unit <= 0xDBFF) {
            j->high = unit;
            j->high_offset = j->escape_offset;
            goto in_string_need_low;
        }
        if (unit >= 0xDC00 && unit <= 0xDFFF) {
            TW_SINK(lone_surrogate)(s, j, j->escape_offset);
            CALL(TW_SINK(code)(s, j, j->surrogates == TW_SURROGATES_REPLACE ? 0xFFFDu : unit), p);
        } else {
            CALL(TW_SINK(code)(s, j, unit), p);
        }
        goto in_string;
    }

in_string_need_low:
    if (p == end) STOP(ST_JSON_IN_STRING_NEED_LOW);
    if (*p == '\\') {
        j->escape_offset = AT(p);
        p++;
        goto in_string_need_low_u;
    }
    if (j->surrogates == TW_SURROGATES_ERROR) FAIL(TW_E_JSON_LONE_SURROGATE, p);
    {
        uint16_t high = j->high;
        j->high = 0;
        TW_SINK(lone_surrogate)(s, j, j->high_offset);
        CALL(TW_SINK(code)(s, j, j->surrogates == TW_SURROGATES_REPLACE ? 0xFFFDu : high), p);
    }
    goto in_string;

in_string_need_low_u:
    if (p == end) STOP(ST_JSON_IN_STRING_NEED_LOW_U);
    if (*p == 'u') {
        p++;
        j->hex = 0;
        j->hex_left = 4;
        goto in_string_hex;
    }
    if (j->surrogates == TW_SURROGATES_ERROR) FAIL(TW_E_JSON_LONE_SURROGATE, p);
    {
        uint16_t high = j->high;
        j->high = 0;
        TW_SINK(lone_surrogate)(s, j, j->high_offset);
        CALL(TW_SINK(code)(s, j, j->surrogates == TW_SURROGATES_REPLACE ? 0xFFFDu : high), p);
    }
    goto in_string_escape;

need_colon:
    SKIP_SPACE(ST_JSON_NEED_COLON);
    if (c != ':') FAIL(TW_E_JSON_UNEXPECTED_BYTE, p);
    p++;
    goto need_value;

close_object:
    CALL(TW_SINK(object_end)(s, j), p);
    j->depth--;
    p++;
    goto value_done;
close_array:
    CALL(TW_SINK(array_end)(s, j), p);
    j->depth--;
    p++;

value_done:
    if (j->depth == 0) {
        j->consumed = AT(p);
        STOP(ST_JSON_DONE);
    }
after_value:
    SKIP_SPACE(ST_JSON_AFTER_VALUE);
    if (c == ',') {
        p++;
        if (tw_json_top_is_object(j)) goto need_key;
        goto need_value;
    }
    if (c == '}' && tw_json_top_is_object(j)) goto close_object;
    if (c == ']' && !tw_json_top_is_object(j)) goto close_array;
    FAIL(TW_E_JSON_UNEXPECTED_BYTE, p);

failed:
    j->state = ST_JSON_ERROR;
out:
    j->offset += (uint64_t)(p - base);
    return p;

#undef AT
#undef FAIL
#undef CALL
#undef STOP
#undef SKIP_SPACE
#undef FLUSH
#undef FITS
#undef JOIN
}

#undef TW_JSON_RUN
#undef TW_SINK_T
#undef TW_SINK
#endif /* TW_JSON_RUN */
