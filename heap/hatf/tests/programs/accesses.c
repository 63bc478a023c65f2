/* Accesses blocks of known sizes, each in its own way, so that the expected counts are known. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(3);
    }
}

static void *volatile never;

static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

struct pair {
    char *first, *second;
};

/* Passes printf only the address of a structure on the stack, through which the block is reachable. */
static void through_stack(char *block) {
    struct pair pair = {0, block};
    fprintf(stderr, "%p", (void *)&pair);
}

static void *thread(void *argument) {
    volatile char *block = malloc(1700);
    for (int at = 0; at < 1000; at++) {
        block[at % 32]++;
    }
    free((void *)block);
    return argument;
}

int main(int count, char **arguments) {
    /* Adjacent blocks, one only read and one only written, have separate counters. */
    volatile char *read_only[50], *write_only[50];
    for (int at = 0; at < 50; at++) {
        read_only[at] = calloc(1, 33);
        write_only[at] = malloc(31);
    }
    for (int at = 0; at < 50; at++) {
        for (int byte = 0; byte < 31; byte++) {
            write_only[at][byte] = (char)byte;
            (void)read_only[at][byte];
        }
    }
    for (int at = 0; at < 50; at++) {
        free((void *)read_only[at]);
        free((void *)write_only[at]);
    }

    /* Library calls write 1200 bytes in 19 or 20 granules, then read them. */
    char *copied = malloc(1200), *other = malloc(1200);
    memset(copied, 'a', 1200);
    memcpy(other, copied, 1200);
    copied[1199] = 0;
    check(strlen(copied) == 1199, "strlen");
    free(copied);
    free(other);

    int *sorted = malloc(1300);
    for (int at = 0; at < 325; at++) {
        sorted[at] = 325 - at;
    }
    qsort(sorted, 325, sizeof *sorted, order);
    check(sorted[0] == 1, "qsort");
    free(sorted);

    char *hidden = malloc(1400);
    through_stack(hidden);

    /* Allocated after the call, because pointers on the stack after the structure also count as reached. */
    never = malloc(1100);

    /* This block starts far into the allocator's block and is then moved. */
    void *aligned = 0;
    check(posix_memalign(&aligned, 4096, 1500) == 0 && (uintptr_t)aligned % 4096 == 0, "posix_memalign");
    memset(aligned, 7, 1500);
    char *moved = realloc(aligned, 150000);
    check(moved && moved[0] == 7 && moved[1499] == 7, "realloc of an aligned block");
    moved = realloc(moved, 1501);
    check(moved && moved[0] == 7 && moved[1499] == 7, "realloc");
    check(realloc(moved, 0) == 0, "realloc to nothing");
    check(realloc(0, 1502) != 0, "realloc of nothing");
    volatile size_t too_large = SIZE_MAX - 10;
    /* Otherwise, the compiler may omit the unused allocation and assume that it succeeds. */
    void *volatile none = malloc(too_large);
    check(none == 0, "too large");
    none = calloc(too_large / 2, 3);
    check(none == 0, "too large");

    /* This block spans several regions of 64 MiB. */
    char *large = calloc(1, 200000000);
    large[0] = large[199999999] + 1;
    large = realloc(large, 300000000);
    check(large && large[0] == 1, "a large block");
    free(large);

    pthread_t threads[2];
    for (int at = 0; at < 2; at++) {
        pthread_create(&threads[at], 0, thread, 0);
    }
    for (int at = 0; at < 2; at++) {
        pthread_join(threads[at], 0);
    }

    if (count > 1 && !strcmp(arguments[1], "fork")) {
        pid_t child = fork();
        if (child == 0) {
            volatile char *block = malloc(1600);
            block[0] = 1;
            free((void *)block);
            exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}
