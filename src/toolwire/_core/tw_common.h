/* Status codes, compiler shims and the rules that hold for every file in this folder:
 *
 *  - No Python.h, no I/O, no globals, no printing, no abort. C11 and the C standard library only.
 *  - A machine's whole memory is one struct. A chunk may end after any byte, so nothing that matters lives in a local
 *    when a call returns.
 *  - A read never goes past the end of the chunk.
 *  - Errors are sticky and carry the absolute offset of the first byte that can not continue the input.
 */
#ifndef TW_COMMON_H
#define TW_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Error codes. The names are those of toolwire.errors.CODES: TW_E_JSON_BAD_ESCAPE is "json.bad_escape". */
enum tw_error {
    TW_OK = 0,
    TW_E_JSON_UNEXPECTED_BYTE,   /* [1,,2]       */
    TW_E_JSON_BAD_LITERAL,       /* nul!         */
    TW_E_JSON_BAD_NUMBER,        /* 01, 1.e5     */
    TW_E_JSON_BAD_ESCAPE,        /* "\x"         */
    TW_E_JSON_CONTROL_CHARACTER, /* a raw newline inside a string */
    TW_E_JSON_BAD_UTF8,          /* "\xff"       */
    TW_E_JSON_LONE_SURROGATE,    /* "\ud800x"    */
    TW_E_JSON_DUPLICATE_KEY,     /* {"a":1,"a":2} where that is refused */
    TW_E_JSON_TRAILING_DATA,     /* {} x         */
    TW_E_JSON_TRUNCATED,         /* [1, and the end of the input */
    TW_E_JSON_TOO_DEEP,          /* more open containers than max_depth */
    TW_E_JSON_TOO_LONG,          /* more bytes than max_bytes */
    TW_E_JSON_NUMBER_TOO_LONG,   /* an integer that the sink refuses to convert */
    TW_E_FRAME_TOO_LARGE,        /* one frame beyond its limit */
    TW_E_FRAME_BAD_CHECKSUM,     /* bytes that their CRC-32 does not fit */
    TW_E_FRAME_BAD_LENGTH,       /* a message shorter than its own parts, or beyond what its format allows */
    TW_E_FRAME_BAD_HEADER,       /* an unknown type, a value past the end, a name twice */
    TW_E_MEMORY,                 /* an allocation failed, or a sink did */
};

#if defined(__GNUC__) || defined(__clang__)
#define TW_LIKELY(x) __builtin_expect(!!(x), 1)
#define TW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TW_INLINE static inline __attribute__((always_inline))
#define TW_NOINLINE __attribute__((noinline))
#else
#define TW_LIKELY(x) (x)
#define TW_UNLIKELY(x) (x)
#define TW_INLINE static inline
#define TW_NOINLINE
#endif

#endif
