/* A module of a program that runs already. */
#include <stdlib.h>

void *plugged;

void plug(void) {
    for (int i = 0; i < 10; i++) {
        plugged = malloc(123456);
        free(plugged);
    }
}
