#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *volatile slot;

static void *consume(void *unused) {
    for (int block = 0; block < 1000; block++) {
        while (!slot)
            usleep(10);
        free(slot);
        slot = 0;
    }
    return unused;
}

static char *produce(void) {
    char *block = malloc(256);
    block[0] = 2;
    return block;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, consume, 0);
    for (int block = 0; block < 1000; block++) {
        while (slot)
            usleep(10);
        slot = produce();
    }
    pthread_join(thread, 0);
}
