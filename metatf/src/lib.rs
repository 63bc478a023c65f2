//! Runtime for Meta-TF traces: containers, decoding, encoding, the universal reader and writer.
pub mod container;
#[cfg(feature = "dynamic")]
pub mod dynamic;
mod error;
pub mod format;
mod group_write;
pub mod reader;
mod row;
mod row_write;
mod state;
mod stream_write;
mod streams;
mod writer;
pub use error::{Error, ErrorKind, Place, Result};
pub use row::{ContentRow, Row};
pub use row_write::RowWriter;
pub use state::Change;
pub use writer::RecordWriter;
