//! Traces of any Meta-TF format as Arrow tables.
//!
//! [`open`] gives a [`Table`] for each type of record, and where the DTD has spans one of them, and one of the events besides.
//! A [`Table`] has a name, a schema, and is read by [`scan`](Table::scan), as often as one likes: each scan opens the trace again.
//! Engines, exports and Python know tables by this trait alone, so all that they read is read alike.

mod builder;
#[cfg(feature = "files")]
mod cell;
mod condition;
mod encode;
mod error;
#[cfg(feature = "files")]
pub mod files;
mod layout;
mod open;
mod reading;
mod record_table;
mod scan;
mod source;
mod spans;
mod table;
mod union;

pub use condition::{ConditionError, Conditions, Selection};
pub use encode::BatchEncoder;
pub use error::{Error, Result, message};
pub use open::{Tables, open, open_records, open_tables};
pub use record_table::{NUMBER, OFFSET, SECTION};
pub use source::OpenOptions;
pub use table::{Batches, Scan, Table, Together};
pub use union::{Union, find};
