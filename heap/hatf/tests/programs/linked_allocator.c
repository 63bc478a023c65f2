/* Allocates blocks of power-of-two sizes from pages that are never unmapped. Functions call each other, as in real allocators. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "linked_allocator.h"

/* The header before each block: the exponent of its size, and its actual start. */
struct head {
    size_t power;
    void *start;
};

static void *lists[64];
static char *rest, *end;
static volatile char lock;

static void take_lock(void)
{
    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
        ;
}

static void leave_lock(void) { __atomic_clear(&lock, __ATOMIC_RELEASE); }

static void *take(size_t align, size_t size)
{
    if (size > (size_t)1 << 40) {
        errno = ENOMEM;
        return NULL;
    }
    size_t bytes = size + align + sizeof(struct head), power = 6;
    while (((size_t)1 << power) < bytes)
        power++;
    take_lock();
    char *start = lists[power];
    if (start) {
        memcpy(&lists[power], start, sizeof(void *));
    } else {
        bytes = (size_t)1 << power;
        if ((size_t)(end - rest) < bytes) {
            size_t more = bytes > 1 << 20 ? bytes : 1 << 20;
            rest = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            end = rest + more;
        }
        start = rest;
        rest += bytes;
    }
    leave_lock();
    char *block = (char *)(((uintptr_t)start + sizeof(struct head) + align - 1) & ~(uintptr_t)(align - 1));
    struct head head = {power, start};
    memcpy(block - sizeof head, &head, sizeof head);
    return block;
}

static struct head of(void *block)
{
    struct head head;
    memcpy(&head, (char *)block - sizeof head, sizeof head);
    return head;
}

void *NAME(malloc)(size_t size) { return take(16, size); }

void NAME(free)(void *block)
{
    if (!block)
        return;
    struct head head = of(block);
    take_lock();
    memcpy(head.start, &lists[head.power], sizeof(void *));
    lists[head.power] = head.start;
    leave_lock();
}

void *NAME(calloc)(size_t count, size_t size)
{
    void *block = NAME(malloc)(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *NAME(realloc)(void *old, size_t size)
{
    if (!old)
        return NAME(malloc)(size);
    struct head head = of(old);
    size_t room = ((size_t)1 << head.power) - (size_t)((char *)old - (char *)head.start);
    if (size <= room)
        return old;
    void *block = NAME(malloc)(size);
    if (block) {
        memcpy(block, old, room);
        NAME(free)(old);
    }
    return block;
}

void *NAME(aligned_alloc)(size_t align, size_t size) { return take(align, size); }
void *NAME(memalign)(size_t align, size_t size) { return take(align < 16 ? 16 : align, size); }

int NAME(posix_memalign)(void **place, size_t align, size_t size)
{
    if (align & (align - 1))
        return EINVAL;
    void *block = take(align, size);
    if (!block)
        return ENOMEM;
    *place = block;
    return 0;
}

#ifdef JEMALLOC
void *NAME(mallocx)(size_t size, int flags) { return take(flags & 63 ? (size_t)1 << (flags & 63) : 16, size); }
void *NAME(rallocx)(void *old, size_t size, int flags) { return (void)flags, NAME(realloc)(old, size); }
void NAME(sdallocx)(void *block, size_t size, int flags) { (void)size, (void)flags, NAME(free)(block); }
#endif

#ifdef MIMALLOC
void *NAME(zalloc)(size_t size) { return NAME(calloc)(1, size); }
void *NAME(malloc_aligned)(size_t size, size_t align) { return take(align, size); }
void *NAME(realloc_aligned)(void *old, size_t size, size_t align) { return (void)align, NAME(realloc)(old, size); }
void NAME(free_size)(void *block, size_t size) { (void)size, NAME(free)(block); }
#endif
