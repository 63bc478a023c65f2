//! Runtime for Meta-TF traces: containers, decoding, encoding, the universal reader and writer.
pub mod container;
#[cfg(feature = "dynamic")]
pub mod dynamic;
mod error;
mod explain;
pub mod format;
mod group_write;
#[doc(hidden)]
pub mod private;
pub mod reader;
mod row;
mod row_write;
mod state;
mod stream_write;
mod streams;
pub mod typed;
mod writer;
pub use error::{Error, ErrorKind, Place, Result};
pub use explain::{Explained, explain};
pub use row::{ContentRow, Row};
pub use row_write::RowWriter;
pub use state::Change;
pub use writer::RecordWriter;
