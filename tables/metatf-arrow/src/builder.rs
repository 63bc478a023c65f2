//! Builders of Arrow columns.

use std::sync::Arc;

use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int64Array, ListArray, PrimitiveArray,
    StringArray, StructArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use metatf::columns::Arrays;
use metatf_parser::schema::Leaf;

use crate::layout::{Kind, Shape};

/// Description of a value that does not fit its column, without its position.
pub(crate) type Fault = String;

/// A column under construction.
#[derive(Debug)]
pub(crate) enum Builder {
    /// A column that was not requested.
    Skipped,
    Signed(Vec<i64>),
    Count(Vec<i64>),
    Unsigned(Vec<u64>),
    Single(Vec<f32>),
    Float(Vec<f64>),
    Bool(BooleanBufferBuilder),
    Date(TimeUnit, Vec<i64>),
    /// Values converted to text.
    Text(Kind, Bytes),
    /// The texts of elements in the section with this index, or null for missing elements.
    Reference(usize, Bytes, NullBufferBuilder),
    Bytes(Bytes),
    /// Lists of strings.
    Flags(Vec<i32>, Bytes),
    List(Vec<i32>, Box<Builder>),
    /// For each record, the index of its value in the builder, or `None` if it has no value; and the builder of the
    /// values.
    Optional(Vec<Option<u32>>, Box<Builder>),
    Struct(usize, Vec<Builder>),
}

/// Byte arrays, stored contiguously.
#[derive(Debug)]
pub(crate) struct Bytes {
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Builder {
    pub(crate) fn new(shape: &Shape) -> Self {
        match shape {
            Shape::Value(kind, _) => match *kind {
                Kind::Signed => Self::Signed(Vec::new()),
                Kind::Count => Self::Count(Vec::new()),
                Kind::Unsigned => Self::Unsigned(Vec::new()),
                Kind::Single => Self::Single(Vec::new()),
                Kind::Float => Self::Float(Vec::new()),
                Kind::Bool => Self::Bool(BooleanBufferBuilder::new(0)),
                Kind::Date(unit) => Self::Date(unit, Vec::new()),
                Kind::Flags => Self::Flags(vec![0], Bytes::new()),
                Kind::Bytes => Self::Bytes(Bytes::new()),
                Kind::Reference(section) => Self::Reference(section, Bytes::new(), NullBufferBuilder::new(0)),
                kind => Self::Text(kind, Bytes::new()),
            },
            Shape::List(item) => Self::List(vec![0], Box::new(Self::new(item))),
            Shape::Optional(item) => Self::Optional(Vec::new(), Box::new(Self::new(item))),
            Shape::Struct(fields) => Self::Struct(0, fields.iter().map(|(_, shape)| Self::new(shape)).collect()),
        }
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Skipped => 0,
            Self::Signed(values) | Self::Count(values) | Self::Date(_, values) => values.len(),
            Self::Unsigned(values) => values.len(),
            Self::Single(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(_, bytes) | Self::Reference(_, bytes, _) | Self::Bytes(bytes) => bytes.len(),
            Self::Flags(offsets, _) | Self::List(offsets, _) => offsets.len() - 1,
            Self::Optional(indices, _) => indices.len(),
            Self::Struct(len, _) => *len,
        }
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Skipped => 0,
            Self::Text(_, bytes) | Self::Reference(_, bytes, _) | Self::Bytes(bytes) => bytes.weight(),
            Self::Flags(offsets, bytes) => offsets.len() * 4 + bytes.weight(),
            Self::List(offsets, item) => offsets.len() * 4 + item.weight(),
            Self::Optional(indices, item) => indices.len() * 8 + item.weight(),
            Self::Struct(_, fields) => fields.iter().map(Self::weight).sum(),
            other => other.len() * 8,
        }
    }

    /// Adds a number of a leaf. If the number does not fit, adds a default value and returns an error.
    pub(crate) fn number(&mut self, leaf: &Leaf, n: u64) -> Result<(), Fault> {
        let before = self.len();
        let put = self.put_number(leaf, n);
        if put.is_err() && self.len() == before {
            self.put_default();
        }
        put
    }

    fn put_default(&mut self) {
        match self {
            Self::Count(values) => values.push(0),
            Self::Single(values) => values.push(f32::NAN),
            Self::Bool(values) => values.append(false),
            Self::Text(_, bytes) | Self::Bytes(bytes) => bytes.push_empty(),
            Self::Flags(offsets, _) => offsets.push(offsets.last().copied().unwrap_or(0)),
            _ => {}
        }
    }

    fn put_number(&mut self, leaf: &Leaf, n: u64) -> Result<(), Fault> {
        match self {
            Self::Signed(values) | Self::Date(_, values) => values.push(n.cast_signed()),
            Self::Count(values) => values.push(count(n)?),
            Self::Unsigned(values) => values.push(n),
            Self::Single(values) => values.push(single(n)?),
            Self::Float(values) => values.push(f64::from_bits(n)),
            Self::Bool(values) => values.append(truth(n)?),
            Self::Text(Kind::Named, bytes) => match leaf.names.text(n) {
                Some(name) => bytes.push(name.as_bytes())?,
                None => bytes.push(n.to_string().as_bytes())?,
            },
            Self::Text(_, bytes) => match leaf.format.word(n) {
                Some(word) => bytes.push(word.as_bytes())?,
                None => bytes.push(format!("{n:#018x}").as_bytes())?,
            },
            Self::Flags(offsets, bytes) => {
                if n != 0 {
                    let text = leaf.names.text(n).map_or_else(|| format!("{n:#x}"), Into::into);
                    text.split('|').try_for_each(|name| bytes.push(name.as_bytes()))?;
                }
                offsets.push(offset(bytes.len())?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a byte array of a leaf. If the array does not fit, adds an empty array and returns an error.
    pub(crate) fn bytes(&mut self, leaf: &Leaf, value: &[u8]) -> Result<(), Fault> {
        let before = self.len();
        let put = self.put_bytes(leaf, value);
        if put.is_err() && self.len() == before {
            self.put_default();
        }
        put
    }

    fn put_bytes(&mut self, leaf: &Leaf, value: &[u8]) -> Result<(), Fault> {
        match self {
            Self::Bytes(bytes) => bytes.push(value),
            Self::Text(Kind::WordOfBytes, bytes) => {
                bytes.push(leaf.format.word_of_bytes(value).ok_or("the value is not 16 bytes long")?.as_bytes())
            }
            Self::Text(_, bytes) => match leaf.format.text_of_bytes(value) {
                Some(text) => bytes.push(text.as_bytes()),
                None => Err("the value is not valid UTF-8".to_owned()),
            },
            _ => Ok(()),
        }
    }

    /// Adds a text unchanged.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Fault> {
        if let Self::Text(_, bytes) = self { bytes.push(text.as_bytes()) } else { Ok(()) }
    }

    /// Adds the text of an element, or null.
    pub(crate) fn element(&mut self, text: Option<&str>) -> Result<(), Fault> {
        let Self::Reference(_, bytes, nulls) = self else { return Ok(()) };
        nulls.append(text.is_some());
        let put = bytes.push(text.unwrap_or_default().as_bytes());
        if put.is_err() {
            bytes.push_empty();
        }
        put
    }

    /// Adds numbers of a leaf. An error contains the index of the number that does not fit.
    pub(crate) fn numbers(&mut self, leaf: &Leaf, numbers: &[u64]) -> Result<(), (usize, Fault)> {
        match self {
            Self::Skipped => {}
            Self::Signed(values) | Self::Date(_, values) => values.extend(numbers.iter().map(|n| n.cast_signed())),
            Self::Unsigned(values) => values.extend_from_slice(numbers),
            Self::Single(values) => {
                for (at, &n) in numbers.iter().enumerate() {
                    values.push(single(n).map_err(|fault| (at, fault))?);
                }
            }
            Self::Float(values) => values.extend(numbers.iter().map(|&n| f64::from_bits(n))),
            Self::Count(values) => {
                // Check all numbers at once.
                if numbers.iter().fold(0, |all, n| all | n) > i64::MAX.cast_unsigned() {
                    for (at, &n) in numbers.iter().enumerate() {
                        count(n).map_err(|fault| (at, fault))?;
                    }
                }
                values.extend(numbers.iter().map(|n| n.cast_signed()));
            }
            _ => {
                for (at, &n) in numbers.iter().enumerate() {
                    self.number(leaf, n).map_err(|fault| (at, fault))?;
                }
            }
        }
        Ok(())
    }

    /// Adds byte arrays of a leaf. An error contains the index of the array that does not fit.
    pub(crate) fn arrays(&mut self, leaf: &Leaf, arrays: Arrays<'_>) -> Result<(), (usize, Fault)> {
        if matches!(self, Self::Skipped) {
            return Ok(());
        }
        for (at, bytes) in arrays.iter().enumerate() {
            self.bytes(leaf, bytes).map_err(|fault| (at, fault))?;
        }
        Ok(())
    }

    /// Returns the columns that receive the values of a repeated item.
    pub(crate) fn of_item(&mut self) -> &mut [Self] {
        match self {
            Self::List(_, item) | Self::Optional(_, item) => match &mut **item {
                Self::Struct(_, fields) => fields,
                single => std::slice::from_mut(single),
            },
            _ => &mut [],
        }
    }

    /// Ends a repeated item.
    pub(crate) fn end_item(&mut self) {
        if let Self::List(_, item) | Self::Optional(_, item) = self
            && let Self::Struct(len, _) = &mut **item
        {
            *len += 1;
        }
    }

    /// Ends a repetition with the given number of items.
    pub(crate) fn end(&mut self, items: u64) -> Result<(), Fault> {
        match self {
            Self::List(offsets, item) => match offset(item.len()) {
                Ok(end) => offsets.push(end),
                Err(fault) => {
                    offsets.push(offsets.last().copied().unwrap_or(0));
                    return Err(fault);
                }
            },
            Self::Optional(indices, item) => {
                indices.push(if items == 0 { None } else { u32::try_from(item.len().saturating_sub(1)).ok() });
                if items > 1 {
                    return Err(format!("expected at most one value, found {items}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Builds an array of this type and resets the builder.
    pub(crate) fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Skipped => return Err(ArrowError::ComputeError("the column was not read".to_owned())),
            Self::Signed(values) | Self::Count(values) => Arc::new(Int64Array::from(std::mem::take(values))),
            Self::Unsigned(values) => Arc::new(UInt64Array::from(std::mem::take(values))),
            Self::Single(values) => Arc::new(Float32Array::from(std::mem::take(values))),
            Self::Float(values) => Arc::new(Float64Array::from(std::mem::take(values))),
            Self::Bool(values) => Arc::new(BooleanArray::new(values.finish(), None)),
            Self::Date(unit, values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                match unit {
                    TimeUnit::Second => {
                        Arc::new(PrimitiveArray::<TimestampSecondType>::new(values, None).with_timezone("UTC"))
                    }
                    TimeUnit::Millisecond => {
                        Arc::new(PrimitiveArray::<TimestampMillisecondType>::new(values, None).with_timezone("UTC"))
                    }
                    TimeUnit::Microsecond => {
                        Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(values, None).with_timezone("UTC"))
                    }
                    TimeUnit::Nanosecond => {
                        Arc::new(PrimitiveArray::<TimestampNanosecondType>::new(values, None).with_timezone("UTC"))
                    }
                }
            }
            Self::Text(_, bytes) => Arc::new(bytes.finish_text()?),
            Self::Reference(_, bytes, nulls) => {
                let (offsets, data) = bytes.finish()?;
                Arc::new(StringArray::try_new(offsets, data, nulls.finish())?)
            }
            Self::Bytes(bytes) => {
                let (offsets, data) = bytes.finish()?;
                Arc::new(BinaryArray::try_new(offsets, data, None)?)
            }
            Self::Flags(offsets, bytes) => {
                let offsets = take_offsets(offsets)?;
                Arc::new(ListArray::try_new(item_field(data_type)?, offsets, Arc::new(bytes.finish_text()?), None)?)
            }
            Self::List(offsets, item) => {
                let offsets = take_offsets(offsets)?;
                let field = item_field(data_type)?;
                let items = item.finish(field.data_type())?;
                Arc::new(ListArray::try_new(field, offsets, items, None)?)
            }
            Self::Optional(indices, item) => {
                let items = item.finish(data_type)?;
                let indices = UInt32Array::from(std::mem::take(indices));
                arrow_select::take::take(&items, &indices, None)?
            }
            Self::Struct(len, fields) => {
                let DataType::Struct(types) = data_type else {
                    return Err(ArrowError::SchemaError("not a structure".to_owned()));
                };
                let arrays = fields.iter_mut().zip(types).map(|(field, of)| field.finish(of.data_type()));
                let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new_with_length(types.clone(), arrays, None, std::mem::take(len))?)
            }
        })
    }
}

const TOO_LONG: &str = "a batch would contain more than 2 GiB of this column";

impl Bytes {
    pub(crate) fn new() -> Self {
        Self { offsets: vec![0], data: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn weight(&self) -> usize {
        self.offsets.len() * 4 + self.data.len()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let end = offset(self.data.len() + bytes.len())?;
        self.data.extend_from_slice(bytes);
        self.offsets.push(end);
        Ok(())
    }

    fn push_empty(&mut self) {
        self.offsets.push(self.offsets.last().copied().unwrap_or(0));
    }

    pub(crate) fn finish(&mut self) -> Result<(OffsetBuffer<i32>, Buffer), ArrowError> {
        Ok((take_offsets(&mut self.offsets)?, Buffer::from_vec(std::mem::take(&mut self.data))))
    }

    pub(crate) fn finish_text(&mut self) -> Result<StringArray, ArrowError> {
        let (offsets, data) = self.finish()?;
        StringArray::try_new(offsets, data, None)
    }
}

pub(crate) fn take_offsets(offsets: &mut Vec<i32>) -> Result<OffsetBuffer<i32>, ArrowError> {
    let taken = std::mem::replace(offsets, vec![0]);
    if taken.is_sorted() && taken.first() == Some(&0) {
        return Ok(OffsetBuffer::new(ScalarBuffer::from(taken)));
    }
    Err(ArrowError::ComputeError("the offsets are not in ascending order".to_owned()))
}

fn item_field(data_type: &DataType) -> Result<Arc<Field>, ArrowError> {
    match data_type {
        DataType::List(field) => Ok(Arc::clone(field)),
        _ => Err(ArrowError::SchemaError("not a list".to_owned())),
    }
}

pub(crate) fn offset(at: usize) -> Result<i32, Fault> {
    i32::try_from(at).map_err(|_| TOO_LONG.to_owned())
}

/// Returns the floating-point number with these bits.
fn single(n: u64) -> Result<f32, Fault> {
    u32::try_from(n).map(f32::from_bits).map_err(|_| format!("{n:#x} has more than the 32 bits of an `f32`"))
}

pub(crate) fn count(n: u64) -> Result<i64, Fault> {
    i64::try_from(n).map_err(|_| format!("{n} does not fit in a signed 64-bit column"))
}

fn truth(n: u64) -> Result<bool, Fault> {
    match n {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(format!("{n} is neither 0 nor 1")),
    }
}
