/* Digits to numbers. The text has been checked by the tokenizer: it is a JSON number. */
#ifndef TW_NUMBER_H
#define TW_NUMBER_H

#include "tw_common.h"

/* An integer of at most 18 digits always fits in an int64_t. */
#define TW_INT64_DIGITS 18

/* Is [p, p + n) an integer that fits? Stores it in *out. */
static inline int tw_number_int64(const uint8_t *p, size_t n, int64_t *out)
{
    int negative = *p == '-';
    size_t i = (size_t)negative;
    uint64_t v = 0;
    if (n - i > TW_INT64_DIGITS) return 0;
    for (; i < n; i++) v = v * 10 + (uint64_t)(p[i] - '0');
    *out = negative ? -(int64_t)v : (int64_t)v;
    return 1;
}

/* The exact way for short decimals (Clinger, "How to Read Floating Point Numbers Accurately", 1990): a significand below
 * 2^53 and a power of ten up to 10^22 are both exact doubles, so that one rounding, the right one, is left. Returns 0 where
 * that does not hold: the caller then needs a correctly rounding conversion of the text. */
static inline int tw_number_double(const uint8_t *p, size_t n, double *out)
{
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
    (void)p; (void)n; (void)out;
    return 0; /* extended precision would round twice */
#else
    static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const uint8_t *end = p + n;
    int negative = *p == '-';
    uint64_t w = 0;
    int digits = 0, scale = 0;
    double d;
    p += negative;
    for (; p < end && (uint8_t)(*p - '0') <= 9; p++) {
        w = w * 10 + (uint64_t)(*p - '0');
        digits += w != 0;
    }
    if (p < end && *p == '.') {
        for (p++; p < end && (uint8_t)(*p - '0') <= 9; p++) {
            w = w * 10 + (uint64_t)(*p - '0');
            digits += w != 0;
            scale--;
            if (digits > 19) return 0;
        }
    }
    if (digits > 19) return 0; /* w may have wrapped */
    if (p < end) {
        int sign = 0, x = 0;
        p++;
        if (*p == '+' || *p == '-') sign = *p++ == '-';
        for (; p < end; p++) {
            x = x * 10 + (*p - '0');
            if (x > 9999) return 0;
        }
        scale += sign ? -x : x;
    }
    if (w > (UINT64_C(1) << 53)) return 0;
    if (scale < -22 || scale > 22) {
        if (w != 0) return 0;
        d = 0.0;
    } else {
        d = (double)w;
        d = scale < 0 ? d / ten[-scale] : d * ten[scale];
    }
    *out = negative ? -d : d;
    return 1;
#endif
}

#endif
