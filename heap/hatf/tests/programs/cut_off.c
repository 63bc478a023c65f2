/* Creates children that cannot be recorded, because the program has changed its user, root directory, environment or limits, as the
 * argument says. Ends with status 7. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void blocks(int count) {
    for (int n = 0; n < count; n++) {
        void *volatile block = malloc(7777);
        free(block);
    }
}

/* Creates a child, which executes this program if `path` is given. */
static void child(char *path) {
    pid_t made = fork();
    if (made == 0) {
        blocks(10);
        if (path) {
            execl(path, path, "ends", (char *)0);
        }
        _exit(path ? 9 : 0);
    }
    int status = 0;
    if (made < 0 || waitpid(made, &status, 0) != made || status != 0) {
        _exit(8);
    }
}

static void check(int failed) {
    if (failed) {
        perror("cut_off");
        _exit(6);
    }
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    char path[4096];
    check(!realpath("/proc/self/exe", path));
    blocks(10);
    if (!strcmp(how, "ends")) {
        _exit(0);
    } else if (!strcmp(how, "user")) {
        check(setgid(65534) || setuid(65534));
        child(0);
        child(path);
    } else if (!strcmp(how, "effective")) {
        check(seteuid(65534));
        child(0);
    } else if (!strcmp(how, "root")) {
        check(chroot(arguments[2]) || chdir("/"));
        child(0);
    } else if (!strcmp(how, "environment")) {
        environ = 0;
        child(0);
    } else if (!strcmp(how, "files")) {
        struct rlimit limit = {3, 3};
        check(setrlimit(RLIMIT_NOFILE, &limit));
        child(0);
    } else if (!strcmp(how, "size")) {
        struct rlimit limit = {4096, 4096};
        check(setrlimit(RLIMIT_FSIZE, &limit));
        child(0);
        child(path);
    } else if (!strcmp(how, "failed")) {
        struct rlimit limit = {1, 1};
        check(setgid(65534) || setuid(65534) || setrlimit(RLIMIT_NPROC, &limit));
        if (fork() >= 0) {
            _exit(8);
        }
    } else if (!strcmp(how, "plain")) {
        child(0);
        child(path);
    }
    blocks(10);
    return 7;
}
