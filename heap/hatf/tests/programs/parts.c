// Allocates in two named threads, in a linked library, and in plugins that are loaded in turn: `parts GIVEN PLUGIN..`, where GIVEN is the
// number of blocks that one thread allocates and another frees.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *library_make(size_t size);
char *library_copy(const char *text);

enum { MOST = 100000 };
static void *given[MOST];
static int count;

// Blocks of 300 bytes are freed by the other thread, one of 40 bytes is resized by this thread, and one of 1000 bytes precedes its name.
static void *worker(void *unused) {
    void *early = malloc(1000);
    pthread_setname_np(pthread_self(), "worker-1");
    for (int i = 0; i < count; i++) given[i] = malloc(300);
    void *moved = malloc(40);
    for (int i = 0; i < 10; i++) moved = realloc(moved, 40 + 1000 * (size_t)i);
    // The reallocation fails and does not move the block.
    if (realloc(moved, (size_t)1 << 60)) abort();
    free(moved);
    free(early);
    return unused;
}

// Allocates its own blocks of 70 bytes, which may reuse addresses of the first thread's blocks, and enlarges 10 of these blocks to 310
// bytes, which then belong to this thread.
static void *other(void *unused) {
    pthread_setname_np(pthread_self(), "other");
    for (int i = 0; i < 10; i++) given[i] = realloc(given[i], 310);
    for (int i = 0; i < count; i++) {
        free(given[i]);
        free(malloc(70));
    }
    return unused;
}

int main(int number, char **arguments) {
    count = number > 1 ? atoi(arguments[1]) : 100;
    if (count < 0 || count > MOST) return 2;
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < count; i++) free(library_make(500));
    // Blocks of 13 bytes that the C library allocates for the linked library.
    for (int i = 0; i < 20; i++) free(library_copy("twelve bytes"));
    for (int i = 0; i < 30; i++) free(strdup("six by"));
    // Each plugin is loaded at the address of the previous one.
    for (int plugin = 2; plugin < number; plugin++) {
        void *loaded = dlopen(arguments[plugin], RTLD_NOW);
        if (!loaded) return 3;
        void *(*make)(int) = (void *(*)(int))dlsym(loaded, "plugin");
        for (int i = 0; i < 10; i++) free(make(7000));
        dlclose(loaded);
    }
    if (malloc((size_t)1 << 60)) return 1;
    return 0;
}
