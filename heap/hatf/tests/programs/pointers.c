/* Calls the C library with pointers near which a recorder must not read. Built by hatf cc. The first argument selects the pointers; the
 * second is the path of the library built from pointers_plugin.c. Ends with status 7. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

/* Passes the last bytes of the main thread's stack, which contain the arguments and the environment. */
static void ends(int count, char **arguments) {
    char *last = arguments[count - 1];
    for (char **variable = environ; *variable; variable++) {
        last = *variable;
    }
    for (int at = 0; at < count; at++) {
        access(arguments[at], R_OK);
    }
    access(last, R_OK);
    dprintf(2, "%p\n", (void *)(last + strlen(last)));
}

/* Passes addresses up to the end of a thread's stack and after it: thread-local memory, and unmapped pages. */
static __thread char of_thread[64];

static void *passes(void *block) {
    char *local[2] = {0, block};
    dprintf(2, "%p %p\n", (void *)local, (void *)of_thread);
    for (int bytes = 0; bytes < 65536; bytes += 64) {
        dprintf(2, "%p\n", (void *)((char *)local + bytes));
    }
    return 0;
}

static void of_a_thread(void) {
    enum { BYTES = 128 << 10 };
    char *memory = mmap(0, BYTES + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + BYTES, 65536);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, memory, BYTES);
    char *block = malloc(2100);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, passes, block)) {
        _exit(8);
    }
    pthread_join(thread, 0);
}

/* Runs a coroutine whose stack ends at unmapped memory. */
static ucontext_t program, routine;

static void coroutine(void) {
    char *local[2] = {0, malloc(2200)};
    dprintf(2, "%p\n", (void *)local);
    for (int bytes = 0; bytes < 65536; bytes += 512) {
        dprintf(2, "%p\n", (void *)((char *)local + bytes));
    }
    setcontext(&program);
}

static void of_a_coroutine(void) {
    enum { BYTES = 64 << 10 };
    char *memory = mmap(0, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + BYTES, BYTES);
    volatile int done = 0;
    getcontext(&program);
    if (done) {
        return;
    }
    done = 1;
    getcontext(&routine);
    routine.uc_stack.ss_sp = memory;
    routine.uc_stack.ss_size = BYTES;
    makecontext(&routine, coroutine, 0);
    setcontext(&routine);
}

/* Passes variables of a library that is loaded and unloaded repeatedly. */
static void of_a_library(const char *path) {
    for (int at = 0; at < 100; at++) {
        void *library = dlopen(path, RTLD_NOW);
        void *(*hides)(void *) = library ? (void *(*)(void *))dlsym(library, "hides") : 0;
        if (!hides) {
            _exit(8);
        }
        /* Only the library refers to the block. */
        char *block = malloc(2300);
        void *variable = hides(block);
        if (at == 99) {
            dprintf(2, "%p\n", variable);
        }
        hides(0);
        free(block);
        dlclose(library);
        dprintf(2, "%p\n", variable);
    }
}

int main(int count, char **arguments) {
    const char *which = count > 1 ? arguments[1] : "";
    if (!strcmp(which, "ends")) {
        ends(count, arguments);
    } else if (!strcmp(which, "thread")) {
        of_a_thread();
    } else if (!strcmp(which, "coroutine")) {
        of_a_coroutine();
    } else if (!strcmp(which, "library")) {
        of_a_library(arguments[2]);
    }
    return 7;
}
