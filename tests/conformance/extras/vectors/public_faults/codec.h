/* What the harness includes: the codec that it asks; see codec.c. */

#include <stdint.h>

uint64_t convert(uint64_t pattern);
