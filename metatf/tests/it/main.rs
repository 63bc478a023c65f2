//! The tests of the runtime, without those that Miri runs (loops.rs).

mod attribute;
#[cfg(all(feature = "dynamic", feature = "zstd", feature = "lz4", feature = "zlib"))]
mod vectors;
