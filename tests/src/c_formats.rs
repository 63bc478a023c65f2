//! The formats whose generated C readers are fuzzed: names of vectors. The build script of `dev/fuzz` includes this file.

/// Vectors in `tests/vectors/good`, which together contain every shape of record and every interpretation.
pub const FORMATS: &[&str] = &[
    "baseoffset-reference",
    "constants",
    "f64",
    "global-records",
    "interleaved",
    "metadata-every-property-class2-big",
    "nested-records",
    "previous-shared",
    "repetition",
    "sectionstride-take-turns",
    "stream-complex",
    "string-table",
    "tag-width-4",
    "v1-groups",
    "v1-zstd-big",
    "variable-arithmetic",
    "x-counts",
    "x-cstring",
    "x-nested",
    "x-other",
    "x-phrases",
    "x-tails",
];
