/* Reads changed copies of traces with a generated reader, in one process under sanitizers:

   mutate COUNT SEED TRACE... */
#define TRACE_IMPLEMENTATION
#define TRACE_PRINT
#include "trace.h"

static uint64_t state;

static uint32_t below(uint32_t count)
{
    state = state * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)(state >> 33) % (count == 0 ? 1 : count);
}

/* Computes the checksums of chunks again, so that changes reach the code that reads records. */
static void mend(uint8_t *bytes, size_t length)
{
    size_t at;
    for (at = 0; at + 48 <= length; at++) {
        uint64_t stored;
        uint32_t crc;
        size_t i;
        if (memcmp(bytes + at, "MTFC", 4) != 0) {
            continue;
        }
        stored = trace_little_(bytes + at + 12);
        if (stored > length - at - 48) {
            continue;
        }
        crc = trace_crc_(trace_crc_(0, bytes + at, 44), bytes + at + 48, (size_t)stored);
        for (i = 0; i < 4; i++) {
            bytes[at + 44 + i] = (uint8_t)(crc >> 8 * i);
        }
    }
}

/* Changes a few bytes, removes a run of bytes, or duplicates one. */
static size_t mutate(uint8_t *bytes, size_t length, size_t room)
{
    static const uint8_t values[] = {0, 1, 2, 7, 8, 16, 64, 127, 128, 255};
    uint32_t times = 1 + below(4);
    while (times-- > 0 && length > 0) {
        size_t at = below((uint32_t)length);
        size_t run = 1 + below(12);
        run = run > length - at ? length - at : run;
        switch (below(7)) {
        case 0:
            bytes[at] = (uint8_t)below(256);
            break;
        case 1:
            bytes[at] ^= (uint8_t)(1u << below(8));
            break;
        case 2:
            memmove(bytes + at, bytes + at + run, length - at - run);
            length -= run;
            break;
        case 3:
            if (length + run <= room) {
                memmove(bytes + at + run, bytes + at, length - at);
                length += run;
            }
            break;
        case 4:
            memset(bytes + at, values[below(sizeof values)], run);
            break;
        case 5:
            bytes[at] = values[below(sizeof values)];
            break;
        default:
            length = below(8) == 0 ? at : length;
            break;
        }
    }
    return length;
}

/* Reads a trace completely. Returns whether it is valid. */
static bool consume(const uint8_t *bytes, size_t length, FILE *out)
{
    trace_reader reader;
    trace_record record;
    char text[512];
    FILE *file = NULL;
    bool valid;
    int found;
    if (below(4) == 0) {
        file = tmpfile();
        if (file != NULL && fwrite(bytes, 1, length, file) == length) {
            rewind(file);
        }
    }
    found = file != NULL ? trace_open_file(&reader, file) : trace_open_memory(&reader, bytes, length);
    reader.all = below(2) == 0;
    while (found >= 0 && (found = trace_next(&reader, &record)) > 0) {
        found = trace_print(out, &reader, &record);
    }
    trace_describe_error(&reader, text, sizeof text);
    valid = reader.error.kind == TRACE_OK;
    trace_close(&reader);
    if (file != NULL) {
        fclose(file);
    }
    return valid;
}

int main(int argc, char **argv)
{
    FILE *out = fopen("/dev/null", "wb");
    unsigned long count;
    unsigned long valid = 0;
    unsigned long i;
    if (argc < 4 || out == NULL) {
        fprintf(stderr, "usage: %s COUNT SEED TRACE...\n", argv[0]);
        return 2;
    }
    count = strtoul(argv[1], NULL, 10);
    state = strtoull(argv[2], NULL, 10);
    for (i = 0; i < count; i++) {
        uint8_t *bytes;
        uint8_t *exact;
        size_t room = 1u << 16;
        size_t length;
        FILE *file = fopen(argv[3 + below((uint32_t)argc - 3)], "rb");
        bytes = (uint8_t *)malloc(room);
        if (file == NULL || bytes == NULL) {
            return 2;
        }
        length = fread(bytes, 1, room, file);
        fclose(file);
        length = mutate(bytes, length, room);
        if (below(8) != 0) {
            mend(bytes, length);
        }
        /* A copy of the exact size lets AddressSanitizer detect reads past the end. */
        exact = (uint8_t *)malloc(length + (length == 0));
        if (exact == NULL) {
            return 2;
        }
        memcpy(exact, bytes, length);
        free(bytes);
        valid += consume(exact, length, out);
        free(exact);
    }
    printf("%lu inputs, %lu of them valid\n", count, valid);
    fclose(out);
    return 0;
}
