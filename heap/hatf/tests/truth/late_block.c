#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *load(void) {
    char *table = malloc(4000000);
    memset(table, 1, 4000000);
    return table;
}

int main(void) {
    char *table = 0;
    for (int round = 0; round < 100; round++) {
        free(malloc(100));
        if (round == 95)
            table = load();
        usleep(4000);
    }
    return table[0] - 1;
}
