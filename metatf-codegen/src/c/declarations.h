#if defined(PFX_POSIX) && defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#if defined(PFX_POSIX) && !defined(_FILE_OFFSET_BITS)
#define _FILE_OFFSET_BITS 64
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if __STDC_HOSTED__
#include <string.h>
#endif
#ifdef PFX_POSIX
#include <pthread.h>
#endif

/* This is C code: suppress warnings about C casts in C++ programs. */
#if defined(__cplusplus) && defined(__GNUC__)
#define PFX_C_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"")
#define PFX_C_END _Pragma("GCC diagnostic pop")
#else
#define PFX_C_BEGIN
#define PFX_C_END
#endif

#ifdef __cplusplus
extern "C" {
#endif
PFX_C_BEGIN

#if !__STDC_HOSTED__
/* Compilers need these two functions even without a library. */
void *memcpy(void *to, const void *from, size_t length);
void *memset(void *to, int value, size_t length);
#endif

@CONSTANTS@
/* The enabled kinds: bit k % 32 of word k / 32 belongs to kind k. The words may be changed at any time, even by a debugger. */
extern volatile uint32_t pfx_control[2];

/* One thread may read a word while another changes it. */
#if defined(__GNUC__)
#define PFX_LOAD(word) __atomic_load_n(word, __ATOMIC_RELAXED)
#define PFX_STORE(word, value) __atomic_store_n(word, value, __ATOMIC_RELAXED)
#define PFX_COUNT(word) ((void)__atomic_fetch_add(word, 1u, __ATOMIC_RELAXED))
#else
#define PFX_LOAD(word) (*(word))
#define PFX_STORE(word, value) ((void)(*(word) = (value)))
#define PFX_COUNT(word) ((void)(*(word) = *(word) + 1u))
#endif
/* The compiled kinds, with one bit for each. Emitters of other kinds do nothing. Define this macro before including the header. */
#ifndef PFX_COMPILED
#define PFX_COMPILED 0xffffffffffffffffu
#endif
#define PFX_ON(kind) ((((PFX_COMPILED + 0ull) >> (kind)) & 1u) != 0 && ((PFX_LOAD(&pfx_control[(kind) / 32]) >> ((kind) % 32)) & 1u) != 0)

/* A trace. Set all fields to 0, then set the first part, then call pfx_begin. */
typedef struct pfx_trace {
    /* Writes all of these bytes and returns 0. If it returns any other value, none of them may remain in the trace. */
    int (*write)(void *context, const void *bytes, size_t length);
    /* Returns the nanoseconds since the start. Without it, all times are 0. */
    uint64_t (*clock)(void *context);
    /* Returns the nanoseconds since 1970. Without it, the trace does not contain the wall-clock time. */
    uint64_t (*wall)(void *context);
    /* A lock, required if several threads have emitters. It is held while a chunk is written, but never while an event is emitted. `lock`
       returns 0, or another number if it was called by a signal handler that interrupted the thread that holds the lock. */
    int (*lock)(void *context);
    void (*unlock)(void *context);
    void *context;
    uint32_t process;
    /* Number of events lost because a write failed, counted by this header. */
    uint64_t lost;
    /* Memory for the index, 32 bytes per chunk. Without it, or if it is too small, the trace has no index, and tools warn about that. */
    void *index;
    size_t index_bytes;

    /* The remaining fields belong to this header. */
    uint64_t length;
    uint64_t header;
    uint64_t bases[PFX_SECTIONS];
    uint32_t chunks;
    /* Number of these chunks without events. */
    uint32_t others;
    uint32_t threads;
    /* Number of dropped events that their emitters could not report. */
    uint64_t dropped;
@STRINGS@
} pfx_trace;

#ifdef PFX_POSIX
/* The head of a buffer that outlives the process: its owner, the size of the chunk in it, and the length of the trace with that chunk. */
typedef struct pfx_shared_buffer {
    uint32_t thread;
    uint32_t section;
    uint32_t end;
    uint32_t chunks;
    uint64_t sent;
} pfx_shared_buffer;
#endif

/* An emitter, one for each thread. A signal handler may use the emitter of its thread. Its event is counted as dropped if it interrupts
   another event of this emitter, or if the buffer is full and the interrupted thread is writing to the trace. */
typedef struct pfx_emitter {
    pfx_trace *trace;
    uint8_t *buffer;
    uint8_t *at;
    uint8_t *end;
    uint8_t *limit;
    uint64_t dropped;
    uint64_t reported;
    uint64_t synced;
    uint32_t events;
    uint32_t records;
    uint32_t thread;
    uint32_t refused_before;
    volatile uint32_t refused;
    volatile uint8_t busy;
    uint8_t section;
    bool has_synced;
#ifdef PFX_POSIX
    pfx_shared_buffer *shared;
#endif
} pfx_emitter;

/* Begins a trace by writing its header and the DTD. Returns 0, or -1 on failure. */
int pfx_begin(pfx_trace *trace);
/* Ends the trace after all emitters have ended. Writes the number of dropped events that the emitters could not report, and the index.
   Returns 0, or -1 if one of these is missing, in which case readers see that the trace is unfinished. */
int pfx_end(pfx_trace *trace);
/* Begins an emitter with its buffer, which must have at least PFX_BUFFER_LEAST bytes. A buffer becomes a chunk of the trace; 64 KiB is a
   good size. Returns 0, or -1 if the buffer is too small, or if a signal handler interrupted the thread that writes to the trace. */
int pfx_emitter_begin(pfx_emitter *emitter, pfx_trace *trace, void *buffer, size_t bytes);
/* Writes the events in the buffer. Returns 0, or -1 on failure, in which case these events are counted as dropped. */
int pfx_flush(pfx_emitter *emitter);
/* Flushes the emitter, and writes the number of dropped events if the trace does not contain it yet. Returns 0, or -1 if a write failed, in
   which case pfx_end writes the number of dropped events. */
int pfx_emitter_end(pfx_emitter *emitter);
/* Sets the enabled kinds: names, a number, all or none, separated by spaces or commas. Returns -1 and changes nothing if a kind is unknown.
   */
int pfx_set_kinds(const char *kinds);
@STRINGS_FUNCTION@
#ifndef PFX_NO_DESCRIBE
/* Describes an event in an emitter's buffer: the last one, or an earlier one, counted backwards. For debuggers: print
   pfx_describe(&emitter, 0). The next call overwrites the text. PFX_NO_DESCRIBE removes this function. */
const char *pfx_describe(const pfx_emitter *emitter, uint32_t back);
#endif

#ifdef PFX_POSIX
/* A trace in a file, with clocks and a lock. A forked child drops its events, because they would be mixed with those of its parent. */
typedef struct pfx_file {
    pfx_trace trace;
    /* The thread that holds the lock of the trace. */
    uintptr_t holder;
    uint64_t start;
    int descriptor;
    /* errno of the first failed write. */
    int why;
    /* Whether disk space can be reserved, and whether the reserved space may be used. */
    bool reserves;
    bool ends;
    char path[1024];
    /* The state of pfx_share. Other processes can write to the shared memory, so its shape is stored here. */
    uint8_t *shared;
    size_t shared_bytes;
    size_t buffers_at;
    size_t buffer_bytes;
    uint32_t buffers;
    int shared_descriptor;
    bool obeys;
    bool shared_ends;
    pthread_t shared_thread;
    pthread_mutex_t shared_mutex;
    pthread_cond_t shared_wakes;
    char shared_path[512];
} pfx_file;

/* Creates a file and begins its trace. Without a path, METATF_TELEMETRY_FILENAME is used (%p is the process ID, %n the name of the DTD), or
   else the file is named after the DTD and the process. METATF_TELEMETRY_CONTROL sets the enabled kinds. Without that variable, a path
   enables all kinds unless pfx_set_kinds has enabled some; without a path, all kinds are disabled. If another process is writing to that
   file, the ID of this process is inserted into the name. A file that is not a trace is kept. Returns 0, or -1 and sets errno: EINVAL for
   an unknown kind or a path that is too long; EEXIST if the file is not a trace; EWOULDBLOCK if another process is writing to the file at
   this path. */
int pfx_open(pfx_file *file, const char *path);
/* Creates buffers of the given number and size, in a file in METATF_TELEMETRY_FOLDER or /dev/shm that outlives the process. metatfc
   telemetry reads the events in them and changes the enabled kinds of this process, which a thread watches. Call this function after
   pfx_open and after setting the memory of the index, but before creating emitters. Supports one file at a time, and only Linux. Returns 0, or -1 and sets errno: EINVAL for a size out of range, with a maximum of 4,096 buffers of 8 MiB each. */
int pfx_share(pfx_file *file, uint32_t buffers, size_t bytes);
/* Begins an emitter with one of these buffers, which pfx_emitter_end releases. Returns 0, or -1 and sets errno: EAGAIN if all buffers are
   in use. */
int pfx_emitter_begin_shared(pfx_emitter *emitter, pfx_file *file);
/* Ends the trace after all emitters have ended, and removes the buffers. Returns 0, or -1 and sets errno if events were lost because a
   write failed, or if the trace could not be completed: ENOMEM if the memory for the index is too small. A failure is also reported on
   standard error, unless PFX_QUIET is defined. */
int pfx_close(pfx_file *file);
#endif

/* The following definitions are used by emitters. */

typedef struct pfx_bytes {
    const void *bytes;
    uint16_t length;
    uint16_t mark;
} pfx_bytes;

#if defined(__GNUC__)
#define PFX_BARRIER() __asm__ __volatile__("" ::: "memory")
#else
#define PFX_BARRIER() ((void)0)
#endif

#if defined(__GNUC__)
#define PFX_PUBLISH(word, value) __atomic_store_n(word, value, __ATOMIC_RELEASE)
#define PFX_OBTAIN(word) __atomic_load_n(word, __ATOMIC_ACQUIRE)
#else
#define PFX_PUBLISH(word, value) ((void)(*(volatile uint32_t *)(word) = (value)))
#define PFX_OBTAIN(word) (*(const volatile uint32_t *)(word))
#endif

bool pfx_start_chunk(pfx_emitter *emitter, uint8_t section);
pfx_bytes pfx_text(const char *text);
pfx_bytes pfx_array(const void *bytes, size_t length);

static inline uint8_t *pfx_reserve(pfx_emitter *emitter, uint8_t section, size_t most)
{
    if (emitter->busy) {
        PFX_COUNT(&emitter->refused);
        return NULL;
    }
    emitter->busy = 1;
    PFX_BARRIER();
    if ((emitter->section != section || (size_t)(emitter->end - emitter->at) < most) && !pfx_start_chunk(emitter, section)) {
        PFX_COUNT(&emitter->refused);
        PFX_BARRIER();
        emitter->busy = 0;
        return NULL;
    }
    return emitter->at;
}

static inline void pfx_commit(pfx_emitter *emitter, uint8_t *at)
{
    emitter->at = at;
    emitter->events++;
#ifdef PFX_POSIX
    /* All data before the end is complete. */
    if (emitter->shared != NULL) {
        PFX_PUBLISH(&emitter->shared->end, (uint32_t)(at - emitter->buffer));
    }
#endif
    PFX_BARRIER();
    emitter->busy = 0;
}

static inline uint64_t pfx_now(const pfx_emitter *emitter)
{
    return emitter->trace->clock ? emitter->trace->clock(emitter->trace->context) : 0;
}

static inline uint8_t *pfx_put8(uint8_t *at, uint8_t value)
{
    at[0] = value;
    return at + 1;
}

static inline uint8_t *pfx_put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

static inline uint8_t *pfx_put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
    return at + 4;
}

static inline uint8_t *pfx_put64(uint8_t *at, uint64_t value)
{
    return pfx_put32(pfx_put32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

static inline uint8_t *pfx_put_double(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return pfx_put64(at, bits);
}

static inline uint8_t *pfx_put_float(uint8_t *at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return pfx_put32(at, bits);
}

/* Puts bytes, or zeros if the pointer is NULL. */
static inline uint8_t *pfx_put_bytes(uint8_t *at, const void *bytes, size_t length)
{
    if (bytes != NULL) {
        memcpy(at, bytes, length);
    } else {
        memset(at, 0, length);
    }
    return at + length;
}

/* Puts bytes, followed by the mark if the text was truncated. */
static inline uint8_t *pfx_put_cut(uint8_t *at, pfx_bytes value)
{
    at = pfx_put_bytes(at, value.bytes, value.length);
    return pfx_put_bytes(at, "\342\200\246", value.mark);
}

