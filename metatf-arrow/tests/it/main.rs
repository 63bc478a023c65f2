//! Tables of traces, held against the universal reader.

mod common;
mod hostile;
mod random;
#[cfg(feature = "files")]
mod round_trip;
