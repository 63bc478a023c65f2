// Allocates blocks on one CPU and frees them on another. Prints the number of blocks, or "one" if there is only one CPU.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 100 };
static void *blocks[BLOCKS];
static int processors[2];

static void run_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) abort();
    while (sched_getcpu() != processor) sched_yield();
}

static void *other_thread(void *unused) {
    run_on(processors[1]);
    for (int n = 0; n < BLOCKS; n++) free(malloc(8002));
    run_on(processors[0]);
    return unused;
}

int main(void) {
    cpu_set_t set;
    int found = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (int n = 0; n < CPU_SETSIZE && found < 2; n++) {
        if (CPU_ISSET(n, &set)) processors[found++] = n;
    }
    if (found < 2) {
        puts("one");
        return 0;
    }
    run_on(processors[0]);
    for (int n = 0; n < BLOCKS; n++) blocks[n] = malloc(8001);
    run_on(processors[1]);
    for (int n = 0; n < BLOCKS; n++) free(blocks[n]);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    printf("%d\n", BLOCKS);
    return 0;
}
