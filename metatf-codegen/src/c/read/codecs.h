/* ---- Codecs, filters and checksums of chunks: docs/specification.md, section 5.2 ---- */

/* Entry `n` of table `k` is the CRC of byte `n` followed by `k` zero bytes. */
static const uint32_t pfx_crc_tables_[4][256] = {
@CRC@
};

/* Continues a CRC-32C, which is 0 at the start. */
static uint32_t pfx_crc_(uint32_t crc, const uint8_t *bytes, size_t length)
{
    crc = ~crc;
    for (; length >= 4; length -= 4, bytes += 4) {
        crc ^= (uint32_t)pfx_decode_number_(bytes, 4, false);
        crc = pfx_crc_tables_[3][crc & 255] ^ pfx_crc_tables_[2][crc >> 8 & 255] ^ pfx_crc_tables_[1][crc >> 16 & 255]
            ^ pfx_crc_tables_[0][crc >> 24];
    }
    for (; length > 0; length--, bytes++) {
        crc = pfx_crc_tables_[0][(crc ^ *bytes) & 255] ^ crc >> 8;
    }
    return ~crc;
}

/* Makes room in a buffer, and keeps its content. */
static bool pfx_reserve_(pfx_reader *reader, pfx_buffer_ *buffer, size_t room)
{
    uint8_t *bytes;
    if (room <= buffer->room) {
        return true;
    }
    bytes = (uint8_t *)realloc(buffer->bytes, room);
    if (bytes == NULL) {
        pfx_fail_(reader, PFX_ERROR_LIMIT, reader->at, "not enough memory for %llu bytes", (unsigned long long)room);
        return false;
    }
    buffer->bytes = bytes;
    buffer->room = room;
    return true;
}

/* Decompresses a payload into exactly `size` bytes. Returns NULL after an error. */
static const uint8_t *pfx_decompress_(pfx_reader *reader, uint8_t codec, const uint8_t *payload, size_t length, size_t size, uint64_t chunk)
{
    bool valid = false;
    if (codec == 0) {
        return payload;
    }
    if (!pfx_reserve_(reader, &reader->plain, size + 1)) {
        return NULL;
    }
    switch (codec) {
#ifdef PFX_ZSTD
    case 1: {
        size_t frame = ZSTD_findFrameCompressedSize(payload, length);
        valid = !ZSTD_isError(frame) && frame == length && ZSTD_decompress(reader->plain.bytes, size, payload, length) == size;
        break;
    }
#endif
#ifdef PFX_LZ4
    case 2: {
        int found = LZ4_decompress_safe((const char *)payload, (char *)reader->plain.bytes, (int)length, (int)size);
        valid = found >= 0 && (size_t)found == size;
        break;
    }
#endif
#ifdef PFX_ZLIB
    case 3: {
        uLongf found = (uLongf)size;
        uLong used = (uLong)length;
        valid = uncompress2(reader->plain.bytes, &found, payload, &used) == Z_OK && found == size && used == length;
        break;
    }
#endif
    default: {
        const char *name = codec == 1 ? "zstd" : codec == 2 ? "LZ4" : "zlib";
        const char *macro = codec == 1 ? "PFX_ZSTD" : codec == 2 ? "PFX_LZ4" : "PFX_ZLIB";
        (void)length;
        pfx_fail_(reader, PFX_ERROR_MISSING_CODEC, chunk + 6, "the chunk has codec %u (%s), level container: define %s and link the library", (unsigned)codec,
            name, macro);
        return NULL;
    }
    }
    if (!valid) {
        pfx_fail_(reader, PFX_ERROR_DECOMPRESS, chunk, "the payload is not %llu compressed bytes", (unsigned long long)size);
        return NULL;
    }
    return reader->plain.bytes;
}

/* Undoes a byte transpose. */
static void pfx_untranspose_(uint8_t *to, const uint8_t *from, size_t length, size_t width)
{
    size_t rows = length / width;
    size_t row;
    size_t column;
    for (column = 0; column < width; column++) {
        for (row = 0; row < rows; row++) {
            to[row * width + column] = from[column * rows + row];
        }
    }
}

/* The bytes of a record dictionary. */
typedef struct pfx_packed_ {
    const uint8_t *at;
    const uint8_t *end;
} pfx_packed_;

/* Reads a LEB128 number of at most 5 bytes. */
static bool pfx_leb128_(pfx_packed_ *in, uint64_t *value)
{
    unsigned shift;
    *value = 0;
    for (shift = 0; shift < 35 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        *value |= (uint64_t)(byte & 127) << shift;
        if ((byte & 128) == 0) {
            return true;
        }
    }
    return false;
}

/* An entry of a record dictionary. */
typedef struct pfx_entry_ {
    uint32_t start; /* offset among the bytes of all entries */
    uint32_t suffix; /* index of the next suffix */
    uint8_t length;
} pfx_entry_;

/* Rearranges the columns of the entries, so that the bytes of each entry are adjacent. Returns the number of bytes. */
static bool pfx_entries_(pfx_packed_ *in, pfx_entry_ *entries, size_t count, uint8_t *bytes, size_t room)
{
    size_t most = 0;
    size_t total = 0;
    size_t column;
    size_t i;
    for (i = 0; i < count; i++) {
        entries[i].length = *in->at++;
        entries[i].start = (uint32_t)total;
        entries[i].suffix = 0;
        total += entries[i].length;
        most = entries[i].length > most ? entries[i].length : most;
    }
    if (total > (size_t)(in->end - in->at) || total > room) {
        return false;
    }
    for (column = 0; column < most; column++) {
        for (i = 0; i < count; i++) {
            if (column < entries[i].length) {
                bytes[entries[i].start + column] = *in->at++;
            }
        }
    }
    return true;
}

/* Reads the number of the entry that a token names. `other` is the next entry without a number. */
static bool pfx_token_(uint8_t first, pfx_packed_ *seconds, size_t numbered, size_t *other, size_t count, size_t *entry)
{
    size_t ones = numbered <= 255 ? numbered : (65280 - numbered) / 255;
    if (first == 255) {
        *entry = (*other)++;
        return *entry < count;
    }
    if (first < ones) {
        *entry = first;
        return true;
    }
    if (seconds->at == seconds->end) {
        return false;
    }
    *entry = ones + 256 * (first - ones) + *seconds->at++;
    return *entry < numbered;
}

/* Numbers the suffixes of the entries, which are sorted by entry, and checks that each other entry is used. Moves `seconds` to its end. */
static bool pfx_suffixes_(const uint8_t *tokens, size_t count, pfx_packed_ *seconds, size_t numbered, pfx_entry_ *entries, size_t total)
{
    size_t other = numbered;
    size_t suffix = 0;
    size_t entry;
    size_t i;
    for (i = 0; i < count; i++) {
        if (!pfx_token_(tokens[i], seconds, numbered, &other, total, &entry)) {
            return false;
        }
        entries[entry].suffix++;
    }
    for (i = 0; i < total; i++) {
        uint32_t uses = entries[i].suffix;
        if (uses == 0 && i >= numbered) {
            return false;
        }
        entries[i].suffix = (uint32_t)suffix;
        suffix += uses;
    }
    return true;
}

/* Undoes a record dictionary, with or without split suffixes, into exactly `length` bytes. `scratch` is memory for the entries. */
static bool pfx_expand_(uint8_t *to, size_t length, pfx_packed_ in, bool split, uint8_t *scratch, size_t room)
{
    uint64_t numbered;
    uint64_t others;
    uint64_t count;
    size_t entry_bytes;
    size_t total;
    size_t filled = 0;
    size_t other;
    size_t entry;
    size_t i;
    const uint8_t *tokens;
    const uint8_t *suffixes;
    pfx_entry_ *entries = (pfx_entry_ *)(void *)scratch;
    uint8_t *bytes;
    pfx_packed_ seconds;
    if (!pfx_leb128_(&in, &numbered) || !pfx_leb128_(&in, &others) || !pfx_leb128_(&in, &count) || numbered > 65280
        || others > (size_t)(in.end - in.at) || numbered > (size_t)(in.end - in.at) - others) {
        return false;
    }
    total = (size_t)(numbered + others);
    entry_bytes = total * sizeof *entries;
    bytes = scratch + entry_bytes;
    if (count > (size_t)(in.end - in.at) - total || entry_bytes > room
        || !pfx_entries_(&in, entries, total, bytes, room - entry_bytes) || count > (size_t)(in.end - in.at)) {
        return false;
    }
    tokens = in.at;
    in.at += count;
    if (split && count > (size_t)(in.end - in.at)) {
        return false;
    }
    suffixes = split ? in.end - count : in.end;
    seconds.at = in.at;
    seconds.end = suffixes;
    if (!pfx_suffixes_(tokens, (size_t)count, &seconds, (size_t)numbered, entries, total) || seconds.at != seconds.end) {
        return false;
    }
    seconds.at = in.at;
    other = (size_t)numbered;
    for (i = 0; i < count; i++) {
        if (!pfx_token_(tokens[i], &seconds, (size_t)numbered, &other, total, &entry)
            || entries[entry].length + (split ? 1u : 0u) > length - filled) {
            return false;
        }
        memcpy(to + filled, bytes + entries[entry].start, entries[entry].length);
        filled += entries[entry].length;
        if (split) {
            to[filled++] = suffixes[entries[entry].suffix++];
        }
    }
    return filled == length;
}

/* Undoes the filter of a payload. Returns NULL after an error. */
static const uint8_t *pfx_unfilter_(
    pfx_reader *reader, uint8_t filter, uint8_t width, const uint8_t *payload, size_t length, size_t size, uint64_t chunk)
{
    size_t scratch = filter < 2 ? 0 : length * (sizeof(pfx_entry_) + 1);
    pfx_packed_ in;
    if (filter == 0) {
        return payload;
    }
    if (!pfx_reserve_(reader, &reader->unfiltered, scratch + size + 1)) {
        return NULL;
    }
    if (filter == 1) {
        pfx_untranspose_(reader->unfiltered.bytes, payload, size, width);
        return reader->unfiltered.bytes;
    }
    in.at = payload;
    in.end = payload + length;
    if (!pfx_expand_(reader->unfiltered.bytes + scratch, size, in, filter == 3, reader->unfiltered.bytes, scratch)) {
        pfx_fail_(reader, PFX_ERROR_DECOMPRESS, chunk, "the payload is not valid output of filter %u", (unsigned)filter);
        return NULL;
    }
    return reader->unfiltered.bytes + scratch;
}

