// Calls functions on stacks that are later unmapped. `apart` switches to another stack, but its unwind information falsely places the
// caller's frame on that stack, above its start. So a stack walk continues to read there, possibly in unmapped memory.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HALF (64 * 1024)

void apart(void *top, void (*call)(void));
__asm__(".text\n"
        ".type apart, @function\n"
        "apart:\n"
        "    .cfi_startproc\n"
        "    push %rbx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_rel_offset %rbx, 0\n"
        "    mov %rsp, %rbx\n"
        "    mov %rdi, %rsp\n"
        "    call *%rsi\n"
        "    mov %rbx, %rsp\n"
        "    pop %rbx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .cfi_restore %rbx\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size apart, . - apart\n");

static void allocate(void)
{
    void *volatile block = malloc(77);
    free(block);
}

// Each call uses most of a page, so that a walk reads from every page.
static __attribute__((noinline)) void deep(int calls)
{
    volatile char room[3000];
    room[0] = (char)calls;
    if (calls > 0) {
        deep(calls - 1);
    } else {
        allocate();
    }
    room[1] = room[0];
}

static void all(void)
{
    for (int calls = 0; calls < 19; calls++) {
        deep(calls);
    }
}

int main(int count, char **arguments)
{
    (void)arguments;
    for (int round = 0; round < 50; round++) {
        char *lower = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (lower == MAP_FAILED) {
            return 1;
        }
        char *upper = lower + HALF;
        apart(upper + HALF - 4096, all);
        if (count > 1) {
            void *taken = mmap(upper, HALF, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            if (taken != upper) {
                return 1;
            }
        } else {
            munmap(upper, HALF);
        }
        apart(upper, allocate);
        apart(upper, all);
        munmap(lower, 2 * HALF);
    }
    puts("done");
    return 7;
}
