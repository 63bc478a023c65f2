/* Threads that allocate on request and check the contents of their blocks. Sizes end in 077, which distinguishes them from blocks of the
 * library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4

static pthread_barrier_t begin, end;
static long damaged;
static char *kept[THREADS];
static volatile int over;

static void check(const char *block, int size, int thread) {
    for (int i = 0; i < size; i++)
        if (block[i] != thread)
            __atomic_fetch_add(&damaged, 1, __ATOMIC_RELAXED);
}

static void work(int thread) {
    for (int i = 0; i < 100; i++) {
        char *block = malloc(1077);
        memset(block, thread, 1077);
        block = realloc(block, 2077);
        check(block, 1077, thread);
        memset(block, thread, 2077);
        if (kept[thread]) {
            check(kept[thread], 2077, thread);
            free(kept[thread]);
        }
        kept[thread] = block;
    }
}

static void *run(void *argument) {
    for (;;) {
        pthread_barrier_wait(&begin);
        if (over)
            return NULL;
        work((int)(long)argument);
        pthread_barrier_wait(&end);
    }
}

/* Works continuously, so that any event interrupts it. */
static void *run_always(void *argument) {
    int thread = (int)(long)argument;
    char *kept[8] = {0};
    for (unsigned n = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); n++) {
        char **block = &kept[n * 7 % 8];
        if (n % 32 == 0)
            usleep(200);
        if (*block) {
            if (**block != thread)
                __atomic_fetch_add(&damaged, 1, __ATOMIC_RELAXED);
            if (n % 3 == 0) {
                *block = realloc(*block, 1000 * (1 + n % 5) + 77);
                continue;
            }
            free(*block);
        }
        *block = malloc(1000 * (1 + n % 4) + 77);
        **block = (char)thread;
    }
    for (int n = 0; n < 8; n++)
        free(kept[n]);
    return NULL;
}

static int always(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_always, (void *)i);
    puts("ready");
    fflush(stdout);
    char line[80];
    while (fgets(line, sizeof line, stdin)) {
    }
    over = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld damaged\n", damaged);
    return 7;
}

int main(int count, char **arguments) {
    if (count > 2 && strcmp(arguments[1], "always") == 0)
        return always();
    pthread_t threads[THREADS];
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    void *module = NULL;
    char line[80];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "load\n") == 0) {
            module = dlopen(arguments[count - 1], RTLD_LAZY);
            puts(module ? "loaded" : "not loaded");
        } else if (strcmp(line, "plug\n") == 0) {
            void (*plug)(void) = (void (*)(void))dlsym(module, "plug");
            plug();
            puts("plugged");
        } else if (strcmp(line, "unload\n") == 0) {
            dlclose(module);
            puts("unloaded");
        } else {
            pthread_barrier_wait(&begin);
            pthread_barrier_wait(&end);
            free(malloc(3077));
            puts("done");
        }
        fflush(stdout);
    }
    over = 1;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        free(kept[i]);
    }
    printf("%ld damaged\n", damaged);
    return 7;
}
