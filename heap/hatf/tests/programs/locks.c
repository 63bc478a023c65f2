/* Locks its memory. Prints the KiB locked, before and after mapping another 1 MiB. With an argument, it drops its privileges and may lock
 * at most 64 MiB. Ends with status 7. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void blocks(int count) {
    for (int n = 0; n < count; n++) {
        void *volatile block = malloc(7777);
        free(block);
    }
}

static void *thread(void *unused) {
    blocks(1000);
    return unused;
}

static long locked(void) {
    char line[256];
    long kibibytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "VmLck: %ld", &kibibytes);
    }
    if (file) {
        fclose(file);
    }
    return kibibytes;
}

int main(int count, char **arguments) {
    (void)arguments;
    blocks(1000);
    if (count > 1) {
        struct rlimit limit;
        getrlimit(RLIMIT_MEMLOCK, &limit);
        if (limit.rlim_max > 64 << 20) {
            limit.rlim_max = 64 << 20;
        }
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) || setuid(65534)) {
            return 6;
        }
    }
    errno = 77;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) || errno != 77) {
        perror("mlockall");
        return 8;
    }
    long before = locked();
    if (mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
        perror("mmap");
        return 8;
    }
    printf("%ld %ld\n", before, locked());
    fflush(stdout);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_t other;
    if (pthread_create(&other, &small, thread, 0) || pthread_join(other, 0)) {
        return 8;
    }
    blocks(20000);
    /* An invalid call returns an error and has no other effect. */
    if (mlockall(64) == 0 || errno != EINVAL || munlockall() || locked() != 0) {
        return 8;
    }
    return 7;
}
