//! Tables: the selection of columns and rows, and their batches for other libraries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use metatf_arrow::{Batches, Conditions, Selection};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::html::Html;
use crate::signals::Signals;
use crate::{capsule, cell, error};

/// Maximum number of rows that notebooks show.
const SHOWN: u64 = 10;

/// A table that is read when it is used.
///
/// Libraries that support Arrow's PyCapsule protocol accept it directly, without a copy: `pyarrow.table(t)`,
/// `polars.DataFrame(t)`, `pandas.DataFrame.from_arrow(t)`, `duckdb.sql("from t")`. Each use reads the trace again;
/// columns that are not selected are not decoded.
#[pyclass(frozen, module = "hatf")]
#[derive(Clone)]
pub(crate) struct Table {
    table: Arc<dyn metatf_arrow::Table>,
    path: Option<PathBuf>,
    columns: Option<Vec<usize>>,
    conditions: Conditions,
    limit: Option<u64>,
    threads: usize,
}

/// Finds a table by name.
pub(crate) fn find(tables: &[Arc<dyn metatf_arrow::Table>], name: &str) -> PyResult<Arc<dyn metatf_arrow::Table>> {
    metatf_arrow::find(tables, name).map_err(PyKeyError::new_err)
}

impl Table {
    pub(crate) fn new(table: Arc<dyn metatf_arrow::Table>, path: Option<&Path>) -> Self {
        let path = path.map(Path::to_owned);
        Self { table, path, columns: None, conditions: Conditions::default(), limit: None, threads: 0 }
    }

    fn column(&self, name: &str) -> PyResult<usize> {
        self.table.schema().index_of(name).map_err(|_| {
            let schema = self.table.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| &**field.name()).collect();
            PyKeyError::new_err(format!(
                "{} has no column {name:?}; available columns: {}",
                self.table.name(),
                names.join(", ")
            ))
        })
    }

    /// Returns the schema of the selected columns.
    fn projected(&self) -> PyResult<SchemaRef> {
        match &self.columns {
            None => Ok(self.table.schema()),
            Some(columns) => self.table.schema().project(columns).map(Arc::new).map_err(error::plain),
        }
    }

    /// Starts reading. Signals are checked on the calling thread.
    fn rows(&self, limit: Option<u64>) -> PyResult<Rows> {
        let schema = self.projected()?;
        let limit = limit.into_iter().chain(self.limit).min();
        let selection = self.conditions.select(self.columns.as_deref());
        let batches = self.table.scan(&selection.scan(limit, self.threads)).map_err(error::plain)?;
        Ok(Rows { batches: Some(batches), schema, selection, left: limit, signals: Signals::of_this_thread() })
    }
}

/// The selected rows of a table, in batches. The iterator ends after an error.
struct Rows {
    batches: Option<Batches>,
    schema: SchemaRef,
    selection: Selection,
    left: Option<u64>,
    signals: Signals,
}

impl Rows {
    fn wanted(&mut self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let batch = self.selection.rows(batch)?;
        let rows = batch.num_rows();
        let kept = self.left.map_or(rows, |left| usize::try_from(left).unwrap_or(usize::MAX).min(rows));
        if let Some(left) = &mut self.left {
            *left -= kept as u64;
        }
        Ok(batch.slice(0, kept))
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.left == Some(0) {
                self.batches = None;
            }
            let batches = self.batches.as_mut()?;
            if self.signals.is_interrupted() {
                self.batches = None;
                return Some(Err(ArrowError::ComputeError("interrupted".to_owned())));
            }
            let batch = batches.next()?.and_then(|batch| self.wanted(batch));
            match batch {
                Ok(batch) if batch.num_rows() == 0 => {}
                Ok(batch) => return Some(Ok(batch)),
                Err(problem) => {
                    self.batches = None;
                    return Some(Err(problem));
                }
            }
        }
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Converts an error of a batch to an exception. Errors of this project already contain file and position.
fn of_batch(py: Python<'_>, problem: &ArrowError) -> PyErr {
    if let Err(raised) = py.check_signals() {
        return raised;
    }
    error::plain(metatf_arrow::message(problem))
}

#[pymethods]
impl Table {
    /// Name of the table.
    #[getter]
    fn name(&self) -> &str {
        self.table.name()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> PyResult<Vec<String>> {
        Ok(self.projected()?.fields().iter().map(|field| field.name().clone()).collect())
    }

    /// Return the table with only these columns, in this order. Other columns are not decoded.
    fn columns(&self, names: Vec<String>) -> PyResult<Self> {
        let available = self.projected()?;
        for name in &names {
            available.index_of(name).map_err(|_| {
                self.column(name).map_or_else(
                    |absent| absent,
                    |_| PyKeyError::new_err(format!("the column {name:?} was excluded by an earlier selection")),
                )
            })?;
        }
        let columns = names.iter().map(|name| self.column(name)).collect::<PyResult<Vec<_>>>()?;
        Ok(Self { columns: Some(columns), ..self.clone() })
    }

    /// Return the rows that match a condition, such as `size >= 4096 and thread != 1`. Several conditions must all be true.
    ///
    /// The syntax is described in `metatfc dump --help`.
    #[pyo3(name = "where")]
    fn filter(&self, condition: &str) -> PyResult<Self> {
        let mut conditions = self.conditions.clone();
        let added = conditions.add(&*self.table, condition);
        added.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { conditions, ..self.clone() })
    }

    /// Return the first `rows` rows.
    fn head(&self, rows: u64) -> Self {
        Self { limit: Some(self.limit.map_or(rows, |limit| limit.min(rows))), ..self.clone() }
    }

    /// Set the number of decoding threads; 0, the default, uses one per processor. Rows and their order do not depend
    /// on it.
    fn threads(&self, threads: usize) -> PyResult<Self> {
        if threads > 1024 {
            return Err(PyValueError::new_err("expected at most 1024 threads"));
        }
        Ok(Self { threads, ..self.clone() })
    }

    /// Return the number of rows.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let first = self.columns.as_ref().and_then(|columns| columns.first().copied()).unwrap_or(0);
        let narrow = Self { columns: Some(vec![first]), ..self.clone() };
        let counted = py.detach(|| {
            let mut rows = 0;
            for batch in narrow.rows(None)? {
                match batch {
                    Ok(batch) => rows += batch.num_rows() as u64,
                    Err(problem) => return Ok(Err(problem)),
                }
            }
            PyResult::Ok(Ok(rows))
        })?;
        counted.map_err(|problem| of_batch(py, &problem))
    }

    /// Return the rows as named tuples.
    fn __iter__(&self, py: Python<'_>) -> PyResult<TableRows> {
        self.iterate(py, None)
    }

    /// Return the batches, for Arrow.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows the producer to ignore the requested schema.
        let _ = requested_schema;
        let rows = py.detach(|| self.rows(None))?;
        capsule::of_stream(py, Box::new(rows))
    }

    /// Return the schema, for Arrow. Field metadata contains documentation under `doc` and the unit under `unit`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_schema(py, &*self.projected()?)
    }

    fn __repr__(&self) -> PyResult<String> {
        let (name, columns) = (self.table.name(), self.column_names()?.join(", "));
        let path = self.path.as_ref().map(|path| format!(" of {}", path.display())).unwrap_or_default();
        Ok(format!("<hatf.Table {name}({columns}){path}>"))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let names = self.column_names()?;
        let mut html = Html::table(names.iter().map(|name| &**name));
        let mut rows = self.iterate(py, Some(SHOWN + 1))?;
        let mut shown = 0;
        while let Some(row) = rows.__next__(py)? {
            shown += 1;
            if shown > SHOWN {
                html.row(names.iter().map(|_| "…"));
                break;
            }
            let cells = row.bind(py).cast::<PyTuple>()?.iter();
            let cells = cells.map(|cell| cell.str().map(|text| text.to_string())).collect::<PyResult<Vec<_>>>()?;
            html.row(cells.iter().map(|cell| &**cell));
        }
        Ok(html.finish())
    }
}

impl Table {
    fn iterate(&self, py: Python<'_>, limit: Option<u64>) -> PyResult<TableRows> {
        let (collections, options) = (py.import("collections")?, PyDict::new(py));
        options.set_item("rename", true)?;
        options.set_item("module", "hatf")?;
        let class = collections.getattr("namedtuple")?.call(("row", self.column_names()?), Some(&options))?;
        let rows = py.detach(|| self.rows(limit))?;
        Ok(TableRows { rows: std::sync::Mutex::new(rows), batch: None, row: 0, class: class.unbind() })
    }
}

/// The rows of a table.
#[pyclass(module = "hatf")]
pub(crate) struct TableRows {
    rows: std::sync::Mutex<Rows>,
    batch: Option<RecordBatch>,
    row: usize,
    class: Py<PyAny>,
}

#[pymethods]
impl TableRows {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.batch.as_ref().is_none_or(|batch| self.row >= batch.num_rows()) {
            let rows = self.rows.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.batch = py.detach(|| rows.next()).transpose().map_err(|problem| of_batch(py, &problem))?;
            self.row = 0;
        }
        let Some(batch) = &self.batch else { return Ok(None) };
        let values = batch.columns().iter().map(|column| cell::value(py, column.as_ref(), self.row));
        let values = PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
        self.row += 1;
        self.class.call1(py, values).map(Some)
    }
}
