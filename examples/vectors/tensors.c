/* cc -O2 -o tensors tensors.c && ./tensors FILE   Exit code 1: wrong answers; 2: a damaged file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "quantize.h" /* Your header, and uint8_t quantize(float x, float scale, uint8_t zero). */
static char line[1 << 16], mode[256];
static float x[1024], scale;
static unsigned zero, cases, records, asked, wrong;
static float number(const char *word) {
    union { uint32_t code; float value; } both = {(uint32_t)strtoul(word, 0, 16)};
    return both.value;
}
static int allows(const char *word, unsigned answer) { /* ?  7f  7e..7f  00/7f  00|ff */
    for (char *end; *word != '?'; word = end + 1) {
        unsigned low = strtoul(word, &end, 16), high = low, mask = ~0u;
        if (*end == '.') high = strtoul(end + 2, &end, 16);
        if (*end == '/') mask = strtoul(end + 1, &end, 16);
        if (low <= (answer & mask) && (answer & mask) <= high) return 1;
        if (*end != '|') return 0;
    }
    return 1;
}
int main(int count, char **arguments) {
    FILE *file = fopen(arguments[count - 1], "r");
    if (file && fgets(line, sizeof line, file)) sscanf(line, "vectors 1 tensors %*s %u", &records);
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "case %*[^/]%255s", mode) == 1) cases++, zero = 0;
        char *colon = strstr(line, " : "), *word = colon ? strtok(colon + 3, " \n") : 0;
        if (strcmp(mode, "/float32/uint8/scale:float32/form:tensor")) continue;
        for (unsigned at = 0; word && at < 1024; word = strtok(0, " \n"), at++)
            if (!strncmp(line, "x ", 2)) x[at] = number(word);
            else if (!strncmp(line, "y_scale ", 8)) scale = number(word);
            else if (!strncmp(line, "y_zero_point ", 13)) zero = strtoul(word, 0, 16);
            else if (asked++, !allows(word, quantize(x[at], scale, zero)) && wrong++ < 10)
                printf("%a by %a, zero point %u: must be %s\n", x[at], scale, zero, word);
    }
    if (!asked || cases != records) return printf("%s: damaged\n", arguments[count - 1]), 2;
    return printf("%u answers, %u wrong\n", asked, wrong), wrong > 0;
}
