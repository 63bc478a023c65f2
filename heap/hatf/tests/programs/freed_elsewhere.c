/* A thread frees seven blocks of another thread. The program also forks, so that there is a list of processes. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *blocks[7];

static void *end(void *unused) {
    for (int i = 0; i < 7; i++) {
        free(blocks[i]);
    }
    return unused;
}

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < 7; i++) {
        blocks[i] = malloc(5001);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
    return 0;
}
