#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void finish(void) {
    char *blocks[1000];
    for (int block = 0; block < 1000; block++)
        memset(blocks[block] = malloc(4000), 1, 4000);
    usleep(30000);
    for (int block = 0; block < 1000; block++)
        free(blocks[block]);
}

int main(void) {
    char *table = malloc(100000);
    table[0] = 1;
    for (int round = 0; round < 100; round++) {
        free(malloc(100));
        usleep(4000);
    }
    finish();
    free(table);
}
