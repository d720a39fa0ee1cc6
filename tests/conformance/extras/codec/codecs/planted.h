/* Codecs with one fault each, as public threads report them, and sound ones to plant them in.
 *
 * `encode` rounds a float32 to a small float by integers alone, `decode` goes back; both take their faults as
 * constants, so that each function below is compiled without the others' faults.
 */
#include <stdint.h>
#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))
enum { IEEE, ALL_ONES, NEGATIVE_ZERO, NO_NAN };
typedef struct { int sign, exponent, mantissa, bias, nan; } format;

#define E4M3FN   ((format){1, 4, 3, 7, ALL_ONES})
#define E4M3FNUZ ((format){1, 4, 3, 8, NEGATIVE_ZERO})
#define E4M3B11  ((format){1, 4, 3, 11, NEGATIVE_ZERO})
#define E4M3     ((format){1, 4, 3, 7, IEEE})
#define E3M4     ((format){1, 3, 4, 3, IEEE})
#define E5M2     ((format){1, 5, 2, 15, IEEE})
#define E5M2FNUZ ((format){1, 5, 2, 16, NEGATIVE_ZERO})
#define E2M3     ((format){1, 2, 3, 1, NO_NAN})
#define E3M2     ((format){1, 3, 2, 3, NO_NAN})
#define E2M1     ((format){1, 2, 1, 1, NO_NAN})
#define UE5M3    ((format){0, 5, 3, 15, ALL_ONES})
#define UE4M3    ((format){0, 4, 3, 7, ALL_ONES})
#define F16      ((format){1, 5, 10, 15, IEEE})
#define BF16     ((format){1, 8, 7, 127, IEEE})

enum overflow { SATURATE, NAN_BEYOND, INF_BEYOND };
enum fault {
    SOUND, FLUSHED, AWAY, TRUNCATED, CARRY_LOST, EARLY, NAN_IS_INF, NAN_IS_MAX, NAN_IS_ZERO, MINUS_ZERO_LOST,
    NAN_SIGN_LOST, WITHOUT_LOW_BITS, LOW_PAYLOAD_IS_INF, SIGN_LOST, SMALLEST_AWAY, SUBNORMAL_TRUNCATED, INF_IS_NAN,
    SUBNORMAL_AS_NORMAL, NAN_AS_NUMBER, LAST_BINADE_IS_INF, NAN_IS_MINUS_ZERO, ROUNDS_UP, NO_LIMIT, INF_IS_ZERO, BELOW_NORMAL
};

ALWAYS uint32_t encode(uint32_t bits, format f, enum overflow overflow, enum fault fault) {
    const uint32_t top = 1u << (f.exponent + f.mantissa), infinity = ((1u << f.exponent) - 1) << f.mantissa;
    uint32_t magnitude = bits & 0x7fffffff, negative = bits >> 31 && f.sign, sign = negative ? top : 0;
    uint32_t largest = f.nan == IEEE ? infinity - 1 : f.nan == ALL_ONES ? top - 2 : top - 1;
    uint32_t nan = f.nan == IEEE ? infinity | 1u << (f.mantissa - 1) : f.nan == ALL_ONES ? top - 1 : top;
    uint32_t beyond = overflow == SATURATE ? largest : overflow == INF_BEYOND ? infinity : nan;
    if (fault == SIGN_LOST)
        sign = 0;
    if (fault == EARLY)
        beyond = largest -= 1;
    if (magnitude > 0x7f800000) {
        if (fault == NAN_IS_INF || (fault == LOW_PAYLOAD_IS_INF && !(magnitude >> (23 - f.mantissa) & ((1u << f.mantissa) - 1))))
            return infinity | sign;
        if (fault == NAN_IS_MAX)
            return largest | sign;
        if (fault == NAN_IS_ZERO)
            return 0;
        return f.nan == NEGATIVE_ZERO ? nan : f.nan == NO_NAN ? largest | sign : fault == NAN_SIGN_LOST ? nan : nan | sign;
    }
    if (magnitude == 0x7f800000) {
        if (fault == INF_IS_ZERO)
            return sign;
        if (f.nan == IEEE)
            return fault == INF_IS_NAN ? nan | sign : infinity | sign;
        return f.nan == NEGATIVE_ZERO && overflow == NAN_BEYOND ? nan : beyond | sign;
    }
    if (fault == WITHOUT_LOW_BITS)
        magnitude &= ~0xfffu;
    int field = (int)(magnitude >> 23);
    uint64_t whole = (magnitude & 0x7fffff) | (field ? 0x800000 : 0), code;
    /* The exponent of the number, of its last place, and of the last place of the result. */
    int exponent = (field ? field : 1) - 127, place = (exponent > 1 - f.bias ? exponent : 1 - f.bias) - f.mantissa;
    int drop = place - (exponent - 23);
    if (drop > 24 + (fault == ROUNDS_UP) * 16) {
        code = fault == ROUNDS_UP && whole;
        return code ? (uint32_t)code | sign : f.nan == NEGATIVE_ZERO || fault == MINUS_ZERO_LOST ? 0 : sign;
    }
    if (exponent > (int)(largest >> f.mantissa) - f.bias + 1 && fault != NO_LIMIT)
        return f.nan == NEGATIVE_ZERO && beyond == nan ? nan : beyond | sign;
    if (fault == BELOW_NORMAL && exponent < 1 - f.bias)
        return sign;
    int is_subnormal = exponent < 1 - f.bias;
    if (drop <= 0) {
        code = whole << -drop;
    } else {
        uint64_t half = 1ull << (drop - 1), rest = whole & ((1ull << drop) - 1);
        code = whole >> drop;
        int up = rest > half || (rest == half && (code & 1));
        if (fault == AWAY || (fault == SMALLEST_AWAY && code == 0))
            up = rest >= half;
        if (fault == TRUNCATED || (fault == SUBNORMAL_TRUNCATED && is_subnormal))
            up = 0;
        if (fault == ROUNDS_UP)
            up = rest != 0;
        if (fault == CARRY_LOST && up && !is_subnormal && (code & ((1u << f.mantissa) - 1)) == (1u << f.mantissa) - 1)
            code -= (1u << f.mantissa);
        code += (uint64_t)up;
    }
    if (!is_subnormal)
        code += (uint64_t)(exponent + f.bias - 1) << f.mantissa;
    if (fault == FLUSHED && code < 1u << f.mantissa)
        return sign;
    if (fault == NO_LIMIT)
        return ((uint32_t)code & (top - 1)) | sign;
    if (code > largest)
        return f.nan == NEGATIVE_ZERO && beyond == nan ? nan : beyond | sign;
    if (code == 0 && (f.nan == NEGATIVE_ZERO || fault == MINUS_ZERO_LOST))
        return 0;
    return (uint32_t)code | sign;
}

/* An exact value as float32, whose own exponents reach further than those of all formats but bfloat16. */
ALWAYS uint32_t decode(uint32_t code, format f, enum fault fault) {
    const uint32_t top = 1u << (f.exponent + f.mantissa), infinity = ((1u << f.exponent) - 1) << f.mantissa;
    uint32_t sign = f.sign && code & top ? 0x80000000 : 0, magnitude = code & (top - 1);
    uint32_t field = magnitude >> f.mantissa, rest = magnitude & ((1u << f.mantissa) - 1);
    if (fault != NAN_AS_NUMBER) {
        if (f.nan == NEGATIVE_ZERO && code == top)
            return fault == NAN_IS_MINUS_ZERO ? 0x80000000 : 0x7fc00000;
        if (f.nan == ALL_ONES && magnitude == top - 1)
            return fault == NAN_IS_INF ? sign | 0x7f800000 : sign | 0x7fc00000;
        if (f.nan == IEEE && magnitude >= infinity)
            return sign | 0x7f800000 | (magnitude > infinity && fault != NAN_IS_INF ? 0x400000 : 0);
        if (fault == LAST_BINADE_IS_INF && magnitude >= infinity)
            return sign | 0x7f800000;
    }
    if (field == 0 && fault != SUBNORMAL_AS_NORMAL) {
        if (fault == FLUSHED || rest == 0)
            return sign;
        int shift = 0;
        while (!(rest >> f.mantissa)) {
            rest <<= 1;
            shift++;
        }
        return sign | (uint32_t)(127 - f.bias + 1 - shift) << 23 | (rest & ((1u << f.mantissa) - 1)) << (23 - f.mantissa);
    }
    if (magnitude == 0)
        return sign;
    return sign | (field + 127 - (uint32_t)f.bias) << 23 | rest << (23 - f.mantissa);
}

ALWAYS uint32_t pattern(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#define ENCODES(name, type, f, overflow, fault) \
    static inline type name(float x) { return (type)encode(pattern(x), f, overflow, fault); }
#define DECODES(name, type, f, fault) \
    static inline uint32_t name(type code) { return decode(code, f, fault); }

/* Sound. */
ENCODES(e4m3fn, uint8_t, E4M3FN, SATURATE, SOUND)
ENCODES(e4m3fn_nan, uint8_t, E4M3FN, NAN_BEYOND, SOUND)
ENCODES(e4m3fn_away, uint8_t, E4M3FN, SATURATE, AWAY)
ENCODES(e4m3fn_truncated, uint8_t, E4M3FN, SATURATE, TRUNCATED)
ENCODES(e4m3fnuz, uint8_t, E4M3FNUZ, SATURATE, SOUND)
ENCODES(e4m3b11, uint8_t, E4M3B11, SATURATE, SOUND)
ENCODES(e4m3, uint8_t, E4M3, INF_BEYOND, SOUND)
ENCODES(e3m4, uint8_t, E3M4, INF_BEYOND, SOUND)
ENCODES(e5m2, uint8_t, E5M2, INF_BEYOND, SOUND)
ENCODES(e5m2fnuz, uint8_t, E5M2FNUZ, NAN_BEYOND, SOUND)
ENCODES(e2m3, uint8_t, E2M3, SATURATE, SOUND)
ENCODES(e3m2, uint8_t, E3M2, SATURATE, SOUND)
ENCODES(e2m1, uint8_t, E2M1, SATURATE, SOUND)
ENCODES(ue5m3, uint8_t, UE5M3, SATURATE, SOUND)
ENCODES(ue4m3, uint8_t, UE4M3, SATURATE, SOUND)
ENCODES(f16, uint16_t, F16, INF_BEYOND, SOUND)
ENCODES(bf16, uint16_t, BF16, INF_BEYOND, SOUND)

/* Nearest power of two, halfway up; what is below the smallest becomes the smallest. */
static inline uint8_t e8m0(float x) {
    uint32_t bits = pattern(x);
    if (bits > 0x7f800000)
        return 0xff;
    if (bits >= 0x7f400000)
        return 0xfe;
    if (bits < 0x600000) /* 1.5 * 2^-127 is a subnormal float32 */
        return 0;
    return (uint8_t)((bits + 0x400000) >> 23);
}

/* Encoders with a fault. */
ENCODES(subnormals_flushed, uint8_t, E4M3FN, SATURATE, FLUSHED)
ENCODES(below_normal_flushed, uint8_t, E4M3FN, SATURATE, BELOW_NORMAL)
ENCODES(ties_away, uint8_t, E4M3FN, SATURATE, AWAY)
ENCODES(truncates, uint8_t, E4M3FN, SATURATE, TRUNCATED)
ENCODES(rounds_up, uint8_t, E4M3FN, SATURATE, ROUNDS_UP)
ENCODES(carry_lost, uint8_t, E4M3FN, SATURATE, CARRY_LOST)
ENCODES(saturates_early, uint8_t, E4M3FN, SATURATE, EARLY)
ENCODES(nan_is_infinity, uint8_t, E5M2, INF_BEYOND, NAN_IS_INF)
ENCODES(nan_is_largest, uint8_t, E4M3FN, SATURATE, NAN_IS_MAX)
ENCODES(nan_is_zero, uint8_t, E4M3FNUZ, SATURATE, NAN_IS_ZERO)
ENCODES(minus_zero_lost, uint8_t, E4M3FN, SATURATE, MINUS_ZERO_LOST)
ENCODES(nan_sign_lost, uint8_t, E4M3FN, SATURATE, NAN_SIGN_LOST)
ENCODES(low_bits_ignored, uint8_t, E4M3FN, SATURATE, WITHOUT_LOW_BITS)
ENCODES(sign_lost, uint8_t, E2M1, SATURATE, SIGN_LOST)
ENCODES(smallest_away, uint8_t, E2M1, SATURATE, SMALLEST_AWAY)
ENCODES(subnormals_truncated, uint8_t, E5M2, INF_BEYOND, SUBNORMAL_TRUNCATED)
ENCODES(infinity_is_nan, uint8_t, E5M2, INF_BEYOND, INF_IS_NAN)
ENCODES(infinity_is_zero, uint8_t, E5M2, INF_BEYOND, INF_IS_ZERO)
ENCODES(fn_as_fnuz, uint8_t, E4M3FN, SATURATE, SOUND)      /* to be judged as e4m3fnuz */
ENCODES(nan_for_overflow, uint8_t, E4M3FN, NAN_BEYOND, SOUND)
ENCODES(infinity_for_overflow, uint8_t, E5M2, INF_BEYOND, SOUND)  /* to be judged as saturating */
ENCODES(half_flushed, uint16_t, F16, INF_BEYOND, FLUSHED)
ENCODES(half_payload_lost, uint16_t, F16, INF_BEYOND, LOW_PAYLOAD_IS_INF)
ENCODES(bf16_truncates, uint16_t, BF16, INF_BEYOND, TRUNCATED)
ENCODES(no_limit, uint8_t, E4M3FN, SATURATE, NO_LIMIT)
#define BIASED ((format){1, 4, 3, 8, ALL_ONES})
ENCODES(wrong_bias, uint8_t, BIASED, SATURATE, SOUND)

static inline uint8_t rounds_twice(float x) {
    return (uint8_t)encode(decode(encode(pattern(x), F16, INF_BEYOND, SOUND), F16, SOUND), E5M2, INF_BEYOND, SOUND);
}

static inline uint8_t e8m0_smallest_is_nan(float x) {
    uint32_t bits = pattern(x);
    return bits < 0x400000 ? 0xff : e8m0(x);
}

/* Decoders: sound, and with a fault. */
DECODES(from_e4m3fn, uint8_t, E4M3FN, SOUND)
DECODES(from_e4m3fnuz, uint8_t, E4M3FNUZ, SOUND)
DECODES(from_e5m2, uint8_t, E5M2, SOUND)
DECODES(from_ue5m3, uint8_t, UE5M3, SOUND)
DECODES(from_e2m1, uint8_t, E2M1, SOUND)
DECODES(from_f16, uint16_t, F16, SOUND)
DECODES(from_subnormals_flushed, uint8_t, E4M3FN, FLUSHED)
DECODES(from_subnormals_as_normal, uint8_t, E4M3FN, SUBNORMAL_AS_NORMAL)
DECODES(from_nan_as_480, uint8_t, E4M3FN, NAN_AS_NUMBER)
DECODES(from_nan_as_infinity, uint8_t, E5M2, NAN_IS_INF)
DECODES(from_last_binade_as_infinity, uint8_t, UE5M3, LAST_BINADE_IS_INF)
DECODES(from_nan_as_minus_zero, uint8_t, E4M3FNUZ, NAN_IS_MINUS_ZERO)
DECODES(from_fn_as_fnuz, uint8_t, E4M3FN, SOUND)           /* to be judged as e4m3fnuz */
#define FROM_BIASED ((format){1, 5, 2, 16, IEEE})
DECODES(from_wrong_bias, uint8_t, FROM_BIASED, SOUND)

static inline float from_e8m0_shifted(uint8_t code) {
    uint32_t bits = (uint32_t)code << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
