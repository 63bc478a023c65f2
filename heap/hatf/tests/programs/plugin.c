/* A shared library that is loaded and unloaded. Compiled by tests/it/stacks.rs. */
#include <stdlib.h>

void *plugin(int size) {
    void *block = malloc(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}
