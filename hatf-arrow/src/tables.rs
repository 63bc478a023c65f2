//! The tables of traces, by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// The tables of one trace, or of several: the rows of the first, of the second, and so on.
#[derive(Clone)]
pub struct Tables {
    traces: Arc<[PathBuf]>,
    names: Arc<dyn Names>,
}

/// Opens traces in any form that `hatf` reads. They are read by scans, as often as there are.
///
/// # Errors
/// One is not there, or cannot be read twice.
pub fn open<P: AsRef<Path>>(traces: &[P]) -> Result<Tables> {
    for path in traces.iter().map(AsRef::as_ref) {
        let found = std::fs::metadata(path).map_err(|error| Error::new(path, error))?;
        if !found.is_file() {
            return Err(Error::new(path, "not a file: tables are of files of traces"));
        }
    }
    let traces = traces.iter().map(|path| path.as_ref().to_owned()).collect();
    Ok(Tables { traces, names: Arc::new(()) })
}

impl Tables {
    /// Has functions named that the traces do not name.
    #[must_use]
    pub fn with_names(self, names: Arc<dyn Names>) -> Self {
        Self { names, ..self }
    }

    /// Returns the names of all tables.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|kind| kind.name)
    }

    /// Returns a table by its name; `None`: there is no such table.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Table>> {
        Some(Arc::new(self.heap_table(name)?))
    }

    fn heap_table(&self, name: &str) -> Option<HeapTable> {
        let kind = KINDS.into_iter().find(|kind| kind.name == name)?;
        Some(HeapTable::new(kind, Arc::clone(&self.traces), Arc::clone(&self.names)))
    }

    /// Reads several tables in one pass over the traces, by their names, all of their columns, in this many threads: 1, or one that decodes
    /// beside one that follows the heap.
    ///
    /// # Errors
    /// There is no such table; the first trace cannot be opened. What is wrong further on is an error of a batch.
    pub fn scan_together(&self, names: &[&str], threads: usize) -> Result<Together> {
        let part = |name: &&str| match self.heap_table(name) {
            Some(table) => table.part(None),
            None => Err(Error::new(*name, "there is no such table")),
        };
        let parts = names.iter().map(part).collect::<Result<_>>()?;
        let (traces, names) = (Arc::clone(&self.traces), Arc::clone(&self.names));
        Ok(Box::new(Reading { traces, names, parts, beside: threads != 1 }.start()?))
    }

    /// Returns all tables.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Table>> {
        Self::names().filter_map(|name| self.get(name)).collect()
    }
}
