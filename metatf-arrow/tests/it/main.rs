//! Tables of traces, held against the universal reader.

mod common;
mod cut_file;
mod hostile;
mod random;
mod ranges;
#[cfg(feature = "files")]
mod round_trip;
mod spans;
