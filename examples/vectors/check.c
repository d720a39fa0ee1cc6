/* cc -O2 -o check check.c && ./check FILE      Exit code 1: wrong answers; 2: a damaged file. */
#include <stdio.h>
#include <string.h>
#include "codec.h" /* Your header, and your function: bits of the source to bits of the target. */
#define CONVERT(bits) convert(bits)
#define NEED(intact, why) if (!(intact)) return printf("%s:%u: damaged: %s\n", path, line, why), 2
typedef unsigned long long u64;
static u64 lo, hi, code, last, mask, step, other, top, ones, next, asked, wrong, bad;
static unsigned line = 1, from, to, lines, shown, n;
static char *path, text[4096], kind, end;
static void ask(u64 x, u64 count) {
    for (asked += count; count--; x++) {
        u64 answer = CONVERT(x), rise = (x - lo) * step, rest = (answer - rise) & mask;
        if (answer <= ones && (rest - code <= last - code || (n == 7 && answer == other))) continue;
        if (wrong++, !bad++ && shown++ < 10) /* Show the first input of each line. */
            printf("%s:%u: input %llx: answer %llx, allowed %llx by %s",
                   path, line, x, answer, (code + rise) & mask, text);
    }
}
int main(int count, char **arguments) {
    FILE *file = fopen(path = arguments[count - 1], "r");
    NEED(file && fgets(text, sizeof text, file), "missing or empty");
    sscanf(text, "vectors 1 %*s %u %*s %u %c%*[lome] %u%c", &from, &to, &kind, &lines, &end);
    NEED(end == '\n' && from - 1 < 64 && to - 1 < 64, "not the header of a vector file");
    top = ~0ULL >> (64 - from), ones = ~0ULL >> (64 - to);
    while (line++, fgets(text, sizeof text, file)) {
        if (mask = ones, step = 0, *text == '#') continue;
        n = sscanf(text, "%llx%llx%llx%llx%llx%llx%llx %c",
                   &lo, &hi, &code, &last, &mask, &step, &other, &end);
        if (n == 3) last = code;
        NEED(2 < n && n < 8 && text[strspn(text, " 0123456789abcdef")] == '\n' && lo <= hi
             && hi <= top && code <= last && (last | mask) <= ones, "not a data line");
        NEED(kind == 'a' ? lo == next : lo >= next, "a line is missing or out of order");
        next = hi + (hi < top), lines--, bad = 0;
        if (from <= 32 || hi - lo < 256) ask(lo, hi - lo + 1);
        else for (u64 p = 1; p && p <= hi - lo; p *= 2) ask(lo + p - 1, 2), ask(hi - p, 2);
    }
    NEED(asked && !lines && (kind != 'a' || next == top), "lines are missing at the end");
    return printf("%s: %llu answers, %llu wrong\n", path, asked, wrong), wrong > 0;
}
