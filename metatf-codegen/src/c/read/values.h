/* ---- The values of fields: docs/specification.md, sections 3 and 4 ---- */

/* The numbers of 4.1, and `width`. A base that is another field has no number there. */
enum {
    PFX_WIDTH_,
    PFX_NONE_,
    PFX_BASE_,
    PFX_DELTA_,
    PFX_DEFAULT_,
    PFX_SECTION_OFFSET_,
    PFX_STRIDE_,
    PFX_SECTION_STRIDE_,
    PFX_BASE_OF_
};

/* Properties of fields that never change. */
enum { PFX_NUMERIC_ = 1, PFX_SETTABLE_ = 2, PFX_CONSTANT_ = 4, PFX_TAG_ = 8 };

/* A field in the DTD: its initial state. */
typedef struct pfx_leaf_info_ {
    const char *path;
    const char *name;
    uint8_t flags;
    uint8_t width;
    uint8_t interpretation;
    uint32_t cell; /* index of the previous value */
    uint32_t base; /* index of the field with the base */
    uint64_t a; /* the argument of the interpretation */
    uint64_t b; /* the second argument */
    uint64_t value; /* the value of a constant or tag */
} pfx_leaf_info_;

/* The state of a field in a section. */
typedef struct pfx_leaf_ {
    const pfx_leaf_info_ *info;
    uint8_t width;
    uint8_t last_width; /* the last width other than 0 */
    uint8_t interpretation;
    uint64_t a;
    uint64_t b;
    uint64_t last; /* the last value */
} pfx_leaf_;

typedef struct pfx_record_info_ {
    const char *name;
    pfx_record_kind kind;
    uint32_t tag;
    bool catch_all;
    uint16_t first; /* index of the first field in the section */
    uint16_t count;
    void (*decode)(pfx_reader *reader, pfx_leaf_ *leaf, pfx_record *record);
} pfx_record_info_;

typedef struct pfx_section_info_ {
    uint8_t number;
    const char *name;
    bool stream;
    bool number_stream; /* whether the elements are single numbers */
    const pfx_leaf_info_ *leaves;
    size_t leaf_count;
    const pfx_record_info_ *records;
    size_t record_count;
    const uint64_t *cells; /* the initial previous values */
    size_t cell_count;
} pfx_section_info_;

/* The state of a section. */
typedef struct pfx_section_state_ {
    pfx_leaf_ *leaves; /* NULL until the section begins */
    uint64_t *cells; /* the previous values */
    uint64_t *cursors; /* the next element of each section */
    uint64_t *elements; /* the elements of the group, if they are single numbers */
    size_t element_count;
    size_t element_room;
    uint64_t length; /* bytes of content so far */
    bool seen; /* whether the section occurred in the group */
    bool shared; /* whether it is a shared table */
    bool local; /* whether it is not */
} pfx_section_state_;

@TABLES@

/* Records the first error. */
static void pfx_fail_(pfx_reader *reader, pfx_error_kind kind, uint64_t offset, const char *format, ...)
{
    va_list arguments;
    if (reader->error.kind != PFX_OK) {
        return;
    }
    reader->error.kind = kind;
    reader->error.offset = offset;
    va_start(arguments, format);
    vsnprintf(reader->error.message, sizeof reader->error.message, format, arguments);
    va_end(arguments);
}

/* Records an error in the content, at the byte `at`. */
static void pfx_fail_at_(pfx_reader *reader, pfx_error_kind kind, const pfx_leaf_info_ *leaf, size_t at, const char *format, ...)
{
    const pfx_content_ *content = &reader->content;
    pfx_error *error = &reader->error;
    va_list arguments;
    if (error->kind != PFX_OK) {
        return;
    }
    error->kind = kind;
    error->in_content = content->packed;
    error->offset = content->packed ? content->origin : content->origin + at;
    error->content_offset = at;
    error->in_record = true;
    error->record_offset = content->packed ? reader->record_start : content->origin + reader->record_start;
    error->section = pfx_sections_[content->section].number;
    error->record = reader->info == NULL ? NULL : reader->info->name;
    error->field = leaf == NULL ? NULL : leaf->path;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
}

static bool pfx_failed_(const pfx_reader *reader)
{
    return reader->error.kind != PFX_OK;
}

static size_t pfx_section_index_(uint64_t number)
{
    size_t index = 0;
    while (index < PFX_SECTION_COUNT_ && pfx_sections_[index].number != number) {
        index++;
    }
    return index;
}

static bool pfx_stores_(uint8_t interpretation)
{
    return interpretation == PFX_NONE_ || interpretation == PFX_BASE_ || interpretation == PFX_DELTA_
        || interpretation == PFX_SECTION_OFFSET_ || interpretation == PFX_BASE_OF_;
}

/* Decodes a number of at most 8 bytes. */
static uint64_t pfx_decode_number_(const uint8_t *bytes, size_t width, bool big)
{
    uint64_t value = 0;
    size_t i;
    for (i = 0; i < width; i++) {
        value = value << 8 | bytes[big ? i : width - 1 - i];
    }
    return value;
}

static uint64_t pfx_sign_extend_(uint64_t raw, size_t width)
{
    if (width == 0 || width >= 8 || raw >> (8 * width - 1) == 0) {
        return raw;
    }
    return raw | UINT64_MAX << (8 * width);
}

/* Reads bytes of the content. Returns NULL and records an error if they are missing. */
static const uint8_t *pfx_take_(pfx_reader *reader, const pfx_leaf_info_ *leaf, uint64_t length)
{
    pfx_content_ *content = &reader->content;
    const uint8_t *bytes = content->bytes + content->at;
    size_t left = content->length - content->at;
    if (pfx_failed_(reader)) {
        return NULL;
    }
    if (length > left) {
        bool array = leaf != NULL && (leaf->flags & PFX_NUMERIC_) == 0;
        pfx_fail_at_(reader, array ? PFX_ERROR_LENGTH : PFX_ERROR_TRUNCATED, leaf, content->at,
            "expected %llu bytes, but the content ends after %llu", (unsigned long long)length, (unsigned long long)left);
        return NULL;
    }
    content->at += (size_t)length;
    return bytes;
}

static uint64_t pfx_raw_(pfx_reader *reader, const pfx_leaf_info_ *leaf, size_t width)
{
    const uint8_t *bytes = pfx_take_(reader, leaf, width);
    return bytes == NULL ? 0 : pfx_decode_number_(bytes, width, reader->big);
}

/* Returns the next element of a stream section. */
static uint64_t pfx_stride_(pfx_reader *reader, const pfx_leaf_ *leaf)
{
    size_t target = pfx_section_index_(leaf->a);
    pfx_section_state_ *stream = &reader->sections[target];
    uint64_t *cursor = &reader->sections[reader->content.section].cursors[target];
    uint64_t value;
    if (*cursor >= stream->element_count) {
        pfx_fail_at_(reader, PFX_ERROR_NO_ELEMENT, leaf->info, reader->content.at, "section %u has no element %llu in this group",
            (unsigned)leaf->a, (unsigned long long)*cursor);
        return 0;
    }
    value = stream->elements[*cursor];
    *cursor = leaf->b > UINT64_MAX - *cursor ? UINT64_MAX : *cursor + leaf->b;
    return value;
}

/* Reads a number. */
static uint64_t pfx_number_(pfx_reader *reader, pfx_leaf_ *leaf)
{
    pfx_section_state_ *section = &reader->sections[reader->content.section];
    uint64_t *previous = &section->cells[leaf->info->cell];
    size_t start = reader->content.at;
    uint64_t value = leaf->a;
    if (pfx_stores_(leaf->interpretation)) {
        value = pfx_raw_(reader, leaf->info, leaf->width);
    }
    switch (leaf->interpretation) {
    case PFX_BASE_:
        value = leaf->a + pfx_sign_extend_(value, leaf->width);
        break;
    case PFX_BASE_OF_:
        value = section->leaves[leaf->info->base].last + pfx_sign_extend_(value, leaf->width);
        break;
    case PFX_DELTA_:
        value = *previous + pfx_sign_extend_(value, leaf->width);
        break;
    case PFX_STRIDE_:
        value = *previous + leaf->b;
        break;
    case PFX_SECTION_STRIDE_:
        value = pfx_stride_(reader, leaf);
        break;
    default:
        break;
    }
    if ((leaf->info->flags & PFX_CONSTANT_) != 0 && value != leaf->info->value) {
        pfx_fail_at_(reader, PFX_ERROR_NOT_CONSTANT, leaf->info, start, "expected the constant %llu, found %llu",
            (unsigned long long)leaf->info->value, (unsigned long long)value);
    }
    *previous = value;
    leaf->last = value;
    return value;
}

/* Checks and resets the mark of an expression out of range. */
static bool pfx_in_range_(pfx_reader *reader, const pfx_leaf_ *leaf)
{
    if (reader->overflow) {
        pfx_fail_at_(reader, PFX_ERROR_EXPRESSION, leaf->info, reader->content.at, "a step of the expression is out of range, or divides by 0");
        reader->overflow = false;
    }
    return !pfx_failed_(reader);
}

/* Sets the value of a computed count. */
static inline uint64_t pfx_count_(pfx_reader *reader, pfx_leaf_ *leaf, uint64_t count)
{
    leaf->last = pfx_in_range_(reader, leaf) ? count : 0;
    return leaf->last;
}

/* Reads a byte array. */
static inline pfx_bytes pfx_array_(pfx_reader *reader, const pfx_leaf_ *leaf, uint64_t length)
{
    pfx_bytes bytes = {NULL, 0};
    if (pfx_in_range_(reader, leaf)) {
        bytes.data = pfx_take_(reader, leaf->info, length);
        bytes.length = bytes.data == NULL ? 0 : (size_t)length;
    }
    return bytes;
}

/* Reads a byte array up to a byte `end`. */
static inline pfx_bytes pfx_until_(pfx_reader *reader, const pfx_leaf_ *leaf, uint8_t end)
{
    pfx_bytes bytes = {NULL, 0};
    const pfx_content_ *content = &reader->content;
    size_t left = content->length - content->at;
    const uint8_t *start = content->bytes + content->at;
    const uint8_t *found = left == 0 ? NULL : (const uint8_t *)memchr(start, end, left < 65536 ? left : 65536);
    if (pfx_failed_(reader)) {
        return bytes;
    }
    if (found == NULL) {
        pfx_fail_at_(reader, PFX_ERROR_NO_END, leaf->info, content->at, "none of the next 65,536 bytes is %u", (unsigned)end);
        return bytes;
    }
    bytes.length = (size_t)(found - start);
    bytes.data = pfx_take_(reader, leaf->info, bytes.length + 1);
    return bytes;
}

static inline double pfx_double_(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns not-a-number for a number of more than 32 bits. */
static inline float pfx_float_(uint64_t bits)
{
    uint32_t low = bits >> 32 == 0 ? (uint32_t)bits : 0x7fc00000;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

/* ---- Expressions (3.2) ---- */

static inline uint64_t pfx_add_(pfx_reader *reader, uint64_t a, uint64_t b)
{
    reader->overflow |= a > UINT64_MAX - b;
    return a + b;
}

static inline uint64_t pfx_subtract_(pfx_reader *reader, uint64_t a, uint64_t b)
{
    reader->overflow |= a < b;
    return a - b;
}

static inline uint64_t pfx_multiply_(pfx_reader *reader, uint64_t a, uint64_t b)
{
    reader->overflow |= b != 0 && a > UINT64_MAX / b;
    return a * b;
}

static inline uint64_t pfx_divide_(pfx_reader *reader, uint64_t a, uint64_t b)
{
    reader->overflow |= b == 0;
    return b == 0 ? 0 : a / b;
}

static inline uint64_t pfx_remainder_(pfx_reader *reader, uint64_t a, uint64_t b)
{
    reader->overflow |= b == 0;
    return b == 0 ? 0 : a % b;
}

/* ---- Lists ---- */

/* A block of memory for the lists of a record. */
typedef struct pfx_block_ {
    struct pfx_block_ *next;
    size_t used;
    size_t room;
} pfx_block_;

/* Frees the lists of the previous record, except for the oldest block. */
static void pfx_clear_lists_(pfx_reader *reader)
{
    while (reader->lists != NULL && reader->lists->next != NULL) {
        pfx_block_ *next = reader->lists->next;
        free(reader->lists);
        reader->lists = next;
    }
    if (reader->lists != NULL) {
        reader->lists->used = 0;
    }
    reader->list_bytes = 0;
}

static void *pfx_allocate_(pfx_reader *reader, uint64_t bytes)
{
    const size_t head = (sizeof(pfx_block_) + 15) / 16 * 16;
    pfx_block_ *block = reader->lists;
    size_t size = bytes > PFX_LIST_BYTES ? PFX_LIST_BYTES : ((size_t)bytes + 15) / 16 * 16;
    if (bytes > PFX_LIST_BYTES || size > PFX_LIST_BYTES - reader->list_bytes) {
        pfx_fail_at_(reader, PFX_ERROR_LIMIT, NULL, reader->content.at, "the lists of the record exceed %llu bytes: define a larger PFX_LIST_BYTES",
            (unsigned long long)PFX_LIST_BYTES);
        return NULL;
    }
    if (block == NULL || block->room - block->used < size) {
        size_t room = size < 4096 ? 4096 : size;
        block = (pfx_block_ *)malloc(head + room);
        if (block == NULL) {
            pfx_fail_at_(reader, PFX_ERROR_LIMIT, NULL, reader->content.at, "not enough memory for the lists of the record");
            return NULL;
        }
        block->next = reader->lists;
        block->used = 0;
        block->room = room;
        reader->lists = block;
    }
    reader->list_bytes += size;
    block->used += size;
    return (uint8_t *)block + head + block->used - size;
}

/* Counts an item, and checks that the record can contain it. */
static inline bool pfx_item_(pfx_reader *reader)
{
    if (pfx_failed_(reader)) {
        return false;
    }
    if (++reader->items > reader->content.length - reader->record_start + (uint64_t)65536) {
        pfx_fail_at_(reader, PFX_ERROR_TOO_MANY_ITEMS, NULL, reader->content.at, "the record has too many items for its bytes");
        return false;
    }
    return true;
}

/* Makes room for item `count` of a list. Lists grow with their items, because a stored count may be wrong. */
static inline void *pfx_grow_(pfx_reader *reader, const void *list, uint64_t count, size_t size)
{
    void *grown;
    if (count != 0 && (count < 4 || (count & (count - 1)) != 0)) {
        return (void *)list;
    }
    grown = pfx_allocate_(reader, (count == 0 ? 4 : 2 * count) * size);
    if (grown != NULL && count != 0) {
        memcpy(grown, list, (size_t)count * size);
    }
    return grown;
}

