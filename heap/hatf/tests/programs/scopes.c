/* A server in which it is known which calls outlive the blocks allocated in them. Built by `hatf cc --functions`; tests/it/regions.rs
   contains the expected numbers. `request` is always called from the same call site, so stacks cannot distinguish its calls. */
#include <setjmp.h>
#include <stdlib.h>

static void *volatile kept[2];
static jmp_buf again;

__attribute__((noinline)) static void *line(void) {
    void *volatile block = malloc(30);
    return block;
}

/* Frees the block of `line`. The next call frees the kept block, so no call of `request` outlives it. */
__attribute__((noinline)) static void request(void) {
    void *read = line();
    free(kept[0]);
    kept[0] = malloc(70);
    free(read);
}

__attribute__((noinline)) static void serve(int requests) {
    for (int n = 0; n < requests; n++) {
        request();
    }
    free(kept[0]);
    kept[0] = NULL;
}

__attribute__((noinline)) static void jumps(int depth) {
    if (depth > 0) {
        jumps(depth - 1);
    }
    longjmp(again, 1);
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1 && !setjmp(again)) {
        jumps(3);
    }
    serve(100);
    return 0;
}
