/* Strings that grow in place: what makes an open JSON string cost its delta and not its length.
 *
 * A growing string is an ordinary compact str that was allocated larger than its length says. While nobody but the owner
 * (and the one container slot that shows it) holds a reference, text is appended behind its end and the length moved;
 * as soon as anybody else holds one, the next append copies. What callers were given therefore never changes.
 *
 * Moving the length touches members of PyASCIIObject that are not part of CPython's stable interface, so it is done only
 * for CPython 3.11 to 3.15 with the GIL; everywhere else the string is copied into a new one, in the same doubling steps
 * where that helps, with public functions only.
 */
#ifndef TW_PYSTR_H
#define TW_PYSTR_H

#include <Python.h>
#include "_core/tw_common.h"
#include "_core/tw_scan.h"

#if !defined(TW_NO_GROW_IN_PLACE) && !defined(Py_GIL_DISABLED) && !defined(PYPY_VERSION) && !defined(Py_LIMITED_API) && \
    PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x03100000
#define TW_GROW_IN_PLACE 1
#else
#define TW_GROW_IN_PLACE 0
#endif

/* Room below which a growing string is not worth trimming. */
#define TW_STR_SLACK 64

static inline Py_UCS4 tw_str_maxchar(uint8_t lead)
{
    if (lead == 0) return 0x7F;
    if (lead <= 0xC3) return 0xFF;
    return lead < 0xF0 ? 0xFFFF : 0x10FFFF;
}

#if TW_SSSE3
/* Checked UTF-8 of characters of up to three bytes: as far as there are 16 bytes to read and 16 characters to write. */
__attribute__((target("ssse3"))) static inline const uint8_t *
tw_str_write_wide(const uint8_t *p, const uint8_t *end, Py_UCS2 **to, const Py_UCS2 *to_end)
{
    const __m128i lead = _mm_setr_epi8(0, -1, 3, -1, 6, -1, 9, -1, 12, -1, -1, -1, -1, -1, -1, -1);
    const __m128i rest = _mm_setr_epi8(2, 1, 5, 4, 8, 7, 11, 10, 14, 13, -1, -1, -1, -1, -1, -1);
    Py_UCS2 *out = *to;
    while (end - p >= 16 && to_end - out >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned run;
        if (*p >= 0xE0) { /* five characters, of which those count that are of three bytes */
            __m128i r = _mm_shuffle_epi8(v, rest);
            __m128i c = _mm_slli_epi16(_mm_shuffle_epi8(v, lead), 12); /* what the lead byte has above its low four bits falls off */
            c = _mm_or_si128(c, _mm_and_si128(_mm_srli_epi16(r, 2), _mm_set1_epi16(0x0FC0)));
            c = _mm_or_si128(c, _mm_and_si128(r, _mm_set1_epi16(0x003F)));
            _mm_storeu_si128((__m128i *)(void *)out, c);
            run = tw_shape_of_three(v);
            out += run / 3;
        } else if (*p >= 0x80) {
            run = tw_shape_of_two(v);
            v = _mm_or_si128(_mm_slli_epi16(_mm_and_si128(v, _mm_set1_epi16(0x1F)), 6), _mm_and_si128(_mm_srli_epi16(v, 8), _mm_set1_epi16(0x3F)));
            _mm_storeu_si128((__m128i *)(void *)out, v);
            out += run / 2;
        } else {
            run = (unsigned)_mm_movemask_epi8(v);
            run = run ? tw_ctz32(run) : 16;
            _mm_storeu_si128((__m128i *)(void *)out, _mm_unpacklo_epi8(v, _mm_setzero_si128()));
            _mm_storeu_si128((__m128i *)(void *)(out + 8), _mm_unpackhi_epi8(v, _mm_setzero_si128()));
            out += run;
        }
        p += run;
        if (p < end && *p < 0x80) *out++ = *p++; /* a space between two words */
    }
    *to = out;
    return p;
}
#endif

/* Decode n bytes of checked UTF-8 (surrogates as three bytes allowed) behind `at`, in a string of the given kind. `cont` of them
 * are continuation bytes. The vector loops write whole blocks, as long as these fit into what is to be written anyway. */
static void tw_str_write(void *data, int kind, Py_ssize_t at, const uint8_t *p, size_t n, size_t cont)
{
    const uint8_t *end = p + n;
    (void)cont;
    if (kind == PyUnicode_1BYTE_KIND) {
        Py_UCS1 *out = (Py_UCS1 *)data + at;
#if TW_SSE2
        const Py_UCS1 *const out_end = out + (n - cont);
        while (end - p >= 16 && out_end - out >= 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
            unsigned wide = (unsigned)_mm_movemask_epi8(v), ascii = wide ? tw_ctz32(wide) : 16;
            _mm_storeu_si128((__m128i *)(void *)out, v);
            p += ascii;
            out += ascii;
            if (ascii == 16) continue;
            *out++ = (Py_UCS1)((p[0] & 0x1F) << 6 | (p[1] & 0x3F));
            p += 2;
        }
#endif
        while (p < end) {
            uint8_t c = *p++;
            if (c >= 0x80) c = (uint8_t)((c & 0x1F) << 6 | (*p++ & 0x3F));
            *out++ = c;
        }
    } else if (kind == PyUnicode_2BYTE_KIND) {
        Py_UCS2 *out = (Py_UCS2 *)data + at;
#if TW_SSE2
        const Py_UCS2 *const out_end = out + (n - cont);
#if TW_SSSE3
        if (TW_LIKELY(tw_has_ssse3())) p = tw_str_write_wide(p, end, &out, out_end);
#endif
        while (end - p >= 16 && out_end - out >= 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
            unsigned run;
            if (*p < 0x80) {
                run = (unsigned)_mm_movemask_epi8(v);
                run = run ? tw_ctz32(run) : 16;
                _mm_storeu_si128((__m128i *)(void *)out, _mm_unpacklo_epi8(v, _mm_setzero_si128()));
                _mm_storeu_si128((__m128i *)(void *)(out + 8), _mm_unpackhi_epi8(v, _mm_setzero_si128()));
                out += run;
            } else if (*p < 0xE0) {
                run = tw_shape_of_two(v);
                v = _mm_or_si128(_mm_slli_epi16(_mm_and_si128(v, _mm_set1_epi16(0x1F)), 6), _mm_and_si128(_mm_srli_epi16(v, 8), _mm_set1_epi16(0x3F)));
                _mm_storeu_si128((__m128i *)(void *)out, v);
                out += run / 2;
            } else {
                /* Five characters, of which those count that are of three bytes. */
                uint32_t x;
                run = tw_shape_of_three(v);
#define TW_THREE(i) memcpy(&x, p + 3 * (i), 4), out[i] = (Py_UCS2)((x & 0x0F) << 12 | (x >> 2 & 0xFC0) | (x >> 16 & 0x3F))
                TW_THREE(0); TW_THREE(1); TW_THREE(2); TW_THREE(3); TW_THREE(4);
#undef TW_THREE
                out += run / 3;
            }
            p += run;
            if (p < end && *p < 0x80) *out++ = *p++; /* a space between two words */
        }
#endif
        while (p < end) {
            uint8_t c = *p;
            if (c < 0x80) { *out++ = c; p++; }
            else if (c < 0xE0) { *out++ = (Py_UCS2)((c & 0x1F) << 6 | (p[1] & 0x3F)); p += 2; }
            else { *out++ = (Py_UCS2)((c & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F)); p += 3; }
        }
    } else {
        Py_UCS4 *out = (Py_UCS4 *)data + at;
        while (p < end) {
            uint8_t c = *p;
            if (c < 0x80) { *out++ = c; p++; }
            else if (c < 0xE0) { *out++ = (Py_UCS4)((c & 0x1F) << 6 | (p[1] & 0x3F)); p += 2; }
            else if (c < 0xF0) { *out++ = (Py_UCS4)((c & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F)); p += 3; }
            else { *out++ = (Py_UCS4)((c & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | (p[3] & 0x3F)); p += 4; }
        }
    }
}

/* A new ASCII str, of more than one character. What PyUnicode_New() does, less the choice of a form. */
static inline PyObject *tw_str_ascii(const uint8_t *p, size_t n)
{
#if TW_GROW_IN_PLACE && !defined(Py_DEBUG) && !defined(Py_TRACE_REFS) && !defined(Py_REF_DEBUG)
    PyASCIIObject *o;
    if (TW_UNLIKELY(n > PY_SSIZE_T_MAX - sizeof *o - 1)) return PyErr_NoMemory();
    o = (PyASCIIObject *)PyObject_Malloc(sizeof *o + n + 1);
    if (TW_UNLIKELY(o == NULL)) return PyErr_NoMemory();
    memset(o, 0, sizeof *o);
    Py_SET_REFCNT((PyObject *)o, 1);
    Py_SET_TYPE((PyObject *)o, &PyUnicode_Type);
    o->length = (Py_ssize_t)n;
    o->hash = -1;
    o->state.kind = PyUnicode_1BYTE_KIND;
    o->state.compact = 1;
    o->state.ascii = 1;
#if PY_VERSION_HEX < 0x030C0000
    o->state.ready = 1;
#endif
    memcpy(o + 1, p, n);
    ((char *)(o + 1))[n] = 0;
    return (PyObject *)o;
#else
    PyObject *o = PyUnicode_New((Py_ssize_t)n, 0x7F);
    if (TW_LIKELY(o != NULL)) memcpy(PyUnicode_DATA(o), p, n);
    return o;
#endif
}

/* A str of checked UTF-8. `lead` and `cont` as in tw_json.h. */
static inline PyObject *tw_str_from_utf8(const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    PyObject *o;
    if (TW_UNLIKELY(n <= 1)) return n == 0 ? PyUnicode_New(0, 0) : PyUnicode_FromOrdinal(p[0]); /* the interpreter's own */
    if (TW_LIKELY(lead == 0)) return tw_str_ascii(p, n);
    o = PyUnicode_New((Py_ssize_t)(n - cont), tw_str_maxchar(lead));
    if (o != NULL) tw_str_write(PyUnicode_DATA(o), PyUnicode_KIND(o), 0, p, n, cont);
    return o;
}

typedef struct tw_str {
    PyObject *o;     /* owned, or NULL */
    Py_ssize_t room; /* characters that o has memory for */
} tw_str;

static inline Py_ssize_t tw_str_length(const tw_str *g) { return g->o == NULL ? 0 : PyUnicode_GET_LENGTH(g->o); }

static inline void tw_str_clear(tw_str *g)
{
    Py_CLEAR(g->o);
    g->room = 0;
}

/* Begin with the empty string, of which there must not be a second one: from CPython 3.13 on, an `if text:` that has run a few times
 * takes every other object for true. Its references are the interpreter's, so text never grows in it. Returns 0, or -1 with an exception. */
static inline int tw_str_empty(tw_str *g)
{
    g->o = PyUnicode_New(0, 0);
    g->room = 0;
    return g->o == NULL ? -1 : 0;
}

#if TW_GROW_IN_PLACE
static inline void tw_str_set_length(PyObject *o, Py_ssize_t n)
{
    PyASCIIObject *a = (PyASCIIObject *)o;
    a->length = n;
    a->hash = -1;
#if PY_VERSION_HEX < 0x030C0000
    /* In 3.11 a string of four-byte characters is its own wchar_t form. */
    if (!PyUnicode_IS_ASCII(o) && a->wstr != NULL) ((PyCompactUnicodeObject *)o)->wstr_length = n;
#endif
    switch (PyUnicode_KIND(o)) {
    case PyUnicode_1BYTE_KIND: ((Py_UCS1 *)PyUnicode_DATA(o))[n] = 0; break;
    case PyUnicode_2BYTE_KIND: ((Py_UCS2 *)PyUnicode_DATA(o))[n] = 0; break;
    default: ((Py_UCS4 *)PyUnicode_DATA(o))[n] = 0;
    }
}

/* May the string be written to? `refs` references are known; a cached UTF-8 form or wchar_t form would go stale. */
static inline int tw_str_writable(PyObject *o, Py_ssize_t refs)
{
    if (Py_REFCNT(o) != refs || PyUnicode_CHECK_INTERNED(o)) return 0;
    if (!PyUnicode_IS_ASCII(o) && ((PyCompactUnicodeObject *)o)->utf8 != NULL) return 0;
#if PY_VERSION_HEX < 0x030C0000
    if (((PyASCIIObject *)o)->wstr != NULL && (void *)((PyASCIIObject *)o)->wstr != PyUnicode_DATA(o)) return 0;
#endif
    return 1;
}
#endif

/* Can n more characters of this width be appended without a new object? `refs`: references the caller knows of. */
static inline int tw_str_fits(const tw_str *g, Py_ssize_t n, Py_UCS4 maxchar, Py_ssize_t refs)
{
#if TW_GROW_IN_PLACE
    return g->o != NULL && g->room - PyUnicode_GET_LENGTH(g->o) >= n && maxchar <= PyUnicode_MAX_CHAR_VALUE(g->o) &&
           tw_str_writable(g->o, refs);
#else
    (void)g; (void)n; (void)maxchar; (void)refs;
    return 0;
#endif
}

/* Append to a string for which tw_str_fits() holds. */
static inline void tw_str_append(tw_str *g, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
#if TW_GROW_IN_PLACE
    Py_ssize_t at = PyUnicode_GET_LENGTH(g->o);
    int kind = PyUnicode_KIND(g->o);
    if (n == 0) return; /* p may be NULL */
    if (lead == 0 && kind == PyUnicode_1BYTE_KIND) memcpy((Py_UCS1 *)PyUnicode_DATA(g->o) + at, p, n);
    else tw_str_write(PyUnicode_DATA(g->o), kind, at, p, n, cont);
    tw_str_set_length(g->o, at + (Py_ssize_t)(n - cont));
#else
    (void)g; (void)p; (void)n; (void)lead; (void)cont;
#endif
}

/* A new string: the old text with room for n more characters, n > 0; where there was none, text must follow (see tw_str_empty()).
 * Returns 0, or -1 with an exception. The old object is given back. If `refs` is 1 and nobody else holds the old one it is resized,
 * which for long strings costs no copy. */
static int tw_str_renew(tw_str *g, Py_ssize_t n, Py_UCS4 maxchar)
{
    Py_ssize_t length = tw_str_length(g), room;
    PyObject *o;
    if (g->o != NULL) {
        Py_UCS4 have = PyUnicode_MAX_CHAR_VALUE(g->o);
        if (have > maxchar) maxchar = have;
    }
#if TW_GROW_IN_PLACE
    if (length > PY_SSIZE_T_MAX / 2 - n - TW_STR_SLACK) { PyErr_NoMemory(); return -1; }
    room = length + n;
    room += room / 8 + 32; /* as lists grow: many idle streams are many such rooms */
    if (g->o != NULL && maxchar == PyUnicode_MAX_CHAR_VALUE(g->o) && g->room > 0 && tw_str_writable(g->o, 1)) {
        tw_str_set_length(g->o, length);
        o = g->o;
        g->o = NULL;
        if (PyUnicode_Resize(&o, room) < 0) {
            g->o = o;
            return -1;
        }
        g->o = o;
        tw_str_set_length(o, length);
        g->room = room;
        return 0;
    }
#else
    room = length + n;
#endif
    o = PyUnicode_New(room, maxchar);
    if (o == NULL) return -1;
    if (length > 0 && PyUnicode_CopyCharacters(o, 0, g->o, 0, length) < 0) {
        Py_DECREF(o);
        return -1;
    }
    Py_XSETREF(g->o, o);
    g->room = room;
#if TW_GROW_IN_PLACE
    tw_str_set_length(o, length);
#endif
    return 0;
}

#if !TW_GROW_IN_PLACE
/* The public way: a new string of the old text and the new. */
static int tw_str_concat(tw_str *g, const uint8_t *p, size_t n, uint8_t lead, size_t cont)
{
    Py_ssize_t at = tw_str_length(g);
    if (tw_str_renew(g, (Py_ssize_t)(n - cont), tw_str_maxchar(lead)) < 0) return -1;
    tw_str_write(PyUnicode_DATA(g->o), PyUnicode_KIND(g->o), at, p, n, cont);
    return 0;
}
#endif

/* Make a string longer in place before it is written to; nothing where strings do not grow in place. */
static inline void tw_grow_set_length(PyObject *o, Py_ssize_t n)
{
#if TW_GROW_IN_PLACE
    tw_str_set_length(o, n);
#else
    (void)o; (void)n;
#endif
}

static inline int tw_copy_characters(PyObject *to, Py_ssize_t at, PyObject *from, Py_ssize_t n)
{
    return PyUnicode_CopyCharacters(to, at, from, 0, n) < 0 ? -1 : 0;
}

#endif
