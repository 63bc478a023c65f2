//! Traces, record by record and as tables.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use metatf::dynamic::{OwnedRecord, Schema, Trace as Reader};
use metatf::reader::Event;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dtd::{Dtd, of_schema};
use crate::error;
use crate::signals::Signals;
use crate::table::{Table, find};
use crate::tuples::{Classes, tuple};

/// A trace of any format: its records in order, and its tables by name.
///
/// Each use of a table reads the trace again. If a trace does not embed its DTD, it is read with `dtd`, or with the
/// built-in DTD that its header names.
#[pyclass(frozen, mapping, module = "hatf")]
pub(crate) struct Trace {
    path: PathBuf,
    given: Option<Schema>,
    schema: Schema,
    /// The tables, once they have been requested.
    tables: OnceLock<metatf_arrow::Tables>,
    closed: AtomicBool,
}

/// Open a trace of any format.
///
/// >>> with hatf.open("jobs.mtf") as t:
/// ...     for record in t:
/// ...         print(record)
/// ...     t["done"]
/// submit(time=5, job=1, vfield='resize a.png')
/// submit(time=9, job=2, vfield='resize b.png')
/// done(time=30, job=1, status=0)
/// done(time=31, job=2, status=3)
/// <hatf.Table done(@number, time, job, status) of jobs.mtf>
#[pyfunction]
#[pyo3(signature = (path, *, dtd=None))]
pub(crate) fn open(py: Python<'_>, path: PathBuf, dtd: Option<&Bound<'_, PyAny>>) -> PyResult<Trace> {
    let given = match dtd.map(|dtd| dtd.cast::<Dtd>()) {
        None => None,
        Some(Ok(dtd)) => Some(dtd.get().schema.clone()),
        Some(Err(_)) => {
            let made = py.get_type::<Dtd>().call1((dtd,))?.cast_into::<Dtd>()?;
            Some(made.get().schema.clone())
        }
    };
    let schema = py.detach(|| read(&path, given.as_ref()).map(|records| records.schema().clone()))?;
    Ok(Trace { path, given, schema, tables: OnceLock::new(), closed: AtomicBool::new(false) })
}

/// Opens the records of a trace.
pub(crate) fn read(path: &Path, given: Option<&Schema>) -> PyResult<Reader<'static>> {
    error::check_file(path)?;
    let options = metatf_arrow::OpenOptions { dtd: given.cloned(), ..Default::default() };
    metatf_arrow::open_records(path, &options).map_err(|problem| error::of_table(path, &problem))
}

impl Trace {
    fn check_open(&self) -> PyResult<()> {
        match self.closed.load(Ordering::Relaxed) {
            true => Err(PyValueError::new_err(format!("{}: the trace was closed", self.path.display()))),
            false => Ok(()),
        }
    }

    fn opened(&self, py: Python<'_>) -> PyResult<&metatf_arrow::Tables> {
        self.check_open()?;
        if let Some(tables) = self.tables.get() {
            return Ok(tables);
        }
        // Do not hold a lock here, because a thread that waits for the lock may hold the interpreter.
        let tables = py.detach(|| tables_of(&self.path, self.given.as_ref()))?;
        Ok(self.tables.get_or_init(|| tables))
    }

    fn tables(&self, py: Python<'_>) -> PyResult<Vec<Arc<dyn metatf_arrow::Table>>> {
        Ok(self.opened(py)?.all())
    }
}

/// Returns the tables of a trace.
pub(crate) fn tables_of(path: &Path, given: Option<&Schema>) -> PyResult<metatf_arrow::Tables> {
    error::check_file(path)?;
    let options = metatf_arrow::OpenOptions { dtd: given.cloned(), ..Default::default() };
    metatf_arrow::open_tables(path, &options).map_err(|problem| error::of_table(path, &problem))
}

/// Returns a table that is derived from paired records, if the DTD defines spans.
pub(crate) fn made<T>(table: Option<T>, what: &str) -> PyResult<T> {
    table.ok_or_else(|| PyKeyError::new_err(format!("the DTD does not define {what}")))
}

#[pymethods]
impl Trace {
    /// Path of the trace.
    #[getter]
    fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// The DTD used to read the trace.
    #[getter]
    fn schema(&self) -> Dtd {
        of_schema(&self.schema)
    }

    /// Classes of the record tuples by name, for `isinstance` and `match`.
    #[getter]
    fn types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (mut classes, types) = (Classes::new(py, &self.schema)?, PyDict::new(py));
        for (index, record) in (0..).zip(&self.schema.dtd.records).skip(3) {
            types.set_item(&record.name, classes.of(py, index)?)?;
        }
        Ok(types)
    }

    /// Return the names of the tables.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.tables(py)?.iter().map(|table| table.name().to_owned()).collect())
    }

    /// Return one row per span, with its times, its enclosing span, and its fields. The DTD defines which records begin
    /// and end spans.
    ///
    /// >>> hatf.open("server.mtf").spans().columns(["name", "duration_ns", "fields"])
    /// <hatf.Table spans(name, duration_ns, fields) of server.mtf>
    fn spans(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(Table::new(made(self.opened(py)?.spans(), "spans")?, Some(&self.path)))
    }

    /// Return one row per record that has a time and does not belong to a span.
    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(Table::new(made(self.opened(py)?.events(), "events")?, Some(&self.path)))
    }

    /// Return the table of a record type, or `spans` or `events`.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        Ok(Table::new(find(&self.tables(py)?, name)?, Some(&self.path)))
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.tables(py)?.iter().any(|table| table.name() == name))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.tables(py)?.len())
    }

    /// Return an iterator over the records, from the first.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.check_open()?;
        let records = py.detach(|| read(&self.path, self.given.as_ref()))?;
        let classes = Classes::new(py, &self.schema)?;
        let reading = Reading { records, owned: OwnedRecord::default(), classes, ended: false, left: 0 };
        Ok(Records { path: self.path.clone(), reading: Mutex::new(Box::new(reading)) })
    }

    /// Close the trace. Tables obtained from it can still be read.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!("<hatf.Trace {}>", self.path.display())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        of_schema(&self.schema)._repr_html_(py)
    }
}

/// The records of a trace.
#[pyclass(module = "hatf")]
pub(crate) struct Records {
    path: PathBuf,
    reading: Mutex<Box<Reading>>,
}

/// The position in a trace.
struct Reading {
    records: Reader<'static>,
    owned: OwnedRecord,
    classes: Classes,
    ended: bool,
    /// Number of records until the next check for signals.
    left: u16,
}

#[pymethods]
impl Records {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let reading = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Reading { records, owned, classes, ended, left } = &mut **reading;
        while !*ended {
            // Skipped entries, such as comments, run no Python code that would check for signals.
            *left = left.wrapping_sub(1);
            if *left == 0 {
                Signals::of_this_thread().check()?;
            }
            let schema = records.schema().clone();
            let at = match records.next_entry() {
                Ok(Some(entry)) => match entry.event {
                    Event::Record(at) => {
                        owned.copy(entry.record);
                        at
                    }
                    _ => continue,
                },
                Ok(None) => {
                    *ended = true;
                    break;
                }
                Err(problem) => {
                    *ended = true;
                    return Err(error::of_trace(&self.path, &schema, &problem));
                }
            };
            let made = tuple(py, classes, records, at, owned);
            *ended = made.is_err();
            return made.map(Some).map_err(|problem| problem.of(&self.path, &schema));
        }
        Ok(None)
    }
}
