//! Tests of the runtime that do not run under Miri; loops.rs contains the others.

mod attribute;
#[cfg(all(feature = "dynamic", feature = "zstd", feature = "lz4", feature = "zlib"))]
mod vectors;
