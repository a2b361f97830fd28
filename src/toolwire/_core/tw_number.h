/* JSON numbers: one pass over the text gives a decimal, and a decimal gives an integer or the nearest double. */
#ifndef TW_NUMBER_H
#define TW_NUMBER_H

#include "tw_common.h"
#include "tw_pow5.h"
#include "tw_scan.h"

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

/* Decimal digits that always fit in a uint64_t. */
#define TW_UINT64_DIGITS 19

/* (-1)^negative * w * 10^exponent; of more than 19 significant digits w has the first 19 only, and `cut` is set. */
typedef struct tw_decimal {
    uint64_t w;
    int64_t exponent;
    uint8_t negative;
    uint8_t is_int; /* neither fraction nor exponent */
    uint8_t cut;
} tw_decimal;

static inline int tw_is_digit(uint8_t c) { return (uint8_t)(c - '0') <= 9; }

#if defined(_M_X64) || (defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define TW_EIGHT_DIGITS 1
/* Of eight bytes with '0' taken off each, those above 9 have their high bit set: true up to the first of them. */
TW_INLINE uint64_t tw_other_than_digits(uint64_t x)
{
    return ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
}

/* Eight digits in one word, '0' taken off each: neighbours are joined to two, four, then eight digits. */
TW_INLINE uint64_t tw_join_digits(uint64_t x)
{
    x = x * ((10 << 8) + 1) >> 8;
    x = (x & UINT64_C(0x00FF00FF00FF00FF)) * ((100 << 16) + 1) >> 16;
    return (x & UINT64_C(0x0000FFFF0000FFFF)) * ((UINT64_C(10000) << 32) + 1) >> 32;
}
#endif

/* Take in a run of digits: *w = *w * 10^n + the run, modulo 2^64. */
TW_INLINE const uint8_t *tw_read_digits(const uint8_t *p, const uint8_t *end, uint64_t *w)
{
    uint64_t v = *w;
#if TW_EIGHT_DIGITS
    static const uint64_t power[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    while (end - p >= 8) {
        uint64_t x, other;
        memcpy(&x, p, 8);
        x ^= UINT64_C(0x3030303030303030);
        other = tw_other_than_digits(x);
        if (other) {
            /* What follows the digits is moved out, and zeros come in before the first: nothing here that the processor would have to
             * guess. */
            unsigned n = tw_ctz64(other) >> 3;
            if (n) *w = v * power[n] + tw_join_digits(x << (64 - 8 * n));
            else *w = v;
            return p + n;
        }
        v = v * 100000000 + tw_join_digits(x);
        p += 8;
    }
#endif
    for (; p < end && tw_is_digit(*p); p++) v = v * 10 + (uint64_t)(*p - '0');
    *w = v;
    return p;
}

/* w and exponent anew, from the first 19 significant digits of [p, end): there are more than w can hold. */
static TW_NOINLINE void tw_decimal_cut(const uint8_t *p, const uint8_t *end, tw_decimal *d)
{
    int digits = 0;
    d->w = 0;
    d->cut = 1;
    for (; p < end; p++) {
        if (*p == '.') continue;
        if (digits < TW_UINT64_DIGITS) {
            d->w = d->w * 10 + (uint64_t)(*p - '0');
            digits += d->w != 0;
        } else {
            d->exponent++; /* it counts from the last digit, which is dropped */
        }
    }
}

/* Reads the number at p (RFC 8259, section 6). Returns the byte behind it, or NULL where no number stands whole before `end`.
 * One that reaches `end` may go on in the next chunk: that is for the caller to know. */
static inline const uint8_t *tw_number_read(const uint8_t *p, const uint8_t *end, tw_decimal *d)
{
    const uint8_t *first, *stop, *frac;
    ptrdiff_t digits;
    d->negative = p < end && *p == '-';
    p += d->negative;
    first = p;
    d->w = 0;
    d->exponent = 0;
    d->is_int = 1;
    d->cut = 0;
    while (p < end && p - first < 4 && tw_is_digit(*p)) d->w = d->w * 10 + (uint64_t)(*p++ - '0'); /* most have not more */
    if (p - first == 4) p = tw_read_digits(p, end, &d->w);
    digits = p - first;
    if (TW_UNLIKELY(digits == 0 || (*first == '0' && digits > 1))) return NULL;
    if (p < end && *p == '.') {
        frac = ++p;
        p = tw_read_digits(p, end, &d->w);
        if (TW_UNLIKELY(p == frac)) return NULL;
        d->is_int = 0;
        d->exponent = frac - p;
        digits += p - frac;
    }
    stop = p;
    if (p < end && (*p | 0x20) == 'e') {
        int negative = 0;
        int64_t x = 0;
        const uint8_t *start;
        p++;
        if (p < end && (*p == '+' || *p == '-')) negative = *p++ == '-';
        for (start = p; p < end && tw_is_digit(*p); p++)
            if (x < INT32_MAX) x = x * 10 + (*p - '0'); /* more makes no difference to a double */
        if (TW_UNLIKELY(p == start)) return NULL;
        d->is_int = 0;
        d->exponent += negative ? -x : x;
    }
    if (TW_UNLIKELY(digits > TW_UINT64_DIGITS)) {
        const uint8_t *q = first;
        while (q < stop && (*q == '0' || *q == '.')) { digits -= *q == '0'; q++; } /* leading zeros cost w nothing */
        if (digits > TW_UINT64_DIGITS) tw_decimal_cut(q, stop, d);
    }
    return p;
}

/* The integer, where it fits. */
static inline int tw_decimal_int64(const tw_decimal *d, int64_t *out)
{
    if (d->cut || d->w > INT64_MAX) return 0;
    *out = d->negative ? -(int64_t)d->w : (int64_t)d->w;
    return 1;
}

/* High word of a * b; the low one in *low. */
static inline uint64_t tw_multiply(uint64_t a, uint64_t b, uint64_t *low)
{
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 wide;
    wide r = (wide)a * b;
    *low = (uint64_t)r;
    return (uint64_t)(r >> 64);
#elif defined(_MSC_VER) && defined(_M_X64)
    uint64_t high;
    *low = _umul128(a, b, &high);
    return high;
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
    uint64_t middle = (p00 >> 32) + (uint32_t)p01 + (uint32_t)p10;
    *low = middle << 32 | (uint32_t)p00;
    return a1 * b1 + (p01 >> 32) + (p10 >> 32) + (middle >> 32);
#endif
}

static inline int tw_clz64(uint64_t x)
{
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_clzll(x);
#else
    int n = 0;
    while (!(x >> 63)) { x <<= 1; n++; }
    return n;
#endif
}

/* Bits of the double nearest to w * 10^q, ties to even: Lemire, "Number Parsing at a Gigabyte per Second" (2021). w times 128
 * bits of 5^q decides every case (Mushtak and Lemire, "Fast Number Parsing Without Fallback", 2023). */
static inline uint64_t tw_nearest_double(uint64_t w, int64_t q)
{
    uint64_t high, low, more, ignored, m;
    int lead, upper, shift, exponent;
    if (w == 0 || q < TW_POW5_LOW) return 0;
    if (q > TW_POW5_HIGH) return UINT64_C(0x7FF) << 52;
    lead = tw_clz64(w);
    w <<= lead;
    high = tw_multiply(w, tw_pow5[q - TW_POW5_LOW][0], &low);
    if ((high & 0x1FF) == 0x1FF) { /* the bits that decide may still change by a carry */
        more = tw_multiply(w, tw_pow5[q - TW_POW5_LOW][1], &ignored);
        low += more;
        high += low < more;
    }
    upper = (int)(high >> 63);
    shift = upper + 64 - 52 - 3;
    m = high >> shift; /* 53 bits and one to round by */
    /* 217706 / 2^16 is log2(10): floor(q * log2(10)) for every q of the table. */
    exponent = (int)(q * 217706 >> 16) + 63 + upper - lead + 1023;
    if (exponent <= 0) { /* subnormal */
        if (exponent < -62) return 0;
        m >>= 1 - exponent;
        m += m & 1;
        m >>= 1;
        return m; /* one that was rounded up to 2^52 is the smallest normal double: its bits say so */
    }
    /* Half-way between two doubles, exactly, is only possible where 5^q or 5^-q fits beside w: to even then. */
    if (low <= 1 && q >= -4 && q <= 23 && (m & 3) == 1 && m << shift == high) m &= ~UINT64_C(1);
    m += m & 1;
    m >>= 1;
    if (m >> 53) {
        m >>= 1;
        exponent++;
    }
    if (exponent >= 0x7FF) return UINT64_C(0x7FF) << 52;
    return (m & ~(UINT64_C(1) << 52)) | (uint64_t)exponent << 52;
}

/* The nearest double; infinity or zero beyond the range. Returns 0 where the digits that were cut decide: then the caller needs
 * a correctly rounding conversion of the text. */
static inline int tw_decimal_double(const tw_decimal *d, double *out)
{
    uint64_t bits = tw_nearest_double(d->w, d->exponent);
    if (TW_UNLIKELY(d->cut) && bits != tw_nearest_double(d->w + 1, d->exponent)) return 0;
    bits |= (uint64_t)d->negative << 63;
    memcpy(out, &bits, sizeof bits);
    return 1;
}

#endif
