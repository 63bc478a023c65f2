/* Allocates in three functions: many small blocks that are freed, some that stay live, and a few large ones. The argument is the count. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread void *volatile sink;

__attribute__((noinline)) static void churn(int count) {
    for (int i = 0; i < count; i++) {
        sink = malloc(64);
        sink = realloc(sink, 256);
        free(sink);
    }
}

__attribute__((noinline)) static void keep(int count) {
    static void *last;
    for (int i = 0; i < count; i++) {
        void **block = malloc(100);
        *block = last;
        last = block;
    }
    sink = last;
}

__attribute__((noinline)) static void large(int count) {
    for (int i = 0; i < count; i++) {
        sink = malloc(300000);
        free(sink);
    }
}

static void *thread(void *count) {
    churn((int)(long)count);
    return NULL;
}

int main(int words, char **argument) {
    int count = words > 1 ? atoi(argument[1]) : 1;
    pthread_t other;
    pthread_create(&other, NULL, thread, (void *)(long)count);
    churn(count);
    pthread_join(other, NULL);
    keep(count);
    large(count / 100);
    return 0;
}
