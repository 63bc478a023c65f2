#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *kept[20000];

static void fragment(void) {
    for (int block = 0; block < 20000; block++)
        memset(kept[block] = malloc(120), 1, 120);
    for (int block = 0; block < 20000; block++)
        if (block % 32 != 0)
            free(kept[block]);
}

int main(void) {
    fragment();
    for (int round = 0; round < 50; round++) {
        free(malloc(100));
        usleep(4000);
    }
}
