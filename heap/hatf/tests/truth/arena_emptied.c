#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *parts[50];

static void parse(int part) {
    parts[part] = malloc(24);
    parts[part][0] = 1;
}

int main(void) {
    for (int round = 0; round < 300; round++) {
        for (int part = 0; part < 50; part++)
            parse(part);
        for (int part = 0; part < 50; part++)
            free(parts[part]);
    }
}
