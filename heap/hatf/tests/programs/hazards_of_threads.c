/* Does what can disturb a recorder inside of a program with threads, signals or few privileges. Compiled by tests/it/hazards.rs.
 * The argument selects the hazard. Unless something went wrong, a hazard ends with status 7 and prints the number of its blocks of
 * size 7777. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static atomic_int given;

/* Allocates blocks that are counted. */
static void blocks(int count) {
    for (int n = 0; n < count; n++) {
        errno = 77;
        void *volatile block = malloc(7777);
        free(block);
        if (errno != 77) _exit(9);
        given++;
    }
}

/* Cancels threads that wait and allocate. */
static void cleanup(void *unused) {
    (void)unused;
    blocks(1);
}

static void *waits(void *unused) {
    pthread_cleanup_push(cleanup, NULL);
    for (;;) {
        blocks(1);
        pthread_testcancel();
        usleep(100);
    }
    pthread_cleanup_pop(1);
    return unused;
}

static void cancelled(void) {
    for (int n = 0; n < 50; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, waits, NULL);
        usleep(n * 20);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
}

/* Allocates in four rounds of destructors of thread-specific data, also in a thread that ends by pthread_exit. */
static pthread_key_t key;

static void destroy(void *round) {
    blocks(1);
    if ((uintptr_t)round < 4) pthread_setspecific(key, (void *)((uintptr_t)round + 1));
}

static void *ends(void *how) {
    pthread_setspecific(key, (void *)1);
    blocks(1);
    if (how) pthread_exit(NULL);
    return NULL;
}

static void destructors(void) {
    pthread_key_create(&key, destroy);
    for (uintptr_t n = 0; n < 20; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, ends, (void *)(n % 2));
        pthread_join(thread, NULL);
    }
}

/* Starts many detached threads, many of which run simultaneously. */
static atomic_int running;

static void *one(void *unused) {
    blocks(1);
    running--;
    return unused;
}

static void threads(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    for (int n = 0; n < 1000; n++) {
        pthread_t thread;
        running++;
        while (pthread_create(&thread, &small, one, NULL) != 0) usleep(1000);
    }
    while (running > 0) usleep(1000);
}

/* Uses a page far down in a 512 MiB stack. */
static void *deep(void *unused) {
    volatile char hole[256 << 20];
    hole[0] = 1;
    blocks(10);
    (void)hole;
    return unused;
}

static void huge(void) {
    pthread_attr_t large;
    pthread_t thread;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, 512 << 20);
    if (pthread_create(&thread, &large, deep, NULL) != 0) _exit(8);
    pthread_join(thread, NULL);
}

/* Allocates in a signal handler with its own stack. */
static void on_alarm(int number) {
    (void)number;
    int kept = errno;
    blocks(1);
    errno = kept;
}

static void alternate(void) {
    static char memory[64 << 10];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    /* The signals arrive outside of malloc. Inside of it, a handler must not allocate, with or without a recorder. */
    setitimer(ITIMER_REAL, &often, NULL);
    for (int n = 0; n < 20; n++) pause();
    setitimer(ITIMER_REAL, &never, NULL);
}

/* Allocates in a coroutine on its own stack. */
static ucontext_t loop, routine;

static void coroutine(void) {
    for (;;) {
        blocks(1);
        swapcontext(&routine, &loop);
    }
}

static void coroutines(void) {
    getcontext(&routine);
    routine.uc_stack.ss_sp = malloc(64 << 10);
    routine.uc_stack.ss_size = 64 << 10;
    makecontext(&routine, coroutine, 0);
    for (int n = 0; n < 50; n++) swapcontext(&loop, &routine);
}

/* Creates a child by a raw system call, unnoticed by any library. Blocks of the child do not count. */
static void raw_clone(void) {
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        for (int n = 0; n < 100; n++) {
            void *volatile block = malloc(100);
            free(block);
        }
        syscall(SYS_exit_group, 0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) _exit(8);
}

/* Makes the process undumpable and, if permitted, changes its user. */
static void dumpable(void) {
    prctl(PR_SET_DUMPABLE, 0);
    blocks(100);
    if (setgid(65534) == 0 && setuid(65534) != 0) _exit(8);
}

/* Installs a filter that makes openat, gettid, kill and futex fail. */
static void filtered(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(8);
    blocks(20000);
}

/* Installs a filter that kills the program at any system call not needed by malloc, threads, child processes or the exit. */
static void *confined_thread(void *unused) {
    (void)unused;
    blocks(10000);
    return NULL;
}

static void confined(void) {
    static const int allowed[] = {SYS_write, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex, SYS_exit,
        SYS_exit_group, SYS_clone, SYS_clone3, SYS_rt_sigprocmask, SYS_set_robust_list, SYS_rseq, SYS_getrandom, SYS_fstat,
        SYS_newfstatat, SYS_wait4, SYS_vfork, SYS_rt_sigaction};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter rules[ALLOWED + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int n = 0; n < ALLOWED; n++) {
        rules[n + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[n], ALLOWED - n, 0);
    }
    rules[ALLOWED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    rules[ALLOWED + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {ALLOWED + 3, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(8);
    blocks(20000);
    for (int n = 0; n < 3; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, confined_thread, NULL);
        pthread_join(thread, NULL);
    }
    int status = 0;
    pid_t child = vfork();
    if (child == 0) _exit(3);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3) _exit(8);
    child = fork();
    if (child == 0) {
        free(malloc(7777));
        _exit(4);
    }
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 4) _exit(8);
}

/* Installs a filter that kills the program at any system call that malloc does not make, such as one to block signals. Then allocates at
 * new call sites, on the main stack and on an unknown stack. */
__attribute__((noinline)) static void first(int depth);
__attribute__((noinline)) static void second(int depth);

static void first(int depth) {
    if (depth > 0) second(depth - 1);
    blocks(1);
    __asm__ volatile("");
}

static void second(int depth) {
    if (depth > 0) first(depth - 1);
    blocks(1);
    __asm__ volatile("");
}

static void on_a_stack(void) {
#ifdef __x86_64__
    char *end = (char *)aligned_alloc(4096, 64 << 10) + (64 << 10);
    __asm__ volatile(
        "movq %%rsp, %%r12\n\tmovq %0, %%rsp\n\tmovl $20, %%edi\n\tcall *%1\n\tmovq %%r12, %%rsp"
        :
        : "r"(end), "r"(first)
        : "r12", "rdi", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
#else
    first(20);
#endif
}

static void sealed(void) {
    static const int allowed[] = {SYS_write, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, SYS_exit_group, SYS_fstat,
        SYS_newfstatat};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter rules[ALLOWED + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int n = 0; n < ALLOWED; n++) {
        rules[n + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[n], ALLOWED - n, 0);
    }
    rules[ALLOWED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    rules[ALLOWED + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {ALLOWED + 3, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(8);
    first(20);
    on_a_stack();
    blocks(20000);
}

/* Limits its address space while a thread allocates, and then allocates nearly up to the limit. */
static void limited(void) {
    pthread_t thread;
    int before = given;
    pthread_create(&thread, NULL, confined_thread, NULL);
    while (given == before) sched_yield();
    struct rlimit limit = {400 << 20, 400 << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(8);
    void *large[200];
    for (int n = 0; n < 200; n++) {
        large[n] = malloc(1 << 20);
        if (!large[n]) _exit(5);
    }
    pthread_join(thread, NULL);
    blocks(50000);
    for (int n = 0; n < 200; n++) free(large[n]);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(7777));
        _exit(4);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 4) _exit(8);
}

/* Allocates before and after main. */
static int early;

__attribute__((constructor)) static void before_main(void) {
    blocks(3);
    early = given;
}

__attribute__((destructor)) static void after_main(void) { blocks(4); }

static void at_exit(void) { blocks(5); }

int main(int count, char **arguments) {
    const char *hazard = count > 1 ? arguments[1] : "";
    static const struct {
        const char *name;
        void (*run)(void);
    } hazards[] = {
        {"cancelled", cancelled}, {"destructors", destructors}, {"threads", threads},   {"huge", huge},
        {"alternate", alternate}, {"coroutines", coroutines},   {"raw_clone", raw_clone}, {"dumpable", dumpable},
        {"filtered", filtered}, {"confined", confined}, {"sealed", sealed}, {"limited", limited},
    };
    if (early != 3) return 6;
    atexit(at_exit);
    for (size_t n = 0; n < sizeof hazards / sizeof *hazards; n++) {
        if (strcmp(hazard, hazards[n].name) == 0) hazards[n].run();
    }
    blocks(500);
    /* The other 9 blocks are allocated at exit. */
    printf("%d\n", given + 9);
    return 7;
}
