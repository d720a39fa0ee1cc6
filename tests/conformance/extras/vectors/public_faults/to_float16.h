/* Faults of casts to float16 and bfloat16, planted anew from what their threads say of them. */

#include "right.h"

static uint64_t right_half(uint64_t x) { return nearest(&FLOAT32, &FLOAT16, x); }

/* from float64 */

static uint64_t half_rs_116(uint64_t x) { /* the instruction takes float32 only */
  return right_half(nearest(&FLOAT64, &FLOAT32, x));
}

static uint64_t half_rs_151(uint64_t x) { /* the lower half of the pattern is dropped first */
  return nearest(&FLOAT64, &FLOAT16, x & 0xffffffff00000000ull);
}

static uint64_t half_rs_5(uint64_t x) {
  uint64_t upper = x >> 32 & 0x7fffffff, sign = x >> 48 & 0x8000;
  if (upper >= 0x7ff00000) return sign | (upper & 0xfffff ? 0x7e00 : 0x7c00);
  return nearest(&FLOAT64, &FLOAT16, x);
}

static uint64_t float16_952(uint64_t x) { /* tables by exponent, and the mantissa cut */
  return right(&FLOAT32, &FLOAT16, TOWARD_ZERO, TO_INFINITY, nearest(&FLOAT64, &FLOAT32, x));
}

static uint64_t float16_1046(uint64_t x) { /* the mantissa is rounded and masked on its own */
  int field = (int)(x >> 52 & 0x7ff) - 1023 + 15, inexact = 0;
  if (field < 1 || field > 30) return nearest(&FLOAT64, &FLOAT16, x);
  uint64_t mantissa = shifted(x & ones(52), 42, NEAREST_EVEN, 0, &inexact);
  return (x >> 48 & 0x8000) | (uint64_t)field << 10 | (mantissa & 0x3ff);
}

static uint64_t otp_11332(uint64_t x) {
  uint32_t f = (uint32_t)nearest(&FLOAT64, &FLOAT32, x), mantissa = f & 0x7fffff;
  uint32_t sign = f >> 16 & 0x8000;
  int field = (int)(f >> 23 & 0xff) - 112;
  if (field > 30 || field < -10) return right_half(f);
  if (field <= 0) { /* cut to ten bits, and then the leading bit where it stood before */
    uint32_t kept = mantissa >> 13 | 0x800000;
    int shift = 14 - field;
    return sign | ((kept + (1u << shift)) >> shift & 0x3ff);
  }
  uint32_t code = sign | (uint32_t)field << 10 | mantissa >> 13;
  int sticky = (mantissa & 0xc00) != 0; /* bits 9 to 0 belong to it too */
  return code + (mantissa >> 12 & 1 && (sticky || code & 1));
}

static uint64_t numpy_12722(uint64_t x) { /* subnormals are aligned first, and rounded then */
  int field = (int)(x >> 52 & 0x7ff) - 1023 + 15;
  if (field > 0 || field < -10) return nearest(&FLOAT64, &FLOAT16, x);
  uint64_t aligned = ((x & ones(52)) | 1ull << 52) >> (1 - field);
  int inexact = 0;
  return (x >> 48 & 0x8000) | shifted(aligned, 42, NEAREST_EVEN, 0, &inexact);
}

static uint64_t halide_8906(uint64_t x) {
  return nearest(&FLOAT32, &BFLOAT16, nearest(&FLOAT64, &FLOAT32, x));
}

static uint64_t jax_38995(uint64_t x) { /* by way of float32, whose subnormals are flushed */
  uint64_t f = nearest(&FLOAT64, &FLOAT32, x);
  return nearest(&FLOAT32, &BFLOAT16, f & 0x7f800000 ? f : f & 0x80000000);
}

/* from float32 */

static uint64_t ocannl_981(uint64_t x) { /* a bound by exponent that takes its last binade */
  int shift = 14 - ((int)(x >> 23 & 0xff) - 112);
  return shift >= 24 ? x >> 16 & 0x8000 : right_half(x);
}

static uint64_t llvm_7401(uint64_t x) {
  int exponent = (int)(x >> 23 & 0xff) - 127;
  return exponent <= -24 ? x >> 16 & 0x8000 : right_half(x);
}

static uint64_t milvus_169(uint64_t x) {
  int field = (int)(x >> 23 & 0xff) - 112;
  if (field == 143) return right_half(x);
  if (field <= 0) return 0;
  if (field >= 31) return (x >> 16 & 0x8000) | 0x7c00;
  return (x >> 16 & 0x8000) | (uint64_t)field << 10 | (x >> 13 & 0x3ff);
}

static uint64_t hipdnn_11325(uint64_t x) {
  uint64_t sign = x >> 16 & 0x8000, mantissa = x & 0x7fffff;
  int field = (int)(x >> 23 & 0xff) - 112;
  if (field == 143) return sign | 0x7c00 | mantissa >> 13;
  if (field > 0 || field < -10) return right_half(x);
  uint64_t aligned = (mantissa | 0x800000) >> (14 - field);
  return sign | aligned >> 13; /* shifted once more */
}

static uint64_t aprender_2240(uint64_t x) { /* its test compared it with itself */
  uint64_t sign = x >> 16 & 0x8000, mantissa = x >> 13 & 0x3ff;
  int field = (int)(x >> 23 & 0xff) - 112;
  if (field == 143) return sign | 0x7c00 | mantissa;
  if (field <= 0) return sign;
  return sign | (field >= 31 ? 0x7c00 : (uint64_t)field << 10 | mantissa);
}

static uint64_t aprender_2237(uint64_t x) { /* no sticky bits, and the carry is masked off */
  int field = (int)(x >> 23 & 0xff) - 112;
  if (field <= 0 || field >= 31) return right_half(x);
  uint64_t mantissa = ((x >> 13 & 0x3ff) + (x >> 12 & 1)) & 0x3ff;
  return (x >> 16 & 0x8000) | (uint64_t)field << 10 | mantissa;
}

static uint64_t swarmllm_28(uint64_t x) { /* the carry meets `or` where it needs `+` */
  int field = (int)(x >> 23 & 0xff) - 112;
  if (field <= 0 || field >= 31) return right_half(x);
  return (x >> 16 & 0x8000) | (uint64_t)field << 10 | ((x & 0x7fffff) + 0x1000) >> 13;
}

static uint64_t darktable_20767(uint64_t x) {
  int field = (int)(x >> 23 & 0xff) - 112, shift = 1 - field;
  if (field > 0 || shift > 24) return right_half(x);
  if (13 + shift < 32) return right_half(x);
  uint32_t full = (x & 0x7fffff) | 0x800000;
  return (x >> 16 & 0x8000) | (full >> ((13 + shift) & 31) & 0x7fff); /* x86 takes it modulo 32 */
}

static uint64_t infinicore_226(uint64_t x) { /* a true exponent against the bound of a biased one */
  int exponent = (int)(x >> 23 & 0xff) - 127;
  if (exponent <= 15 || exponent >= 31) return right_half(x);
  return ((x >> 16 & 0x8000) | (uint64_t)(exponent + 15) << 10 | (x >> 13 & 0x3ff)) & 0xffff;
}

static uint64_t metal_57215(uint64_t x) { /* the exponent is clamped, and the mantissa stays */
  int field = (int)(x >> 23 & 0xff) - 112;
  if (field <= 30 || field == 143) return right_half(x);
  uint64_t mantissa = field == 31 ? x >> 13 & 0x3ff : (x >> 13 & 0x3ff) | 1;
  return (x >> 16 & 0x8000) | 0x7c00 | mantissa;
}

static uint64_t glm_19(uint64_t x) { /* what is too small becomes zero without its sign */
  int field = (int)(x >> 23 & 0xff) - 112;
  return field < -10 ? 0 : right_half(x);
}

static uint64_t llvm_100413(uint64_t x) { /* asked to round down, it rounds to nearest */
  return right_half(x);
}

static uint64_t universal_1133(uint64_t x) { return x >> 16; }

static uint64_t metal_30147(uint64_t x) { /* half is added, whatever the last bit is */
  if ((x & 0x7fffffff) > 0x7f800000) return 0x7fc0;
  return (x + 0x8000) >> 16 & 0xffff;
}

static uint64_t dotnet_130583(uint64_t x) { /* a NaN is cut, and its set bits may be below */
  if ((x & 0x7fffffff) > 0x7f800000) return x >> 16;
  return (x + 0x7fff + (x >> 16 & 1)) >> 16;
}

static uint64_t tensors_355(uint64_t x) { /* NaN is rounded as numbers are */
  return (uint32_t)(x + 0x7fff + (x >> 16 & 1)) >> 16;
}

static uint64_t bfloat16s_125(uint64_t x) { /* the instruction flushes subnormals */
  return nearest(&FLOAT32, &BFLOAT16, x & 0x7f800000 ? x : x & 0x80000000);
}

static uint64_t llvm_83180(uint64_t x) { /* the rounded mantissa saturates below its carry */
  if ((x & 0x7f800000) == 0x7f800000) return nearest(&FLOAT32, &BFLOAT16, x);
  uint64_t mantissa = ((x & 0x7fffff) + 0x7fff + (x >> 16 & 1)) >> 16;
  return (x >> 16 & 0xff80) | (mantissa > 0x7f ? 0x7f : mantissa);
}
