/* Allocates from 32,768 different call stacks. Each block's size identifies the stack. */
#include <stdlib.h>

static void *volatile block;

static void descend(unsigned depth, unsigned size)
{
    if (depth == 15) {
        block = malloc(size);
        free(block);
        return;
    }
    /* Two separate calls have two return addresses. */
    descend(depth + 1, 2 * size);
    descend(depth + 1, 2 * size + 1);
}

int main(void)
{
    descend(0, 1);
    return 7;
}
