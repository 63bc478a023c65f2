/* ---- Chunks: docs/specification.md, section 5.2 ---- */

/* The header of a chunk. */
typedef struct pfx_chunk_ {
    uint8_t head[48];
    uint64_t offset;
    uint8_t section;
    uint8_t kind;
    uint8_t codec;
    uint8_t filter;
    uint8_t flags;
    uint8_t width;
    uint32_t stored_length;
    uint32_t raw_length;
    uint32_t records;
    uint32_t group;
    uint32_t filtered_length;
    uint64_t base;
    const uint8_t *payload; /* NULL if the payload is not needed */
} pfx_chunk_;

static uint32_t pfx_little_(const uint8_t *bytes)
{
    return (uint32_t)pfx_decode_number_(bytes, 4, false);
}

/* Skips the payload of a chunk that is not needed or has any length. Continues two CRCs: of the chunk, and of the payload alone. */
static void pfx_skip_payload_(pfx_reader *reader, uint64_t length, uint32_t *chunk, uint32_t *payload)
{
    uint8_t block[4096];
    while (length > 0) {
        size_t count = length < sizeof block ? (size_t)length : sizeof block;
        if (!pfx_read_all_(reader, block, count, "a chunk")) {
            return;
        }
        *chunk = pfx_crc_(*chunk, block, count);
        *payload = pfx_crc_(*payload, block, count);
        length -= count;
    }
}

/* Reads the header and the payload of a chunk. Returns false at the end of the file and after an error. */
static bool pfx_read_chunk_(pfx_reader *reader, pfx_chunk_ *chunk, uint32_t *payload_crc)
{
    const uint8_t *head = chunk->head;
    uint64_t offset = reader->at;
    size_t count = pfx_read_some_(reader, chunk->head, 48);
    uint32_t crc;
    if (pfx_failed_(reader) || count == 0) {
        return false;
    }
    if (count < 48 || memcmp(head, "MTFC", 4) != 0) {
        pfx_fail_(reader, count < 48 ? PFX_ERROR_TRUNCATED : PFX_ERROR_INVALID, offset, "expected a chunk");
        return false;
    }
    chunk->offset = offset;
    chunk->section = head[4];
    chunk->kind = head[5];
    chunk->codec = head[6];
    chunk->filter = head[7];
    chunk->flags = head[8];
    chunk->width = head[9];
    chunk->stored_length = pfx_little_(head + 12);
    chunk->raw_length = pfx_little_(head + 16);
    chunk->records = pfx_little_(head + 20);
    chunk->group = pfx_little_(head + 24);
    chunk->base = pfx_decode_number_(head + 32, 8, false);
    chunk->filtered_length = pfx_little_(head + 40);
    chunk->payload = NULL;
    if (chunk->kind != 2 && chunk->stored_length > 128u << 20) {
        pfx_fail_(reader, PFX_ERROR_INVALID, offset + 12, "expected a stored_len of at most 128 MiB, found %lu", (unsigned long)chunk->stored_length);
        return false;
    }
    crc = pfx_crc_(0, head, 44);
    if (chunk->kind < 2) {
        chunk->payload = pfx_read_(reader, chunk->stored_length, "a chunk");
        crc = chunk->payload == NULL ? 0 : pfx_crc_(crc, chunk->payload, chunk->stored_length);
    } else {
        pfx_skip_payload_(reader, chunk->stored_length, &crc, payload_crc);
    }
    if (crc != pfx_little_(head + 44)) {
        pfx_fail_(reader, PFX_ERROR_CHECKSUM, offset, "the checksum of the chunk does not match");
    }
    return !pfx_failed_(reader);
}

/* Records an error in the header of a chunk. */
static void pfx_fail_field_(pfx_reader *reader, const pfx_chunk_ *chunk, unsigned at, const char *field)
{
    pfx_fail_(reader, PFX_ERROR_INVALID, chunk->offset + at, "the chunk has an invalid %s", field);
}

/* Checks the lengths of a chunk. */
static void pfx_check_lengths_(pfx_reader *reader, const pfx_chunk_ *chunk)
{
    const uint32_t most = 64u << 20;
    uint32_t raw = chunk->raw_length;
    uint32_t filtered = chunk->filter < 2 ? raw : chunk->filtered_length;
    if (chunk->kind == 2 ? raw != chunk->stored_length || chunk->codec != 0 || chunk->filter != 0
                         : raw > most || (chunk->codec == 0 && filtered != chunk->stored_length)) {
        pfx_fail_field_(reader, chunk, chunk->filter < 2 ? 16 : 40, chunk->filter < 2 ? "raw_len" : "filtered_len");
    } else if (chunk->filter < 2 ? chunk->filtered_length != 0 : filtered > most || (uint64_t)filtered * 255 < raw || filtered == 0) {
        pfx_fail_field_(reader, chunk, chunk->filtered_length == 0 ? 7 : 40, "filtered_len");
    } else if (chunk->filter == 1 && (chunk->width == 0 || raw % chunk->width != 0)) {
        pfx_fail_field_(reader, chunk, 9, "width: raw_len is not a multiple");
    }
}

/* Checks the fields of a chunk header that do not depend on its section. */
static void pfx_check_chunk_(pfx_reader *reader, const pfx_chunk_ *chunk)
{
    if (pfx_little_(chunk->head + 28) != reader->sequence) {
        pfx_fail_(reader, PFX_ERROR_INVALID, chunk->offset + 28, "expected chunk number %lu, found %lu", (unsigned long)reader->sequence,
            (unsigned long)pfx_little_(chunk->head + 28));
    } else if (chunk->head[10] != reader->class_bytes / 4 || chunk->head[11] != (reader->big ? 2 : 1)) {
        pfx_fail_field_(reader, chunk, 10, "class or byte order: it differs from the header");
    } else if (chunk->kind > 127) {
        return;
    } else if (chunk->kind > 3) {
        pfx_fail_(reader, PFX_ERROR_INVALID, chunk->offset + 5, "unknown kind of chunk: %u", (unsigned)chunk->kind);
    } else if (chunk->codec > 3) {
        pfx_fail_(reader, PFX_ERROR_CODEC, chunk->offset + 6, "unknown codec: %u", (unsigned)chunk->codec);
    } else if (chunk->filter == 4) {
        pfx_fail_(reader, PFX_ERROR_INVALID, chunk->offset + 7, "the chunk has filter 4 (columns), which this reader lacks");
    } else if (chunk->filter > 3) {
        pfx_fail_(reader, PFX_ERROR_INVALID, chunk->offset + 7, "unknown filter: %u", (unsigned)chunk->filter);
    } else if (chunk->flags > 7) {
        pfx_fail_(reader, PFX_ERROR_INVALID, chunk->offset + 8, "unknown flags: %u", (unsigned)chunk->flags);
    } else if (chunk->kind != 0 && chunk->section != 0) {
        pfx_fail_field_(reader, chunk, 4, "section");
    } else if (chunk->kind != 0 && chunk->group != 0) {
        pfx_fail_field_(reader, chunk, 24, "group");
    } else {
        pfx_check_lengths_(reader, chunk);
    }
}

/* Adds a chunk to the expected index. */
static void pfx_index_chunk_(pfx_reader *reader, const pfx_chunk_ *chunk)
{
    uint8_t entry[32];
    size_t i;
    for (i = 0; i < 8; i++) {
        entry[i] = (uint8_t)(chunk->offset >> 8 * i);
    }
    memcpy(entry + 8, chunk->head + 32, 8);
    memcpy(entry + 16, chunk->head + 4, 3);
    entry[19] = chunk->flags;
    memcpy(entry + 20, chunk->head + 12, 12);
    reader->index_crc = pfx_crc_(reader->index_crc, entry, sizeof entry);
}

/* Checks the index, and the footer after it. */
static void pfx_check_index_(pfx_reader *reader, const pfx_chunk_ *index, uint32_t crc)
{
    uint8_t footer[17];
    uint64_t at = reader->at;
    size_t count;
    if (index->stored_length != (uint64_t)32 * reader->sequence || crc != reader->index_crc) {
        pfx_fail_(reader, PFX_ERROR_INVALID, index->offset + 48, "the index differs from the chunks");
        return;
    }
    count = pfx_read_some_(reader, footer, sizeof footer);
    if (count > 0
        && (count < 16 || pfx_decode_number_(footer, 8, false) != index->offset || pfx_crc_(0, footer, 8) != pfx_little_(footer + 8)
            || memcmp(footer + 12, "MTFE", 4) != 0)) {
        pfx_fail_(reader, PFX_ERROR_INVALID, at, "the footer is invalid");
    } else if (count > 16) {
        pfx_fail_(reader, PFX_ERROR_INVALID, at + 16, "expected the end of the file after the footer");
    }
    reader->closed = count > 0;
}

/* Checks whether a section strides through a stream section according to the DTD. */
static bool pfx_strides_(size_t section, uint8_t stream)
{
    const pfx_section_info_ *info = &pfx_sections_[section];
    size_t i;
    for (i = 0; i < info->leaf_count; i++) {
        if (info->leaves[i].interpretation == PFX_SECTION_STRIDE_ && info->leaves[i].a == stream) {
            return true;
        }
    }
    return false;
}

/* Starts a group. */
static void pfx_begin_group_(pfx_reader *reader)
{
    size_t i;
    for (i = 0; i < PFX_SECTION_COUNT_; i++) {
        pfx_section_state_ *section = &reader->sections[i];
        section->seen = false;
        section->element_count = 0;
        if (section->cursors != NULL) {
            memset(section->cursors, 0, PFX_SECTION_COUNT_ * sizeof *section->cursors);
        }
    }
}

/* Checks the order and the group of a chunk, and updates the state of its section. */
static void pfx_place_chunk_(pfx_reader *reader, const pfx_chunk_ *chunk, size_t index)
{
    const pfx_section_info_ *info = &pfx_sections_[index];
    pfx_section_state_ *section = &reader->sections[index];
    bool reset = (chunk->flags & 1) != 0;
    bool first = (chunk->flags & 2) != 0;
    bool shared = (chunk->flags & 4) != 0;
    size_t i;
    if (section->length != chunk->base) {
        pfx_fail_field_(reader, chunk, 32, "base");
    } else if (shared ? chunk->flags != 5 || !info->stream || section->local : section->shared) {
        pfx_fail_field_(reader, chunk, 8, "flag: only all chunks of a stream section can be a shared table");
    } else if (shared && chunk->group != 0) {
        pfx_fail_field_(reader, chunk, 24, "group: a shared table has group 0");
    } else if (!shared && reader->group < 0 && !first) {
        pfx_fail_field_(reader, chunk, 8, "flag: expected the start of a group");
    } else if (!shared && (int64_t)chunk->group != reader->group + (first ? 1 : 0)) {
        pfx_fail_field_(reader, chunk, 24, "group");
    }
    if (first) {
        pfx_begin_group_(reader);
    }
    if (!shared) {
        reader->group = (int64_t)chunk->group;
        if (!section->seen && !reset) {
            pfx_fail_field_(reader, chunk, 8, "flag: expected a reset in the first chunk of a section in a group");
        }
        for (i = 0; info->stream && !section->seen && i < PFX_SECTION_COUNT_; i++) {
            if (reader->sections[i].seen && pfx_strides_(i, info->number)) {
                pfx_fail_(reader, PFX_ERROR_INVALID, chunk->offset, "a stream section must precede the sections that stride through it");
            }
        }
    }
    section->length += chunk->raw_length;
    section->shared = shared;
    section->local = !shared;
    section->seen = true;
    if (!pfx_failed_(reader) && (reset || section->leaves == NULL)) {
        pfx_reset_(reader, index);
    }
}

/* Starts to read a chunk of records. Returns true if `record` is the start of a group. */
static bool pfx_begin_chunk_(pfx_reader *reader, const pfx_chunk_ *chunk, pfx_record *record)
{
    size_t index = pfx_section_index_(chunk->section);
    pfx_content_ *content = &reader->content;
    const pfx_section_info_ *info = &pfx_sections_[index];
    const uint8_t *bytes;
    size_t filtered = chunk->filter < 2 ? chunk->raw_length : chunk->filtered_length;
    bool wide;
    if (index == PFX_SECTION_COUNT_) {
        pfx_fail_(reader, PFX_ERROR_UNKNOWN_SECTION, chunk->offset + 4, "the DTD has no section %u", (unsigned)chunk->section);
        return false;
    }
    pfx_place_chunk_(reader, chunk, index);
    wide = info->number_stream && pfx_stores_(info->leaves[0].interpretation);
    if (wide ? chunk->width < 1 || chunk->width > 8 : chunk->width != 0 && chunk->filter != 1) {
        pfx_fail_field_(reader, chunk, 9, "width");
    }
    if (pfx_failed_(reader)) {
        return false;
    }
    bytes = pfx_decompress_(reader, chunk->codec, chunk->payload, chunk->stored_length, filtered, chunk->offset);
    bytes = bytes == NULL ? NULL : pfx_unfilter_(reader, chunk->filter, chunk->width, bytes, filtered, chunk->raw_length, chunk->offset);
    if (bytes == NULL) {
        return false;
    }
    if (wide) {
        reader->sections[index].leaves[0].width = chunk->width;
    }
    memset(content, 0, sizeof *content);
    content->bytes = bytes;
    content->length = chunk->raw_length;
    content->packed = chunk->codec != 0 || chunk->filter != 0;
    content->origin = chunk->offset + (content->packed ? 0 : 48);
    content->base = chunk->base;
    content->counted = true;
    content->count = chunk->records;
    content->count_offset = chunk->offset + 20;
    content->shared = (chunk->flags & 4) != 0;
    content->section = index;
    record->kind = PFX_RECORD_GROUP;
    record->section = 0;
    record->as.number = chunk->group;
    return (chunk->flags & 2) != 0;
}

/* Advances to the next chunk. Returns true if `record` is the start of a group. */
static bool pfx_next_chunk_(pfx_reader *reader, pfx_record *record)
{
    pfx_chunk_ chunk;
    uint32_t payload_crc = 0;
    bool group = false;
    if (!pfx_read_chunk_(reader, &chunk, &payload_crc)) {
        reader->state = PFX_END_;
        return false;
    }
    pfx_check_chunk_(reader, &chunk);
    if (pfx_failed_(reader)) {
        return false;
    }
    if (chunk.kind == 2) {
        pfx_check_index_(reader, &chunk, payload_crc);
        reader->state = PFX_END_;
        return false;
    }
    if (chunk.kind == 0) {
        group = pfx_begin_chunk_(reader, &chunk, record);
    } else if (chunk.kind == 1 && reader->sequence == 0) {
        const uint8_t *text = NULL;
        if (chunk.raw_length > 256u << 10) {
            pfx_fail_(reader, PFX_ERROR_LIMIT, chunk.offset + 16, "expected a DTD of at most 256 KiB");
        } else {
            text = pfx_decompress_(reader, chunk.codec, chunk.payload, chunk.stored_length, chunk.raw_length, chunk.offset);
        }
        if (text != NULL) {
            pfx_check_dtd_(reader, text, chunk.raw_length, chunk.offset + 48);
        }
    }
    pfx_index_chunk_(reader, &chunk);
    reader->sequence++;
    return group;
}

