/*
 * What a program reports to hatf record: marks and phases, which stand in the trace between the calls of its
 * heap, and when it is to be recorded. Include this file and call the functions; there is nothing to link with. Where the program is not recorded they
 * do nothing, at the cost of a load and a jump.
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
 * Names are C strings, in UTF-8 by custom; of one longer than 1000 bytes the first 1000 count. Phases may nest, overlap,
 * and end in another thread: the one that began last under the name ends. All functions may be called from any thread,
 * and from signal handlers; they keep errno.
 *
 * For C and C++, GCC and Clang, on Linux. Elsewhere the functions do nothing. A program in another language may look the
 * hatf_recorder_ functions up with dlsym.
 */
#ifndef HATF_H
#define HATF_H

#if defined(__linux__) && defined(__GNUC__)

#ifdef __cplusplus
extern "C" {
#endif
/* The recorder's. Weak: the program links, and starts, without them. */
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
/* By way of the table of addresses that the dynamic linker fills: in a program that is not position-independent a
 * compiler would ask the static linker, which knows of no recorder. */
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

/* Records a mark of this name. */
static inline void hatf_mark(const char *name) { HATF_REPORT(hatf_recorder_mark, name); }

/* Records that a phase of this name begins. */
static inline void hatf_phase_begin(const char *name) { HATF_REPORT(hatf_recorder_phase_begin, name); }

/* Records that the phase that began last under this name ends. */
static inline void hatf_phase_end(const char *name) { HATF_REPORT(hatf_recorder_phase_end, name); }

/* Has recording of this process go on, if it is off: because it was stopped, or by hatf record --start-off. */
static inline void hatf_start(void) { HATF_CALL(hatf_recorder_start); }

/* Stops recording of this process. Calls cost nearly nothing then. */
static inline void hatf_stop(void) { HATF_CALL(hatf_recorder_stop); }

/* Returns 1 if this process is recorded now, 0 if it is not recorded, or recording is off. */
static inline int hatf_is_recording(void) {
#if defined(__linux__) && defined(__GNUC__)
    int (*found)(void);
    HATF_FIND(hatf_recorder_is_recording, found);
    return found ? found() : 0;
#else
    return 0;
#endif
}

/* Has hatf record --keep write a trace of what it has of this process. Returns at once; the trace is there a moment later. */
static inline void hatf_dump(void) { HATF_CALL(hatf_recorder_dump); }

#undef HATF_REPORT
#undef HATF_CALL
#undef HATF_FIND

#endif
