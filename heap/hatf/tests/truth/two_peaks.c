#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void phase(char **blocks, int count, int size) {
    for (int block = 0; block < count; block++)
        memset(blocks[block] = malloc(size), 1, size);
    usleep(100000);
    for (int block = 0; block < count; block++)
        free(blocks[block]);
}

static void load(char **blocks) { phase(blocks, 2000, 1000); }

static void sort(char **blocks) { phase(blocks, 1500, 2000); }

int main(void) {
    char *blocks[2000];
    usleep(100000);
    load(blocks);
    usleep(100000);
    sort(blocks);
    usleep(100000);
}
