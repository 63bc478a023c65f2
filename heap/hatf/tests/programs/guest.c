// Calls one function of each kind that the recorder hooks in situations with little stack: on a thread stack of 16 KiB, in a handler on a small
// alternate stack, in a forked child while another thread is in the loader, in a child of vfork, and at the end of a thread.
//
// Prints the stack bytes used by each call, as `CIRCUMSTANCE: FUNCTION: BYTES`. If a call never returns, SIGALRM kills the program. If a
// call writes below the stack, the exit status is 3.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PAINT = 0xc3, SMALL = 16 << 10, BELOW = 256 << 10, HANG = 60 };

static char *const NOBODY[] = {"nobody", NULL};
static const char *const NOWHERE = "/nowhere/to/be/found";
static volatile int sink;

static void *idle(void *argument) { return argument; }

static void by_malloc(void) { free(realloc(malloc(100), 3000)); }
static void by_calloc(void) { free(calloc(3, 50)); }
static void by_aligned(void) {
    void *block = NULL;
    if (posix_memalign(&block, 64, 100) == 0) free(block);
    free(aligned_alloc(64, 128));
}
static void by_mmap(void) {
    void *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 4096, MADV_DONTNEED);
    munmap(pages, 8192);
}
static void by_mremap(void) {
    void *pages = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages = mremap(pages, 4096, 8192, MREMAP_MAYMOVE);
    munmap(pages, 8192);
}
static void by_sbrk(void) {
    sbrk(4096);
    sbrk(-4096);
}
static void by_mlockall(void) {
    if (mlockall(MCL_CURRENT) == 0) munlockall();
}
static void by_fork(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
}
static void by_Fork(void) {
    pid_t child = _Fork();
    if (child == 0) _exit(0);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
}
static void by_execve(void) { sink = execve(NOWHERE, NOBODY, environ); }
static void by_execve_long(void) {
    static char *many[800];
    for (int n = 0; n < 799; n++) many[n] = "A=1";
    sink = execve(NOWHERE, NOBODY, many);
}
static void by_execv(void) { sink = execv(NOWHERE, NOBODY); }
static void by_execl(void) { sink = execl(NOWHERE, "nobody", (char *)NULL); }
static void by_execlp(void) { sink = execlp(NOWHERE, "nobody", (char *)NULL); }
static void by_execvp(void) { sink = execvp(NOWHERE, NOBODY); }
static void by_execvpe(void) { sink = execvpe(NOWHERE, NOBODY, environ); }
static void by_fexecve(void) { sink = fexecve(-1, NOBODY, environ); }
static void by_posix_spawn(void) {
    pid_t child;
    sink = posix_spawn(&child, NOWHERE, NULL, NULL, NOBODY, environ);
}
static void by_posix_spawnp(void) {
    pid_t child;
    sink = posix_spawnp(&child, NOWHERE, NULL, NULL, NOBODY, environ);
}
static void by_system(void) { sink = system(":"); }
static void by_popen(void) {
    FILE *file = popen(":", "r");
    if (file) pclose(file);
}
static void by_vfork(void) {
    pid_t child = vfork();
    if (child == 0) _exit(0);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
}
static void by_setrlimit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    setrlimit(RLIMIT_CORE, &limit);
}
static void by_prlimit(void) {
    struct rlimit limit;
    prlimit(0, RLIMIT_CORE, NULL, &limit);
    prlimit(0, RLIMIT_CORE, &limit, NULL);
}
static void by_prctl(void) { prctl(PR_SET_NAME, "guest"); }
static void by_pthread_setname(void) { pthread_setname_np(pthread_self(), "guest"); }
static void by_longjmp(void) {
    jmp_buf place;
    if (setjmp(place) == 0) longjmp(place, 1);
}
static void by_pthread_create(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, idle, NULL) == 0) pthread_join(thread, NULL);
}
static void by_dlopen(void) {
    void *library = dlopen("libanl.so.1", RTLD_NOW);
    if (library) dlclose(library);
}
static void by_dlsym(void) { sink = dlsym(RTLD_DEFAULT, "nothing_of_this_name") != NULL; }
static void (*mark)(const char *), (*phase_begin)(const char *), (*phase_end)(const char *);
static void by_mark(void) {
    if (mark) mark("a mark of a few characters");
}

static void by_phase(void) {
    if (phase_begin) phase_begin("a phase");
    if (phase_end) phase_end("a phase");
}

// Bits: 1 for functions that a handler may call, 2 for those that a child of vfork may call, and 4 for those that take the loader's locks.
static const struct {
    const char *name;
    void (*call)(void);
    int allowed;
} HOOKS[] = {
    {"malloc", by_malloc, 1},     {"calloc", by_calloc, 1},         {"aligned", by_aligned, 1},
    {"mmap", by_mmap, 1},         {"fork", by_fork, 1},             {"_Fork", by_Fork, 1},
    {"vfork", by_vfork, 1},       {"execve", by_execve, 3},         {"execve, 800 variables", by_execve_long, 3},
    {"execv", by_execv, 3},       {"execl", by_execl, 3},           {"execlp", by_execlp, 3},
    {"execvp", by_execvp, 3},     {"execvpe", by_execvpe, 3},       {"fexecve", by_fexecve, 3},
    {"posix_spawn", by_posix_spawn, 0}, {"setrlimit", by_setrlimit, 1}, {"prctl", by_prctl, 1},
    {"pthread_setname_np", by_pthread_setname, 0}, {"longjmp", by_longjmp, 1}, {"mark", by_mark, 1},
    {"pthread_create", by_pthread_create, 4}, {"dlopen", by_dlopen, 4}, {"dlsym", by_dlsym, 4},
    {"mremap", by_mremap, 1},     {"sbrk", by_sbrk, 1},             {"mlockall", by_mlockall, 1},
    {"posix_spawnp", by_posix_spawnp, 0}, {"system", by_system, 0}, {"popen", by_popen, 0},
    {"prlimit", by_prlimit, 1},   {"phase", by_phase, 1},
};
enum { COUNT = sizeof HOOKS / sizeof *HOOKS };

static void say(const char *circumstance, const char *name, size_t bytes) {
    char line[200];
    int length = snprintf(line, sizeof line, "%s: %s: %zu\n", circumstance, name, bytes);
    if (write(1, line, length) != length) _exit(4);
}

// Paints the stack from `low` upwards, calls the function, and returns the depth to which it overwrote the paint.
__attribute__((noinline)) static size_t taken(unsigned char *low, void (*call)(void)) {
    unsigned char *here = (unsigned char *)__builtin_frame_address(0) - 256;
    for (volatile unsigned char *at = low; at < here; at++) *at = PAINT;
    call();
    unsigned char *at = low;
    while (at < here && *at == PAINT) at++;
    if (at == low) _exit(3);
    return here - at;
}

struct job {
    unsigned char *low;
    void (*call)(void);
    size_t bytes;
};

static void *run(void *argument) {
    struct job *job = argument;
    job->bytes = taken(job->low, job->call);
    return NULL;
}

static unsigned char *pages(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) _exit(4);
    return memory;
}

// Measures a call on a thread stack of this size.
static void on_thread(const char *circumstance, size_t bytes, int which) {
    unsigned char *memory = pages(bytes);
    struct job job = {memory, HOOKS[which].call, 0};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, memory, bytes) != 0) _exit(4);
    if (pthread_create(&thread, &attributes, run, &job) != 0) _exit(4);
    pthread_join(thread, NULL);
    munmap(memory, bytes);
    say(circumstance, HOOKS[which].name, job.bytes);
}

// Measures the stack that a fork uses in the child.
static unsigned char *fork_low;
static size_t fork_bytes;
static void fork_and_look(void) {
    unsigned char *here = (unsigned char *)__builtin_frame_address(0) - 256;
    pid_t child = fork();
    if (child == 0) {
        unsigned char *at = fork_low;
        while (at < here && *at == PAINT) at++;
        _exit(at == fork_low ? 3 : (here - at + 255) / 256);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 3) _exit(3);
    fork_bytes = WEXITSTATUS(status) * 256;
}

static void forks_on_thread(size_t bytes) {
    fork_low = pages(bytes);
    struct job job = {fork_low, fork_and_look, 0};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, fork_low, bytes) != 0) _exit(4);
    if (pthread_create(&thread, &attributes, run, &job) != 0) _exit(4);
    pthread_join(thread, NULL);
    munmap(fork_low, bytes);
    say("thread of 16 KiB", "fork, in the child", fork_bytes);
}

static unsigned char *area;
static size_t area_bytes, handler_bytes;
static void (*in_handler)(void);
static void handler(int signal) {
    (void)signal;
    handler_bytes = taken(area + BELOW, in_handler);
}
static void look_below(void) {
    pid_t child = fork();
    if (child == 0) {
        for (int at = 0; at < BELOW; at++)
            if (area[at] != 0x5a) _exit(3);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0) _exit(3);
}

// Measures a call in a handler on an alternate stack of 8 KiB, or of 5,000 bytes more than the kernel needs if that is larger.
static void in_a_handler(const char *name, void (*call)(void)) {
    size_t least = getauxval(51 /* AT_MINSIGSTKSZ */) + 5000;
    area_bytes = least > 8192 ? (least + 4095) & ~(size_t)4095 : 8192;
    area = pages(BELOW + area_bytes);
    memset(area, 0x5a, BELOW);
    stack_t alternate = {.ss_sp = area + BELOW, .ss_size = area_bytes}, before;
    if (sigaltstack(&alternate, &before) != 0) _exit(4);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    in_handler = call;
    raise(SIGUSR1);
    for (int at = 0; at < BELOW; at++)
        if (area[at] != 0x5a) _exit(3);
    sigaltstack(&before, NULL);
    munmap(area, BELOW + area_bytes);
    say("handler on a small stack", name, handler_bytes);
}

// Keeps a thread inside of the loader, holding its lock, until the thread is released.
static int entered[2], leave[2];
static int inside(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    char byte = 0;
    if (write(entered[1], &byte, 1) != 1 || read(leave[0], &byte, 1) != 1) _exit(4);
    return 1;
}
static void *in_the_loader(void *argument) {
    dl_iterate_phdr(inside, NULL);
    return argument;
}

static void forked(int which) {
    pthread_t thread;
    char byte = 0;
    if (pipe(entered) != 0 || pipe(leave) != 0) _exit(4);
    if (pthread_create(&thread, NULL, in_the_loader, NULL) != 0 || read(entered[0], &byte, 1) != 1) _exit(4);
    pid_t child = fork();
    if (child == 0) {
        alarm(HANG);
        unsigned char *low = (unsigned char *)__builtin_frame_address(0) - (64 << 10);
        say("child of threads", HOOKS[which].name, taken(low, HOOKS[which].call));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (write(leave[1], &byte, 1) != 1) _exit(4);
    pthread_join(thread, NULL);
    close(entered[0]), close(entered[1]), close(leave[0]), close(leave[1]);
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s in a child of threads: signal %d\n", HOOKS[which].name, WTERMSIG(status));
        _exit(5);
    }
    if (status != 0) _exit(WEXITSTATUS(status));
}

static size_t vfork_bytes;
static void in_vfork_child(int which) {
    unsigned char *low = (unsigned char *)__builtin_frame_address(0) - (64 << 10);
    pid_t child = vfork();
    if (child == 0) {
        vfork_bytes = taken(low, HOOKS[which].call);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) _exit(WIFSIGNALED(status) ? 5 : WEXITSTATUS(status));
    say("child of vfork", HOOKS[which].name, vfork_bytes);
}

// Measures a call in a destructor of thread-specific data, which may run after the recorder has released the thread's state.
static pthread_key_t key;
static size_t end_bytes;
static __thread int rounds;
static void at_end(void *argument) {
    const int *which = argument;
    end_bytes = taken((unsigned char *)__builtin_frame_address(0) - (64 << 10), HOOKS[*which].call);
    if (++rounds < 4) pthread_setspecific(key, argument);
}
static void *ends(void *argument) {
    pthread_setspecific(key, argument);
    return NULL;
}
static void at_thread_end(int which) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, ends, &which) != 0) _exit(4);
    pthread_join(thread, NULL);
    say("end of a thread", HOOKS[which].name, end_bytes);
}

static long mapped_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0;
    if (!file || fscanf(file, "%ld", &all) != 1) _exit(4);
    fclose(file);
    return all * (sysconf(_SC_PAGESIZE) / 1024);
}

// Executes a program with many variables in children of vfork, which must not leave memory in the parent.
static void becomes(int times) {
    static char *many[800];
    for (int n = 0; n < 799; n++) many[n] = "A=1";
    for (int n = 0; n < times; n++) {
        pid_t child = vfork();
        if (child == 0) {
            execve("/bin/true", (char *[]){"true", NULL}, many);
            _exit(127);
        }
        int status;
        waitpid(child, &status, 0);
        if (status != 0) _exit(4);
    }
}

int main(int count, char **arguments) {
    alarm(HANG * 3);
    mark = (void (*)(const char *))dlsym(RTLD_DEFAULT, "hatf_recorder_mark");
    phase_begin = (void (*)(const char *))dlsym(RTLD_DEFAULT, "hatf_recorder_phase_begin");
    phase_end = (void (*)(const char *))dlsym(RTLD_DEFAULT, "hatf_recorder_phase_end");
    if (pthread_key_create(&key, at_end) != 0) return 4;
    // After the wait, each function is called once, so that the C library has allocated what a first call needs.
    if (count > 1 && strcmp(arguments[1], "wait") == 0) {
        char line[10];
        puts("ready");
        fflush(stdout);
        while (fgets(line, sizeof line, stdin) == NULL || line[0] != 'g') free(malloc(10));
    }
    for (int which = 0; which < COUNT; which++) HOOKS[which].call();
    for (int which = 0; which < COUNT; which++) {
        on_thread("normal", 1 << 20, which);
        on_thread("thread of 16 KiB", SMALL, which);
        if (HOOKS[which].allowed & 1) in_a_handler(HOOKS[which].name, HOOKS[which].call);
        if (HOOKS[which].allowed & 2) in_vfork_child(which);
        if (!(HOOKS[which].allowed & 4)) forked(which);
        if (!(HOOKS[which].allowed & 4)) at_thread_end(which);
    }
    forks_on_thread(SMALL);
    in_a_handler("fork, in the child", look_below);
    becomes(3);
    long before = mapped_kib();
    becomes(30);
    say("vfork", "KiB that 30 programs leave behind", mapped_kib() - before);
    return 0;
}
