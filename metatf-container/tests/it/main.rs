//! Tests of files: corruption, round trips, and the vectors.

mod append;
mod damage;
mod ranges;
mod roundtrip;
#[cfg(all(feature = "zstd", feature = "lz4", feature = "zlib"))]
mod vectors;
