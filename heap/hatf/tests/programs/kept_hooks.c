/* Threads call malloc by an address that the program keeps, and free directly. Another thread mostly holds the dynamic linker's lock. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4

typedef void *allocate(size_t);
/* The dynamic linker does not fill in this variable. */
static allocate *volatile kept;
static volatile int over;

static void *run(void *argument) {
    for (unsigned n = 0; !over; n++) {
        char *block = kept(1077);
        *(volatile char *)block = 1;
        free(realloc(block, 2077));
        if (n % 16 == 0)
            usleep(200);
    }
    return argument;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    usleep(500);
    return 0;
}

static void *lock(void *argument) {
    while (!over) {
        dl_iterate_phdr(visit, NULL);
        usleep(500);
    }
    return argument;
}

/* Reads the functions' addresses from the dynamic linker's table. */
__attribute__((noinline)) static void addresses(void *found[3]) {
    found[0] = (void *)malloc;
    found[1] = (void *)realloc;
    found[2] = (void *)free;
}

int main(void) {
    void *at_first[3], *now[3];
    addresses(at_first);
    kept = (allocate *)at_first[0];
    pthread_t threads[THREADS + 1];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    pthread_create(&threads[THREADS], NULL, lock, NULL);
    char line[80];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        addresses(now);
        if (strcmp(line, "keep\n") == 0) {
            kept = (allocate *)now[0];
            puts(now[0] == at_first[0] ? "not a hook" : "a hook");
        } else {
            int hooks = 0;
            for (int i = 0; i < 3; i++)
                hooks += now[i] != at_first[i];
            printf("%d hooks\n", hooks);
        }
        fflush(stdout);
    }
    over = 1;
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("0 damaged");
    return 7;
}
