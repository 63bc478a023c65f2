#ifdef __linux__
/* The start of the buffers file. telemetry/metatf-telemetry/src/layout.rs declares the same structure with further words at the end. */
typedef struct pfx_shared_head {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order;
    uint64_t bytes;
    uint64_t buffers_at;
    uint64_t buffer_bytes;
    uint32_t buffers;
    uint32_t clock;
    uint32_t texts[4];
    uint32_t process;
    uint32_t policy;
    uint64_t wanted;
    uint32_t wanted_count;
    uint32_t reserved;
    uint64_t control;
    uint64_t start_stamp;
    uint64_t start_nanoseconds;
    uint64_t start_wall;
} pfx_shared_head;

#define PFX_SHARED_TEXTS 8192
#define PFX_SHARED_VERSION 3u
#define PFX_PAGE 4096

/* Number of files of dead processes to keep for postmortem. */
#define PFX_KEPT 4

/* State of the process that called pfx_share. */
static pfx_file *pfx_sharing;

static pfx_shared_buffer *pfx_shared_at(const pfx_file *file, uint32_t index)
{
    return (pfx_shared_buffer *)(void *)(file->shared + file->buffers_at + index * (PFX_PAGE + file->buffer_bytes));
}

/* Applies requests of other processes, and shows them the enabled kinds. */
static void *pfx_obey(void *context)
{
    pfx_file *file = (pfx_file *)context;
    pfx_shared_head *head = (pfx_shared_head *)(void *)file->shared;
    uint32_t seen = 0;
    pthread_mutex_lock(&file->shared_mutex);
    while (!file->shared_ends) {
        struct timespec until;
        uint32_t count = __atomic_load_n(&head->wanted_count, __ATOMIC_ACQUIRE);
        if (count != seen) {
            /* A process that changes the word changes the count afterwards. */
            uint64_t wanted = *(const volatile uint64_t *)&head->wanted;
            seen = count;
            PFX_STORE(&pfx_control[0], (uint32_t)wanted);
            PFX_STORE(&pfx_control[1], (uint32_t)(wanted >> 32));
        }
        head->control = PFX_LOAD(&pfx_control[0]) | (uint64_t)PFX_LOAD(&pfx_control[1]) << 32;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&file->shared_wakes, &file->shared_mutex, &until);
    }
    pthread_mutex_unlock(&file->shared_mutex);
    return NULL;
}

/* Detaches a forked child from the parent's buffers. Its events are discarded. */
static void pfx_in_child(void)
{
    pfx_file *file = __atomic_load_n(&pfx_sharing, __ATOMIC_ACQUIRE);
    if (file == NULL) {
        return;
    }
    if (file->obeys) {
        int zeros = open("/dev/zero", O_RDWR | O_CLOEXEC);
        (void)mmap(file->shared, file->shared_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                   zeros >= 0 ? zeros : file->shared_descriptor, 0);
        if (zeros >= 0) {
            close(zeros);
        }
        close(file->shared_descriptor);
        /* The thread does not exist. */
        file->obeys = false;
    }
    __atomic_store_n(&pfx_sharing, (pfx_file *)NULL, __ATOMIC_RELEASE);
}

/* Writes the process ID and the location of the buffers to the trace. */
static int pfx_name_shared(pfx_file *file, const pfx_shared_head *head)
{
    pfx_trace *trace = &file->trace;
    uint8_t chunk[48 + sizeof file->shared_path + 200];
    size_t room = sizeof chunk - 48;
    int length = snprintf((char *)chunk + 48, room,
                          "{\"telemetry\":{\"process\":%lu,\"start_wall_ns\":%llu,\"start_monotonic_ns\":%llu,\"clock\":\"monotonic\",\"buffers\":\"%s\"}}",
                          (unsigned long)trace->process, (unsigned long long)head->start_wall,
                          (unsigned long long)head->start_nanoseconds, file->shared_path);
    if (length < 0 || (size_t)length >= room) {
        errno = EINVAL;
        return -1;
    }
    pfx_chunk_header(trace, chunk, 3, (uint32_t)length);
    pfx_put32(chunk + 44, ~pfx_crc(pfx_crc(0xffffffffu, chunk, 44), chunk + 48, (size_t)length));
    if (trace->write(trace->context, chunk, (size_t)length + 48) != 0) {
        return -1;
    }
    pfx_note_chunk(trace, chunk);
    trace->length += (uint64_t)length + 48;
    trace->chunks++;
    trace->others++;
    return 0;
}

/* Opens a buffers file of a dead process of this user. Returns -1 if it is not such a file. */
static int pfx_open_dead(int folder, const char *name, struct stat *about)
{
    uint8_t first[12];
    uint32_t version = PFX_SHARED_VERSION;
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0 && fstat(file, about) == 0 && S_ISREG(about->st_mode) && about->st_uid == geteuid() &&
        pread(file, first, sizeof first, 0) == (ssize_t)sizeof first && memcmp(first + 8, &version, 4) == 0 &&
        (memcmp(first, "MTFTELC1", 8) == 0 || memcmp(first, "MTFTELE1", 8) == 0) && flock(file, LOCK_SH | LOCK_NB) == 0) {
        return file;
    }
    if (file >= 0) {
        close(file);
    }
    return -1;
}

/* Removes the buffers that killed processes of this user left in a directory, except for the newest ones. */
static void pfx_sweep(const char *path)
{
    struct {
        char name[64];
        struct timespec changed;
    } kept[PFX_KEPT];
    size_t count = 0;
    const struct dirent *entry;
    DIR *folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        size_t length = strlen(entry->d_name);
        size_t oldest = 0;
        size_t i;
        struct stat about;
        int file;
        if (length >= sizeof kept[0].name || strncmp(entry->d_name, "metatf.", 7) != 0 ||
            strspn(entry->d_name + 7, "0123456789.") != length - 7) {
            continue;
        }
        file = pfx_open_dead(dirfd(folder), entry->d_name, &about);
        if (file < 0) {
            continue;
        }
        close(file);
        for (i = 1; i < count; i++) {
            const struct timespec *a = &kept[i].changed;
            const struct timespec *b = &kept[oldest].changed;
            oldest = a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec) ? i : oldest;
        }
        if (count < PFX_KEPT) {
            oldest = count++;
        } else if (about.st_mtim.tv_sec < kept[oldest].changed.tv_sec ||
                   (about.st_mtim.tv_sec == kept[oldest].changed.tv_sec && about.st_mtim.tv_nsec < kept[oldest].changed.tv_nsec)) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
            continue;
        } else {
            (void)unlinkat(dirfd(folder), kept[oldest].name, 0);
        }
        memcpy(kept[oldest].name, entry->d_name, length + 1);
        kept[oldest].changed = about.st_mtim;
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* Creates the buffers file in its final size, so that a full disk causes an error here rather than a signal later. */
static int pfx_make_shared(pfx_file *file, size_t bytes)
{
    const char *set = pfx_environment("METATF_TELEMETRY_FOLDER");
    const char *folder = set != NULL && *set != 0 ? set : "/dev/shm";
    const char *at;
    void *made;
    int why;
    int length = snprintf(file->shared_path, sizeof file->shared_path, "%s/metatf.%lu.%llu", folder, (unsigned long)getpid(),
                          (unsigned long long)pfx_clock_of(CLOCK_MONOTONIC));
    /* The path is inserted into JSON without escapes. */
    for (at = file->shared_path; length > 0 && (uint8_t)*at >= ' ' && *at != '"' && *at != '\\'; at++) {
    }
    if (length < 0 || (size_t)length >= sizeof file->shared_path || *at != 0) {
        errno = EINVAL;
        return -1;
    }
    pfx_sweep(folder);
    do {
        file->shared_descriptor = open(file->shared_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    } while (file->shared_descriptor < 0 && errno == EINTR);
    if (file->shared_descriptor < 0) {
        return -1;
    }
    /* The lock shows that the process is alive. */
    (void)flock(file->shared_descriptor, LOCK_EX | LOCK_NB);
    do {
        why = posix_fallocate(file->shared_descriptor, 0, (off_t)bytes);
    } while (why == EINTR);
    made = why == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->shared_descriptor, 0) : MAP_FAILED;
    if (made == MAP_FAILED) {
        why = why == 0 ? errno : why;
        unlink(file->shared_path);
        close(file->shared_descriptor);
        errno = why;
        return -1;
    }
    file->shared = (uint8_t *)made;
    file->shared_bytes = bytes;
    return 0;
}

static int pfx_start_obeying(pfx_file *file)
{
    sigset_t all;
    sigset_t before;
    int why;
    /* Only one thread at a time executes this. */
    static bool is_registered;
    if (!is_registered && (why = pthread_atfork(NULL, NULL, pfx_in_child)) != 0) {
        return why;
    }
    is_registered = true;
    why = pthread_mutex_init(&file->shared_mutex, NULL);
    if (why == 0 && (why = pthread_cond_init(&file->shared_wakes, NULL)) != 0) {
        pthread_mutex_destroy(&file->shared_mutex);
    }
    if (why != 0) {
        return why;
    }
    /* Signals are left to the threads of the program. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    why = pthread_create(&file->shared_thread, NULL, pfx_obey, file);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    file->obeys = why == 0;
    if (why != 0) {
        pthread_cond_destroy(&file->shared_wakes);
        pthread_mutex_destroy(&file->shared_mutex);
    }
    return why;
}

static void pfx_stop_obeying(pfx_file *file)
{
    if (file->obeys) {
        pthread_mutex_lock(&file->shared_mutex);
        file->shared_ends = true;
        pthread_cond_signal(&file->shared_wakes);
        pthread_mutex_unlock(&file->shared_mutex);
        pthread_join(file->shared_thread, NULL);
        pthread_cond_destroy(&file->shared_wakes);
        pthread_mutex_destroy(&file->shared_mutex);
        file->obeys = false;
    }
}

#ifdef __GNUC__
/* Unloading a library also unloads the code of the thread. The buffers are kept, because their events may not be in any trace. */
__attribute__((destructor)) static void pfx_unloaded(void)
{
    pfx_file *file = __atomic_load_n(&pfx_sharing, __ATOMIC_ACQUIRE);
    if (file != NULL) {
        pfx_stop_obeying(file);
    }
}
#endif

static int pfx_make_buffers(pfx_file *file, uint32_t buffers, size_t bytes)
{
    pfx_shared_head *head;
    char self[40];
    char trace[1024];
    ssize_t trace_length;
    size_t all;
    size_t i;
    uint8_t *at;
    uint32_t lengths[4] = {0, 0, sizeof pfx_source - 1, 0};
    int why;
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->descriptor);
    trace_length = readlink(self, trace, sizeof trace);
    if (trace_length < 0 || (size_t)trace_length == sizeof trace) {
        errno = trace_length < 0 ? errno : EINVAL;
        return -1;
    }
    for (i = 0; i < sizeof pfx_dtd / sizeof pfx_dtd[0]; i++) {
        lengths[0] += pfx_dtd[i].length;
    }
    for (i = 0; i < sizeof pfx_table / sizeof pfx_table[0]; i++) {
        lengths[1] += pfx_table[i].length;
    }
    lengths[3] = (uint32_t)trace_length;
    bytes = (bytes + PFX_PAGE - 1) / PFX_PAGE * PFX_PAGE;
    all = PFX_SHARED_TEXTS + lengths[0] + lengths[1] + lengths[2] + lengths[3];
    all = (all + PFX_PAGE - 1) / PFX_PAGE * PFX_PAGE;
    if (buffers > (SIZE_MAX / 2 - all) / (PFX_PAGE + bytes)) {
        errno = EINVAL;
        return -1;
    }
    if (pfx_make_shared(file, all + buffers * (PFX_PAGE + bytes)) != 0) {
        return -1;
    }
    file->buffers_at = all;
    file->buffer_bytes = bytes;
    file->buffers = buffers;
    head = (pfx_shared_head *)(void *)file->shared;
    at = file->shared + PFX_SHARED_TEXTS;
    for (i = 0; i < sizeof pfx_dtd / sizeof pfx_dtd[0]; i++) {
        at = pfx_put_bytes(at, pfx_dtd[i].text, pfx_dtd[i].length);
    }
    for (i = 0; i < sizeof pfx_table / sizeof pfx_table[0]; i++) {
        at = pfx_put_bytes(at, pfx_table[i].text, pfx_table[i].length);
    }
    at = pfx_put_bytes(at, pfx_source, lengths[2]);
    pfx_put_bytes(at, trace, lengths[3]);
    memcpy(head->texts, lengths, sizeof lengths);
    head->version = PFX_SHARED_VERSION;
    head->byte_order = 0x01020304;
    head->bytes = file->shared_bytes;
    head->buffers_at = all;
    head->buffer_bytes = bytes;
    head->buffers = buffers;
    /* Nanoseconds of CLOCK_MONOTONIC. */
    head->clock = 2;
    head->process = file->trace.process;
    head->start_nanoseconds = file->start;
    head->start_wall = pfx_clock_of(CLOCK_REALTIME) - pfx_file_clock(file);
    head->control = PFX_LOAD(&pfx_control[0]) | (uint64_t)PFX_LOAD(&pfx_control[1]) << 32;
    PFX_BARRIER();
    memcpy(&head->magic, "MTFTELC1", 8);
    why = pfx_name_shared(file, head) == 0 ? pfx_start_obeying(file) : errno;
    if (why != 0) {
        unlink(file->shared_path);
        munmap(file->shared, file->shared_bytes);
        close(file->shared_descriptor);
        file->shared = NULL;
        errno = why;
        return -1;
    }
    return 0;
}

int pfx_share(pfx_file *file, uint32_t buffers, size_t bytes)
{
    pfx_file *nobody = NULL;
    if (file->shared != NULL || buffers == 0 || buffers > 4096 || bytes < PFX_BUFFER_LEAST || bytes > (8u << 20) ||
        !__atomic_compare_exchange_n(&pfx_sharing, &nobody, file, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        errno = EINVAL;
        return -1;
    }
    if (pfx_make_buffers(file, buffers, bytes) != 0) {
        __atomic_store_n(&pfx_sharing, (pfx_file *)NULL, __ATOMIC_RELEASE);
        return -1;
    }
    return 0;
}

int pfx_emitter_begin_shared(pfx_emitter *emitter, pfx_file *file)
{
    uint32_t i;
    for (i = 0; file->shared != NULL && i < file->buffers; i++) {
        pfx_shared_buffer *buffer = pfx_shared_at(file, i);
        uint32_t nobody = 0;
        if (__atomic_compare_exchange_n(&buffer->thread, &nobody, UINT32_MAX, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            if (pfx_emitter_begin(emitter, &file->trace, (uint8_t *)buffer + PFX_PAGE, file->buffer_bytes) != 0) {
                PFX_PUBLISH(&buffer->thread, 0u);
                break;
            }
            emitter->shared = buffer;
            PFX_PUBLISH(&buffer->thread, emitter->thread);
            return 0;
        }
    }
    errno = EAGAIN;
    return -1;
}

/* Removes the buffers after all emitters have ended. */
static void pfx_unshare(pfx_file *file)
{
    if (file->shared == NULL || __atomic_load_n(&pfx_sharing, __ATOMIC_ACQUIRE) != file) {
        return;
    }
    pfx_stop_obeying(file);
    __atomic_store_n(&pfx_sharing, (pfx_file *)NULL, __ATOMIC_RELEASE);
    unlink(file->shared_path);
    munmap(file->shared, file->shared_bytes);
    close(file->shared_descriptor);
    file->shared = NULL;
}
#else
int pfx_share(pfx_file *file, uint32_t buffers, size_t bytes)
{
    (void)file;
    (void)buffers;
    (void)bytes;
    errno = ENOSYS;
    return -1;
}

int pfx_emitter_begin_shared(pfx_emitter *emitter, pfx_file *file)
{
    (void)emitter;
    (void)file;
    errno = ENOSYS;
    return -1;
}

static void pfx_unshare(pfx_file *file)
{
    (void)file;
}
#endif

