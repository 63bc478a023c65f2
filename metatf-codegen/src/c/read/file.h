/* ---- The file: docs/specification.md, section 5.1 ---- */

/* The parts of a file. */
enum { PFX_END_, PFX_ARRAY_, PFX_PIPE_, PFX_TABLE_, PFX_STREAMS_, PFX_EXTENTS_, PFX_CHUNKS_ };

/* Copies up to `length` bytes of the file. Returns the number of bytes, which is smaller at the end of the file or after an error. */
static size_t pfx_read_some_(pfx_reader *reader, uint8_t *to, size_t length)
{
    size_t count = length;
    if (reader->memory != NULL) {
        count = reader->size - reader->at < length ? (size_t)(reader->size - reader->at) : length;
        if (count > 0) {
            memcpy(to, reader->memory + reader->at, count);
        }
    } else {
        count = fread(to, 1, length, reader->file);
        if (count < length && ferror(reader->file)) {
            pfx_fail_(reader, PFX_ERROR_IO, reader->at + count, "the file cannot be read");
        }
    }
    reader->at += count;
    return count;
}

/* Copies `length` bytes of the file, or records an error. */
static bool pfx_read_all_(pfx_reader *reader, uint8_t *to, size_t length, const char *part)
{
    if (pfx_read_some_(reader, to, length) < length) {
        pfx_fail_(reader, PFX_ERROR_TRUNCATED, reader->at, "the file ends in %s", part);
    }
    return !pfx_failed_(reader);
}

/* Returns the next `length` bytes of the file. The buffer grows with the bytes that exist. */
static const uint8_t *pfx_read_(pfx_reader *reader, size_t length, const char *part)
{
    size_t filled = 0;
    if (reader->memory != NULL) {
        const uint8_t *bytes = reader->memory + reader->at;
        if (length > reader->size - reader->at) {
            pfx_fail_(reader, PFX_ERROR_TRUNCATED, reader->size, "the file ends in %s", part);
            return NULL;
        }
        reader->at += length;
        return bytes;
    }
    do {
        size_t more = filled < 65536 ? 65536 : filled;
        more = more < length - filled ? more : length - filled;
        if (!pfx_reserve_(reader, &reader->stored, filled + more + 1)
            || !pfx_read_all_(reader, reader->stored.bytes + filled, more, part)) {
            return NULL;
        }
        filled += more;
    } while (filled < length);
    return reader->stored.bytes;
}

/* Reads the rest of the file after `head`, so that the file is in memory. */
static void pfx_read_rest_(pfx_reader *reader, const uint8_t *head, size_t length)
{
    size_t filled = length;
    size_t count = 1;
    if (reader->memory != NULL) {
        return;
    }
    while (count > 0) {
        if (!pfx_reserve_(reader, &reader->stored, filled < 32768 ? 65536 : 2 * filled)) {
            return;
        }
        if (filled == length) {
            memcpy(reader->stored.bytes, head, length);
        }
        count = pfx_read_some_(reader, reader->stored.bytes + filled, reader->stored.room - filled);
        filled += count;
    }
    reader->memory = reader->stored.bytes;
    reader->size = filled;
}

/* Reports the features that the trace needs: their numbers and names. */
static void pfx_refuse_features_(pfx_reader *reader, const uint8_t *head)
{
    char list[128] = "";
    size_t used = 0;
    uint64_t first = 0;
    int feature;
    for (feature = 0; feature < 64; feature++) {
        uint8_t name[32] = {0};
        uint8_t length;
        size_t i;
        if ((head[8 + feature / 8] >> feature % 8 & 1) == 0) {
            continue;
        }
        if (!pfx_read_all_(reader, &length, 1, "the name of a feature")) {
            return;
        }
        if (length < 1 || length > 31) {
            pfx_fail_(reader, PFX_ERROR_INVALID, reader->at - 1, "the name of feature %d has %u bytes: expected 1 to 31", feature, (unsigned)length);
            return;
        }
        if (!pfx_read_all_(reader, name, length, "the name of a feature")) {
            return;
        }
        for (i = 0; i < length; i++) {
            if (name[i] != '-' && !(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9')) {
                pfx_fail_(reader, PFX_ERROR_INVALID, reader->at - length + i, "the name of feature %d contains the byte %u", feature, (unsigned)name[i]);
                return;
            }
        }
        first = first == 0 ? (uint64_t)(8 + feature / 8) : first;
        if (used < sizeof list) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s (%d)", used > 0 ? ", " : "", (const char *)name, feature);
        }
    }
    pfx_fail_(reader, PFX_ERROR_UNKNOWN_FEATURES, first, "the trace needs features that this reader lacks: %s", list);
}

/* Reads the header. */
static void pfx_read_header_(pfx_reader *reader)
{
    uint8_t head[40];
    uint8_t url[255];
    bool features = false;
    size_t count = pfx_read_some_(reader, head, 16);
    size_t length;
    uint64_t end;
    int i;
    if (pfx_failed_(reader)) {
        return;
    }
    if (count < 4 || memcmp(head, "\177MTF", 4) != 0) {
        pfx_fail_(reader, PFX_ERROR_NOT_A_TRACE, 0, "the file does not begin with the magic number of a trace");
        return;
    }
    if (count < 16) {
        pfx_fail_(reader, PFX_ERROR_TRUNCATED, count, "the file ends in the header");
        return;
    }
    if (head[4] != 1 && head[4] != 2) {
        pfx_fail_(reader, PFX_ERROR_INVALID, 4, "expected class 1 or 2, found %u", (unsigned)head[4]);
    } else if (head[5] != 1 && head[5] != 2) {
        pfx_fail_(reader, PFX_ERROR_INVALID, 5, "expected byte order 1 or 2, found %u", (unsigned)head[5]);
    } else if (head[7] > 1) {
        pfx_fail_(reader, PFX_ERROR_INVALID, 7, "version %u needs a newer reader", (unsigned)head[7]);
    }
    for (i = 8; i < 16; i++) {
        features |= head[i] != 0;
        if (head[7] == 0 && head[i] != 0) {
            pfx_fail_(reader, PFX_ERROR_INVALID, (uint64_t)i, "expected 0, found %u", (unsigned)head[i]);
        }
    }
    reader->class_bytes = head[4] == 1 ? 4 : 8;
    reader->big = head[5] == 2;
    reader->version = head[7];
    length = 3u * reader->class_bytes;
    if (pfx_failed_(reader) || !pfx_read_all_(reader, head + 16, length, "the header")
        || !pfx_read_all_(reader, url, head[6], "the header")) {
        return;
    }
    reader->extents = pfx_decode_number_(head + 16, reader->class_bytes, reader->big);
    reader->start = pfx_decode_number_(head + 16 + reader->class_bytes, reader->class_bytes, reader->big);
    if (features) {
        pfx_refuse_features_(reader, head);
    }
    if (reader->version == 0 && !pfx_failed_(reader)) {
        uint8_t all[295];
        memcpy(all, head, 16 + length);
        memcpy(all + 16 + length, url, head[6]);
        pfx_read_rest_(reader, all, 16 + length + head[6]);
    }
    if (pfx_failed_(reader)) {
        return;
    }
    reader->table = 16 + length + head[6];
    reader->at = reader->table;
    if (reader->version == 1 && reader->extents != 0) {
        pfx_fail_(reader, PFX_ERROR_INVALID, 16, "expected no section table in version 1");
    } else if (reader->version == 0 && reader->extents > (reader->size - reader->table) / length) {
        pfx_fail_(reader, PFX_ERROR_TRUNCATED, 16, "the file ends in the section table");
    } else {
        end = reader->table + reader->extents * length;
        if (reader->start < end || (reader->version == 1 ? reader->start != end : reader->start > reader->size)) {
            pfx_fail_(reader, PFX_ERROR_INVALID, 16u + reader->class_bytes, "the records cannot begin at offset %llu",
                (unsigned long long)reader->start);
        }
    }
    reader->state = reader->version == 1 ? PFX_CHUNKS_ : reader->extents == 0 ? PFX_PIPE_ : PFX_TABLE_;
}

/* ---- Extents, in version 0 ---- */

/* An entry of the section table. */
typedef struct pfx_extent_ {
    size_t section; /* index of the section, or PFX_SECTION_COUNT_ */
    uint64_t number;
    uint64_t start;
    uint64_t size;
    uint64_t before; /* offset of the section record before the extent, or `start` in the global section */
    uint64_t entry; /* offset of the entry */
} pfx_extent_;

static pfx_extent_ pfx_extent_at_(const pfx_reader *reader, uint64_t index)
{
    size_t width = reader->class_bytes;
    pfx_extent_ extent;
    const uint8_t *bytes;
    extent.entry = reader->table + index * 3 * width;
    bytes = reader->memory + extent.entry;
    extent.number = pfx_decode_number_(bytes, width, reader->big);
    extent.start = pfx_decode_number_(bytes + width, width, reader->big);
    extent.size = pfx_decode_number_(bytes + 2 * width, width, reader->big);
    extent.section = extent.number > 255 ? PFX_SECTION_COUNT_ : pfx_section_index_(extent.number);
    extent.before = extent.start - (extent.number == 0 ? 0 : PFX_TAG_WIDTH_ + 1);
    return extent;
}

/* Checks the section table. */
static void pfx_check_table_(pfx_reader *reader)
{
    uint64_t end = reader->start;
    uint64_t i;
    for (i = 0; i < reader->extents && !pfx_failed_(reader); i++) {
        pfx_extent_ extent = pfx_extent_at_(reader, i);
        if (extent.section == PFX_SECTION_COUNT_) {
            pfx_fail_(reader, PFX_ERROR_UNKNOWN_SECTION, extent.entry, "the DTD has no section %llu", (unsigned long long)extent.number);
        } else if (extent.start > reader->size || extent.size > reader->size - extent.start) {
            pfx_fail_(reader, PFX_ERROR_TRUNCATED, extent.entry, "the extent is past the end of the file");
        } else if (extent.number == 0 ? i != 0 || extent.start != end
                                      : extent.start < end + PFX_TAG_WIDTH_ + 1 || (i != 0 && extent.before != end)) {
            pfx_fail_(reader, PFX_ERROR_INVALID, extent.entry, "expected an extent that begins at the end of the previous extent");
        } else if (extent.number != 0
            && (pfx_decode_number_(reader->memory + extent.before, PFX_TAG_WIDTH_, reader->big) != PFX_SECTION_TAG_
                || reader->memory[extent.start - 1] != extent.number)) {
            pfx_fail_(reader, PFX_ERROR_INVALID, extent.before, "expected a section record for section %u", (unsigned)extent.number);
        }
        end = extent.start + extent.size;
    }
    if (end != reader->size) {
        pfx_fail_(reader, PFX_ERROR_INVALID, end, "expected the end of the file after the last extent");
    }
}

/* Starts to read an extent. */
static void pfx_begin_extent_(pfx_reader *reader, size_t section, uint64_t start, uint64_t size)
{
    pfx_content_ *content = &reader->content;
    memset(content, 0, sizeof *content);
    content->bytes = reader->memory + start;
    content->length = (size_t)size;
    content->origin = start;
    content->base = start;
    content->section = section;
    if (reader->sections[section].leaves == NULL) {
        pfx_reset_(reader, section);
    }
}

/* Advances to the next extent: first those of stream sections, then all others. Returns true if `record` is the start of a section. */
static bool pfx_next_extent_(pfx_reader *reader, pfx_record *record)
{
    pfx_extent_ extent;
    if (reader->state == PFX_TABLE_) {
        pfx_check_table_(reader);
        reader->state = PFX_STREAMS_;
        return false;
    }
    if (reader->state == PFX_STREAMS_) {
        while (reader->extent < reader->extents) {
            extent = pfx_extent_at_(reader, reader->extent++);
            if (pfx_sections_[extent.section].stream) {
                pfx_begin_extent_(reader, extent.section, extent.start, extent.size);
                return false;
            }
        }
        reader->state = PFX_EXTENTS_;
        reader->extent = 0;
        extent = pfx_extent_at_(reader, 0);
        if (extent.number != 0) {
            pfx_begin_extent_(reader, 0, reader->start, extent.before - reader->start);
        }
        return false;
    }
    if (reader->extent == reader->extents) {
        reader->state = PFX_END_;
        return false;
    }
    extent = pfx_extent_at_(reader, reader->extent++);
    record->section = pfx_sections_[reader->content.section].number;
    record->kind = PFX_RECORD_SECTION;
    record->offset = extent.before;
    record->as.number = extent.number;
    if (reader->extent == 1) {
        record->section = 0;
    }
    pfx_begin_extent_(reader, extent.section, extent.start, pfx_sections_[extent.section].stream ? 0 : extent.size);
    return extent.number != 0;
}

