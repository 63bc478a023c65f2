//! Tests of the runtime that do not run under Miri; loops.rs contains the others.

#[cfg(all(feature = "dynamic", feature = "zstd"))]
mod append;
mod attribute;
mod implied;
mod times;
#[cfg(all(feature = "dynamic", feature = "zstd", feature = "lz4", feature = "zlib"))]
mod vectors;
