//! From a file to its tables.

use std::path::Path;
use std::sync::Arc;

use metatf::dynamic::Trace;

use crate::record_table::record_tables;
use crate::source::{OpenOptions, Source};
use crate::{Result, Table};

/// The tables of a trace: one for each type of record, as [`Table`] says.
///
/// A table is named after its record; where records of one name stand in several sections, after section and record: `first_event`,
/// `second_event`. A record that may stand in several sections is one table, with a column `@section`. Stream sections whose elements
/// others point to are tables, too, with the column `@offset` that is pointed to.
///
/// # Errors
/// The file cannot be read, or is not a trace; there is no DTD for it.
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Vec<Arc<dyn Table>>> {
    let source = Source::new(path.as_ref(), options)?;
    let tables = record_tables(&Arc::new(source), options.stored);
    Ok(tables.into_iter().map(|table| Arc::new(table) as Arc<dyn Table>).collect())
}

/// Opens a trace for the universal reader, by the DTD that its tables are made by.
///
/// # Errors
/// As for [`open`].
pub fn open_records(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Trace<'static>> {
    Source::new(path.as_ref(), options)?.open()
}
