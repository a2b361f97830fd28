#!/bin/sh
# The C core where nobody develops it: big-endian (s390x, emulated), 32 bits (i686), and as the compilers of Windows read it.
# Not part of the default run. On Debian the first two take:
#   apt-get install gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static gcc-i686-linux-gnu libc6-dev-i386-cross
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# try NAME COMPILER [RUNNER]: every C test, built for another machine, passes there.
try() {
    if ! command -v "$2" >/dev/null || { [ -n "${3-}" ] && ! command -v "$3" >/dev/null; }; then
        echo "$1: skipped, $2${3+ or $3} is not here"
        return
    fi
    for test in tests/c/test_*.c; do
        "$2" -std=c11 -Wall -Wextra -Wpedantic -Werror -O2 -static -o "$work/t" "$test"
        ${3-} "$work/t" >"$work/said" || { cat "$work/said"; exit 1; }
        echo "$1: $(basename "$test" .c): $(tail -n 1 "$work/said")"
    done
}
try big-endian s390x-linux-gnu-gcc qemu-s390x-static
try 32-bit i686-linux-gnu-gcc

# The declarations of Windows that the core asks for, so that clang can read it without an SDK.
if command -v clang >/dev/null; then
    cat >"$work/string.h" <<'C'
#include <stddef.h>
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
void *memmove(void *, const void *, size_t);
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
C
    cat >"$work/stdlib.h" <<'C'
#include <stddef.h>
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
C
    cat >"$work/intrin.h" <<'C'
unsigned char _BitScanForward(unsigned long *, unsigned long);
#if defined(_M_X64) || defined(_M_ARM64)
unsigned char _BitScanForward64(unsigned long *, unsigned __int64);
#endif
#ifdef _M_X64
unsigned __int64 _umul128(unsigned __int64, unsigned __int64, unsigned __int64 *);
#endif
C
    printf '#include "_core/%s"\n' tw_scan.h tw_number.h tw_trial.h >"$work/headers.c"
    for target in x86_64 i686 aarch64; do
        for source in "$work/headers.c" src/toolwire/_core/*.c; do
            clang --target=$target-pc-windows-msvc -fms-extensions -ffreestanding -fsyntax-only -std=c11 -Wall -Wextra -Werror \
                -Wno-unused-function -I"$work" -Isrc/toolwire "$source"
        done
        echo "Windows, $target: no warning"
    done
else
    echo "Windows: skipped, clang is not here"
fi
