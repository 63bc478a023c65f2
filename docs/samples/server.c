// A server in small: a table that it loads first, requests that it answers, and a session that it forgets to free.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    char text[56];
};

static struct entry *table;

static void load_table(void) {
    for (int i = 0; i < 1000; i++) {
        struct entry *entry = malloc(sizeof *entry);
        entry->next = table;
        snprintf(entry->text, sizeof entry->text, "entry %d", i);
        table = entry;
    }
}

static char *open_session(int number) {
    char *session = malloc(200);
    snprintf(session, 200, "session %d", number);
    return session;
}

// region: answer
static size_t answer(int number) {
    char *session = open_session(number);
    char *body = malloc(4096);
    snprintf(body, 4096, "%s: %s", session, table->text);
    size_t length = strlen(body);
    free(body);
    if (number % 10 != 0) free(session); // Each tenth request goes another way.
    return length;
}
// endregion

int main(int count, char **arguments) {
    int requests = count > 1 ? atoi(arguments[1]) : 1000;
    size_t sent = 0;
    load_table();
    for (int i = 0; i < requests; i++) sent += answer(i);
    printf("%zu bytes sent\n", sent);
    return 0;
}
