//! The tables of heap traces, by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hatf_trace::forms::OpenOptions;
use metatf_arrow::{Error, Result, Table, Together};

use crate::Names;
use crate::rows::{LifetimeRow, MarkRow, ProcessRow, SiteRow, StackRow, TableObject, TimelineRow, TraceRow};
use crate::scan::{HeapTable, Kind, Reading};

const KINDS: [Kind; 8] = [
    Kind::of::<TableObject>(),
    Kind::of::<SiteRow>(),
    Kind::of::<StackRow>(),
    Kind::of::<LifetimeRow>(),
    Kind::of::<TimelineRow>(),
    Kind::of::<MarkRow>(),
    Kind::of::<ProcessRow>(),
    Kind::of::<TraceRow>(),
];

/// The tables of one or several traces. The rows of several traces are concatenated. See the [crate] documentation for
/// an example.
#[derive(Clone)]
pub struct Tables {
    traces: Arc<[PathBuf]>,
    names: Arc<dyn Names>,
    options: OpenOptions,
}

/// Opens traces in any format that `hatf` reads. The contents of the traces are read only by scans.
///
/// # Errors
/// Returns an error if a trace does not exist, or if it is not a regular file and cannot be read twice.
pub fn open<P: AsRef<Path>>(traces: &[P]) -> Result<Tables> {
    for path in traces.iter().map(AsRef::as_ref) {
        let found = std::fs::metadata(path).map_err(|error| Error::new(path, error))?;
        if !found.is_file() {
            return Err(Error::new(path, "not a regular file: tables can only be read from trace files"));
        }
    }
    let traces = traces.iter().map(|path| path.as_ref().to_owned()).collect();
    Ok(Tables { traces, names: Arc::new(()), options: OpenOptions::default() })
}

impl Tables {
    /// Adds function names that the traces do not contain.
    #[must_use]
    pub fn with_names(self, names: Arc<dyn Names>) -> Self {
        Self { names, ..self }
    }

    /// Sets how the traces are opened.
    #[must_use]
    pub fn with_options(self, options: OpenOptions) -> Self {
        Self { options, ..self }
    }

    /// Returns the names of all tables.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|kind| kind.name)
    }

    /// Returns the table with this name, or `None` if there is no such table.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Table>> {
        Some(Arc::new(self.heap_table(name)?))
    }

    fn heap_table(&self, name: &str) -> Option<HeapTable> {
        let kind = KINDS.into_iter().find(|kind| kind.name == name)?;
        Some(HeapTable::new(kind, Arc::clone(&self.traces), Arc::clone(&self.names), self.options))
    }

    /// Reads all columns of the tables with these names in one pass over the traces. If `threads` is 1, the pass uses
    /// one thread; otherwise, one thread decodes and another replays the heap.
    ///
    /// # Errors
    /// Returns an error if a table does not exist or the first trace cannot be opened. Later errors are returned in
    /// place of a batch.
    pub fn scan_together(&self, names: &[&str], threads: usize) -> Result<Together> {
        let part = |name: &&str| match self.heap_table(name) {
            Some(table) => table.part(None),
            None => Err(Error::new(*name, "there is no such table")),
        };
        let parts = names.iter().map(part).collect::<Result<_>>()?;
        let (traces, names) = (Arc::clone(&self.traces), Arc::clone(&self.names));
        Ok(Box::new(Reading { traces, names, options: self.options, parts, beside: threads != 1 }.start()?))
    }

    /// Returns all tables.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Table>> {
        Self::names().filter_map(|name| self.get(name)).collect()
    }
}
