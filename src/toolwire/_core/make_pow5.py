"""Writes tw_pow5.h: ``python make_pow5.py > tw_pow5.h``."""

LOW, HIGH = -342, 308

print("/* Made by make_pow5.py: the 128 leading bits of each power of five, the top bit set, high word first. */")
print("#ifndef TW_POW5_H\n#define TW_POW5_H\n\n#include <stdint.h>\n")
print(f"#define TW_POW5_LOW ({LOW})\n#define TW_POW5_HIGH {HIGH}\n")
print(f"static const uint64_t tw_pow5[{HIGH - LOW + 1}][2] = {{")
for q in range(LOW, HIGH + 1):
    power = 5 ** abs(q)
    if q >= 0:
        bits = power << 128 >> power.bit_length()
    else:
        # The reciprocal: truncated like the positive powers; rounded up where 5**-q fits into 64 bits, so that a w that it
        # divides gives a low word of 0 or 1, which tells an exact half.
        bits = (1 << (power.bit_length() + 127)) // power + (q >= -27)
    print(f"    {{0x{bits >> 64:016x}u, 0x{bits & (1 << 64) - 1:016x}u}}, /* {q} */")
print("};\n\n#endif")
