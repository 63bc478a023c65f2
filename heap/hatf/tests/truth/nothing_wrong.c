#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void serve(void) {
    char *answer = malloc(1000);
    answer[0] = 1;
    free(answer);
}

int main(void) {
    char *table = malloc(100000);
    table[0] = 1;
    for (int round = 0; round < 100; round++) {
        serve();
        usleep(4000);
    }
    free(table);
}
