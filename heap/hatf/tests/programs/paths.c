/* Allocates along random call paths, which are deep and similar. A block's size identifies its path: it is the path's slot in a table, plus
   1. Functions come in pairs with frames of equal size, so that the stack pointer does not reveal the caller. With `signals`, a signal
   handler also allocates. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { PATHS = 1 << 16, DEPTH = 60 };
static char path[DEPTH + 1];
static char *paths[PATHS];
static int count;
static unsigned long random_state = 88172645463325252ul;
static void *volatile block;

static unsigned next(unsigned most) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % most);
}

/* Returns the number of the path, plus 1. */
static size_t number(int depth) {
    static char kept[PATHS][DEPTH + 1];
    path[depth] = 0;
    unsigned hash = 5381;
    for (int i = 0; i < depth; i++) hash = hash * 33 + (unsigned char)path[i];
    for (unsigned place = hash % PATHS;; place = (place + 1) % PATHS) {
        if (!paths[place]) {
            paths[place] = strcpy(kept[place], path);
            count++;
        }
        if (!strcmp(paths[place], path)) return place + 1;
    }
}

static void step(int depth);

#define FUNCTION(name, letter, bytes)                                   \
    __attribute__((noinline)) static void name(int depth) {             \
        volatile char room[bytes];                                      \
        room[0] = letter;                                               \
        path[depth] = room[0];                                          \
        step(depth + 1);                                                \
        room[1] = 0;                                                    \
    }
FUNCTION(first, 'a', 32)
FUNCTION(second, 'b', 32)
FUNCTION(third, 'c', 160)
FUNCTION(fourth, 'd', 160)

/* Stays near the current depth for a while, so that stacks differ in a few frames. */
__attribute__((noinline)) static void step(int depth) {
    for (int times = (int)next(3) + 1; times > 0 && count < PATHS / 2; times--) {
        if (depth >= DEPTH || next(12) == 0) {
            size_t size = number(depth);
            block = malloc(size);
            free(block);
            continue;
        }
        switch (next(4)) {
        case 0: first(depth); break;
        case 1: second(depth); break;
        case 2: third(depth); break;
        default: fourth(depth); break;
        }
        if (next(2) == 0) return;
    }
}

static void handler(int signal) {
    (void)signal;
    free(malloc(PATHS + 1));
}

int main(int arguments, char **words) {
    if (arguments > 1 && !strcmp(words[1], "signals")) {
        signal(SIGPROF, handler);
        struct itimerval often = {{0, 300}, {0, 300}};
        setitimer(ITIMER_PROF, &often, NULL);
    }
    for (int rounds = 0; rounds < 700; rounds++) step(0);
    return 7;
}
