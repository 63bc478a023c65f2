//! Traces of any Meta-TF format as Arrow tables.
//!
//! [`open`] returns a [`Table`] for each record type and, if the DTD defines spans, a table of spans and a table of the
//! other events. A [`Table`] has a name and a schema, and can be read with [`scan`](Table::scan) any number of times:
//! each scan opens the trace again. SQL engines, exports and the Python package use tables only through this trait, so
//! they all see the same data.

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

pub use condition::{Conditions, Selection};
pub use encode::BatchEncoder;
pub use error::{Error, Result, message};
pub use metatf_tools::condition::ConditionError;
pub use open::{Tables, open, open_records, open_tables};
pub use record_table::{NUMBER, OFFSET, SECTION};
pub use source::OpenOptions;
pub use table::{Batches, Scan, Table, Together};
pub use union::{Union, find};
