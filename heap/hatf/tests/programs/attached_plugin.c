/* A module that a running program loads. */
#include <stdlib.h>

void *plugged;

void plug(void) {
    for (int i = 0; i < 10; i++) {
        plugged = malloc(123456);
        free(plugged);
    }
}
