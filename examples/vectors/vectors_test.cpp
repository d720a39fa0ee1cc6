#include <gtest/gtest.h>  // Link with gtest_main.
#include <fstream>
#include "codec.h"  // Your header; name your function, of bits, in the place of `convert` below.
using u64 = unsigned long long;
static const char path[] = "vectors.txt";
static u64 lo, hi, code, last, mask, step, other, top, ones, asked, wrong, bad, shown;
static u64 line = 1, n, from, to, lines, next;
static std::string text;
static void ask(u64 x, u64 count) {
    for (asked += count; count--; x++) {
        u64 answer = convert(x), rise = (x - lo) * step, rest = (answer - rise) & mask;
        if (answer <= ones && (rest - code <= last - code || (n == 7 && answer == other))) continue;
        if (wrong++, bad++ || shown++ > 9) continue;  // Show the first input of each line.
        ADD_FAILURE_AT(path, line) << std::hex << "input " << x << ": answer " << answer
            << ", allowed " << ((code + rise) & mask) << " by " << text;
    }
}
#define NEED(intact) ASSERT_TRUE(intact) << path << ":" << line << ": damaged: "
TEST(Vectors, EveryAnswerIsAllowed) {
    std::ifstream file(path);
    char kind = 0, end;
    getline(file, text);
    sscanf(text.data(), "vectors 1 %*s %llu %*s %llu %c%*[lome] %llu", &from, &to, &kind, &lines);
    NEED(lines && from - 1 < 64 && to - 1 < 64) << "missing, or not the header of a vector file";
    top = ~0ULL >> (64 - from), ones = ~0ULL >> (64 - to);
    while (line++, getline(file, text)) {
        if (mask = ones, step = 0, text[0] == '#') continue;
        n = sscanf(text.data(), "%llx%llx%llx%llx%llx%llx%llx %c",
                   &lo, &hi, &code, &last, &mask, &step, &other, &end);
        if (n == 3) last = code;
        NEED(2 < n && n < 8 && text.find_first_not_of(" 0123456789abcdef") == text.npos && lo <= hi
             && hi <= top && code <= last && (last | mask) <= ones && !file.eof()) << "no data row";
        NEED(kind == 'a' ? lo == next : lo >= next) << "a line is missing or out of order";
        next = hi + (hi < top), lines--, bad = 0;
        if (from <= 32 || hi - lo < 256) ask(lo, hi - lo + 1);
        else for (u64 p = 1; p && p <= hi - lo; p *= 2) ask(lo + p - 1, 2), ask(hi - p, 2);
    }
    NEED(asked && !lines && (kind != 'a' || next == top)) << "lines are missing at the end";
    EXPECT_EQ(wrong, 0) << asked << " answers";
}
