/* Numbers without Python: what the reader takes, and its doubles against strtod(), bit for bit. With an argument N, N random
 * texts of each kind; every text is read at the end of a page that a no-access page follows.
 *
 *   gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined -o t tests/c/test_number.c && ./t [N]
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/toolwire/_core/tw_number.h"

static unsigned long passed, failed, undecided;
static uint8_t *page_end;

static void fail(const char *text, const char *why)
{
    if (failed++ < 20) printf("FAILED %s: %s\n", text, why);
}

static const uint8_t *at_page_end(const char *text, size_t n)
{
    memcpy(page_end - n, text, n);
    return page_end - n;
}

/* The text is a number; its double must be strtod's, where the reader decides at all. */
static void check_double(const char *text)
{
    size_t n = strlen(text);
    const uint8_t *p = at_page_end(text, n), *stop;
    tw_decimal d;
    double got, want = strtod(text, NULL);
    stop = tw_number_read(p, p + n, &d);
    if (stop != p + n) { fail(text, "not read to its end"); return; }
    if (!tw_decimal_double(&d, &got)) {
        if (!d.cut) fail(text, "undecided though every digit is known");
        undecided++;
        return;
    }
    if (memcmp(&got, &want, sizeof got) != 0) { fail(text, "not strtod's double"); return; }
    passed++;
}

static uint64_t seed = 88172645463325252u;
static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double from_bits(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Exactly half-way between a double and the next one, as decimal text: glibc prints all digits of the long double. */
static void check_halfway(uint64_t bits)
{
    char text[1500];
    double a = from_bits(bits), b = from_bits(bits + 1);
    long double half = ((long double)a + (long double)b) / 2;
    snprintf(text, sizeof text, "%.800Le", half);
    check_double(text);
    snprintf(text, sizeof text, "%.18Le", half);
    check_double(text);
    snprintf(text, sizeof text, "%.17Le", half);
    check_double(text);
}

static void test_doubles(unsigned long n)
{
    static const char *const hard[] = {
        "0.0", "-0.0", "0e999999999999", "1e-999999999999", "1e999999999999", "-1e400", "1e308", "1.7976931348623157e308",
        "1.7976931348623158e308", "1.7976931348623159e308", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
        "2.2250738585072011e-308", "2.2250738585072012e-308", "2.2250738585072014e-308", "2.225073858507201136e-308",
        "9007199254740993.0", "9007199254740992.5", "9007199254740995.0", "9007199254740993.00000000000000000000000000001",
        "18446744073709551615.0", "18446744073709551616.0", "9999999999999999999.0", "99999999999999999999e0",
        "0.000000000000000000000000000012345678901234567", "123456789012345678901234567890e-20", "8.5e22", "1e23", "1e22", "5e-5",
        "6.9294956446009195e15", "1.2345678901234567e-300", "3.0e-308", "0.1", "0.3", "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124", "1.00000000000000011102230246251565404236316680908203126",
        "7450580596923828125e-27", "3.0540412e5", "8445.0", "9355950000000000000.0", "10000000000000000000000000000000000000000e-40",
    };
    unsigned long i;
    char text[200];
    for (i = 0; i < sizeof hard / sizeof *hard; i++) check_double(hard[i]);
    for (i = 0; i < 2047; i++) { /* around every power of two, and in its middle */
        uint64_t bits = (uint64_t)i << 52;
        if (i) check_halfway(bits - 1);
        check_halfway(bits);
        check_halfway(bits + 1);
        check_halfway(bits | (rnd() >> 12));
    }
    for (int q = -350; q <= 320; q++) {
        for (int k = 0; k < 20; k++) {
            snprintf(text, sizeof text, "%" PRIu64 "e%d", k == 0 ? 1 : rnd() >> rnd() % 64, q);
            check_double(text);
        }
    }
    for (i = 0; i < n; i++) {
        double d = from_bits(rnd() & ~(UINT64_C(1) << 63));
        if (d - d == 0.0) {
            snprintf(text, sizeof text, "%.*e", (int)(14 + rnd() % 6), d);
            check_double(text);
        }
        snprintf(text, sizeof text, "%.17g", (double)(rnd() >> 11) / 9007199254740992.0 + 1e-5);
        check_double(text);
        snprintf(text, sizeof text, "-%" PRIu64 ".%" PRIu64 "e%d", rnd() >> rnd() % 64, rnd() >> rnd() % 64, (int)(rnd() % 700) - 350);
        check_double(text);
    }
}

static void test_reading(void)
{
    static const struct { const char *text; int taken; } cases[] = {
        {"", -1}, {"-", -1}, {"0", 1}, {"-0", 2}, {"00", -1}, {"01", -1}, {"-01", -1}, {"0x", 1}, {"12,", 2}, {"1.", -1}, {"1.x", -1},
        {".5", -1}, {"1.5.2", 3}, {"1e", -1}, {"1e+", -1}, {"1e+x", -1}, {"1E-05]", 5}, {"0.0e00 ", 6}, {"12345678x", 8}, {"1234567/", 7},
        {"1234567:", 7}, {"123456789012345678901234567890]", 30}, {"--1", -1}, {"+1", -1}, {"1e5.", 3},
    };
    static const struct { const char *text; int fits; int64_t value; } ints[] = {
        {"0", 1, 0}, {"-0", 1, 0}, {"9223372036854775807", 1, INT64_MAX}, {"-9223372036854775807", 1, -INT64_MAX},
        {"9223372036854775808", 0, 0}, {"18446744073709551617", 0, 0}, {"-1234567890123456", 1, -1234567890123456},
    };
    size_t i;
    tw_decimal d;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].text);
        const uint8_t *p = at_page_end(cases[i].text, n), *stop = tw_number_read(p, p + n, &d);
        if ((stop == NULL ? -1 : (int)(stop - p)) != cases[i].taken) fail(cases[i].text, "read otherwise");
        else passed++;
    }
    for (i = 0; i < sizeof ints / sizeof *ints; i++) {
        size_t n = strlen(ints[i].text);
        const uint8_t *p = at_page_end(ints[i].text, n);
        int64_t v = 0;
        int fits = tw_number_read(p, p + n, &d) == p + n && d.is_int && tw_decimal_int64(&d, &v);
        if (fits != ints[i].fits || v != ints[i].value) fail(ints[i].text, "another integer");
        else passed++;
    }
}

int main(int argc, char **argv)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *mem = mmap(NULL, page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mem == MAP_FAILED || mprotect(mem + page, page, PROT_NONE) != 0) return 2;
    page_end = mem + page;
    test_reading();
    test_doubles(argc > 1 ? strtoul(argv[1], NULL, 10) : 20000);
    printf("%lu passed, %lu failed, %lu left to the text\n", passed, failed, undecided);
    return failed != 0;
}
