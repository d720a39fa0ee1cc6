/* Codecs of wide numbers and texts in C, right ones and some with a fault. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* e4m3fn; nothing here rounds but the line that says so. MODE is 'e' for nearest even, 'z' for toward zero. */
static uint8_t e4m3fn_of(double x, char mode) {
    uint8_t sign = __builtin_signbit(x) ? 0x80 : 0;
    if (x != x) return sign | 0x7f;
    if (x < 0) x = -x;
    if (x > 448) return sign | 0x7e;
    double unit = 0x1p-9;
    int field = 0;
    for (; x >= 16 * unit; field++) unit *= 2;
    double units = x / unit, cut = (double)(int)units, rest = units - cut;
    int up = mode == 'e' && (rest > 0.5 || (rest == 0.5 && ((int)cut & 1)));
    int code = (int)cut + up + (field << 3);
    return sign | (code > 0x7e ? 0x7e : code);
}

static uint8_t of_double(double x) { return e4m3fn_of(x, 'e'); }
static void of_doubles(const double *x, uint8_t *y, size_t n) { while (n--) *y++ = of_double(*x++); }
static uint8_t truncates(double x) { return e4m3fn_of(x, 'z'); }
static uint8_t through_float(double x) { return of_double((float)x); }
static uint8_t flushed(double x) { uint8_t code = of_double(x); return code & 0x78 ? code : code & 0x80; }
static uint8_t minus_zero_lost(double x) { uint8_t code = of_double(x); return code == 0x80 ? 0 : code; }
static uint8_t of_int8(int8_t x) { return of_double(x); }
static uint8_t of_int32(int32_t x) { return of_double(x); }
static uint8_t drops_sign(int8_t x) { return of_double(x < 0 ? -x : x); }

static uint16_t upper_half(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
/* A float of an odd last place keeps what is lost, so that the second rounding is the only one. */
static uint16_t bf16_of_int32(int32_t x) {
    double wide = x;
    float near = (float)wide;
    uint32_t u;
    memcpy(&u, &near, sizeof u);
    double back = near;
    if (back != wide) {
        if ((back > wide) == (wide > 0)) u--;
        u |= 1;
    }
    memcpy(&near, &u, sizeof u);
    return upper_half(near);
}
static uint16_t bf16_of_int32_through_float(int32_t x) { return upper_half((float)x); }

static _Float16 half_of_double(double x) { return (_Float16)x; }
static _Float16 half_through_float(double x) { return (_Float16)(float)x; }
static float float_of_double(double x) { return (float)x; }
static double gives_double(double x) { return x; }
static float float_of_int64(int64_t x) { return (float)x; }
static float float_of_int64_through_double(int64_t x) { return (float)(double)x; }

static float float_of_text(const char *text) { return strtof(text, NULL); }
static float float_of_text_and_end(const char *text, char **end) { return strtof(text, end); }
static float float_of_text_through_double(const char *text) { return (float)strtod(text, NULL); }
static float crashes_on_text(const char *text) { if (!strcmp(text, "3.14")) abort(); return strtof(text, NULL); }

static double to_double(uint8_t code) {
    double value = code & 7;
    int field = code >> 3 & 15;
    if ((code & 0x7f) == 0x7f) return __builtin_copysign(__builtin_nan(""), code & 0x80 ? -1 : 1);
    if (field) value += 8;
    value *= 0x1p-9;
    for (; field > 1; field--) value *= 2;
    return code & 0x80 ? -value : value;
}
static const char *to_text(uint8_t code) {
    static char text[40];
    snprintf(text, sizeof text, "%.9g", to_double(code));
    return text;
}
static void into_buffer(uint8_t code, char *text) { sprintf(text, "%.9g", to_double(code)); }
static int into_sized(uint8_t code, char *text, size_t size) { return snprintf(text, size, "%.9g", to_double(code)); }
static const char *one_place(uint8_t code) {
    static char text[40];
    snprintf(text, sizeof text, "%.1f", to_double(code));
    return text;
}
static const char *no_text(uint8_t code) { return code ? to_text(code) : NULL; }
