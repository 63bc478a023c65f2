/* Returns the ID of a known string; otherwise returns 0 and the slot that is free for it. Requires no lock: a slot is set after its entry
   is complete, and neither changes afterwards. */
static uint32_t pfx_find_string(const pfx_trace *trace, pfx_bytes string, size_t *free)
{
    const size_t slots = PFX_STRING_BYTES / 8;
    const uint8_t *text = (const uint8_t *)string.bytes;
    uint32_t hash = 0x811c9dc5u;
    size_t i;
    for (i = 0; i < string.length; i++) {
        hash = (hash ^ text[i]) * 0x01000193u;
    }
    for (i = 0; i < slots; i++) {
        const uint8_t *entry;
        uint32_t place;
        size_t same = 0;
        *free = (hash + i) % slots;
        place = PFX_OBTAIN(&trace->string_slots[*free]);
        if (place == 0) {
            return 0;
        }
        entry = trace->strings + place - 1;
        while (same < string.length && entry[4] == string.length && entry[6 + same] == text[same]) {
            same++;
        }
        if (entry[4] == same && same == string.length && entry[5] == string.mark) {
            return (uint32_t)entry[0] | (uint32_t)entry[1] << 8 | (uint32_t)entry[2] << 16 | (uint32_t)entry[3] << 24;
        }
    }
    *free = slots;
    return 0;
}

/* Writes a new string and stores it. The lock must be held. */
static uint32_t pfx_add_string(pfx_trace *trace, pfx_bytes string, size_t slot)
{
    const uint8_t section = PFX_STRING_SECTION;
    uint8_t chunk[PFX_STRING_CHUNK];
    pfx_emitter emitter;
    uint8_t *at;
    uint32_t number = trace->strings_count + 1;
    size_t need = (size_t)string.length + 6;
    if (slot == PFX_STRING_BYTES / 8 || need > PFX_STRING_BYTES - trace->strings_length) {
        return 0;
    }
    memset(&emitter, 0, sizeof emitter);
    emitter.trace = trace;
    at = pfx_put_bytes(chunk + 48, pfx_sections[section - 1].metadata, pfx_sections[section - 1].length);
    at = pfx_put_string(&emitter, at, number, string);
    if (pfx_write_chunk(trace, chunk, section, (size_t)(at - chunk) - 48, 1) != 0) {
        return 0;
    }
    at = pfx_put32(trace->strings + trace->strings_length, number);
    at = pfx_put8(at, (uint8_t)string.length);
    at = pfx_put8(at, (uint8_t)string.mark);
    pfx_put_bytes(at, string.bytes, string.length);
    PFX_PUBLISH(&trace->string_slots[slot], trace->strings_length + 1);
    trace->strings_length += (uint32_t)need;
    trace->strings_count = number;
    return number;
}

uint32_t pfx_intern(pfx_trace *trace, const char *text)
{
    pfx_bytes string = pfx_text(text);
    size_t slot;
    uint32_t number = pfx_find_string(trace, string, &slot);
    if (number != 0) {
        return number;
    }
    if (pfx_lock(trace)) {
        /* Another thread may have added it. */
        number = pfx_find_string(trace, string, &slot);
        number = number != 0 ? number : pfx_add_string(trace, string, slot);
        pfx_unlock(trace);
    }
    if (number == 0) {
        PFX_COUNT(&trace->strings_refused);
    }
    return number;
}

