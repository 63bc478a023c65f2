#include <stdlib.h>
#include <string.h>

static char *fill(void) {
    char *table = malloc(4000000);
    memset(table, 1, 4000000);
    return table;
}

int main(void) {
    char *table = fill();
    char last = table[3999999];
    free(table);
    return last != 1;
}
