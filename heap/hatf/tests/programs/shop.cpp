// A shop with known memory use by function. Blocks of containers, wrappers and strings count for the shop's function.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#define APART __attribute__((noinline))
// Another version of the shop has more items.
#ifndef ITEMS
#define ITEMS 200
#endif

namespace shop {

struct Item {
    std::string name;
    std::vector<int> prices;
};
std::vector<std::unique_ptr<Item>> shelf;
void *kept[2];

APART void add(int number) {
    auto item = std::make_unique<Item>();
    item->name = std::string(100, 'x');
    item->prices.reserve(50);
    item->prices.push_back(number);
    shelf.push_back(std::move(item));
}

APART void load(int items) {
    shelf.reserve(items);
    for (int number = 0; number < items; number++) add(number);
}

APART void *xmalloc(std::size_t size) { return std::malloc(size); }
APART void first() { kept[0] = xmalloc(1000); }
APART void second() { kept[1] = xmalloc(2000); }

// Calls itself and allocates on two lines.
APART int fill(int deep) {
    std::free(xmalloc(10));
    if (deep == 0) return 0;
    int deeper = fill(deep - 1);
    std::free(xmalloc(64));
    return deeper + 1;
}

// Allocates other blocks after the growing block, so that realloc has to copy it.
APART void grow() {
    void *growing = nullptr, *behind[8];
    for (int size = 1; size <= 8; size++) {
        growing = std::realloc(growing, 500 * size);
        behind[size - 1] = std::malloc(500);
    }
    std::free(growing);
    for (void *block : behind) std::free(block);
}

} // namespace shop

int main() {
    shop::load(ITEMS);
    shop::first();
    shop::second();
    int deep = shop::fill(9);
    shop::grow();
    shop::shelf.clear();
    shop::shelf.shrink_to_fit();
    return deep - 9;
}
