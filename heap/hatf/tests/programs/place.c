// Limits its address space, and then maps memory where the limit made room. Prints the number of mappings that something else changed.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { BLOCKS = 3, BYTES = 32 << 20 };

__attribute__((noinline)) static void work(int depth) {
    if (depth > 0) {
        work(depth - 1);
        __asm__ volatile("");
        return;
    }
    void *volatile block = malloc(64);
    free(block);
}

static unsigned char *map(size_t bytes, int flags) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

int main(void) {
    unsigned char *blocks[BLOCKS] = {NULL};
    char line[20];
    int round = 0;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (int n = 0; n < 1000; n++) work(n % 5);
        round++;
        if (round == 2) {
            struct rlimit limit = {2ul << 30, RLIM_INFINITY};
            if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
        }
        if (round == 3) {
            // The kernel fills gaps from the top. The first mapping takes most of the room.
            map(880ul << 20, MAP_NORESERVE);
            for (int n = 0; n < BLOCKS; n++) {
                blocks[n] = map(BYTES, 0);
                if (blocks[n] == MAP_FAILED) return 3;
                memset(blocks[n], 0xa5, BYTES);
            }
        }
        puts("done");
        fflush(stdout);
    }
    int damaged = 0;
    for (int n = 0; n < BLOCKS; n++) {
        size_t at = 0;
        while (at < BYTES && blocks[n][at] == 0xa5) at++;
        damaged += at < BYTES;
    }
    printf("%d damaged\n", damaged);
    return 7;
}
