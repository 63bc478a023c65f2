/* Calls every allocator function of a small C library, in threads, in a forked process and in an executed program. Sizes end in 00077,
 * which distinguishes them from blocks of the library. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *run(void *argument) {
    for (int i = 0; i < 50; i++) {
        char *block = malloc(100077);
        memset(block, i, 100077);
        free(block);
    }
    return argument;
}

int main(int count, char **arguments) {
    if (count > 1) {
        free(malloc(200077));
        return malloc(200077) == NULL;
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    void *block = calloc(300077, 1);
    block = realloc(block, 400077);
    void *aligned = NULL;
    if (posix_memalign(&aligned, 64, 500077) || !aligned_alloc(64, 600077) || !memalign(64, 700077))
        return 1;
    free(aligned);
    fflush(stdout);
    if (fork() == 0) {
        free(malloc(100077));
        _exit(block == NULL);
    }
    wait(NULL);
    if (fork() == 0) {
        execl("/proc/self/exe", arguments[0], "again", (char *)NULL);
        _exit(1);
    }
    int status;
    wait(&status);
    printf("%d\n", status);
    return 7;
}
