#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *line;

static void append_log(size_t length) {
    line = realloc(line, length);
    line[length - 1] = 0;
}

static void work(void) {
    char *buffer = malloc(50000);
    buffer[0] = 1;
    free(buffer);
}

int main(void) {
    for (int number = 0; number < 100; number++)
        work();
    for (size_t length = 64; length <= 200000; length += 64)
        append_log(length);
    free(line);
}
