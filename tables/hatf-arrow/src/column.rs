//! Columns of rows, and their conversion to Arrow arrays.
//!
//! Sizes, times and counts are signed, because many engines support unsigned 64-bit numbers poorly. Larger values are
//! clamped to the maximum of a signed number.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StructBuilder, UInt64Builder,
};
use arrow_array::types::{ArrowDictionaryKeyType, Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int8Array, Int32Array, Int64Array, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};

use crate::frame::FrameRow;

/// A column of rows of type `R`.
pub(crate) struct Column<R> {
    pub(crate) name: &'static str,
    /// The unit, or an empty string if the column has no unit.
    pub(crate) unit: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) of: Of<R>,
}

/// The content of a column.
pub(crate) enum Of<R> {
    /// The path of the trace.
    Trace,
    Count(fn(&R) -> u64),
    MaybeCount(fn(&R) -> Option<u64>),
    /// A 64-bit value that is not a quantity, stored as a signed number.
    Hash(fn(&R) -> u64),
    Address(fn(&R) -> u64),
    Flag(fn(&R) -> bool),
    /// A word, selected by its index in a list.
    Word(fn() -> Vec<&'static str>, fn(&R) -> usize),
    Text(fn(&R) -> Option<&str>),
    Frames(fn(&R) -> &[FrameRow]),
}

/// Returns a count as a signed number, clamped to its maximum.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl<R> Column<R> {
    fn field(&self) -> Field {
        let words = |key| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
        let (data_type, nullable) = match self.of {
            Of::Trace => (words(DataType::Int32), false),
            Of::Count(_) | Of::Hash(_) => (DataType::Int64, false),
            Of::MaybeCount(_) => (DataType::Int64, true),
            Of::Address(_) => (DataType::UInt64, false),
            Of::Flag(_) => (DataType::Boolean, false),
            Of::Word(..) => (words(DataType::Int8), false),
            Of::Text(_) => (DataType::Utf8, true),
            Of::Frames(_) => (DataType::List(frame_item()), false),
        };
        let mut metadata = HashMap::from([("doc".to_owned(), self.doc.to_owned())]);
        if !self.unit.is_empty() {
            metadata.insert("unit".to_owned(), self.unit.to_owned());
        }
        Field::new(self.name, data_type, nullable).with_metadata(metadata)
    }

    fn array(&self, rows: &[R], trace: &str) -> ArrayRef {
        let rows_of = rows.iter();
        match self.of {
            Of::Trace => {
                let keys = Int32Array::from_value(0, rows.len());
                words::<Int32Type>(keys, &[trace])
            }
            Of::Count(of) => Arc::new(Int64Array::from_iter_values(rows_of.map(|row| signed(of(row))))),
            Of::MaybeCount(of) => Arc::new(Int64Array::from_iter(rows_of.map(|row| of(row).map(signed)))),
            Of::Hash(of) => Arc::new(Int64Array::from_iter_values(rows_of.map(|row| of(row).cast_signed()))),
            Of::Address(of) => Arc::new(UInt64Array::from_iter_values(rows_of.map(of))),
            Of::Flag(of) => Arc::new(rows_of.map(|row| Some(of(row))).collect::<BooleanArray>()),
            Of::Word(all, of) => {
                let key = |row| i8::try_from(of(row)).unwrap_or_default();
                words::<Int8Type>(Int8Array::from_iter_values(rows_of.map(key)), &all())
            }
            Of::Text(of) => Arc::new(rows_of.map(of).collect::<StringArray>()),
            Of::Frames(of) => frames(rows_of.map(of)),
        }
    }
}

/// Builds a dictionary array from the indices of words.
fn words<K: ArrowDictionaryKeyType>(keys: PrimitiveArray<K>, all: &[&str]) -> ArrayRef {
    let all: ArrayRef = Arc::new(StringArray::from_iter_values(all));
    match DictionaryArray::try_new(keys, Arc::clone(&all)) {
        Ok(words) => Arc::new(words),
        // All indices are valid, so this cannot fail.
        Err(_) => all,
    }
}

fn frame_fields() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let line = Field::new("line", DataType::Int64, true);
    let offset = Field::new("offset", DataType::UInt64, false);
    let inlined = Field::new("inlined", DataType::Boolean, false);
    Fields::from(vec![text("function"), text("file"), line, text("module"), text("build_id"), offset, inlined])
}

fn frame_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(frame_fields()), false))
}

fn frames<'r>(rows: impl Iterator<Item = &'r [FrameRow]>) -> ArrayRef {
    let text = || Box::new(StringBuilder::new());
    let fields: Vec<Box<dyn ArrayBuilder>> = vec![
        text(),
        text(),
        Box::new(Int64Builder::new()),
        text(),
        text(),
        Box::new(UInt64Builder::new()),
        Box::new(BooleanBuilder::new()),
    ];
    let mut list = ListBuilder::new(StructBuilder::new(frame_fields(), fields)).with_field(frame_item());
    for row in rows {
        for frame in row {
            let values = list.values();
            let FrameRow { function, file, line, module, build_id, offset, inlined } = frame;
            for (place, text) in [(0, function), (1, file), (3, module), (4, build_id)] {
                let text = Some(text).filter(|text| !text.is_empty());
                values.field_builder::<StringBuilder>(place).into_iter().for_each(|field| field.append_option(text));
            }
            let line = Some(*line).filter(|line| *line > 0).map(signed);
            values.field_builder::<Int64Builder>(2).into_iter().for_each(|field| field.append_option(line));
            values.field_builder::<UInt64Builder>(5).into_iter().for_each(|field| field.append_value(*offset));
            values.field_builder::<BooleanBuilder>(6).into_iter().for_each(|field| field.append_value(*inlined));
            values.append(true);
        }
        list.append(true);
    }
    Arc::new(list.finish())
}

/// Returns the schema of these columns.
pub(crate) fn schema<R>(columns: &[Column<R>]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(Column::field).collect::<Vec<_>>()))
}

/// Builds a batch of these columns from rows.
pub(crate) fn batch<R>(
    columns: &[&Column<R>],
    schema: &SchemaRef,
    rows: &[R],
    trace: &str,
) -> Result<RecordBatch, ArrowError> {
    let arrays = columns.iter().map(|column| column.array(rows, trace)).collect();
    // A query that only counts rows requests no columns.
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
}
