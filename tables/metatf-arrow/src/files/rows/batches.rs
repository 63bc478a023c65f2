//! Rows of Parquet and Arrow files.

use std::any::Any;
use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, Int64Array, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::{EncoderOf, Row};
use crate::BatchEncoder;
use crate::cell::{Cell, cell_with};
use crate::record_table::NUMBER;

/// The batches of a file, and the current batch.
pub(super) struct Batches {
    batches: Box<dyn RecordBatchReader + Send>,
    batch: Option<RecordBatch>,
    next: usize,
    /// A function that returns an encoder for a batch, if the batch supports one.
    encoder_of: EncoderOf,
    pub(super) encoder: Option<BatchEncoder>,
    /// The record numbers of the batch, if the batch has an encoder.
    numbers: Option<Int64Array>,
}

fn boxed(batches: impl RecordBatchReader + Send + 'static) -> Box<dyn RecordBatchReader + Send> {
    Box::new(batches)
}

/// Runs a decoder. The libraries panic on some corrupt files; the panic is converted to an error, after which the file
/// is not read any further.
fn decoded<T, E: Display>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("the file is corrupt: its decoder failed: {}", text_of(&*panic))),
    }
}

/// Returns the message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

impl Batches {
    /// Opens a Parquet or Arrow file, whose first bytes determine the format, and returns its column names. Errors do
    /// not contain the file name.
    pub(super) fn open(head: &[u8], file: File, encoder_of: EncoderOf) -> Result<(Self, Vec<String>), String> {
        let batches = if head.starts_with(super::PARQUET) {
            decoded(|| ParquetRecordBatchReaderBuilder::try_new(file)?.build().map(boxed))?
        } else {
            decoded(|| FileReader::try_new(BufReader::new(file), None).map(boxed))?
        };
        let schema: SchemaRef = batches.schema();
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Ok((Self { batches, batch: None, next: 0, encoder_of, encoder: None, numbers: None }, names))
    }

    /// Returns whether the next row is in a batch that is not decoded yet.
    pub(super) fn decodes_next(&self) -> bool {
        self.batch.as_ref().is_none_or(|batch| self.next >= batch.num_rows())
    }

    /// Returns the next row, or `None` at the end. Errors do not contain the file name.
    pub(super) fn next(&mut self, names: &[String]) -> Result<Option<Row>, String> {
        decoded(|| self.next_row(names))
    }

    fn next_row(&mut self, names: &[String]) -> Result<Option<Row>, ArrowError> {
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
        let cell = cell_with(column, row, exact_json)?;
        if cell != Cell::Null {
            object.insert(name.clone(), exact_json(&cell));
        }
    }
    Ok(object)
}

/// Converts a cell like [`Cell::json`], but writes bytes and floating-point numbers as `{"hex":..}` to distinguish them
/// from text.
fn exact_json(cell: &Cell) -> Value {
    match (cell, cell.json()) {
        (Cell::Bytes(_), hex) => serde_json::json!({ "hex": hex }),
        (Cell::Single(real), _) => serde_json::json!({ "hex": format!("{:08x}", real.to_bits()) }),
        (Cell::Float(real), _) => serde_json::json!({ "hex": format!("{:016x}", real.to_bits()) }),
        (_, json) => json,
    }
}
