//! Tables of traces, held against the universal reader.

#[cfg(feature = "files")]
mod any_table;
mod common;
mod cut_file;
#[cfg(feature = "files")]
mod fuzz_seeds;
mod hostile;
mod random;
mod ranges;
#[cfg(feature = "files")]
mod round_trip;
mod spans;
