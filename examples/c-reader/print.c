/* Prints the records of a trace as JSON lines. Works for any format: generate the reader from the DTD.

   metatfc gen --lang c --reader trace FORMAT.dtd -o trace.h
   cc -std=c99 -O2 -o print print.c && ./print [--all] TRACE */
#define TRACE_IMPLEMENTATION
#define TRACE_PRINT
#include "trace.h"

int main(int argc, char **argv)
{
    trace_reader reader;
    trace_record record;
    char text[512];
    bool all = argc == 3 && strcmp(argv[1], "--all") == 0;
    FILE *file = argc == 2 || all ? fopen(argv[argc - 1], "rb") : NULL;
    int found;
    if (file == NULL) {
        fprintf(stderr, argc == 2 || all ? "%s: cannot open %s\n" : "usage: %s [--all] TRACE\n", argv[0], argv[argc - 1]);
        return 2;
    }
    found = trace_open_file(&reader, file);
    reader.all = all;
    while (found >= 0 && (found = trace_next(&reader, &record)) > 0) {
        found = trace_print(stdout, &reader, &record);
    }
    if (reader.error.kind != TRACE_OK) {
        trace_describe_error(&reader, text, sizeof text);
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", argv[argc - 1], text);
    }
    trace_close(&reader);
    fclose(file);
    return found == 0 ? 0 : 1;
}
