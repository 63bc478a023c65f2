#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(void) {
    for (int request = 0; request < 3000; request++) {
        char *answer = malloc(1000);
        answer[0] = 1;
        free(answer);
    }
}

int main(void) {
    for (int child = 0; child < 5; child++) {
        if (fork() == 0) {
            serve();
            exit(0);
        }
        wait(0);
    }
}
