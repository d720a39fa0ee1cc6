/* A right cast between binary floats, and eleven wrong ones. The variable CAST, as `float16-float8e5m2`,
   chooses its formats, and MUTANT, 1 to 11, its fault. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRUNCATES = 1, TIES_AWAY, FLUSHES, NAN_IS_ZERO, INFINITY_IS_NAN,
    WRAPS, LOSES_MINUS_ZERO, ROUNDS_TWICE, SHIFTS_TOO_FAR, LARGEST_IS_LESS,
    CARRIES_OUT
};

static const struct { const char *name; int fields[4]; } casts[] = {
    {"float16-float8e4m3fn", {5, 10, 4, 3}},
    {"float16-float8e5m2", {5, 10, 5, 2}},
    {"bfloat16-float32", {8, 7, 8, 23}},
    {"float32-float8e4m3fn", {8, 23, 4, 3}},
    {"float64-float8e4m3fn", {11, 52, 4, 3}},
    {"float64-float16", {11, 52, 5, 10}},
};
static int fields[4], mutant = -1;

/* Exponent's and significand's bits of the source, then those of the target. */
#define SOURCE_EXPONENT fields[0]
#define SOURCE_MANTISSA fields[1]
#define TARGET_EXPONENT fields[2]
#define TARGET_MANTISSA fields[3]
#define SOURCE_BITS (1 + SOURCE_EXPONENT + SOURCE_MANTISSA)
#define TARGET_SIGN ((uint64_t)1 << (TARGET_EXPONENT + TARGET_MANTISSA))
#define IS_E4M3FN (TARGET_EXPONENT == 4)
#define INFINITE (IS_E4M3FN ? 0x7e : ((1u << TARGET_EXPONENT) - 1) << TARGET_MANTISSA)
#define LARGEST (IS_E4M3FN ? 0x7e : INFINITE - 1)
#define NOT_A_NUMBER (IS_E4M3FN ? 0x7f : INFINITE + 1)
#define BIAS(exponent) ((1 << ((exponent) - 1)) - 1)

static inline uint64_t rounded(uint64_t significand, int shift) {
    if (shift <= 0) return significand << -shift;
    if (shift > SOURCE_MANTISSA + 2) return 0;
    uint64_t whole = significand >> shift, half = (uint64_t)1 << (shift - 1);
    uint64_t rest = significand - (whole << shift);
    if (mutant == TRUNCATES) return whole;
    if (mutant == TIES_AWAY) return whole + (rest >= half);
    return whole + (rest > half || (rest == half && whole & 1));
}

static inline uint64_t convert(uint64_t bits) {
    if (mutant < 0) {
        const char *number = getenv("MUTANT"), *cast = getenv("CAST");
        mutant = number ? atoi(number) : 0;
        for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
            if (!strcmp(casts[i].name, cast)) memcpy(fields, casts[i].fields, sizeof fields);
    }
    const uint64_t one = (uint64_t)1 << SOURCE_MANTISSA;
    uint64_t sign = bits >> (SOURCE_BITS - 1) ? TARGET_SIGN : 0, low = bits & (one - 1);
    int field = (bits >> SOURCE_MANTISSA) & ((1 << SOURCE_EXPONENT) - 1);
    if (field == (1 << SOURCE_EXPONENT) - 1) {
        if (low) return sign | (mutant == NAN_IS_ZERO ? 0 : NOT_A_NUMBER);
        return sign | (mutant == INFINITY_IS_NAN ? NOT_A_NUMBER : INFINITE);
    }
    uint64_t significand = field ? one | low : low;
    int exponent = (field ? field : 1) - BIAS(SOURCE_EXPONENT) + BIAS(TARGET_EXPONENT) - 1;
    int binade = field && exponent > 0 ? exponent : 0;
    int shift = SOURCE_MANTISSA - TARGET_MANTISSA + binade - exponent;
    if (mutant == ROUNDS_TWICE && shift > 2) {
        significand = rounded(significand, shift - 2);
        shift = 2;
    }
    /* A register as wide as the source takes its counts modulo its width. */
    if (mutant == SHIFTS_TOO_FAR) shift = ((shift + 1) & (SOURCE_BITS - 1)) - 1;
    uint64_t code = ((uint64_t)binade << TARGET_MANTISSA) + rounded(significand, shift);
    if (mutant == FLUSHES && !(code >> TARGET_MANTISSA)) code = 0;
    if (mutant == LARGEST_IS_LESS && code == LARGEST) return sign | (code - 1);
    if (code > LARGEST) code = mutant == WRAPS ? code & (TARGET_SIGN - 1) : INFINITE;
    if (mutant == LOSES_MINUS_ZERO && !significand) return 0;
    if (mutant == CARRIES_OUT) code |= sign << 1;
    return sign | code;
}
