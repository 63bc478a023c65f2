#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void leak(void) {
    char *block = malloc(500);
    block[0] = 1;
}

int main(void) {
    if (fork() == 0) {
        for (int round = 0; round < 100; round++) {
            for (int block = 0; block < 20; block++)
                leak();
            usleep(16000);
        }
        exit(0);
    }
    wait(0);
}
