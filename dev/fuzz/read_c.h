/* Reads a trace and prints its records as JSON lines into memory. Returns the kind of the error. Flags: 1 reads from a file instead
   of memory, 2 also prints elements, comments and metadata. */
int READ(const uint8_t *bytes, size_t size, int flags, char **text, size_t *length)
{
    fuzzed_reader reader;
    fuzzed_record record;
    char message[512];
    FILE *out = open_memstream(text, length);
    FILE *file = (flags & 1) != 0 && size > 0 ? fmemopen((void *)(uintptr_t)bytes, size, "rb") : NULL;
    int found = file != NULL ? fuzzed_open_file(&reader, file) : fuzzed_open_memory(&reader, bytes, size);
    reader.all = (flags & 2) != 0;
    while (found >= 0 && (found = fuzzed_next(&reader, &record)) > 0) {
        found = fuzzed_print(out, &reader, &record);
    }
    found = (int)reader.error.kind;
    fuzzed_describe_error(&reader, message, sizeof message);
    fuzzed_close(&reader);
    if (file != NULL) {
        fclose(file);
    }
    fclose(out);
    return found;
}
