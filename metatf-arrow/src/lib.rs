//! Traces of any Meta-TF format as Arrow tables.
//!
//! A [`Table`] has a name, a schema, and is read by [`scan`](Table::scan), as often as one likes: each scan opens the trace anew.
//! Engines, exports and Python know tables by this trait alone, so all that they read is read alike.

mod error;
mod table;

pub use error::{Error, Result};
pub use table::{Batches, Comparison, Filter, Scalar, Scan, Table};
