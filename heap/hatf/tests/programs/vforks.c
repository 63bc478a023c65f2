/* Waits in vfork for a child, which sleeps for the given number of milliseconds. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    int milliseconds = count > 1 ? atoi(arguments[1]) : 0;
    puts("ready");
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        usleep(milliseconds * 1000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    while (getchar() != EOF) {
    }
    puts("0 damaged");
    return 7;
}
