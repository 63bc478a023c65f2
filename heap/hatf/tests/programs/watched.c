/* Grows slowly and prints its progress until FILE exists: watched FILE. Then ends with status 3, or with 4 after an interrupt. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

static void *kept;

__attribute__((noinline)) static void grow(void) {
    void **block = malloc(10000);
    *block = kept;
    kept = block;
}

__attribute__((noinline)) static void churn(void) {
    for (int i = 0; i < 20; i++) {
        void *volatile block = malloc(100 + i);
        free(block);
    }
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    signal(SIGINT, interrupt);
    for (int round = 1; round < 6000; round++) {
        grow();
        churn();
        printf("round %d\n", round);
        if (count > 1 && access(arguments[1], F_OK) == 0) {
            printf("it was told to stop\n");
            return 3;
        }
        if (interrupted) return 4;
        usleep(10000);
    }
    return 5;
}
