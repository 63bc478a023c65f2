//! Runtime for Meta-TF traces: containers, decoding, encoding, the universal reader and writer.
pub mod container;
#[cfg(feature = "dynamic")]
pub mod dynamic;
mod error;
pub mod format;
#[cfg(any())]
mod group_write;
pub mod reader;
mod row;
#[cfg(any())]
mod row_write;
mod state;
#[cfg(any())]
mod stream_write;
mod streams;
#[cfg(any())]
mod writer;
pub use error::{Error, ErrorKind, Place, Result};
pub use row::{ContentRow, Row};
#[cfg(any())]
pub use row_write::RowWriter;
pub use state::Change;
#[cfg(any())]
pub use writer::RecordWriter;
