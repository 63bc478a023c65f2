/* ---- Records ---- */

/* Reads the text of a comment. */
static void pfx_decode_record_comment_(pfx_reader *reader, pfx_leaf_ *leaf, pfx_record *record)
{
    uint64_t length = pfx_number_(reader, &leaf[1]);
    record->as.comment = pfx_array_(reader, &leaf[2], length);
}

/* Keeps an element for the records that stride through its section. */
static void pfx_keep_element_(pfx_reader *reader)
{
    pfx_section_state_ *section = &reader->sections[reader->content.section];
    if (section->element_count == section->element_room) {
        size_t room = 2 * section->element_room + 64;
        uint64_t *elements = (uint64_t *)realloc(section->elements, room * sizeof *elements);
        if (elements == NULL) {
            pfx_fail_at_(reader, PFX_ERROR_LIMIT, NULL, reader->content.at, "not enough memory for the elements of the section");
            return;
        }
        section->elements = elements;
        section->element_room = room;
    }
    section->elements[section->element_count++] = section->leaves[0].last;
}

/* Decodes the fields of the current record. */
static void pfx_decode_(pfx_reader *reader, const pfx_record_info_ *info, pfx_record *record)
{
    pfx_leaf_ *leaves = reader->sections[reader->content.section].leaves;
    reader->info = info;
    record->kind = info->kind;
    info->decode(reader, leaves + info->first, record);
    if (!pfx_failed_(reader) && reader->items > reader->content.at - reader->record_start + (uint64_t)65536) {
        pfx_fail_at_(reader, PFX_ERROR_TOO_MANY_ITEMS, NULL, reader->record_start, "the record has too many items for its bytes");
    }
}

/* Reads an element of a stream section. */
static bool pfx_read_element_(pfx_reader *reader, pfx_record *record)
{
    const pfx_section_info_ *section = &pfx_sections_[reader->content.section];
    pfx_decode_(reader, &section->records[0], record);
    if (pfx_failed_(reader)) {
        return false;
    }
    if (reader->content.at == reader->record_start) {
        pfx_fail_at_(reader, PFX_ERROR_INVALID, NULL, reader->content.at, "the element contains no bytes");
        return false;
    }
    if (section->number_stream && !reader->content.shared) {
        pfx_keep_element_(reader);
    }
    reader->content.found++;
    return reader->all || reader->state == PFX_ARRAY_;
}

/* Continues in another section, in a file of version 0 without a section table. */
static bool pfx_read_section_(pfx_reader *reader, pfx_record *record)
{
    uint64_t number = pfx_raw_(reader, NULL, 1);
    size_t index = pfx_section_index_(number);
    if (reader->state != PFX_PIPE_ || number == 0) {
        pfx_fail_at_(reader, PFX_ERROR_INVALID, NULL, reader->record_start, "a section record is not allowed here");
    } else if (index == PFX_SECTION_COUNT_ || pfx_sections_[index].stream) {
        pfx_fail_at_(reader, PFX_ERROR_UNKNOWN_SECTION, NULL, reader->record_start, "section %u is not a section of tagged records", (unsigned)number);
    }
    if (pfx_failed_(reader)) {
        return false;
    }
    record->kind = PFX_RECORD_SECTION;
    record->as.number = number;
    reader->content.section = index;
    if (reader->sections[index].leaves == NULL) {
        pfx_reset_(reader, index);
    }
    return reader->all;
}

/* Reads a record of a section of tagged records. */
static bool pfx_read_tagged_(pfx_reader *reader, pfx_record *record)
{
    size_t start = reader->content.at;
    uint32_t tag = (uint32_t)pfx_raw_(reader, NULL, PFX_TAG_WIDTH_);
    const pfx_record_info_ *info = pfx_find_(reader->content.section, tag);
    bool array = reader->state == PFX_ARRAY_;
    if (pfx_failed_(reader)) {
        return false;
    }
    if (tag == PFX_SECTION_TAG_ && !array) {
        return pfx_read_section_(reader, record);
    }
    if (tag == PFX_METADATA_TAG_ && !array) {
        record->kind = PFX_RECORD_METADATA;
        pfx_read_metadata_(reader, &record->as.metadata);
        return reader->all;
    }
    if (info == NULL || (array && info->kind == PFX_RECORD_COMMENT)) {
        pfx_fail_at_(reader, PFX_ERROR_UNKNOWN_TAG, NULL, start, "no record of section %u has the tag %lu",
            (unsigned)pfx_sections_[reader->content.section].number, (unsigned long)tag);
        return false;
    }
    if (info->catch_all) {
        reader->content.at = start;
    }
    pfx_decode_(reader, info, record);
    if (info->kind == PFX_RECORD_COMMENT) {
        return reader->all;
    }
    reader->content.found++;
    return true;
}

/* Reads a record, element or metadata record of the content. Returns true if it is to be returned by pfx_next. */
static bool pfx_read_record_(pfx_reader *reader, pfx_record *record)
{
    const pfx_content_ *content = &reader->content;
    reader->record_start = content->at;
    reader->info = NULL;
    reader->items = 0;
    reader->overflow = false;
    record->section = pfx_sections_[content->section].number;
    record->shared = content->shared;
    record->offset = content->base + content->at;
    if (reader->lists != NULL) {
        pfx_clear_lists_(reader);
    }
    if (pfx_sections_[content->section].stream ? pfx_read_element_(reader, record) : pfx_read_tagged_(reader, record)) {
        return !pfx_failed_(reader);
    }
    return false;
}

/* Advances to the next extent or chunk. Returns true if `record` is the start of a section or a group. */
static bool pfx_next_content_(pfx_reader *reader, pfx_record *record)
{
    const pfx_content_ *content = &reader->content;
    if (content->counted && content->found != content->count) {
        pfx_fail_(reader, PFX_ERROR_RECORD_COUNT, content->count_offset, "expected %lu records in the chunk, found %lu", (unsigned long)content->count,
            (unsigned long)content->found);
        return false;
    }
    reader->content.counted = false;
    switch (reader->state) {
    case PFX_CHUNKS_:
        return pfx_next_chunk_(reader, record);
    case PFX_TABLE_:
    case PFX_STREAMS_:
    case PFX_EXTENTS_:
        return pfx_next_extent_(reader, record);
    case PFX_PIPE_:
        if (reader->at <= reader->start) {
            reader->at = reader->start + 1;
            pfx_begin_extent_(reader, 0, reader->start, reader->size - reader->start);
            return false;
        }
        break;
    default:
        break;
    }
    reader->state = PFX_END_;
    return false;
}

int pfx_next(pfx_reader *reader, pfx_record *record)
{
    while (!pfx_failed_(reader)) {
        memset(record, 0, sizeof *record);
        if (reader->content.at < reader->content.length) {
            if (pfx_read_record_(reader, record)) {
                return 1;
            }
        } else if (reader->state == PFX_END_) {
            return 0;
        } else if (pfx_next_content_(reader, record) && reader->all && !pfx_failed_(reader)) {
            return 1;
        }
    }
    return -1;
}

static int pfx_open_(pfx_reader *reader)
{
    reader->group = -1;
    reader->sections = (pfx_section_state_ *)calloc(PFX_SECTION_COUNT_, sizeof *reader->sections);
    if (reader->sections == NULL) {
        pfx_fail_(reader, PFX_ERROR_LIMIT, 0, "not enough memory for the sections");
        return -1;
    }
    return 0;
}

int pfx_open_memory(pfx_reader *reader, const void *bytes, size_t size)
{
    memset(reader, 0, sizeof *reader);
    reader->memory = size == 0 ? (const uint8_t *)"" : (const uint8_t *)bytes;
    reader->size = size;
    if (pfx_open_(reader) == 0) {
        pfx_read_header_(reader);
    }
    return pfx_failed_(reader) ? -1 : 0;
}

int pfx_open_file(pfx_reader *reader, FILE *file)
{
    memset(reader, 0, sizeof *reader);
    reader->file = file;
    if (pfx_open_(reader) == 0) {
        pfx_read_header_(reader);
    }
    return pfx_failed_(reader) ? -1 : 0;
}

int pfx_open_array(pfx_reader *reader, const pfx_reader *trace, uint8_t section, pfx_bytes bytes)
{
    size_t index = pfx_section_index_(section);
    memset(reader, 0, sizeof *reader);
    reader->all = trace->all;
    reader->class_bytes = trace->class_bytes;
    reader->big = trace->big;
    reader->state = PFX_ARRAY_;
    if (pfx_open_(reader) != 0) {
        return -1;
    }
    if (index == PFX_SECTION_COUNT_) {
        pfx_fail_(reader, PFX_ERROR_UNKNOWN_SECTION, 0, "the DTD has no section %u", (unsigned)section);
    } else if (pfx_reset_(reader, index)) {
        reader->content.bytes = bytes.data;
        reader->content.length = bytes.length;
        reader->content.section = index;
    }
    return pfx_failed_(reader) ? -1 : 0;
}

void pfx_close(pfx_reader *reader)
{
    size_t i;
    pfx_clear_lists_(reader);
    free(reader->lists);
    for (i = 0; reader->sections != NULL && i < PFX_SECTION_COUNT_; i++) {
        free(reader->sections[i].leaves);
        free(reader->sections[i].cells);
        free(reader->sections[i].cursors);
        free(reader->sections[i].elements);
    }
    free(reader->sections);
    free(reader->stored.bytes);
    free(reader->plain.bytes);
    free(reader->unfiltered.bytes);
    memset(reader, 0, sizeof *reader);
}

int pfx_describe_error(const pfx_reader *reader, char *text, size_t size)
{
    const pfx_error *error = &reader->error;
    char content[48] = "";
    char place[160] = "";
    if (error->in_content) {
        snprintf(content, sizeof content, " (content offset %llu)", (unsigned long long)error->content_offset);
    }
    if (error->in_record) {
        snprintf(place, sizeof place, " in section %u, record %s at offset %llu%s%s", (unsigned)error->section,
            error->record == NULL ? "?" : error->record, (unsigned long long)error->record_offset, error->field == NULL ? "" : ", field ",
            error->field == NULL ? "" : error->field);
    }
    return snprintf(text, size, "offset %llu%s%s: %s", (unsigned long long)error->offset, content, place, error->message);
}

