/* A program that is recorded only part of the time. Compiled by tests/it/control.rs with the shipped header. */
#include "hatf.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile block[4];

/* Waits until recording is on or off, and gives up after two minutes or more. */
static void until(int on) {
    for (int n = 0; n < 120000 && hatf_is_recording() != on; n++) usleep(1000);
}

static void write_word(const char *path, const char *word) {
    FILE *file = fopen(path, "w");
    fputs(word, file);
    fclose(file);
}

/* Allocates a block whose size identifies the call. */
static void one(int number, size_t size) { block[number] = malloc(size); }

static void *thread(void *unused) {
    one(2, 1000003);
    return unused;
}

/* Blocks passed between threads. */
static _Atomic(void *) handed[64];

/* Allocates, frees blocks of other threads, and turns recording off and on. */
static void *toggling(void *seed) {
    unsigned state = (unsigned)(size_t)seed;
    for (int n = 0; n < 60000; n++) {
        state = state * 1664525 + 1013904223;
        free(atomic_exchange(&handed[state >> 26], malloc(24 + (state >> 20) % 16)));
        if ((state >> 10) % 2 == 0) (n % 3 % 2 ? hatf_start : hatf_stop)();
    }
    return NULL;
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    one(0, 1000000);
    errno = 77;
    if (!strcmp(how, "api")) {
        if (!hatf_is_recording()) return 1;
        hatf_stop();
        hatf_stop();
        if (hatf_is_recording()) return 2;
        hatf_mark("not this");
        one(1, 1000001);
        free(block[0]);
        hatf_start();
        hatf_start();
        hatf_mark("this");
        one(0, 1000002);
        free(block[1]);
        pthread_t other;
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
        hatf_stop();
        one(3, 1000004);
        return errno == 77 ? 0 : 3;
    }
    if (!strcmp(how, "signal")) {
        /* The program signals itself; the first signal turns recording off. */
        raise(SIGUSR2);
        one(1, 1000001);
        raise(SIGUSR2);
        one(2, 1000002);
        return errno == 77 ? 0 : 3;
    }
    if (!strcmp(how, "parent")) {
        kill(getppid(), SIGUSR2);
        until(1);
        one(1, 1000001);
        pid_t child = fork();
        if (child == 0) {
            one(2, 1000002);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        return 0;
    }
    if (!strcmp(how, "file")) {
        write_word(arguments[2], "on\n");
        until(1);
        one(1, 1000001);
        write_word(arguments[2], "off\n");
        until(0);
        one(2, 1000002);
        pid_t child = fork();
        if (child == 0) {
            one(3, 1000003);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        return 0;
    }
    if (!strcmp(how, "toggle")) {
        pthread_t threads[3];
        for (size_t n = 0; n < 3; n++) pthread_create(&threads[n], NULL, toggling, (void *)(n + 1));
        for (int n = 0; n < 3; n++) pthread_join(threads[n], NULL);
        return 0;
    }
    if (!strcmp(how, "keep") || !strcmp(how, "kill")) {
        for (int n = 0; n < 100000; n++) {
            block[3] = malloc(32 + n % 64);
            free(block[3]);
        }
        if (!strcmp(how, "kill")) {
            /* Give the recorder time to process the kept events at least once. */
            usleep(200000);
            kill(getppid(), SIGKILL);
            one(2, 1000002);
            return 0;
        }
        one(1, 1000001);
        hatf_dump();
        /* Wait for the requested trace. */
        for (int n = 0; n < 120000 && access(arguments[2], F_OK) != 0; n++) usleep(1000);
        one(2, 1000002);
        free(block[0]);
        return 0;
    }
    if (!strcmp(how, "last")) {
        usleep(1000000);
        for (int n = 0; n < 200000; n++) {
            block[3] = malloc(32 + n % 64);
            free(block[3]);
        }
        /* Request more traces while one is being written. */
        for (int n = 0; n < 3; n++) hatf_dump();
        for (int n = 0; n < 120000 && access(arguments[2], F_OK) != 0; n++) usleep(1000);
        return access(arguments[2], F_OK) != 0;
    }
    /* Without a recorder, these calls have no effect. */
    hatf_start();
    hatf_stop();
    hatf_dump();
    return hatf_is_recording();
}
