/* Blocks of known sizes: when each is last accessed is known, by the calls of malloc before and behind it. */
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
    /* `late` is freed long behind its last access, the others never. */
    free((void *)late);
    return 0;
}
