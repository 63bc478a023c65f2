/* Functions that pass memory on to their callers, and functions that only look as if they did. Six functions call each
   of them; the amounts identify the function that owns the memory, even if the program is stripped. */
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#define SIX(of) of(1) of(2) of(3) of(4) of(5) of(6)

static void *volatile sink;
static volatile int turns = 4;

/* Wrappers. */

NOINLINE void *grab(size_t size) {
    void *block = malloc(size);
    if (!block) abort();
    return block;
}

NOINLINE void *do_xmalloc(size_t size) {
    void *block = malloc(size);
    if (!block) abort();
    return block;
}

NOINLINE void *xmalloc(size_t size) {
    void *block = do_xmalloc(size ? size : 1);
    if (!block) abort();
    return block;
}

NOINLINE void *xcalloc(size_t count, size_t size) {
    void *block = calloc(count, size);
    if (!block) abort();
    return block;
}

NOINLINE void *xrealloc(void *old, size_t size) {
    void *block = realloc(old, size);
    if (!block) abort();
    return block;
}

NOINLINE char *copy_text(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (!copy) abort();
    return memcpy(copy, text, size);
}

NOINLINE static void *default_hook(size_t size) {
    void *block = malloc(size);
    if (!block) abort();
    return block;
}

static void *(*volatile hook)(size_t) = default_hook;

NOINLINE void *through_hook(size_t size) {
    void *block = hook(size);
    if (!block) abort();
    return block;
}

/* With optimization, this is a jump to `grab`. */
NOINLINE void *jump_to_grab(size_t size) { return grab(size + 1000); }

/* With optimization, this is inlined into its callers. */
static inline void *get_inlined(size_t size) {
    void *block = malloc(size);
    if (!block) abort();
    return block;
}

/* Functions of the program. */

NOINLINE void *new_node(void) {
    void *node = malloc(48);
    if (!node) abort();
    return node;
}

/* The name suggests an allocation function, but each block is a point. */
NOINLINE void *alloc_point(void) {
    void *point = malloc(40);
    if (!point) abort();
    return point;
}

NOINLINE void *new_shape(int kind) {
    static const size_t sizes[3] = {72, 88, 136};
    void *shape = malloc(sizes[kind % 3]);
    if (!shape) abort();
    return shape;
}

NOINLINE void *walk(int depth) {
    void **level = malloc(700 + 16 * (size_t)depth);
    if (!level) abort();
    if (depth > 0) level[0] = walk(depth - 1);
    return level;
}

NOINLINE void *load(size_t size) {
    void **all = malloc(size);
    if (!all) abort();
    all[0] = new_node();
    return all;
}

NOINLINE void *two_places(size_t size) {
    void **all = malloc(size);
    if (!all) abort();
    all[0] = malloc(size * 2);
    return all;
}

/* Their callers. */

#define CALLER(name, number, call) \
    NOINLINE void name##_##number(void) { \
        for (int turn = 0; turn < turns; turn++) sink = call; \
        sink = 0; \
    }

static const char *const texts[6] = {
    "a", "a longer text", "a text that is longer still", "and another one", "hello", "the last of all the texts"};

#define CALLERS(n) \
    CALLER(grab, n, grab(100 + n)) \
    CALLER(xmalloc, n, xmalloc(200 + n)) \
    CALLER(xcalloc, n, xcalloc(3, 100 + n)) \
    CALLER(xrealloc, n, xrealloc(0, 400 + n)) \
    CALLER(copy_text, n, copy_text(texts[n - 1])) \
    CALLER(hook, n, through_hook(500 + n)) \
    CALLER(jump, n, jump_to_grab(600 + n)) \
    CALLER(inlined, n, get_inlined(2000 + n)) \
    CALLER(node, n, new_node()) \
    CALLER(point, n, alloc_point()) \
    CALLER(shape, n, new_shape(n)) \
    CALLER(walk, n, walk(2 + n)) \
    CALLER(load, n, load(800 + n)) \
    CALLER(two_places, n, two_places(900 + n))

SIX(CALLERS)

#define RUN(n) \
    grab_##n(), xmalloc_##n(), xcalloc_##n(), xrealloc_##n(), copy_text_##n(), hook_##n(), jump_##n(), inlined_##n(), \
        node_##n(), point_##n(), shape_##n(), walk_##n(), load_##n(), two_places_##n();

/* With an argument, each function has only one caller. */
int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) {
        RUN(1)
        return 0;
    }
    SIX(RUN)
    return 0;
}
