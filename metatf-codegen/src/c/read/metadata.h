/* ---- State of sections, and metadata records: docs/specification.md, section 4.1 ---- */

/* Sets the state that the DTD defines. Returns false if memory is exhausted. */
static bool pfx_reset_(pfx_reader *reader, size_t index)
{
    const pfx_section_info_ *info = &pfx_sections_[index];
    pfx_section_state_ *section = &reader->sections[index];
    size_t i;
    if (section->leaves == NULL) {
        section->leaves = (pfx_leaf_ *)calloc(info->leaf_count + 1, sizeof *section->leaves);
        section->cells = (uint64_t *)calloc(info->cell_count + 1, sizeof *section->cells);
        section->cursors = (uint64_t *)calloc(PFX_SECTION_COUNT_, sizeof *section->cursors);
        if (section->leaves == NULL || section->cells == NULL || section->cursors == NULL) {
            pfx_fail_(reader, PFX_ERROR_LIMIT, reader->at, "not enough memory for the state of section %u", (unsigned)info->number);
            return false;
        }
    }
    for (i = 0; i < info->cell_count; i++) {
        section->cells[i] = info->cells[i];
    }
    for (i = 0; i < info->leaf_count; i++) {
        const pfx_leaf_info_ *leaf = &info->leaves[i];
        section->leaves[i].info = leaf;
        section->leaves[i].width = leaf->width;
        section->leaves[i].last_width = leaf->width;
        section->leaves[i].interpretation = leaf->interpretation;
        section->leaves[i].a = leaf->a;
        section->leaves[i].b = leaf->b;
        section->leaves[i].last = (leaf->flags & PFX_TAG_) != 0 ? leaf->value : 0;
    }
    return true;
}

/* Returns the record with a tag, or NULL. */
static const pfx_record_info_ *pfx_find_(size_t section, uint32_t tag)
{
    const pfx_section_info_ *info = &pfx_sections_[section];
    const pfx_record_info_ *other = NULL;
    size_t i;
    for (i = 0; i < info->record_count; i++) {
        if (info->records[i].catch_all) {
            other = &info->records[i];
        } else if (info->records[i].tag == tag) {
            return &info->records[i];
        }
    }
    return tag == PFX_SECTION_TAG_ || tag == PFX_METADATA_TAG_ ? NULL : other;
}

/* Changes a field. */
static void pfx_change_(pfx_reader *reader, pfx_leaf_ *leaf, uint8_t property, uint64_t a, uint64_t b)
{
    if (property == PFX_WIDTH_) {
        if (pfx_stores_(leaf->interpretation)) {
            leaf->width = (uint8_t)a;
        }
        if (a != 0) {
            leaf->last_width = (uint8_t)a;
        }
        return;
    }
    leaf->interpretation = property;
    leaf->a = a;
    leaf->b = b;
    if (property == PFX_DELTA_ || property == PFX_STRIDE_) {
        reader->sections[reader->content.section].cells[leaf->info->cell] = a;
    }
    if (pfx_stores_(property)) {
        leaf->width = leaf->last_width;
    }
}

/* Checks the values of a change. `at` is the start of the values. */
static bool pfx_check_values_(pfx_reader *reader, uint8_t property, uint64_t a, uint64_t b, size_t at)
{
    if (property == PFX_WIDTH_ && a > 8) {
        pfx_fail_at_(reader, PFX_ERROR_METADATA, NULL, at, "expected a width of 0 to 8, found %llu", (unsigned long long)a);
    } else if (property == PFX_SECTION_OFFSET_ || property == PFX_SECTION_STRIDE_) {
        size_t target = a > 255 ? PFX_SECTION_COUNT_ : pfx_section_index_(a);
        const pfx_section_info_ *info = target < PFX_SECTION_COUNT_ ? &pfx_sections_[target] : NULL;
        bool stride = property == PFX_SECTION_STRIDE_;
        if (info == NULL || !info->stream || (stride && !info->number_stream)) {
            pfx_fail_at_(reader, PFX_ERROR_METADATA, NULL, at, "expected the number of a stream section%s, found %llu",
                stride ? " of single numbers" : "", (unsigned long long)a);
        } else if (stride && (b == 0 || b >> 63 != 0)) {
            pfx_fail_at_(reader, PFX_ERROR_METADATA, NULL, at, "expected a stride of at least 1");
        }
    }
    return !pfx_failed_(reader);
}

/* Applies a change to one field, or to all fields of its name. Either all or none of them change. */
static void pfx_apply_(pfx_reader *reader, const pfx_record_info_ *of, pfx_metadata *change, size_t start)
{
    const pfx_section_info_ *info = &pfx_sections_[reader->content.section];
    pfx_leaf_ *leaves = reader->sections[reader->content.section].leaves;
    size_t first = (size_t)of->first + change->field;
    uint8_t property = change->property & 7;
    int pass;
    size_t i;
    for (pass = 0; pass < 2 && !pfx_failed_(reader); pass++) {
        for (i = 0; i < info->leaf_count; i++) {
            const pfx_leaf_info_ *leaf = leaves[i].info;
            bool same = (change->property & 8) != 0 && (leaf->flags & PFX_SETTABLE_) != 0
                && strcmp(leaf->name, leaves[first].info->name) == 0;
            if (i != first && !same) {
                continue;
            }
            if (pass == 1) {
                pfx_change_(reader, &leaves[i], property, change->value, change->value_2);
            } else if (pfx_stores_(property) && leaves[i].last_width == 0) {
                pfx_fail_at_(reader, PFX_ERROR_METADATA, leaf, start, "the field never had a width: set the width first");
            }
        }
    }
}

/* Reads and applies a metadata record, after its tag. */
static void pfx_read_metadata_(pfx_reader *reader, pfx_metadata *change)
{
    size_t start = reader->record_start;
    const pfx_record_info_ *of;
    size_t width;
    size_t at;
    uint8_t property;
    change->record = (uint32_t)pfx_raw_(reader, NULL, PFX_TAG_WIDTH_);
    change->field = (uint8_t)pfx_raw_(reader, NULL, 1);
    change->property = (uint8_t)pfx_raw_(reader, NULL, 1);
    property = change->property & 7;
    width = change->property >> 4;
    width = width == 0 ? reader->class_bytes : width;
    if (width > 8) {
        pfx_fail_at_(reader, PFX_ERROR_METADATA, NULL, reader->content.at - 1, "expected values of at most 8 bytes");
    }
    if (pfx_failed_(reader)) {
        return;
    }
    at = reader->content.at;
    change->values = property == PFX_NONE_ ? 0 : property >= PFX_STRIDE_ ? 2 : 1;
    if (change->values > 0) {
        change->value = pfx_raw_(reader, NULL, width);
    }
    if (change->values > 1) {
        change->value_2 = pfx_sign_extend_(pfx_raw_(reader, NULL, width), width);
    }
    if (pfx_failed_(reader) || !pfx_check_values_(reader, property, change->value, change->value_2, at)) {
        return;
    }
    of = pfx_find_(reader->content.section, change->record);
    if (of == NULL || change->field >= of->count
        || (pfx_sections_[reader->content.section].leaves[of->first + change->field].flags & PFX_SETTABLE_) == 0) {
        pfx_fail_at_(reader, PFX_ERROR_METADATA, NULL, start + PFX_TAG_WIDTH_, "expected a field that can change, found field %u of tag %lu",
            (unsigned)change->field, (unsigned long)change->record);
        return;
    }
    pfx_apply_(reader, of, change, start);
}

