// C++ operators on a linked-in allocator: exceptions pass through the recording code.
#include <cstdio>
#include <cstdlib>
#include <new>

extern "C" void *malloc(size_t size);
extern "C" void free(void *block);

void *operator new(size_t size)
{
    if (void *block = size < 100000 ? malloc(size) : nullptr)
        return block;
    throw std::bad_alloc();
}

void *operator new(size_t size, std::align_val_t) { return ::operator new(size); }
void operator delete(void *block) noexcept { free(block); }
void operator delete(void *block, size_t) noexcept { free(block); }
void operator delete(void *block, std::align_val_t) noexcept { free(block); }
void operator delete(void *block, size_t, std::align_val_t) noexcept { free(block); }

int main()
{
    int caught = 0, given = 0;
    for (int round = 0; round < 100; round++) {
        try {
            void *volatile never = ::operator new(200000);
            std::free(never);
        } catch (const std::bad_alloc &) {
            caught++;
        }
        void *volatile block = ::operator new(7000 + round);
        given++;
        ::operator delete(block);
    }
    std::printf("%d %d\n", given, given);
    return caught == 100 ? 7 : 1;
}
