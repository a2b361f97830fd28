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
#if defined(__GNUC__) && defined(__x86_64__)
#define TW_SSSE3 1 /* compiled in, and asked for at run time: tw_has_ssse3() */
#define TW_AVX2 1  /* likewise */
#include <immintrin.h>
static inline int tw_has_ssse3(void) { return __builtin_cpu_supports("ssse3"); }
static inline int tw_has_avx2(void) { return __builtin_cpu_supports("avx2"); }
#endif
#elif !defined(TW_NO_SIMD) && defined(__aarch64__) && defined(__ARM_NEON)
#define TW_NEON 1
#include <arm_neon.h>
#endif

#if defined(_MSC_VER)
#include <intrin.h>
static inline unsigned tw_ctz32(uint32_t x) { unsigned long i; _BitScanForward(&i, x); return (unsigned)i; }
#if defined(_M_IX86) || defined(_M_ARM)
static inline unsigned tw_ctz64(uint64_t x) { return (uint32_t)x ? tw_ctz32((uint32_t)x) : 32 + tw_ctz32((uint32_t)(x >> 32)); }
#else
static inline unsigned tw_ctz64(uint64_t x) { unsigned long i; _BitScanForward64(&i, x); return (unsigned)i; }
#endif
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

#if TW_SSE2
/* Which bytes of the block end plain text, a bit each. */
TW_INLINE uint32_t tw_block_ends_plain(__m128i v)
{
    __m128i m = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(m, _mm_cmplt_epi8(v, _mm_set1_epi8(0x20))));
}
#endif

#if TW_SSE2
/* Bytes that the block begins with and that have the form of two-byte characters. */
TW_INLINE unsigned tw_shape_of_two(__m128i v)
{
    unsigned good = (unsigned)_mm_movemask_epi8(
        _mm_cmpeq_epi8(_mm_and_si128(v, _mm_set1_epi16((short)0xC0E0)), _mm_set1_epi16((short)0x80C0)));
    return good == 0xFFFF ? 16 : tw_ctz32(~good) & ~1u;
}

/* The same, without overlong ones (C0, C1). *wide: is one of them beyond Latin-1? */
TW_INLINE unsigned tw_block_of_two(__m128i v, int *wide)
{
    const __m128i overlong = _mm_cmpeq_epi16(_mm_and_si128(v, _mm_set1_epi16(0x001E)), _mm_setzero_si128());
    const __m128i latin = _mm_cmpeq_epi16(_mm_and_si128(v, _mm_set1_epi16(0x001C)), _mm_setzero_si128());
    unsigned bad = (unsigned)_mm_movemask_epi8(overlong), n = tw_shape_of_two(v);
    if (TW_UNLIKELY(bad) && tw_ctz32(bad) < n) n = tw_ctz32(bad);
    *wide = (~(unsigned)_mm_movemask_epi8(latin) & ((1u << n) - 1)) != 0;
    return n;
}

/* Bytes that the block begins with and that have the form of three-byte characters, of which it may hold five. */
TW_INLINE unsigned tw_shape_of_three(__m128i v)
{
    const char l = (char)0xF0, c = (char)0xC0, e = (char)0xE0, t = (char)0x80;
    unsigned good = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(v, _mm_setr_epi8(l, c, c, l, c, c, l, c, c, l, c, c, l, c, c, 0)),
                                                               _mm_setr_epi8(e, t, t, e, t, t, e, t, t, e, t, t, e, t, t, 1)));
    if (TW_LIKELY(good == 0x7FFF)) return 15; /* foreseen, the next block need not wait for this one's length */
    return tw_ctz32(~good) / 3 * 3;
}

/* The same, without overlong ones and halves of surrogate pairs: the second byte has the bit 0x20 after E0, and not after ED. */
TW_INLINE unsigned tw_block_of_three(__m128i v)
{
    const __m128i e0 = _mm_cmpeq_epi8(v, _mm_set1_epi8((char)0xE0)), ed = _mm_cmpeq_epi8(v, _mm_set1_epi8((char)0xED));
    unsigned n = tw_shape_of_three(v);
    if (TW_UNLIKELY(_mm_movemask_epi8(_mm_or_si128(e0, ed)))) {
        const __m128i clear = _mm_cmpeq_epi8(_mm_and_si128(v, _mm_set1_epi8(0x20)), _mm_setzero_si128());
        const __m128i wrong = _mm_or_si128(_mm_and_si128(_mm_slli_si128(e0, 1), clear), _mm_andnot_si128(clear, _mm_slli_si128(ed, 1)));
        unsigned bad = (unsigned)_mm_movemask_epi8(wrong);
        if (bad && tw_ctz32(bad) < n) n = tw_ctz32(bad) / 3 * 3;
    }
    return n;
}
#endif

#if TW_SSSE3
/* Well-formed UTF-8 in whole blocks, plain ASCII included: up to the last character before a block that holds a byte that ends plain
 * ASCII text, or is ill-formed. *cont grows by the continuation bytes, *most is the largest byte. Returns where it stopped.
 *
 * Keiser and Lemire, "Validating UTF-8 In Less Than One Instruction Per Byte" (2021): three tables say what a half of a byte and of the
 * one before it may be a part of; what all three agree on is an error, unless it is a second continuation byte where one is due. */
__attribute__((target("ssse3"))) static inline const uint8_t *
tw_scan_utf8(const uint8_t *p, const uint8_t *end, size_t *cont, uint8_t *most)
{
    enum { SHORT = 1, LONG = 2, OVER3 = 4, LARGE = 8, SURROGATE = 16, OVER2 = 32, LARGE2 = 64, OVER4 = 64, TWO = 128, CARRY = SHORT | LONG | TWO };
#define B(x) (char)(x)
    const __m128i high1 = _mm_setr_epi8(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, B(TWO), B(TWO), B(TWO), B(TWO), SHORT | OVER2, SHORT,
                                        SHORT | OVER3 | SURROGATE, B(SHORT | LARGE | LARGE2 | OVER4));
    const __m128i low1 = _mm_setr_epi8(B(CARRY | OVER3 | OVER2 | OVER4), B(CARRY | OVER2), B(CARRY), B(CARRY), B(CARRY | LARGE), B(CARRY | LARGE | LARGE2),
                                       B(CARRY | LARGE | LARGE2), B(CARRY | LARGE | LARGE2), B(CARRY | LARGE | LARGE2), B(CARRY | LARGE | LARGE2),
                                       B(CARRY | LARGE | LARGE2), B(CARRY | LARGE | LARGE2), B(CARRY | LARGE | LARGE2),
                                       B(CARRY | LARGE | LARGE2 | SURROGATE), B(CARRY | LARGE | LARGE2), B(CARRY | LARGE | LARGE2));
    const __m128i high2 = _mm_setr_epi8(SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, B(LONG | OVER2 | TWO | OVER3 | LARGE2 | OVER4),
                                        B(LONG | OVER2 | TWO | OVER3 | LARGE), B(LONG | OVER2 | TWO | SURROGATE | LARGE),
                                        B(LONG | OVER2 | TWO | SURROGATE | LARGE), SHORT, SHORT, SHORT, SHORT);
#undef B
    const __m128i nibble = _mm_set1_epi8(0x0F), zero = _mm_setzero_si128();
    const uint8_t *const start = p;
    __m128i before = zero, count = zero, largest = zero;
    int k;
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i one = _mm_alignr_epi8(v, before, 15), due, wrong, ends;
        wrong = _mm_and_si128(_mm_shuffle_epi8(high1, _mm_and_si128(_mm_srli_epi16(one, 4), nibble)), _mm_shuffle_epi8(low1, _mm_and_si128(one, nibble)));
        wrong = _mm_and_si128(wrong, _mm_shuffle_epi8(high2, _mm_and_si128(_mm_srli_epi16(v, 4), nibble)));
        due = _mm_or_si128(_mm_subs_epu8(_mm_alignr_epi8(v, before, 14), _mm_set1_epi8(0xE0 - 0x80)),
                           _mm_subs_epu8(_mm_alignr_epi8(v, before, 13), _mm_set1_epi8(0xF0 - 0x80)));
        wrong = _mm_xor_si128(wrong, _mm_and_si128(due, _mm_set1_epi8((char)0x80)));
        ends = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        ends = _mm_or_si128(ends, _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v));
        if (_mm_movemask_epi8(_mm_andnot_si128(ends, _mm_cmpeq_epi8(wrong, zero))) != 0xFFFF) break;
        count = _mm_add_epi64(count, _mm_sad_epu8(_mm_sub_epi8(zero, _mm_cmplt_epi8(v, _mm_set1_epi8((char)0xC0))), zero));
        largest = _mm_max_epu8(largest, before);
        before = v;
        p += 16;
    }
    /* The last character may go on behind the last block: then it is left, and is not to count. */
    for (k = 1; k <= 3 && p - start >= k && p[-k] >= 0x80; k++) {
        uint8_t c = p[-k], keep[16] = {0};
        if (c < 0xC0) continue;
        if ((c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2) > k) {
            *cont -= (size_t)k - 1;
            p -= k;
            memset(keep, 0xFF, (size_t)(16 - k));
            before = _mm_and_si128(before, _mm_loadu_si128((const __m128i *)(const void *)keep));
        }
        break;
    }
    *cont += (size_t)_mm_cvtsi128_si64(count) + (size_t)_mm_cvtsi128_si64(_mm_srli_si128(count, 8));
    largest = _mm_max_epu8(largest, before);
    largest = _mm_max_epu8(largest, _mm_srli_si128(largest, 8));
    largest = _mm_max_epu8(largest, _mm_srli_si128(largest, 4));
    largest = _mm_max_epu8(largest, _mm_srli_si128(largest, 2));
    largest = _mm_max_epu8(largest, _mm_srli_si128(largest, 1));
    *most = (uint8_t)_mm_cvtsi128_si32(largest);
    return p;
}
#endif

/* The first CR or LF. */
TW_INLINE const uint8_t *tw_scan_eol(const uint8_t *p, const uint8_t *end)
{
#if TW_SSE2
    const __m128i cr = _mm_set1_epi8('\r'), lf = _mm_set1_epi8('\n');
    /* Four at a time, and one test for all four: is there anything up to CR? Text has hardly any other such bytes. */
    while (end - p >= 64) {
        const __m128i *q = (const __m128i *)(const void *)p;
        __m128i a = _mm_loadu_si128(q), b = _mm_loadu_si128(q + 1), c = _mm_loadu_si128(q + 2), d = _mm_loadu_si128(q + 3);
        __m128i least = _mm_min_epu8(_mm_min_epu8(a, b), _mm_min_epu8(c, d));
        if (TW_LIKELY(!_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(least, cr), least)))) {
            p += 64;
            continue;
        }
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

#if TW_AVX2
/* The same for what may be a long line: 128 bytes at a time, while there are so many. */
__attribute__((target("avx2"))) static inline const uint8_t *tw_scan_eol_wide(const uint8_t *p, const uint8_t *end)
{
    const __m256i cr = _mm256_set1_epi8('\r'), lf = _mm256_set1_epi8('\n');
    while (end - p >= 128) {
        const __m256i *q = (const __m256i *)(const void *)p;
        __m256i a = _mm256_loadu_si256(q), b = _mm256_loadu_si256(q + 1), c = _mm256_loadu_si256(q + 2), d = _mm256_loadu_si256(q + 3);
        __m256i least = _mm256_min_epu8(_mm256_min_epu8(a, b), _mm256_min_epu8(c, d));
        if (TW_UNLIKELY(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(least, cr), least)))) {
            uint32_t bits = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_cmpeq_epi8(a, cr), _mm256_cmpeq_epi8(a, lf)));
            if (bits) return p + tw_ctz32(bits);
            bits = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_cmpeq_epi8(b, cr), _mm256_cmpeq_epi8(b, lf)));
            if (bits) return p + 32 + tw_ctz32(bits);
            bits = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_cmpeq_epi8(c, cr), _mm256_cmpeq_epi8(c, lf)));
            if (bits) return p + 64 + tw_ctz32(bits);
            bits = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_cmpeq_epi8(d, cr), _mm256_cmpeq_epi8(d, lf)));
            if (bits) return p + 96 + tw_ctz32(bits);
        }
        p += 128;
    }
    return tw_scan_eol(p, end);
}
#endif

/* A line that is likely long. */
static inline const uint8_t *tw_scan_long_line(const uint8_t *p, const uint8_t *end)
{
#if TW_AVX2
    if (end - p >= 128 && tw_has_avx2()) return tw_scan_eol_wide(p, end);
#endif
    return tw_scan_eol(p, end);
}

/* The first byte that is not ASCII. */
TW_INLINE const uint8_t *tw_scan_ascii(const uint8_t *p, const uint8_t *end)
{
#if TW_SSE2
    while (end - p >= 64) {
        const __m128i *q = (const __m128i *)(const void *)p;
        __m128i a = _mm_or_si128(_mm_loadu_si128(q), _mm_loadu_si128(q + 1)), b = _mm_or_si128(_mm_loadu_si128(q + 2), _mm_loadu_si128(q + 3));
        if (_mm_movemask_epi8(_mm_or_si128(a, b))) break;
        p += 64;
    }
#endif
    for (uint64_t eight; end - p >= 8; p += 8) {
        memcpy(&eight, p, 8);
        if (eight & 0x8080808080808080u) break;
    }
    while (p < end && *p < 0x80) p++;
    return p;
}

#endif
