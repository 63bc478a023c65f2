#include <stdio.h>
#include <sys/resource.h>
#include <stdlib.h>
#include <unistd.h>

/* Limits the address space like `ulimit -v`, to 1 GiB more than it is now. */
static void limit(void) {
    long pages = 0;
    FILE *sizes = fopen("/proc/self/statm", "r");
    if (fscanf(sizes, "%ld", &pages) != 1)
        exit(9);
    fclose(sizes);
    rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 30);
    setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
}

static void load(void) {
    for (;;) {
        char *block = malloc(100 << 20);
        if (!block)
            abort();
        block[0] = 1;
    }
}

int main(void) {
    limit();
    load();
}
