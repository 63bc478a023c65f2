/* Emits events of telemetry/metatf-telemetry/tests/events.dtd, as selected by its first argument. */
#ifdef EVENTS_POSIX
#define _XOPEN_SOURCE 700
#endif
#define EVENTS_IMPLEMENTATION
#define EVENTS_STRING_BYTES 1200
#include "events.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FEW 2000

static uint8_t memory[2][EVENTS_BUFFER_LEAST + 1000];
static uint8_t entries[64 * 32];
static events_emitter emitters[2];

/* Bare-metal functions: memory instead of a file, and no clock. `fails` counts down to a failing write. */
static uint8_t trace_bytes[1 << 16];
static size_t trace_length;
static int fails;

static int to_memory(void *context, const void *bytes, size_t length)
{
    (void)context;
    if ((fails > 0 && --fails == 0) || length > sizeof trace_bytes - trace_length) {
        return -1;
    }
    memcpy(trace_bytes + trace_length, bytes, length);
    trace_length += length;
    return 0;
}

static int expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "events.c: %s\n", what);
        exit(1);
    }
    return holds;
}

/* Emits one event of each type with minimum and maximum values. */
static void each(events_emitter *emitter)
{
    uint8_t id[16];
    char text[301];
    size_t i;
    for (i = 0; i < sizeof id; i++) {
        id[i] = (uint8_t)i;
    }
    for (i = 0; i < 300; i++) {
        text[i] = 'x';
    }
    /* Truncation must not separate these two bytes. */
    text[251] = '\303';
    text[252] = '\251';
    text[300] = 0;
    EVENTS_EMIT_STEP(emitter, 4000000000u);
    EVENTS_EMIT_TYPES(emitter, 255, 65535, 4294967295u, UINT64_MAX, -128, -32768, INT32_MIN, INT64_MIN, true, 0.5f, -0.25, id);
    events_emit_types(emitter, 0, 0, 0, 0, 127, 32767, INT32_MAX, INT64_MAX, false, -1.5f, 1e300, id);
    EVENTS_EMIT_SAID(emitter, "caf\303\251", id, 3);
    EVENTS_EMIT_SAID(emitter, text, text, sizeof text);
    EVENTS_EMIT_SAID(emitter, NULL, NULL, 0);
    EVENTS_EMIT_TICK(emitter);
}

/* Emits in a signal handler that interrupts an emit: `clock` raises the signal. */
static int raises;

static void handler(int signal)
{
    (void)signal;
    EVENTS_EMIT_STEP(&emitters[0], 99);
}

static uint64_t clock_that_raises(void *context)
{
    (void)context;
    if (raises) {
        raises = 0;
        raise(SIGUSR1);
    }
    return 7;
}

/* Interns strings; there is no space for the last one. */
static void strings(events_trace *trace, events_emitter *emitter)
{
    char text[301];
    uint32_t number;
    uint32_t i;
    memset(text, 'y', 300);
    text[300] = 0;
    number = events_intern(trace, "pool caf\303\251");
    expect(number == 1 && events_intern(trace, "") == 2 && events_intern(trace, text) == 3, "numbers");
    text[252] = 0;
    expect(events_intern(trace, text) == 4, "a text of the length at which one is cut");
    expect(events_intern(trace, "pool caf\303\251") == number && events_intern(trace, NULL) == 2, "the same numbers");
    EVENTS_EMIT_LABEL(emitter, 4096, number);
    EVENTS_EMIT_TOUCH(emitter, 4096, 4);
    fails = 1;
    expect(events_intern(trace, "lost") == 0 && trace->strings_refused == 1, "a write that fails");
    for (i = 5; number != 0; i++) {
        text[0] = (char)i;
        number = events_intern(trace, text);
        expect(number == i || number == 0, "a number");
    }
    expect(i > 6 && trace->strings_refused == 2, "no room");
    expect(events_intern(trace, "short") == i - 1, "where it fits");
}

/* Prints the events of a buffer as a debugger shows them. */
static void described(const events_emitter *emitter, const char *const *texts, uint32_t count)
{
    uint32_t back;
    for (back = 0; back < count; back++) {
        const char *text = events_describe(emitter, back);
        if (strncmp(text, texts[back], strlen(texts[back])) != 0) {
            fprintf(stderr, "events.c: %lu before the last: %s\n", (unsigned long)back, text);
            exit(1);
        }
    }
}

static void bare(const char *path)
{
    static const char *const texts[] = {"step (Object) time=7ns thread=1 number=2", "tick (Arena) process=4711", "said (Arena) time=7ns text=\"\" bytes="};
    static const char *const others[] = {"said (Arena) time=7ns text=\"\\x0a\\\"\" bytes=00ff",
                                         "types (Pool) time=7ns a=255 b=65535 c=0xffffffff d=0xffffffffffffffff e=-128 f=32767 g=-2147483648 h=-9223372036854775808 yes=true half=0.5 whole=-0.25 id=00010203",
                                         "step (Object) time=7ns thread=2 number=4", "step (Object)", "no event"};
    static const uint8_t id[16] = {0, 1, 2, 3};

    static const char *const none[] = {"no event"};

    static events_trace trace;
    FILE *file;
    uint32_t i;
    memset(&trace, 0, sizeof trace);
    trace.write = to_memory;
    trace.clock = clock_that_raises;
    trace.process = 4711;
    trace.index = entries;
    trace.index_bytes = sizeof entries;
    expect(events_begin(&trace) == 0, "the trace does not begin");
    expect(events_emitter_begin(&emitters[0], &trace, memory[0], EVENTS_BUFFER_LEAST - 1) != 0, "a buffer that is too small");
    expect(events_emitter_begin(&emitters[0], &trace, memory[0], EVENTS_BUFFER_LEAST) == 0, "an emitter");
    expect(events_emitter_begin(&emitters[1], &trace, memory[1], sizeof memory[1]) == 0, "another emitter");
    events_emit_step(&emitters[0], 1);
    expect(events_set_kinds("Object, arnea") != 0, "a kind that there is not");
    expect(events_set_kinds("object|0x4") == 0 && events_control[0] == 5, "a kind and a number");
    expect(events_set_kinds("18446744073709551616") != 0, "a number that is too long");
    expect(events_set_kinds("all") == 0 && events_control[1] == UINT32_MAX, "all");
    strings(&trace, &emitters[0]);
    each(&emitters[0]);
    signal(SIGUSR1, handler);
    raises = 1;
    events_emit_step(&emitters[0], 2);
    described(&emitters[0], texts, sizeof texts / sizeof texts[0]);
    expect(events_flush(&emitters[0]) == 0, "a flush");
    described(&emitters[0], none, 1);
    fails = 1;
    events_emit_step(&emitters[1], 3);
    events_emit_step(&emitters[1], 4);
    events_emit_types(&emitters[1], 255, 65535, UINT32_MAX, UINT64_MAX, -128, 32767, INT32_MIN, INT64_MIN, true, 0.5f, -0.25, id);
    events_emit_said(&emitters[1], "\n\"", "\0\377", 2);
    described(&emitters[1], others, sizeof others / sizeof others[0]);
    expect(events_flush(&emitters[1]) != 0, "a flush that fails");
    for (i = 5; i < 8; i++) {
        events_emit_step(&emitters[1], i);
    }
    expect(events_emitter_end(&emitters[0]) == 0 && events_emitter_end(&emitters[1]) == 0, "the end of emitters");
    expect(events_end(&trace) == 0, "the end");
    file = fopen(path, "wb");
    expect(file != NULL && fwrite(trace_bytes, 1, trace_length, file) == trace_length && fclose(file) == 0, "the file");
}

#ifdef EVENTS_POSIX
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <fcntl.h>
#include <unistd.h>

static void *steps(void *context)
{
    events_emitter *emitter = (events_emitter *)context;
    uint32_t i;
    for (i = 0; i < FEW; i++) {
        EVENTS_EMIT_STEP(emitter, i);
    }
    expect(events_emitter_end(emitter) == 0, "the end of a thread");
    return NULL;
}

/* Emits on two threads, into a file without an index. */
static void threads(void)
{
    static events_file file;
    pthread_t thread[2];
    int i;
    expect(events_open(&file, NULL) == 0, "the file of the environment");
    for (i = 0; i < 2; i++) {
        expect(events_emitter_begin(&emitters[i], &file.trace, memory[i], sizeof memory[i]) == 0, "an emitter");
        expect(pthread_create(&thread[i], NULL, steps, &emitters[i]) == 0, "a thread");
    }
    for (i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
    expect(events_close(&file) == 0, "the end of the file");
}

/* Writes to a file that temporarily must not grow. */
static void full(void)
{
    static events_file file;
    struct rlimit limit = {8192, RLIM_INFINITY};
    uint32_t i;
    signal(SIGXFSZ, SIG_IGN);
    expect(setrlimit(RLIMIT_FSIZE, &limit) == 0, "a limit");
    expect(events_open(&file, NULL) == 0, "a file");
    expect(events_emitter_begin(&emitters[0], &file.trace, memory[0], sizeof memory[0]) == 0, "an emitter");
    for (i = 0; i < FEW; i++) {
        events_emit_step(&emitters[0], i);
    }
    limit.rlim_cur = RLIM_INFINITY;
    expect(setrlimit(RLIMIT_FSIZE, &limit) == 0, "no limit");
    events_emit_step(&emitters[0], FEW);
    expect(events_emitter_end(&emitters[0]) == 0, "the end of the emitter");
    expect(events_close(&file) == -1 && errno == EFBIG && file.trace.lost > 1000, "the end says that events were lost");
}

/* Fills the disk with two emitters. Ending them fails if nothing more can be written, but space is reserved for the end of the trace. */
static void full_disk(void)
{
    static events_file file;
    uint32_t i;
    expect(events_open(&file, NULL) == 0, "a file");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    for (i = 0; i < 2; i++) {
        expect(events_emitter_begin(&emitters[i], &file.trace, memory[i], sizeof memory[i]) == 0, "an emitter");
    }
    for (i = 0; i < 10 * FEW; i++) {
        EVENTS_EMIT_STEP(&emitters[i & 1], i);
    }
    (void)events_emitter_end(&emitters[0]);
    (void)events_emitter_end(&emitters[1]);
    expect(events_close(&file) == -1 && errno == ENOSPC, "the end says that events were lost");
}

/* Signal handlers that interrupt a write while the thread holds the lock of the trace. */
static int (*write_of_file)(void *context, const void *bytes, size_t length);
static events_trace *interrupted;
static volatile sig_atomic_t handled;

static void handler_with_full_buffer(int signal)
{
    uint32_t i;
    (void)signal;
    errno = EILSEQ;
    for (i = 0; i < FEW; i++) {
        EVENTS_EMIT_STEP(&emitters[0], i);
    }
    expect(errno == EILSEQ, "errno stays as it was");
    expect(events_intern(interrupted, "known") == 1, "a known string");
    expect(raises == 0 || events_intern(interrupted, "a string of the handler") == 0, "a new string");
    handled++;
}

static int write_that_raises(void *context, const void *bytes, size_t length)
{
    if (raises > 0) {
        raise(SIGUSR1);
        raises = 0;
    }
    return write_of_file(context, bytes, length);
}

static void in_handlers(void)
{
    static events_file file;
    struct sigaction action;
    uint32_t i;
    expect(events_open(&file, NULL) == 0, "a file");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    write_of_file = file.trace.write;
    file.trace.write = write_that_raises;
    interrupted = &file.trace;
    expect(events_emitter_begin(&emitters[0], &file.trace, memory[0], sizeof memory[0]) == 0, "an emitter");
    expect(events_intern(&file.trace, "known") == 1, "a string");
    memset(&action, 0, sizeof action);
    action.sa_handler = handler_with_full_buffer;
    expect(sigaction(SIGUSR1, &action, NULL) == 0, "a handler");
    raises = 1;
    expect(events_intern(&file.trace, "new") == 2, "a string whose write is interrupted");
    raises = 1;
    expect(events_flush(&emitters[0]) == 0, "a flush that is interrupted");
    /* Now the handler may write. */
    raise(SIGUSR1);
    for (i = 0; i < FEW; i++) {
        EVENTS_EMIT_STEP(&emitters[0], i);
    }
    expect(handled == 3 && file.trace.strings_refused == 2, "handlers");
    expect(events_emitter_end(&emitters[0]) == 0 && events_close(&file) == 0, "the end");
}

/* Uses a control path in the program, with the kinds in the argument, if there is one. */
static void path(const char *kinds)
{
    static events_file file;
    expect(kinds == NULL || events_set_kinds(kinds) == 0, "kinds");
    expect(events_open(&file, "path.mtf") == 0, "a file");
    expect(events_emitter_begin(&emitters[0], &file.trace, memory[0], sizeof memory[0]) == 0, "an emitter");
    EVENTS_EMIT_STEP(&emitters[0], 1);
    EVENTS_EMIT_TICK(&emitters[0]);
    expect(events_emitter_end(&emitters[0]) == 0 && events_close(&file) == 0, "the end");
}

/* Emits into buffers that survive a kill, on two threads and once in a forked child, and prints the number of events of each. */
static uint32_t emitted[2];

static void *shared_steps(void *context)
{
    size_t i = (size_t)context;
    for (;;) {
        struct timespec moment = {0, 1000000};
        int count;
        for (count = 0; count < 50 && (EVENTS_LOAD(&events_control[0]) & 1) != 0; count++) {
            events_emit_step(&emitters[i], emitted[i]);
            EVENTS_STORE(&emitted[i], emitted[i] + 1);
        }
        nanosleep(&moment, NULL);
    }
    return NULL;
}

static void shared(void)
{
    static events_file file;
    static events_emitter third;
    pthread_t thread[2];
    size_t i;
    expect(events_open(&file, NULL) == 0, "a file");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    expect(events_emitter_begin_shared(&third, &file) == -1, "no buffers");
    expect(events_share(&file, 2, (8u << 20) + 1) == -1 && events_share(&file, 0, 4096) == -1, "lengths");
    expect(events_share(&file, 2, EVENTS_BUFFER_LEAST + 5000) == 0 && events_share(&file, 2, 8192) == -1, "once");
    for (i = 0; i < 2; i++) {
        expect(events_emitter_begin_shared(&emitters[i], &file) == 0, "a buffer");
    }
    expect(events_emitter_begin_shared(&third, &file) == -1, "both have a thread");
    expect(events_emitter_end(&emitters[1]) == 0 && events_emitter_begin_shared(&emitters[1], &file) == 0, "it was given back");
    /* Events of a child process are discarded. */
    if (fork() == 0) {
        events_emit_step(&emitters[0], 77);
        _exit(0);
    }
    for (i = 0; i < 2; i++) {
        expect(pthread_create(&thread[i], NULL, shared_steps, (void *)i) == 0, "a thread");
    }
    for (;;) {
        struct timespec moment = {0, 5000000};
        printf("%lu %lu\n", (unsigned long)EVENTS_LOAD(&emitted[0]), (unsigned long)EVENTS_LOAD(&emitted[1]));
        fflush(stdout);
        nanosleep(&moment, NULL);
    }
}

/* Buffers of a program that ends by itself are removed. */
static void shared_ends(void)
{
    static events_file file;
    uint32_t i;
    expect(events_open(&file, NULL) == 0 && events_share(&file, 1, 4096) == 0, "a file");
    expect(events_emitter_begin_shared(&emitters[0], &file) == 0, "a buffer");
    for (i = 0; i < FEW; i++) {
        events_emit_step(&emitters[0], i);
    }
    expect(events_emitter_end(&emitters[0]) == 0 && events_close(&file) == 0, "the end");
}

/* Another process overwrites the header of the shared buffers, which must not affect where this process writes. */
static void shared_nonsense(void)
{
    static events_file file;
    uint8_t nonsense[sizeof(events_shared_head)];
    uint32_t i;
    int other;
    expect(events_open(&file, NULL) == 0 && events_share(&file, 2, 4096) == 0, "a file");
    other = open(file.shared_path, O_WRONLY);
    memset(nonsense, 0x7f, sizeof nonsense);
    expect(other >= 0 && write(other, nonsense, sizeof nonsense) == (ssize_t)sizeof nonsense, "nonsense");
    for (i = 0; i < 2; i++) {
        expect(events_emitter_begin_shared(&emitters[i], &file) == 0, "a buffer");
    }
    events_set_kinds("all");
    for (i = 0; i < FEW; i++) {
        events_emit_step(&emitters[0], i);
    }
    for (i = 0; i < 2; i++) {
        expect(events_emitter_end(&emitters[i]) == 0, "the end of an emitter");
    }
    close(other);
    expect(events_close(&file) == 0, "the end");
}

/* Threads emit events, intern strings, and change the kinds. */
static events_file together_file;

static void *together_emits(void *context)
{
    uint8_t own[EVENTS_BUFFER_LEAST + 500];
    events_emitter emitter;
    char text[16];
    uint32_t i;
    if (context != NULL) {
        expect(events_emitter_begin_shared(&emitter, &together_file) == 0, "a shared buffer");
    } else {
        expect(events_emitter_begin(&emitter, &together_file.trace, own, sizeof own) == 0, "an emitter");
    }
    for (i = 0; i < FEW; i++) {
        snprintf(text, sizeof text, "%lu", (unsigned long)(i % 40));
        EVENTS_EMIT_STEP(&emitter, i);
        EVENTS_EMIT_LABEL(&emitter, 4096, events_intern(&together_file.trace, text));
    }
    expect(events_emitter_end(&emitter) == 0, "the end of a thread");
    return NULL;
}

static void *together_sets(void *context)
{
    uint32_t i;
    (void)context;
    for (i = 0; i < FEW; i++) {
        expect(events_set_kinds((i & 1) != 0 ? "all" : "Object Arena") == 0, "kinds");
    }
    return NULL;
}

static void together(void)
{
    pthread_t thread[5];
    size_t i;
    expect(events_open(&together_file, NULL) == 0 && events_share(&together_file, 2, 4096) == 0, "a file");
    for (i = 0; i < 5; i++) {
        void *is_shared = i < 2 ? &together_file : NULL;
        expect(pthread_create(&thread[i], NULL, i < 4 ? together_emits : together_sets, is_shared) == 0, "a thread");
    }
    for (i = 0; i < 5; i++) {
        pthread_join(thread[i], NULL);
    }
    expect(together_file.trace.strings_count == 40 && events_close(&together_file) == 0, "the end");
}

/* Emits events until it is killed, and prints the number of flushed events. */
static void until_killed(void)
{
    static events_file file;
    uint32_t i;
    expect(events_open(&file, NULL) == 0, "a file");
    expect(events_emitter_begin(&emitters[0], &file.trace, memory[0], sizeof memory[0]) == 0, "an emitter");
    for (i = 0;; i++) {
        events_emit_step(&emitters[0], i);
        if (i % 1000 == 999 && events_flush(&emitters[0]) == 0) {
            printf("%lu\n", (unsigned long)i + 1);
            fflush(stdout);
        }
    }
}
#endif

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "bare") == 0) {
        bare(arguments[2]);
#ifdef EVENTS_POSIX
    } else if (count == 2 && strcmp(arguments[1], "threads") == 0) {
        threads();
    } else if (count == 2 && strcmp(arguments[1], "full") == 0) {
        full();
    } else if (count == 2 && strcmp(arguments[1], "full-disk") == 0) {
        full_disk();
    } else if (count == 2 && strcmp(arguments[1], "in-handlers") == 0) {
        in_handlers();
    } else if (count >= 2 && strcmp(arguments[1], "path") == 0) {
        path(count == 3 ? arguments[2] : NULL);
    } else if (count == 2 && strcmp(arguments[1], "shared-nonsense") == 0) {
        shared_nonsense();
    } else if (count == 2 && strcmp(arguments[1], "together") == 0) {
        together();
    } else if (count == 2 && strcmp(arguments[1], "shared") == 0) {
        shared();
    } else if (count == 2 && strcmp(arguments[1], "shared-ends") == 0) {
        shared_ends();
    } else if (count == 2 && strcmp(arguments[1], "until-killed") == 0) {
        until_killed();
#endif
    } else {
        return 2;
    }
    return 0;
}
