#ifndef PFX_NO_DESCRIBE
/* A field of an event, with the number of its leaf. Its format is one of: u, s: an unsigned or signed number; b: a Boolean; d: a double;
   c: nanoseconds; k: not shown; l: the length of leaf `bytes`; t: text; x: bytes; v: bytes whose length is computed; z: bytes that end before
   the byte `bytes`; r: a repetition of the next `bytes` fields. `value` computes the length or the count from the values of leaves. */
typedef struct pfx_field {
    const char *name;
    char kind;
    uint8_t leaf;
    uint32_t bytes;
    uint64_t (*value)(const uint64_t *values, pfx_room *room);
} pfx_field;

typedef struct pfx_event {
    const char *name;
    const pfx_field *fields;
    uint32_t tag;
    uint16_t count;
    uint8_t section;
    /* Whether the record has all tags of the section that no other record has. The tag is its first field. */
    bool is_rest;
} pfx_event;

@EVENTS@
/* The text of the last call, terminated by a zero. */
static char pfx_described[1024];

static size_t pfx_say(size_t at, const char *text)
{
    while (*text != 0 && at < sizeof pfx_described - 1) {
        pfx_described[at++] = *text++;
    }
    return at;
}

static size_t pfx_say_byte(size_t at, uint8_t byte)
{
    char text[2];
    text[0] = (char)byte;
    text[1] = 0;
    return pfx_say(at, text);
}

static size_t pfx_say_hex(size_t at, uint64_t value, unsigned digits)
{
    for (; digits > 0; digits--) {
        at = pfx_say_byte(at, (uint8_t)"0123456789abcdef"[(value >> (4 * (digits - 1))) & 15]);
    }
    return at;
}

static size_t pfx_say_number(size_t at, uint64_t value)
{
    char digits[21];
    size_t first = 20;
    digits[20] = 0;
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return pfx_say(at, digits + first);
}

static uint64_t pfx_get(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    while (bytes > 0) {
        bytes--;
        value = value << 8 | at[bytes];
    }
    return value;
}

/* Describes a field with this number of bytes. */
static size_t pfx_say_field(size_t to, const pfx_field *field, const uint8_t *at, size_t bytes)
{
    uint64_t value = pfx_get(at, bytes < 8 ? bytes : 8);
    size_t i;
    to = pfx_say(to, " ");
    to = pfx_say(pfx_say(to, field->name), "=");
    switch (field->kind) {
    case 'b':
        return pfx_say(to, value != 0 ? "true" : "false");
    case 's':
        if (value >> (8 * bytes - 1) != 0) {
            return pfx_say_number(pfx_say(to, "-"), (~value + 1) & (UINT64_MAX >> (64 - 8 * bytes)));
        }
        return pfx_say_number(to, value);
    case 'd':
    case 'f': {
#ifdef PFX_POSIX
        char text[32];
        double number;
        memcpy(&number, &value, sizeof number);
        if (field->kind == 'f') {
            uint32_t low = (uint32_t)value;
            float single;
            memcpy(&single, &low, sizeof single);
            number = (double)single;
        }
        snprintf(text, sizeof text, "%.17g", number);
        return pfx_say(to, text);
#else
        return pfx_say_hex(pfx_say(to, "bits 0x"), value, 16);
#endif
    }
    case 'c':
        return pfx_say(pfx_say_number(to, value), "ns");
    case 't':
        to = pfx_say(to, "\"");
        for (i = 0; i < bytes; i++) {
            if (at[i] < ' ' || at[i] == 127) {
                to = pfx_say_hex(pfx_say(to, "\\x"), at[i], 2);
            } else {
                to = pfx_say_byte(at[i] == '"' || at[i] == '\\' ? pfx_say(to, "\\") : to, at[i]);
            }
        }
        return pfx_say(to, "\"");
    case 'x':
    case 'v':
    case 'z':
        for (i = 0; i < bytes; i++) {
            to = pfx_say_hex(to, at[i], 2);
        }
        return to;
    default:
        return value > 0xffff ? pfx_say_hex(pfx_say(to, "0x"), value, value >> 32 != 0 ? 16 : 8) : pfx_say_number(to, value);
    }
}

/* A walk through an event. */
typedef struct pfx_walker {
    const uint8_t *at;
    const uint8_t *end;
    /* The length of the description, if there is one. */
    size_t to;
    bool says;
    pfx_room room;
    /* The values of numbers, and the lengths of byte arrays. */
    uint64_t values[256];
} pfx_walker;

/* Walks through fields. Returns false if they exceed the end. */
static bool pfx_walk_fields(pfx_walker *walker, const pfx_field *field, size_t count)
{
    for (; count > 0; field++, count--) {
        uint64_t bytes = field->bytes;
        char kind = field->kind;
        size_t left = (size_t)(walker->end - walker->at);
        if (kind == 'r') {
            uint64_t items = field->value(walker->values, &walker->room);
            for (; items > 0; items--) {
                if (!pfx_take(&walker->room, 1, 0) || !pfx_walk_fields(walker, field + 1, field->bytes)) {
                    return false;
                }
            }
            count -= field->bytes;
            field += field->bytes;
            continue;
        }
        if (kind == 'l') {
            bytes = 2;
        } else if (kind == 'v') {
            bytes = field->value(walker->values, &walker->room);
        } else if (kind == 't' || (kind == 'x' && bytes == 0)) {
            bytes = walker->values[field->leaf];
        } else if (kind == 'z') {
            for (bytes = 0; bytes < left && walker->at[bytes] != (uint8_t)field->bytes; bytes++) {
            }
        }
        if (walker->room.fails || bytes + (kind == 'z') > left) {
            return false;
        }
        if (kind == 'l') {
            walker->values[field->bytes & 255] = pfx_get(walker->at, 2);
        } else if (kind == 's' && bytes > 0 && bytes < 8 && walker->at[bytes - 1] >> 7 != 0) {
            walker->values[field->leaf] = pfx_get(walker->at, (size_t)bytes) | UINT64_MAX << (8 * bytes);
        } else if (bytes <= 8 && kind != 't' && kind != 'x') {
            walker->values[field->leaf] = pfx_get(walker->at, (size_t)bytes);
        }
        if (walker->says && kind != 'l' && kind != 'k') {
            walker->to = pfx_say_field(walker->to, field, walker->at, (size_t)bytes);
        }
        walker->at += bytes + (kind == 'z');
    }
    return true;
}

/* Walks through an event, and describes it if `says` is set. Returns its end, or NULL if there is no event. */
static const uint8_t *pfx_walk(const uint8_t *at, const uint8_t *end, uint8_t section, bool says)
{
    const pfx_event *event = NULL;
    pfx_walker walker;
    size_t i;
    uint64_t tag;
    if ((size_t)(end - at) < PFX_TAG_BYTES) {
        return NULL;
    }
    tag = pfx_get(at, PFX_TAG_BYTES);
    for (i = 0; i < sizeof pfx_events / sizeof pfx_events[0] && event == NULL; i++) {
        if ((pfx_events[i].tag == tag || pfx_events[i].is_rest) && pfx_events[i].section == section) {
            event = &pfx_events[i];
        }
    }
    if (event == NULL) {
        return NULL;
    }
    memset(&walker, 0, sizeof walker);
    walker.at = at + (event->is_rest ? 0 : PFX_TAG_BYTES);
    walker.end = end;
    walker.says = says;
    walker.room = pfx_room_for(0);
    walker.room.items += (uint32_t)(end - at);
    walker.to = says ? pfx_say(0, event->name) : 0;
    if (!pfx_walk_fields(&walker, event->fields, event->count)) {
        return NULL;
    }
    if (says) {
        pfx_described[walker.to] = 0;
    }
    return walker.at;
}

const char *pfx_describe(const pfx_emitter *emitter, uint32_t back)
{
    uint8_t section = emitter->section;
    const uint8_t *first;
    const uint8_t *at;
    uint32_t count = 0;
    pfx_described[pfx_say(0, "no event")] = 0;
    if (section == 0) {
        return pfx_described;
    }
    first = emitter->buffer + 48 + pfx_sections[section - 1].length;
    for (at = first; at != NULL && at < emitter->at; at = pfx_walk(at, emitter->at, section, false)) {
        count++;
    }
    if (at == NULL || back >= count) {
        return pfx_described;
    }
    at = first;
    for (count -= back + 1; count > 0; count--) {
        at = pfx_walk(at, emitter->at, section, false);
    }
    pfx_walk(at, emitter->at, section, true);
    return pfx_described;
}
#endif

