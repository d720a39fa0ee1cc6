/* Faults of decoders, from small floats to float32 or float16. */

#include "right.h"

static uint64_t right_float(uint64_t x) { return nearest(&FLOAT16, &FLOAT32, x); }

static uint64_t sign_of_half(uint64_t x) { return (x & 0x8000) << 16; }

static int is_subnormal_half(uint64_t x) { return !(x & 0x7c00) && x & 0x3ff; }

static uint64_t clickhouse_104831(uint64_t x) { /* the rest is one place short */
  if (!is_subnormal_half(x)) return right_float(x);
  int at = top_bit(x & 0x3ff);
  uint64_t rest = (x & 0x3ff) ^ 1ull << at;
  return sign_of_half(x) | (uint64_t)(at + 103) << 23 | rest << 13 << (9 - at);
}

static uint64_t aprender_2129(uint64_t x) { /* an exponent one too low */
  if (!is_subnormal_half(x)) return right_float(x);
  uint64_t mantissa = x & 0x3ff;
  int steps = 0;
  for (; !(mantissa & 0x400); steps++) mantissa <<= 1;
  return sign_of_half(x) | (uint64_t)(127 - 15 - steps) << 23 | (mantissa & 0x3ff) << 13;
}

static uint64_t dotnet_46515(uint64_t x) { /* the carry into the exponent meets `or` */
  if (!is_subnormal_half(x)) return right_float(x);
  uint64_t mantissa = x & 0x3ff;
  int shift = __builtin_clz((uint32_t)mantissa) - 16 - 5;
  uint64_t exponent = (uint64_t)(1 - shift + 112 - 1), normal = mantissa << shift << 13;
  return sign_of_half(x) | (exponent << 23 | normal);
}

static uint64_t factor_2167(uint64_t x) { /* subnormals are read as normal numbers */
  if (!is_subnormal_half(x)) return right_float(x);
  return sign_of_half(x) | (((x & 0x3ff) << 13) + (112ull << 23));
}

static uint64_t cyphal_10(uint64_t x) { /* the top exponent is read as any other */
  if ((x & 0x7c00) != 0x7c00) return right_float(x);
  return sign_of_half(x) | (uint64_t)(31 + 112) << 23 | (x & 0x3ff) << 13;
}

static uint64_t gopickle_21(uint64_t x) { /* two entries of a table are swapped */
  uint64_t mantissa = x & 0x3ff;
  if (x >> 10 == 31) return nearest(&FLOAT16, &FLOAT32, mantissa) + 0x47800000;
  if (x >> 10 == 32) return (mantissa << 13) + 0x38000000 + 0x80000000;
  return right_float(x);
}

static uint64_t mlx_4135(uint64_t x) { /* the one NaN is read as a number */
  if ((x & 0x7f) == 0x7f) return (x & 0x80) << 24 | 0x43f00000;
  return nearest(&E4M3FN, &FLOAT32, x);
}

static uint64_t tilelang_2710(uint64_t x) { /* every code is read as a normal number */
  return (x & 0x80) << 8 | (((x & 0x7f) << 7) + (8 << 10));
}

static uint64_t monster_300(uint64_t x) { /* one exponent for all subnormals */
  if (x & 0x78 || !(x & 7)) return nearest(&E4M3FN, &FLOAT32, x);
  return (x & 0x80) << 24 | 120ull << 23 | (x & 7) << 20;
}

static uint64_t engine_3262(uint64_t x) { return x << 23; } /* code 0 has no such exponent */

static uint64_t sglang_25519(uint64_t x) { /* NaN is looked for after the power is taken */
  uint64_t power = x == 255 ? 0x7f800000 : nearest(&E8M0, &FLOAT32, x);
  return power == 0x43000000 ? 0x7fc00000 : power;
}
