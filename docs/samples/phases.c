// Two phases: a dictionary that grows and stays, and sentences that live for a moment each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 600, SENTENCES = 400, PARTS = 12 };

struct word {
    struct word *next;
    char *text;
};

static struct word *dictionary;
static unsigned seed = 1;

// A number below `most`: the same sequence in each run.
static unsigned draw(unsigned most) {
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % most;
}

static char *make_text(unsigned length) {
    char *text = malloc(length + 1);
    memset(text, 'a', length);
    text[length] = 0;
    return text;
}

// region: phases
static void add_word(void) {
    struct word *word = malloc(sizeof *word);
    word->text = make_text(3 + draw(14));
    word->next = dictionary;
    dictionary = word;
}

static void say_sentence(void) {
    char *parts[PARTS];
    for (int i = 0; i < PARTS; i++) parts[i] = make_text(10 + draw(200));
    for (int i = 0; i < PARTS; i++) free(parts[i]);
}

int main(void) {
    for (int i = 0; i < WORDS; i++) add_word();
    for (int i = 0; i < SENTENCES; i++) {
        say_sentence();
        if (i % 4 == 0) add_word();
    }
    return 0;
}
// endregion
