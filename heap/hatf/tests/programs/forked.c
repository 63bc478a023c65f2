/* Makes the same calls before and after a fork. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(void) {
    for (int i = 0; i < 10; i++)
        free(malloc(100 + i));
}

int main(void) {
    work();
    if (fork() == 0) {
        work();
        _exit(0);
    }
    wait(NULL);
    return 0;
}
