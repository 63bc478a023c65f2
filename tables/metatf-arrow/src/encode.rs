//! Encodes the rows of batches as records, column by column. Each column must be a single number or byte array field.
//!
//! The values of a column are converted once per batch. If a value does not fit or a record has other fields, no
//! encoder is created. The rows are then converted to JSON lines, which support all fields and report the row that
//! contains the error.

use std::collections::HashMap;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array as _, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, TimeUnit};
use metatf::container::Sink;
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf_parser::schema::{Format, Interpretation, Item, Leaf, Names};
use metatf_tools::fields;

use crate::record_table::NUMBER;

/// An encoder that writes the rows of a batch as records.
///
/// # Examples
///
/// ```
/// use arrow_array::record_batch;
/// use metatf::container::WriteOptions;
/// use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
/// use metatf_arrow::BatchEncoder;
///
/// let dtd = b"section s 1 { malloc: (tag, size) { tag.value = 4; size.width = 4; size.interpretation = none; } }";
/// let schema = Schema::parse("heap.dtd", dtd)?;
/// let batch = record_batch!(("size", Int64, [16, 48]))?;
/// // Section 0 and records 0 to 2 are predefined.
/// let mut encoder = BatchEncoder::new(&schema, 1, 3, &batch).ok_or("the batch does not match the record")?;
/// let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
/// (0..2).try_for_each(|row| encoder.write(row, &mut writer, &mut OwnedRecord::default()))?;
///
/// let (file, mut sizes) = (writer.finish()?, Vec::new());
/// Trace::from_slice(&file)?.for_each(|record| sizes.push(record.numbers()[1]))?;
/// assert_eq!(sizes, [16, 48]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchEncoder {
    section: usize,
    record: u16,
    values: Vec<Values>,
    /// Buffer for the element that a row refers to.
    element: OwnedRecord,
}

/// The values of a leaf for all rows.
#[derive(Debug)]
enum Values {
    Constant(u64),
    Numbers(ScalarBuffer<u64>),
    Bytes(ByteColumn),
    /// Byte arrays that are preceded by their lengths.
    Sized(ByteColumn),
    /// References to strings that are elements of a section, optionally preceded by their lengths. The record contains
    /// the offset of the element.
    References {
        section: usize,
        is_sized: bool,
        texts: ByteColumn,
    },
}

/// A column of byte arrays.
#[derive(Debug)]
enum ByteColumn {
    Text(StringArray),
    LongText(LargeStringArray),
    TextView(StringViewArray),
    Bytes(BinaryArray),
    LongBytes(LargeBinaryArray),
    BytesView(BinaryViewArray),
}

impl ByteColumn {
    fn new(column: &ArrayRef) -> Option<Self> {
        Some(match column.data_type() {
            DataType::Utf8 => Self::Text(column.as_string().clone()),
            DataType::LargeUtf8 => Self::LongText(column.as_string().clone()),
            DataType::Utf8View => Self::TextView(column.as_string_view().clone()),
            DataType::Binary => Self::Bytes(column.as_binary().clone()),
            DataType::LargeBinary => Self::LongBytes(column.as_binary().clone()),
            DataType::BinaryView => Self::BytesView(column.as_binary_view().clone()),
            _ => return None,
        })
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::LongText(_) | Self::TextView(_))
    }

    /// Returns the bytes of an existing row.
    fn get(&self, row: usize) -> &[u8] {
        match self {
            Self::Text(array) => array.value(row).as_bytes(),
            Self::LongText(array) => array.value(row).as_bytes(),
            Self::TextView(array) => array.value(row).as_bytes(),
            Self::Bytes(array) => array.value(row),
            Self::LongBytes(array) => array.value(row),
            Self::BytesView(array) => array.value(row),
        }
    }
}

impl BatchEncoder {
    /// Returns an encoder that writes the rows of a batch as records of the type `record` in a section. Columns are
    /// matched with fields by name; the column `@number` is ignored.
    ///
    /// Returns `None` if a field has no column, has an unsupported type, or if a value does not fit. To find the cause,
    /// the caller converts the rows to JSON lines.
    #[must_use]
    pub fn new(schema: &Schema, section: usize, record: u16, batch: &RecordBatch) -> Option<Self> {
        let of = schema.record(record)?;
        if schema.section(section)?.stream.is_some() {
            return None;
        }
        let mut columns: HashMap<&str, &ArrayRef> = HashMap::new();
        let names = batch.schema_ref().fields().iter().map(|field| field.name().as_str());
        for (name, column) in names.zip(batch.columns()) {
            // A duplicate name is ambiguous.
            if name != NUMBER && (column.null_count() > 0 || columns.insert(name, column).is_some()) {
                return None;
            }
        }
        let mut values = Vec::with_capacity(of.leaves.len());
        for item in &of.items {
            match item {
                Item::Leaf(id) => {
                    let leaf = of.leaf(*id)?;
                    match (leaf.constant, columns.remove(leaf.key.as_str())) {
                        _ if leaf.is_tag() => {}
                        (Some(constant), None) => values.push(Values::Constant(constant)),
                        (_, Some(column)) => values.push(of_leaf(schema, leaf, column)?),
                        (None, None) => return None,
                    }
                }
                Item::Nested { key, record, items, .. } => {
                    let (_, data) = fields::vfield(record, items)?;
                    values.push(Values::Sized(bytes(of.leaf(data)?, columns.remove(key.as_str())?)?));
                }
                Item::Repeat { .. } => return None,
            }
        }
        columns.is_empty().then(|| Self { section, record, values, element: OwnedRecord::default() })
    }

    /// Writes a row of the batch.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write<S: Sink>(
        &mut self,
        row: usize,
        writer: &mut Writer<S>,
        owned: &mut OwnedRecord,
    ) -> metatf::Result<()> {
        let Self { section, record, values, element, .. } = self;
        owned.clear();
        for values in values {
            match values {
                Values::Constant(constant) => owned.push_number(*constant),
                Values::Numbers(numbers) => owned.push_number(numbers.get(row).copied().unwrap_or(0)),
                Values::Bytes(column) => owned.push_bytes(column.get(row)),
                Values::Sized(column) => push_sized(owned, column.get(row)),
                Values::References { section, is_sized, texts } => {
                    element.clear();
                    match is_sized {
                        true => push_sized(element, texts.get(row)),
                        false => element.push_bytes(texts.get(row)),
                    }
                    owned.push_number(writer.intern(*section, element)?);
                }
            }
        }
        writer.record(*section, *record, owned)
    }
}

fn push_sized(owned: &mut OwnedRecord, bytes: &[u8]) {
    owned.push_number(bytes.len() as u64);
    owned.push_bytes(bytes);
}

/// Converts the values of a leaf.
fn of_leaf(schema: &Schema, leaf: &Leaf, column: &ArrayRef) -> Option<Values> {
    if !leaf.is_numeric() {
        return bytes(leaf, column).map(Values::Bytes);
    }
    let texts = ByteColumn::new(column).filter(ByteColumn::is_text);
    match (&leaf.interpretation, texts) {
        (Interpretation::SectionOffset(number), Some(texts)) => {
            let section = schema.format.section_index(*number)?;
            let (element, text) = (schema.section(section)?.stream?, schema.string_leaf(section)?);
            let element = schema.dtd.record(element)?;
            let is_sized = !matches!(element.items.as_slice(), [Item::Leaf(id)] if *id == text);
            let is_plain = element.leaf(text)?.format == Format::Utf8;
            is_plain.then_some(Values::References { section, is_sized, texts })
        }
        (_, Some(texts)) => words(leaf, &texts, column.len()).map(|words| Values::Numbers(words.into())),
        (_, None) => numbers(leaf, column).map(Values::Numbers),
    }
}

/// Returns the byte arrays of a leaf. Text is accepted only for UTF-8 leaves; the words of other formats and
/// zero-terminated strings are left to JSON lines.
fn bytes(leaf: &Leaf, column: &ArrayRef) -> Option<ByteColumn> {
    let of = ByteColumn::new(column).filter(|_| leaf.section.is_none() && leaf.format != Format::CString)?;
    (!of.is_text() || leaf.format == Format::Utf8).then_some(of)
}

/// Returns the numbers of a leaf as they are stored in records.
fn numbers(leaf: &Leaf, column: &ArrayRef) -> Option<ScalarBuffer<u64>> {
    let (is_float, is_signed) = (leaf.format.is_float(), leaf.format == Format::Signed);
    let date = match leaf.format {
        Format::DateS => Some(TimeUnit::Second),
        Format::DateMs => Some(TimeUnit::Millisecond),
        Format::DateUs => Some(TimeUnit::Microsecond),
        Format::DateNs => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    match column.data_type() {
        DataType::Float32 if leaf.format == Format::F32 => Some(all::<Float32Type>(column, |n| n.to_bits().into())),
        // A double may have more digits than a single, so JSON lines convert it.
        _ if leaf.format == Format::F32 => None,
        DataType::Float64 if is_float => Some(all::<Float64Type>(column, f64::to_bits)),
        DataType::Float32 if is_float => Some(all::<Float32Type>(column, |n| f64::from(n).to_bits())),
        _ if is_float => None,
        DataType::Boolean if leaf.format == Format::Bool => {
            Some(column.as_boolean().values().iter().map(u64::from).collect())
        }
        DataType::Timestamp(unit, _) if date == Some(*unit) => Some(match unit {
            TimeUnit::Second => all::<TimestampSecondType>(column, i64::cast_unsigned),
            TimeUnit::Millisecond => all::<TimestampMillisecondType>(column, i64::cast_unsigned),
            TimeUnit::Microsecond => all::<TimestampMicrosecondType>(column, i64::cast_unsigned),
            TimeUnit::Nanosecond => all::<TimestampNanosecondType>(column, i64::cast_unsigned),
        }),
        DataType::Int8 => signed::<Int8Type>(column, is_signed),
        DataType::Int16 => signed::<Int16Type>(column, is_signed),
        DataType::Int32 => signed::<Int32Type>(column, is_signed),
        DataType::Int64 => signed::<Int64Type>(column, is_signed),
        DataType::UInt8 => Some(all::<UInt8Type>(column, u64::from)),
        DataType::UInt16 => Some(all::<UInt16Type>(column, u64::from)),
        DataType::UInt32 => Some(all::<UInt32Type>(column, u64::from)),
        DataType::UInt64 => {
            let values = column.as_primitive::<UInt64Type>().values();
            let fits = !is_signed || values.iter().all(|&n| n <= i64::MAX.cast_unsigned());
            fits.then(|| values.clone())
        }
        _ => None,
    }
}

fn all<T: ArrowPrimitiveType>(column: &ArrayRef, number: impl Fn(T::Native) -> u64) -> ScalarBuffer<u64> {
    column.as_primitive::<T>().values().iter().map(|&value| number(value)).collect()
}

/// Returns the numbers of a signed column. Negative numbers are accepted only if the leaf is signed.
fn signed<T: ArrowPrimitiveType>(column: &ArrayRef, is_signed: bool) -> Option<ScalarBuffer<u64>>
where
    T::Native: Into<i64>,
{
    let fits = is_signed || column.as_primitive::<T>().values().iter().all(|&value| value.into() >= 0);
    fits.then(|| all::<T>(column, |value| value.into().cast_unsigned()))
}

/// Parses decimal digits if the leaf has named values, because values without a name are exported as digits. Returns
/// `None` for other leaves, because in some formats, words can also consist of digits.
pub(crate) fn nameless(leaf: &Leaf, text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| matches!(leaf.names, Names::Values(_)))
}

/// Returns the numbers of named values and of words of the format.
fn words(leaf: &Leaf, texts: &ByteColumn, rows: usize) -> Option<Vec<u64>> {
    if matches!(leaf.names, Names::Flags(_)) {
        return None;
    }
    let mut known: HashMap<&[u8], u64> = HashMap::new();
    let mut numbers = Vec::with_capacity(rows);
    for row in 0..rows {
        let text = texts.get(row);
        let number = match known.get(text) {
            Some(number) => *number,
            None => {
                let word = std::str::from_utf8(text).ok()?;
                let number = leaf.names.value(word).or_else(|| nameless(leaf, word));
                let number = number.or_else(|| leaf.format.number_of_word(word))?;
                known.insert(text, number);
                number
            }
        };
        numbers.push(number);
    }
    Some(numbers)
}
