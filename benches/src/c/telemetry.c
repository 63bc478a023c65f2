/* What an event costs by the header for C: rows of the table of `telemetry`, nanoseconds of processor time. */
#define BENCH_IMPLEMENTATION
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EVENTS 2000000
#define RUNS 9

static uint8_t buffer[64 << 10];
static uint8_t entries[1 << 20];
static bench_emitter emitter;

static double processor(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static int nowhere(void *context, const void *bytes, size_t length)
{
    (void)context;
    (void)bytes;
    (void)length;
    return 0;
}

static uint64_t clock_of_system(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define ROW(what, event) \
    do { \
        double runs[RUNS]; \
        int run; \
        uint64_t n; \
        for (run = 0; run < RUNS; run++) { \
            double started = processor(CLOCK_THREAD_CPUTIME_ID); \
            for (n = 0; n < EVENTS; n++) { \
                event; \
            } \
            runs[run] = (processor(CLOCK_THREAD_CPUTIME_ID) - started) / EVENTS; \
        } \
        qsort(runs, RUNS, sizeof runs[0], compare); \
        printf("| %s | %.2f |\n", what, runs[RUNS / 2]); \
    } while (0)

int main(int count, char **arguments)
{
    static bench_file file;
    volatile uint64_t seen = 0;
    bench_trace trace;
    uint64_t n;
    double started;
    if (count != 2) {
        return 2;
    }
    memset(&trace, 0, sizeof trace);
    trace.write = nowhere;
    trace.clock = clock_of_system;
    if (bench_begin(&trace) != 0 || bench_emitter_begin(&emitter, &trace, buffer, sizeof buffer) != 0) {
        return 1;
    }
    ROW("C header, off", BENCH_EMIT_OFF(&emitter, n * 64, (uint32_t)n & 0xfff, 3));
    bench_set_kinds("all");
    ROW("C header, three fields, chunks made and thrown away", BENCH_EMIT_PLAIN(&emitter, n * 64, (uint32_t)n & 0xfff, 3));
    ROW("C header, with a time of the system's clock", BENCH_EMIT_STAMPED(&emitter, n * 64, (uint32_t)n & 0xfff, 3));
    ROW("the system's clock alone", seen = clock_of_system(NULL));
    (void)seen;
    started = processor(CLOCK_PROCESS_CPUTIME_ID);
    if (bench_open(&file, arguments[1]) != 0) {
        return 1;
    }
    bench_set_kinds("all");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    if (bench_emitter_begin(&emitter, &file.trace, buffer, sizeof buffer) != 0) {
        return 1;
    }
    for (n = 0; n < EVENTS; n++) {
        BENCH_EMIT_STAMPED(&emitter, n * 64, (uint32_t)n & 0xfff, 3);
    }
    if (bench_emitter_end(&emitter) != 0 || bench_close(&file) != 0) {
        return 1;
    }
    printf("| C header, with a time, to a file, not compressed | %.2f |\n", (processor(CLOCK_PROCESS_CPUTIME_ID) - started) / EVENTS);
    printf("| the bytes of each of these on disk | %.2f |\n", (double)file.trace.length / EVENTS);
    return 0;
}
