/*
 * Functions with which a program reports marks and phases to hatf record, which appear in the trace among the heap
 * calls, and controls when it is recorded. Include this file and call the functions; no library is needed. If the
 * program is not being recorded, they do nothing, at the cost of a load and a jump.
 *
 *     #include "hatf.h"
 *
 *     hatf_phase_begin("load");
 *     load();
 *     hatf_phase_end("load");
 *     hatf_mark("ready");
 *
 *     hatf_stop();
 *     what_is_of_no_interest();
 *     hatf_start();
 *
 * Names are C strings, by convention in UTF-8. Names longer than 1000 bytes are truncated. Phases may nest, overlap,
 * and end in a different thread: an end applies to the most recently started phase with that name. All functions may
 * be called from any thread and from signal handlers, and preserve errno.
 *
 * This file is for C and C++ with GCC and Clang on Linux. Elsewhere the functions do nothing. Programs in other
 * languages may look up the hatf_recorder_ functions with dlsym.
 */
#ifndef HATF_H
#define HATF_H

#if defined(__linux__) && defined(__GNUC__)

#ifdef __cplusplus
extern "C" {
#endif
/* Functions of the recorder. They are weak, so the program links and starts without them. */
extern void hatf_recorder_mark(const char *name) __attribute__((weak));
extern void hatf_recorder_phase_begin(const char *name) __attribute__((weak));
extern void hatf_recorder_phase_end(const char *name) __attribute__((weak));
extern void hatf_recorder_start(void) __attribute__((weak));
extern void hatf_recorder_stop(void) __attribute__((weak));
extern int hatf_recorder_is_recording(void) __attribute__((weak));
extern void hatf_recorder_dump(void) __attribute__((weak));
#ifdef __cplusplus
}
#endif

#if defined(__x86_64__) && defined(__LP64__)
/* Reads the global offset table, which the dynamic linker fills: in a program that is not position-independent, the
 * compiler would leave the address to the static linker, which does not know the recorder. */
#define HATF_FIND(function, found)                                                                                     \
    __asm__(".weak " #function "\n\tmovq " #function "@GOTPCREL(%%rip), %0" : "=r"(found))
#else
#define HATF_FIND(function, found) ((found) = (function))
#endif

#define HATF_REPORT(function, name)                                                                                    \
    do {                                                                                                               \
        void (*found)(const char *);                                                                                   \
        HATF_FIND(function, found);                                                                                    \
        if (found) {                                                                                                   \
            found(name);                                                                                               \
        }                                                                                                              \
    } while (0)

#define HATF_CALL(function)                                                                                            \
    do {                                                                                                               \
        void (*found)(void);                                                                                           \
        HATF_FIND(function, found);                                                                                    \
        if (found) {                                                                                                   \
            found();                                                                                                   \
        }                                                                                                              \
    } while (0)

#else

#define HATF_REPORT(function, name) ((void)(name))
#define HATF_CALL(function) ((void)0)

#endif

/* Records a mark with this name. */
static inline void hatf_mark(const char *name) { HATF_REPORT(hatf_recorder_mark, name); }

/* Records the start of a phase with this name. */
static inline void hatf_phase_begin(const char *name) { HATF_REPORT(hatf_recorder_phase_begin, name); }

/* Records the end of the most recently started phase with this name. */
static inline void hatf_phase_end(const char *name) { HATF_REPORT(hatf_recorder_phase_end, name); }

/* Resumes recording of this process if it is off, because of hatf_stop or hatf record --start-off. */
static inline void hatf_start(void) { HATF_CALL(hatf_recorder_start); }

/* Stops recording of this process. Heap calls then cost almost nothing extra. */
static inline void hatf_stop(void) { HATF_CALL(hatf_recorder_stop); }

/* Returns 1 if this process is being recorded, 0 if it is not or if recording is off. */
static inline int hatf_is_recording(void) {
#if defined(__linux__) && defined(__GNUC__)
    int (*found)(void);
    HATF_FIND(hatf_recorder_is_recording, found);
    return found ? found() : 0;
#else
    return 0;
#endif
}

/* Requests a trace of the retained events of this process from hatf record --keep. Returns immediately; the trace is
 * written shortly afterwards. */
static inline void hatf_dump(void) { HATF_CALL(hatf_recorder_dump); }

#undef HATF_REPORT
#undef HATF_CALL
#undef HATF_FIND

#endif
