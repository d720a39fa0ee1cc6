/* Faults of casts to formats of up to 8 bits, and to float32. */

#include "right.h"

static uint64_t right_e4m3(uint64_t x, enum overflow overflow) {
  return right(&FLOAT32, &E4M3FN, NEAREST_EVEN, overflow, x);
}

static uint64_t right_e5m2(uint64_t x, enum overflow overflow) {
  return right(&FLOAT32, &E5M2, NEAREST_EVEN, overflow, x);
}

/* to float8e4m3fn */

static uint64_t flagtree_1116(uint64_t x) {
  return right_e4m3(nearest(&FLOAT64, &FLOAT32, x), TO_LARGEST);
}

static uint64_t triton_11753(uint64_t x) { /* by way of float16 */
  return right(&FLOAT16, &E4M3FN, NEAREST_EVEN, TO_LARGEST, nearest(&FLOAT32, &FLOAT16, x));
}

static uint64_t microfloats_25(uint64_t x) { /* by way of bfloat16 */
  return right(&BFLOAT16, &E4M3FN, NEAREST_EVEN, TO_LARGEST, nearest(&FLOAT32, &BFLOAT16, x));
}

static uint64_t sglang_37140(uint64_t x) { /* the top exponent is taken for overflow; ties go up */
  int field = (int)(x >> 23 & 0xff) - 120;
  if (field <= 0 || field == 135) return right_e4m3(x, TO_LARGEST);
  uint64_t sign = x >> 24 & 0x80, mantissa = (x >> 20 & 7) + (x >> 19 & 1);
  field += mantissa >> 3;
  return sign | (field >= 15 ? 0x7e : (uint64_t)field << 3 | (mantissa & 7));
}

static uint64_t libxsmm_814(uint64_t x) { /* numbers up to 464 round to 448 */
  uint64_t magnitude = x & 0x7fffffff;
  if (magnitude > 0x43e00000) return (x >> 24 & 0x80) | 0x7f;
  return right_e4m3(x, TO_NAN);
}

static uint64_t saturn_101(uint64_t x) { /* a NaN by an exponent that numbers have as well */
  int exponent = (int)(x >> 23 & 0xff) - 127, inexact = 0;
  uint64_t rounded = shifted(x & 0x7fffff, 21, NEAREST_EVEN, 0, &inexact);
  if (exponent >= 9 && exponent <= 15 && rounded & 3) return (x >> 24 & 0x80) | 0x7f;
  return right_e4m3(x, TO_LARGEST);
}

static uint64_t triton_11897(uint64_t x) { /* exponent and mantissa never meet again */
  int field = (int)(x >> 23 & 0xff) - 120, inexact = 0;
  if (field <= 0 || field >= 15) return right_e4m3(x, TO_LARGEST);
  uint64_t mantissa = shifted(x & 0x7fffff, 20, NEAREST_EVEN, 0, &inexact);
  return (x >> 24 & 0x80) | (uint64_t)field << 3 | (mantissa & 7);
}

/* to float8e5m2 */

static uint64_t triton_5925(uint64_t x) { /* from float16: half is added, and the rest cut */
  if ((x & 0x7fff) >= 0x7c00) return right(&FLOAT16, &E5M2, NEAREST_EVEN, TO_INFINITY, x);
  return (x + 0x80) >> 8;
}

static uint64_t ocannl_646(uint64_t x) {
  struct number n = unpack(&FLOAT32, x);
  if (n.nan || n.infinite) return right_e5m2(x, TO_INFINITY);
  if ((x & 0x7fffffff) < 0x38000000) return 0;
  return right(&FLOAT32, &E5M2, NEAREST_AWAY, TO_INFINITY, x);
}

static uint64_t hip_10591(uint64_t x) { /* far below the smallest, shifts have over 63 places */
  int exponent = (int)(x >> 23 & 0xff) - 127, below = -14 - exponent;
  if (below < 64 || exponent == -127) return right_e5m2(x, TO_INFINITY);
  uint64_t mantissa = (x & 0x7fffff) | 0x800000, aligned = mantissa >> (below & 63);
  int dropped = (21 + below) & 63; /* processors take such counts modulo 64 */
  int tie = (mantissa & ones(dropped)) == 1ull << ((dropped - 1) & 63);
  uint64_t more = tie && !(aligned >> 21 & 1) ? aligned - 1 : aligned;
  return (x >> 24 & 0x80) | (aligned + (more & ones(21))) >> 21;
}

static uint64_t universal_1351(uint64_t x) { /* clamped before it is rounded */
  if ((x & 0x7fffffff) > 0x47600000 && (x & 0x7fffffff) <= 0x7f800000)
    return (x >> 24 & 0x80) | 0x7c;
  return right_e5m2(x, TO_INFINITY);
}

/* to float4e2m1 */

static uint64_t aiter_3992(uint64_t x) { /* bounds by `>=`: ties go away from zero */
  return right(&FLOAT32, &E2M1, NEAREST_AWAY, TO_LARGEST, x);
}

/* to float32 */

static uint64_t nanopb_1185(uint64_t x) { /* a NaN whose set bits are all dropped */
  if ((x & ones(63)) >> 52 == 0x7ff)
    return (x >> 32 & 0x80000000) | 0x7f800000 | (x >> 29 & 0x7fffff);
  return nearest(&FLOAT64, &FLOAT32, x);
}

static uint64_t ariane_409(uint64_t x) { /* an exponent below zero is compared as a large one */
  uint32_t field = (uint32_t)(x >> 52 & 0x7ff) - 1023 + 127;
  if ((x & ones(63)) >> 52 != 0x7ff && x & ones(63) && (field & 0x7ff) >= 255)
    return (x >> 32 & 0x80000000) | 0x7f800000;
  return nearest(&FLOAT64, &FLOAT32, x);
}
