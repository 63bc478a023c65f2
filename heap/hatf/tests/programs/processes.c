/* Creates processes in every way. Each process allocates blocks of a size of its own, and its exit status identifies it. The arguments
   select what to do. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile sink;

/* Allocates and frees this many blocks of a size. */
static void work(int size, int blocks) {
    for (int i = 0; i < blocks; i++) {
        sink = malloc(size);
        free(sink);
    }
}

static void *thread(void *size) {
    work((int)(long)size, 10);
    return NULL;
}

static void wait_for(pid_t process) {
    while (waitpid(process, NULL, 0) < 0) {
    }
}

/* Creates a child, its child with a thread, and the child of that one. */
static void generations(void) {
    void *volatile inherited = malloc(1001);
    pid_t child = fork();
    if (child == 0) {
        work(2001, 20);
        free(inherited);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            work(2002, 30);
            pthread_t other;
            pthread_create(&other, NULL, thread, (void *)2003L);
            pthread_join(other, NULL);
            pid_t last = fork();
            if (last == 0) {
                work(2004, 40);
                _exit(4);
            }
            wait_for(last);
            exit(3);
        }
        wait_for(grandchild);
        exit(2);
    }
    wait_for(child);
}

/* Executes programs with an empty environment. */
static void programs(char *self) {
    char *none[] = {NULL};
    char *arguments[] = {self, "work", "3001", "50", NULL};
    pid_t child = vfork();
    if (child == 0) {
        execve(self, arguments, none);
        _exit(127);
    }
    wait_for(child);
    arguments[2] = "3002";
    if (posix_spawn(&child, self, NULL, NULL, arguments, none) == 0) {
        wait_for(child);
    }
    child = fork();
    if (child == 0) {
        clearenv();
        /* The child allocates before and after it executes the program, like a shell. */
        work(3003, 60);
        arguments[2] = "3004";
        execvp(self, arguments);
        _exit(127);
    }
    wait_for(child);
}

/* Creates a daemon, which continues after its parent has exited. */
static void daemonize(void) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            int null = open("/dev/null", O_RDWR);
            dup2(null, 0);
            dup2(null, 1);
            dup2(null, 2);
            usleep(300000);
            work(4001, 70);
            usleep(100000);
            work(4002, 80);
            _exit(9);
        }
        _exit(0);
    }
    wait(NULL);
}

/* Creates many simultaneous children. */
static void many(int count) {
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            work(5001 + i, 3);
            usleep(50000);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
}

/* Allocates until the process is killed, and writes its progress to a file. */
static void endless(const char *path) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (long done = 0; file >= 0; done++) {
        work(6001, 1);
        if (pwrite(file, &done, sizeof done, 0) != sizeof done) {
            break;
        }
    }
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    work(1001, 5);
    if (!strcmp(what, "work")) {
        work(atoi(words[2]), atoi(words[3]));
        return 7;
    } else if (!strcmp(what, "generations")) {
        generations();
    } else if (!strcmp(what, "programs")) {
        char self[4096] = {0};
        if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
            return 1;
        }
        programs(self);
    } else if (!strcmp(what, "daemon")) {
        daemonize();
    } else if (!strcmp(what, "many")) {
        many(atoi(words[2]));
    } else if (!strcmp(what, "endless")) {
        if (fork() == 0) {
            endless(words[2]);
        }
        wait(NULL);
    } else if (!strcmp(what, "killed")) {
        if (fork() == 0) {
            work(7001, 90);
            raise(SIGKILL);
        }
        wait(NULL);
    }
    return 0;
}
