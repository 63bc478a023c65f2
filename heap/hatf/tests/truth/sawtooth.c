#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *batch[100];

static void collect(int entry) {
    batch[entry] = malloc(1000);
    batch[entry][0] = 1;
}

int main(void) {
    for (int round = 0; round < 100; round++) {
        for (int entry = 0; entry < 10; entry++)
            collect(round % 10 * 10 + entry);
        for (int entry = 0; entry < 100 && round % 10 == 9; entry++)
            free(batch[entry]);
        usleep(4000);
    }
}
