/* Allocates a burst of blocks for each input line, and prints the number of waits during the burst. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static long waits(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

int main(void) {
    char line[80];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long before = waits();
        for (int n = 0; n < 60000; n++) {
            void *volatile block = malloc(77);
            free(block);
        }
        printf("%ld\n", waits() - before);
        fflush(stdout);
    }
    puts("0 damaged");
    return 7;
}
