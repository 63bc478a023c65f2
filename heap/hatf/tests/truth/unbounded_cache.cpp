#include <string>
#include <unistd.h>
#include <unordered_map>

struct Cache {
    std::unordered_map<long, std::string> entries;
    __attribute__((noinline)) void remember(long key) { entries[key] = std::string(1000, 'c'); }
};

int main() {
    Cache cache;
    for (long round = 0; round < 100; round++) {
        for (long key = 0; key < 20; key++)
            cache.remember(round * 20 + key);
        usleep(16000);
    }
}
