// A minimal recorder: writes 32 bytes per call to a file, through a buffer per thread.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static int file = -1;
static __thread uint64_t buffer[4 * 2048] __attribute__((tls_model("initial-exec")));
static __thread unsigned used __attribute__((tls_model("initial-exec")));
static void flush(void) {
    if (file < 0) file = open("shim.raw", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (write(file, buffer, 8 * used) < 0) used = 0;
    used = 0;
}
static inline void note(uint64_t kind, uint64_t size, const void *address) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    if (used == sizeof buffer / 8) flush();
    buffer[used++] = kind;
    buffer[used++] = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    buffer[used++] = size;
    buffer[used++] = (uint64_t)(uintptr_t)address;
}
void *malloc(size_t size) { void *block = __libc_malloc(size); note(1, size, block); return block; }
void *calloc(size_t count, size_t size) { void *block = __libc_calloc(count, size); note(2, count * size, block); return block; }
void *realloc(void *old, size_t size) { note(3, 0, old); void *block = __libc_realloc(old, size); note(4, size, block); return block; }
void free(void *block) { note(5, 0, block); __libc_free(block); }
__attribute__((destructor)) static void end(void) { flush(); }
