/* Numbers, and whether bytes are UTF-8: against a reader of the grammar (RFC 8259, section 6) and strtod, and against a decoder that
 * follows the definition (RFC 3629, section 3). The input lies in memory of exactly its size.
 */
#include <errno.h>
#include <math.h>

#include "../../src/toolwire/_core/tw_number.h"
#include "../../src/toolwire/_core/tw_wellformed.h"
#include "cuts.h"

static size_t digits(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] >= '0' && p[i] <= '9') i++;
    return i;
}

/* int frac exp, as far as it goes: bytes taken, 0 for no number. A part that has begun must go on. */
static size_t grammar(const uint8_t *p, size_t n, int *is_int)
{
    size_t i = n && *p == '-', d = digits(p + i, n - i);
    *is_int = 1;
    if (d == 0 || (d > 1 && p[i] == '0')) return 0;
    i += d;
    if (i < n && p[i] == '.') {
        d = digits(p + i + 1, n - i - 1);
        if (d == 0) return 0;
        i += 1 + d;
        *is_int = 0;
    }
    if (i < n && (p[i] == 'e' || p[i] == 'E')) {
        size_t sign = i + 1 < n && (p[i + 1] == '+' || p[i + 1] == '-');
        d = digits(p + i + 1 + sign, n - i - 1 - sign);
        if (d == 0) return 0;
        i += 1 + sign + d;
        *is_int = 0;
    }
    return i;
}

static void check_number(const uint8_t *p, size_t n)
{
    tw_decimal d;
    int is_int;
    size_t want = grammar(p, n, &is_int);
    const uint8_t *stop = tw_number_read(p, p + n, &d);
    char text[4097];
    double value, wanted;
    int64_t whole;
    demand(want == 0 ? stop == NULL : stop == p + want, "another number is read than the grammar says");
    if (want == 0 || want >= sizeof text) return;
    demand(d.is_int == is_int && d.negative == (*p == '-'), "an integer or not");
    memcpy(text, p, want);
    text[want] = 0;
    if (is_int) {
        long long ll;
        errno = 0;
        ll = strtoll(text, NULL, 10);
        if (tw_decimal_int64(&d, &whole)) demand(errno == 0 && whole == ll, "not strtoll's integer");
        else demand(errno != 0 || ll == INT64_MIN, "an integer that fits and is left to the text");
    }
    wanted = strtod(text, NULL);
    if (tw_decimal_double(&d, &value)) demand(memcmp(&value, &wanted, sizeof value) == 0, "not strtod's double");
    else demand(d.cut, "undecided though every digit is known");
}

static int is_utf8(const uint8_t *p, size_t n)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < n;) {
        size_t len = p[i] < 0x80 ? 1 : p[i] >> 5 == 6 ? 2 : p[i] >> 4 == 14 ? 3 : p[i] >> 3 == 30 ? 4 : 0;
        uint32_t c = p[i];
        if (len == 0 || len > n - i) return 0;
        if (len > 1) c &= 0x7Fu >> len;
        for (size_t k = 1; k < len; k++) {
            if (p[i + k] >> 6 != 2) return 0;
            c = c << 6 | (p[i + k] & 0x3F);
        }
        if (c < least[len] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
        i += len;
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1); /* memcpy of the fuzzer's own buffer: it may be longer than the input */
    if (size) memcpy(copy, data, size);
    check_number(copy, size);
    demand(tw_is_wellformed(copy, size) == is_utf8(copy, size), "UTF-8 or not");
    free(copy);
    return 0;
}
