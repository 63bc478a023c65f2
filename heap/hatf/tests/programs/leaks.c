// Ends with live blocks from four functions: a table from startup, leaked requests, a cache, and the stdout buffer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    struct node *next;
    char data[24];
};

static struct node *table;
static void *kept[50];

__attribute__((noinline)) static void load_table(void) {
    for (int i = 0; i < 1000; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = table;
        table = node;
    }
}

__attribute__((noinline)) static void leak_request(int number) {
    char *request = malloc(100);
    memset(request, number, 100);
    __asm__ volatile("" ::"r"(request));
}

__attribute__((noinline)) static void fill_cache(void) {
    for (int i = 0; i < 50; i++) kept[i] = malloc(64);
}

__attribute__((noinline)) static void empty_cache(void) {
    for (int i = 0; i < 50; i++) free(kept[i]);
}

int main(void) {
    load_table();
    for (int i = 0; i < 300; i++) {
        fill_cache();
        leak_request(i);
        usleep(200);
        empty_cache();
    }
    fill_cache();
    table = NULL;
    puts("done");
    return 0;
}
