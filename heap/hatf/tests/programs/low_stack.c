/* Runs near the end of a stack inside of other memory, and checks that this memory does not change. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK (64 << 10)
#define BELOW (32 << 10)

static char memory[BELOW + STACK] __attribute__((aligned(4096)));
static long damaged;
static ucontext_t back;

static void run(void) {
    /* Nearly all of the stack is in use. */
    char *now = __builtin_frame_address(0);
    volatile char *in_use = __builtin_alloca((size_t)(now - (memory + BELOW)) - 1024);
    in_use[0] = 1;
    char line[80];
    while (read(0, line, sizeof line) != 0) {
    }
    for (int i = 0; i < BELOW; i++)
        damaged += memory[i] != 7;
}

int main(void) {
    memset(memory, 7, BELOW);
    fcntl(0, F_SETFL, O_NONBLOCK);
    puts("ready");
    fflush(stdout);
    free(malloc(77));
    ucontext_t low;
    getcontext(&low);
    low.uc_stack.ss_sp = memory + BELOW;
    low.uc_stack.ss_size = STACK;
    low.uc_link = &back;
    makecontext(&low, run, 0);
    swapcontext(&back, &low);
    printf("%ld damaged\n", damaged);
    return 7;
}
