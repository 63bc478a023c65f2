#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void before(void) {
    char *block = malloc(3000000);
    block[0] = 1;
}

static void after(void) {
    char *block = malloc(1 << 20);
    block[0] = 1;
    usleep(50000);
}

int main(int count, char **arguments) {
    if (count == 1) {
        before();
        execl(arguments[0], arguments[0], "again", (char *)0);
    }
    after();
}
