/* The same events from C. Generate pools.h with `metatfc gen --lang c pools.dtd -o pools.h`. */
#define POOLS_IMPLEMENTATION
#include "pools.h"

#include <stdio.h>

/* Memory for the emitter, which buffers one chunk of the trace, and for the index, at 32 bytes per chunk. */
static uint8_t buffer[64 << 10];
static uint8_t entries[32 << 10];

int main(void)
{
    static pools_file file;
    static uint64_t blocks[1000][4];
    pools_emitter emitter;
    int failed;
    int i;
    if (pools_open(&file, NULL) != 0) {
        perror("pools: the trace");
        return 1;
    }
    file.trace.index = entries;
    file.trace.index_bytes = sizeof entries;
    pools_emitter_begin(&emitter, &file.trace, buffer, sizeof buffer);
    POOLS_EMIT_LABEL(&emitter, (uintptr_t)blocks, pools_intern(&file.trace, "blocks of 32 bytes"));
    POOLS_EMIT_CREATE(&emitter, 3, sizeof blocks[0], "blocks");
    for (i = 0; i < 1000; i++) {
        POOLS_EMIT_ALLOC(&emitter, (uintptr_t)blocks[i], 3);
    }
    /* Both fail if events were lost, and pools_close prints their number to standard error. */
    failed = pools_emitter_end(&emitter);
    failed |= pools_close(&file);
    return failed == 0 ? 0 : 1;
}
