/* Sleeps most of the time. Each process allocates blocks of a different size. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile block;

static void allocate(int size) {
    block = malloc(size);
    free(block);
}

/* Allocates `count` times, with random pauses of at most `longest` milliseconds. */
static void work(int size, int count, int longest, unsigned seed) {
    for (int i = 0; i < count; i++) {
        allocate(size);
        usleep(rand_r(&seed) % (longest * 1000));
    }
}

/* children, allocations of each process, longest pause in milliseconds, seed */
int main(int count, char **arguments) {
    if (count < 5) return 1;
    int children = atoi(arguments[1]), allocations = atoi(arguments[2]), longest = atoi(arguments[3]);
    unsigned seed = (unsigned)atoi(arguments[4]);
    for (int child = 1; child <= children; child++) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            work(7000 + child, allocations, longest, seed + (unsigned)child);
            if (longest == 1) pause();
            _exit(child);
        }
    }
    work(7000, allocations, longest, seed);
    printf("quiet\n");
    fflush(stdout);
    /* With pauses of at most 1 ms, each process then sleeps until it is killed. */
    if (longest == 1) pause();
    while (wait(NULL) > 0) {}
    return 0;
}
