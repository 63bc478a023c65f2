// A service: it answers until it is ended, for some minutes at most, and keeps the last hundred answers.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t ended;
static char *answers[100];

static void end(int signal) {
    (void)signal;
    ended = 1;
}

static void answer(unsigned number) {
    char *text = malloc(1000);
    memset(text, 'a', 1000);
    free(answers[number % 100]);
    answers[number % 100] = text;
}

int main(void) {
    signal(SIGTERM, end);
    for (unsigned number = 0; !ended && number < 200000; number++) {
        answer(number);
        if (number == 100 && write(1, "ready\n", 6) != 6) return 1;
        usleep(1000);
    }
    return 0;
}
