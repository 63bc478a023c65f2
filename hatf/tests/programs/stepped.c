// Has something come between each two instructions of the recorder in a call: a signal whose handler allocates, a fork, or a kill.
//
//   stepped signal|fork|kill malloc|realloc|deep STRIDE
//
// A child of this program calls, and is single-stepped by it: to the first instruction in the first round, and STRIDE instructions further in each of the
// next. Instructions of the C library do not count, as most of its functions must not be interrupted by one that allocates.
// Prints how many rounds there were. Status 77: this system does not let a process trace its child.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
    volatile int inside;
    volatile int failed;
} *shared;

static volatile int is_child;
static void *block;

static void fail(const char *what) {
    if (write(2, what, strlen(what)) < 0) _exit(9);
    shared->failed = 1;
    _exit(9);
}

__attribute__((noinline)) static void *at_depth(int depth, size_t size) {
    void *made = depth > 0 ? at_depth(depth - 1, size) : malloc(size);
    __asm__ volatile("" : "+r"(made));
    return made;
}

static void by_malloc(void) {
    block = malloc(100);
    free(block);
}
static void by_realloc(void) {
    block = realloc(block, 200);
    block = realloc(block, 3000);
}
// Other stacks than those that were walked last, so that each is walked.
static void by_deep(void) {
    static int depth;
    block = at_depth(depth++ % 40, 100);
    free(block);
}

static void use(int size) {
    unsigned char *some[3];
    for (int n = 0; n < 3; n++) {
        some[n] = at_depth(n, size + n);
        if (!some[n]) fail("no memory\n");
        memset(some[n], n + 1, size + n);
    }
    some[1] = realloc(some[1], 5000);
    for (int n = 0; n < 3; n++) {
        for (int at = 0; at < size + n; at++)
            if (some[n][at] != n + 1) fail("a block was changed\n");
        free(some[n]);
    }
}

static void on_signal(int signal) {
    (void)signal;
    int before = errno;
    use(300);
    if (errno != before) fail("errno was changed\n");
}

static void on_fork(int signal) {
    (void)signal;
    pid_t child = fork();
    if (child == 0) {
        is_child = 1;
        alarm(60);
        use(500);
        return;
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0) fail("a forked child did not end well\n");
}

static void calls(void (*call)(void)) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_fork;
    sigaction(SIGUSR2, &action, NULL);
    for (int n = 0; n < 50; n++) call();
    use(100);
    for (;;) {
        raise(SIGSTOP);
        shared->inside = 1;
        call();
        shared->inside = 0;
        if (is_child) {
            use(600);
            _exit(0);
        }
        use(700);
    }
}

// Goes on to the next stop, and passes on signals that are not ours.
static int next_stop(pid_t child, int signal) {
    int status;
    for (;;) {
        if (ptrace(PTRACE_CONT, child, NULL, signal) != 0 || waitpid(child, &status, 0) != child) return -1;
        if (!WIFSTOPPED(status)) return -1;
        signal = WSTOPSIG(status);
        if (signal == SIGSTOP) return 0;
    }
}

// The recorder's code.
static unsigned long code_start, code_end;
static int find_code(void) {
    unsigned long function = (unsigned long)dlsym(RTLD_DEFAULT, "hatf_recorder_functions");
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1000];
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx", &code_start, &code_end) == 2 && code_start <= function && function < code_end) {
            fclose(maps);
            return 1;
        }
    }
    return 0;
}

// Steps to an instruction of the recorder in the call; 0 if the call is over before. Signals are not what comes in between, but the end of a step.
static int step_to(pid_t child, long instruction) {
    int status;
    for (long done = 0; done <= instruction;) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child) return -1;
        if (!WIFSTOPPED(status)) return -1;
        unsigned long at = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), NULL);
        if (shared->inside)
            done += at >= code_start && at < code_end;
        else if (done > 0)
            return 0;
    }
    return 1;
}

static pid_t start(void (*call)(void)) {
    pid_t child = fork();
    if (child == 0) calls(call);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(8);
    if (WIFEXITED(status)) exit(WEXITSTATUS(status));
    return child;
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    void (*call)(void) = !strcmp(arguments[2], "malloc") ? by_malloc : !strcmp(arguments[2], "realloc") ? by_realloc : by_deep;
    long stride = atol(arguments[3]), rounds = 0;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !find_code()) return 8;
    int kills = !strcmp(arguments[1], "kill"), signal = !strcmp(arguments[1], "fork") ? SIGUSR2 : SIGUSR1;
    pid_t child = start(call);
    for (long instruction = 0;; instruction += stride) {
        int found = step_to(child, instruction);
        if (found < 0) fail("the child ended while it was stepped\n");
        if (found == 0) break;
        rounds++;
        if (kills) {
            kill(child, SIGKILL);
            while (waitpid(child, NULL, 0) == child) {}
            shared->inside = 0;
            child = start(call);
        } else if (next_stop(child, signal) != 0) {
            fail("the child did not go on\n");
        }
    }
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) == child) {}
    printf("%ld rounds\n", rounds);
    return shared->failed;
}
