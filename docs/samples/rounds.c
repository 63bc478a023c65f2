// Rounds of work whose blocks are freed, and a small note of each round that stays between them.
#include <stdlib.h>

enum { ROUNDS = 2000, PARTS = 8 };

static void *work[ROUNDS][PARTS];
static void *notes[ROUNDS];

// region: main
static void do_work(int round) {
    for (int i = 0; i < PARTS; i++) work[round][i] = malloc(500);
}

static void take_note(int round) {
    notes[round] = malloc(40);
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        do_work(round);
        take_note(round);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PARTS; i++) free(work[round][i]);
    }
    return 0;
}
// endregion
