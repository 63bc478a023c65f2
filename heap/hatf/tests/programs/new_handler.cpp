// A handler set by std::set_new_handler is called until it gives up by throwing its own exception or by removing itself. Prints the number
// of calls. Compiled by tests/it/operators.rs.
#include <cstdio>
#include <cstdlib>
#include <new>

struct own_exception : std::bad_alloc {};

static int calls = 0;
static volatile std::size_t huge = std::size_t(1) << 62;

static void throws() {
    if (++calls % 3 == 0) throw own_exception();
}

static void gives_up() {
    if (++calls % 3 == 0) std::set_new_handler(nullptr);
}

// Allocates deeper on the stack than the failed call.
__attribute__((noinline)) static void *deeper(int depth) {
    char room[256];
    room[0] = char(depth);
    void *block = depth == 0 ? std::malloc(7001) : deeper(depth - 1);
    __asm__ volatile("" : : "r"(room) : "memory");
    return block;
}

int main() {
    int caught = 0, null = 0;
    for (int i = 0; i < 8; i++) {
        std::set_new_handler(throws);
        try {
            ::operator delete(::operator new(huge));
        } catch (const own_exception &) {
            caught++;
        }
        std::free(deeper(20));
        null += ::operator new(huge, std::nothrow) == nullptr;
        std::free(deeper(20));
        std::set_new_handler(gives_up);
        try {
            ::operator delete[](::operator new[](huge));
        } catch (const own_exception &) {
            return 1;
        } catch (const std::bad_alloc &) {
            caught++;
        }
        std::free(deeper(20));
    }
    std::printf("%d calls, %d caught, %d null\n", calls, caught, null);
    return 0;
}
