/* Measures the cost of an event with the C header: prints rows of the benchmark `telemetry` once. */
#define BENCH_IMPLEMENTATION
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EVENTS 2000000

static uint8_t buffer[64 << 10];
static uint8_t entries[1 << 20];
static bench_emitter emitter;

static double processor(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
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
        double started; \
        uint64_t n; \
        for (n = 0; n < EVENTS / 10; n++) { \
            event; \
        } \
        started = processor(CLOCK_THREAD_CPUTIME_ID); \
        for (n = 0; n < EVENTS; n++) { \
            event; \
        } \
        printf("%s|%f|-|-|-\n", what, (processor(CLOCK_THREAD_CPUTIME_ID) - started) / EVENTS); \
    } while (0)

int main(int count, char **arguments)
{
    static bench_file file;
    volatile uint64_t seen = 0;
    bench_trace trace;
    uint64_t n;
    double thread, process;
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
    ROW("C header, three fields, chunks thrown away", BENCH_EMIT_PLAIN(&emitter, n * 64, (uint32_t)n & 0xfff, 3));
    ROW("C header, three fields and a time of the system's clock", BENCH_EMIT_STAMPED(&emitter, n * 64, (uint32_t)n & 0xfff, 3));
    ROW("the system's clock alone", seen = clock_of_system(NULL));
    (void)seen;
    if (bench_open(&file, arguments[1]) != 0) {
        return 1;
    }
    bench_set_kinds("all");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    if (bench_emitter_begin(&emitter, &file.trace, buffer, sizeof buffer) != 0) {
        return 1;
    }
    process = processor(CLOCK_PROCESS_CPUTIME_ID);
    thread = processor(CLOCK_THREAD_CPUTIME_ID);
    for (n = 0; n < EVENTS; n++) {
        BENCH_EMIT_STAMPED(&emitter, n * 64, (uint32_t)n & 0xfff, 3);
    }
    thread = processor(CLOCK_THREAD_CPUTIME_ID) - thread;
    if (bench_emitter_end(&emitter) != 0 || bench_close(&file) != 0) {
        return 1;
    }
    process = processor(CLOCK_PROCESS_CPUTIME_ID) - process;
    printf("C header, to a file, not compressed|%f|%f|", thread / EVENTS, process / EVENTS);
    printf("%f|0\n", (double)file.trace.length / EVENTS);
    return 0;
}
