//! Tables over several traces.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use metatf_arrow::{Batches, Filter, Scan, Table as _};
use pyo3::prelude::*;

use crate::heap::Heap;
use crate::table::{Table, find};
use crate::trace::tables_of;

/// Several traces of one format: their tables are one each, with the column `file` before the others.
///
/// `heap()` gives the tables of heap traces.
#[pyclass(frozen, mapping, module = "hatf")]
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    tables: OnceLock<Vec<Arc<dyn metatf_arrow::Table>>>,
}

/// Finds traces by a pattern, such as `traces/**/*.mtf`, or takes a list of paths. They are opened when their tables are read.
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
        true => Err(pyo3::exceptions::PyFileNotFoundError::new_err(format!("no file is {}", pattern.str()?))),
        false => Ok(Files { paths, tables: OnceLock::new() }),
    }
}

impl Files {
    /// The tables of the first trace, each over all.
    fn tables(&self, py: Python<'_>) -> PyResult<&[Arc<dyn metatf_arrow::Table>]> {
        if self.tables.get().is_none() {
            let Some(first) = self.paths.first() else { return Ok(&[]) };
            let tables = py.detach(|| tables_of(first, None))?;
            let paths: Arc<[PathBuf]> = self.paths.clone().into();
            let all = tables.iter().map(|table| {
                let union = Union::new(table.name(), &table.schema(), Arc::clone(&paths));
                Arc::new(union) as Arc<dyn metatf_arrow::Table>
            });
            let all = all.collect();
            return Ok(self.tables.get_or_init(|| all));
        }
        Ok(self.tables.get().map(Vec::as_slice).unwrap_or_default())
    }
}

#[pymethods]
impl Files {
    /// The traces.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.display().to_string()).collect()
    }

    /// The same as heap traces.
    fn heap(&self) -> Heap {
        Heap::new(self.paths.clone())
    }

    /// The names of the tables.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.tables(py)?.iter().map(|table| table.name().to_owned()).collect())
    }

    /// The table of a record type, over all traces.
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

/// A table over several traces, one after the other.
struct Union {
    name: String,
    /// With the column `file`.
    schema: SchemaRef,
    paths: Arc<[PathBuf]>,
}

impl Union {
    fn new(name: &str, schema: &Schema, paths: Arc<[PathBuf]>) -> Self {
        let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let file = Arc::new(Field::new("file", kind, false));
        let fields: Vec<_> = std::iter::once(file).chain(schema.fields().iter().cloned()).collect();
        Self { name: name.to_owned(), schema: Arc::new(Schema::new(fields)), paths }
    }
}

impl metatf_arrow::Table for Union {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, scan: &Scan) -> metatf_arrow::Result<Batches> {
        let columns = scan.columns.clone().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let schema = self.schema.project(&columns);
        let schema = schema.map_err(|problem| metatf_arrow::Error::new(self.name.as_str(), problem))?;
        // A file has the columns but the first; one is read at least, as rows are counted by it.
        let mut within: Vec<usize> = columns.iter().filter_map(|column| column.checked_sub(1)).collect();
        if within.is_empty() {
            within.push(0);
        }
        let inner = |filter: &Filter| Some(Filter { column: filter.column.checked_sub(1)?, ..filter.clone() });
        let filters = scan.filters.iter().filter_map(inner).collect();
        Ok(Box::new(Reading {
            name: self.name.clone(),
            whole: Arc::clone(&self.schema),
            schema: Arc::new(schema),
            columns,
            scan: Scan { columns: Some(within), filters, ..scan.clone() },
            paths: Arc::clone(&self.paths),
            next: 0,
            current: None,
        }))
    }
}

/// The batches of several traces. After an error nothing more comes.
struct Reading {
    name: String,
    whole: SchemaRef,
    schema: SchemaRef,
    columns: Vec<usize>,
    scan: Scan,
    paths: Arc<[PathBuf]>,
    next: usize,
    current: Option<(String, Batches)>,
}

impl Reading {
    /// Opens a trace, whose table has to be that of the first.
    fn open(&self, path: &Path) -> Result<(String, Batches), ArrowError> {
        let external = |problem: PyErr| ArrowError::ExternalError(Box::new(problem));
        let table = find(&tables_of(path, None).map_err(external)?, &self.name).map_err(external)?;
        let fields = table.schema();
        let is_same = fields.fields().iter().eq(self.whole.fields().iter().skip(1));
        if !is_same {
            let (path, name) = (path.display(), &self.name);
            let message = format!("{path}: its table {name} has other columns than that of the first trace");
            return Err(ArrowError::ExternalError(message.into()));
        }
        let batches = table.scan(&self.scan).map_err(|problem| ArrowError::ExternalError(Box::new(problem)))?;
        Ok((path.display().to_string(), batches))
    }

    /// Adds the name of the file where it is wanted.
    fn with_file(&self, file: &str, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let (mut within, mut columns) = (batch.columns().iter(), Vec::with_capacity(self.columns.len()));
        for column in &self.columns {
            columns.push(match column {
                0 => Arc::new(DictionaryArray::<Int32Type>::from_iter(std::iter::repeat_n(file, rows))) as ArrayRef,
                _ => within.next().cloned().ok_or_else(|| ArrowError::SchemaError("a column is missing".to_owned()))?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

impl Iterator for Reading {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((file, batches)) = &mut self.current {
                match batches.next() {
                    Some(batch) => {
                        let file = file.clone();
                        let batch = batch.and_then(|batch| self.with_file(&file, &batch));
                        if batch.is_err() {
                            (self.current, self.next) = (None, self.paths.len());
                        }
                        return Some(batch);
                    }
                    None => self.current = None,
                }
            }
            let path = self.paths.get(self.next)?;
            self.next += 1;
            match self.open(path) {
                Ok(current) => self.current = Some(current),
                Err(problem) => {
                    self.next = self.paths.len();
                    return Some(Err(problem));
                }
            }
        }
    }
}

impl RecordBatchReader for Reading {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
