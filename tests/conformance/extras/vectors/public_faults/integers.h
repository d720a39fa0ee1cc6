/* Faults of casts from and to integers, and of flags. */

#include "right.h"

static uint64_t by_way(const struct format *from, const struct format *by, const struct format *to,
                       uint64_t x) {
  return nearest(by, to, nearest(from, by, x));
}

static uint64_t go_48807(uint64_t x) { return by_way(&UINT64, &FLOAT64, &FLOAT32, x); }

static uint64_t arch_629(uint64_t x) { return by_way(&INT32, &FLOAT32, &BFLOAT16, x); }

static uint64_t eo_7796(uint64_t x) { /* halved to fit a signed integer, and doubled */
  if (!(x >> 63)) return nearest(&UINT64, &FLOAT64, x);
  return nearest(&UINT64, &FLOAT64, x >> 1) + (1ull << 52);
}

static uint64_t rpcs3_9417(uint64_t x) { /* the low 31 bits are rounded, and 2^31 is added */
  float low = (float)(int32_t)(x & 0x7fffffff);
  float sum = x >> 31 ? low + 2147483648.0f : low;
  uint32_t code;
  memcpy(&code, &sum, sizeof code);
  return code;
}

static uint64_t omr_8197(uint64_t x) { /* 32 bits are read where 8 are written */
  return nearest(&INT32, &FLOAT32, x);
}

static uint64_t cuda_mlir_290(uint64_t x) { return nearest(&INT8, &FLOAT64, x); }

static uint64_t metal_55933(uint64_t x) { /* one constant for both ends */
  struct number n = unpack(&FLOAT32, x);
  if ((x & 0x7fffffff) >= 0x4f000000 && !n.nan) return 0x80000000;
  return right(&FLOAT32, &INT32, TOWARD_ZERO, TO_LARGEST, x);
}

static uint64_t kani_4573(uint64_t x) { /* 2^64 - 1 rounds up to 2^64, which is not above it */
  if (x == 0x43f0000000000000ull) return 0;
  return right(&FLOAT64, &UINT64, TOWARD_ZERO, TO_LARGEST, x);
}

static uint64_t wasmtime_6787(uint64_t x) { /* NaN is not below the largest, so it is that */
  if (unpack(&FLOAT32, x).nan) return ~0ull;
  return right(&FLOAT32, &UINT64, TOWARD_ZERO, TO_LARGEST, x);
}

static uint64_t triton_544(uint64_t x) { /* by way of an integer */
  return right(&FLOAT32, &INT32, TOWARD_ZERO, TO_LARGEST, x) != 0;
}

static uint64_t cuda_mlir_304(uint64_t x) {
  return right(&BFLOAT16, &INT32, TOWARD_ZERO, TO_LARGEST, x) & 1;
}

/* flags: the answer is the byte of flags */

static uint64_t flags_of(const struct format *from, const struct format *to,
                         enum rounding rounding, uint64_t x) {
  int flags = 0;
  pack(to, unpack(from, x), rounding, TO_INFINITY, &flags);
  return (uint64_t)flags;
}

static uint64_t cva6_3276(uint64_t x) { /* a result that rounds up to the smallest normal number */
  uint64_t code = nearest(&FLOAT64, &FLOAT32, x);
  uint64_t flags = flags_of(&FLOAT64, &FLOAT32, NEAREST_EVEN, x);
  return code & 0x7f800000 ? flags & ~(uint64_t)UNDERFLOW : flags;
}
