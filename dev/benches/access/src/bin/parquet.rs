//! Parquet with the defaults of its writer and zstd at level 3: one column for each field.

use access_bench::{Access, Checksum, Result, events};
use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::{fs::File, io::BufWriter, sync::Arc};

/// Number of events per Arrow batch.
const BATCH: usize = 65_536;

fn main() -> Result<()> {
    access_bench::run(write, read, Some(sum))
}

fn span_fields() -> Vec<Field> {
    ["kind", "offset_us", "dur_us"].map(|name| Field::new(name, DataType::UInt32, false)).to_vec()
}

fn schema() -> Arc<Schema> {
    let field = |name, kind| Field::new(name, kind, false);
    let number = |name| field(name, DataType::UInt32);
    let span = Arc::new(Field::new("item", DataType::Struct(span_fields().into()), false));
    Arc::new(Schema::new(vec![
        field("time", DataType::UInt64),
        field("request_id", DataType::UInt64),
        field("path", DataType::Utf8),
        number("method"),
        number("status"),
        number("flags"),
        Field::new("user", DataType::UInt32, true),
        number("took_us"),
        number("bytes_out"),
        field("score", DataType::Float64),
        field("spans", DataType::List(span)),
    ]))
}

fn batch(schema: &Arc<Schema>, events: &[Access]) -> Result<RecordBatch> {
    let wide = |of: fn(&Access) -> u64| Arc::new(UInt64Array::from_iter_values(events.iter().map(of))) as ArrayRef;
    let number = |of: fn(&Access) -> u32| Arc::new(UInt32Array::from_iter_values(events.iter().map(of))) as ArrayRef;
    let mut paths = StringBuilder::new();
    events.iter().for_each(|event| paths.append_value(&event.path));
    let columns: Vec<ArrayRef> = vec![
        wide(|event| event.time),
        wide(|event| event.request_id),
        Arc::new(paths.finish()),
        number(|event| event.method),
        number(|event| event.status),
        number(|event| event.flags),
        Arc::new(events.iter().map(|event| event.user).collect::<UInt32Array>()),
        number(|event| event.took_us),
        number(|event| event.bytes_out),
        Arc::new(Float64Array::from_iter_values(events.iter().map(|event| event.score))),
        Arc::new(spans(events)?),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn spans(events: &[Access]) -> Result<arrow_array::ListArray> {
    let item = Field::new("item", DataType::Struct(span_fields().into()), false);
    let mut list = ListBuilder::new(StructBuilder::from_fields(span_fields(), 0)).with_field(item);
    for event in events {
        for span in &event.spans {
            let values = list.values();
            for (i, number) in [span.kind, span.offset_us, span.dur_us].into_iter().enumerate() {
                values.field_builder::<UInt32Builder>(i).ok_or("not a column of numbers")?.append_value(number);
            }
            values.append(true);
        }
        list.append(true);
    }
    Ok(list.finish())
}

fn write(file: &str, count: u64) -> Result<()> {
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = schema();
    let mut writer = ArrowWriter::try_new(BufWriter::new(File::create(file)?), Arc::clone(&schema), Some(properties))?;
    let mut events = events(count);
    loop {
        let next: Vec<Access> = events.by_ref().take(BATCH).collect();
        if next.is_empty() {
            break;
        }
        writer.write(&batch(&schema, &next)?)?;
    }
    writer.close()?;
    Ok(())
}

fn read(file: &str, checksum: &mut Checksum) -> Result<()> {
    for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?.with_batch_size(8192).build()? {
        add(&batch?, checksum);
    }
    Ok(())
}

fn sum(file: &str) -> Result<u64> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?.with_batch_size(8192);
    let took_us = ProjectionMask::columns(builder.parquet_schema(), ["took_us"]);
    let mut sum = 0;
    for batch in builder.with_projection(took_us).build()? {
        let batch = batch?;
        sum += batch.column(0).as_primitive::<UInt32Type>().values().iter().map(|&value| u64::from(value)).sum::<u64>();
    }
    Ok(sum)
}

fn add(batch: &RecordBatch, checksum: &mut Checksum) {
    let column = |i: usize| batch.column(i);
    let wide = |i| column(i).as_primitive::<UInt64Type>().values();
    let number = |i| column(i).as_primitive::<UInt32Type>();
    let (time, request_id) = (wide(0), wide(1));
    let (path, score) = (column(2).as_string::<i32>(), column(9).as_primitive::<Float64Type>().values());
    let numbers = [3, 4, 5, 6, 7, 8].map(number);
    let list = column(10).as_list::<i32>();
    let parts = list.values().as_struct();
    let parts: Vec<_> = parts.columns().iter().map(|column| column.as_primitive::<UInt32Type>().values()).collect();
    for row in 0..batch.num_rows() {
        let [method, status, flags, user, took_us, bytes_out] =
            numbers.map(|column| if column.is_null(row) { 0 } else { u64::from(column.value(row)) });
        let all = [time[row], request_id[row], method, status, flags, user, took_us, bytes_out];
        checksum.event(all, score[row], path.value(row).as_bytes());
        for span in list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize {
            let [kind, offset_us, dur_us] = [0, 1, 2].map(|part: usize| u64::from(parts[part][span]));
            checksum.span(kind, offset_us, dur_us);
        }
    }
}
