/* Accesses blocks of known sizes. Calls to malloc before and after mark the time of each block's last access. */
#include <stdint.h>
#include <stdlib.h>

static void *volatile kept[4];

int main(void) {
    volatile char *early = malloc(1000), *late = malloc(1100), *never = malloc(1200);
    kept[0] = (void *)early, kept[1] = (void *)late, kept[2] = (void *)never;
    early[0] = 1;
    volatile char *first = malloc(17);
    first[0] = 1;
    volatile char *second = malloc(18);
    second[0] = 1;
    late[999] = 2;
    volatile char *third = malloc(19);
    third[0] = 1;
    /* `late` is freed long after its last access; the other blocks are never freed. */
    free((void *)late);
    return 0;
}
