//! Tables as files that engines read: Parquet, Arrow, CSV, SQLite.
//!
//! Batches go out as they come: memory is that of a row group or a batch.

mod csv;
mod csv_lines;
mod import;
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use csv::CsvWriter;
pub use import::import;
#[cfg(feature = "sqlite")]
pub use sqlite::Database;

/// Rows of a row group of Parquet.
const GROUP: usize = 1 << 20;

/// Bytes of a row group in memory, after which it takes no more rows.
const GROUP_BYTES: usize = 128 << 20;

/// What a table is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Parquet: zstd, row groups of about a million rows, statistics.
    Parquet,
    /// An Arrow IPC file, compressed by zstd.
    Arrow,
    /// CSV by RFC 4180, the lines ending in a line feed. Lists and structures are JSON, bytes hexadecimal, a missing value is empty.
    Csv,
}

/// Why a table was not written.
#[derive(Debug)]
pub enum WriteError {
    /// What is wrong with the table that is read; it names the trace.
    Table(String),
    /// What is wrong with the file that is written.
    Output(io::Error),
}

/// A file that is being written. Several scans of tables of one schema may go into it, one after the other.
pub struct TableWriter<W: Write + Send> {
    inner: Inner<W>,
    rows: u64,
}

enum Inner<W: Write + Send> {
    Parquet(Box<ArrowWriter<W>>),
    /// Without dictionaries: a file has one for all batches, and those of a table change.
    Arrow(Box<FileWriter<W>>, SchemaRef),
    Csv(CsvWriter<W>),
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Parquet, Self::Arrow, Self::Csv];

    /// Its name, which is the extension of its files, too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Csv => "csv",
        }
    }

    /// The form of this name or extension.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a file of columns.
    ///
    /// # Errors
    /// A column that the form cannot hold; the output's.
    pub fn new(form: Form, schema: &SchemaRef, output: W) -> Result<Self, WriteError> {
        let schema = SchemaRef::clone(schema);
        let inner = match form {
            Form::Parquet => {
                let level = ZstdLevel::try_new(3).map_err(parquet_error)?;
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(level))
                    .set_max_row_group_row_count(Some(GROUP))
                    .build();
                let writer = ArrowWriter::try_new(output, schema, Some(properties)).map_err(parquet_error)?;
                Inner::Parquet(Box::new(writer))
            }
            Form::Arrow => {
                let zstd = Some(arrow_ipc::CompressionType::ZSTD);
                let options = IpcWriteOptions::default().try_with_compression(zstd).map_err(arrow_error)?;
                let schema = unpacked_schema(&schema);
                let writer = FileWriter::try_new_with_options(output, &schema, options).map_err(arrow_error)?;
                Inner::Arrow(Box::new(writer), schema)
            }
            Form::Csv => Inner::Csv(CsvWriter::new(output, &schema).map_err(WriteError::Output)?),
        };
        Ok(Self { inner, rows: 0 })
    }

    /// Writes some rows.
    ///
    /// # Errors
    /// The output's.
    pub fn batch(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        self.rows += batch.num_rows() as u64;
        match &mut self.inner {
            Inner::Parquet(writer) => {
                writer.write(batch).map_err(parquet_error)?;
                if self.memory() > GROUP_BYTES { self.flush() } else { Ok(()) }
            }
            Inner::Arrow(writer, schema) => {
                unpacked(batch, schema).and_then(|batch| writer.write(&batch)).map_err(arrow_error)
            }
            Inner::Csv(writer) => writer.write(batch).map_err(WriteError::Output),
        }
    }

    /// Bytes of rows that wait to be written as a group.
    fn memory(&self) -> usize {
        match &self.inner {
            Inner::Parquet(writer) => writer.memory_size(),
            Inner::Arrow(..) | Inner::Csv(_) => 0,
        }
    }

    /// Writes the rows that wait, as a group.
    fn flush(&mut self) -> Result<(), WriteError> {
        match &mut self.inner {
            Inner::Parquet(writer) => writer.flush().map_err(parquet_error),
            Inner::Arrow(..) | Inner::Csv(_) => Ok(()),
        }
    }

    /// Ends the file. Gives the output back, and how many rows were written.
    ///
    /// # Errors
    /// The output's.
    pub fn finish(self) -> Result<(W, u64), WriteError> {
        let output = match self.inner {
            Inner::Parquet(writer) => writer.into_inner().map_err(parquet_error)?,
            Inner::Arrow(writer, _) => writer.into_inner().map_err(arrow_error)?,
            Inner::Csv(writer) => writer.finish(),
        };
        Ok((output, self.rows))
    }
}

/// Bounds the memory of files that are written at once: where it is that of two large groups, the one that takes most is written out.
///
/// # Errors
/// Its output's.
pub fn bound_memory<'w, W: Write + Send + 'w>(
    writers: impl Iterator<Item = &'w mut TableWriter<W>>,
) -> Result<(), WriteError> {
    let (mut all, mut heaviest) = (0, None);
    for writer in writers {
        let memory = writer.memory();
        all += memory;
        if heaviest.as_ref().is_none_or(|(most, _)| memory > *most) {
            heaviest = Some((memory, writer));
        }
    }
    match heaviest {
        Some((_, writer)) if all > 2 * GROUP_BYTES => writer.flush(),
        _ => Ok(()),
    }
}

/// Returns columns with the values of dictionaries in place of them.
fn unpacked_schema(schema: &SchemaRef) -> SchemaRef {
    let unpacked = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(_, values) => Arc::new(field.as_ref().clone().with_data_type((**values).clone())),
        _ => Arc::clone(field),
    };
    let fields: Vec<_> = schema.fields().iter().map(unpacked).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns rows with the values of dictionaries in place of them.
fn unpacked(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let unpacked = |column: &ArrayRef| match column.as_any_dictionary_opt() {
        Some(words) => arrow_select::take::take(words.values(), words.keys(), None),
        None => Ok(Arc::clone(column)),
    };
    let columns = batch.columns().iter().map(unpacked).collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// An error of the writer: the system's where that is its cause.
fn parquet_error(error: ParquetError) -> WriteError {
    WriteError::Output(match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    })
}

fn arrow_error(error: ArrowError) -> WriteError {
    WriteError::Output(match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    })
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Table(message) => f.write_str(message),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}
