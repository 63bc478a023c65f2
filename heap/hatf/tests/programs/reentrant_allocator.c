/* An allocator whose functions call each other and those of glibc through tables, where they find the recorder's functions. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t bytes) { return __libc_malloc(bytes); }
void free(void *block) { __libc_free(block); }
void *realloc(void *block, size_t bytes) { return __libc_realloc(block, bytes); }
void *memalign(size_t align, size_t bytes) { return __libc_memalign(align, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }

void *calloc(size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = malloc(count * size);
    return block == NULL ? NULL : memset(block, 0, count * size);
}

int posix_memalign(void **place, size_t align, size_t bytes) {
    void *block = memalign(align, bytes);
    if (block == NULL) return ENOMEM;
    *place = block;
    return 0;
}
