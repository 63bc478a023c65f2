/* A server of a fleet. Its class and build are chosen at compile time: -DCLASS='"web"' -DBUILD=1.
 *
 *   host SEED REQUESTS
 *
* Classes differ in how often they perform each operation. A host's behavior is determined by its seed. In build 2, sessions of the
 * class "web" are 30% larger, because an enlarged header table went unnoticed; the other classes are unchanged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

/* splitmix64. */
static uint64_t draw(uint64_t below) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % below;
}

static void *bytes(void *p, size_t size) {
    if (!p) {
        perror("host");
        exit(1);
    }
    return memset(p, 1, size);
}

/* The live objects of each kind that outlive a request. */
enum { SESSIONS = 256, ITEMS = 512, TERMS = 1024 };
static void *sessions[SESSIONS], *items[ITEMS];
static struct term { struct term *left, *right; uint64_t key; } *terms;
static struct job { struct job *next; char data[48]; } *first_job;
static struct line { struct line *next; char text[]; } *last_line;

__attribute__((noinline)) static void open_session(void) {
    size_t size = 600 + draw(800);
    if (BUILD == 2 && strcmp(CLASS, "web") == 0)
        size += size * 3 / 10;
    void **place = &sessions[draw(SESSIONS)];
    free(*place);
    *place = bytes(malloc(size), size);
}

__attribute__((noinline)) static void put_item(void) {
    size_t size = 64u << draw(6);
    void **place = &items[draw(ITEMS)];
    *place = bytes(realloc(*place, size), size);
}

__attribute__((noinline)) static void add_term(void) {
    uint64_t key = draw(TERMS);
    struct term **place = &terms;
    while (*place && (*place)->key != key)
        place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    if (!*place) {
        *place = bytes(malloc(sizeof **place), sizeof **place);
        **place = (struct term){NULL, NULL, key};
    }
}

/* Lines wait to be written, but this server never writes them, so that its growth becomes visible. */
__attribute__((noinline)) static void append_log(void) {
    size_t size = 20 + draw(80);
    struct line *line = bytes(malloc(sizeof *line + size), sizeof *line + size);
    line->next = last_line;
    last_line = line;
}

__attribute__((noinline)) static void put_job(void) {
    struct job *job = bytes(malloc(sizeof *job), sizeof *job);
    job->next = first_job;
    first_job = job;
    if (draw(64) == 0) {
        while (first_job) {
            struct job *next = first_job->next;
            free(first_job);
            first_job = next;
        }
    }
}

__attribute__((noinline)) static void render_page(void) {
    char *parts[8];
    for (int i = 0; i < 8; i++) {
        size_t size = 100 + draw(2000);
        parts[i] = bytes(malloc(size), size);
    }
    size_t size = 4096 + draw(16384);
    free(bytes(calloc(1, size), size));
    for (int i = 0; i < 8; i++)
        free(parts[i]);
}

/* Sixteenths of a class's requests per operation: session, item, term, log, job, page. */
static const struct { const char *class; uint8_t shares[6]; } classes[] = {
    {"web", {8, 1, 0, 1, 1, 5}},    {"cache", {1, 13, 0, 1, 1, 0}}, {"search", {1, 2, 12, 1, 0, 0}}, {"logs", {0, 0, 0, 14, 2, 0}},
    {"queue", {1, 1, 0, 1, 13, 0}}, {"render", {1, 2, 0, 0, 1, 12}}, {"mail", {3, 2, 1, 5, 5, 0}},   {"billing", {4, 4, 4, 1, 2, 1}},
};

int main(int count, char **arguments) {
    static void (*const work[])(void) = {open_session, put_item, add_term, append_log, put_job, render_page};
    if (count != 3) {
        fprintf(stderr, "usage: host SEED REQUESTS\n");
        return 2;
    }
    state = strtoull(arguments[1], NULL, 10);
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++) {
        if (strcmp(classes[c].class, CLASS) != 0)
            continue;
        for (uint64_t left = strtoull(arguments[2], NULL, 10); left > 0; left--) {
            int64_t share = draw(16), w = 0;
            while ((share -= classes[c].shares[w]) >= 0)
                w++;
            work[w]();
        }
        return 0;
    }
    fprintf(stderr, "host: unknown class %s\n", CLASS);
    return 2;
}
