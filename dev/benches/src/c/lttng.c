/* Measures the cost of an LTTng-UST tracepoint: emits events of one kind, and prints nanoseconds of CPU time per event,
 * of the thread and of the process. `lttng_program off|stamped|said EVENTS` */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double processor(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int count, char **arguments)
{
    uint64_t n, events;
    double thread, process;
    if (count != 3) {
        return 2;
    }
    events = strtoull(arguments[2], NULL, 10);
    process = processor(CLOCK_PROCESS_CPUTIME_ID);
    thread = processor(CLOCK_THREAD_CPUTIME_ID);
    if (strcmp(arguments[1], "off") == 0) {
        for (n = 0; n < events; n++) {
            lttng_ust_tracepoint(metatf_bench, off, n * 64, (uint32_t)n & 0xfff, 3);
        }
    } else if (strcmp(arguments[1], "stamped") == 0) {
        for (n = 0; n < events; n++) {
            lttng_ust_tracepoint(metatf_bench, stamped, n * 64, (uint32_t)n & 0xfff, 3);
        }
    } else if (strcmp(arguments[1], "said") == 0) {
        for (n = 0; n < events; n++) {
            lttng_ust_tracepoint(metatf_bench, said, "a text to be put");
        }
    } else {
        return 2;
    }
    thread = processor(CLOCK_THREAD_CPUTIME_ID) - thread;
    process = processor(CLOCK_PROCESS_CPUTIME_ID) - process;
    printf("%f %f\n", thread / (double)events, process / (double)events);
    return 0;
}
