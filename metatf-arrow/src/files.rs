//! Tables as files that engines read: Parquet, Arrow, CSV, SQLite.
//!
//! Batches go out as they come: memory is that of a row group or a batch.

mod csv;
mod csv_lines;
mod import;
#[cfg(feature = "parquet")]
mod parquet_and_arrow;
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use csv::CsvWriter;
pub use import::import;
#[cfg(feature = "sqlite")]
pub use sqlite::Database;

/// Bytes of a row group in memory, after which it takes no more rows.
const GROUP_BYTES: usize = 128 << 20;

/// What a table is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    #[cfg(feature = "parquet")]
    /// Parquet: zstd, row groups of about a million rows, statistics.
    Parquet,
    #[cfg(feature = "parquet")]
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
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet_and_arrow::ParquetWriter<W>>),
    #[cfg(feature = "parquet")]
    Arrow(Box<parquet_and_arrow::ArrowFileWriter<W>>),
    Csv(CsvWriter<W>),
}

impl Form {
    /// All forms of this build.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "parquet")]
        Self::Parquet,
        #[cfg(feature = "parquet")]
        Self::Arrow,
        Self::Csv,
    ];

    /// Its name, which is the extension of its files, too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
            #[cfg(feature = "parquet")]
            Self::Arrow => "arrow",
            Self::Csv => "csv",
        }
    }

    /// The form of this name or extension.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|form| form.name() == name)
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a file of columns.
    ///
    /// # Errors
    /// A column that the form cannot hold; the output's.
    pub fn new(form: Form, schema: &SchemaRef, output: W) -> Result<Self, WriteError> {
        let inner = match form {
            #[cfg(feature = "parquet")]
            Form::Parquet => Inner::Parquet(Box::new(parquet_and_arrow::ParquetWriter::new(output, schema)?)),
            #[cfg(feature = "parquet")]
            Form::Arrow => Inner::Arrow(Box::new(parquet_and_arrow::ArrowFileWriter::new(output, schema)?)),
            Form::Csv => Inner::Csv(CsvWriter::new(output, schema).map_err(WriteError::Output)?),
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
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => {
                writer.write(batch)?;
                if writer.memory() > GROUP_BYTES { writer.flush() } else { Ok(()) }
            }
            #[cfg(feature = "parquet")]
            Inner::Arrow(writer) => writer.write(batch),
            Inner::Csv(writer) => writer.write(batch).map_err(WriteError::Output),
        }
    }

    /// Bytes of rows that wait to be written as a group.
    fn memory(&self) -> usize {
        match &self.inner {
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => writer.memory(),
            _ => 0,
        }
    }

    /// Writes the rows that wait, as a group.
    fn flush(&mut self) -> Result<(), WriteError> {
        match &mut self.inner {
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => writer.flush(),
            _ => Ok(()),
        }
    }

    /// Ends the file. Gives the output back, and how many rows were written.
    ///
    /// # Errors
    /// The output's.
    pub fn finish(self) -> Result<(W, u64), WriteError> {
        let output = match self.inner {
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => writer.finish()?,
            #[cfg(feature = "parquet")]
            Inner::Arrow(writer) => writer.finish()?,
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

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Table(message) => f.write_str(message),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}
