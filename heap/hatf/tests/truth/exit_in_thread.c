#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *keep(void) {
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    return block;
}

static void *leave(void *block) {
    exit(((char *)block)[0] + 2);
}

int main(void) {
    char *block = keep();
    usleep(100000);
    pthread_t thread;
    pthread_create(&thread, 0, leave, block);
    pause();
}
