/* Writes each record of shapes.dtd with typical, minimal and invalid values to the trace in its argument. */
#define SHAPES_IMPLEMENTATION
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>

static uint8_t buffer[SHAPES_BUFFER_LEAST + 4000];
static uint8_t entries[64 * 32];
static shapes_file file;
static shapes_emitter emitter;
static const uint8_t id[16] = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "shapes.c: %s\n", what);
        exit(1);
    }
}

/* Checks the description of the last event. */
static void described(const char *text)
{
    const char *found = shapes_describe(&emitter, 0);
    if (strcmp(found, text) != 0) {
        fprintf(stderr, "shapes.c: %s\n", found);
        exit(1);
    }
}

static void lists(void)
{
    static const uint8_t bytes[] = {1, 2, 3};
    static const uint8_t row[] = {9, 8};
    static const char *const texts[] = {"one", "", "dr\303\266i"};
    const void *ids[2];
    shapes_lists_point points[2] = {{-1, 10}, {32768, UINT64_MAX}};
    shapes_lists_row rows[3] = {{0, NULL}, {2, NULL}, {1, NULL}};
    rows[1].byte = row;
    rows[2].byte = bytes;
    ids[0] = id;
    ids[1] = NULL;
    SHAPES_EMIT_LISTS(&emitter, 3, bytes, 2, points, 3, rows, 3, texts, 2, ids);
    SHAPES_EMIT_LISTS(&emitter, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL);
    described("lists (Other) n=0 points=0 rows=0 texts=0 ids=0");
    /* Dropped: items without memory, on each level. */
    rows[2].n = 1;
    rows[2].byte = NULL;
    shapes_emit_lists(&emitter, 0, NULL, 0, NULL, 3, rows, 0, NULL, 0, NULL);
    shapes_emit_lists(&emitter, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 1, NULL);
}

static void shared(void)
{
    static const int32_t x[2] = {-5, 70000};
    static const uint64_t first[2] = {1, 2};
    static const uint64_t second[2] = {1ull << 40, 4};
    const uint64_t *rows[2];
    shapes_shared_label labels[2] = {{1, "a"}, {2, NULL}};
    rows[0] = first;
    rows[1] = second;
    SHAPES_EMIT_SHARED(&emitter, 2, x, rows, 6, labels);
    shapes_emit_shared(&emitter, 0, NULL, NULL, 7, NULL);
}

static void optional(uint32_t name)
{
    const shapes_optional_point point = {3, 4};
    shapes_optional_items items = {NULL, 0};
    shapes_optional_vfield bytes = {"\0\1", 2};
    uint8_t kind;
    items.id = id;
    items.name = name;
    for (kind = 0; kind < 32; kind++) {
        shapes_emit_optional(&emitter, kind, -7, &point, &items, &bytes, kind);
    }
    described("optional (Other) kind=31 x=-7 point_x=3 point_y=4 vfield=0001 y=31");
    shapes_emit_optional(&emitter, 0, 0, NULL, NULL, NULL, 32);
    described("optional (Other) kind=0 y=32");
    /* Dropped: fields that should be present. */
    shapes_emit_optional(&emitter, 2, 0, NULL, NULL, NULL, 0);
    shapes_emit_optional(&emitter, 4, 0, NULL, NULL, NULL, 0);
    items.name = SHAPES_NO_ELEMENT;
    shapes_emit_optional(&emitter, 4, 0, NULL, &items, NULL, 0);
}

static void computed(void)
{
    shapes_computed_point points[3] = {{1, 2}, {3, 4}, {5, 6}};
    SHAPES_EMIT_COMPUTED(&emitter, 5, "0123456789", 10, 2, "abc", 3, 3, points, "zz", 2);
    described("computed (Other) n=5 data=30313233343536373839 m=2 more=616263 point_x=1 point_y=2 point_x=3 point_y=4 point_x=5 point_y=6 zeros=7a7a");
    shapes_emit_computed(&emitter, 0, NULL, 0, 0, NULL, 0, 0, NULL, NULL, 0);
    /* Dropped: another length, another count, and a difference below 0. */
    shapes_emit_computed(&emitter, 5, "0123456789", 9, 2, "abc", 3, 3, points, "zz", 2);
    shapes_emit_computed(&emitter, 5, "0123456789", 10, 2, "abc", 3, 2, points, "zz", 2);
    shapes_emit_computed(&emitter, 3, "012345", 6, 4, "", (size_t)-1, (size_t)-1, points, NULL, 0);
}

static void ended(void)
{
    static uint8_t blob[2000];
    static char line[70000];
    memset(blob, 'b', sizeof blob);
    memset(line, 'l', sizeof line);
    shapes_emit_ended(&emitter, "a line", 6, "word", 4, blob);
    shapes_emit_ended(&emitter, NULL, 0, NULL, 0, NULL);
    shapes_emit_ended(&emitter, line, 2000, "\n", 1, blob);
    /* Dropped: the end inside, more than fits in the buffer, and more than the format allows. */
    shapes_emit_ended(&emitter, "a\nb", 3, "word", 4, blob);
    shapes_emit_ended(&emitter, "a", 1, "wo\0rd", 5, blob);
    shapes_emit_ended(&emitter, line, 5000, "", 0, blob);
    shapes_emit_ended(&emitter, line, 65536, "", 0, blob);
    shapes_emit_ended(&emitter, NULL, 1, "", 0, blob);
}

static void constant(void)
{
    static uint64_t z[3] = {3, 4, 5};
    shapes_constant_point points[2] = {{1, 2}, {3, 4}};
    shapes_emit_constant(&emitter, points, 3, z);
    described("constant (Other) point_x=1 point_y=2 point_x=3 point_y=4 m=3 z=3 z=4 z=5");
    shapes_emit_constant(&emitter, points, 0, NULL);
    shapes_emit_constant(&emitter, NULL, 0, NULL);
}

static void refers(uint32_t name)
{
    static const uint64_t y[2] = {UINT64_MAX - 32667, 32867};
    static const uint64_t far[1] = {32868};
    shapes_trace *trace = &file.trace;
    uint32_t place = shapes_intern_places(trace, 1, -2, name, 2, y, 5);
    expect(place == 0 && shapes_intern_places(trace, 1, -2, name, 2, y, 5) == 0, "a place");
    expect(shapes_intern_places(trace, 1, -2, name, 0, NULL, 5) == 10, "another place");
    /* Values that do not fit in the widths of the DTD. */
    expect(shapes_intern_places(trace, 1, 32768, name, 0, NULL, 5) == SHAPES_NO_ELEMENT, "x");
    expect(shapes_intern_places(trace, 1, -2, name, 1, far, 5) == SHAPES_NO_ELEMENT, "y");
    expect(shapes_intern_places(trace, 1, -2, name, 0, NULL, 6) == SHAPES_NO_ELEMENT, "a default");
    expect(shapes_intern_places(trace, 1, -2, name, 256, y, 5) == SHAPES_NO_ELEMENT, "a count");
    expect(shapes_intern_places(trace, 1, -2, name, 1, NULL, 5) == SHAPES_NO_ELEMENT, "no items");
    expect(shapes_intern_places(trace, 1, -2, SHAPES_NO_ELEMENT, 0, NULL, 5) == SHAPES_NO_ELEMENT, "a reference");
    expect(trace->strings_refused == 6, "the number of refused elements");
    SHAPES_EMIT_REFERS(&emitter, name, place, 1ull << 33, 5);
    shapes_emit_refers(&emitter, name, 10, 0, UINT64_MAX);
    /* Dropped: a place that was refused. */
    shapes_emit_refers(&emitter, name, SHAPES_NO_ELEMENT, 0, 0);
}

static void deep(void)
{
    shapes_deep_m_items first[2] = {{"x", 1}, {NULL, 2}};
    char text[300];
    shapes_deep_m_items second[1] = {{NULL, 3}};
    shapes_deep_n_items items[3] = {{1, 2, NULL}, {2, 0, NULL}, {2, 1, NULL}};
    memset(text, 't', 299);
    text[299] = 0;
    items[0].m_items = first;
    items[2].m_items = second;
    second[0].text = text;
    shapes_emit_deep(&emitter, 3, items);
    shapes_emit_deep(&emitter, 0, NULL);
    described("deep (Other) n=0");
    /* Dropped: a count inside an item that is larger than any memory. */
    items[1].m = SIZE_MAX;
    items[1].m_items = second;
    shapes_emit_deep(&emitter, 3, items);
}

static void rest(void)
{
    SHAPES_EMIT_REST(&emitter, 200, 5, "ab", 2);
    described("rest (Other) tag=200 n=5 vfield=6162");
    shapes_emit_rest(&emitter, 255, 0, NULL, 0);
    /* Dropped: the tag of another record. */
    shapes_emit_rest(&emitter, 4, 0, NULL, 0);
}

int main(int count, char **arguments)
{
    uint32_t name;
    expect(count == 2 && shapes_open(&file, arguments[1]) == 0, "the file");
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    expect(shapes_emitter_begin(&emitter, &file.trace, buffer, sizeof buffer) == 0, "an emitter");
    lists();
    shared();
    name = shapes_intern_names(&file.trace, "a name");
    optional(name);
    computed();
    ended();
    constant();
    refers(name);
    deep();
    rest();
    expect(shapes_emitter_end(&emitter) == 0 && shapes_close(&file) == 0, "the end");
    return 0;
}
