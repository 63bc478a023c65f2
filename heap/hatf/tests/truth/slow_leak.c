#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void handle_login(int number) {
    char *session = malloc(200);
    session[0] = 1;
    if (number % 100 != 0)
        free(session);
}

int main(void) {
    char *table = malloc(100000);
    table[0] = 1;
    for (int round = 0; round < 100; round++) {
        for (int number = 0; number < 100; number++)
            handle_login(number);
        usleep(16000);
    }
    free(table);
}
