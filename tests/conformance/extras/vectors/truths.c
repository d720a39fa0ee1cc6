/* Asks a truth the inputs of a vector file. The reader is written for this, so that it shares no
   mistake with the exporter or the harnesses.

   FROM and TO are C types of the bits of the source and the target, and CONVERT(value) the truth:
   the compiler's cast, an instruction, or `given`, a function that the caller sets. With FLAGS, the
   answer is the byte of flags that the conversion raises: in the processor, or where `raised`
   points. */

#include <fenv.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

TO (*given)(FROM);
uint8_t *raised;
uint64_t asked, wrong, first_wrong;

static uint64_t answer(uint64_t pattern) {
  volatile FROM value;
  FROM bits;
  memcpy(&bits, &pattern, sizeof bits);
  value = bits;
#ifdef FLAGS
  feclearexcept(FE_ALL_EXCEPT);
  if (raised) *raised = 0;
  volatile TO ignored = CONVERT(value);
  (void)ignored;
  if (raised) return *raised;
  int found = fetestexcept(FE_ALL_EXCEPT);
  return !!(found & FE_INEXACT) | !!(found & FE_UNDERFLOW) << 1 | !!(found & FE_OVERFLOW) << 2 |
         !!(found & FE_INVALID) << 4;
#else
  TO converted = CONVERT(value);
  uint64_t result = 0;
  memcpy(&result, &converted, sizeof converted);
  return result;
#endif
}

static uint64_t lo, hi, code, last, mask, step, other;
static int has_other;

static void ask(uint64_t pattern) {
  uint64_t given_answer = answer(pattern), rest = (given_answer - (pattern - lo) * step) & mask;
  asked++;
  if (has_other && given_answer == other) return;
  if ((rest < code || rest > last) && !wrong++) first_wrong = pattern;
}

/* How many lines were read of how many that the header tells, or -1 if the file cannot be read. */
int check(const char *path, int rounding) {
  int bits, target_bits, lines, count = 0;
  char line[4096];
  FILE *file = fopen(path, "r");
  if (!file || fscanf(file, "vectors 1 %*s %d %*s %d %*s %d ", &bits, &target_bits, &lines) != 3)
    return -1;
  fesetround(rounding);
  while (fgets(line, sizeof line, file)) {
    mask = ~0ull >> (64 - target_bits), step = 0;
    int words = sscanf(
        line, "%lx %lx %lx %lx %lx %lx %lx", &lo, &hi, &code, &last, &mask, &step, &other);
    has_other = words == 7;
    if (words < 3) continue;
    if (words == 3) last = code;
    count++;
    uint64_t length = hi - lo;
    for (uint64_t at = 0; bits <= 32 && at <= length; at++) ask(lo + at);
    if (bits > 32) ask(lo), ask(hi);
    for (uint64_t power = 1; bits > 32 && power && power <= length; power *= 2)
      ask(lo + power), ask(lo + power - 1), ask(hi - power), ask(hi - power + 1);
  }
  fesetround(FE_TONEAREST);
  fclose(file);
  return count == lines ? count : -1;
}
