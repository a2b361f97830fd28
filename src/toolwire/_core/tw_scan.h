/* Scans over plain bytes: vector and scalar, one contract.
 *
 * Each function returns the first position in [p, end) that holds a byte of its class, or end. Nothing is read outside
 * [p, end): the vector loops stop 16 bytes before the end, the scalar loop does the rest. Define TW_NO_SIMD for the scalar
 * build (sanitizers and the differential test use both).
 */
#ifndef TW_SCAN_H
#define TW_SCAN_H

#include "tw_common.h"

#if !defined(TW_NO_SIMD) && (defined(__SSE2__) || defined(_M_X64))
#define TW_SSE2 1
#include <emmintrin.h>
#elif !defined(TW_NO_SIMD) && defined(__aarch64__) && defined(__ARM_NEON)
#define TW_NEON 1
#include <arm_neon.h>
#endif

#if defined(_MSC_VER)
#include <intrin.h>
static inline unsigned tw_ctz32(uint32_t x) { unsigned long i; _BitScanForward(&i, x); return (unsigned)i; }
static inline unsigned tw_ctz64(uint64_t x) { unsigned long i; _BitScanForward64(&i, x); return (unsigned)i; }
#else
static inline unsigned tw_ctz32(uint32_t x) { return (unsigned)__builtin_ctz(x); }
static inline unsigned tw_ctz64(uint64_t x) { return (unsigned)__builtin_ctzll(x); }
#endif

/* Bytes that end a run of plain ASCII text inside a JSON string: quote, backslash, control characters, and everything
 * outside ASCII. */
static inline int tw_ends_plain(uint8_t c) { return c == '"' || c == '\\' || c < 0x20 || c >= 0x80; }

TW_INLINE const uint8_t *tw_scan_plain(const uint8_t *p, const uint8_t *end)
{
#if TW_SSE2
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* Signed compare: 0x80..0xff are negative, so "less than 0x20" covers control characters and non-ASCII alike. */
        __m128i m = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)), _mm_cmplt_epi8(v, space));
        unsigned bits = (unsigned)_mm_movemask_epi8(m);
        if (bits) return p + tw_ctz32(bits);
        p += 16;
    }
#elif TW_NEON
    while (end - p >= 16) {
        uint8x16_t v = vld1q_u8(p);
        uint8x16_t m = vorrq_u8(vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\'))),
                                vcltq_s8(vreinterpretq_s8_u8(v), vdupq_n_s8(0x20)));
        uint64_t bits = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(m), 4)), 0);
        if (bits) return p + (tw_ctz64(bits) >> 2);
        p += 16;
    }
#endif
    while (p < end && !tw_ends_plain(*p)) p++;
    return p;
}

/* The first CR or LF. */
TW_INLINE const uint8_t *tw_scan_eol(const uint8_t *p, const uint8_t *end)
{
#if TW_SSE2
    const __m128i cr = _mm_set1_epi8('\r'), lf = _mm_set1_epi8('\n');
    /* Four at a time, and one test for all four: a long line costs little more than its loads. */
    while (end - p >= 64) {
        const __m128i *q = (const __m128i *)(const void *)p;
        __m128i a = _mm_loadu_si128(q), b = _mm_loadu_si128(q + 1), c = _mm_loadu_si128(q + 2), d = _mm_loadu_si128(q + 3);
        a = _mm_or_si128(_mm_cmpeq_epi8(a, cr), _mm_cmpeq_epi8(a, lf));
        b = _mm_or_si128(_mm_cmpeq_epi8(b, cr), _mm_cmpeq_epi8(b, lf));
        c = _mm_or_si128(_mm_cmpeq_epi8(c, cr), _mm_cmpeq_epi8(c, lf));
        d = _mm_or_si128(_mm_cmpeq_epi8(d, cr), _mm_cmpeq_epi8(d, lf));
        if (_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d)))) {
            uint64_t bits = (uint64_t)(unsigned)_mm_movemask_epi8(a) | (uint64_t)(unsigned)_mm_movemask_epi8(b) << 16 |
                            (uint64_t)(unsigned)_mm_movemask_epi8(c) << 32 | (uint64_t)(unsigned)_mm_movemask_epi8(d) << 48;
            return p + tw_ctz64(bits);
        }
        p += 64;
    }
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned bits = (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, cr), _mm_cmpeq_epi8(v, lf)));
        if (bits) return p + tw_ctz32(bits);
        p += 16;
    }
#elif TW_NEON
    while (end - p >= 16) {
        uint8x16_t v = vld1q_u8(p);
        uint8x16_t m = vorrq_u8(vceqq_u8(v, vdupq_n_u8('\r')), vceqq_u8(v, vdupq_n_u8('\n')));
        uint64_t bits = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(m), 4)), 0);
        if (bits) return p + (tw_ctz64(bits) >> 2);
        p += 16;
    }
#endif
    while (p < end && *p != '\r' && *p != '\n') p++;
    return p;
}

#endif
