#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *cache[6000];

static void fill(int entry) {
    cache[entry] = malloc(1000);
    cache[entry][0] = 1;
}

int main(void) {
    for (int round = 0; round < 100; round++) {
        for (int entry = 0; entry < 100 && round < 60; entry++)
            fill(round * 100 + entry);
        usleep(4000);
    }
}
