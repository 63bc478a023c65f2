/* A program that marks its phases. Compiled by tests/it/phases.rs with the shipped header. */
#include "hatf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *volatile block;

int main(void) {
    char longest[2000];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    errno = 77;
    hatf_mark("start");
    hatf_phase_begin("load");
    block = malloc(1000001);
    hatf_phase_begin("parse");
    hatf_phase_end("load");
    free(block);
    hatf_phase_end("parse");
    hatf_mark("");
    hatf_mark(longest);
    hatf_mark(NULL);
    hatf_phase_begin("never ended");
    block = malloc(1000002);
    return errno == 77 ? 0 : 1;
}
