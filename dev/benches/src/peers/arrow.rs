//! Arrow IPC and Parquet, with the columns kind, size, address and old address. Arrow's columns need no decoding, so
//! their speed is an upper bound rather than a fair comparison.

use super::Call;
use crate::{Counts, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt64Type};
use arrow_array::{RecordBatch, UInt8Array, UInt64Array};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use prost::bytes::Bytes;
use std::sync::Arc;

const ALLOC: u8 = 4;
const REALLOC: u8 = 5;
const FREE: u8 = 6;

/// Number of events per Arrow batch. Batches are larger than the messages of other formats.
const BATCH: usize = 65_536;

fn schema() -> Arc<Schema> {
    let number = |name| Field::new(name, DataType::UInt64, false);
    let kind = Field::new("kind", DataType::UInt8, false);
    Arc::new(Schema::new(vec![kind, number("size"), number("address"), number("old")]))
}

fn batch(schema: &Arc<Schema>, calls: &[Call]) -> Result<RecordBatch> {
    let mut kinds = Vec::with_capacity(calls.len());
    let [mut sizes, mut addresses, mut olds] = [(); 3].map(|()| Vec::with_capacity(calls.len()));
    for call in calls {
        let (kind, size, address, old) = match *call {
            Call::Alloc { size, address } => (ALLOC, size, address, 0),
            Call::Realloc { old, address } => (REALLOC, 0, address, old),
            Call::Free { address } => (FREE, 0, address, 0),
        };
        kinds.push(kind);
        sizes.push(size);
        addresses.push(address);
        olds.push(old);
    }
    let [sizes, addresses, olds] = [sizes, addresses, olds].map(|values| Arc::new(UInt64Array::from(values)) as _);
    let kinds = Arc::new(UInt8Array::from(kinds));
    Ok(RecordBatch::try_new(Arc::clone(schema), vec![kinds, sizes, addresses, olds])?)
}

/// Returns the sum of the numbers in a batch.
fn sum(batch: &RecordBatch) -> u64 {
    let columns = batch.columns().iter().filter_map(|column| column.as_primitive_opt::<UInt64Type>());
    columns.fold(0, |sum, column| column.values().iter().fold(sum, |sum, value| sum.wrapping_add(*value)))
}

/// Counts the kinds in a batch, which are in its first column.
fn note(batch: &RecordBatch, counts: &mut Counts) {
    let kinds = batch.columns().first().and_then(|column| column.as_primitive_opt::<UInt8Type>());
    let kinds = kinds.map_or(&[][..], |kinds| kinds.values());
    for (count, kind) in counts.iter_mut().zip([ALLOC, REALLOC, FREE]) {
        *count += kinds.iter().filter(|&&k| k == kind).count() as u64;
    }
}

/// Writes the events as an Arrow stream.
///
/// # Errors
/// Not expected to fail.
pub fn ipc_encode(calls: &[Call], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let schema = schema();
    let mut writer = StreamWriter::try_new(out, &schema)?;
    for calls in calls.chunks(BATCH) {
        writer.write(&batch(&schema, calls)?)?;
    }
    Ok(writer.finish()?)
}

/// Visits the batches, which refer to the buffer instead of copying its content.
fn ipc_each(bytes: &Buffer, mut visit: impl FnMut(&RecordBatch)) -> Result<()> {
    let mut decoder = StreamDecoder::new();
    let mut rest = bytes.clone();
    while let Some(batch) = decoder.decode(&mut rest)? {
        visit(&batch);
    }
    Ok(decoder.finish()?)
}

/// Returns the sum of all fields in an Arrow stream.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn ipc_all(bytes: &Buffer) -> Result<u64> {
    let mut all = 0_u64;
    ipc_each(bytes, |batch| all = all.wrapping_add(sum(batch)))?;
    Ok(all)
}

/// Returns the number of events of each kind in an Arrow stream.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn ipc_count(bytes: &Buffer) -> Result<Counts> {
    let mut counts = [0; 3];
    ipc_each(bytes, |batch| note(batch, &mut counts))?;
    Ok(counts)
}

/// Writes the events as a Parquet file with its writer's default encodings, uncompressed or compressed by zstd at level
/// 3.
///
/// # Errors
/// Not expected to fail.
pub fn parquet_encode(calls: &[Call], zstd: bool, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let compression = if zstd { Compression::ZSTD(ZstdLevel::try_new(3)?) } else { Compression::UNCOMPRESSED };
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = schema();
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))?;
    for calls in calls.chunks(BATCH) {
        writer.write(&batch(&schema, calls)?)?;
    }
    writer.close()?;
    Ok(())
}

/// Returns the sum of all fields in a Parquet file.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn parquet_all(bytes: &Bytes) -> Result<u64> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?.with_batch_size(8192).build()?;
    let mut all = 0_u64;
    for batch in reader {
        all = all.wrapping_add(sum(&batch?));
    }
    Ok(all)
}

/// Returns the number of events of each kind in a Parquet file, reading only its first column.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn parquet_count(bytes: &Bytes) -> Result<Counts> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())?;
    let kinds = ProjectionMask::roots(builder.parquet_schema(), [0]);
    let mut counts = [0; 3];
    for batch in builder.with_projection(kinds).with_batch_size(8192).build()? {
        note(&batch?, &mut counts);
    }
    Ok(counts)
}
