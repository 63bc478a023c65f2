#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *keep(void) {
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    return block;
}

int main(void) {
    char *block = keep();
    usleep(100000);
    if (block[0])
        abort();
}
