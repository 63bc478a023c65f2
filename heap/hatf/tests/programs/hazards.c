/* Does what can disturb a recorder inside of the program. Compiled by tests/it/hazards.rs. The argument selects the hazard. Unless
 * something went wrong, a hazard ends with LAST blocks of size 7777 and status 7; `counts` ends with the number of signals. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST = 500 };

static void *volatile block;

static void many(int count) {
    for (int n = 0; n < count; n++) {
        free(block = malloc(32));
    }
}

static void last(void) {
    for (int n = 0; n < LAST; n++) {
        free(block = malloc(7777));
    }
}

static sigjmp_buf place;

static void jump(int number) {
    (void)number;
    siglongjmp(place, 1);
}

/* Jumps out of the code that the timer interrupts. For blocks of this size the allocator calls the system, so a jump cannot leave its
 * own data inconsistent. */
static void jumps(void) {
    static volatile int jumped;
    mallopt(M_MMAP_THRESHOLD, 65536);
    signal(SIGALRM, jump);
    while (jumped < 300) {
        if (sigsetjmp(place, 1) == 0) {
            struct itimerval once = {{0, 0}, {0, 30 + jumped % 17}};
            setitimer(ITIMER_REAL, &once, NULL);
            for (;;) {
                free(block = malloc(100000));
            }
        }
        jumped++;
    }
}

static void in_vfork(void) {
    int child = vfork();
    if (child == 0) {
        many(10000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void closed(void) {
    for (int number = 3; number < 1024; number++) {
        close(number);
    }
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    many(100000);
}

static void cleaned(char *self) {
    char *arguments[] = {self, "last", NULL}, *environment[] = {"A=1", NULL};
    execve("/proc/self/exe", arguments, environment);
}

static void strict(void) {
    prctl(PR_SET_SECCOMP, 1);
    last();
    syscall(SYS_exit, 7);
}

static volatile sig_atomic_t came;

static void note(int number) {
    (void)number;
    came++;
}

/* Returns the number of signals that arrive within 300 ms after the first one, which it includes. */
static int counts(void) {
    struct sigaction action = {.sa_handler = note};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    puts("ready");
    fflush(stdout);
    while (came == 0) {
        usleep(1000);
    }
    for (int n = 0; n < 300; n++) {
        usleep(1000);
    }
    return came;
}

int main(int count, char **arguments) {
    const char *hazard = count > 1 ? arguments[1] : "";
    many(1000);
    if (strcmp(hazard, "jumps") == 0) {
        jumps();
    } else if (strcmp(hazard, "vfork") == 0) {
        in_vfork();
    } else if (strcmp(hazard, "closed") == 0) {
        closed();
    } else if (strcmp(hazard, "chroot") == 0) {
        if (chroot("/proc/self/fdinfo") != 0 && errno != EPERM) {
            return 1;
        }
        many(100000);
    } else if (strcmp(hazard, "cleaned") == 0) {
        cleaned(arguments[0]);
        return 1;
    } else if (strcmp(hazard, "limited") == 0) {
        struct rlimit little = {64 << 20, 64 << 20};
        char *again[] = {arguments[0], "last", NULL};
        setrlimit(RLIMIT_AS, &little);
        execv("/proc/self/exe", again);
        return 1;
    } else if (strcmp(hazard, "counts") == 0) {
        return counts();
    } else if (strcmp(hazard, "strict") == 0) {
        strict();
    } else if (strcmp(hazard, "last") != 0) {
        return 2;
    }
    last();
    return 7;
}
