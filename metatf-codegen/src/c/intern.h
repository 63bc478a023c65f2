/* Entries have a number, the length of their key (2 bytes), a table and the key. Table 0 contains the strings with an ID. */
#define PFX_ENTRY_BYTES 7

/* Returns the number of a known entry; otherwise returns PFX_NO_ELEMENT and the slot that is free for it. Requires no lock: a slot is set
   after its entry is complete, and neither changes afterwards. */
static uint32_t pfx_find_entry(const pfx_trace *trace, uint8_t table, const uint8_t *key, size_t length, size_t *free)
{
    const size_t slots = PFX_STRING_BYTES / 8;
    uint32_t hash = 0x811c9dc5u ^ table;
    size_t i;
    for (i = 0; i < length; i++) {
        hash = (hash ^ key[i]) * 0x01000193u;
    }
    for (i = 0; i < slots; i++) {
        const uint8_t *entry;
        uint32_t place;
        size_t same = 0;
        *free = (hash + i) % slots;
        place = PFX_OBTAIN(&trace->string_slots[*free]);
        if (place == 0) {
            return PFX_NO_ELEMENT;
        }
        entry = trace->strings + place - 1;
        if (((size_t)entry[4] | (size_t)entry[5] << 8) != length || entry[6] != table) {
            continue;
        }
        while (same < length && entry[PFX_ENTRY_BYTES + same] == key[same]) {
            same++;
        }
        if (same == length) {
            return (uint32_t)entry[0] | (uint32_t)entry[1] << 8 | (uint32_t)entry[2] << 16 | (uint32_t)entry[3] << 24;
        }
    }
    *free = slots;
    return PFX_NO_ELEMENT;
}

/* Writes a new entry and stores it. The lock must be held. */
static uint32_t pfx_add_entry(pfx_trace *trace, uint8_t table, const uint8_t *key, size_t length, size_t slot)
{
    uint32_t number = table == 0 ? trace->strings_count + 1 : (uint32_t)trace->bases[table == 0 ? 0 : table - 1];
    size_t need = length + PFX_ENTRY_BYTES;
    uint8_t *at;
    if (slot == PFX_STRING_BYTES / 8 || need > PFX_STRING_BYTES - trace->strings_length ||
        pfx_write_entry(trace, table, number, key, length) != 0) {
        return PFX_NO_ELEMENT;
    }
    at = pfx_put32(trace->strings + trace->strings_length, number);
    at = pfx_put16(at, (uint16_t)length);
    at = pfx_put8(at, table);
    pfx_put_bytes(at, key, length);
    PFX_PUBLISH(&trace->string_slots[slot], trace->strings_length + 1);
    trace->strings_length += (uint32_t)need;
    trace->strings_count += table == 0;
    return number;
}

/* Returns the number of an entry, which is written if it is new. */
static uint32_t pfx_intern_entry(pfx_trace *trace, uint8_t table, const uint8_t *key, size_t length)
{
    size_t slot;
    uint32_t number = pfx_find_entry(trace, table, key, length, &slot);
    if (number != PFX_NO_ELEMENT) {
        return number;
    }
    if (pfx_lock(trace)) {
        /* Another thread may have added it. */
        number = pfx_find_entry(trace, table, key, length, &slot);
        number = number != PFX_NO_ELEMENT ? number : pfx_add_entry(trace, table, key, length, slot);
        pfx_unlock(trace);
    }
    if (number == PFX_NO_ELEMENT) {
        PFX_COUNT(&trace->strings_refused);
    }
    return number;
}

