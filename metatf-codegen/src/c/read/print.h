/* ---- JSON lines: docs/specification.md, section 8 ---- */

#ifdef PFX_PRINT
typedef struct pfx_printer_ {
    FILE *file;
    const pfx_reader *reader;
    bool first; /* whether nothing precedes in the list or object */
} pfx_printer_;

/* Prints the comma before an item. */
static void pfx_separate_(pfx_printer_ *out)
{
    if (!out->first) {
        fputc(',', out->file);
    }
    out->first = false;
}

static void pfx_begin_(pfx_printer_ *out, char bracket)
{
    fputc(bracket, out->file);
    out->first = true;
}

static void pfx_end_(pfx_printer_ *out, char bracket)
{
    fputc(bracket, out->file);
    out->first = false;
}

static void pfx_key_(pfx_printer_ *out, const char *key)
{
    pfx_separate_(out);
    fprintf(out->file, "\"%s\":", key);
}

static inline void pfx_print_unsigned_(pfx_printer_ *out, uint64_t value)
{
    fprintf(out->file, "%llu", (unsigned long long)value);
}

static inline void pfx_print_signed_(pfx_printer_ *out, int64_t value)
{
    fprintf(out->file, "%lld", (long long)value);
}

/* Prints the fewest digits that restore the value. */
static inline void pfx_print_double_(pfx_printer_ *out, double value)
{
    char text[40];
    uint64_t bits;
    int digits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits >> 52 & 0x7ff) == 0x7ff) {
        fprintf(out->file, "{\"hex\":\"%016llx\"}", (unsigned long long)bits);
        return;
    }
    for (digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    snprintf(text, sizeof text, "%.*g", digits, value);
    fprintf(out->file, "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

static inline void pfx_print_float_(pfx_printer_ *out, float value)
{
    char text[40];
    uint32_t bits;
    int digits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits >> 23 & 0xff) == 0xff) {
        fprintf(out->file, "{\"hex\":\"%08lx\"}", (unsigned long)bits);
        return;
    }
    for (digits = 1; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) {
            break;
        }
    }
    snprintf(text, sizeof text, "%.*g", digits, (double)value);
    fprintf(out->file, "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

/* Prints a constant, which only `all` includes. */
static inline void pfx_print_constant_(pfx_printer_ *out, const char *key, uint64_t value)
{
    if (out->reader->all) {
        pfx_key_(out, key);
        pfx_print_unsigned_(out, value);
    }
}

static inline void pfx_print_hex_(pfx_printer_ *out, pfx_bytes bytes)
{
    size_t i;
    fputc('"', out->file);
    for (i = 0; i < bytes.length; i++) {
        fprintf(out->file, "%02x", (unsigned)bytes.data[i]);
    }
    fputc('"', out->file);
}

/* Returns the length of the UTF-8 character at the start of the bytes, or 0. */
static size_t pfx_character_(const uint8_t *bytes, size_t length)
{
    uint8_t first = bytes[0];
    size_t count = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
    size_t i;
    if (count == 0 || count > length) {
        return 0;
    }
    for (i = 1; i < count; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) || (first == 0xf0 && bytes[1] < 0x90)
        || (first == 0xf4 && bytes[1] > 0x8f)) {
        return 0;
    }
    return count;
}

/* Checks whether bytes are UTF-8. */
static bool pfx_is_text_(pfx_bytes bytes)
{
    size_t at = 0;
    while (at < bytes.length) {
        size_t count = pfx_character_(bytes.data + at, bytes.length - at);
        if (count == 0) {
            return false;
        }
        at += count;
    }
    return true;
}

static void pfx_print_string_(pfx_printer_ *out, pfx_bytes text)
{
    size_t i;
    fputc('"', out->file);
    for (i = 0; i < text.length; i++) {
        uint8_t byte = text.data[i];
        if (byte < 32) {
            fprintf(out->file, "\\u%04x", (unsigned)byte);
        } else {
            fprintf(out->file, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
        }
    }
    fputc('"', out->file);
}

/* Prints bytes of format `utf8`. */
static void pfx_print_text_(pfx_printer_ *out, pfx_bytes text)
{
    if (pfx_is_text_(text)) {
        pfx_print_string_(out, text);
    } else {
        fputs("{\"hex\":", out->file);
        pfx_print_hex_(out, text);
        fputc('}', out->file);
    }
}

/* Prints bytes of format `cstring`. */
static inline void pfx_print_cstring_(pfx_printer_ *out, pfx_bytes bytes)
{
    pfx_bytes text = bytes;
    pfx_bytes tail = bytes;
    const void *zero = bytes.length == 0 ? NULL : memchr(bytes.data, 0, bytes.length);
    text.length = zero == NULL ? bytes.length : (size_t)((const uint8_t *)zero - bytes.data);
    tail.length = bytes.length - text.length;
    tail.data = tail.length == 0 ? NULL : bytes.data + text.length;
    if (!pfx_is_text_(text)) {
        pfx_print_text_(out, bytes.length == text.length ? text : bytes);
    } else if (tail.length == 1) {
        pfx_print_string_(out, text);
    } else {
        fputs("{\"text\":", out->file);
        pfx_print_string_(out, text);
        fputs(",\"tail\":", out->file);
        pfx_print_hex_(out, tail);
        fputc('}', out->file);
    }
}

static void pfx_print_fields_(pfx_printer_ *out, const pfx_record *record);

static const char *pfx_name_of_(const pfx_record *record)
{
    const pfx_section_info_ *section = &pfx_sections_[pfx_section_index_(record->section)];
    size_t i;
    for (i = 0; i < section->record_count; i++) {
        if (section->records[i].kind == record->kind) {
            return section->records[i].name;
        }
    }
    return record->kind == PFX_RECORD_METADATA ? "metadata" : "section";
}

/* Prints an array of records, or its bytes if the records are not complete. */
static inline void pfx_print_array_(pfx_printer_ *out, uint8_t section, pfx_bytes bytes)
{
    pfx_reader reader;
    pfx_record record;
    int found = pfx_open_array(&reader, out->reader, section, bytes);
    while (found == 0 && (found = pfx_next(&reader, &record)) > 0) {
        found = 0;
    }
    if (pfx_failed_(&reader)) {
        pfx_print_hex_(out, bytes);
        pfx_close(&reader);
        return;
    }
    pfx_close(&reader);
    pfx_begin_(out, '[');
    if (pfx_open_array(&reader, out->reader, section, bytes) == 0) {
        while (pfx_next(&reader, &record) > 0) {
            pfx_separate_(out);
            pfx_begin_(out, '{');
            pfx_key_(out, "@record");
            fprintf(out->file, "\"%s\"", pfx_name_of_(&record));
            pfx_print_fields_(out, &record);
            pfx_end_(out, '}');
        }
    }
    pfx_close(&reader);
    pfx_end_(out, ']');
}

static void pfx_print_metadata_(pfx_printer_ *out, const pfx_metadata *change)
{
    pfx_key_(out, "record");
    pfx_print_unsigned_(out, change->record);
    pfx_key_(out, "field");
    pfx_print_unsigned_(out, change->field);
    pfx_key_(out, "property");
    pfx_print_unsigned_(out, change->property);
    if (change->values > 0) {
        pfx_key_(out, "value");
        pfx_print_unsigned_(out, change->value);
    }
    if (change->values > 1) {
        pfx_key_(out, "value_2");
        pfx_print_unsigned_(out, change->value_2);
    }
}

@PRINT@
int pfx_print(FILE *file, const pfx_reader *reader, const pfx_record *record)
{
    pfx_printer_ out;
    const char *section = pfx_sections_[pfx_section_index_(record->section)].name;
    out.file = file;
    out.reader = reader;
    out.first = true;
    pfx_begin_(&out, '{');
    if (record->kind == PFX_RECORD_GROUP) {
        pfx_key_(&out, "@group");
        pfx_print_unsigned_(&out, record->as.number);
    } else {
        pfx_key_(&out, "@section");
        fprintf(file, section == NULL ? "null" : "\"%s\"", section == NULL ? "" : section);
        pfx_key_(&out, "@record");
        fprintf(file, "\"%s\"", pfx_name_of_(record));
        if (reader->all) {
            pfx_key_(&out, "@offset");
            pfx_print_unsigned_(&out, record->offset);
        }
        if (record->shared) {
            pfx_key_(&out, "@shared");
            fputs("true", file);
        }
        pfx_print_fields_(&out, record);
    }
    pfx_end_(&out, '}');
    return fputc('\n', file) == EOF || ferror(file) ? -1 : 0;
}
#endif

