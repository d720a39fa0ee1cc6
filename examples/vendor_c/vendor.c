/* A vendor's casts in one C file. Castigate drives it over stdin and stdout (docs/protocol.md).
 *
 * It implements ONNX Cast 25 and ONNX BitCast 26 with its own rounding, in integers only.
 * gcc -O2 -std=c11 -DFAULT=n plants one of the faults below, which Castigate must find. */

#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef FAULT
#define FAULT 0
#endif

enum {
    DOUBLE_ROUNDING = 1, /* wide floats become 8 bits through float16 */
    TIES_AWAY,           /* ties round away from zero */
    TRUNCATION,          /* no rounding at all */
    NAN_SIGN_LOST,       /* a NaN comes out positive */
    NAN_TO_INFINITY,     /* a NaN's mantissa is truncated, perhaps to zero: an infinity */
    LOW_MAXIMUM,         /* saturated values are one below the largest */
    EARLY_OVERFLOW,      /* the range is checked before rounding */
    FLUSHED_RESULTS,     /* subnormal results are zero */
    FLUSHED_INPUTS,      /* subnormal inputs are zero */
    ZERO_SIGN_LOST,      /* -0 comes out as 0 */
    SWAPPED_NIBBLES,     /* the halves of each byte of an 8-bit float are swapped */
    BIG_ENDIAN_OUTPUT,   /* answers have their highest byte first */
    NEAREST_INTEGER,     /* floats round to integers instead of losing their fraction */
    CLAMPED_INTEGERS,    /* integers saturate instead of losing their high bits */
    UNSIGNED_AS_SIGNED,  /* unsigned inputs are read as signed ones */
    ODD_IS_TRUE          /* bool is the lowest bit */
};

typedef enum { FLOAT, INTEGER, BOOLEAN } Kind;
typedef enum { IEEE, ALL_ONES, NEGATIVE_ZERO, NO_NAN } Nan;

typedef struct {
    const char *name;
    Kind kind;
    int bits, mantissa, bias; /* of an integer: bits, and whether it is signed */
    Nan nan;
    bool has_infinity;
} Format;

static const Format FORMATS[] = {
    {"float64", FLOAT, 64, 52, 1023, IEEE, true},
    {"float32", FLOAT, 32, 23, 127, IEEE, true},
    {"float16", FLOAT, 16, 10, 15, IEEE, true},
    {"bfloat16", FLOAT, 16, 7, 127, IEEE, true},
    {"float8e4m3fn", FLOAT, 8, 3, 7, ALL_ONES, false},
    {"float8e4m3fnuz", FLOAT, 8, 3, 8, NEGATIVE_ZERO, false},
    {"float8e5m2", FLOAT, 8, 2, 15, IEEE, true},
    {"float8e5m2fnuz", FLOAT, 8, 2, 16, NEGATIVE_ZERO, false},
    {"float4e2m1", FLOAT, 4, 1, 1, NO_NAN, false},
    {"int64", INTEGER, 64, 1, 0, NO_NAN, false},
    {"int32", INTEGER, 32, 1, 0, NO_NAN, false},
    {"int16", INTEGER, 16, 1, 0, NO_NAN, false},
    {"int8", INTEGER, 8, 1, 0, NO_NAN, false},
    {"int4", INTEGER, 4, 1, 0, NO_NAN, false},
    {"int2", INTEGER, 2, 1, 0, NO_NAN, false},
    {"uint64", INTEGER, 64, 0, 0, NO_NAN, false},
    {"uint32", INTEGER, 32, 0, 0, NO_NAN, false},
    {"uint16", INTEGER, 16, 0, 0, NO_NAN, false},
    {"uint8", INTEGER, 8, 0, 0, NO_NAN, false},
    {"uint4", INTEGER, 4, 0, 0, NO_NAN, false},
    {"uint2", INTEGER, 2, 0, 0, NO_NAN, false},
    {"bool", BOOLEAN, 1, 0, 0, NO_NAN, false},
};
enum { FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS };
static const Format *const FLOAT16 = &FORMATS[2];

/* A value: zero, NaN, infinity, or (-1)^negative * significand * 2^exponent. */
typedef struct {
    enum { ZERO, NUMBER, INFINITE, NOT_A_NUMBER } what;
    bool negative;
    uint64_t significand;
    int exponent;
} Value;

static uint64_t mask(int bits) { return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }

static int bytes_of(const Format *format) { return format->bits < 8 ? 1 : format->bits / 8; }

/* The code of the largest finite magnitude. */
static uint64_t largest(const Format *format) {
    uint64_t all = mask(format->bits - 1);
    switch (format->nan) {
    case IEEE:
        return all - mask(format->mantissa) - 1;
    case ALL_ONES:
        return all - 1;
    default:
        return all;
    }
}

static Value decoded_float(const Format *format, uint64_t code) {
    uint64_t sign = UINT64_C(1) << (format->bits - 1), magnitude = code & (sign - 1);
    Value value = {NUMBER, (code & sign) != 0, 0, 0};
    uint64_t fraction = magnitude & mask(format->mantissa);
    int exponent = (int)(magnitude >> format->mantissa);
    if (format->nan == NEGATIVE_ZERO && code == sign)
        value.what = NOT_A_NUMBER, value.negative = false;
    else if (magnitude > largest(format))
        value.what = format->has_infinity && !fraction ? INFINITE : NOT_A_NUMBER;
    else if (!magnitude || (FAULT == FLUSHED_INPUTS && !exponent))
        value.what = ZERO;
    value.significand = exponent ? fraction + mask(format->mantissa) + 1 : fraction;
    if (value.what == NOT_A_NUMBER)
        value.significand = fraction;
    value.exponent = (exponent ? exponent : 1) - format->bias - format->mantissa;
    return value;
}

static Value decoded(const Format *format, uint64_t code) {
    if (format->kind == FLOAT)
        return decoded_float(format, code);
    bool is_signed = format->mantissa || (FAULT == UNSIGNED_AS_SIGNED && format->bits > 1);
    bool negative = is_signed && code >> (format->bits - 1) & 1;
    uint64_t magnitude = negative ? (~code + 1) & mask(format->bits) : code;
    return (Value){magnitude ? NUMBER : ZERO, negative, magnitude, 0};
}

/* Drop the lowest bits of a number, rounding to nearest, ties to even. */
static uint64_t rounded(uint64_t number, int shift) {
    if (shift <= 0)
        return number << -shift;
    if (shift > 64)
        return 0;
    uint64_t kept = shift == 64 ? 0 : number >> shift;
    bool half = number >> (shift - 1) & 1;
    bool more = (number & mask(shift - 1)) != 0;
    if (FAULT == TRUNCATION)
        return kept;
    return kept + (half && (more || kept & 1 || FAULT == TIES_AWAY));
}

/* The code of a number's magnitude, as if exponents were unbounded. */
static uint64_t magnitude_of(const Format *format, Value value) {
    int places = __builtin_clzll(value.significand), lowest = 1 - format->bias;
    uint64_t significand = value.significand << places;
    int exponent = value.exponent - places + 63, shift = 63 - format->mantissa;
    if (exponent < lowest) {
        if (FAULT == FLUSHED_RESULTS)
            return 0;
        shift += lowest - exponent;
        exponent = lowest;
    }
    return ((uint64_t)(exponent - lowest) << format->mantissa) + rounded(significand, shift);
}

static uint64_t encoded_float(const Format *format, Value value, bool saturates) {
    uint64_t sign = UINT64_C(1) << (format->bits - 1), max = largest(format), magnitude = 0;
    /* Only 8-bit targets have the parameter; float4 always saturates. */
    bool clamps = format->bits < 8 || (format->bits == 8 && saturates);
    uint64_t nan = format->nan == NEGATIVE_ZERO ? sign
                   : format->nan == IEEE        ? max + 1 + (UINT64_C(1) << (format->mantissa - 1))
                   : format->nan == ALL_ONES    ? max + 1
                                                : max;
    uint64_t over = clamps                 ? max - (FAULT == LOW_MAXIMUM)
                    : format->has_infinity ? max + 1
                                           : nan;
    switch (value.what) {
    case ZERO:
        break;
    case NOT_A_NUMBER:
        magnitude = nan;
        if (FAULT == NAN_SIGN_LOST || format->nan == NO_NAN)
            value.negative = false;
        if (FAULT == NAN_TO_INFINITY && format->has_infinity && !(value.significand & 4095))
            magnitude = max + 1;
        break;
    case INFINITE:
        magnitude = over;
        break;
    case NUMBER:
        magnitude = magnitude_of(format, value);
        if (magnitude > max)
            magnitude = over;
        if (FAULT == EARLY_OVERFLOW && magnitude == max &&
            value.significand << __builtin_clzll(value.significand) << (format->mantissa + 1))
            magnitude = over == max ? max - 1 : over;
    }
    if (format->nan == NEGATIVE_ZERO && (magnitude == sign || !magnitude))
        return magnitude;
    if (FAULT == ZERO_SIGN_LOST && !magnitude)
        return 0;
    return magnitude | (value.negative ? sign : 0);
}

/* Truncate fractions; clamp what is out of range, which ONNX leaves open. */
static uint64_t integer_from_float(const Format *format, Value value) {
    bool is_signed = format->mantissa;
    uint64_t most = mask(format->bits - is_signed), least = is_signed ? most + 1 : 0;
    uint64_t magnitude = 0, end = value.negative ? least : most;
    int places = value.what == NUMBER ? __builtin_clzll(value.significand) : 0;
    if (value.what == INFINITE || (value.what == NUMBER && value.exponent - places > 0))
        magnitude = end;
    else if (value.what == NUMBER && FAULT == NEAREST_INTEGER)
        magnitude = rounded(value.significand, -value.exponent);
    else if (value.what == NUMBER && value.exponent > -64)
        magnitude = value.exponent < 0 ? value.significand >> -value.exponent
                                       : value.significand << value.exponent;
    if (magnitude > end)
        magnitude = end;
    return (value.negative ? ~magnitude + 1 : magnitude) & mask(format->bits);
}

static uint64_t integer_from_integer(const Format *format, Value value) {
    bool is_signed = format->mantissa;
    uint64_t most = mask(format->bits - is_signed), least = is_signed ? most + 1 : 0;
    if (FAULT == CLAMPED_INTEGERS && value.significand > (value.negative ? least : most))
        value.significand = value.negative ? least : most;
    return (value.negative ? ~value.significand + 1 : value.significand) & mask(format->bits);
}

static uint64_t cast(const Format *source, const Format *target, bool saturates, uint64_t code) {
    Value value = decoded(source, code);
    switch (target->kind) {
    case BOOLEAN:
        return FAULT == ODD_IS_TRUE ? code & 1 : value.what != ZERO;
    case INTEGER:
        return source->kind == FLOAT ? integer_from_float(target, value)
                                     : integer_from_integer(target, value);
    default:
        if (FAULT == DOUBLE_ROUNDING && source->bits > 16 && target->bits == 8)
            value = decoded(FLOAT16, encoded_float(FLOAT16, value, false));
        return encoded_float(target, value, saturates);
    }
}

static uint64_t load(const unsigned char *from, int bytes) {
    uint64_t code = 0;
    for (int at = 0; at < bytes; at++)
        code |= (uint64_t)from[at] << 8 * at;
    return code;
}

static void store(unsigned char *to, int bytes, uint64_t code) {
    for (int at = 0; at < bytes; at++)
        to[FAULT == BIG_ENDIAN_OUTPUT ? bytes - 1 - at : at] = (unsigned char)(code >> 8 * at);
}

static void cast_all(const Format *source, const Format *target, bool saturates,
                     const unsigned char *inputs, uint64_t first, size_t count,
                     unsigned char *answers) {
    int in = bytes_of(source), out = bytes_of(target);
    for (size_t at = 0; at < count; at++) {
        uint64_t code = inputs ? load(inputs + at * in, in) : first + at;
        uint64_t answer = cast(source, target, saturates, code);
        if (FAULT == SWAPPED_NIBBLES && target->kind == FLOAT && target->bits == 8)
            answer = (answer << 4 | answer >> 4) & 255;
        store(answers + at * out, out, answer);
    }
}

/* The wire protocol: a header is JSON without whitespace. */

static char *header;
static unsigned char *inputs, *answers, *shared;

/* Return where the value of an object's member begins, or an empty string. */
static const char *member(const char *object, const char *name) {
    size_t length = strlen(name);
    int depth = 0;
    for (const char *at = object; *at; at++) {
        if (*at == '"') {
            const char *end = at + 1;
            while (*end && *end != '"')
                end += *end == '\\' && end[1] ? 2 : 1;
            if (!*end)
                break;
            bool is_it = depth == 1 && (size_t)(end - at) == length + 1;
            if (is_it && end[1] == ':' && !strncmp(at + 1, name, length))
                return end + 2;
            at = end;
        } else if (*at == '{' || *at == '[')
            depth++;
        else if ((*at == '}' || *at == ']') && !--depth)
            break;
    }
    return "";
}

static uint64_t number(const char *object, const char *name) {
    return strtoull(member(object, name), NULL, 10);
}

static bool is(const char *object, const char *name, const char *text) {
    const char *found = member(object, name);
    size_t length = strlen(text);
    return *found == '"' && !strncmp(found + 1, text, length) && found[1 + length] == '"';
}

static bool asks(const char *what) { return is(header, "ask", what); }

static const Format *format_of(const char *name) {
    for (int at = 0; at < FORMAT_COUNT; at++)
        if (is(member(header, "case"), name, FORMATS[at].name))
            return &FORMATS[at];
    return NULL;
}

static void *sized(void *memory, uint64_t size) {
    memory = realloc(memory, size + 1);
    if (!memory)
        exit(3);
    return memory;
}

static void answer(const char *words, const unsigned char *payload, uint64_t size) {
    uint32_t length = (uint32_t)strlen(words);
    unsigned char start[16] = "CST1";
    for (int at = 0; at < 4; at++)
        start[4 + at] = (unsigned char)(length >> 8 * at);
    for (int at = 0; at < 8; at++)
        start[8 + at] = (unsigned char)(size >> 8 * at);
    fwrite(start, 1, sizeof start, stdout);
    fwrite(words, 1, length, stdout);
    fwrite(payload, 1, size, stdout);
    fflush(stdout);
}

static void refuse(const char *how, const char *what, const char *why) {
    char words[256];
    snprintf(words, sizeof words, "{\"answer\":\"%s\",\"number\":%" PRIu64 ",\"%s\":\"%s\"}", how,
             number(header, "number"), what, why);
    answer(words, NULL, 0);
}

static void hello(void) {
    char words[2048], *end = words;
    const char *offer = member(header, "memory");
    if (*offer) {
        void *memory = mmap(NULL, number(offer, "bytes"), PROT_READ | PROT_WRITE, MAP_SHARED,
                            (int)number(offer, "descriptor"), 0);
        shared = memory == MAP_FAILED ? NULL : memory;
    }
    end += sprintf(end,
                   "{\"answer\":\"hello\",\"number\":%" PRIu64 ",\"protocol\":1,"
                   "\"name\":\"vendor_c\",\"version\":\"1.0\",\"memory\":%s,"
                   "\"claims\":[\"onnx-cast:25\",\"onnx-bitcast\"],"
                   "\"operations\":[\"cast\",\"sweep\",\"bitcast\"],\"dtypes\":[",
                   number(header, "number"), shared ? "true" : "false");
    for (int at = 0; at < FORMAT_COUNT; at++)
        end += sprintf(end, "%s\"%s\"", at ? "," : "", FORMATS[at].name);
    sprintf(end, "]}");
    answer(words, NULL, 0);
}

static void answer_values(const Format *source, const Format *target, uint64_t size) {
    const char *mode = member(member(header, "case"), "mode"), *offer = member(header, "memory");
    bool is_sweep = asks("sweep"), in_memory = shared && *offer;
    uint64_t count = is_sweep ? number(header, "count") : size / (uint64_t)bytes_of(source);
    uint64_t weight = count * (uint64_t)bytes_of(target);
    if (!in_memory)
        answers = sized(answers, weight);
    unsigned char *room = in_memory ? shared + number(offer, "offset") : answers;
    if (asks("bitcast"))
        memcpy(room, inputs, size);
    else
        cast_all(source, target, !is(mode, "saturate", "0"), is_sweep ? NULL : inputs,
                 number(header, "first"), count, room);
    char words[2048], shape[1024];
    const char *given = member(header, "shape");
    if (is_sweep)
        snprintf(shape, sizeof shape, "[%" PRIu64 "]", count);
    else
        snprintf(shape, sizeof shape, "%.*s", (int)strcspn(given, "]") + 1, given);
    snprintf(words, sizeof words,
             "{\"answer\":\"values\",\"number\":%" PRIu64 ",\"shape\":%s,\"in_memory\":%s}",
             number(header, "number"), shape, in_memory ? "true" : "false");
    answer(words, room, in_memory ? 0 : weight);
}

static void bye(void) {
    char words[64];
    snprintf(words, sizeof words, "{\"answer\":\"bye\",\"number\":%" PRIu64 "}",
             number(header, "number"));
    answer(words, NULL, 0);
}

/* The bits of a format in a bitcast, where a bool is a byte. */
static int width(const Format *format) {
    return format->kind == BOOLEAN ? 8 : format->bits;
}

static void respond(uint64_t size) {
    const char *wanted = member(header, "case");
    const Format *source = format_of("source"), *target = format_of("target");
    if (asks("hello"))
        hello();
    else if (asks("bye"))
        bye();
    else if (!source || !target)
        refuse("unsupported", "reason", "no such dtype");
    else if (!is(wanted, "document", "onnx-bitcast") &&
             !(is(wanted, "document", "onnx-cast") && is(wanted, "version", "25")))
        refuse("unsupported", "reason", "only ONNX Cast 25 and BitCast are implemented");
    else if (asks("bitcast") && width(source) != width(target))
        refuse("error", "text", "a bitcast keeps the number of bits");
    else
        answer_values(source, target, size);
}

int main(void) {
    unsigned char start[16];
    while (fread(start, 1, sizeof start, stdin) == sizeof start) {
        uint64_t length = load(start + 4, 4), size = load(start + 8, 8);
        header = sized(header, length);
        inputs = sized(inputs, size);
        if (fread(header, 1, length, stdin) != length || fread(inputs, 1, size, stdin) != size)
            return 2;
        header[length] = '\0';
        respond(size);
        if (asks("bye"))
            break;
    }
    return 0;
}
