/* A small allocator linked into programs, whose function names begin with PREFIX. */
#include <stddef.h>

#ifndef PREFIX
#define PREFIX
#endif
#define PASTED(prefix, name) prefix##name
#define EXPANDED(prefix, name) PASTED(prefix, name)
#define NAME(name) EXPANDED(PREFIX, name)

void *NAME(malloc)(size_t size);
void *NAME(calloc)(size_t count, size_t size);
void *NAME(realloc)(void *old, size_t size);
void NAME(free)(void *block);
void *NAME(aligned_alloc)(size_t align, size_t size);
void *NAME(memalign)(size_t align, size_t size);
int NAME(posix_memalign)(void **place, size_t align, size_t size);
/* Functions of jemalloc. */
void *NAME(mallocx)(size_t size, int flags);
void *NAME(rallocx)(void *old, size_t size, int flags);
void NAME(sdallocx)(void *block, size_t size, int flags);
/* Functions of mimalloc. */
void *NAME(zalloc)(size_t size);
void *NAME(malloc_aligned)(size_t size, size_t align);
void *NAME(realloc_aligned)(void *old, size_t size, size_t align);
void NAME(free_size)(void *block, size_t size);
