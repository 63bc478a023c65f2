//! Rows of files that were exported: Parquet, Arrow and CSV.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::csv_lines::{CsvLines, TextCell};
use crate::cell::{Cell, cell_with};
use crate::{Error, Result};

/// The rows of a file, one by one: what is not there is left out.
pub(crate) struct Rows {
    inner: Inner,
    names: Vec<String>,
    /// Rows given so far.
    pub(crate) given: u64,
}

enum Inner {
    Batches { batches: Box<dyn RecordBatchReader + Send>, batch: Option<RecordBatch>, next: usize },
    Csv(Box<CsvLines<BufReader<File>>>),
}

impl Rows {
    /// Opens a file, which tells by its first bytes what it is.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let fail = |error: &dyn std::fmt::Display| Error::new(path, error);
        let mut head = Vec::new();
        let file = File::open(path).map_err(|e| fail(&e))?;
        (&file).take(6).read_to_end(&mut head).map_err(|e| fail(&e))?;
        let file = File::open(path).map_err(|e| fail(&e))?;
        let batches: Box<dyn RecordBatchReader + Send> = if head.starts_with(b"PAR1") {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| fail(&e))?;
            Box::new(builder.build().map_err(|e| fail(&e))?)
        } else if head == b"ARROW1" {
            Box::new(FileReader::try_new(BufReader::new(file), None).map_err(|e| fail(&e))?)
        } else {
            let mut lines = CsvLines::new(BufReader::new(file));
            let head = lines.next().map_err(|e| fail(&e))?.unwrap_or_default();
            let names = head.into_iter().map(|cell| cell.text).collect();
            return Ok(Self { inner: Inner::Csv(Box::new(lines)), names, given: 0 });
        };
        let schema: SchemaRef = batches.schema();
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        Ok(Self { inner: Inner::Batches { batches, batch: None, next: 0 }, names, given: 0 })
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the next row; `None` at the end. An error is without the file's name.
    pub(crate) fn next(&mut self) -> Result<Option<Map<String, Value>>, String> {
        let Self { inner, names, given } = self;
        let row = match inner {
            Inner::Batches { batches, batch, next } => loop {
                match batch {
                    Some(batch) if *next < batch.num_rows() => {
                        let row = *next;
                        *next += 1;
                        break Some(of_batch(batch, row, names).map_err(|e| e.to_string())?);
                    }
                    _ => {
                        *next = 0;
                        *batch = batches.next().transpose().map_err(|e| e.to_string())?;
                        if batch.is_none() {
                            break None;
                        }
                    }
                }
            },
            Inner::Csv(lines) => match lines.next().map_err(|e| format!("line {}: {e}", lines.line))? {
                None => None,
                Some(cells) if cells.len() == names.len() => Some(of_cells(names, cells)),
                Some(cells) => {
                    return Err(format!("line {}: {} cells in place of {}", lines.line, cells.len(), names.len()));
                }
            },
        };
        *given += u64::from(row.is_some());
        Ok(row)
    }

    /// Whether values are the texts of cells.
    pub(crate) fn are_texts(&self) -> bool {
        matches!(self.inner, Inner::Csv(_))
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
