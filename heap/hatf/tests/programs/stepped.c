// Interrupts a call between every two recorder instructions by a signal whose handler allocates, by a fork, or by a kill.
//
//   stepped signal|fork|kill CALL STRIDE
//
// A child makes the call, and this program single-steps it: to the first instruction in the first round, and STRIDE instructions further in
// each following round. CALL is a name of CALLS, below. C library instructions do not count, because a handler that allocates must not interrupt most of its functions.
// Each instruction of a loop counts at most four times. If the call creates a thread or a process, stepping continues there until it
// has ended: a forked process starts its own recording and ends by `_exit`. Prints the number of rounds. Status 77 means that this system does not let a process trace its
// child.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
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

static volatile int is_child, kills;
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
// Calls with a different stack each time, so that the recorder has to walk it.
static void by_deep(void) {
    static int depth;
    block = at_depth(depth++ % 40, 100);
    free(block);
}

// Executes a missing program with more variables than the recorder can store on the stack.
static void by_exec(void) {
    static char *many[100];
    for (int n = 0; n < 99; n++) many[n] = "A=1";
    if (execve("/nowhere/to/be/found", (char *[]){"nobody", NULL}, many) != -1 || errno != ENOENT) fail("exec failed otherwise\n");
}
static void by_fork(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0 && !(kills && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) fail("the child of the call did not end well\n");
}

static void by_map(void) {
    block = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(block, 4096, MADV_DONTNEED);
    munmap(block, 8192);
}
static void by_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        execve("/nowhere/to/be/found", (char *[]){"nobody", NULL}, (char *[]){NULL});
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
}
static void by_spawn(void) {
    pid_t child;
    int error = posix_spawn(&child, "/nowhere/to/be/found", NULL, NULL, (char *[]){"nobody", NULL}, environ);
    // Nobody sees whether a process that was killed would have executed another program.
    if (error == 0 && kills)
        waitpid(child, NULL, 0);
    else if (error != ENOENT)
        fail("spawn failed otherwise\n");
}
static void *in_thread(void *argument) {
    free(malloc(100));
    return argument;
}
static void by_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0) fail("no thread\n");
}
static void by_unload(void) {
    void *library = dlopen("libanl.so.1", RTLD_NOW);
    if (!library || dlclose(library) != 0) fail("no library\n");
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
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_fork;
    sigaction(SIGUSR2, &action, NULL);
    for (int n = 0; n < (call == by_fork ? 2 : 50); n++) call();
    use(100);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
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

// Returns the process or thread that `child` has created if that caused this stop, and -1 otherwise.
static pid_t made_by(pid_t child, int status) {
    unsigned long made;
    int of_made;
    int event = status >> 16;
    if (event != PTRACE_EVENT_FORK && event != PTRACE_EVENT_CLONE && event != PTRACE_EVENT_VFORK) return -1;
    if (ptrace(PTRACE_GETEVENTMSG, child, NULL, &made) != 0 || waitpid(made, &of_made, __WALL) != (pid_t)made) return -1;
    return made;
}

// Waits until a child stops itself to report that it is ready. Passes on any other signals.
static int ready(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        pid_t made = made_by(child, status);
        int signal = WSTOPSIG(status);
        if (signal == SIGSTOP) return 0;
        if (made > 0) {
            ptrace(PTRACE_DETACH, made, NULL, NULL);
            signal = 0;
        }
        if (ptrace(PTRACE_CONT, child, NULL, signal) != 0) break;
    }
    return -1;
}

// The address range of the recorder's code.
enum { CODE = 1 << 20 };
static unsigned long code_start, code_end;
static int find_code(void) {
    unsigned long function = (unsigned long)dlsym(RTLD_DEFAULT, "hatf_recorder_functions");
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1000];
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx", &code_start, &code_end) == 2 && code_start <= function && function < code_end &&
            code_end - code_start <= CODE) {
            fclose(maps);
            return 1;
        }
    }
    return 0;
}

// Steps to a recorder instruction in the call. Returns 0 if the call returns earlier, and -1 if the child ended. `stepped` is the child,
// and later the process or thread that it creates.
static int step_to(pid_t child, long instruction, pid_t *stepped) {
    // The number of times that each instruction was reached.
    static unsigned char seen[CODE];
    int status;
    memset(seen, 0, sizeof seen);
    *stepped = child;
    for (long done = 0; done <= instruction;) {
        if (ptrace(PTRACE_SINGLESTEP, *stepped, NULL, NULL) != 0 || waitpid(*stepped, &status, __WALL) != *stepped) return -1;
        if (*stepped != child && WIFEXITED(status)) return 0;
        if (!WIFSTOPPED(status)) return -1;
        pid_t made = made_by(*stepped, status);
        if (made > 0) {
            if (ptrace(PTRACE_CONT, child, NULL, NULL) != 0) return -1;
            *stepped = made;
            continue;
        }
        unsigned long at = ptrace(PTRACE_PEEKUSER, *stepped, offsetof(struct user_regs_struct, rip), NULL);
        if (shared->inside)
            done += at >= code_start && at < code_end && seen[at - code_start] < 4 && ++seen[at - code_start];
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
    // A child of `vfork` may be killed at any time, but its handlers may not allocate.
    long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE | (kills ? PTRACE_O_TRACEVFORK : 0);
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0) exit(8);
    return child;
}

static void end(pid_t process) {
    kill(process, SIGKILL);
    while (waitpid(process, NULL, __WALL) == process) {}
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    static const struct {
        const char *name;
        void (*call)(void);
    } CALLS[] = {
        {"malloc", by_malloc}, {"realloc", by_realloc}, {"deep", by_deep}, {"map", by_map}, {"exec", by_exec}, {"fork", by_fork},
        {"vfork", by_vfork}, {"spawn", by_spawn}, {"thread", by_thread}, {"unload", by_unload},
    };
    void (*call)(void) = NULL;
    for (size_t n = 0; n < sizeof CALLS / sizeof *CALLS; n++)
        if (!strcmp(arguments[2], CALLS[n].name)) call = CALLS[n].call;
    long stride = atol(arguments[3]), rounds = 0;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!call || stride < 1 || shared == MAP_FAILED || !find_code()) return 8;
    kills = !strcmp(arguments[1], "kill");
    int signal = !strcmp(arguments[1], "fork") ? SIGUSR2 : SIGUSR1;
    pid_t child = start(call), stepped;
    for (long instruction = 0;; instruction += stride) {
        int found = step_to(child, instruction, &stepped);
        if (found < 0) fail("the child ended while it was stepped\n");
        if (found == 0) break;
        rounds++;
        if (kills && stepped == child) {
            end(child);
            shared->inside = 0;
            child = start(call);
            continue;
        }
        if (kills)
            end(stepped);
        else if (ptrace(stepped == child ? PTRACE_CONT : PTRACE_DETACH, stepped, NULL, signal) != 0)
            fail("the process could not go on\n");
        if (ready(child) != 0) fail("the child did not go on\n");
    }
    end(child);
    printf("%ld rounds\n", rounds);
    return shared->failed;
}
