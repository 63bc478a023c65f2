#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *table;

static void enlarge(size_t bytes) {
    char *larger = malloc(bytes);
    memset(larger, 1, bytes);
    free(table);
    table = larger;
}

int main(void) {
    for (int round = 0; round < 128; round++) {
        if ((round & (round - 1)) == 0)
            enlarge((size_t)(round + 1) * 1000);
        usleep(3000);
    }
    free(table);
}
