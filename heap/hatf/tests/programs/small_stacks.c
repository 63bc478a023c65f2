// Allocates on small stacks: one-page stacks of coroutines, or the stack of a signal handler.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096

static ucontext_t back, coroutine;

static __attribute__((noinline)) void allocate(size_t bytes)
{
    void *volatile block = malloc(bytes);
    block = realloc(block, 2 * bytes);
    free(block);
}

#define CALL(name, bytes) \
    static __attribute__((noinline)) void name(void) \
    { \
        allocate(bytes); \
        __asm__ volatile(""); \
    }
CALL(first, 11)
CALL(second, 22)
CALL(third, 33)

static void run(void)
{
    first();
    second();
    third();
}

static void handle(int number)
{
    (void)number;
    run();
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        // The kernel's minimum plus two pages.
        size_t bytes = (size_t)sysconf(_SC_MINSIGSTKSZ) + 2 * PAGE;
        char *stack = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack, PAGE, PROT_NONE);
        stack_t own = {.ss_sp = stack + PAGE, .ss_size = bytes};
        sigaltstack(&own, NULL);
        struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        raise(SIGUSR1);
    } else {
        for (int round = 0; round < 20; round++) {
            char *stack = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mprotect(stack, PAGE, PROT_NONE);
            getcontext(&coroutine);
            coroutine.uc_stack.ss_sp = stack + PAGE;
            coroutine.uc_stack.ss_size = PAGE;
            coroutine.uc_link = &back;
            makecontext(&coroutine, run, 0);
            swapcontext(&back, &coroutine);
            munmap(stack, 2 * PAGE);
        }
    }
    puts("done");
    return 7;
}
