#ifdef __linux__
/* What the file of buffers begins with. metatf-telemetry/src/layout.rs has the same, with other words behind. */
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
#define PFX_PAGE 4096

/* Of the process that called pfx_share. */
static pfx_file *pfx_sharing;

static pfx_shared_buffer *pfx_shared_at(const pfx_file *file, uint32_t index)
{
    const pfx_shared_head *head = (const pfx_shared_head *)(void *)file->shared;
    return (pfx_shared_buffer *)(void *)(file->shared + (size_t)(head->buffers_at + index * (PFX_PAGE + head->buffer_bytes)));
}

/* Obeys other processes, and shows them which kinds are on. */
static void *pfx_obey(void *context)
{
    pfx_file *file = (pfx_file *)context;
    pfx_shared_head *head = (pfx_shared_head *)(void *)file->shared;
    uint32_t seen = 0;
    pthread_mutex_lock(&file->mutex);
    while (!file->shared_ends) {
        struct timespec until;
        uint32_t count = __atomic_load_n(&head->wanted_count, __ATOMIC_ACQUIRE);
        if (count != seen) {
            seen = count;
            PFX_STORE(&pfx_control[0], (uint32_t)head->wanted);
            PFX_STORE(&pfx_control[1], (uint32_t)(head->wanted >> 32));
        }
        head->control = PFX_LOAD(&pfx_control[0]) | (uint64_t)PFX_LOAD(&pfx_control[1]) << 32;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&file->shared_wakes, &file->mutex, &until);
    }
    pthread_mutex_unlock(&file->mutex);
    return NULL;
}

/* Leaves the parent's buffers, in a forked child: what it emits reaches nobody. */
static void pfx_in_child(void)
{
    pfx_file *file = pfx_sharing;
    if (file != NULL) {
        int zeros = open("/dev/zero", O_RDWR | O_CLOEXEC);
        (void)mmap(file->shared, file->shared_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                   zeros >= 0 ? zeros : file->shared_descriptor, 0);
        if (zeros >= 0) {
            close(zeros);
        }
        close(file->shared_descriptor);
        pfx_sharing = NULL;
    }
}

/* Says in the trace whose it is and where its buffers are. */
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

/* Makes the file of buffers, as large as it will be: a full disk is an error here, and no signal later. */
static int pfx_make_shared(pfx_file *file, size_t bytes)
{
    const char *folder = pfx_environment("METATF_TELEMETRY_FOLDER");
    const char *at;
    void *made;
    int why;
    int length = snprintf(file->shared_path, sizeof file->shared_path, "%s/metatf.%lu.%llu",
                          folder != NULL && *folder != 0 ? folder : "/dev/shm", (unsigned long)getpid(),
                          (unsigned long long)pfx_clock_of(CLOCK_MONOTONIC));
    /* The path goes into JSON as it is. */
    for (at = file->shared_path; length > 0 && (uint8_t)*at >= ' ' && *at != '"' && *at != '\\'; at++) {
    }
    if (length < 0 || (size_t)length >= sizeof file->shared_path || *at != 0) {
        errno = EINVAL;
        return -1;
    }
    file->shared_descriptor = open(file->shared_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->shared_descriptor < 0) {
        return -1;
    }
    /* The lock says that the process lives. */
    (void)flock(file->shared_descriptor, LOCK_EX | LOCK_NB);
    why = posix_fallocate(file->shared_descriptor, 0, (off_t)bytes);
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
    static bool is_registered;
    if (!is_registered && (why = pthread_atfork(NULL, NULL, pfx_in_child)) != 0) {
        return why;
    }
    is_registered = true;
    why = pthread_cond_init(&file->shared_wakes, NULL);
    if (why != 0) {
        return why;
    }
    /* Signals are for the threads of the program. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    why = pthread_create(&file->shared_thread, NULL, pfx_obey, file);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why != 0) {
        pthread_cond_destroy(&file->shared_wakes);
    }
    return why;
}

int pfx_share(pfx_file *file, uint32_t buffers, size_t bytes)
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
    if (file->shared != NULL || pfx_sharing != NULL || buffers == 0 || buffers > 4096 || bytes < PFX_BUFFER_LEAST || bytes > (8u << 20)) {
        errno = EINVAL;
        return -1;
    }
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
    head->version = 3;
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
    pfx_sharing = file;
    return 0;
}

int pfx_emitter_begin_shared(pfx_emitter *emitter, pfx_file *file)
{
    const pfx_shared_head *head = (const pfx_shared_head *)(void *)file->shared;
    uint32_t i;
    for (i = 0; head != NULL && i < head->buffers; i++) {
        pfx_shared_buffer *buffer = pfx_shared_at(file, i);
        uint32_t nobody = 0;
        if (__atomic_compare_exchange_n(&buffer->thread, &nobody, UINT32_MAX, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            pfx_emitter_begin(emitter, &file->trace, (uint8_t *)buffer + PFX_PAGE, (size_t)head->buffer_bytes);
            emitter->shared = buffer;
            PFX_PUBLISH(&buffer->thread, emitter->thread);
            return 0;
        }
    }
    errno = EAGAIN;
    return -1;
}

/* Removes the buffers, after all emitters. */
static void pfx_unshare(pfx_file *file)
{
    if (file->shared == NULL || pfx_sharing != file) {
        return;
    }
    pthread_mutex_lock(&file->mutex);
    file->shared_ends = true;
    pthread_cond_signal(&file->shared_wakes);
    pthread_mutex_unlock(&file->mutex);
    pthread_join(file->shared_thread, NULL);
    pthread_cond_destroy(&file->shared_wakes);
    pfx_sharing = NULL;
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

