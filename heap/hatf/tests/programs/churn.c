// Allocates short-lived blocks: one at a time, in batches freed together, and in an overlapping chain. Compiled by tests/it/churn.rs.
#include <stdlib.h>

static void *volatile kept;

__attribute__((noinline)) static void buffer(int size) {
    kept = malloc(size);
    free(kept);
}

__attribute__((noinline)) static void *of_batch(void) { return kept = malloc(72); }

__attribute__((noinline)) static void *of_pool(void) { return kept = malloc(73); }

int main(void) {
    void *blocks[8], *last = of_pool();
    for (int round = 0; round < 500; round++) {
        buffer(60 + round % 12);
        for (int n = 0; n < 8; n++) blocks[n] = of_batch();
        for (int n = 0; n < 8; n++) free(blocks[n]);
        void *next = of_pool();
        free(last);
        last = next;
    }
    return 0;
}
