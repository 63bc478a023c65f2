// A server whose cache has no limit, until the OOM killer ends it.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *entries[1 << 20];

static void *render(size_t bytes) {
    void *page = malloc(bytes);
    memset(page, 'x', bytes);
    return page;
}

static void answer(int number) {
    void *body = render(4096);
    entries[number] = render(64 << 10); // Nothing ever removes an entry.
    free(body);
}

int main(void) {
    for (int number = 0; number < 1 << 20; number++) {
        answer(number);
        usleep(1000);
    }
}
