//! Writers of Parquet and Arrow files.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::WriteError;

/// The maximum number of rows in a row group.
const GROUP: usize = 1 << 20;

/// A writer of Parquet files with zstd compression and row groups of about a million rows.
pub(super) struct ParquetWriter<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> ParquetWriter<W> {
    pub(super) fn new(output: W, schema: &SchemaRef) -> Result<Self, WriteError> {
        let level = ZstdLevel::try_new(3).map_err(parquet_error)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(GROUP))
            .build();
        ArrowWriter::try_new(output, Arc::clone(schema), Some(properties)).map(Self).map_err(parquet_error)
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        self.0.write(batch).map_err(parquet_error)
    }

    /// Returns the size in bytes of the rows that have not been written as a group yet.
    pub(super) fn memory(&self) -> usize {
        self.0.memory_size()
    }

    /// Writes the waiting rows as a group.
    pub(super) fn flush(&mut self) -> Result<(), WriteError> {
        self.0.flush().map_err(parquet_error)
    }

    pub(super) fn finish(self) -> Result<W, WriteError> {
        self.0.into_inner().map_err(parquet_error)
    }
}

/// A writer of Arrow IPC files with zstd compression. Dictionaries are replaced with their values, because a file has
/// one dictionary for all batches, but the dictionaries of a table differ between batches.
pub(super) struct ArrowFileWriter<W: Write + Send> {
    writer: FileWriter<W>,
    schema: SchemaRef,
}

impl<W: Write + Send> ArrowFileWriter<W> {
    pub(super) fn new(output: W, schema: &SchemaRef) -> Result<Self, WriteError> {
        let zstd = Some(arrow_ipc::CompressionType::ZSTD);
        let options = IpcWriteOptions::default().try_with_compression(zstd).map_err(arrow_error)?;
        let schema = unpacked_schema(schema);
        let writer = FileWriter::try_new_with_options(output, &schema, options).map_err(arrow_error)?;
        Ok(Self { writer, schema })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        unpacked(batch, &self.schema).and_then(|batch| self.writer.write(&batch)).map_err(arrow_error)
    }

    pub(super) fn finish(self) -> Result<W, WriteError> {
        self.writer.into_inner().map_err(arrow_error)
    }
}

/// Returns the schema with dictionary types replaced by their value types.
fn unpacked_schema(schema: &SchemaRef) -> SchemaRef {
    let unpacked = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(_, values) => Arc::new(field.as_ref().clone().with_data_type((**values).clone())),
        _ => Arc::clone(field),
    };
    let fields: Vec<_> = schema.fields().iter().map(unpacked).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns a batch with dictionaries replaced by their values.
fn unpacked(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let unpacked = |column: &ArrayRef| match column.as_any_dictionary_opt() {
        Some(words) => arrow_select::take::take(words.values(), words.keys(), None),
        None => Ok(Arc::clone(column)),
    };
    let columns = batch.columns().iter().map(unpacked).collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// Converts a writer error. If an I/O error caused the writer error, returns the I/O error.
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
