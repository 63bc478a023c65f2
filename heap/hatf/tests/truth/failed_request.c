#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *reserve(size_t bytes) {
    char *block = malloc(bytes);
    return block ? block : malloc(1000);
}

int main(void) {
    char *block = reserve((size_t)1 << 50);
    block[0] = 1;
    free(block);
}
