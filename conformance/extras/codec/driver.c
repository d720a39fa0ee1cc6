/* Asks a codec many inputs at the speed of C.
 *
 * Put before this are the codec, the types `input_t` and `answer_t` (bit patterns), and the functions
 * `open_codec` and `ask`. Where TEXTS is defined, it is the file of the texts that are the inputs, a line
 * each: `input_t` counts them, and `ask` finds them in `texts`. Where ANSWERS_TEXTS is, `ask_text` stands
 * in place of `ask`, and only lists are asked. The program is called in one of two ways:
 *
 *   PROGRAM sweep PROGRESS OUT FIRST COUNT MOST   consecutive inputs
 *   PROGRAM list  PROGRESS OUT IN STEP            those of a file, STEP at a time
 *
 * A sweep writes runs: the first of consecutive inputs that share an answer, and that answer. If there are more than
 * MOST of them, it gives up. A list writes answers; these are words of 64 bits, as inputs are, or lines of text. PROGRESS is a file of two words: the place of the inputs that are asked now, so that
 * those are known that end the program, and the nanoseconds of processor time that the codec took.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, NOT_OPENED = 3, MANY_RUNS = 4, NO_FILE = 5 };

static volatile uint64_t *progress;
static input_t inputs[BLOCK];

static FILE *opened(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        perror(path);
        exit(NO_FILE);
    }
    return file;
}

#ifdef ANSWERS_TEXTS
static void write_answers(FILE *file, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *text = ask_text(inputs[i]);
        for (; text != NULL && *text; text++)
            putc(*text == '\n' ? ' ' : *text, file);
        putc('\n', file);
    }
}
#else
static answer_t answers[BLOCK];

static void write_words(FILE *file, const uint64_t *words, size_t count) {
    if (fwrite(words, sizeof *words, count, file) != count) {
        perror("the file of answers");
        exit(NO_FILE);
    }
}

static void sweep(FILE *out, uint64_t first, uint64_t count, uint64_t most) {
    uint64_t runs = 0;
    answer_t last = 0;
    for (uint64_t at = first; at < first + count; at += BLOCK) {
        size_t here = first + count - at < BLOCK ? (size_t)(first + count - at) : BLOCK;
        for (size_t i = 0; i < here; i++)
            inputs[i] = (input_t)(at + i);
        *progress = at;
        ask(inputs, answers, here);
        if (runs && answers[0] == last && !memcmp(answers, answers + 1, (here - 1) * sizeof *answers))
            continue;
        for (size_t i = 0; i < here; i++) {
            if (runs && answers[i] == last)
                continue;
            uint64_t run[2] = {at + i, (uint64_t)answers[i]};
            if (runs++ == most)
                exit(MANY_RUNS);
            write_words(out, run, 2);
            last = answers[i];
        }
    }
}

static void write_answers(FILE *file, size_t count) {
    ask(inputs, answers, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t word = (uint64_t)answers[i];
        write_words(file, &word, 1);
    }
}
#endif

static void list(FILE *out, FILE *in, size_t step) {
    uint64_t word, at = 0;
    size_t here = 0;
    for (int more = 1; more;) {
        more = fread(&word, sizeof word, 1, in) == 1;
        if (more)
            inputs[here++] = (input_t)word;
        if (here == 0 || (more && here < step))
            continue;
        *progress = at;
        write_answers(out, here);
        at += here;
        here = 0;
    }
}

#ifdef TEXTS
static void read_texts(void) {
    FILE *file = opened(TEXTS, "rb");
    size_t room = 0, count = 0;
    char *line = NULL;
    for (ssize_t length; (length = getline(&line, &room, file)) > 0; room = 0, line = NULL) {
        line[length - 1] = 0;
        if ((texts = (char **)realloc(texts, (count + 1) * sizeof *texts)) == NULL)
            exit(NO_FILE);
        texts[count++] = line;
    }
    fclose(file);
}
#endif

int main(int count, char **words) {
    int file = count < 6 ? -1 : open(words[2], O_RDWR);
    void *page = mmap(NULL, 2 * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        perror("the file of progress");
        return NO_FILE;
    }
    progress = (volatile uint64_t *)page;
    if (open_codec())
        return NOT_OPENED;
#ifdef TEXTS
    read_texts();
#endif
    FILE *out = opened(words[3], "wb");
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
#ifndef ANSWERS_TEXTS
    if (strcmp(words[1], "sweep") == 0)
        sweep(out, strtoull(words[4], NULL, 10), strtoull(words[5], NULL, 10), strtoull(words[6], NULL, 10));
    else
#endif
        list(out, opened(words[4], "rb"), strtoul(words[5], NULL, 10));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    /* Never 0, which says that the codec itself ended the process. */
    progress[1] = 1 + (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
    if (fclose(out)) {
        perror(words[3]);
        return NO_FILE;
    }
    return 0;
}
