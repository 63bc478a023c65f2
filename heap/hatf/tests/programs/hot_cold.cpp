// Two blocks allocated by one function: the block of `hot` is read repeatedly, and the block of `cold` is never accessed.
#include <cstdio>
#include <cstring>
#include <unistd.h>

__attribute__((noinline)) char *make(unsigned long size) {
    return new char[size];
}

__attribute__((noinline)) static char *hot() {
    return make(64);
}

__attribute__((noinline)) static char *cold() {
    return make(4096);
}

static inline char *in_between() {
    char *block = new char[100];
    memset(block, 1, 100);
    return block;
}

int main() {
    char *idle = cold();
    char *kept = in_between();
    unsigned long sum = 0;
    for (int turn = 0; turn < 100; turn++) {
        char *busy = hot();
        for (int at = 0; at < 64; at++) busy[at] = at + turn;
        for (int again = 0; again < 1000; again++)
            for (int at = 0; at < 64; at++) sum += busy[at];
        delete[] busy;
    }
    usleep(20000);
    printf("%lu\n", sum + kept[5]);
    delete[] idle;
    delete[] kept;
}
