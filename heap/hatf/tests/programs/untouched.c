/* Ends blocks of which a tenth was touched, in the way that the argument names, and exits with status 7. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4000000, LARGE = 100000 };

__attribute__((noinline)) static char *reserve(size_t bytes) {
    char *block = malloc(bytes);
    memset(block, 1, bytes / 10);
    return block;
}

/* Ends a block, which must leave errno as it is. */
static void release(char *block) {
    errno = EPERM;
    free(block);
    if (errno != EPERM) _exit(8);
}

static void *many(void *unused) {
    (void)unused;
    for (int n = 0; n < 1000; n++) release(reserve(LARGE));
    return NULL;
}

static volatile sig_atomic_t handled;

static void handler(int signal) {
    (void)signal;
    int before = errno;
    release(reserve(LARGE));
    errno = before;
    handled++;
}

/* Interrupts allocations of small blocks, whose handlers do not run inside malloc. */
static void in_handlers(void) {
    signal(SIGUSR1, handler);
    for (int n = 0; n < 1000; n++) raise(SIGUSR1);
    /* The stack of a handler may be small. */
    static char stack[16384];
    stack_t small = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&small, NULL) != 0 || sigaction(SIGUSR2, &action, NULL) != 0) _exit(8);
    for (int n = 0; n < 1000; n++) raise(SIGUSR2);
    if (handled != 2000) _exit(8);
}

/* A filter that kills the program at a call of mincore. */
static void confined(void) {
    release(reserve(BYTES));
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mincore, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(8);
    release(reserve(BYTES));
    reserve(BYTES);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    if (strcmp(what, "free") == 0) release(reserve(BYTES));
    if (strcmp(what, "small") == 0) release(reserve(65535));
    if (strcmp(what, "realloc") == 0) release(realloc(reserve(BYTES / 2), BYTES));
    if (strcmp(what, "exit") == 0) reserve(BYTES);
    if (strcmp(what, "exec") == 0) {
        reserve(BYTES);
        execl("/proc/self/exe", arguments[0], "small", NULL);
    }
    if (strcmp(what, "handlers") == 0) in_handlers();
    if (strcmp(what, "confined") == 0) confined();
    if (strcmp(what, "threads") == 0) {
        pthread_t threads[4];
        for (int n = 0; n < 4; n++) pthread_create(&threads[n], NULL, many, NULL);
        for (int n = 0; n < 4; n++) pthread_join(threads[n], NULL);
    }
    if (strcmp(what, "child") == 0) {
        char *block = reserve(BYTES);
        if (fork() == 0) {
            release(block);
            _exit(0);
        }
        wait(NULL);
    }
    return 7;
}
