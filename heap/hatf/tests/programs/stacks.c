/* Allocates in all kinds of call stacks. Prints each size with the result of backtrace(3). Compiled by tests/it/stacks.rs. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static void *volatile block;
static volatile int size = 5000;

/* Allocates a block and prints the current stack. */
__attribute__((noinline)) static void here(void) {
    void *frames[200];
    int count = backtrace(frames, 200);
    size++;
    free(block = malloc(size));
    printf("%d", size);
    for (int n = 0; n < count; n++) {
        printf(" %lx", (unsigned long)frames[n]);
    }
    printf("\n");
}

__attribute__((noinline)) static void recursion(int depth) {
    if (depth > 0) {
        recursion(depth - 1);
    } else {
        here();
    }
    __asm__ volatile("");
}

__attribute__((noinline)) static void variable(int length) {
    char *text = alloca(length);
    memset(text, 1, length);
    __asm__ volatile("" : : "r"(text) : "memory");
    here();
    __asm__ volatile("" : : "r"(text) : "memory");
}

__attribute__((noinline)) static void aligned(void) {
    char text[64] __attribute__((aligned(64)));
    memset(text, 1, sizeof text);
    __asm__ volatile("" : : "r"(text) : "memory");
    here();
    __asm__ volatile("" : : "r"(text) : "memory");
}

__attribute__((noinline)) static void many_arguments(int a, int b, int c, int d, int e, int f, int g, int h) {
    here();
    __asm__ volatile("" : : "r"(a + b + c + d + e + f + g + h));
}

/* Callers whose stacks differ only in their return addresses. */
__attribute__((noinline)) static void left(void) {
    here();
    __asm__ volatile("");
}

__attribute__((noinline)) static void right(void) {
    here();
    __asm__ volatile("" : : : "memory");
}

static int compare(const void *left, const void *right) {
    static int calls;
    if (++calls == 3) {
        here();
    }
    return *(const int *)left - *(const int *)right;
}

static void handler(int number) {
    (void)number;
    recursion(2);
}

static void *thread(void *argument) {
    recursion(3);
    return argument;
}

static ucontext_t outside, inside;

static void coroutine(void) {
    recursion(1);
    swapcontext(&inside, &outside);
}

static void plugins(const char *path) {
    for (int n = 0; n < 3; n++) {
        void *module = dlopen(path, RTLD_NOW);
        void *(*plugin)(int) = (void *(*)(int))dlsym(module, "plugin");
        free(plugin(9000 + n));
        dlclose(module);
    }
}

int main(int count, char **arguments) {
    if (count > 1) {
        plugins(arguments[1]);
        return 7;
    }
    /* The first call loads a library. */
    void *frame;
    backtrace(&frame, 1);
    here();
    recursion(0);
    recursion(30);
    variable(10);
    variable(10000);
    aligned();
    many_arguments(1, 2, 3, 4, 5, 6, 7, 8);
    for (int n = 0; n < 20; n++) {
        if (n % 3 == 0) {
            left();
        } else {
            right();
        }
    }
    int numbers[] = {5, 1, 4, 2, 3};
    qsort(numbers, 5, sizeof *numbers, compare);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    static char other[65536];
    stack_t alternate = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
    pthread_t one;
    pthread_create(&one, NULL, thread, NULL);
    pthread_join(one, NULL);
    static char stack[65536];
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    return 7;
}
