/* Loads a library with RTLD_DEEPBIND, so that it binds to the C library first. Compiled by tests/it/hazards.rs; LIBRARY selects it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LIBRARY
void *give(int size) {
    void *block = malloc(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}
void take(void *block) { free(block); }
#else
int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
    if (count < 2 || !library) return 1;
    void *(*give)(int) = (void *(*)(int))dlsym(library, "give");
    void (*take)(void *) = (void (*)(void *))dlsym(library, "take");
    for (int i = 0; i < 500; i++) {
        free(give(7777));
        take(malloc(7777));
    }
    return 7;
}
#endif
