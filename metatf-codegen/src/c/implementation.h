
PFX_C_END
#ifdef __cplusplus
}
#endif

#endif /* PFX_HEADER */

#if defined(PFX_IMPLEMENTATION) && !defined(PFX_IMPLEMENTED)
#define PFX_IMPLEMENTED
#ifdef PFX_POSIX
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/mman.h>
#endif
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif
PFX_C_BEGIN

volatile uint32_t pfx_control[2];

@TABLES@
/* CRC-32C. */
static const uint32_t pfx_crc_table[4][256] = {
@CRC@
};

static uint32_t pfx_crc_bytes(uint32_t crc, const uint8_t *bytes, size_t length)
{
    for (; length >= 4; bytes += 4, length -= 4) {
        crc ^= bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        crc = pfx_crc_table[3][crc & 0xff] ^ pfx_crc_table[2][(crc >> 8) & 0xff] ^ pfx_crc_table[1][(crc >> 16) & 0xff] ^
              pfx_crc_table[0][crc >> 24];
    }
    for (; length > 0; bytes++, length--) {
        crc = pfx_crc_table[0][(crc ^ *bytes) & 0xff] ^ (crc >> 8);
    }
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__) && (defined(PFX_POSIX) || defined(__SSE4_2__))
__attribute__((target("sse4.2"))) static uint32_t pfx_crc_words(uint32_t crc, const uint8_t *bytes, size_t length)
{
    unsigned long long all = crc;
    for (; length >= 8; bytes += 8, length -= 8) {
        unsigned long long word;
        memcpy(&word, bytes, 8);
        all = __builtin_ia32_crc32di(all, word);
    }
    return pfx_crc_bytes((uint32_t)all, bytes, length);
}

static uint32_t pfx_crc(uint32_t crc, const uint8_t *bytes, size_t length)
{
    if (__builtin_cpu_supports("sse4.2")) {
        return pfx_crc_words(crc, bytes, length);
    }
    return pfx_crc_bytes(crc, bytes, length);
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
static uint32_t pfx_crc(uint32_t crc, const uint8_t *bytes, size_t length)
{
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        crc = __crc32cd(crc, word);
    }
    return pfx_crc_bytes(crc, bytes, length);
}
#else
static uint32_t pfx_crc(uint32_t crc, const uint8_t *bytes, size_t length)
{
    return pfx_crc_bytes(crc, bytes, length);
}
#endif

/* Writes the header of a chunk (section 5.2 of the specification), except for its CRC. */
static void pfx_chunk_header(const pfx_trace *trace, uint8_t *at, uint8_t kind, uint32_t length)
{
    memset(at, 0, 48);
    memcpy(at, "MTFC", 4);
    at[5] = kind;
    at[10] = 2;
    at[11] = 1;
    pfx_put32(at + 12, length);
    pfx_put32(at + 16, length);
    pfx_put32(at + 28, trace->chunks);
}

/* Acquires the lock of the trace. Returns false in a signal handler that interrupted the thread that holds the lock. */
static bool pfx_lock(pfx_trace *trace)
{
    return trace->lock == NULL || trace->lock(trace->context) == 0;
}

static void pfx_unlock(pfx_trace *trace)
{
    if (trace->unlock != NULL) {
        trace->unlock(trace->context);
    }
}

/* Writes bytes at the end of the trace. */
static int pfx_write(pfx_trace *trace, const void *bytes, size_t length)
{
    if (trace->write(trace->context, bytes, length) != 0) {
        return -1;
    }
    trace->length += length;
    return 0;
}

int pfx_begin(pfx_trace *trace)
{
    uint8_t header[48];
    uint32_t crc;
    uint32_t length = 0;
    size_t i;
    trace->length = 0;
    trace->chunks = 0;
    trace->others = 0;
    trace->threads = 0;
    trace->lost = 0;
    trace->dropped = 0;
@STRINGS_BEGIN@
    for (i = 0; i < PFX_SECTIONS; i++) {
        trace->bases[i] = 0;
    }
    memset(header, 0, sizeof header);
    memcpy(header, "\177MTF", 4);
    header[4] = 2;
    header[5] = 1;
    header[6] = (uint8_t)(sizeof pfx_source - 1);
    header[7] = 1;
    pfx_put64(header + 24, 40 + sizeof pfx_source - 1);
    if (pfx_write(trace, header, 40) != 0 || pfx_write(trace, pfx_source, sizeof pfx_source - 1) != 0) {
        return -1;
    }
    trace->header = trace->length;
    for (i = 0; i < sizeof pfx_dtd / sizeof pfx_dtd[0]; i++) {
        length += pfx_dtd[i].length;
    }
    pfx_chunk_header(trace, header, 1, length);
    crc = pfx_crc(0xffffffffu, header, 44);
    for (i = 0; i < sizeof pfx_dtd / sizeof pfx_dtd[0]; i++) {
        crc = pfx_crc(crc, (const uint8_t *)pfx_dtd[i].text, pfx_dtd[i].length);
    }
    pfx_put32(header + 44, ~crc);
    if (pfx_write(trace, header, 48) != 0) {
        return -1;
    }
    for (i = 0; i < sizeof pfx_dtd / sizeof pfx_dtd[0]; i++) {
        if (pfx_write(trace, pfx_dtd[i].text, pfx_dtd[i].length) != 0) {
            return -1;
        }
    }
    trace->chunks = 1;
    trace->others = 1;
    return 0;
}

/* Records a chunk for the index. */
static void pfx_note_chunk(pfx_trace *trace, const uint8_t *header)
{
    /* The first chunk is the DTD, which needs no memory. */
    size_t at = ((size_t)trace->chunks - 1) * 32;
    uint8_t *entry;
    if (trace->index == NULL || at > trace->index_bytes || trace->index_bytes - at < 32) {
        return;
    }
    entry = (uint8_t *)trace->index + at;
    pfx_put64(entry, trace->length);
    memcpy(entry + 8, header + 32, 8);
    entry[16] = header[4];
    entry[17] = header[5];
    entry[18] = header[6];
    entry[19] = header[8];
    memcpy(entry + 20, header + 12, 12);
}

int pfx_emitter_begin(pfx_emitter *emitter, pfx_trace *trace, void *buffer, size_t bytes)
{
    if (buffer == NULL || bytes < PFX_BUFFER_LEAST) {
        return -1;
    }
    memset(emitter, 0, sizeof *emitter);
    emitter->trace = trace;
    emitter->buffer = (uint8_t *)buffer;
    /* A chunk has at most 64 MiB. */
    emitter->limit = emitter->buffer + (bytes < (64u << 20) ? bytes : (64u << 20));
    emitter->at = emitter->buffer;
    emitter->end = emitter->buffer;
    if (!pfx_lock(trace)) {
        return -1;
    }
    trace->threads++;
    emitter->thread = trace->threads;
    pfx_unlock(trace);
    return 0;
}

/* Writes a chunk with its header, given its size and its number of records. The lock must be held. */
static int pfx_write_chunk(pfx_trace *trace, uint8_t *header, uint8_t section, size_t length, uint32_t records)
{
    const bool is_table = pfx_sections[section - 1].flags == 5;
    pfx_chunk_header(trace, header, 0, (uint32_t)length);
    header[4] = pfx_sections[section - 1].number;
    header[8] = pfx_sections[section - 1].flags;
    header[9] = pfx_sections[section - 1].width;
    pfx_put32(header + 20, records);
    pfx_put32(header + 24, is_table ? 0 : trace->chunks - trace->others);
    pfx_put64(header + 32, trace->bases[section - 1]);
    pfx_put32(header + 44, ~pfx_crc(pfx_crc(0xffffffffu, header, 44), header + 48, length));
    if (trace->chunks == 0 || trace->chunks == 0xffffffffu || trace->write(trace->context, header, length + 48) != 0) {
        return -1;
    }
    pfx_note_chunk(trace, header);
    trace->length += length + 48;
    trace->bases[section - 1] += length;
    trace->chunks++;
    trace->others += is_table;
    return 0;
}

@STRINGS_IMPLEMENTATION@
/* Writes the chunk if it contains anything. Returns 0, or -1 on failure. The buffer is empty afterwards. Returns 1 if the lock of the trace
   is not available, in which case the buffer is unchanged. */
static int pfx_send(pfx_emitter *emitter)
{
    pfx_trace *trace = emitter->trace;
    uint8_t section = emitter->section;
    size_t length;
    int failed = 0;
    if (section != 0 && (emitter->events > 0 || emitter->records > 0 || emitter->reported > 0)) {
        length = (size_t)(emitter->at - emitter->buffer) - 48;
        if (!pfx_lock(trace)) {
            return 1;
        }
#ifdef PFX_POSIX
        if (emitter->shared != NULL) {
            emitter->shared->sent = trace->length + length + 48;
            PFX_BARRIER();
        }
#endif
        failed = pfx_write_chunk(trace, emitter->buffer, section, length, emitter->events + emitter->records);
        if (failed) {
            emitter->dropped += emitter->events;
            trace->lost += emitter->events;
        } else {
            emitter->dropped -= emitter->reported;
        }
        pfx_unlock(trace);
    }
    emitter->section = 0;
    emitter->events = 0;
    emitter->records = 0;
    emitter->reported = 0;
    emitter->at = emitter->buffer;
    emitter->end = emitter->buffer;
#ifdef PFX_POSIX
    if (emitter->shared != NULL) {
        PFX_PUBLISH(&emitter->shared->end, 0u);
        PFX_BARRIER();
        emitter->shared->sent = 0;
    }
#endif
    return failed ? -1 : 0;
}

@RECORDS@
/* Writes the chunk and begins the next one, with metadata that sets the width of each field, so that events depend on no state. Returns
   false if the chunk could not be written now, in which case it is kept. A signal handler may call this, so errno is preserved. */
bool pfx_start_chunk(pfx_emitter *emitter, uint8_t section)
{
    uint32_t refused = emitter->refused;
#ifdef PFX_POSIX
    int why = errno;
    int sent = pfx_send(emitter);
    errno = why;
#else
    int sent = pfx_send(emitter);
#endif
    if (sent > 0) {
        return false;
    }
    emitter->dropped += (uint32_t)(refused - emitter->refused_before);
    emitter->refused_before = refused;
    emitter->section = section;
    emitter->end = emitter->limit;
    emitter->at = pfx_put_bytes(emitter->buffer + 48, pfx_sections[section - 1].metadata, pfx_sections[section - 1].length);
    pfx_put_own(emitter, section);
#ifdef PFX_POSIX
    if (emitter->shared != NULL) {
        PFX_PUBLISH(&emitter->shared->chunks, emitter->shared->chunks + 1);
        PFX_PUBLISH(&emitter->shared->section, (uint32_t)pfx_sections[section - 1].number);
    }
#endif
    return true;
}

int pfx_flush(pfx_emitter *emitter)
{
    int answer;
    if (emitter->busy) {
        return -1;
    }
    emitter->busy = 1;
    PFX_BARRIER();
    answer = pfx_send(emitter);
    PFX_BARRIER();
    emitter->busy = 0;
    return answer != 0 ? -1 : 0;
}

int pfx_emitter_end(pfx_emitter *emitter)
{
    int answer = pfx_flush(emitter);
    emitter->busy = 1;
    PFX_BARRIER();
    if ((emitter->dropped > 0 || emitter->refused != emitter->refused_before) &&
        (!pfx_start_chunk(emitter, PFX_DROPPED_SECTION) || pfx_send(emitter) != 0)) {
        /* The end of the trace has room for them. */
        if (pfx_lock(emitter->trace)) {
            emitter->trace->dropped += emitter->dropped;
            pfx_unlock(emitter->trace);
        }
        emitter->dropped = 0;
        answer = -1;
    }
    PFX_BARRIER();
    emitter->busy = 0;
#ifdef PFX_POSIX
    if (emitter->shared != NULL) {
        /* Another thread may own the buffer, because this emitter has none. */
        emitter->busy = 1;
        PFX_PUBLISH(&emitter->shared->thread, 0u);
        emitter->shared = NULL;
    }
#endif
    return answer;
}

/* Writes the number of dropped events that no emitter could report, as events of thread 0. */
static int pfx_report_dropped(pfx_trace *trace)
{
    uint8_t chunk[PFX_OWN_CHUNK];
    pfx_emitter emitter;
    if (trace->dropped == 0) {
        return 0;
    }
    memset(&emitter, 0, sizeof emitter);
    emitter.trace = trace;
    emitter.buffer = chunk;
    emitter.at = chunk;
    emitter.end = chunk;
    emitter.limit = chunk + sizeof chunk;
    emitter.dropped = trace->dropped;
    if (!pfx_start_chunk(&emitter, PFX_DROPPED_SECTION) || pfx_send(&emitter) != 0) {
        return -1;
    }
    trace->dropped = 0;
    return 0;
}

int pfx_end(pfx_trace *trace)
{
    uint8_t header[48];
    uint8_t dtd[32];
    uint8_t footer[16];
    uint64_t whole;
    uint32_t length = 0;
    uint32_t crc;
    size_t i;
    size_t entries;
    if (pfx_report_dropped(trace) != 0 || trace->chunks == 0 || trace->chunks > 0x7ffffff) {
        return -1;
    }
    whole = trace->length;
    entries = ((size_t)trace->chunks - 1) * 32;
    if (entries > 0 && (trace->index == NULL || entries > trace->index_bytes)) {
        return -1;
    }
    for (i = 0; i < sizeof pfx_dtd / sizeof pfx_dtd[0]; i++) {
        length += pfx_dtd[i].length;
    }
    memset(dtd, 0, sizeof dtd);
    pfx_put64(dtd, trace->header);
    dtd[17] = 1;
    pfx_put32(dtd + 20, length);
    pfx_put32(dtd + 24, length);
    memset(footer, 0, sizeof footer);
    pfx_put64(footer, trace->length);
    pfx_put32(footer + 8, ~pfx_crc(0xffffffffu, footer, 8));
    memcpy(footer + 12, "MTFE", 4);
    pfx_chunk_header(trace, header, 2, (uint32_t)(entries + 32));
    crc = pfx_crc(0xffffffffu, header, 44);
    crc = pfx_crc(crc, dtd, 32);
    crc = pfx_crc(crc, (const uint8_t *)trace->index, entries);
    pfx_put32(header + 44, ~crc);
    if (pfx_write(trace, header, 48) != 0 || pfx_write(trace, dtd, 32) != 0 ||
        (entries > 0 && pfx_write(trace, trace->index, entries) != 0) || pfx_write(trace, footer, 16) != 0) {
        trace->length = whole;
        return -1;
    }
    trace->chunks = 0;
    return 0;
}

pfx_bytes pfx_text(const char *text)
{
    pfx_bytes found = {text, 0, 0};
    while (text != NULL && found.length < 256 && text[found.length] != 0) {
        found.length++;
    }
    if (found.length == 256) {
        found.length = 252;
        found.mark = 3;
        while (found.length > 0 && ((uint8_t)text[found.length] & 0xc0) == 0x80) {
            found.length--;
        }
    }
    return found;
}

pfx_bytes pfx_array(const void *bytes, size_t length)
{
    pfx_bytes found = {bytes, 0, 0};
    if (bytes != NULL) {
        found.length = (uint16_t)(length < 1024 ? length : 1024);
    }
    return found;
}

/* Returns whether a word is this name, ignoring case. */
static bool pfx_is_name(const char *word, size_t length, const char *name)
{
    size_t i;
    for (i = 0; i < length && name[i] != 0; i++) {
        char a = word[i];
        char b = name[i];
        a = (char)(a >= 'A' && a <= 'Z' ? a + 32 : a);
        b = (char)(b >= 'A' && b <= 'Z' ? b + 32 : b);
        if (a != b) {
            return false;
        }
    }
    return i == length && name[i] == 0;
}

static bool pfx_number(const char *word, size_t length, uint64_t *all)
{
    bool is_hex = length > 2 && word[0] == '0' && word[1] == 'x';
    unsigned base = is_hex ? 16 : 10;
    uint64_t number = 0;
    size_t i;
    for (i = is_hex ? 2 : 0; i < length; i++) {
        char c = word[i];
        unsigned digit = 16;
        if (c >= '0' && c <= '9') {
            digit = (unsigned)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (unsigned)(c - 'a') + 10;
        } else if (c >= 'A' && c <= 'F') {
            digit = (unsigned)(c - 'A') + 10;
        }
        if (digit >= base || number > (UINT64_MAX - digit) / base) {
            return false;
        }
        number = number * base + digit;
    }
    *all |= number;
    return true;
}

int pfx_set_kinds(const char *kinds)
{
    uint64_t all = 0;
    while (*kinds != 0) {
        size_t length = 0;
        size_t i;
        bool is_known;
        while (kinds[length] != 0 && kinds[length] != ' ' && kinds[length] != ',' && kinds[length] != '\t' && kinds[length] != '|') {
            length++;
        }
        is_known = length == 0;
        for (i = 0; !is_known && i < sizeof pfx_kinds / sizeof pfx_kinds[0]; i++) {
            if (pfx_is_name(kinds, length, pfx_kinds[i])) {
                all |= (uint64_t)1 << i;
                is_known = true;
            }
        }
        if (!is_known && pfx_is_name(kinds, length, "all")) {
            all = UINT64_MAX;
            is_known = true;
        }
        /* Notes are emitted only by Rust programs. */
        is_known = is_known || pfx_is_name(kinds, length, "none") || pfx_is_name(kinds, length, "notes");
        if (!is_known && !pfx_number(kinds, length, &all)) {
            return -1;
        }
        kinds += length;
        kinds += *kinds != 0;
    }
    PFX_STORE(&pfx_control[0], (uint32_t)all);
    PFX_STORE(&pfx_control[1], (uint32_t)(all >> 32));
    return 0;
}

@DESCRIBE@
#ifdef PFX_POSIX
static uint64_t pfx_clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t pfx_file_clock(void *context)
{
    return pfx_clock_of(CLOCK_MONOTONIC) - ((pfx_file *)context)->start;
}

static uint64_t pfx_file_wall(void *context)
{
    (void)context;
    return pfx_clock_of(CLOCK_REALTIME);
}

/* Acquires the lock and, in the same step, records which thread holds it. Otherwise, a signal handler that interrupts this thread would
   wait for itself, and a mutex cannot detect that at every instruction. The address of errno is different in each thread. */
static int pfx_file_lock(void *context)
{
    pfx_file *file = (pfx_file *)context;
    const uintptr_t self = (uintptr_t)&errno;
    const int why = errno;
    /* In a child, which writes nothing, the lock may be held forever by another thread of the parent. */
    while ((uint32_t)getpid() == file->trace.process) {
        const struct timespec moment = {0, 50000};
        uintptr_t holder = 0;
        if (__atomic_compare_exchange_n(&file->holder, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            break;
        }
        if (holder == self) {
            return -1;
        }
        nanosleep(&moment, NULL);
        errno = why;
    }
    return 0;
}

static void pfx_file_unlock(void *context)
{
    pfx_file *file = (pfx_file *)context;
    if ((uint32_t)getpid() == file->trace.process) {
        __atomic_store_n(&file->holder, (uintptr_t)0, __ATOMIC_RELEASE);
    }
}

#ifdef __linux__
#ifndef FALLOC_FL_KEEP_SIZE
/* This function is declared only for programs that enable GNU extensions. */
#define PFX_KEEP_SIZE 1
#if defined(__GLIBC__) && defined(__USE_FILE_OFFSET64)
extern int fallocate(int descriptor, int mode, off_t from, off_t length) __asm__("fallocate64");
#else
extern int fallocate(int descriptor, int mode, off_t from, off_t length);
#endif
#else
#define PFX_KEEP_SIZE FALLOC_FL_KEEP_SIZE
#endif
#endif

/* Reserves disk space for the next bytes of the trace and for its end, which contains the number of dropped events. If the disk is full,
   the chunk is refused but the trace can still be completed. Returns -1 and sets errno if there is no space. */
static int pfx_file_reserve(pfx_file *file, size_t length)
{
#ifdef __linux__
    size_t room = length + PFX_OWN_CHUNK + 4096 + ((size_t)file->trace.chunks + 2) * 32;
    while (file->reserves && fallocate(file->descriptor, PFX_KEEP_SIZE, (off_t)file->trace.length, (off_t)room) != 0) {
        if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO) {
            return -1;
        }
        /* Not every file can reserve space. */
        file->reserves = errno == EINTR;
    }
#else
    (void)file;
    (void)length;
#endif
    return 0;
}

static int pfx_file_write(void *context, const void *bytes, size_t length)
{
    pfx_file *file = (pfx_file *)context;
    const uint8_t *at = (const uint8_t *)bytes;
    if ((uint32_t)getpid() != file->trace.process) {
        errno = EPERM;
        return -1;
    }
    if (!file->ends && pfx_file_reserve(file, length) != 0) {
        file->why = file->why == 0 ? errno : file->why;
        return -1;
    }
    while (length > 0) {
        ssize_t written = write(file->descriptor, at, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            /* Remove the part that was written, if possible. */
            int why = written == 0 ? EIO : errno;
            file->why = file->why == 0 ? why : file->why;
            if (ftruncate(file->descriptor, (off_t)file->trace.length) == 0) {
                (void)lseek(file->descriptor, (off_t)file->trace.length, SEEK_SET);
            }
            errno = why;
            return -1;
        }
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

/* Expands a pattern to a path. */
static int pfx_path(const char *pattern, char *path, size_t room)
{
    size_t at = 0;
    for (; *pattern != 0; pattern++) {
        int more = 1;
        if (pattern[0] == '%' && (pattern[1] == 'p' || pattern[1] == 'n')) {
            pattern++;
            more = *pattern == 'p' ? snprintf(path + at, room - at, "%lu", (unsigned long)getpid())
                                   : snprintf(path + at, room - at, "%s", pfx_name);
        } else {
            path[at] = *pattern;
        }
        if (more < 0 || (size_t)more >= room - at) {
            errno = EINVAL;
            return -1;
        }
        at += (size_t)more;
    }
    path[at] = 0;
    return 0;
}

/* Returns an environment variable. A user who runs the program with the privileges of another user must not choose its files. */
static const char *pfx_environment(const char *name)
{
#ifdef __linux__
    return getauxval(AT_SECURE) != 0 ? NULL : getenv(name);
#else
    return getuid() != geteuid() || getgid() != getegid() ? NULL : getenv(name);
#endif
}

static int pfx_open_file(const char *path, int flags)
{
    int descriptor;
    do {
        descriptor = open(path, flags | O_CLOEXEC, 0666);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

/* Opens the file of a trace and truncates it. The lock, which is visible to other processes, lasts as long as the file is open. Returns -1
   and sets errno: EWOULDBLOCK if another process is writing to the file; EEXIST if the file exists and is not a trace. */
static int pfx_create(const char *path)
{
    struct stat about;
    char first[4];
    ssize_t length;
    int why;
    int descriptor;
    /* A terminal or a pipe: writing to it does not replace anything. */
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        return pfx_open_file(path, O_WRONLY);
    }
    descriptor = pfx_open_file(path, O_RDWR | O_CREAT);
    if (descriptor < 0) {
        return -1;
    }
    /* A file system without locks has no lock to wait for. */
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
        do {
            length = pread(descriptor, first, sizeof first, 0);
        } while (length < 0 && errno == EINTR);
        if (length > 0 && (length < 4 || memcmp(first, "\177MTF", 4) != 0)) {
            errno = EEXIST;
        } else if (length >= 0 && ftruncate(descriptor, 0) == 0) {
            return descriptor;
        }
    }
    why = errno;
    close(descriptor);
    errno = why;
    return -1;
}

/* Inserts the process ID into a path: events.mtf becomes events.1234.mtf. */
static int pfx_numbered(char *path, size_t room)
{
    char number[24];
    size_t digits = (size_t)snprintf(number, sizeof number, ".%lu", (unsigned long)getpid());
    size_t length = strlen(path);
    char *name = strrchr(path, '/');
    char *end = strrchr(name != NULL ? name + 1 : path, '.');
    if (length + digits >= room) {
        errno = EINVAL;
        return -1;
    }
    if (end == NULL) {
        end = path + length;
    }
    memmove(end + digits, end, length - (size_t)(end - path) + 1);
    memcpy(end, number, digits);
    return 0;
}

int pfx_open(pfx_file *file, const char *path)
{
    const char *kinds = pfx_environment("METATF_TELEMETRY_CONTROL");
    if (kinds != NULL && pfx_set_kinds(kinds) != 0) {
        errno = EINVAL;
        return -1;
    }
    memset(file, 0, sizeof *file);
    if (path == NULL) {
        const char *pattern = pfx_environment("METATF_TELEMETRY_FILENAME");
        if (pfx_path(pattern != NULL && *pattern != 0 ? pattern : "%n.%p.mtf", file->path, sizeof file->path) != 0) {
            return -1;
        }
    } else {
        /* A longer path is truncated in messages. */
        size_t length = strlen(path);
        memcpy(file->path, path, length < sizeof file->path ? length : sizeof file->path - 1);
    }
    file->trace.write = pfx_file_write;
    file->trace.clock = pfx_file_clock;
    file->trace.wall = pfx_file_wall;
    file->trace.lock = pfx_file_lock;
    file->trace.unlock = pfx_file_unlock;
    file->trace.context = file;
    file->trace.process = (uint32_t)getpid();
    file->start = pfx_clock_of(CLOCK_MONOTONIC);
    file->reserves = true;
    file->descriptor = pfx_create(path != NULL ? path : file->path);
    /* Two processes with the same environment. */
    if (file->descriptor < 0 && errno == EWOULDBLOCK && path == NULL && pfx_numbered(file->path, sizeof file->path) == 0) {
        file->descriptor = pfx_create(file->path);
    }
    if (file->descriptor < 0) {
        return -1;
    }
    if (pfx_begin(&file->trace) != 0) {
        int why = errno;
        close(file->descriptor);
        errno = why;
        return -1;
    }
    if (path != NULL && kinds == NULL && (PFX_LOAD(&pfx_control[0]) | PFX_LOAD(&pfx_control[1])) == 0) {
        pfx_set_kinds("all");
    }
    return 0;
}

@SHARED@
int pfx_close(pfx_file *file)
{
    pfx_trace *trace = &file->trace;
    bool is_whole;
    int why;
    pfx_unshare(file);
    file->ends = true;
    /* Without memory for an index, the trace ends with its last chunk. */
    is_whole = (trace->index != NULL ? pfx_end(trace) : pfx_report_dropped(trace)) == 0;
    why = file->why != 0 ? file->why : is_whole ? 0 : ENOMEM;
    /* Releases the reserved space, and removes a partially written index. */
    if (ftruncate(file->descriptor, (off_t)trace->length) != 0) {
        /* A pipe or a terminal has no length. */
    }
    /* The file is closed even if the call is interrupted. */
    if (close(file->descriptor) != 0 && errno != EINTR && why == 0) {
        why = errno;
    }
    if (why == 0) {
        return 0;
    }
#ifndef PFX_QUIET
    if ((uint32_t)getpid() == trace->process) {
        if (trace->lost > 0) {
            fprintf(stderr, "%s: %llu events were lost: %s\n", file->path, (unsigned long long)trace->lost, strerror(why));
        } else {
            fprintf(stderr, "%s: the trace is not complete: %s\n", file->path, strerror(why));
        }
    }
#endif
    errno = why;
    return -1;
}
#endif

PFX_C_END
#ifdef __cplusplus
}
#endif
#endif /* PFX_IMPLEMENTATION */
