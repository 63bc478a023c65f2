/* Requests pages from the system and names threads in every possible way. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_barrier_t named;

static void *named_by_others(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&named);
    free(malloc(11));
    return NULL;
}

static void *names_itself(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "by prctl");
    free(malloc(12));
    return NULL;
}

int main(void)
{
    pthread_t one, other;
    pthread_barrier_init(&named, NULL, 2);
    pthread_create(&one, NULL, named_by_others, NULL);
    pthread_setname_np(one, "by another");
    pthread_barrier_wait(&named);
    pthread_create(&other, NULL, names_itself, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    pthread_setname_np(pthread_self(), "the first");

    size_t length = 8 << 20;
    char *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 1, length);
    /* Long enough for the recorder to read the kernel's numbers twice. */
    usleep(50000);
    if (madvise(pages, length / 2, MADV_DONTNEED) != 0)
        return 1;
    pages = mremap(pages, length, 2 * length, MREMAP_MAYMOVE);
    if (pages == MAP_FAILED)
        return 1;
    munmap(pages, 2 * length);
    if (sbrk(12288) == (void *)-1)
        return 1;
    /* Errors are passed on. */
    if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return 1;
    /* A block of the C library. */
    char *block = malloc(100);
    printf("%zu\n", (size_t)((uintptr_t)block % 16));
    return 7;
}
