#include <stdlib.h>
#include <string.h>
/* `work` is called again and again from one place, by a caller that allocates nothing: by stacks alone these calls look as one. What it keeps
   outlives each call. Compiled by tests/regions.rs. */
static char *kept;
__attribute__((noinline)) static void work(int turn) {
    for (int i = 0; i < 10; i++) {
        char *text = malloc(32 + i);
        memset(text, turn, 32);
        free(text);
    }
    if (kept) free(kept);
    kept = NULL;
    if (turn == 99) return;
    kept = malloc(100);
    kept[0] = turn;
}
__attribute__((noinline)) static void clean(void) {
    char *a[20];
    for (int i = 0; i < 20; i++) a[i] = malloc(64);
    for (int i = 0; i < 20; i++) { a[i][0] = 1; free(a[i]); }
}
int main(void) {
    for (int turn = 0; turn < 100; turn++) { work(turn); clean(); }
    for (int turn = 0; turn < 100; turn++) work(turn);
    return 0;
}
