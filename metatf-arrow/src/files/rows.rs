//! Rows of files that were exported: Parquet, Arrow and CSV.

use std::any::Any;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, Int64Array, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::csv_lines::{CsvLines, TextCell};
use crate::cell::{Cell, cell_with};
use crate::record_table::NUMBER;
use crate::{BatchEncoder, Error, Result};

/// The rows of a file, one by one.
pub(crate) struct Rows {
    inner: Inner,
    names: Vec<String>,
    /// Rows given so far.
    pub(crate) given: u64,
}

/// A row.
pub(crate) enum Row {
    /// Its values by their names: what is not there is left out.
    Values(Map<String, Value>),
    /// The one with this place in the batch that [`Rows::encoder`] is of, and its number if the batch has numbers.
    Encoded(usize, Option<i64>),
}

enum Inner {
    Batches(Box<Batches>),
    Csv(Box<CsvLines<BufReader<File>>>),
}

/// Batches, of which one is being given.
struct Batches {
    batches: Box<dyn RecordBatchReader + Send>,
    batch: Option<RecordBatch>,
    next: usize,
    /// Makes an encoder of a batch, if it can have one.
    encoder_of: EncoderOf,
    encoder: Option<BatchEncoder>,
    /// The batch's numbers of records, if it has an encoder.
    numbers: Option<Int64Array>,
}

/// Makes an encoder of a batch, if it can have one.
pub(crate) type EncoderOf = Box<dyn Fn(&RecordBatch) -> Option<BatchEncoder>>;

impl Rows {
    /// Opens a file, which tells by its first bytes what it is.
    pub(crate) fn open(path: &Path, encoder_of: EncoderOf) -> Result<Self> {
        let fail = |error: &dyn std::fmt::Display| Error::new(path, error);
        let mut head = Vec::new();
        let file = File::open(path).map_err(|e| fail(&e))?;
        (&file).take(6).read_to_end(&mut head).map_err(|e| fail(&e))?;
        let file = File::open(path).map_err(|e| fail(&e))?;
        let batches = if head.starts_with(b"PAR1") {
            decoded(|| ParquetRecordBatchReaderBuilder::try_new(file)?.build().map(boxed))
        } else if head == b"ARROW1" {
            decoded(|| FileReader::try_new(BufReader::new(file), None).map(boxed))
        } else {
            let mut lines = CsvLines::new(BufReader::new(file));
            let head = lines.next().map_err(|e| fail(&e))?.unwrap_or_default();
            let names = head.into_iter().map(|cell| cell.text).collect();
            return Ok(Self { inner: Inner::Csv(Box::new(lines)), names, given: 0 });
        };
        let batches = batches.map_err(|e| fail(&e))?;
        let schema: SchemaRef = batches.schema();
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        let batches = Batches { batches, batch: None, next: 0, encoder_of, encoder: None, numbers: None };
        Ok(Self { inner: Inner::Batches(Box::new(batches)), names, given: 0 })
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether [`next`](Self::next) decodes more of the file before it returns a row.
    pub(crate) fn decodes_next(&self) -> bool {
        match &self.inner {
            Inner::Batches(batches) => batches.batch.as_ref().is_none_or(|batch| batches.next >= batch.num_rows()),
            Inner::Csv(_) => false,
        }
    }

    /// Returns the next row; `None` at the end. An error is without the file's name.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, String> {
        let Self { inner, names, given } = self;
        let row = match inner {
            Inner::Batches(batches) => decoded(|| batches.next(names))?,
            Inner::Csv(lines) => match lines.next().map_err(|e| format!("line {}: {e}", lines.line))? {
                None => None,
                Some(cells) if cells.len() == names.len() => Some(Row::Values(of_cells(names, cells))),
                Some(cells) => {
                    return Err(format!("line {}: {} cells in place of {}", lines.line, cells.len(), names.len()));
                }
            },
        };
        *given += u64::from(row.is_some());
        Ok(row)
    }

    /// The encoder of the batch that is being given.
    pub(crate) fn encoder(&mut self) -> Option<&mut BatchEncoder> {
        match &mut self.inner {
            Inner::Batches(batches) => batches.encoder.as_mut(),
            Inner::Csv(_) => None,
        }
    }

    /// Whether values are the texts of cells.
    pub(crate) fn are_texts(&self) -> bool {
        matches!(self.inner, Inner::Csv(_))
    }
}

fn boxed(batches: impl RecordBatchReader + Send + 'static) -> Box<dyn RecordBatchReader + Send> {
    Box::new(batches)
}

/// Calls what decodes a file. The libraries panic on some damaged files, which is an error here: nothing is read from the file after it.
fn decoded<T, E: Display>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("the file is damaged: its decoder failed: {}", text_of(&*panic))),
    }
}

/// Returns the message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

impl Batches {
    fn next(&mut self, names: &[String]) -> Result<Option<Row>, ArrowError> {
        loop {
            let Some(batch) = self.batch.as_ref().filter(|batch| self.next < batch.num_rows()) else {
                let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
                let numbers = batch.column_by_name(NUMBER);
                let is_counted = numbers.is_none_or(|numbers| numbers.as_primitive_opt::<Int64Type>().is_some());
                self.encoder = (self.encoder_of)(&batch).filter(|_| is_counted);
                self.numbers = numbers.and_then(|numbers| numbers.as_primitive_opt().cloned());
                (self.batch, self.next) = (Some(batch), 0);
                continue;
            };
            let row = self.next;
            self.next += 1;
            return Ok(Some(match &self.encoder {
                Some(_) => {
                    let number = self.numbers.as_ref().filter(|numbers| numbers.is_valid(row));
                    Row::Encoded(row, number.map(|numbers| numbers.value(row)))
                }
                None => Row::Values(of_batch(batch, row, names)?),
            }));
        }
    }
}

fn of_batch(batch: &RecordBatch, row: usize, names: &[String]) -> Result<Map<String, Value>, ArrowError> {
    let mut object = Map::new();
    for (name, column) in names.iter().zip(batch.columns()) {
        let cell = cell_with(column, row, |cell| cell.exact_json())?;
        if cell != Cell::Null {
            object.insert(name.clone(), cell.exact_json());
        }
    }
    Ok(object)
}

fn of_cells(names: &[String], cells: Vec<TextCell>) -> Map<String, Value> {
    let there = names.iter().zip(cells).filter(|(_, cell)| cell.is_quoted || !cell.text.is_empty());
    there.map(|(name, cell)| (name.clone(), cell.text.into())).collect()
}
