// Plants a heap for `hatf inspect`: blocks of all kinds in several threads, most of which are freed again. Writes the
// remaining blocks to a file, then prints the pages that it gave back during each command on standard input. The command
// f prints the ID of a forked child, which k kills.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

static int threads, keep_one_in, blocks, large;
static unsigned char **kept[MOST_THREADS];
static pthread_barrier_t barrier;

static unsigned random_of(unsigned *state) {
    *state = *state * 1103515245 + 12345;
    return *state >> 16;
}

static unsigned char *allocate(unsigned *state) {
    unsigned size = 1 + random_of(state) % 1200;
    void *block = NULL;
    switch (random_of(state) % 40) {
    case 0: return calloc(size, 3);
    case 1: return aligned_alloc(256, (size + 255) / 256 * 256);
    case 2: return realloc(malloc(size), 2 * size);
    case 3: return posix_memalign(&block, 4096, size) == 0 ? block : NULL;
    default: return malloc(size);
    }
}

static void *plant(void *argument) {
    long thread = (long)argument;
    unsigned state = 7 + thread;
    unsigned char **mine = kept[thread];
    for (int i = 0; i < blocks; i++) {
        mine[i] = allocate(&state);
        memset(mine[i], 1, malloc_usable_size(mine[i]));
    }
    for (int i = 0; i < large; i++) {
        size_t size = (150 + random_of(&state) % 500) << 10;
        if (i % 4 == 3) mine[blocks + i] = aligned_alloc(64 << (i % 9), size);
        else mine[blocks + i] = malloc(size);
        if (i % 3 == 2) mine[blocks + i] = realloc(mine[blocks + i], 3 * size);
        memset(mine[blocks + i], 1, size);
    }
    pthread_barrier_wait(&barrier);
    // Each thread frees the blocks of its neighbor.
    for (int i = 0; i < blocks + large; i++) {
        unsigned char **owner = kept[(thread + 1) % threads];
        if (random_of(&state) % keep_one_in == 0) continue;
        free(owner[i]);
        owner[i] = NULL;
    }
    pthread_barrier_wait(&barrier);
    if (thread != 0) pause();
    return NULL;
}

// Allocates and frees forever, and checks the content of the blocks.
static void *busy(void *argument) {
    unsigned state = (long)argument;
    unsigned char *mine[256] = {0};
    for (;;) {
        unsigned place = random_of(&state) % 256;
        if (mine[place] && *mine[place] != (unsigned char)place) abort();
        free(mine[place]);
        mine[place] = allocate(&state);
        *mine[place] = place;
    }
    return NULL;
}

static void start_busy(void) {
    for (long i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, busy, (void *)i);
    }
}

static long resident(void) {
    static char text[4096];
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    setvbuf(file, text, _IOFBF, sizeof text);
    if (fscanf(file, "%*d %ld", &pages) != 1) abort();
    fclose(file);
    return pages;
}

int main(int count, char **arguments) {
    if (count != 6) return 2;
    threads = atoi(arguments[2]);
    blocks = atoi(arguments[3]);
    keep_one_in = atoi(arguments[4]);
    large = atoi(arguments[5]);
    pthread_barrier_init(&barrier, NULL, threads);
    for (int i = 0; i < threads; i++) kept[i] = calloc(blocks + large, sizeof *kept[i]);
    for (long i = 1; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, plant, (void *)i);
    }
    plant(NULL);
    static char text[1 << 16], answer[4096];
    FILE *file = fopen(arguments[1], "w");
    setvbuf(file, text, _IOFBF, sizeof text);
    for (int thread = 0; thread < threads; thread++) {
        fprintf(file, "%lu %zu\n", (unsigned long)kept[thread], malloc_usable_size(kept[thread]));
        for (int i = 0; i < blocks + large; i++)
            if (kept[thread][i])
                fprintf(file, "%lu %zu\n", (unsigned long)kept[thread][i], malloc_usable_size(kept[thread][i]));
    }
    fclose(file);
    setvbuf(stdout, answer, _IOLBF, sizeof answer);
    resident();
    printf("ready %d\n", getpid());
    char line[64];
    pid_t child = -1;
    for (;;) {
        ssize_t length = read(0, line, sizeof line);
        if (length <= 0) return 0;
        long before = resident();
        if (line[0] == 't') malloc_trim(0);
        if (line[0] == 'b') start_busy();
        // Overwrites the size of a block.
        if (line[0] == 'c') ((uint64_t *)kept[0])[-1] ^= 0x1230;
        if (line[0] == 'x') execl("/bin/sleep", "sleep", "100", (char *)NULL);
        if (line[0] == 'f') {
            child = fork();
            if (child == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;) pause();
            }
        }
        if (line[0] == 'k') {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
        }
        printf("%ld\n", line[0] == 'f' ? (long)child : before - resident());
    }
}
