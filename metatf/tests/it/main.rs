//! Tests of the runtime, except for those that run under Miri (loops.rs).

mod attribute;
#[cfg(all(feature = "dynamic", feature = "zstd", feature = "lz4", feature = "zlib"))]
mod vectors;
