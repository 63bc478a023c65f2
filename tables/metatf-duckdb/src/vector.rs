//! Copies values of Arrow arrays into DuckDB's vectors.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types as arrow;
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use libduckdb_sys::{duckdb_list_entry, duckdb_string_t};

use crate::api::{Result, Vector};

/// Copies `rows` of an array into a vector, starting at row `to`. The vector must have the type that
/// [`logical`](crate::types::logical) returns for the array's type.
///
/// # Errors
/// Returns an error if the vector is too small or DuckDB does not support the type.
pub(crate) fn copy(array: &dyn Array, rows: Range<usize>, to: usize, vector: &mut Vector<'_>) -> Result<()> {
    if rows.end > array.len() || to.checked_add(rows.len()).is_none_or(|end| end > vector.rows()) {
        return Err(format!("rows {rows:?} of {} do not fit into a vector of {}", array.len(), vector.rows()));
    }
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    if let Some(nulls) = &nulls {
        let rows: Vec<_> = rows.clone().zip(to..).filter(|(row, _)| nulls.is_null(*row)).map(|(_, to)| to).collect();
        set_null(array.data_type(), &rows, vector);
    }
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            // SAFETY: DuckDB stores a BOOLEAN as a byte with the value 0 or 1.
            for (to, row) in unsafe { vector.values::<u8>() }.iter_mut().skip(to).zip(rows) {
                *to = u8::from(values.value(row));
            }
        }
        DataType::Int8 => numbers::<arrow::Int8Type>(array, rows, to, vector),
        DataType::Int16 => numbers::<arrow::Int16Type>(array, rows, to, vector),
        DataType::Int32 => numbers::<arrow::Int32Type>(array, rows, to, vector),
        DataType::Int64 => numbers::<arrow::Int64Type>(array, rows, to, vector),
        DataType::UInt8 => numbers::<arrow::UInt8Type>(array, rows, to, vector),
        DataType::UInt16 => numbers::<arrow::UInt16Type>(array, rows, to, vector),
        DataType::UInt32 => numbers::<arrow::UInt32Type>(array, rows, to, vector),
        DataType::UInt64 => numbers::<arrow::UInt64Type>(array, rows, to, vector),
        DataType::Float32 => numbers::<arrow::Float32Type>(array, rows, to, vector),
        DataType::Float64 => numbers::<arrow::Float64Type>(array, rows, to, vector),
        DataType::Duration(TimeUnit::Second) => numbers::<arrow::DurationSecondType>(array, rows, to, vector),
        DataType::Duration(TimeUnit::Millisecond) => numbers::<arrow::DurationMillisecondType>(array, rows, to, vector),
        DataType::Duration(TimeUnit::Microsecond) => numbers::<arrow::DurationMicrosecondType>(array, rows, to, vector),
        DataType::Duration(TimeUnit::Nanosecond) => numbers::<arrow::DurationNanosecondType>(array, rows, to, vector),
        DataType::Timestamp(TimeUnit::Second, _) => numbers::<arrow::TimestampSecondType>(array, rows, to, vector),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            numbers::<arrow::TimestampMillisecondType>(array, rows, to, vector)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            numbers::<arrow::TimestampMicrosecondType>(array, rows, to, vector)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            numbers::<arrow::TimestampNanosecondType>(array, rows, to, vector)
        }
        DataType::Utf8 => bytes(array, rows, to, vector, |row| array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => bytes(array, rows, to, vector, |row| array.as_string::<i64>().value(row).as_bytes()),
        DataType::Utf8View => bytes(array, rows, to, vector, |row| array.as_string_view().value(row).as_bytes()),
        DataType::Binary => bytes(array, rows, to, vector, |row| array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(array, rows, to, vector, |row| array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(array, rows, to, vector, |row| array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => bytes(array, rows, to, vector, |row| array.as_fixed_size_binary().value(row)),
        DataType::Dictionary(..) => return dictionary(array, rows, to, vector),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            return list(
                lists.values(),
                rows.map(|row| place(lists.is_valid(row), lists.value_offsets().get(row..row + 2))),
                to,
                vector,
            );
        }
        // DuckDB stores maps as lists of structs with a key and a value.
        DataType::Map(..) => {
            let maps = array.as_map();
            return list(
                maps.entries(),
                rows.map(|row| place(maps.is_valid(row), maps.value_offsets().get(row..row + 2))),
                to,
                vector,
            );
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            return list(
                lists.values(),
                rows.map(|row| place(lists.is_valid(row), lists.value_offsets().get(row..row + 2))),
                to,
                vector,
            );
        }
        DataType::FixedSizeList(_, length) => {
            let (lists, length) = (array.as_fixed_size_list(), usize::try_from(*length).unwrap_or(0));
            let place = |row| if lists.is_valid(row) { row * length..(row + 1) * length } else { 0..0 };
            return list(lists.values(), rows.map(place), to, vector);
        }
        DataType::Struct(_) => {
            for (i, member) in array.as_struct().columns().iter().enumerate() {
                copy(member, rows.clone(), to, &mut vector.member(i))?;
            }
        }
        other => return Err(format!("DuckDB has no type for {other}")),
    }
    Ok(())
}

/// Marks rows as NULL. In a struct, also marks all members, because DuckDB checks only the members.
fn set_null(data_type: &DataType, rows: &[usize], vector: &mut Vector<'_>) {
    vector.set_null(rows.iter().copied());
    if let DataType::Struct(fields) = data_type {
        for (i, field) in fields.iter().enumerate() {
            set_null(field.data_type(), rows, &mut vector.member(i));
        }
    }
}

/// Copies numbers, which Arrow and DuckDB store in the same way.
fn numbers<T: ArrowPrimitiveType>(array: &dyn Array, rows: Range<usize>, to: usize, vector: &mut Vector<'_>) {
    let from = array.as_primitive::<T>().values().get(rows).unwrap_or_default();
    // SAFETY: the vector was declared with the DuckDB type that is stored as `T::Native`, a number.
    if let Some(to) = unsafe { vector.values::<T::Native>() }.get_mut(to..to + from.len()) {
        to.copy_from_slice(from);
    }
}

/// Copies text or bytes.
fn bytes<'a>(
    array: &dyn Array,
    rows: Range<usize>,
    to: usize,
    vector: &mut Vector<'_>,
    value: impl Fn(usize) -> &'a [u8],
) {
    for (row, to) in rows.zip(to..) {
        if array.is_valid(row) {
            vector.set_bytes(to, value(row));
        }
    }
}

/// Copies values of a dictionary. If it is small, each text is copied once and shared by all rows that contain it.
fn dictionary(array: &dyn Array, rows: Range<usize>, to: usize, vector: &mut Vector<'_>) -> Result<()> {
    let keys_of = array.as_any_dictionary_opt().ok_or("the dictionary has no values")?;
    let values = keys_of.values();
    let text =
        matches!(values.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary);
    let small = text && values.len() <= 4 * rows.len();
    let mut first: Vec<Option<usize>> = vec![None; if small { values.len() } else { 0 }];
    let keys = keys_of.normalized_keys();
    for (row, to) in rows.zip(to..) {
        let Some(key) = keys.get(row).copied().filter(|key| array.is_valid(row) && *key < values.len()) else {
            continue;
        };
        match first.get_mut(key) {
            Some(Some(earlier)) => {
                // SAFETY: DuckDB stores text and bytes as `duckdb_string_t`. Long strings are in memory that belongs to
                // the vector and lives as long as the vector, so two rows of a vector may share a string.
                let strings = unsafe { vector.values::<duckdb_string_t>() };
                if let (Some(value), Some(to)) = (strings.get(*earlier).copied(), strings.get_mut(to)) {
                    *to = value;
                }
                continue;
            }
            Some(first) if values.is_valid(key) => *first = Some(to),
            _ => {}
        }
        copy(values, key..key + 1, to, vector)?;
    }
    Ok(())
}

/// Returns the range of a list's elements, which is empty for NULL.
fn place<T: Copy + TryInto<usize>>(valid: bool, offsets: Option<&[T]>) -> Range<usize> {
    match offsets {
        Some([start, end]) if valid => (*start).try_into().unwrap_or(0)..(*end).try_into().unwrap_or(0),
        _ => 0..0,
    }
}

/// Copies lists. Stores their ranges in the vector, and their elements in the child vector, one list after the other.
fn list(
    values: &dyn Array,
    lists: impl Iterator<Item = Range<usize>>,
    to: usize,
    vector: &mut Vector<'_>,
) -> Result<()> {
    let lists: Vec<_> = lists.collect();
    let mut at = vector.list_length();
    let mut elements = vector.elements(at + lists.iter().map(ExactSizeIterator::len).sum::<usize>())?;
    let mut entries = Vec::with_capacity(lists.len());
    for list in lists {
        let length = list.len();
        entries.push(duckdb_list_entry { offset: at as u64, length: length as u64 });
        copy(values, list, at, &mut elements)?;
        at += length;
    }
    // SAFETY: DuckDB stores a LIST as `duckdb_list_entry`, which consists of two numbers.
    if let Some(to) = unsafe { vector.values::<duckdb_list_entry>() }.get_mut(to..to + entries.len()) {
        to.copy_from_slice(&entries);
    }
    Ok(())
}
