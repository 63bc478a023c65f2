/* Starts many short-lived threads. Their key destructors allocate and free in each round. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_key_t key;

/* Requests another call, until the C library stops. */
static void last(void *block) {
    free(block);
    pthread_setspecific(key, malloc(40));
}

static void *work(void *seed) {
    pthread_setspecific(key, malloc(24));
    void *volatile blocks[16];
    for (int n = 0; n < 16; n++) blocks[n] = malloc(16 + (size_t)seed % 64 + n);
    for (int n = 0; n < 16; n++) blocks[n] = realloc(blocks[n], 100);
    for (int n = 0; n < 16; n++) free(blocks[n]);
    /* The buffer of strerror is freed when the thread has nearly ended. */
    return strerror(1000 + (int)(size_t)seed) == NULL ? seed : NULL;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1000;
    pthread_key_create(&key, last);
    pthread_t at_once[8];
    for (int n = 0; n < threads; n += 8) {
        for (int m = 0; m < 8; m++) pthread_create(&at_once[m], NULL, work, (void *)(size_t)(n + m));
        for (int m = 0; m < 8; m++) pthread_join(at_once[m], NULL);
    }
    return 0;
}
