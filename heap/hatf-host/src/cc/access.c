/*
 * The code that hatf cc links into a program: the functions that instrumented code calls for each load and store. It is compiled by the
 * program's own compiler, without instrumentation.
 *
 * Without hatf record, each of these functions consists of a load and a jump. With hatf record, the recorder provides the program with a table
 * of regions. Each region covers 64 MiB of addresses and contains, for every 64 bytes, two 32-bit counters for loads and stores, and the time of
 * the last access. A region without blocks has no counters, so accesses to the stack and to variables are not counted. The counters are not
 * atomic, so some accesses are not counted if several threads count at the same time.
 *
 * This is one file, because it is shipped as one string and becomes one object.
 *
 * Functions that the program calls in other modules are not instrumented. Accesses by memory and string functions, and by read, write and
 * similar functions, are counted here. For all other functions, unless they are known to read no block, this code reports to the recorder which
 * blocks the arguments point to, because the counts of those blocks are incomplete. The calls are found in the module's address table, which is
 * changed when the module is loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__LP64__) || !defined(__linux__)
#error "hatf cc is for Linux on x86-64"
#endif

#define EXPORT __attribute__((visibility("hidden")))

/* The recorder's side: heap/hatf-record/src/preload/accesses. */
struct hatf_accesses {
    /* The counters of each region, indexed by address / 2^26; null if a region has no counters. */
    uint8_t *const *regions;
    /* A call passes these arguments to uninstrumented code, which may follow the addresses that they contain. If deep is 0, it
     * follows only the arguments and the addresses in the objects that they point to. */
    void (*reach)(const uintptr_t *words, size_t count, int deep);
    /* The code from start to end (exclusive) is instrumented; the variables of that module are from variables to variables_end (exclusive). */
    void (*module)(uintptr_t start, uintptr_t end, uintptr_t variables, uintptr_t variables_end);
    /* A function of the program was entered or left. */
    void (*enter)(uintptr_t function);
    void (*leave)(void);
    /* The time of the last recorded call. */
    uint64_t now;
};

/* The counters of a 64-byte granule. */
struct counter {
    uint32_t counts[2];
    uint64_t last;
};

static uint8_t *const *regions;
static const struct hatf_accesses *recorder;

/* Returns the counters of an address, or null if there are none. */
static inline __attribute__((always_inline)) struct counter *counters(uintptr_t address) {
    uint8_t *const *all = regions;
    if (__builtin_expect(!all, 0)) {
        return 0;
    }
    uint8_t *region = all[address >> 26 & 0x1fffff];
    return region ? (struct counter *)region + ((address & 0x3ffffff) >> 6) : 0;
}

static inline __attribute__((always_inline)) void count(const void *address, int stores) {
    struct counter *all = counters((uintptr_t)address);
    if (all) {
        /* The counter saturates. */
        uint32_t next = all->counts[stores] + 1;
        if (__builtin_expect(next != 0, 1)) {
            all->counts[stores] = next;
        }
        all->last = __atomic_load_n(&recorder->now, __ATOMIC_RELAXED);
    }
}

/* Counts an access to many bytes, once for each 64-byte granule. */
static void range(const void *start, size_t length, int stores) {
    uintptr_t at = (uintptr_t)start, last = at + length - 1;
    if (!regions || !length) {
        return;
    }
    for (at &= ~(uintptr_t)63; at <= last; at += 64) {
        count((const void *)at, stores);
    }
}

#define READS(start, length) range(start, length, 0)
#define WRITES(start, length) range(start, length, 1)

/* The functions that GCC's and Clang's -fsanitize=thread call. */
#define ACCESS(name)                                                                                                   \
    EXPORT void __tsan_read##name(void *address) { count(address, 0); }                                                \
    EXPORT void __tsan_write##name(void *address) { count(address, 1); }                                               \
    EXPORT void __tsan_unaligned_read##name(void *address) { count(address, 0); }                                      \
    EXPORT void __tsan_unaligned_write##name(void *address) { count(address, 1); }                                     \
    EXPORT void __tsan_volatile_read##name(void *address) { count(address, 0); }                                       \
    EXPORT void __tsan_volatile_write##name(void *address) { count(address, 1); }                                      \
    EXPORT void __tsan_unaligned_volatile_read##name(void *address) { count(address, 0); }                             \
    EXPORT void __tsan_unaligned_volatile_write##name(void *address) { count(address, 1); }                            \
    EXPORT void __tsan_read##name##_pc(void *address, void *pc) { (void)pc, count(address, 0); }                       \
    EXPORT void __tsan_write##name##_pc(void *address, void *pc) { (void)pc, count(address, 1); }                      \
    EXPORT void __tsan_read_write##name(void *address) { count(address, 0), count(address, 1); }                       \
    EXPORT void __tsan_unaligned_read_write##name(void *address) { count(address, 0), count(address, 1); }             \
    /* The functions that -fsanitize-coverage=trace-loads,trace-stores calls, in Clang and rustc. */                   \
    EXPORT void __sanitizer_cov_load##name(void *address) { count(address, 0); }                                       \
    EXPORT void __sanitizer_cov_store##name(void *address) { count(address, 1); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

EXPORT void __tsan_init(void) {}
EXPORT void __tsan_read_range(void *start, uintptr_t length) { READS(start, length); }
EXPORT void __tsan_write_range(void *start, uintptr_t length) { WRITES(start, length); }
EXPORT void __tsan_vptr_read(void **place) { count(place, 0); }
EXPORT void __tsan_vptr_update(void **place, void *value) { (void)value, count(place, 1); }
EXPORT void __sanitizer_cov_trace_pc_guard(uint32_t *guard) { (void)guard; }
EXPORT void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *end) { (void)start, (void)end; }
EXPORT void __sanitizer_cov_trace_pc_indir(uintptr_t callee) { (void)callee; }

EXPORT void __tsan_func_entry(void *caller) {
    (void)caller;
    if (recorder && recorder->enter) {
        recorder->enter((uintptr_t)__builtin_return_address(0));
    }
}
EXPORT void __tsan_func_exit(void) {
    if (recorder && recorder->leave) {
        recorder->leave();
    }
}

/* Atomic operations are calls as well, with the strongest order here. */
#define ORDER __ATOMIC_SEQ_CST
#define CHANGES(bits, type, name)                                                                                      \
    EXPORT type __tsan_atomic##bits##_fetch_##name(volatile type *place, type value, int order) {                      \
        (void)order, count((void *)place, 0), count((void *)place, 1);                                                 \
        return __atomic_fetch_##name(place, value, ORDER);                                                             \
    }
#define ATOMIC(bits, type)                                                                                             \
    EXPORT type __tsan_atomic##bits##_load(const volatile type *place, int order) {                                    \
        (void)order, count((const void *)place, 0);                                                                    \
        return __atomic_load_n(place, ORDER);                                                                          \
    }                                                                                                                  \
    EXPORT void __tsan_atomic##bits##_store(volatile type *place, type value, int order) {                             \
        (void)order, count((void *)place, 1);                                                                          \
        __atomic_store_n(place, value, ORDER);                                                                         \
    }                                                                                                                  \
    EXPORT type __tsan_atomic##bits##_exchange(volatile type *place, type value, int order) {                          \
        (void)order, count((void *)place, 0), count((void *)place, 1);                                                 \
        return __atomic_exchange_n(place, value, ORDER);                                                               \
    }                                                                                                                  \
    CHANGES(bits, type, add) CHANGES(bits, type, sub) CHANGES(bits, type, and) CHANGES(bits, type, or)                 \
    CHANGES(bits, type, xor) CHANGES(bits, type, nand)                                                                 \
    EXPORT int __tsan_atomic##bits##_compare_exchange_strong(volatile type *place, type *expected, type value,         \
                                                             int order, int failed) {                                  \
        (void)order, (void)failed, count((void *)place, 0), count((void *)place, 1);                                   \
        return __atomic_compare_exchange_n(place, expected, value, 0, ORDER, ORDER);                                   \
    }                                                                                                                  \
    EXPORT int __tsan_atomic##bits##_compare_exchange_weak(volatile type *place, type *expected, type value,           \
                                                           int order, int failed) {                                    \
        return __tsan_atomic##bits##_compare_exchange_strong(place, expected, value, order, failed);                   \
    }                                                                                                                  \
    EXPORT type __tsan_atomic##bits##_compare_exchange_val(volatile type *place, type expected, type value, int order, \
                                                           int failed) {                                               \
        __tsan_atomic##bits##_compare_exchange_strong(place, &expected, value, order, failed);                         \
        return expected;                                                                                               \
    }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
EXPORT void __tsan_atomic_thread_fence(int order) { (void)order, __atomic_thread_fence(ORDER); }
EXPORT void __tsan_atomic_signal_fence(int order) { (void)order, __atomic_signal_fence(ORDER); }

/* Operations on 16 bytes, all of which use compare-and-exchange. */
typedef unsigned __int128 wide;
static wide wide_exchange(volatile wide *place, wide value) {
    wide seen = *place, before;
    while ((before = __sync_val_compare_and_swap(place, seen, value)) != seen) {
        seen = before;
    }
    return before;
}
EXPORT wide __tsan_atomic128_load(const volatile wide *place, int order) {
    (void)order, count((const void *)place, 0);
    return __sync_val_compare_and_swap((volatile wide *)place, (wide)0, (wide)0);
}
EXPORT void __tsan_atomic128_store(volatile wide *place, wide value, int order) {
    (void)order, count((void *)place, 1);
    wide_exchange(place, value);
}
EXPORT wide __tsan_atomic128_exchange(volatile wide *place, wide value, int order) {
    (void)order, count((void *)place, 0), count((void *)place, 1);
    return wide_exchange(place, value);
}
EXPORT wide __tsan_atomic128_compare_exchange_val(volatile wide *place, wide expected, wide value, int order,
                                                  int failed) {
    (void)order, (void)failed, count((void *)place, 0), count((void *)place, 1);
    return __sync_val_compare_and_swap(place, expected, value);
}
EXPORT int __tsan_atomic128_compare_exchange_strong(volatile wide *place, wide *expected, wide value, int order,
                                                    int failed) {
    wide seen = __tsan_atomic128_compare_exchange_val(place, *expected, value, order, failed);
    int same = seen == *expected;
    *expected = seen;
    return same;
}
EXPORT int __tsan_atomic128_compare_exchange_weak(volatile wide *place, wide *expected, wide value, int order,
                                                  int failed) {
    return __tsan_atomic128_compare_exchange_strong(place, expected, value, order, failed);
}

/* Functions whose accesses are counted. REAL is the function that the module would have called; its slot is filled when the module is loaded. */
#define COUNTED(X)                                                                                                     \
    X(memcpy) X(memmove) X(mempcpy) X(memset) X(memcmp) X(bcmp) X(memchr) X(memrchr) X(strlen) X(strnlen) X(strcpy)    \
    X(stpcpy) X(strncpy) X(strcat) X(strncat) X(strcmp) X(strncmp) X(strchr) X(strrchr) X(strstr) X(strdup)            \
    X(strndup) X(read) X(write) X(pread) X(pwrite) X(pread64) X(pwrite64) X(recv) X(send) X(fread) X(fwrite) X(fgets) X(fputs)     \
    X(puts) X(strtol) X(strtoul) X(strtod) X(atoi) X(atol) X(atof)

enum {
#define X(name) COUNTED_##name,
    COUNTED(X)
#undef X
    COUNTED_ALL
};
static void *real[COUNTED_ALL];
#define REAL(name) ((__typeof__(&name))real[COUNTED_##name])

/* Clang calls these three by other names in instrumented code. */
static void *counted_memcpy(void *to, const void *from, size_t length) {
    READS(from, length), WRITES(to, length);
    return REAL(memcpy)(to, from, length);
}
static void *counted_memmove(void *to, const void *from, size_t length) {
    READS(from, length), WRITES(to, length);
    return REAL(memmove)(to, from, length);
}
static void *counted_memset(void *to, int byte, size_t length) {
    WRITES(to, length);
    return REAL(memset)(to, byte, length);
}
EXPORT void *__tsan_memcpy(void *to, const void *from, size_t length) {
    READS(from, length), WRITES(to, length);
    return memmove(to, from, length);
}
EXPORT void *__tsan_memmove(void *to, const void *from, size_t length) { return __tsan_memcpy(to, from, length); }
EXPORT void *__tsan_memset(void *to, int byte, size_t length) {
    WRITES(to, length);
    return memset(to, byte, length);
}
static void *counted_mempcpy(void *to, const void *from, size_t length) {
    READS(from, length), WRITES(to, length);
    return REAL(mempcpy)(to, from, length);
}

/* Returns the number of bytes that a comparison reads: up to the first difference. */
static size_t alike(const void *a, const void *b, size_t most, int text) {
    const char *left = a, *right = b;
    size_t at = 0;
    while (at < most) {
        at++;
        if (left[at - 1] != right[at - 1] || (text && !left[at - 1])) {
            break;
        }
    }
    return at;
}
static int counted_memcmp(const void *a, const void *b, size_t length) {
    size_t seen = regions ? alike(a, b, length, 0) : 0;
    READS(a, seen), READS(b, seen);
    return REAL(memcmp)(a, b, length);
}
static int counted_bcmp(const void *a, const void *b, size_t length) {
    size_t seen = regions ? alike(a, b, length, 0) : 0;
    READS(a, seen), READS(b, seen);
    return REAL(bcmp)(a, b, length);
}
static int counted_strcmp(const char *a, const char *b) {
    size_t seen = regions ? alike(a, b, SIZE_MAX, 1) : 0;
    READS(a, seen), READS(b, seen);
    return REAL(strcmp)(a, b);
}
static int counted_strncmp(const char *a, const char *b, size_t length) {
    size_t seen = regions ? alike(a, b, length, 1) : 0;
    READS(a, seen), READS(b, seen);
    return REAL(strncmp)(a, b, length);
}

/* A search reads everything before its result, or all bytes if there is no result. */
static void *counted_memchr(const void *in, int byte, size_t length) {
    void *found = (void *)REAL(memchr)(in, byte, length);
    READS(in, found ? (size_t)((char *)found - (char *)in) + 1 : length);
    return found;
}
static void *counted_memrchr(const void *in, int byte, size_t length) {
    void *found = (void *)REAL(memrchr)(in, byte, length);
    const char *from = found ? found : in;
    READS(from, length - (size_t)(from - (const char *)in));
    return found;
}
static size_t text(const char *string) {
    size_t length = 0;
    while (string[length]) {
        length++;
    }
    return length;
}
static void reads_text(const char *string) {
    if (regions && string) {
        READS(string, text(string) + 1);
    }
}
static size_t counted_strlen(const char *string) {
    size_t length = REAL(strlen)(string);
    READS(string, length + 1);
    return length;
}
static size_t counted_strnlen(const char *string, size_t most) {
    size_t length = REAL(strnlen)(string, most);
    READS(string, length < most ? length + 1 : most);
    return length;
}
static char *counted_strcpy(char *to, const char *from) {
    size_t length = text(from) + 1;
    READS(from, length), WRITES(to, length);
    return REAL(strcpy)(to, from);
}
static char *counted_stpcpy(char *to, const char *from) {
    size_t length = text(from) + 1;
    READS(from, length), WRITES(to, length);
    return REAL(stpcpy)(to, from);
}
static size_t bounded(const char *string, size_t most) {
    size_t length = 0;
    while (length < most && string[length]) {
        length++;
    }
    return length;
}
static char *counted_strncpy(char *to, const char *from, size_t most) {
    size_t length = bounded(from, most);
    READS(from, length < most ? length + 1 : most), WRITES(to, most);
    return REAL(strncpy)(to, from, most);
}
static char *counted_strcat(char *to, const char *from) {
    size_t before = text(to), length = text(from) + 1;
    READS(to, before + 1), READS(from, length), WRITES(to + before, length);
    return REAL(strcat)(to, from);
}
static char *counted_strncat(char *to, const char *from, size_t most) {
    size_t before = text(to), length = bounded(from, most);
    READS(to, before + 1), READS(from, length < most ? length + 1 : most), WRITES(to + before, length + 1);
    return REAL(strncat)(to, from, most);
}
static char *counted_strchr(const char *in, int byte) {
    char *found = (char *)REAL(strchr)(in, byte);
    READS(in, found ? (size_t)(found - in) + 1 : text(in) + 1);
    return found;
}
static char *counted_strrchr(const char *in, int byte) {
    reads_text(in);
    return (char *)REAL(strrchr)(in, byte);
}
static char *counted_strstr(const char *in, const char *what) {
    char *found = (char *)REAL(strstr)(in, what);
    reads_text(what);
    READS(in, (found ? (size_t)(found - in) + text(what) : text(in)) + 1);
    return found;
}
/* The new block belongs to the caller, and so do the stores to it. */
static char *counted_strndup(const char *from, size_t most) {
    size_t length = bounded(from, most);
    READS(from, length < most ? length + 1 : most);
    char *to = __builtin_malloc(length + 1);
    if (to) {
        WRITES(to, length + 1);
        for (size_t at = 0; at < length; at++) {
            to[at] = from[at];
        }
        to[length] = 0;
    }
    return to;
}
static char *counted_strdup(const char *from) { return counted_strndup(from, SIZE_MAX); }

static ssize_t filled(void *to, ssize_t length) {
    if (length > 0) {
        WRITES(to, (size_t)length);
    }
    return length;
}
static ssize_t counted_read(int file, void *to, size_t length) { return filled(to, REAL(read)(file, to, length)); }
static ssize_t counted_pread(int file, void *to, size_t length, off_t at) {
    return filled(to, REAL(pread)(file, to, length, at));
}
static ssize_t counted_pread64(int file, void *to, size_t length, off64_t at) {
    return filled(to, REAL(pread64)(file, to, length, at));
}
static ssize_t counted_recv(int file, void *to, size_t length, int flags) {
    return filled(to, REAL(recv)(file, to, length, flags));
}
static ssize_t counted_write(int file, const void *from, size_t length) {
    READS(from, length);
    return REAL(write)(file, from, length);
}
static ssize_t counted_pwrite(int file, const void *from, size_t length, off_t at) {
    READS(from, length);
    return REAL(pwrite)(file, from, length, at);
}
static ssize_t counted_pwrite64(int file, const void *from, size_t length, off64_t at) {
    READS(from, length);
    return REAL(pwrite64)(file, from, length, at);
}
static ssize_t counted_send(int file, const void *from, size_t length, int flags) {
    READS(from, length);
    return REAL(send)(file, from, length, flags);
}
static size_t counted_fread(void *to, size_t size, size_t items, FILE *file) {
    size_t done = REAL(fread)(to, size, items, file);
    WRITES(to, done * size);
    return done;
}
static size_t counted_fwrite(const void *from, size_t size, size_t items, FILE *file) {
    READS(from, size * items);
    return REAL(fwrite)(from, size, items, file);
}
static char *counted_fgets(char *to, int most, FILE *file) {
    char *done = REAL(fgets)(to, most, file);
    if (done) {
        WRITES(to, text(to) + 1);
    }
    return done;
}
static int counted_fputs(const char *from, FILE *file) {
    reads_text(from);
    return REAL(fputs)(from, file);
}
static int counted_puts(const char *from) {
    reads_text(from);
    return REAL(puts)(from);
}
/* The number is at the beginning of the string. The length that is read does not matter, because a single access marks the string as read. */
#define NUMBER(type, name, parameters, arguments)                                                                      \
    static type counted_##name parameters {                                                                            \
        READS(from, 1);                                                                                                \
        return REAL(name) arguments;                                                                                   \
    }
extern long strtol(const char *, char **, int);
extern unsigned long strtoul(const char *, char **, int);
extern double strtod(const char *, char **);
extern int atoi(const char *);
extern long atol(const char *);
extern double atof(const char *);
NUMBER(long, strtol, (const char *from, char **end, int base), (from, end, base))
NUMBER(unsigned long, strtoul, (const char *from, char **end, int base), (from, end, base))
NUMBER(double, strtod, (const char *from, char **end), (from, end))
NUMBER(int, atoi, (const char *from), (from))
NUMBER(long, atol, (const char *from), (from))
NUMBER(double, atof, (const char *from), (from))

static const struct {
    const char *name;
    void *function;
} counted[] = {
#define X(name) {#name, (void *)counted_##name},
    COUNTED(X)
#undef X
};

/* Functions that access no block of the program, by name or name prefix (*): allocators, threads, time, mathematics, and program termination. A
 * FILE is a block of the C library. */
static const char *const harmless[] = {
    "malloc", "calloc", "realloc", "reallocarray", "free", "memalign", "posix_memalign", "aligned_alloc", "valloc",
    "pvalloc", "malloc_usable_size", "malloc_trim", "mallopt", "_Zn*", "_Zd*", "__cxa_*", "__gxx_*", "_Unwind_*",
    "__libc_start_main", "__stack_chk_fail", "__assert_fail", "__tls_get_addr", "__errno_location", "__gmon_start__",
    "_ITM_*", "__ctype_*", "exit", "_exit", "_Exit", "abort", "atexit", "on_exit", "quick_exit", "pthread_create",
    "pthread_join", "pthread_detach", "pthread_self", "pthread_exit", "pthread_getspecific", "pthread_setspecific",
    "pthread_key_*", "pthread_attr_*", "sched_*", "getpid", "getppid", "gettid", "getuid", "sleep", "usleep", "time",
    "clock", "clock_gettime", "gettimeofday", "nanosleep", "rand", "srand", "random", "srandom", "drand48", "srand48",
    "sysconf", "getpagesize", "open", "open64", "close", "lseek", "lseek64", "isatty", "dup", "dup2", "fopen", "fopen64", "fclose",
    "fflush", "fseek", "ftell", "rewind", "feof", "ferror", "fileno", "getc", "fgetc", "_IO_getc", "getchar", "putc", "fputc",
    "_IO_putc", "putchar", "ungetc", "getenv", "mmap", "mmap64", "munmap", "mprotect", "madvise", "raise", "kill", "signal", "setjmp",
    "_setjmp", "__sigsetjmp", "longjmp", "siglongjmp", "fork", "vfork", "abs", "labs", "sqrt*", "pow*", "exp*", "log*",
    "sin*", "cos*", "tan*", "asin*", "acos*", "atan*", "ceil*", "floor*", "round*", "trunc*", "fmod*", "fabs*", "hypot*",
    "cbrt*", "ldexp*", "rint*", "nearbyint*", "lround*", "llround*", "tolower", "toupper", "isalpha", "isdigit", "isspace",
    "isalnum", "isupper", "islower", "ispunct", "isprint", "_ZSt*__throw_*", "hatf_recorder_*", "_ZNSt6thread*", "_ZNSt6chrono*",
};

/* Functions that change only links of nodes or single words at their arguments' addresses, counted as one load and one store each. */
static const char *const links[] = {
    "_ZSt*_Rb_tree_*", "_ZNSt8__detail15_List_node_base*", "_ZNKSt8__detail20_Prime_rehash_policy*", "pthread_mutex_*",
    "pthread_cond_*", "pthread_rwlock_*", "pthread_spin_*", "pthread_once", "sem_*",
};

/* Functions that access strings and their content, but nothing else. */
static const char *const shallow[] = {
    "_ZNSt7__cxx1112basic_string*", "_ZNKSt7__cxx1112basic_string*", "_ZNSs*", "_ZNKSs*", "_ZSt*__ostream_insert*",
    "_ZNSo*", "_ZNSi*", "_ZStls*", "_ZStrs*", "_ZStpl*", "_ZSt7getline*", "_ZNSt7__cxx119to_string*", "_ZNSt15basic_streambuf*",
    "_ZSt11_Hash_bytes*", "_ZSt15_Fnv_hash_bytes*",
};

/* Returns whether a name matches a pattern, in which * matches any string. */
static int matches(const char *pattern, const char *name) {
    for (; *pattern; pattern++, name++) {
        if (*pattern == '*') {
            if (!pattern[1]) {
                return 1;
            }
            for (; *name; name++) {
                if (matches(pattern + 1, name)) {
                    return 1;
                }
            }
            return 0;
        }
        if (*pattern != *name) {
            return 0;
        }
    }
    return !*name;
}
#define IS_IN(list, name)                                                                                              \
    ({                                                                                                                 \
        int is_in = 0;                                                                                                 \
        for (size_t at = 0; at < sizeof(list) / sizeof *(list) && !is_in; at++) {                                      \
            is_in = matches((list)[at], name);                                                                         \
        }                                                                                                              \
        is_in;                                                                                                         \
    })

/* Functions of other modules whose calls are watched. For each of them, a stub is called instead, which reports the arguments and jumps
 * to the function with all registers and the stack unchanged. */
#define WATCHED_MOST 2048
EXPORT void *hatf_watched[WATCHED_MOST];
enum { DEEP, SHALLOW, LINKS };
static uint8_t kinds[WATCHED_MOST];
static unsigned watched;

extern char hatf_watch_first[] __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".balign 16\n"
        ".globl hatf_watch_first\n"
        ".hidden hatf_watch_first\n"
        ".set number, 0\n"
        "hatf_watch_first:\n"
        ".rept 2048\n"
        ".balign 16\n"
        "endbr64\n"
        "movl $number, %r11d\n"
        ".set number, number + 1\n"
        "jmp hatf_watch_all\n"
        ".endr\n"
        ".balign 16\n"
        "hatf_watch_all:\n"
        ".cfi_startproc\n"
        "pushq %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rbp, 0\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "andq $-16, %rsp\n"
        "subq $208, %rsp\n"
        "movq %rdi, (%rsp)\n"
        "movq %rsi, 8(%rsp)\n"
        "movq %rdx, 16(%rsp)\n"
        "movq %rcx, 24(%rsp)\n"
        "movq %r8, 32(%rsp)\n"
        "movq %r9, 40(%rsp)\n"
        "movq %rax, 48(%rsp)\n"
        "movq %r10, 56(%rsp)\n"
        "movq %r11, 64(%rsp)\n"
        "movups %xmm0, 80(%rsp)\n"
        "movups %xmm1, 96(%rsp)\n"
        "movups %xmm2, 112(%rsp)\n"
        "movups %xmm3, 128(%rsp)\n"
        "movups %xmm4, 144(%rsp)\n"
        "movups %xmm5, 160(%rsp)\n"
        "movups %xmm6, 176(%rsp)\n"
        "movups %xmm7, 192(%rsp)\n"
        "movl %r11d, %edi\n"
        "movq %rsp, %rsi\n"
        "leaq 16(%rbp), %rdx\n"
        "call hatf_watch_call\n"
        "movups 80(%rsp), %xmm0\n"
        "movups 96(%rsp), %xmm1\n"
        "movups 112(%rsp), %xmm2\n"
        "movups 128(%rsp), %xmm3\n"
        "movups 144(%rsp), %xmm4\n"
        "movups 160(%rsp), %xmm5\n"
        "movups 176(%rsp), %xmm6\n"
        "movups 192(%rsp), %xmm7\n"
        "movq (%rsp), %rdi\n"
        "movq 8(%rsp), %rsi\n"
        "movq 16(%rsp), %rdx\n"
        "movq 24(%rsp), %rcx\n"
        "movq 32(%rsp), %r8\n"
        "movq 40(%rsp), %r9\n"
        "movq 48(%rsp), %rax\n"
        "movq 56(%rsp), %r10\n"
        "movl 64(%rsp), %r11d\n"
        "movq %rbp, %rsp\n"
        ".cfi_def_cfa_register %rsp\n"
        "popq %rbp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pushq %r10\n"
        ".cfi_adjust_cfa_offset 8\n"
        "leaq hatf_watched(%rip), %r10\n"
        "movq (%r10,%r11,8), %r11\n"
        "popq %r10\n"
        ".cfi_adjust_cfa_offset -8\n"
        "jmp *%r11\n"
        ".cfi_endproc\n");

/* The number of arguments of each function, so that stale values in other registers do not count. For a function with a format string, the
 * position of that string, because the format determines how many arguments follow. For all other functions, the six register arguments count. */
static const struct {
    const char *name;
    uint8_t arguments, has_format;
} known[] = {
    {"printf", 1, 1}, {"fprintf", 2, 1}, {"dprintf", 2, 1}, {"sprintf", 2, 1}, {"snprintf", 3, 1},
    {"__printf_chk", 2, 1}, {"__fprintf_chk", 3, 1}, {"__sprintf_chk", 4, 1}, {"__snprintf_chk", 5, 1},
    {"scanf", 1, 1}, {"fscanf", 2, 1}, {"sscanf", 2, 1}, {"__isoc99_scanf", 1, 1}, {"__isoc99_fscanf", 2, 1},
    {"__isoc99_sscanf", 2, 1}, {"vprintf", 2, 0}, {"vfprintf", 3, 0}, {"vsnprintf", 4, 0}, {"perror", 1, 0},
    {"qsort", 4, 0}, {"bsearch", 5, 0}, {"lfind", 5, 0}, {"tsearch", 3, 0}, {"tfind", 3, 0}, {"strerror", 1, 0},
    {"strtok", 2, 0}, {"strtok_r", 3, 0}, {"strsep", 2, 0}, {"strcspn", 2, 0}, {"strspn", 2, 0}, {"strpbrk", 2, 0},
    {"strcasecmp", 2, 0}, {"strncasecmp", 3, 0}, {"strcoll", 2, 0}, {"memmem", 4, 0}, {"getline", 3, 0},
    {"getdelim", 4, 0}, {"setvbuf", 4, 0}, {"stat", 2, 0}, {"fstat", 2, 0}, {"lstat", 2, 0}, {"readlink", 3, 0},
    {"realpath", 2, 0}, {"opendir", 1, 0}, {"readdir", 1, 0}, {"closedir", 1, 0}, {"unlink", 1, 0}, {"mkdir", 2, 0},
    {"access", 2, 0}, {"rename", 2, 0}, {"getcwd", 2, 0}, {"chdir", 1, 0}, {"system", 1, 0}, {"popen", 2, 0},
    {"pclose", 1, 0}, {"readv", 3, 0}, {"writev", 3, 0}, {"setenv", 3, 0}, {"putenv", 1, 0}, {"localtime", 1, 0},
    {"gmtime", 1, 0}, {"mktime", 1, 0}, {"strftime", 4, 0}, {"asctime", 1, 0}, {"ctime", 1, 0}, {"select", 5, 0},
    {"poll", 3, 0}, {"epoll_wait", 4, 0}, {"connect", 3, 0}, {"bind", 3, 0}, {"accept", 3, 0}, {"ioctl", 3, 0},
    {"sigaction", 3, 0}, {"setlocale", 2, 0}, {"dlopen", 2, 0}, {"dlsym", 2, 0}, {"frexp", 1, 0}, {"modf", 1, 0},
};
static uint8_t known_as[WATCHED_MOST];

/* Returns the number of arguments that a format requires. */
static size_t asked_for(const char *format) {
    size_t asked = 0;
    for (; *format; format++) {
        if (*format != '%') {
            continue;
        }
        format++;
        if (*format == '%') {
            continue;
        }
        asked++;
        /* Counts widths that are arguments, up to the conversion letter. */
        for (; *format && !((*format >= 'a' && *format <= 'z' && !strchr("hljztq", *format)) || (*format >= 'A' && *format <= 'Z' && *format != 'L')); format++) {
            asked += *format == '*';
        }
        if (!*format) {
            break;
        }
    }
    return asked;
}

EXPORT __attribute__((used)) void hatf_watch_call(uint32_t number, const uintptr_t *registers, const uintptr_t *stack) {
    if (!recorder || number >= WATCHED_MOST) {
        return;
    }
    if (kinds[number] == LINKS) {
        for (int at = 0; at < 4; at++) {
            count((const void *)registers[at], 0);
            count((const void *)registers[at], 1);
        }
        return;
    }
    uintptr_t words[32];
    size_t arguments = 6, most = sizeof words / sizeof *words;
    if (known_as[number]) {
        arguments = known[known_as[number] - 1].arguments;
        if (known[known_as[number] - 1].has_format) {
            arguments += asked_for((const char *)registers[arguments - 1]);
        }
    }
    arguments = arguments < most ? arguments : most;
    for (size_t at = 0; at < arguments; at++) {
        words[at] = at < 6 ? registers[at] : stack[at - 6];
    }
    recorder->reach(words, arguments, kinds[number] == DEEP);
}

/* Returns the replacement for a function, or null to keep the function. */
static void *in_place_of(const char *name, void *function) {
    for (size_t at = 0; at < COUNTED_ALL; at++) {
        if (!strcmp(counted[at].name, name)) {
            real[at] = function;
            return counted[at].function;
        }
    }
    if (IS_IN(harmless, name)) {
        return 0;
    }
    for (unsigned at = 0; at < watched; at++) {
        if (hatf_watched[at] == function) {
            return hatf_watch_first + at * (size_t)16;
        }
    }
    if (watched == WATCHED_MOST) {
        /* The arguments are unknown, so all blocks count as reached. */
        recorder->reach(0, 0, 1);
        return 0;
    }
    kinds[watched] = IS_IN(links, name) ? LINKS : IS_IN(shallow, name) ? SHALLOW : DEEP;
    for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
        if (!strcmp(known[at].name, name)) {
            known_as[watched] = (uint8_t)(at + 1);
        }
    }
    hatf_watched[watched] = function;
    return hatf_watch_first + watched++ * (size_t)16;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* Changes the addresses by which this module calls other modules. All of them are resolved, because hatf cc links with -z now. */
static void change_calls(void) {
    Dl_info about;
    struct link_map *map = 0;
    if (!dladdr1((const void *)__ehdr_start, &about, (void **)&map, RTLD_DL_LINKMAP) || !map) {
        return;
    }
    const uintptr_t bias = map->l_addr;
    const ElfW(Sym) *symbols = 0;
    const char *strings = 0;
    const ElfW(Rela) *tables[2] = {0, 0};
    size_t bytes[2] = {0, 0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t value = entry->d_un.d_ptr;
        /* The loader has relocated some of these offsets to addresses, but not others. */
        const void *place = (const void *)(value < bias ? value + bias : value);
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols = place; break;
        case DT_STRTAB: strings = place; break;
        case DT_JMPREL: tables[0] = place; break;
        case DT_PLTRELSZ: bytes[0] = entry->d_un.d_val; break;
        case DT_RELA: tables[1] = place; break;
        case DT_RELASZ: bytes[1] = entry->d_un.d_val; break;
        default: break;
        }
    }
    const ElfW(Ehdr) *header = (const void *)__ehdr_start;
    const ElfW(Phdr) *segments = (const void *)(__ehdr_start + header->e_phoff);
    uintptr_t start = 0, end = 0, variables = 0, variables_end = 0, guarded = 0, guarded_end = 0;
    for (int at = 0; at < header->e_phnum; at++) {
        uintptr_t from = bias + segments[at].p_vaddr, to = from + segments[at].p_memsz;
        if (segments[at].p_type == PT_LOAD && segments[at].p_flags & PF_X) {
            start = start ? start : from;
            end = to;
        } else if (segments[at].p_type == PT_LOAD && segments[at].p_flags & PF_W) {
            variables = variables ? variables : from;
            variables_end = to;
        } else if (segments[at].p_type == PT_GNU_RELRO) {
            guarded = from & ~(uintptr_t)4095;
            guarded_end = to & ~(uintptr_t)4095;
        }
    }
    recorder->module(start, end, variables, variables_end);
    if (!symbols || !strings) {
        recorder->reach(0, 0, 1);
        return;
    }
    if (guarded_end > guarded && mprotect((void *)guarded, guarded_end - guarded, PROT_READ | PROT_WRITE)) {
        recorder->reach(0, 0, 1);
        return;
    }
    for (int table = 0; table < 2; table++) {
        for (size_t at = 0; tables[table] && at < bytes[table] / sizeof(ElfW(Rela)); at++) {
            const ElfW(Rela) *entry = &tables[table][at];
            const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(entry->r_info)];
            unsigned type = ELF64_R_TYPE(entry->r_info);
            void **slot = (void **)(bias + entry->r_offset);
            int is_call = type == R_X86_64_JUMP_SLOT || (type == R_X86_64_GLOB_DAT && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC);
            /* The module's own functions are instrumented, so calls to them stay unchanged. */
            if (!is_call || !*slot || ((uintptr_t)*slot >= start && (uintptr_t)*slot < end)) {
                continue;
            }
            void *instead = in_place_of(strings + symbol->st_name, *slot);
            if (instead) {
                *slot = instead;
            }
        }
    }
    if (guarded_end > guarded) {
        mprotect((void *)guarded, guarded_end - guarded, PROT_READ);
    }
}

/* The symbol is weak, so that the program starts without a recorder. It is read from the address table filled by the dynamic linker, as in hatf.h. */
__attribute__((constructor(101))) static void begin(void) {
    const struct hatf_accesses *(*find)(void);
    __asm__(".weak hatf_recorder_accesses_2\n\tmovq hatf_recorder_accesses_2@GOTPCREL(%%rip), %0" : "=r"(find));
    recorder = find ? find() : 0;
    if (recorder) {
        change_calls();
        regions = recorder->regions;
    }
}
