/* Forks in a SIGALRM handler while the main thread allocates: the child inherits an unfinished recorder call.
 * Compiled by tests/it/fork_in_handler.rs. Arguments: `fork` or `_Fork`, and the number of children.
 *
 * A child returns from the handler, finishes that call, and allocates blocks of a different size. The parent allocates
 * and frees blocks of PARENT_SIZE until all children have ended, and prints the number of blocks. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARENT_SIZE = 100, CHILD_SIZE = 3000001, CHILD_BLOCKS = 20, MICROSECONDS = 20 };

extern pid_t _Fork(void) __attribute__((weak));

static pid_t (*forks)(void);
static volatile sig_atomic_t children, wanted, in_child;

/* Arms the timer for a single signal, so that the next one arrives after this handler has returned. */
static void arm(void) {
    /* The delay varies, so that the signal can arrive at any instruction of the loop. */
    static int step;
    struct itimerval once = {{0, 0}, {0, MICROSECONDS + step++ % 13}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void handler(int number) {
    int saved = errno;
    (void)number;
    pid_t child = forks();
    if (child == 0) {
        in_child = 1;
    } else if (++children < wanted) {
        arm();
    }
    errno = saved;
}

static void *volatile block;

static int run_child(void) {
    for (int n = 0; n < CHILD_BLOCKS; n++) {
        free(block = malloc(CHILD_SIZE));
        if (block == NULL) {
            return 9;
        }
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count != 3) {
        return 2;
    }
    forks = strcmp(arguments[1], "_Fork") == 0 ? _Fork : fork;
    if (forks == NULL) {
        return 77; /* This C library has no _Fork. */
    }
    wanted = atoi(arguments[2]);
    signal(SIGALRM, handler);
    long blocks = 0;
    int failed = 0, ended = 0;
    arm();
    while (ended < wanted) {
        for (int n = 0; n < 100; n++, blocks++) {
            free(block = malloc(PARENT_SIZE));
            if (in_child) {
                _exit(run_child());
            }
        }
        int status;
        /* Wait for the remaining children. */
        while (waitpid(-1, &status, children < wanted ? WNOHANG : 0) > 0) {
            ended++;
            if (status != 0) {
                failed++;
            }
        }
    }
    fprintf(stderr, "%ld blocks, %d children failed\n", blocks, failed);
    return failed == 0 ? 0 : 1;
}
