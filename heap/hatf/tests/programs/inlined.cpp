// Allocates in templates, lambdas, constructors and inlined library functions, for tests of function names.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct Tree {
    Tree *left, *right;
    std::string name;
    explicit Tree(int depth)
        : left(depth ? new Tree(depth - 1) : nullptr), right(depth ? new Tree(depth - 1) : nullptr), name(40, 'x') {}
    ~Tree() {
        delete left;
        delete right;
    }
};

template <class T> T *copy_of(const T &value) {
    return new T(value);
}

int main() {
    std::map<int, std::vector<int>> numbers;
    for (int number = 0; number < 1000; number++) numbers[number % 37].push_back(number);
    Tree tree(6);
    auto *copied = copy_of(std::string(100, 'y'));
    auto make = [](int length) { return new std::vector<int>(length); };
    auto *made = make(10);
    printf("%zu %zu %zu\n", numbers.size(), copied->size(), made->size());
    delete copied;
    delete made;
}
