/* Uses a linked-in allocator in several threads and in a forked child. Each process prints the numbers of blocks it received and freed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linked_allocator.h"

enum { ROUNDS = 500, THREADS = 4, FIRST = 7000 };

static long given, freed;

static void *count(void *block, size_t size)
{
    if (!block)
        abort();
    memset(block, 0x5a, size);
    __atomic_fetch_add(&given, 1, __ATOMIC_RELAXED);
    return block;
}

static void release(void *block)
{
    NAME(free)(block);
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
}

static void *work(void *unused)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t size = FIRST + round;
        void *blocks[8];
        int used = 0;
        blocks[used++] = count(NAME(malloc)(size), size);
        void *zeros = NAME(calloc)(2, size / 2);
        for (size_t at = 0; at < size / 2 * 2; at++)
            if (((char *)zeros)[at])
                abort();
        blocks[used++] = count(zeros, size / 2 * 2);
        blocks[used++] = count(NAME(aligned_alloc)(64, size), size);
        blocks[used++] = count(NAME(memalign)(256, size), size);
        void *placed = NULL;
        if (NAME(posix_memalign)(&placed, 4096, size) || (uintptr_t)placed % 4096)
            abort();
        blocks[used++] = count(placed, size);
        void *failed = &failed;
        if (NAME(posix_memalign)(&failed, 3, size) == 0 || failed != &failed)
            abort();
        void *resized = count(NAME(malloc)(size), size);
        for (int times = 0; times < 3; times++) {
            /* A reallocation counts as a free and an allocation. */
            __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
            resized = count(NAME(realloc)(resized, size + times), size + times);
        }
        blocks[used++] = resized;
#ifdef JEMALLOC
        void *flagged = NAME(mallocx)(size, 7);
        if ((uintptr_t)flagged % 128)
            abort();
        count(flagged, size);
        __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
        flagged = count(NAME(rallocx)(flagged, size + 1, 0), size + 1);
        NAME(sdallocx)(flagged, size + 1, 0);
        __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
#endif
#ifdef MIMALLOC
        blocks[used++] = count(NAME(zalloc)(size), size);
        void *aligned = count(NAME(malloc_aligned)(size, 512), size);
        if ((uintptr_t)aligned % 512)
            abort();
        __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
        aligned = count(NAME(realloc_aligned)(aligned, size + 1, 512), size + 1);
        NAME(free_size)(aligned, size + 1);
        __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
#endif
        NAME(free)(NULL);
        while (used > (round % 100 == 0))
            release(blocks[--used]);
    }
    return unused;
}

int main(void)
{
    work(NULL);
    pthread_t threads[THREADS];
    for (int number = 0; number < THREADS; number++)
        pthread_create(&threads[number], NULL, work, NULL);
    for (int number = 0; number < THREADS; number++)
        pthread_join(threads[number], NULL);
    /* printf might allocate a block, which would count if the linked-in allocator is malloc itself. */
    char line[100];
    int length = snprintf(line, sizeof line, "%ld %ld\n", given, freed);
    if (write(1, line, length) != length)
        return 1;
    given = freed = 0;
    pid_t child = fork();
    if (child == 0) {
        work(NULL);
        length = snprintf(line, sizeof line, "%ld %ld\n", given, freed);
        return write(1, line, length) == length ? 7 : 1;
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
