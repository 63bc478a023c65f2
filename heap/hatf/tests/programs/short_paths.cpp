// Calls of which a sample is recorded, or which are made while recording is off. The first argument is what to do, and
// the second is how often. Compiled by tests/it/short_paths.rs.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

static void *volatile sink;

// Makes a call that the compiler cannot leave out.
static void *keep(void *made) { return sink = made; }

static std::uint64_t next(std::uint64_t &state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

// One place, and random sizes with 1,024 live blocks.
static void loops(const char *what, long count) {
    static void *blocks[1024];
    std::uint64_t state = 1;
    if (!std::strcmp(what, "malloc"))
        for (long n = 0; n < count; n++) std::free(keep(std::malloc(24)));
    if (!std::strcmp(what, "calloc"))
        for (long n = 0; n < count; n++) std::free(keep(std::calloc(2, 12)));
    if (!std::strcmp(what, "new"))
        for (long n = 0; n < count; n++) ::operator delete(keep(::operator new(24)));
    if (!std::strcmp(what, "realloc")) {
        void *block = std::malloc(24);
        for (long n = 0; n < count; n++) block = keep(std::realloc(block, 24));
        std::free(block);
    }
    if (!std::strcmp(what, "sizes"))
        for (long n = 0; n < count; n++) {
            void *&block = blocks[next(state) % 1024];
            std::free(block);
            block = std::malloc(next(state) % 500 + 1);
        }
}

// Blocks of known numbers and sizes: see `KNOWN` in the test.
static void known(long count) {
    for (long n = 0; n < count; n++) {
        std::free(keep(std::malloc(61)));
        ::operator delete(keep(::operator new(333)));
        std::free(keep(std::calloc(13, 47)));
        if (n % 4 == 0) {
            // The second size does not fit where the block is.
            std::free(keep(std::realloc(keep(std::malloc(67)), 7001)));
            ::operator delete[](keep(::operator new[](3331)));
        }
        if (n % 100 == 0) {
            void *block = nullptr;
            if (posix_memalign(&block, 64, 70001) == 0) std::free(block);
            // A request that fails.
            std::free(keep(std::malloc(~std::size_t(0) / 4)));
        }
    }
}

// Blocks with a known content that threads pass to each other.
static std::atomic<std::uint64_t *> handed[64];

static std::uint64_t *filled(std::size_t words) {
    auto *block = static_cast<std::uint64_t *>(std::malloc(words * 8));
    for (std::size_t n = 0; n < words; n++) block[n] = words;
    return block;
}

static void check_and_free(std::uint64_t *block) {
    if (block == nullptr) return;
    for (std::size_t n = 0; n < block[0]; n++)
        if (block[n] != block[0]) std::abort();
    std::free(block);
}

static std::atomic<bool> is_over;
static long rounds;

static void *passing(void *seed) {
    std::uint64_t state = reinterpret_cast<std::uintptr_t>(seed);
    for (long n = 0; n < rounds; n++) {
        auto *block = filled(1 + next(state) % 100);
        if (n % 3 == 0) {
            auto *moved = static_cast<std::uint64_t *>(std::realloc(block, 8 * (block[0] + 100)));
            for (std::size_t word = moved[0]; word-- > 0;) moved[word] = moved[0] + 100;
            for (std::size_t word = moved[0] - 100; word < moved[0]; word++) moved[word] = moved[0];
            block = moved;
        }
        check_and_free(handed[next(state) % 64].exchange(block));
    }
    return nullptr;
}

// Writes to the file that switches recording until the threads end.
static void *switching(void *path) {
    for (bool on = true; !is_over; on = !on) {
        if (FILE *file = std::fopen(static_cast<const char *>(path), "w")) {
            std::fputs(on ? "on\n" : "off\n", file);
            std::fclose(file);
        }
        usleep(3000);
    }
    return nullptr;
}

static void threads(char *path) {
    pthread_t others[4], other;
    for (std::size_t n = 0; n < 4; n++)
        pthread_create(&others[n], nullptr, passing, reinterpret_cast<void *>(n + 1));
    if (path != nullptr) pthread_create(&other, nullptr, switching, path);
    for (pthread_t thread : others) pthread_join(thread, nullptr);
    is_over = true;
    if (path != nullptr) pthread_join(other, nullptr);
    for (auto &block : handed) check_and_free(block.exchange(nullptr));
}

// A thread that allocates little, and passes its last block on.
static void *brief(void *seed) {
    std::uint64_t state = reinterpret_cast<std::uintptr_t>(seed);
    for (int n = 0; n < 20; n++) check_and_free(handed[next(state) % 64].exchange(filled(1 + next(state) % 100)));
    return nullptr;
}

static void brief_threads(long count) {
    for (long n = 0; n < count; n += 8) {
        pthread_t others[8];
        for (long k = 0; k < 8; k++) pthread_create(&others[k], nullptr, brief, reinterpret_cast<void *>(n + k + 1));
        for (pthread_t thread : others) pthread_join(thread, nullptr);
    }
    for (auto &block : handed) check_and_free(block.exchange(nullptr));
}

// The signal handler allocates, except while its thread may be in the allocator.
static std::atomic<bool> may_allocate;
static std::atomic<long> handled;

static void on_signal(int) {
    if (!may_allocate) return;
    handled++;
    check_and_free(filled(50));
}

static void signals(long count) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    itimerval often{{0, 100}, {0, 100}}, never{};
    setitimer(ITIMER_REAL, &often, nullptr);
    for (long n = 0; n < count || handled < 200; n++) {
        check_and_free(filled(1 + n % 100));
        may_allocate = true;
        for (volatile int wait = 0; wait < 100;) wait = wait + 1;
        may_allocate = false;
    }
    setitimer(ITIMER_REAL, &never, nullptr);
}

static void in_child(std::size_t size) {
    for (int n = 0; n < 20; n++) check_and_free(filled(size / 8 + 1));
    _exit(0);
}

// Children of all kinds allocate blocks of their own size, as does the parent.
static int children(const char *self) {
    // Not in registers, which a child of `vfork` may change.
    static int status, failed;
    // An inherited block, which children free.
    std::uint64_t *before = filled(125000);
    for (int n = 0; n < 4; n++) {
        check_and_free(filled(125001));
        pid_t child = fork();
        if (child == 0) {
            check_and_free(before);
            in_child(2000000);
        }
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    // This child does not run the recorder's code first.
    pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) {
        check_and_free(before);
        in_child(3000000);
    }
    waitpid(child, &status, 0);
    failed += status != 0;
    child = vfork();
    if (child == 0) {
        execl(self, self, "child", "4000000", nullptr);
        _exit(1);
    }
    waitpid(child, &status, 0);
    failed += status != 0;
    check_and_free(before);
    return failed;
}

int main(int, char **words) {
    const char *what = words[1];
    long count = std::atol(words[2]);
    if (!std::strcmp(what, "known")) {
        known(count);
    } else if (!std::strcmp(what, "threads")) {
        rounds = count;
        threads(words[3]);
    } else if (!std::strcmp(what, "brief")) {
        brief_threads(count);
    } else if (!std::strcmp(what, "signals")) {
        signals(count);
    } else if (!std::strcmp(what, "children")) {
        return children(words[0]);
    } else if (!std::strcmp(what, "child")) {
        in_child(static_cast<std::size_t>(count));
    } else {
        loops(what, count);
    }
    return 0;
}
