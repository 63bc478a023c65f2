// Calls every form of operator new and delete as often as the argument says. Compiled by tests/it/operators.rs.
#include <cstdio>
#include <cstdlib>
#include <new>

static void *volatile block;
static const std::align_val_t aligned{64};

static void *keep(void *made) { return block = made; }

int main(int, char **arguments) {
    for (int n = std::atoi(arguments[1]); n > 0; n--) {
        ::operator delete(keep(::operator new(7001)));
        ::operator delete[](keep(::operator new[](7002)));
        ::operator delete(keep(::operator new(7003)), std::size_t(7003));
        ::operator delete[](keep(::operator new[](7004)), std::size_t(7004));
        ::operator delete(keep(::operator new(7005, std::nothrow)), std::nothrow);
        ::operator delete[](keep(::operator new[](7006, std::nothrow)), std::nothrow);
        ::operator delete(keep(::operator new(7007, aligned)), aligned);
        ::operator delete[](keep(::operator new[](7008, aligned)), aligned);
        ::operator delete(keep(::operator new(7009, aligned)), std::size_t(7009), aligned);
        ::operator delete[](keep(::operator new[](7010, aligned)), std::size_t(7010), aligned);
        ::operator delete(keep(::operator new(7011, aligned, std::nothrow)), aligned, std::nothrow);
        ::operator delete[](keep(::operator new[](7012, aligned, std::nothrow)), aligned, std::nothrow);
    }
    volatile std::size_t huge = ~std::size_t(0) / 4;
    try {
        block = ::operator new(huge);
        return 1;
    } catch (const std::bad_alloc &) {
    }
    try {
        block = ::operator new[](huge, aligned);
        return 2;
    } catch (const std::bad_alloc &) {
    }
    if (::operator new(huge, std::nothrow) != nullptr) {
        return 3;
    }
    return 7;
}
