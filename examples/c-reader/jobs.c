/* Prints how long each job of a job queue took. Generate the reader from the format of examples/build-script:

   metatfc gen --lang c --reader jobs jobs.dtd -o jobs.h
   cc -std=c99 -O2 -o jobs jobs.c && ./jobs TRACE */
#define JOBS_IMPLEMENTATION
#include "jobs.h"

#define JOBS 1000

int main(int argc, char **argv)
{
    static uint64_t submitted[JOBS];
    jobs_reader reader;
    jobs_record record;
    char text[512];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    int found;
    if (file == NULL) {
        fprintf(stderr, argc == 2 ? "%s: cannot open the trace\n" : "usage: %s TRACE\n", argv[0]);
        return 2;
    }
    found = jobs_open_file(&reader, file);
    while (found >= 0 && (found = jobs_next(&reader, &record)) > 0) {
        if (record.kind == JOBS_RECORD_SUBMIT) {
            const jobs_submit *submit = &record.as.submit;
            printf("job %llu: %.*s\n", (unsigned long long)submit->job, (int)submit->vfield.length, (const char *)submit->vfield.data);
            submitted[submit->job % JOBS] = submit->time;
        } else if (record.kind == JOBS_RECORD_DONE) {
            const jobs_done *done = &record.as.done;
            printf("job %llu took %llu ns, status %llu\n", (unsigned long long)done->job,
                (unsigned long long)(done->time - submitted[done->job % JOBS]), (unsigned long long)done->status);
        }
    }
    if (reader.error.kind != JOBS_OK) {
        jobs_describe_error(&reader, text, sizeof text);
        fprintf(stderr, "%s: %s\n", argv[1], text);
    }
    jobs_close(&reader);
    fclose(file);
    return found == 0 ? 0 : 1;
}
