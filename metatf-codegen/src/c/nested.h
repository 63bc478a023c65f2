
/* The room for the fields of a record whose size depends on their values. */
typedef struct pfx_room {
    size_t bytes;
    /* The number of repeated items that need not store any byte (section 3.3 of the specification). */
    uint32_t items;
    /* Whether a computed value is below 0 or too large, or a divisor is 0. */
    bool fails;
} pfx_room;

static inline pfx_room pfx_room_for(size_t bytes)
{
    pfx_room room;
    room.bytes = bytes;
    room.items = 65536;
    room.fails = false;
    return room;
}

/* Reserves room for items of the given size. Returns false if there is too little. */
static inline bool pfx_take(pfx_room *room, uint64_t count, size_t size)
{
    if (room->fails || count > (size == 0 ? room->items : room->bytes / size)) {
        return false;
    }
    if (size == 0) {
        room->items -= (uint32_t)count;
    } else {
        room->bytes -= (size_t)count * size;
    }
    return true;
}

/* Reserves room for bytes and the byte that ends them. Returns false if there is too little, or if the bytes are invalid. */
static inline bool pfx_take_until(pfx_room *room, const void *bytes, size_t length, uint8_t end)
{
    const uint8_t *at = (const uint8_t *)bytes;
    size_t i;
    if (length > 65535 || (bytes == NULL && length > 0) || !pfx_take(room, (uint64_t)length + 1, 1)) {
        return false;
    }
    for (i = 0; i < length; i++) {
        if (at[i] == end) {
            return false;
        }
    }
    return true;
}

/* Computes a step of an expression. */
static inline uint64_t pfx_step(pfx_room *room, char sign, uint64_t a, uint64_t b)
{
    uint64_t value = 0;
    bool fails = (sign == '/' || sign == '%') && b == 0;
    switch (sign) {
    case '+':
        value = a + b;
        fails = value < a;
        break;
    case '-':
        value = a - b;
        fails = a < b;
        break;
    case '*':
        value = a * b;
        fails = a != 0 && value / a != b;
        break;
    case '/':
        value = fails ? 0 : a / b;
        break;
    default:
        value = fails ? 0 : a % b;
    }
    room->fails = room->fails || fails;
    return value;
}

static inline uint64_t pfx_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t pfx_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns whether a number fits in a width. */
static inline bool pfx_fits(uint64_t raw, unsigned width, bool is_signed)
{
    if (width >= 8) {
        return true;
    }
    if (is_signed && width > 0) {
        raw += (uint64_t)1 << (8 * width - 1);
    }
    return raw >> (8 * width) == 0;
}

static inline uint8_t *pfx_put_number(uint8_t *at, uint64_t raw, unsigned width)
{
    for (; width > 0; width--) {
        *at++ = (uint8_t)raw;
        raw >>= 8;
    }
    return at;
}

/* Begins the next chunk if the buffer contains other events, so that an event has more room there. */
static inline bool pfx_retry(pfx_emitter *emitter, uint8_t section)
{
    return emitter->events > 0 && pfx_start_chunk(emitter, section);
}

/* Commits an event, or drops the event if its values are invalid or do not fit in the buffer. */
static inline void pfx_commit_or_drop(pfx_emitter *emitter, uint8_t *at)
{
    if (at != NULL) {
        pfx_commit(emitter, at);
    } else {
        PFX_COUNT(&emitter->refused);
        PFX_BARRIER();
        emitter->busy = 0;
    }
}

