//! Runtime for Meta-TF traces: containers, decoding, encoding, the universal reader and writer.
pub mod container;
mod error;
pub use error::{Error, ErrorKind, Place, Result};
