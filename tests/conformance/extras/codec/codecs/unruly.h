/* Codecs that end their process, do not return, or change their mind; and sound ones of other types. */
#include <stdlib.h>
#include <unistd.h>
#include "planted.h"

static inline uint8_t crashes(float x) { return x == 3.0f ? *(volatile uint8_t *)8 : e4m3fn(x); }
static inline uint8_t crashes_on_a_jump(float x) {
    static float last;
    float before = last;
    last = x;
    return x == 3.0f && before < 2.99f ? *(volatile uint8_t *)8 : e4m3fn(x);
}
static inline uint8_t hangs(float x) { while (x == 3.0f) pause(); return e4m3fn(x); }
static inline uint8_t ends(float x) { if (x == 3.0f) exit(7); return e4m3fn(x); }
static inline uint8_t ends_as_if_done(float x) { if (x == 3.0f) exit(0); return e4m3fn(x); }
static inline uint8_t changes(float x) { return (uint8_t)(e4m3fn(x) ^ (rand() & 1)); }

static inline int gives_int(float x) { return e4m3fn(x); }
static inline uint8_t takes_double(double x) { return e4m3fn((float)x); }
static inline uint8_t takes_pattern(uint32_t bits) { return (uint8_t)encode(bits, E4M3FN, SATURATE, SOUND); }
static inline void takes_array(const float *x, uint8_t *codes, size_t count) {
    for (size_t i = 0; i < count; i++)
        codes[i] = e4m3fn(x[i]);
}
#define A_MACRO(x) e4m3fn(x)
