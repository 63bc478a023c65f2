//! The tests of files: damage, round trips, the vectors.

mod damage;
mod roundtrip;
#[cfg(all(feature = "zstd", feature = "lz4", feature = "zlib"))]
mod vectors;
