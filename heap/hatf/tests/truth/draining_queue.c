#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *queue[1000];

static void load(void) {
    for (int entry = 0; entry < 1000; entry++)
        memset(queue[entry] = malloc(1000), 1, 1000);
}

int main(void) {
    load();
    for (int round = 0; round < 100; round++) {
        for (int entry = 0; entry < 10; entry++)
            free(queue[round * 10 + entry]);
        usleep(4000);
    }
}
