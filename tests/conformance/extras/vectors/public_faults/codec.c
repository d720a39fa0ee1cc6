/* The codec that the harness asks: the fault, or the right cast, that the variable CODEC names.

   CODEC is the name of a function, or `right SOURCE TARGET ROUNDING OVERFLOW`, or `flags SOURCE
   TARGET ROUNDING`. With SHIFT, patterns are shifted left before, so that a codec of float32 is
   asked with bfloat16. */

#include <stdio.h>
#include <stdlib.h>

#include "codec.h"
#include "to_float16.h"
#include "to_fewer_bits.h"
#include "to_more_bits.h"
#include "integers.h"

#define FAULT(name) {#name, name}

static const struct {
  const char *name;
  uint64_t (*cast)(uint64_t);
} FAULTS[] = {
    FAULT(half_rs_116), FAULT(half_rs_151), FAULT(half_rs_5), FAULT(float16_952),
    FAULT(float16_1046), FAULT(otp_11332), FAULT(numpy_12722), FAULT(halide_8906), FAULT(jax_38995),
    FAULT(ocannl_981), FAULT(llvm_7401), FAULT(milvus_169), FAULT(hipdnn_11325),
    FAULT(aprender_2240), FAULT(aprender_2237), FAULT(swarmllm_28), FAULT(darktable_20767),
    FAULT(infinicore_226), FAULT(metal_57215), FAULT(glm_19), FAULT(llvm_100413),
    FAULT(universal_1133), FAULT(metal_30147), FAULT(dotnet_130583), FAULT(tensors_355),
    FAULT(bfloat16s_125), FAULT(llvm_83180), FAULT(flagtree_1116), FAULT(triton_11753),
    FAULT(microfloats_25), FAULT(sglang_37140), FAULT(libxsmm_814), FAULT(saturn_101),
    FAULT(triton_11897), FAULT(triton_5925), FAULT(ocannl_646), FAULT(hip_10591),
    FAULT(universal_1351), FAULT(aiter_3992), FAULT(nanopb_1185), FAULT(ariane_409),
    FAULT(clickhouse_104831), FAULT(aprender_2129), FAULT(dotnet_46515), FAULT(factor_2167),
    FAULT(cyphal_10), FAULT(gopickle_21), FAULT(mlx_4135), FAULT(tilelang_2710), FAULT(monster_300),
    FAULT(engine_3262), FAULT(sglang_25519), FAULT(go_48807), FAULT(arch_629), FAULT(eo_7796),
    FAULT(rpcs3_9417), FAULT(omr_8197), FAULT(cuda_mlir_290), FAULT(metal_55933), FAULT(kani_4573),
    FAULT(wasmtime_6787), FAULT(triton_544), FAULT(cuda_mlir_304), FAULT(cva6_3276),
};

static const struct format *FORMATS[] = {
    &FLOAT64, &FLOAT32, &FLOAT16, &BFLOAT16, &E5M2, &E4M3FN, &E2M1,
    &E8M0,    &INT8,    &INT32,   &UINT8,    &UINT32, &UINT64, &BOOL,
};
static const char *ROUNDINGS[] = {"nearest-even", "nearest-away", "toward-zero", "floor", "ceil"};
static const char *OVERFLOWS[] = {"inf", "nan", "saturate"};

static uint64_t (*chosen)(uint64_t);
static const struct format *source, *target;
static enum rounding chosen_rounding;
static enum overflow chosen_overflow;
static int shift;

static uint64_t chosen_right(uint64_t x) {
  return right(source, target, chosen_rounding, chosen_overflow, x);
}

static uint64_t chosen_flags(uint64_t x) { return flags_of(source, target, chosen_rounding, x); }

static const struct format *format_named(const char *name) {
  for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
    if (!strcmp(FORMATS[i]->name, name)) return FORMATS[i];
  fprintf(stderr, "no format `%s`\n", name);
  exit(3);
}

static int place(const char *const *names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return i;
  fprintf(stderr, "no `%s`\n", name);
  exit(3);
}

static void __attribute__((constructor)) choose(void) {
  char kind[8], from[16], to[16], rounding[16], overflow[16];
  const char *codec = getenv("CODEC"), *places = getenv("SHIFT");
  setvbuf(stdout, NULL, _IOLBF, 0); /* the test stops a harness that has printed a wrong answer */
  shift = places ? atoi(places) : 0;
  int words = sscanf(codec, "%7s %15s %15s %15s %15s", kind, from, to, rounding, overflow);
  if (words >= 4) {
    source = format_named(from);
    target = format_named(to);
    chosen_rounding = (enum rounding)place(ROUNDINGS, 5, rounding);
    if (words == 5) chosen_overflow = (enum overflow)place(OVERFLOWS, 3, overflow);
    chosen = words == 5 ? chosen_right : chosen_flags;
    return;
  }
  for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++)
    if (!strcmp(FAULTS[i].name, codec)) chosen = FAULTS[i].cast;
  if (!chosen) place(NULL, 0, codec);
}

uint64_t convert(uint64_t pattern) { return chosen(pattern << shift); }
