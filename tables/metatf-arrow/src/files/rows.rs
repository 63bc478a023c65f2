//! Reads rows from exported Parquet, Arrow and CSV files.

#[cfg(feature = "parquet")]
mod batches;

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use arrow_array::RecordBatch;
use metatf::container::WholeFile;
use serde_json::{Map, Value};

use super::csv_lines::{CsvLines, TextCell};
use crate::{BatchEncoder, Error, Result};

/// The first bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// The first bytes of an Arrow file.
const ARROW: &[u8] = b"ARROW1";

/// The rows of a file.
pub(crate) struct Rows {
    inner: Inner,
    names: Vec<String>,
    /// Number of rows returned so far.
    pub(crate) given: u64,
}

/// A row of a file.
pub(crate) enum Row {
    /// Values by column name, without missing values.
    Values(Map<String, Value>),
    /// Index in the batch that [`Rows::encoder`] encodes, and the record number if the batch has a column of numbers.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "CSV rows are always read as values"))]
    Encoded(usize, Option<i64>),
}

enum Inner {
    #[cfg(feature = "parquet")]
    Batches(Box<batches::Batches>),
    Csv(Box<CsvLines<BufReader<WholeFile>>>),
}

/// A function that returns an encoder for a batch, if the batch supports one.
pub(crate) type EncoderOf = Box<dyn Fn(&RecordBatch) -> Option<BatchEncoder>>;

impl Rows {
    /// Opens a file. Its first bytes determine the format.
    pub(crate) fn open(path: &Path, encoder_of: EncoderOf) -> Result<Self> {
        let fail = |error: &dyn std::fmt::Display| Error::new(path, error);
        let mut head = Vec::new();
        let file = File::open(path).map_err(|e| fail(&e))?;
        (&file).take(6).read_to_end(&mut head).map_err(|e| fail(&e))?;
        let file = File::open(path).map_err(|e| fail(&e))?;
        if head.starts_with(PARQUET) || head == ARROW {
            return of_batches(&head, file, encoder_of).map_err(|e| fail(&e));
        }
        let file = WholeFile::open(path).map_err(|e| fail(&e))?;
        let mut lines = CsvLines::new(BufReader::new(file));
        let head = lines.next().map_err(|e| fail(&e))?.unwrap_or_default();
        let names = head.into_iter().map(|cell| cell.text).collect();
        Ok(Self { inner: Inner::Csv(Box::new(lines)), names, given: 0 })
    }

    /// Returns the column names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether [`next`](Self::next) decodes more of the file before it returns a row.
    pub(crate) fn decodes_next(&self) -> bool {
        match &self.inner {
            #[cfg(feature = "parquet")]
            Inner::Batches(batches) => batches.decodes_next(),
            Inner::Csv(_) => false,
        }
    }

    /// Returns the next row, or `None` at the end. Errors do not contain the file name.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, String> {
        let Self { inner, names, given } = self;
        let row = match inner {
            #[cfg(feature = "parquet")]
            Inner::Batches(batches) => batches.next(names)?,
            Inner::Csv(lines) => match lines.next().map_err(|e| format!("line {}: {e}", lines.line))? {
                None => None,
                Some(cells) if cells.len() == names.len() => Some(Row::Values(of_cells(names, cells))),
                Some(cells) => {
                    return Err(format!("line {}: expected {} cells, found {}", lines.line, names.len(), cells.len()));
                }
            },
        };
        *given += u64::from(row.is_some());
        Ok(row)
    }

    /// Returns the encoder of the current batch.
    pub(crate) fn encoder(&mut self) -> Option<&mut BatchEncoder> {
        match &mut self.inner {
            #[cfg(feature = "parquet")]
            Inner::Batches(batches) => batches.encoder.as_mut(),
            Inner::Csv(_) => None,
        }
    }

    /// Returns whether all values are strings from CSV cells.
    pub(crate) fn are_texts(&self) -> bool {
        matches!(self.inner, Inner::Csv(_))
    }
}

#[cfg(feature = "parquet")]
fn of_batches(head: &[u8], file: File, encoder_of: EncoderOf) -> Result<Rows, String> {
    let (batches, names) = batches::Batches::open(head, file, encoder_of)?;
    Ok(Rows { inner: Inner::Batches(Box::new(batches)), names, given: 0 })
}

#[cfg(not(feature = "parquet"))]
fn of_batches(_: &[u8], _: File, _: EncoderOf) -> Result<Rows, String> {
    Err("this build cannot read Parquet and Arrow files: the feature `tables` is not enabled".to_owned())
}

fn of_cells(names: &[String], cells: Vec<TextCell>) -> Map<String, Value> {
    let there = names.iter().zip(cells).filter(|(_, cell)| cell.is_quoted || !cell.text.is_empty());
    there.map(|(name, cell)| (name.clone(), cell.text.into())).collect()
}
