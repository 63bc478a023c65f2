/* Allocates by the C library's internal names and frees by C23 functions. Only the program itself uses sizes of 7777 or more. Compiled by
 * tests/it/hazards.rs. */
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);
void free_sized(void *block, size_t size) __attribute__((weak));
void free_aligned_sized(void *block, size_t align, size_t size) __attribute__((weak));

int main(void) {
    for (int n = 0; n < 10; n++) {
        __libc_free(__libc_malloc(7777));
        free(__libc_calloc(7, 1111));
        __libc_free(__libc_realloc(__libc_malloc(7778), 7777));
        free(__libc_memalign(64, 7777));
        void *block = malloc(7777);
        if (free_sized)
            free_sized(block, 7777);
        else
            free(block);
        block = aligned_alloc(64, 7777);
        if (free_aligned_sized)
            free_aligned_sized(block, 64, 7777);
        else
            free(block);
    }
    return 7;
}
