//! Tables for tests of the extension. One table contains all types, and others violate the interface.
//!
//! They are built only with the `test-tables` feature.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeBinaryBuilder, FixedSizeListBuilder, Int32Builder, LargeListBuilder, ListBuilder, MapBuilder,
    StringBuilder,
};
use arrow_array::types::{Int32Type, UInt8Type};
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray, DurationNanosecondArray, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, RecordBatch,
    RecordBatchIterator, RecordBatchOptions, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use metatf_arrow::{Batches, Error, Result, Scan, Table};

/// Number of rows per batch. It exceeds the chunk size and is not a multiple of the chunk size.
const BATCH: i64 = 5_000;

/// The behavior of a test table.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TestTable {
    /// Two batches with a column of every type; every eleventh row is NULL.
    Values,
    /// The types of the second batch differ from the schema.
    Types,
    /// The second batch is an error.
    Fails,
    /// Reading panics.
    Panics,
    /// A column has a type without a DuckDB equivalent.
    Unknown,
    /// The table is infinite.
    Endless,
}

impl TestTable {
    /// Returns the table with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let tables = [
            ("values", Self::Values),
            ("types", Self::Types),
            ("fails", Self::Fails),
            ("panics", Self::Panics),
            ("unknown", Self::Unknown),
            ("endless", Self::Endless),
        ];
        tables.iter().find_map(|(known, table)| (*known == name).then_some(*table))
    }
}

impl Table for TestTable {
    fn name(&self) -> &str {
        "test"
    }

    fn schema(&self) -> SchemaRef {
        match self {
            Self::Values => batch(0).schema(),
            Self::Unknown => Arc::new(Schema::new(vec![Field::new("month", DataType::Decimal256(10, 2), true)])),
            _ => numbers(0).schema(),
        }
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        let columns = scan.columns.clone().unwrap_or_default();
        let schema = self.schema();
        let project = move |batch: RecordBatch| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let schema = Arc::new(batch.schema().project(&columns)?);
            RecordBatch::try_new_with_options(
                schema,
                columns.iter().map(|column| batch.column(*column).clone()).collect(),
                &options,
            )
        };
        let failure = || Err(ArrowError::ExternalError(Box::new(Error::new("T.mtf", "byte 17: nothing more is read"))));
        let batches: Box<dyn Iterator<Item = _> + Send> = match self {
            Self::Values => Box::new([Ok(batch(0)), Ok(batch(BATCH))].into_iter()),
            Self::Types => Box::new([Ok(numbers(0)), Ok(other_types())].into_iter()),
            Self::Fails => Box::new([Ok(numbers(0)), failure()].into_iter()),
            #[expect(clippy::panic, reason = "the test checks that the extension survives it")]
            Self::Panics => Box::new(std::iter::from_fn(|| panic!("as the test wants it"))),
            Self::Unknown => Box::new(std::iter::empty()),
            Self::Endless => Box::new(std::iter::repeat_with(|| Ok(numbers(0)))),
        };
        let batches = batches.map(move |batch| batch.and_then(&project));
        Ok(Box::new(RecordBatchIterator::new(batches, schema)))
    }
}

/// Returns a batch with one column of consecutive numbers that start at `first`.
fn numbers(first: i64) -> RecordBatch {
    columns([("n", Arc::new(Int64Array::from_iter_values(first..first + BATCH)) as ArrayRef)])
}

/// Returns a batch with narrower numbers than declared. Copying it unchecked would read past the end of its memory.
fn other_types() -> RecordBatch {
    columns([(
        "n",
        Arc::new(UInt8Array::from_iter_values((0..BATCH).map(|i| u8::try_from(i % 256).unwrap_or(0)))) as ArrayRef,
    )])
}

fn columns<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    let nullable = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(nullable)
        .unwrap_or_else(|_| RecordBatch::new_empty(Arc::new(Schema::empty())))
}

/// Returns rows of every type, starting at row `first`. `tables/metatf-duckdb/tests/values.py` computes the same values.
fn batch(first: i64) -> RecordBatch {
    let rows = || first..first + BATCH;
    let value = |n: i64| (n % 11 != 3).then_some(n);
    let text = |n: i64| value(n).map(|n| "é".repeat(usize::try_from(n % 19).unwrap_or(0)) + &n.to_string());
    let kind =
        |n: i64| value(n).map(|n| ["malloc", "a kind with a long name", ""][usize::try_from(n % 3).unwrap_or(0)]);
    macro_rules! array {
        ($array:ty, $f:expr) => {
            Arc::new(rows().map(|n| value(n).map($f)).collect::<$array>()) as ArrayRef
        };
    }
    macro_rules! narrow {
        ($t:ty) => {
            |n| (n % 100) as $t
        };
    }
    let kinds: DictionaryArray<UInt8Type> = rows().map(kind).collect();
    let long: DictionaryArray<Int32Type> = rows()
        .map(text)
        .map(|text| text.map(|text| text + "*"))
        .collect::<Vec<_>>()
        .iter()
        .map(Option::as_deref)
        .collect();
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut large = LargeListBuilder::new(ListBuilder::new(Int32Builder::new()));
    let mut fixed = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    let mut fixed_bytes = FixedSizeBinaryBuilder::new(3);
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for n in rows() {
        let (valid, number) = (value(n).is_some(), i32::try_from(n).unwrap_or(0));
        for i in 0..if valid { n % 4 } else { 0 } {
            lists.values().append_option((i != 2).then(|| format!("{n}/{i}")));
        }
        lists.append(valid);
        for i in 0..if valid { number % 3 } else { 0 } {
            (0..i + 1).for_each(|j| large.values().values().append_value(number + j));
            large.values().append(true);
        }
        large.append(valid);
        fixed.values().append_slice(&[number, -number]);
        fixed.append(valid);
        for i in 0..if valid { number % 3 } else { 0 } {
            maps.keys().append_value(format!("a key of more than twelve bytes {i}"));
            maps.values().append_option((i != 1).then_some(number));
        }
        // There are as many keys as values, so this cannot fail.
        let _ = maps.append(valid);
        let bytes = [u8::try_from(n % 256).unwrap_or(0); 3];
        if valid { fixed_bytes.append_value(bytes).unwrap_or(()) } else { fixed_bytes.append_null() }
    }
    // Members have values even in rows in which the struct is NULL.
    let inner = columns([
        ("size", Arc::new(Int64Array::from_iter_values(rows().map(|n| n * 8))) as ArrayRef),
        (
            "name",
            Arc::new(StringArray::from_iter_values(
                rows().map(|n| ["short", "longer than twelve bytes"][usize::from(n % 2 == 1)]),
            )),
        ),
    ]);
    let valid = rows().map(|n| value(n).is_some()).collect::<Vec<_>>();
    let inner = StructArray::new(inner.schema().fields().clone(), inner.columns().to_vec(), Some(valid.into()));
    columns([
        ("row", Arc::new(Int64Array::from_iter_values(rows())) as ArrayRef),
        ("boolean", array!(BooleanArray, |n| n % 2 == 0)),
        ("int8", array!(Int8Array, narrow!(i8))),
        ("int16", array!(Int16Array, narrow!(i16))),
        ("int32", array!(Int32Array, narrow!(i32))),
        ("int64", array!(Int64Array, |n| i64::MIN + n)),
        ("uint8", array!(UInt8Array, narrow!(u8))),
        ("uint16", array!(UInt16Array, narrow!(u16))),
        ("uint32", array!(UInt32Array, narrow!(u32))),
        ("uint64", array!(UInt64Array, |n| u64::MAX - n.unsigned_abs())),
        ("float32", array!(Float32Array, |n| f32::from(i16::try_from(n).unwrap_or(0)) / 4.0)),
        ("float64", array!(Float64Array, |n| f64::from(i32::try_from(n).unwrap_or(0)) / 4.0)),
        ("seconds", array!(TimestampSecondArray, |n| n)),
        ("milliseconds", array!(TimestampMillisecondArray, |n| n)),
        ("microseconds", array!(TimestampMicrosecondArray, |n| n)),
        ("nanoseconds", array!(TimestampNanosecondArray, |n| n)),
        ("duration", array!(DurationNanosecondArray, |n| n)),
        ("utf8", Arc::new(rows().map(text).collect::<StringArray>())),
        ("large_utf8", Arc::new(rows().map(text).collect::<LargeStringArray>())),
        ("utf8_view", Arc::new(rows().map(text).collect::<StringViewArray>())),
        (
            "binary",
            Arc::new(
                rows()
                    .map(text)
                    .collect::<Vec<_>>()
                    .iter()
                    .map(|t| t.as_ref().map(String::as_bytes))
                    .collect::<BinaryArray>(),
            ),
        ),
        (
            "large_binary",
            Arc::new(
                rows()
                    .map(text)
                    .collect::<Vec<_>>()
                    .iter()
                    .map(|t| t.as_ref().map(String::as_bytes))
                    .collect::<LargeBinaryArray>(),
            ),
        ),
        (
            "binary_view",
            Arc::new(
                rows()
                    .map(text)
                    .collect::<Vec<_>>()
                    .iter()
                    .map(|t| t.as_ref().map(String::as_bytes))
                    .collect::<BinaryViewArray>(),
            ),
        ),
        ("fixed_binary", Arc::new(fixed_bytes.finish())),
        ("dictionary", Arc::new(kinds)),
        ("large_dictionary", Arc::new(long)),
        ("list", Arc::new(lists.finish())),
        ("nested_list", Arc::new(large.finish())),
        ("fixed_list", Arc::new(fixed.finish())),
        ("struct", Arc::new(inner)),
        ("map", Arc::new(maps.finish())),
    ])
}
