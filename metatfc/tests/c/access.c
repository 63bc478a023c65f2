/* Writes every record of access.dtd to the trace in its second argument, as selected by its first argument. */
#define _XOPEN_SOURCE 700
#define ACCESS_IMPLEMENTATION
#define ACCESS_STRING_BYTES 2048
#include "access.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define MANY 4000

static access_file file;
static uint8_t entries[1024 * 32];
static uint8_t memory[4][ACCESS_BUFFER_LEAST + 600];

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "access.c: %s\n", what);
        exit(1);
    }
}

static void begin(const char *path, access_emitter *emitter)
{
    expect(access_open(&file, path) == 0, "the file");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    expect(access_emitter_begin(emitter, &file.trace, memory[0], sizeof memory[0]) == 0, "an emitter");
}

static void end(access_emitter *emitter)
{
    expect(access_emitter_end(emitter) == 0 && access_close(&file) == 0, "the end");
}

/* Emits request i, whose values the test computes, too. */
static void request(access_emitter *emitter, uint64_t i)
{
    static const char *const paths[] = {"/", "/index.html", "/caf\303\251"};
    access_access_span spans[3];
    size_t k;
    for (k = 0; k < 3; k++) {
        spans[k].kind = (uint8_t)k;
        spans[k].offset_us = (uint32_t)(i + k);
        spans[k].dur_us = (uint32_t)(1000 * k);
    }
    ACCESS_EMIT_ACCESS(emitter, 1700000000000000u + 250 * i, i, access_intern_paths(&file.trace, paths[i % 3]), (uint8_t)(i % 4),
                       i % 5 == 0 ? 404 : 200, (uint8_t)(i % 8), (uint32_t)(70 * i), (uint32_t)(3 * i), (uint32_t)(i * i), (double)i / 4,
                       i % 4, i % 4 > 0 ? spans : NULL);
}

static void every(const char *path)
{
    access_emitter emitter;
    uint64_t i;
    begin(path, &emitter);
    ACCESS_EMIT_RESTART(&emitter, 1700000000000000u, 258, "2.1 \"beta\"");
    for (i = 1; i <= 200; i++) {
        request(&emitter, i);
    }
    access_emit_restart(&emitter, 1800000000000000u, 65535, "");
    expect(strncmp(access_describe(&emitter, 1), "access (Other) time=", 20) == 0, "a description");
    expect(strstr(access_describe(&emitter, 1), "score=50") != NULL, "a described number");
    expect(strstr(access_describe(&emitter, 2), "flags=7 user=") != NULL, "an optional field that is present");
    expect(strstr(access_describe(&emitter, 1), "user") == NULL, "an optional field that is absent");
    expect(strstr(access_describe(&emitter, 2), "n_spans=3 spans_kind=0 spans_offset_us=199") != NULL, "items");
    end(&emitter);
}

/* Emits events with invalid values, which are dropped, between valid events. */
static void enemy(const char *path)
{
    static access_access_span spans[106];
    char text[400];
    access_emitter emitter;
    uint32_t root;
    uint32_t i;
    begin(path, &emitter);
    root = access_intern_paths(&file.trace, "/");
    expect(root == 0 && access_intern_paths(&file.trace, "/") == 0 && access_intern_paths(&file.trace, NULL) == 2, "references");
    expect(access_intern_paths(&file.trace, "") == 2, "no text is an empty text");
    memset(spans, 1, sizeof spans);
    request(&emitter, 1);
    /* 100 spans fit in a buffer, and some of these counts are too large for any memory. */
    for (i = 96; i < 106; i++) {
        access_emit_access(&emitter, i, i, root, 0, 200, 0, 0, 0, 0, 0, i, spans);
    }
    access_emit_access(&emitter, 1, 1, root, 0, 200, 0, 0, 0, 0, 0, SIZE_MAX, spans);
    access_emit_access(&emitter, 1, 1, root, 0, 200, 0, 0, 0, 0, 0, SIZE_MAX / 9 + 2, spans);
    access_emit_access(&emitter, 1, 1, root, 0, 200, 0, 0, 0, 0, 0, 1, NULL);
    access_emit_access(&emitter, 1, 1, ACCESS_NO_ELEMENT, 0, 200, 0, 0, 0, 0, 0, 0, NULL);
    request(&emitter, 2);
    /* A text of the maximum length, and one that is truncated. */
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    text[255] = 0;
    expect(access_intern_paths(&file.trace, text) != ACCESS_NO_ELEMENT, "the longest text");
    text[255] = 'x';
    access_emit_access(&emitter, 2, 2, access_intern_paths(&file.trace, text), 0, 200, 0, 0, 0, 0, 0, 0, NULL);
    /* The memory for elements fills up. */
    for (i = 0; root != ACCESS_NO_ELEMENT; i++) {
        snprintf(text, sizeof text, "/%lu", (unsigned long)i);
        root = access_intern_paths(&file.trace, text);
        access_emit_access(&emitter, 3, i, root, 0, 200, 0, 0, 0, 0, 0, 0, NULL);
    }
    expect(i > 100 && file.trace.strings_refused == 1 && access_intern_paths(&file.trace, "/0") != ACCESS_NO_ELEMENT, "no room");
    request(&emitter, 4);
    end(&emitter);
}

static void *requests(void *context)
{
    access_emitter emitter;
    uint64_t i;
    expect(access_emitter_begin(&emitter, &file.trace, context, sizeof memory[0]) == 0, "an emitter of a thread");
    for (i = 0; i < MANY; i++) {
        request(&emitter, i);
    }
    expect(access_emitter_end(&emitter) == 0, "the end of a thread");
    return NULL;
}

static void threads(const char *path)
{
    access_emitter emitter;
    pthread_t thread[3];
    size_t i;
    begin(path, &emitter);
    for (i = 0; i < 3; i++) {
        expect(pthread_create(&thread[i], NULL, requests, memory[i + 1]) == 0, "a thread");
    }
    for (i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
    }
    end(&emitter);
}

/* A signal handler emits while its thread stores an event or interns an element. */
static access_emitter interrupted;
static volatile sig_atomic_t handled;

static void handler(int signal)
{
    (void)signal;
    access_emit_access(&interrupted, 5, 5, access_intern_paths(&file.trace, handled % 2 ? "/" : "/handler"), 0, 200, 0, 0, 0, 0, 0, 0, NULL);
    handled++;
}

static void in_handlers(const char *path)
{
    struct itimerval each = {{0, 200}, {0, 200}};
    struct sigaction action;
    uint64_t i;
    begin(path, &interrupted);
    file.trace.index = NULL;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    expect(sigaction(SIGALRM, &action, NULL) == 0, "a handler");
    expect(setitimer(ITIMER_REAL, &each, NULL) == 0, "a timer");
    for (i = 0; i < 50u * MANY || handled < 20; i++) {
        request(&interrupted, i);
    }
    memset(&each, 0, sizeof each);
    expect(setitimer(ITIMER_REAL, &each, NULL) == 0, "no timer");
    printf("%llu %d\n", (unsigned long long)i, (int)handled);
    end(&interrupted);
}

/* Emits into a shared buffer, and waits to be killed. */
static void shared(const char *path)
{
    access_emitter emitter;
    uint64_t i;
    expect(access_open(&file, path) == 0, "the file");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    expect(access_share(&file, 1, 4096) == 0 && access_emitter_begin_shared(&emitter, &file) == 0, "a shared buffer");
    for (i = 0; i < 150; i++) {
        request(&emitter, i);
    }
    puts("ready");
    fflush(stdout);
    pause();
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(const char *path);
    } all[] = {{"every", every}, {"enemy", enemy}, {"threads", threads}, {"in-handlers", in_handlers}, {"shared", shared}};
    size_t i;
    for (i = 0; count == 3 && i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(arguments[1], all[i].name) == 0) {
            all[i].run(arguments[2]);
            return 0;
        }
    }
    return 2;
}
