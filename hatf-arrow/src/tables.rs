//! The tables of traces, by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use metatf_arrow::{Error, Result, Table};

use crate::Names;
use crate::rows::{LifetimeRow, MarkRow, ProcessRow, SiteRow, StackRow, TableObject, TimelineRow, TraceRow};
use crate::scan::{HeapTable, Kind};

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
        let kind = KINDS.into_iter().find(|kind| kind.name == name)?;
        Some(Arc::new(HeapTable::new(kind, Arc::clone(&self.traces), Arc::clone(&self.names))))
    }

    /// Returns all tables.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Table>> {
        Self::names().filter_map(|name| self.get(name)).collect()
    }
}
