/* A right cast between numbers of up to 64 bits, from the definition of each format.

   The faults stand beside it: they share what is not wrong in them, and the test asks it too. */

#ifndef RIGHT_H
#define RIGHT_H

#include <stdint.h>
#include <string.h>

/* So that the compiler sees the format and leaves out what it does not need. */
#define INLINE static inline __attribute__((always_inline))

enum kind {
  IEEE,     /* the top exponent is infinity and NaN */
  ONE_NAN,  /* no infinity, and NaN where all bits are ones */
  FINITE,   /* neither */
  SCALE,    /* a power of two without sign and zero; NaN where all bits are ones */
  SIGNED,   /* an integer in two's complement */
  UNSIGNED, /* an integer */
  BOOLEAN
};

struct format {
  const char *name;
  enum kind kind;
  int bits, mantissa, bias;
};

static const struct format FLOAT64 = {"float64", IEEE, 64, 52, 1023};
static const struct format FLOAT32 = {"float32", IEEE, 32, 23, 127};
static const struct format FLOAT16 = {"float16", IEEE, 16, 10, 15};
static const struct format BFLOAT16 = {"bfloat16", IEEE, 16, 7, 127};
static const struct format E5M2 = {"float8e5m2", IEEE, 8, 2, 15};
static const struct format E4M3FN = {"float8e4m3fn", ONE_NAN, 8, 3, 7};
static const struct format E2M1 = {"float4e2m1", FINITE, 4, 1, 1};
static const struct format E8M0 = {"float8e8m0", SCALE, 8, 0, 127};
static const struct format INT8 = {"int8", SIGNED, 8, 0, 0};
static const struct format INT32 = {"int32", SIGNED, 32, 0, 0};
static const struct format UINT8 = {"uint8", UNSIGNED, 8, 0, 0};
static const struct format UINT32 = {"uint32", UNSIGNED, 32, 0, 0};
static const struct format UINT64 = {"uint64", UNSIGNED, 64, 0, 0};
static const struct format BOOL = {"bool", BOOLEAN, 8, 0, 0};

enum rounding { NEAREST_EVEN, NEAREST_AWAY, TOWARD_ZERO, FLOOR, CEIL };
enum overflow { TO_INFINITY, TO_NAN, TO_LARGEST };
enum flag { INEXACT = 1, UNDERFLOW = 2, OVERFLOW = 4, INVALID = 16 };

/* A number is whole * 2^exponent with a sign, an infinity or NaN. */
struct number {
  int nan, infinite, negative, signaling;
  uint64_t whole;
  int exponent;
};

INLINE uint64_t ones(int count) {
  return count >= 64 ? ~0ull : (1ull << count) - 1;
}

INLINE int top_bit(uint64_t whole) {
  return 63 - __builtin_clzll(whole);
}

INLINE struct number unpack(const struct format *f, uint64_t pattern) {
  struct number n = {0};
  if (f->kind >= SIGNED) {
    n.negative = f->kind == SIGNED && pattern >> (f->bits - 1);
    n.whole = n.negative ? (~pattern + 1) & ones(f->bits) : pattern;
    return n;
  }
  if (f->kind == SCALE) {
    n.nan = pattern == 0xff;
    n.whole = 1;
    n.exponent = (int)pattern - f->bias;
    return n;
  }
  uint64_t mantissa = pattern & ones(f->mantissa);
  int top = (int)ones(f->bits - 1 - f->mantissa);
  int field = (int)(pattern >> f->mantissa) & top;
  n.negative = (int)(pattern >> (f->bits - 1)) & 1;
  if (f->kind == IEEE && field == top) {
    n.nan = mantissa != 0;
    n.infinite = !n.nan;
    n.signaling = n.nan && !(mantissa >> (f->mantissa - 1));
    return n;
  }
  n.nan = f->kind == ONE_NAN && field == top && mantissa == ones(f->mantissa);
  n.whole = field ? mantissa | 1ull << f->mantissa : mantissa;
  n.exponent = (field ? field : 1) - f->bias - f->mantissa;
  return n;
}

/* Divide by 2^count, and round; a negative count multiplies. */
INLINE uint64_t shifted(
    uint64_t whole, int count, enum rounding rounding, int negative, int *inexact) {
  if (count <= 0) return whole << -count;
  uint64_t kept = count > 63 ? 0 : whole >> count;
  uint64_t rest = whole & ones(count);
  uint64_t half = count > 64 ? 0 : 1ull << (count - 1);
  int above = half && rest > half, tie = half && rest == half;
  *inexact |= rest != 0;
  switch (rounding) {
    case NEAREST_EVEN: return kept + (above || (tie && kept & 1));
    case NEAREST_AWAY: return kept + (above || tie);
    case TOWARD_ZERO: return kept;
    case FLOOR: return kept + (rest && negative);
    case CEIL: return kept + (rest && !negative);
  }
  return kept;
}

INLINE uint64_t largest(const struct format *f) {
  switch (f->kind) {
    case IEEE: return (ones(f->bits - 1 - f->mantissa) << f->mantissa) - 1;
    case ONE_NAN: return ones(f->bits - 1) - 1;
    case FINITE: case SIGNED: return ones(f->bits - 1);
    case SCALE: return 0xfe;
    default: return ones(f->bits);
  }
}

INLINE uint64_t pack_integer(
    const struct format *f, struct number n, enum rounding rounding, int *flags) {
  uint64_t most = largest(f) + (f->kind == SIGNED && n.negative);
  if (f->kind == UNSIGNED && n.negative) most = 0;
  int inexact = 0;
  uint64_t whole = 0;
  int beyond = n.infinite || (n.whole && top_bit(n.whole) + n.exponent > 63);
  if (!beyond && n.whole) whole = shifted(n.whole, -n.exponent, rounding, n.negative, &inexact);
  beyond |= whole > most;
  *flags = n.nan || beyond ? INVALID : inexact;
  if (n.nan) return 0;
  if (beyond) whole = most;
  return (n.negative ? ~whole + 1 : whole) & ones(f->bits);
}

/* Whether a number is below the smallest normal one after rounding as if exponents had no end. */
INLINE int tiny(const struct format *f, struct number n, enum rounding rounding) {
  int at = top_bit(n.whole), inexact = 0;
  uint64_t kept = shifted(n.whole, at - f->mantissa, rounding, n.negative, &inexact);
  int carried = kept >> (f->mantissa + 1) != 0;
  return at + n.exponent + carried < 1 - f->bias;
}

INLINE uint64_t pack(const struct format *f, struct number n, enum rounding rounding,
                     enum overflow overflow, int *flags) {
  if (f->kind == BOOLEAN) return n.nan || n.infinite || n.whole;
  if (f->kind >= SIGNED) return pack_integer(f, n, rounding, flags);
  uint64_t sign = f->kind == SCALE ? 0 : (uint64_t)n.negative << (f->bits - 1);
  uint64_t infinity = f->kind == IEEE ? largest(f) + 1 : largest(f);
  uint64_t nan = f->kind == IEEE ? infinity | 1ull << (f->mantissa - 1) : largest(f) + 1;
  *flags = n.signaling ? INVALID : 0;
  if (n.nan) return sign | nan;
  uint64_t beyond = overflow == TO_NAN ? nan : overflow == TO_INFINITY ? infinity : largest(f);
  if (overflow == TO_INFINITY && !n.infinite &&
      (rounding == TOWARD_ZERO || rounding == (n.negative ? CEIL : FLOOR)))
    beyond = largest(f);
  if (n.infinite) return sign | (f->kind == IEEE ? infinity : beyond);
  if (!n.whole) return sign;
  int lowest = 1 - f->bias, at = top_bit(n.whole) + n.exponent;
  int unit = (at < lowest ? lowest : at) - f->mantissa, inexact = 0;
  uint64_t kept = shifted(n.whole, unit - n.exponent, rounding, n.negative, &inexact);
  uint64_t code = ((uint64_t)(unit + f->mantissa - lowest) << f->mantissa) + kept;
  if (f->kind == SCALE) return at < -f->bias ? 0 : at + f->bias;
  *flags = inexact;
  if (code > largest(f)) {
    *flags = OVERFLOW | INEXACT;
    return sign | beyond;
  }
  if (inexact && tiny(f, n, rounding)) *flags |= UNDERFLOW;
  return sign | code;
}

INLINE uint64_t right(const struct format *from, const struct format *to, enum rounding rounding,
                      enum overflow overflow, uint64_t pattern) {
  int flags = 0;
  return pack(to, unpack(from, pattern), rounding, overflow, &flags);
}

INLINE uint64_t nearest(const struct format *from, const struct format *to, uint64_t pattern) {
  return right(from, to, NEAREST_EVEN, TO_INFINITY, pattern);
}

#endif
