#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that remain valid until the next call of pfx_next or pfx_close. */
typedef struct pfx_bytes {
    const uint8_t *data;
    size_t length;
} pfx_bytes;

@STRUCTS@
/* A change of the encoding of later records, which the reader has applied. */
typedef struct pfx_metadata {
    uint32_t record; /* tag of the changed record */
    uint8_t field; /* index of the changed field; the tag has index 0 */
    uint8_t property; /* the change: docs/specification.md, section 4.1 */
    uint8_t values; /* number of values: 0, 1 or 2 */
    uint64_t value;
    uint64_t value_2;
} pfx_metadata;

/* The kinds of records. The last four kinds are returned only if `all` is set in the reader. */
typedef enum pfx_record_kind {
@KINDS@
    PFX_RECORD_COMMENT, /* as.comment */
    PFX_RECORD_METADATA, /* as.metadata */
    PFX_RECORD_SECTION, /* as.number: the section that begins, in a trace of version 0 */
    PFX_RECORD_GROUP /* as.number: the group that begins, in a trace of version 1 */
} pfx_record_kind;

/* A record. Bytes and lists remain valid until the next call of pfx_next or pfx_close. */
typedef struct pfx_record {
    pfx_record_kind kind;
    uint8_t section; /* number of the section that contains the record; 0 for the global section */
    bool shared; /* whether this is an element of a shared table */
    uint64_t offset; /* position in the file (version 0) or in the content of its section (version 1) */
    union {
@MEMBERS@
        pfx_bytes comment;
        pfx_metadata metadata;
        uint64_t number;
    } as;
} pfx_record;

/* The kinds of errors: docs/specification.md, section 7.1. */
typedef enum pfx_error_kind {
    PFX_OK,
    PFX_ERROR_NOT_A_TRACE,
    PFX_ERROR_TRUNCATED,
    PFX_ERROR_INVALID,
    PFX_ERROR_UNKNOWN_FEATURES,
    PFX_ERROR_CHECKSUM,
    PFX_ERROR_CODEC,
    PFX_ERROR_DECOMPRESS,
    PFX_ERROR_RECORD_COUNT,
    PFX_ERROR_UNKNOWN_SECTION,
    PFX_ERROR_UNKNOWN_TAG,
    PFX_ERROR_NOT_CONSTANT,
    PFX_ERROR_EXPRESSION,
    PFX_ERROR_LENGTH,
    PFX_ERROR_NO_END,
    PFX_ERROR_TOO_MANY_ITEMS,
    PFX_ERROR_NO_ELEMENT,
    PFX_ERROR_METADATA,
    PFX_ERROR_MISMATCH, /* the trace was written with another DTD */
    PFX_ERROR_MISSING_CODEC, /* the reader was compiled without the codec */
    PFX_ERROR_LIMIT, /* a limit of this reader is exceeded, or memory is exhausted */
    PFX_ERROR_IO
} pfx_error_kind;

/* An error and its location. */
typedef struct pfx_error {
    pfx_error_kind kind;
    uint64_t offset; /* file offset of the first byte at fault or, if in_content is set, of the header of its chunk */
    bool in_content; /* whether the chunk is compressed or filtered */
    uint64_t content_offset; /* if in_content is set: offset of the byte in the content of the chunk */
    bool in_record; /* whether the following fields are set */
    uint64_t record_offset; /* offset of the record, in the file or in the content of the chunk */
    uint8_t section; /* number of the section */
    const char *record; /* name of the record; NULL if its tag is unknown */
    const char *field; /* path of the field; NULL if the complete record is at fault */
    char message[160];
} pfx_error;

/* The number of bytes for the lists of a single record. Longer lists are an error. */
#ifndef PFX_LIST_BYTES
#define PFX_LIST_BYTES 268435456u
#endif

/* The content of an extent or a chunk, which consists of complete records of one section. */
typedef struct pfx_content_ {
    const uint8_t *bytes;
    size_t length;
    size_t at;
    uint64_t origin; /* file offset of the first byte or, if packed, of the header of the chunk */
    uint64_t base; /* offset of the first byte in the content of the section, or in the file in version 0 */
    bool packed; /* whether file offsets of single bytes do not exist */
    bool counted; /* whether the number of records is known */
    bool shared; /* whether this is part of a shared table */
    uint64_t count_offset; /* file offset of the number of records */
    uint32_t count; /* the number of records, if it is known */
    uint32_t found; /* the number of records so far */
    size_t section; /* index of the section */
} pfx_content_;

/* A buffer that grows with the data in it. */
typedef struct pfx_buffer_ {
    uint8_t *bytes;
    size_t room;
} pfx_buffer_;

/* A reader of a trace. Initialize it with one of the functions below. */
typedef struct pfx_reader {
    /* Whether pfx_next also returns the elements of stream sections, comments, metadata, and starts of sections and groups. May be
       changed at any time. */
    bool all;
    /* The error after which pfx_next returns -1. */
    pfx_error error;
    /* At the end of a trace of version 1: whether its writer closed it. */
    bool closed;

    /* The other fields are private. */
    const uint8_t *memory; /* the file if it is in memory, else NULL */
    FILE *file;
    uint64_t size; /* size of the file if it is in memory */
    uint64_t at; /* offset of the next byte of the file */
    uint8_t class_bytes; /* size of an `int`: 4 or 8 */
    bool big; /* byte order of numbers in records */
    uint8_t version;
    uint8_t state; /* the part of the file that is being read */
    uint64_t start; /* version 0: offset of the first record */
    uint64_t table; /* version 0: offset of the section table */
    uint64_t extents; /* version 0: number of entries in the table */
    uint64_t extent; /* version 0: index of the next entry */
    uint32_t sequence; /* version 1: number of the next chunk */
    int64_t group; /* version 1: number of the current group, or -1 */
    uint32_t index_crc; /* version 1: CRC of the expected index */
    struct pfx_section_state_ *sections;
    pfx_content_ content;
    pfx_buffer_ stored; /* the payload of a chunk */
    pfx_buffer_ plain; /* the payload after decompression */
    pfx_buffer_ unfiltered; /* the payload after the filter is undone */
    struct pfx_block_ *lists; /* the lists of the current record */
    size_t list_bytes;
    const struct pfx_record_info_ *info; /* the record that is being decoded */
    size_t record_start;
    uint64_t items; /* the number of repeated items in the current record */
    bool overflow; /* whether the result of an expression is out of range */
} pfx_reader;

/* Opens a trace in memory. The bytes must remain valid until pfx_close. Returns 0, or -1 if `reader->error` is set. After an error,
   pfx_close must still be called. */
int pfx_open_memory(pfx_reader *reader, const void *bytes, size_t size);
/* Opens a trace at the current position of a file, which may be a pipe. pfx_close does not close the file. */
int pfx_open_file(pfx_reader *reader, FILE *file);
/* Opens a byte array that contains records of a section. `trace` is the reader that returned the bytes. */
int pfx_open_array(pfx_reader *reader, const pfx_reader *trace, uint8_t section, pfx_bytes bytes);
/* Reads the next record. Returns 1, or 0 at the end of the trace, or -1 if `reader->error` is set. */
int pfx_next(pfx_reader *reader, pfx_record *record);
/* Frees the memory of a reader. */
void pfx_close(pfx_reader *reader);
/* Describes the error of a reader in a line of text. Works like snprintf. */
int pfx_describe_error(const pfx_reader *reader, char *text, size_t size);
#ifdef PFX_PRINT
/* Prints a record as a JSON line. Returns 0, or -1 if the file cannot be written. Without `all` in the reader, constants are omitted. */
int pfx_print(FILE *file, const pfx_reader *reader, const pfx_record *record);
#endif

#ifdef __cplusplus
}
#endif
#endif

#ifdef PFX_IMPLEMENTATION
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#ifdef PFX_LZ4
#include <lz4.h>
#endif
#ifdef PFX_ZLIB
#include <zlib.h>
#endif
#ifdef PFX_ZSTD
#include <zstd.h>
#endif

#ifdef __cplusplus
extern "C" {
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
#endif

