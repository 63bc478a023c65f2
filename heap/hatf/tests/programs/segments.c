/* Allocates blocks that live for some rounds, so that they are freed in a later segment of the trace, and blocks that
   are never freed. With an argument, forked processes do the same. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *blocks[500];

static void work(int rounds) {
    for (int i = 0; i < 100; i++) blocks[i] = malloc(100 + i); /* never freed */
    for (int round = 0; round < rounds; round++)
        for (int i = 100; i < 400; i++) {
            if ((round + i) % 5 == 0) {
                free(blocks[i]);
                blocks[i] = malloc(16 + (round * 31 + i) % 2000);
            } else if ((round + i) % 7 == 0) {
                blocks[i] = realloc(blocks[i], 16 + (round * 17 + i) % 5000);
            }
            free(malloc(64));
        }
    for (int i = 100; i < 400; i++) free(blocks[i]);
    blocks[499] = malloc(12345); /* never freed */
}

int main(int count, char **words) {
    (void)words;
    if (count > 1 && fork() == 0) {
        work(200);
        return 0;
    }
    work(200);
    while (wait(NULL) > 0) {}
    return 0;
}
