//! Tables over several traces.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use metatf_arrow::{OpenOptions, Union};
use pyo3::prelude::*;

use crate::heap::Heap;
use crate::table::{Table, find};
use crate::trace::{made, tables_of};

/// Several traces of one format. Each table covers all traces and has an additional first column `file`.
///
/// `heap()` returns the tables of heap traces.
#[pyclass(frozen, mapping, module = "hatf")]
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    tables: OnceLock<Vec<Arc<dyn metatf_arrow::Table>>>,
}

/// Find traces that match a pattern, such as `traces/**/*.mtf`, or use a list of paths. The files are opened when their
/// tables are read.
///
/// >>> hatf.scan("jo*.mtf").paths
/// ['jobs.mtf']
#[pyfunction]
pub(crate) fn scan(py: Python<'_>, pattern: &Bound<'_, PyAny>) -> PyResult<Files> {
    let mut paths: Vec<PathBuf> = Vec::new();
    if pattern.is_instance_of::<pyo3::types::PyString>() || pattern.hasattr("__fspath__")? {
        let options = pyo3::types::PyDict::new(py);
        options.set_item("recursive", true)?;
        let text = py.import("os")?.call_method1("fspath", (pattern,))?;
        let found = py.import("glob")?.getattr("glob")?.call((text,), Some(&options))?;
        paths.extend(found.extract::<Vec<PathBuf>>()?);
        paths.sort();
    } else {
        paths.extend(pattern.extract::<Vec<PathBuf>>()?);
    }
    match paths.is_empty() {
        true => Err(pyo3::exceptions::PyFileNotFoundError::new_err(format!("no file matches {}", pattern.str()?))),
        false => Ok(Files { paths, tables: OnceLock::new() }),
    }
}

impl Files {
    /// Returns the tables of the first trace, extended to all traces.
    fn tables(&self, py: Python<'_>) -> PyResult<&[Arc<dyn metatf_arrow::Table>]> {
        if self.tables.get().is_none() {
            let Some(first) = self.paths.first() else { return Ok(&[]) };
            let tables = py.detach(|| tables_of(first, None))?;
            let all = tables.all().into_iter().map(|table| self.over_all(&table)).collect();
            return Ok(self.tables.get_or_init(|| all));
        }
        Ok(self.tables.get().map(Vec::as_slice).unwrap_or_default())
    }

    /// Extends a table of the first trace to all traces.
    fn over_all(&self, first: &dyn metatf_arrow::Table) -> Arc<dyn metatf_arrow::Table> {
        Arc::new(Union::new(first, "file", self.paths.clone().into(), OpenOptions::default()))
    }

    /// Returns a table of the first trace that is derived from paired records, extended to all traces.
    fn made(
        &self,
        py: Python<'_>,
        of: fn(&metatf_arrow::Tables) -> Option<Arc<dyn metatf_arrow::Table>>,
        what: &str,
    ) -> PyResult<Table> {
        let tables = self.paths.first().map(|first| py.detach(|| tables_of(first, None))).transpose()?;
        let table = made(tables.as_ref().and_then(of), what)?;
        Ok(Table::new(self.over_all(&table), None))
    }
}

#[pymethods]
impl Files {
    /// Paths of the traces.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.display().to_string()).collect()
    }

    /// Return the files as heap traces.
    fn heap(&self) -> Heap {
        Heap::new(self.paths.clone())
    }

    /// Return the spans of all traces; see `Trace.spans`.
    fn spans(&self, py: Python<'_>) -> PyResult<Table> {
        self.made(py, metatf_arrow::Tables::spans, "spans")
    }

    /// Return the events of all traces; see `Trace.events`.
    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        self.made(py, metatf_arrow::Tables::events, "events")
    }

    /// Return the names of the tables.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.tables(py)?.iter().map(|table| table.name().to_owned()).collect())
    }

    /// Return the table of a record type over all traces.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        Ok(Table::new(find(self.tables(py)?, name)?, None))
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.tables(py)?.iter().any(|table| table.name() == name))
    }

    fn __len__(&self) -> usize {
        self.paths.len()
    }

    fn __repr__(&self) -> String {
        format!("<hatf.Files {}>", self.paths().join(", "))
    }
}
