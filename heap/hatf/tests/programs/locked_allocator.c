/* A linked-in allocator whose lock the main thread holds nearly always, sleeping or computing. Another thread loads and unloads a library
 * and counts that in a file. No thread ever waits for anything else. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char heap[256 << 20] __attribute__((aligned(64)));
static size_t used;
static volatile int slow;
static volatile long work;
static __thread int is_main;

void *malloc(size_t bytes) {
    pthread_mutex_lock(&lock);
    if (is_main && slow)
        usleep(2000);
    else if (is_main)
        for (int i = 0; i < 100000; i++)
            work++;
    bytes = (bytes + 31) & ~(size_t)15;
    if (used + bytes > sizeof heap)
        used = sizeof heap / 2;
    char *block = heap + used;
    used += bytes;
    *(size_t *)block = bytes - 16;
    pthread_mutex_unlock(&lock);
    /* Yield instead of sleeping without the lock. */
    for (int i = 0; is_main && i < 20; i++)
        sched_yield();
    return block + 16;
}

void free(void *block) {
    (void)block;
}

void *calloc(size_t count, size_t size) {
    void *block = malloc(count * size);
    memset(block, 0, count * size);
    return block;
}

void *realloc(void *old, size_t size) {
    void *block = malloc(size);
    if (old) {
        size_t had = ((size_t *)old)[-2];
        memcpy(block, old, had < size ? had : size);
    }
    return block;
}

static void *load(void *argument) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    for (;;) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        if (!library)
            return NULL;
        dlclose(library);
        __atomic_fetch_add((long *)argument, 1, __ATOMIC_RELAXED);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 200000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        /* A wait during which a thread might hold a lock. */
        pthread_mutex_lock(&mutex);
        pthread_cond_timedwait(&never, &mutex, &until);
        pthread_mutex_unlock(&mutex);
    }
}

int main(int count, char **arguments) {
    if (count < 3)
        return 1;
    slow = strcmp(arguments[1], "sleeps") == 0;
    int file = open(arguments[2], O_RDWR);
    long *loads = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (loads == MAP_FAILED)
        return 1;
    pthread_t loader;
    pthread_create(&loader, NULL, load, loads);
    is_main = 1;
    for (;;)
        free(malloc(100));
}
