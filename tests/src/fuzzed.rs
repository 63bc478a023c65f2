//! The formats whose generated readers and writers the fuzz targets have: under a sanitizer those of all vectors take minutes to
//! compile. `tests/tests/it/every_shape.rs` holds that these have every shape between them.

/// Vectors with such formats. They come first in any build, so that numbers are the same.
pub const VECTORS: [&str; 22] = [
    "hatf10-best",
    "repetition",
    "repetition-default-count",
    "variable-arithmetic",
    "nested-records",
    "formats",
    "f64",
    "raw-little",
    "tag-width-4",
    "sectionstride-1",
    "stream-complex",
    "salvage-shared-table-lost",
    "v1-references-in-groups",
    "x-predicted-by",
    "x-predicted-two-cursors",
    "x-counts",
    "x-count-constants",
    "x-count-comparisons",
    "x-width-arrays",
    "x-nested",
    "x-prologue-little",
    "x-paths",
];

/// More, which tests name. With those above they stand for all vectors where `METATF_ALL=1` does not ask for a reader and writer of each:
/// CI asks each night.
pub const TESTED: [&str; 5] = ["constants", "global-length", "v1-embedded-first", "x-by-name", "x-prologue-first"];

/// Those beside the vectors'.
pub const MORE: [&str; 2] = ["dtds/calls.dtd", "dtds/other.dtd"];
