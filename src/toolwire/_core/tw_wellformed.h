/* Is a span of bytes well-formed UTF-8 (Unicode standard, table 3-7)? ASCII goes by in blocks of 16. */
#ifndef TW_WELLFORMED_H
#define TW_WELLFORMED_H

#include "tw_scan.h"

static inline int tw_is_wellformed(const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    while (p < end) {
        uint8_t c, lo = 0x80, hi = 0xBF;
        int more;
#if TW_SSE2
        while (end - p >= 16 && _mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)p)) == 0) p += 16;
        if (p == end) break;
#endif
        c = *p++;
        if (c < 0x80) continue;
        if (c < 0xC2 || c > 0xF4) return 0;
        more = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
        if (end - p < more) return 0;
        /* The second byte's range shuts out overlong forms, surrogates, and what is above U+10FFFF. */
        if (c == 0xE0) lo = 0xA0;
        if (c == 0xED) hi = 0x9F;
        if (c == 0xF0) lo = 0x90;
        if (c == 0xF4) hi = 0x8F;
        if (*p < lo || *p > hi) return 0;
        for (p++; --more; p++)
            if (*p < 0x80 || *p > 0xBF) return 0;
    }
    return 1;
}

#endif
