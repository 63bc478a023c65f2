#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void handle_login(int number) {
    char *session = malloc(200);
    session[0] = 1;
    if (number % 20 != 0)
        free(session);
}

int main(void) {
    for (int number = 0; number < 20000; number++)
        handle_login(number);
}
