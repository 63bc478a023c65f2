/* Has the C library create a thread for each expiration of a timer, and prints the growth of the address space in KiB over 300 threads. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_int expired;

static void on_time(union sigval value) {
    (void)value;
    void *volatile block = malloc(7777);
    free(block);
    expired++;
}

static long address_space(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1) {
        exit(8);
    }
    fclose(file);
    return pages * 4;
}

static void wait_for(int count) {
    while (expired < count) {
        usleep(1000);
    }
}

int main(void) {
    /* Use small stacks and one arena, so that the C library keeps little memory for threads. */
    pthread_attr_t small;
    mallopt(M_ARENA_MAX, 1);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_time, .sigev_notify_attributes = &small};
    struct itimerspec often = {{0, 2000000}, {0, 2000000}}, never = {{0, 0}, {0, 0}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, 0)) {
        return 8;
    }
    wait_for(100);
    long before = address_space();
    wait_for(400);
    long after = address_space();
    timer_settime(timer, 0, &never, 0);
    printf("%ld\n", after - before);
    fflush(stdout);
    _exit(7);
}
