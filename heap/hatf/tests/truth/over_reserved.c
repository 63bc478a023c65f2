#include <stdlib.h>
#include <sys/prctl.h>

static int *reserve_rows(void) {
    int *rows = malloc(4000000);
    for (int row = 0; row < 100000; row++)
        rows[row] = row;
    return rows;
}

int main(void) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    int *rows = reserve_rows();
    int last = rows[99999];
    free(rows);
    return last != 99999;
}
