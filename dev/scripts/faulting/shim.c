/* Counts the calls of a command by class and makes one of them fail. Loaded with LD_PRELOAD.
 *
 * FAULT_COUNTS=FILE   4096 bytes shared by all processes of the command: the counts, then the path of the failed call
 * FAULT_CLASS=CLASS   the class of the failing call: one of `classes`
 * FAULT_CALL=N        the number of the failing call, from 1, or 0 for no failure
 * FAULT=ERROR         an error number; SHORT: a read or a write of half of the bytes; KILL: the process is killed;
 *                     CUT: the call succeeds, but FAULT_INPUT is first truncated to half of its length
 * FAULT_STICKY=1      all later calls of the class fail, too
 *
 * System calls that bypass the C library are not intercepted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum class { WRITE, STDOUT, FSYNC, RENAME, OPEN, MMAP, TRUNCATE, ALLOCATE, CLOSE, READ, LINK, UNLINK, MKDIR, COPY, CLASSES };
static const char *const classes[CLASSES] = {"write", "stdout", "fsync", "rename", "open", "mmap", "truncate", "allocate", "close", "read", "link", "unlink", "mkdir", "copy"};

struct shared {
    int counts[32];
    int fired;
    char path[1024];
};

static struct shared *shared;
static int wanted = -1, call, sticky, error;
static const char *fault = "", *input;

__attribute__((constructor)) static void start(void) {
    static int started;
    const char *counts = getenv("FAULT_COUNTS"), *class = getenv("FAULT_CLASS");
    if (started++ || !counts) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, counts, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *memory = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (memory == MAP_FAILED) return;
    for (int i = 0; class && i < CLASSES; i++)
        if (!strcmp(class, classes[i])) wanted = i;
    call = getenv("FAULT_CALL") ? atoi(getenv("FAULT_CALL")) : 0;
    sticky = getenv("FAULT_STICKY") != NULL;
    if (getenv("FAULT")) fault = getenv("FAULT");
    error = atoi(fault);
    input = getenv("FAULT_INPUT");
    shared = memory;
}

static void note(int file, const char *path) {
    if (__atomic_fetch_add(&shared->fired, 1, __ATOMIC_SEQ_CST)) return;
    if (path) {
        strncpy(shared->path, path, sizeof shared->path - 1);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        syscall(SYS_readlinkat, AT_FDCWD, link, shared->path, sizeof shared->path - 1);
    }
}

/* Counts a call. Returns 0 to make the call, 1 if it fails with `errno`, and 2 to make it with half of the bytes. */
static int fails(enum class class, int file, const char *path) {
    start();
    if (!shared) return 0;
    int number = __atomic_add_fetch(&shared->counts[class], 1, __ATOMIC_SEQ_CST);
    if ((int)class != wanted || !call || (number != call && !(sticky && number > call))) return 0;
    note(file, path);
    if (!strcmp(fault, "KILL")) {
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
        for (;;) {}
    }
    if (!strcmp(fault, "CUT")) {
        struct stat about;
        if (input && !stat(input, &about)) syscall(SYS_truncate, input, about.st_size / 2);
        return 0;
    }
    if (!strcmp(fault, "SHORT")) return 2;
    errno = error;
    return 1;
}

static size_t less(int how, size_t bytes) { return how == 2 && bytes > 1 ? bytes / 2 : bytes; }
static enum class writing(int file) { return file == 1 ? STDOUT : WRITE; }

/* Writes to standard error never fail, so that the command can print its error messages. */
ssize_t write(int file, const void *bytes, size_t length) {
    int how = file == 2 ? 0 : fails(writing(file), file, NULL);
    return how == 1 ? -1 : syscall(SYS_write, file, bytes, less(how, length));
}
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    int how = fails(writing(file), file, NULL);
    return how == 1 ? -1 : syscall(SYS_pwrite64, file, bytes, less(how, length), at);
}
ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return pwrite64(file, bytes, length, at); }
ssize_t writev(int file, const struct iovec *parts, int count) {
    int how = file == 2 ? 0 : fails(writing(file), file, NULL);
    if (how == 2 && count > 0) return syscall(SYS_write, file, parts[0].iov_base, less(how, parts[0].iov_len));
    return how == 1 ? -1 : syscall(SYS_writev, file, parts, count);
}
ssize_t read(int file, void *bytes, size_t length) {
    int how = fails(READ, file, NULL);
    return how == 1 ? -1 : syscall(SYS_read, file, bytes, less(how, length));
}
ssize_t pread64(int file, void *bytes, size_t length, off64_t at) {
    int how = fails(READ, file, NULL);
    return how == 1 ? -1 : syscall(SYS_pread64, file, bytes, less(how, length), at);
}
ssize_t pread(int file, void *bytes, size_t length, off_t at) { return pread64(file, bytes, length, at); }

#define CALL(class, file, path, ...) (fails(class, file, path) ? -1 : (int)syscall(__VA_ARGS__))
int fsync(int file) { return CALL(FSYNC, file, NULL, SYS_fsync, file); }
int fdatasync(int file) { return CALL(FSYNC, file, NULL, SYS_fdatasync, file); }
int rename(const char *from, const char *to) { return CALL(RENAME, -1, to, SYS_rename, from, to); }
int renameat(int a, const char *from, int b, const char *to) { return CALL(RENAME, -1, to, SYS_renameat2, a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return CALL(RENAME, -1, to, SYS_renameat2, a, from, b, to, flags); }
int link(const char *from, const char *to) { return CALL(LINK, -1, to, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) { return CALL(LINK, -1, to, SYS_linkat, a, from, b, to, flags); }
int unlink(const char *path) { return CALL(UNLINK, -1, path, SYS_unlinkat, AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return CALL(UNLINK, -1, path, SYS_unlinkat, folder, path, flags); }
int mkdir(const char *path, mode_t mode) { return CALL(MKDIR, -1, path, SYS_mkdirat, AT_FDCWD, path, mode); }
int ftruncate64(int file, off64_t length) { return CALL(TRUNCATE, file, NULL, SYS_ftruncate, file, length); }
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }
int fallocate64(int file, int mode, off64_t at, off64_t length) { return CALL(ALLOCATE, file, NULL, SYS_fallocate, file, mode, at, length); }
int fallocate(int file, int mode, off_t at, off_t length) { return fallocate64(file, mode, at, length); }
int posix_fallocate64(int file, off64_t at, off64_t length) { return fallocate64(file, 0, at, length) ? errno : 0; }
int posix_fallocate(int file, off_t at, off_t length) { return posix_fallocate64(file, at, length); }
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t length, unsigned flags) {
    return fails(COPY, to, NULL) ? -1 : syscall(SYS_copy_file_range, from, at, to, to_at, length, flags);
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t length) { return fails(COPY, to, NULL) ? -1 : syscall(SYS_sendfile, to, from, at, length); }

/* Closes the file even if the call fails. */
int close(int file) {
    int failed = file > 2 && fails(CLOSE, file, NULL), kept = errno, closed = (int)syscall(SYS_close, file);
    if (failed) errno = kept;
    return failed ? -1 : closed;
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    return CALL(OPEN, -1, path, SYS_openat, folder, path, flags | O_LARGEFILE, mode);
}
#define MODE(mode)                                             \
    mode_t mode = 0;                                           \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list rest;                                          \
        va_start(rest, flags);                                 \
        mode = va_arg(rest, mode_t);                           \
        va_end(rest);                                          \
    }
int open64(const char *path, int flags, ...) { MODE(mode) return opened(AT_FDCWD, path, flags, mode); }
int open(const char *path, int flags, ...) { MODE(mode) return opened(AT_FDCWD, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(mode) return opened(folder, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(mode) return opened(folder, path, flags, mode); }
void *mmap64(void *place, size_t length, int access, int flags, int file, off64_t at) {
    if (file >= 0 && fails(MMAP, file, NULL)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, place, length, access, flags, file, at);
}
void *mmap(void *place, size_t length, int access, int flags, int file, off_t at) { return mmap64(place, length, access, flags, file, at); }
