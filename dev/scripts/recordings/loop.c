// Allocates and frees: `loop PAIRS THREADS DEPTH`. Writes its CPU time in nanoseconds to the file named by LOOP_TIME.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static long pairs;
static int depth;
__attribute__((noinline)) static void down(int left) {
    if (left > 0) {
        down(left - 1);
        __asm__ volatile("");
    } else {
        void *volatile block = malloc(64);
        free(block);
    }
}
static void *run(void *unused) {
    for (long n = 0; n < pairs; n++) down(depth);
    return unused;
}
int main(int count, char **arguments) {
    pthread_t threads[16];
    int number = count > 2 ? atoi(arguments[2]) : 1;
    if (number < 1 || number > 16) return 2;
    depth = count > 3 ? atoi(arguments[3]) : 0;
    pairs = atol(arguments[1]) / number;
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int n = 1; n < number; n++) pthread_create(&threads[n], NULL, run, NULL);
    run(NULL);
    for (int n = 1; n < number; n++) pthread_join(threads[n], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    const char *name = getenv("LOOP_TIME");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (!file) return 0;
    fprintf(file, "%ld\n", (long)(end.tv_sec - begin.tv_sec) * 1000000000 + (end.tv_nsec - begin.tv_nsec));
    return fclose(file) ? 1 : 0;
}
