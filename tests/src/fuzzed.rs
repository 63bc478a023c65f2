//! Formats for which the fuzz targets contain generated readers and writers. With a sanitizer, those of all vectors
//! take minutes to compile. `tests/tests/it/every_shape.rs` checks that these formats cover every shape.

/// Vectors whose formats are included. They come first in every build, so that their numbers are the same.
pub const VECTORS: [&str; 29] = [
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
    "x-count-named",
    "x-width-arrays",
    "x-nested",
    "x-prologue-little",
    "x-paths",
    "x-ends-until",
    "x-ends-rest",
    "x-ends-chunks",
    "x-items-of-elements",
    "x-f32",
    "x-type-definitions",
];

/// Additional vectors that tests refer to by name. Together with [`VECTORS`] they represent all vectors, unless
/// `METATF_ALL=1` requests a reader and writer for each, as the nightly CI run does.
pub const TESTED: [&str; 5] = ["constants", "global-length", "v1-embedded-first", "x-by-name", "x-prologue-first"];

/// DTDs in addition to those of the vectors.
pub const MORE: [&str; 11] = [
    "dtds/calls.dtd",
    "dtds/other.dtd",
    "../dtds/gallery/gif.dtd",
    "../dtds/gallery/gzip.dtd",
    "../dtds/gallery/tzif.dtd",
    "../dtds/gallery/acct.dtd",
    "../dtds/gallery/dbf.dtd",
    "../dtds/gallery/git-index.dtd",
    "../dtds/gallery/java-class.dtd",
    "../dtds/gallery/terminfo.dtd",
    "../dtds/gallery/utmp.dtd",
];
