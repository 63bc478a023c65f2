//! Traces of any Meta-TF format as Arrow tables.
//!
//! [`open`] returns a [`Table`] for each record type and, if the DTD defines spans, a table of spans and a table of the
//! other events. A [`Table`] has a name and a schema, and can be read with [`scan`](Table::scan) any number of times:
//! each scan opens the trace again. SQL engines, exports and the Python package use tables only through this trait, so
//! they all see the same data.
//!
//! ```
//! use arrow_array::cast::AsArray as _;
//! use arrow_array::types::Int64Type;
//! use metatf_arrow::{OpenOptions, Scan, find, open};
//!
//! # use metatf::container::WriteOptions;
//! # use metatf::dynamic::{OwnedRecord, Schema, Writer};
//! # let dtd = b"section s 1 { malloc: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; } }";
//! # let schema = Schema::parse("heap.dtd", dtd)?;
//! # let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! # for size in [16, 48] {
//! #     let mut owned = OwnedRecord::default();
//! #     owned.push_number(size);
//! #     writer.record(1, 3, &owned)?;
//! # }
//! # let file = tempfile::NamedTempFile::new()?;
//! # std::fs::write(file.path(), writer.finish()?)?;
//! // The trace contains two records `malloc` with the sizes 16 and 48.
//! let tables = open(file.path(), &OpenOptions::default())?;
//! let table = find(&tables, "malloc")?;
//! let column = table.schema().index_of("size")?;
//! let mut sizes = Vec::new();
//! for batch in table.scan(&Scan { columns: Some(vec![column]), ..Scan::default() })? {
//!     sizes.extend_from_slice(batch?.column(0).as_primitive::<Int64Type>().values());
//! }
//! assert_eq!(sizes, [16, 48]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
