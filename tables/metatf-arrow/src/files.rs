//! Writes tables as Parquet, Arrow, CSV or SQLite files.
//!
//! Batches are written as they arrive, so at most one row group or batch is in memory.
//!
//! ```
//! use arrow_array::record_batch;
//! use metatf_arrow::files::{Form, TableWriter};
//!
//! let batch = record_batch!(("size", Int64, [16, 48]), ("function", Utf8, ["main", "get, set"]))?;
//! let mut writer = TableWriter::new(Form::Csv, &batch.schema(), Vec::new())?;
//! writer.batch(&batch)?;
//! let (csv, rows) = writer.finish()?;
//! assert_eq!(rows, 2);
//! assert_eq!(csv, b"size,function\n16,main\n48,\"get, set\"\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

/// Size in memory, in bytes, at which a row group is written.
const GROUP_BYTES: usize = 128 << 20;

/// A file format for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    #[cfg(feature = "parquet")]
    /// Parquet with zstd compression, row groups of about a million rows, and statistics.
    Parquet,
    #[cfg(feature = "parquet")]
    /// An Arrow IPC file with zstd compression.
    Arrow,
    /// CSV (RFC 4180) with line feeds as line ends. Lists and structures are written as JSON, bytes in hexadecimal, and
    /// missing values as empty cells.
    Csv,
}

/// The reason that a table was not written.
#[derive(Debug)]
pub enum WriteError {
    /// An error while reading the table. The message contains the path of the trace.
    Table(String),
    /// An error while writing the output file.
    Output(io::Error),
}

/// A file under construction. It accepts several scans of tables with the same schema, one after the other. See the
/// [module](crate::files) for an example.
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
    /// All formats that this build supports.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "parquet")]
        Self::Parquet,
        #[cfg(feature = "parquet")]
        Self::Arrow,
        Self::Csv,
    ];

    /// Returns the name, which is also the file extension.
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

    /// Returns the format with this name or extension.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|form| form.name() == name)
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Creates a file with these columns.
    ///
    /// # Errors
    /// Returns an error if the format does not support a column type, or if writing fails.
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

    /// Prepends `'` to text that a spreadsheet would evaluate as a formula, in a CSV file. Other formats have no formulas.
    #[must_use]
    pub fn without_formulas(mut self) -> Self {
        #[cfg_attr(not(feature = "parquet"), expect(irrefutable_let_patterns, reason = "CSV is the only format"))]
        if let Inner::Csv(writer) = &mut self.inner {
            writer.no_formulas = true;
        }
        self
    }

    /// Writes a batch of rows.
    ///
    /// # Errors
    /// Returns an error if writing fails.
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

    /// Returns the size in bytes of the rows that have not been written as a group yet.
    fn memory(&self) -> usize {
        match &self.inner {
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => writer.memory(),
            _ => 0,
        }
    }

    /// Writes the waiting rows as a group.
    fn flush(&mut self) -> Result<(), WriteError> {
        match &mut self.inner {
            #[cfg(feature = "parquet")]
            Inner::Parquet(writer) => writer.flush(),
            _ => Ok(()),
        }
    }

    /// Completes the file. Returns the output and the number of rows.
    ///
    /// # Errors
    /// Returns an error if writing fails.
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

/// Limits the memory of files that are written at the same time: if together they exceed two full row groups, the
/// largest waiting group is written.
///
/// # Errors
/// Returns an error if writing fails.
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
