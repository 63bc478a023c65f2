// Makes calls that glibc's mtrace logs.
#include <mcheck.h>
#include <stdlib.h>

int main(void) {
    mtrace();
    void *volatile kept = malloc(100);
    void *volatile block = calloc(3, 50);
    kept = realloc(kept, 5000);
    free(block);
    block = malloc(7);
    muntrace();
    return kept == block;
}
