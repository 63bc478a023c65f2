//! Tables of traces, held against the universal reader.

mod common;
mod hostile;
mod random;
