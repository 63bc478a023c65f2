/* Allocator functions in assembly. They change no register except for rax, on which their callers may rely. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char pool[1 << 22] __attribute__((used));
static char *next_block __attribute__((used)) = pool;

extern void *tc_malloc(size_t size);
extern void tc_free(void *block);

__asm__(
    ".text\n"
    ".globl tc_malloc\n"
    ".type tc_malloc, @function\n"
    "tc_malloc:\n"
#if defined(LOOPS)
    /* The loop jumps back to the second instruction. */
    "    push %rbx\n"
    "1:  dec %ebx\n"
    "    nop\n"
    "    nop\n"
    "    test $0, %al\n"
    "    jnz 1b\n"
    "    pop %rbx\n"
#elif defined(CALLS)
    "    call *%rcx\n"
#elif defined(JUMPED)
    /* Another function branches to the second instruction. */
    "    nop\n"
    "1:\n"
#elif defined(SHORT)
    "    nop\n"
    ".globl inner\n"
    "inner:\n"
#endif
    "    mov %rdi, %rax\n"
    "    add $15, %rax\n"
    "    and $-16, %rax\n"
    "    xadd %rax, next_block(%rip)\n"
    "2:  ret\n"
    ".size tc_malloc, . - tc_malloc\n"
    ".globl tc_free\n"
    ".type tc_free, @function\n"
    "tc_free:\n"
    "    ret\n"
    ".size tc_free, . - tc_free\n"
    "    .skip 16, 0x90\n"
#ifdef JUMPED
    ".type other, @function\n"
    "other:\n"
    "    test %rdi, %rdi\n"
    "    .byte 0x0f, 0x84\n"
    "    .long tc_malloc + 1 - . - 4\n"
    "    ret\n"
    ".size other, . - other\n"
#endif
);

#ifdef STATE
struct state {
    uint64_t general[8];
    unsigned char vectors[16][32];
};
struct state before, after;

/* Calls a function with known register values and saves the registers afterwards. */
extern void *call(void *function, size_t argument, int wide);
__asm__(
    ".text\n"
    "call:\n"
    "    push %rbp\n"
    "    mov %rsp, %rbp\n"
    "    push %rbx\n"
    "    push %r12\n"
    "    mov %rdi, %rbx\n"
    "    mov %edx, %r12d\n"
    /* The called function cannot rely on the stack alignment. */
    "    sub $24, %rsp\n"
    "    lea before(%rip), %rax\n"
    "    test %r12d, %r12d\n"
    "    jz 1f\n"
#define LOAD(n) "    vmovups 64 + 32 * " #n "(%rax), %ymm" #n "\n"
    LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7)
    LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15)
    "    jmp 2f\n"
    "1:\n"
#define LOAD_HALF(n) "    movups 64 + 32 * " #n "(%rax), %xmm" #n "\n"
    LOAD_HALF(0) LOAD_HALF(1) LOAD_HALF(2) LOAD_HALF(3) LOAD_HALF(4) LOAD_HALF(5) LOAD_HALF(6) LOAD_HALF(7)
    LOAD_HALF(8) LOAD_HALF(9) LOAD_HALF(10) LOAD_HALF(11) LOAD_HALF(12) LOAD_HALF(13) LOAD_HALF(14) LOAD_HALF(15)
    "2:\n"
    "    mov %rsi, %rdi\n"
    "    mov (%rax), %rcx\n"
    "    mov 8(%rax), %rdx\n"
    "    mov 16(%rax), %rsi\n"
    "    mov 32(%rax), %r8\n"
    "    mov 40(%rax), %r9\n"
    "    mov 48(%rax), %r10\n"
    "    mov 56(%rax), %r11\n"
    "    call *%rbx\n"
    "    push %rax\n"
    "    lea after(%rip), %rax\n"
    "    mov %rcx, (%rax)\n"
    "    mov %rdx, 8(%rax)\n"
    "    mov %rsi, 16(%rax)\n"
    "    mov %rdi, 24(%rax)\n"
    "    mov %r8, 32(%rax)\n"
    "    mov %r9, 40(%rax)\n"
    "    mov %r10, 48(%rax)\n"
    "    mov %r11, 56(%rax)\n"
    "    test %r12d, %r12d\n"
    "    jz 3f\n"
#define STORE(n) "    vmovups %ymm" #n ", 64 + 32 * " #n "(%rax)\n"
    STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7)
    STORE(8) STORE(9) STORE(10) STORE(11) STORE(12) STORE(13) STORE(14) STORE(15)
    "    vzeroupper\n"
    "    jmp 4f\n"
    "3:\n"
#define STORE_HALF(n) "    movups %xmm" #n ", 64 + 32 * " #n "(%rax)\n"
    STORE_HALF(0) STORE_HALF(1) STORE_HALF(2) STORE_HALF(3) STORE_HALF(4) STORE_HALF(5) STORE_HALF(6) STORE_HALF(7)
    STORE_HALF(8) STORE_HALF(9) STORE_HALF(10) STORE_HALF(11) STORE_HALF(12) STORE_HALF(13) STORE_HALF(14) STORE_HALF(15)
    "4:\n"
    "    pop %rax\n"
    "    add $24, %rsp\n"
    "    pop %r12\n"
    "    pop %rbx\n"
    "    pop %rbp\n"
    "    ret\n");

static void *checked(void *function, size_t argument, int wide)
{
    unsigned char *bytes = (unsigned char *)&before;
    for (size_t at = 0; at < sizeof before; at++)
        bytes[at] = (unsigned char)rand();
    before.general[3] = argument;
    for (int vector = 0; !wide && vector < 16; vector++)
        memset(before.vectors[vector] + 16, 0, 16);
    memset(&after, 0, sizeof after);
    void *result = call(function, argument, wide);
    if (memcmp(&before, &after, sizeof before) != 0)
        abort();
    return result;
}
#endif

int main(void)
{
    int calls = 0;
    for (int round = 0; round < 100; round++) {
#ifdef STATE
        for (int wide = 0; wide <= (__builtin_cpu_supports("avx2") != 0); wide++) {
            void *block = checked((void *)tc_malloc, 7000 + round, wide);
            if ((char *)block < pool || (char *)block >= pool + sizeof pool)
                abort();
            checked((void *)tc_free, (size_t)block, wide);
            calls++;
        }
#else
        void *block;
        __asm__ volatile("lea 1f(%%rip), %%rcx\n jmp 2f\n 1: ret\n 2: call tc_malloc"
                         : "=a"(block) : "D"(7000 + round) : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
        tc_free(block);
        calls++;
#endif
    }
    printf("%d %d\n", calls, calls);
    return 7;
}
