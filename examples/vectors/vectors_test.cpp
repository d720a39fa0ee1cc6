#include <gtest/gtest.h>  // Link with gtest_main.
#include <fstream>
#include "codec.h"  // Your header. Below: your vector file, and your function of bits.
using u64 = unsigned long long;
static const char path[] = "vectors.txt";
static u64 answer_to(u64 bits) { return convert(bits); }
static u64 lo, hi, code, last, mask, step, asked, wrong, shown, seen, line = 1, from, to, lines;
static void ask(u64 x, u64 count) {
    for (asked += count; count--; x++) {
        u64 answer = answer_to(x), rise = (x - lo) * step, rest = (answer - rise) & mask;
        if (code <= rest && rest <= last) continue;
        if (wrong++, line == seen || shown++ > 9) continue;  // Show the first of each line.
        ADD_FAILURE_AT(path, seen = line) << std::hex << "input " << x << ": answer " << answer
            << ", allowed " << ((code + rise) & mask) << " to " << ((last + rise) & mask)
            << ", mask " << mask;
    }
}
#define NEED(intact) ASSERT_TRUE(intact) << path << ":" << line << ": damaged: "
TEST(Vectors, EveryAnswerIsAllowed) {
    std::ifstream file(path);
    std::string text; char kind = 0, end;
    getline(file, text);
    sscanf(text.data(), "vectors 1 %*s %llu %*s %llu %c%*[lome] %llu", &from, &to, &kind, &lines);
    NEED(lines && from - 1 < 64 && to - 1 < 64) << "missing, or not the header of a vector file";
    u64 top = ~0ULL >> (64 - from), ones = ~0ULL >> (64 - to), next = 0;
    while (line++, getline(file, text)) {
        if (mask = ones, step = 0, text[0] == '#') continue;
        int n = sscanf(text.data(), "%llx%llx%llx%llx%llx%llx %c",
                       &lo, &hi, &code, &last, &mask, &step, &end);
        if (n == 3) last = code;
        NEED(2 < n && n < 7 && text.find_first_not_of(" 0123456789abcdef") == text.npos && !file.eof()
             && lo <= hi && hi <= top && code <= last && (last | mask) <= ones) << "no data line";
        NEED(kind == 'a' ? lo == next : lo >= next) << "a line is missing or out of order";
        next = hi + (hi < top), lines--;
        if (from <= 32 || hi - lo < 256) ask(lo, hi - lo + 1);
        else for (u64 p = 1; p && p <= hi - lo; p *= 2) ask(lo + p - 1, 2), ask(hi - p, 2);
    }
    NEED(asked && !lines && (kind != 'a' || next == top)) << "lines are missing at the end";
    EXPECT_EQ(wrong, 0) << asked << " answers";
}
