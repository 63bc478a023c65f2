/* Interrupts a program continuously by a timer, whose signal handler maps and unmaps a page. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile long handled;

static void handle(int number) {
    int error = errno;
    void *pages = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages, 4096);
    handled++;
    errno = error;
    (void)number;
}

void begin(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 100}, {0, 100}};
    sigaction(SIGPROF, &action, 0);
    setitimer(ITIMER_PROF, &often, 0);
}

long end(void) {
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &never, 0);
    return handled;
}
