//! Writes traces.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use metatf::container::{Order, Sink, WriteOptions};
use metatf::dynamic::{Line, OwnedRecord, Schema, Strides, Writer as Records};
use metatf_arrow::BatchEncoder;
use metatf_cli::OutputFile;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::{Map, Value};

use crate::dtd::Dtd;
use crate::signals::Signals;
use crate::{capsule, cell, columns, error, load};

/// Number of rows between two checks for signals.
const SIGNALS: usize = 1 << 16;

/// Maximum length of a message in characters.
const MESSAGE: usize = 400;

/// A writer of traces of any format, to be used as a context manager. The file is created only when the writer is
/// closed without an exception.
///
/// >>> import tempfile, os
/// >>> path = os.path.join(tempfile.mkdtemp(), "spans.mtf")
/// >>> dtd = hatf.Dtd('section spans 1 { span: (tag, start, length) { tag.value = 4; start.width = 2; length.width = 1; } }')
/// Traceback (most recent call last):
///     ...
/// hatf.Error: <text>:1:31: field `start` has no interpretation
///   help: add `start.interpretation = none;`, or replace the width by the type `start: u16` in the field list
/// <text>:1:38: field `length` has no interpretation
///   help: add `length.interpretation = none;`, or replace the width by the type `length: u8` in the field list
/// >>> dtd = hatf.Dtd('''section spans 1 { span: (tag, start, length) { tag.value = 4;
/// ...     start.width = 2; start.interpretation = delta 0; length.width = 1; length.interpretation = none; } }''')
/// >>> with hatf.Writer(dtd, path) as w:
/// ...     w.write("span", start=1000, length=7)
/// ...     w.write_batch("span", {"start": [1010, 1020], "length": [70000, 8]})
/// >>> with hatf.open(path) as t:
/// ...     for record in t:
/// ...         print(record)
/// span(start=1000, length=7)
/// span(start=1010, length=70000)
/// span(start=1020, length=8)
#[pyclass(module = "hatf")]
pub(crate) struct Writer {
    path: PathBuf,
    dtd: Py<Dtd>,
    writing: Mutex<Option<Writing>>,
}

struct Writing {
    file: OutputFile,
    records: Records<Box<dyn Sink + Send>>,
    owned: OwnedRecord,
    strides: Strides,
}

/// The record type of a record to write, looked up once.
struct Kind<'s> {
    schema: &'s Schema,
    section: usize,
    record: u16,
    section_name: Value,
    record_name: String,
}

impl<'s> Kind<'s> {
    fn find(dtd: &'s Dtd, name: &str) -> PyResult<Self> {
        let (section, record) = dtd.find(name)?;
        let schema = &dtd.schema;
        let section_name = schema.section(section).and_then(|section| section.name.clone());
        let record_name = schema.record(record).map(|record| record.name.clone()).unwrap_or_default();
        Ok(Self { schema, section, record, section_name: section_name.map_or(Value::Null, Value::String), record_name })
    }

    fn wrong(&self, message: impl std::fmt::Display) -> PyErr {
        let mut message = message.to_string();
        // The message may contain a complete value.
        if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
            message.truncate(end);
            message.push('…');
        }
        error::plain(format!("record {}: {message}", self.record_name))
    }

    /// Writes a record. A reference may be given as the element itself, which is added to its section; equal elements
    /// are stored once.
    fn write(&self, writing: &mut Writing, mut fields: Map<String, Value>) -> PyResult<()> {
        let Some(record) = self.schema.record(self.record) else { return Ok(()) };
        for (key, value) in &mut fields {
            if !value.is_number()
                && !is_offset(value)
                && let Some(number) = load::target(record, key)
            {
                *value = self.element(writing, number, value.take())?.into();
            }
        }
        fields.insert("@section".to_owned(), self.section_name.clone());
        fields.insert("@record".to_owned(), Value::String(self.record_name.clone()));
        let Writing { owned, strides, .. } = writing;
        let line = self.schema.read_object_next(Order::Little, &fields, owned, strides);
        let line = line.map_err(|problem| self.wrong(problem))?;
        let written = writing.records.write(&line, &writing.owned);
        written.map_err(|problem| self.wrong(metatf::explain(&self.schema.format, &problem)))
    }

    /// Adds an element to a stream section and returns its offset.
    fn element(&self, writing: &mut Writing, number: u8, value: Value) -> PyResult<u64> {
        let section = self.schema.format.section_index(number);
        let of = section.and_then(|index| self.schema.section(index));
        let element = of.and_then(|of| self.schema.dtd.record(of.stream?));
        let (Some(section), Some(of), Some(element)) = (section, of, element) else {
            return Err(self.wrong(format!("the value refers to section {number}, which does not exist")));
        };
        let mut fields = match (value, load::only_key(element)) {
            (Value::Object(fields), key) if !(key.is_some() && fields.contains_key("hex")) => fields,
            (value, Some(key)) => Map::from_iter([(key.to_owned(), value)]),
            (value, None) => {
                let name = &element.name;
                return Err(
                    self.wrong(format!("expected an offset or a dict of the fields of element {name}, found {value}"))
                );
            }
        };
        fields.insert("@section".to_owned(), of.name.clone().map_or(Value::Null, Value::String));
        fields.insert("@record".to_owned(), Value::String(element.name.clone()));
        let mut owned = OwnedRecord::default();
        match self.schema.read_object(Order::Little, &fields, &mut owned) {
            Ok(Line::Element(..)) => {}
            Ok(_) => return Err(self.wrong("the value refers to a section without elements")),
            Err(problem) => return Err(self.wrong(problem)),
        }
        let interned = writing.records.intern(section, &owned);
        interned.map_err(|problem| self.wrong(metatf::explain(&self.schema.format, &problem)))
    }
}

/// Returns whether a value is a resolved reference as in JSON lines: an object with a numeric `offset`.
fn is_offset(value: &Value) -> bool {
    value.get("offset").is_some_and(Value::is_number)
}

impl Writer {
    fn with<T>(&mut self, py: Python<'_>, of: impl FnOnce(&Dtd, &mut Writing) -> PyResult<T>) -> PyResult<T> {
        let Self { path, dtd, writing } = self;
        match writing.get_mut().unwrap_or_else(PoisonError::into_inner) {
            Some(writing) => of(dtd.bind(py).get(), writing),
            None => Err(PyValueError::new_err(format!("{}: the writer was closed", path.display()))),
        }
    }
}

#[pymethods]
impl Writer {
    #[new]
    fn new(py: Python<'_>, dtd: &Bound<'_, PyAny>, path: PathBuf) -> PyResult<Self> {
        let dtd = match dtd.cast::<Dtd>() {
            Ok(dtd) => dtd.clone().unbind(),
            Err(_) => py.get_type::<Dtd>().call1((dtd,))?.cast_into::<Dtd>()?.unbind(),
        };
        if path.as_os_str() == "-" {
            return Err(PyValueError::new_err("a trace cannot be written to standard output: expected a file"));
        }
        let (file, sink) = OutputFile::create(&path).map_err(|problem| error::of_system(&path, &problem))?;
        let records = Records::new(sink, &dtd.get().schema, &WriteOptions::default());
        let records = records.map_err(|problem| error::of_container(&path, &problem))?;
        let strides = Strides::new(&dtd.get().schema);
        let writing = Writing { file, records, owned: OwnedRecord::default(), strides };
        Ok(Self { path, dtd, writing: Mutex::new(Some(writing)) })
    }

    /// Write a record, given its name or `section.name`. Counts, constants and fields that are not stored may be
    /// omitted. A reference to an element of a stream section, such as a string in a table, is given as the element
    /// itself.
    #[pyo3(signature = (record, /, **fields))]
    fn write(&mut self, py: Python<'_>, record: &str, fields: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let fields = match fields.map(|fields| load::value(fields.as_any())).transpose()? {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        self.with(py, |dtd, writing| Kind::find(dtd, record)?.write(writing, fields))
    }

    /// Write records from columns: a dict of sequences of equal length, or a table of any library that supports Arrow.
    #[pyo3(signature = (record, columns, /))]
    fn write_batch(&mut self, py: Python<'_>, record: &str, columns: &Bound<'_, PyAny>) -> PyResult<()> {
        if columns.hasattr("__arrow_c_stream__")? {
            return self.write_arrow(py, record, columns);
        }
        let columns = columns.cast::<PyDict>().map_err(|_| {
            pyo3::exceptions::PyTypeError::new_err("expected a dict of sequences or an Arrow table as columns")
        })?;
        if let Some(batch) = columns::batch(columns)?
            && self.write_columns(py, record, &batch)?
        {
            return Ok(());
        }
        let mut names = Vec::new();
        let mut iterators = Vec::new();
        let mut rows = None;
        for (name, column) in columns {
            let length = column.len()?;
            if *rows.get_or_insert(length) != length {
                return Err(PyValueError::new_err(format!(
                    "the column {name} has {length} values, but other columns have a different number"
                )));
            }
            names.push(name.cast::<PyString>()?.to_str()?.to_owned());
            iterators.push(column.try_iter()?);
        }
        let signals = Signals::of_this_thread();
        for row in 0..rows.unwrap_or(0) {
            let mut fields = Map::new();
            for (name, values) in names.iter().zip(&mut iterators) {
                let value = values
                    .next()
                    .ok_or_else(|| PyValueError::new_err("a column was changed while it was being read"))??;
                fields.insert(name.clone(), load::value(&value)?);
            }
            self.row(py, record, fields, row, &signals)?;
        }
        Ok(())
    }

    /// Complete the trace and create its file.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(writing) = self.writing.get_mut().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let path = &self.path;
        let Writing { file, records, .. } = writing;
        py.detach(|| {
            let sink = records.finish().map_err(|problem| error::of_container(path, &problem))?;
            file.keep(sink).map_err(|problem| error::of_system(path, &problem))
        })
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Complete the trace, or discard it if there was an exception.
    #[pyo3(signature = (*raised))]
    fn __exit__(&mut self, py: Python<'_>, raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        if raised.get_item(0).is_ok_and(|kind| kind.is_none()) {
            return self.close(py);
        }
        self.abandon();
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<hatf.Writer {}>", self.path.display())
    }
}

impl Writer {
    /// Discards the records written so far.
    fn abandon(&mut self) {
        if let Some(writing) = self.writing.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            writing.records.abandon();
        }
    }

    fn row(
        &mut self,
        py: Python<'_>,
        record: &str,
        fields: Map<String, Value>,
        row: usize,
        signals: &Signals,
    ) -> PyResult<()> {
        if row % 4096 == 4095 {
            signals.check()?;
        }
        self.with(py, |dtd, writing| Kind::find(dtd, record)?.write(writing, fields))
    }

    /// Writes the rows of a batch column by column. Returns false and writes nothing if the columns are not fields with
    /// one value each, or if a value does not fit.
    fn write_columns(&mut self, py: Python<'_>, record: &str, batch: &RecordBatch) -> PyResult<bool> {
        let signals = Signals::of_this_thread();
        self.with(py, |dtd, writing| {
            let kind = Kind::find(dtd, record)?;
            let Some(mut encoder) = BatchEncoder::new(kind.schema, kind.section, kind.record, batch) else {
                return Ok(false);
            };
            let Writing { records, owned, .. } = writing;
            for first in (0..batch.num_rows()).step_by(SIGNALS) {
                let rows = first..batch.num_rows().min(first + SIGNALS);
                let written = py.detach(|| rows.into_iter().try_for_each(|row| encoder.write(row, records, owned)));
                written.map_err(|problem| kind.wrong(metatf::explain(&kind.schema.format, &problem)))?;
                signals.check()?;
            }
            Ok(true)
        })
    }

    fn write_arrow(&mut self, py: Python<'_>, record: &str, columns: &Bound<'_, PyAny>) -> PyResult<()> {
        let batches = capsule::stream_of(columns)?;
        let signals = Signals::of_this_thread();
        for batch in batches {
            let batch = batch.map_err(error::plain)?;
            if self.write_columns(py, record, &batch)? {
                continue;
            }
            let schema = batch.schema();
            for row in 0..batch.num_rows() {
                let mut fields = Map::new();
                for (field, column) in schema.fields().iter().zip(batch.columns()) {
                    let value = cell::value(py, column.as_ref(), row)?;
                    // A missing value has no key.
                    if !value.is_none(py) {
                        fields.insert(field.name().clone(), load::value(value.bind(py))?);
                    }
                }
                self.row(py, record, fields, row, &signals)?;
            }
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.abandon();
    }
}
