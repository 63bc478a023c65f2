//! Values of Arrow arrays, for text formats.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use metatf_parser::schema::Format;
use serde_json::{Map, Value};

/// A value of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Signed(i64),
    Unsigned(u64),
    Single(f32),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A point in time, formatted as in JSON lines.
    Date(String),
    List(Vec<Value>),
    Object(Map<String, Value>),
}

/// Returns a value of an array. Supports the column types of tables. Lists and structures nest as deeply as in a DTD:
/// at most 32 levels (spec 3.5).
pub(crate) fn cell(array: &ArrayRef, row: usize) -> Result<Cell<'_>, ArrowError> {
    cell_with(array, row, |cell| cell.json())
}

/// Works like [`cell`], but converts the items of lists and structures with `json`.
pub(crate) fn cell_with(array: &ArrayRef, row: usize, json: fn(&Cell<'_>) -> Value) -> Result<Cell<'_>, ArrowError> {
    if row >= array.len() || array.is_null(row) {
        return Ok(Cell::Null);
    }
    let of = || ArrowError::NotYetImplemented(format!("a column of type {}", array.data_type()));
    Ok(match array.data_type() {
        DataType::Int64 => Cell::Signed(array.as_primitive_opt::<Int64Type>().ok_or_else(of)?.value(row)),
        DataType::UInt64 => Cell::Unsigned(array.as_primitive_opt::<UInt64Type>().ok_or_else(of)?.value(row)),
        DataType::Float32 => Cell::Single(array.as_primitive_opt::<Float32Type>().ok_or_else(of)?.value(row)),
        DataType::Float64 => Cell::Float(array.as_primitive_opt::<Float64Type>().ok_or_else(of)?.value(row)),
        DataType::Boolean => Cell::Bool(array.as_boolean_opt().ok_or_else(of)?.value(row)),
        DataType::Utf8 => Cell::Text(array.as_string_opt::<i32>().ok_or_else(of)?.value(row)),
        DataType::Binary => Cell::Bytes(array.as_binary_opt::<i32>().ok_or_else(of)?.value(row)),
        DataType::Timestamp(unit, _) => {
            let (format, count) = date(array, *unit, row).ok_or_else(of)?;
            // Dates outside the years with a text form are written as numbers.
            Cell::Date(format.word(count.cast_unsigned()).unwrap_or_else(|| count.to_string()))
        }
        DataType::Dictionary(..) => {
            let words = array.as_any_dictionary_opt().ok_or_else(of)?;
            let place = match words.keys().data_type() {
                DataType::Int8 => words.keys().as_primitive_opt::<Int8Type>().map(|keys| i64::from(keys.value(row))),
                DataType::Int32 => words.keys().as_primitive_opt::<Int32Type>().map(|keys| i64::from(keys.value(row))),
                _ => None,
            };
            return cell_with(words.values(), place.and_then(|at| usize::try_from(at).ok()).ok_or_else(of)?, json);
        }
        DataType::List(_) => {
            let items = array.as_list_opt::<i32>().ok_or_else(of)?.value(row);
            Cell::List(
                (0..items.len())
                    .map(|item| Ok(json(&cell_with(&items, item, json)?)))
                    .collect::<Result<_, ArrowError>>()?,
            )
        }
        DataType::Map(..) => {
            let (map, of_key) = (array.as_map_opt().ok_or_else(of)?, |key: Cell<'_>| match key {
                Cell::Text(text) => Ok(text.to_owned()),
                _ => Err(of()),
            });
            let (keys, values) = (map.keys(), map.values());
            let offsets = map.value_offsets().get(row..=row + 1).unwrap_or_default();
            let [from, to] = offsets else { return Err(of()) };
            let places = usize::try_from(*from).unwrap_or(0)..usize::try_from(*to).unwrap_or(0);
            let members = places.map(|at| Ok((of_key(cell(keys, at)?)?, json(&cell_with(values, at, json)?))));
            Cell::Object(members.collect::<Result<_, ArrowError>>()?)
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct_opt().ok_or_else(of)?.columns());
            let members =
                columns.map(|(field, column)| Ok((field.name().clone(), json(&cell_with(column, row, json)?))));
            Cell::Object(members.collect::<Result<_, ArrowError>>()?)
        }
        _ => return Err(of()),
    })
}

/// Returns a point in time as its DTD format and its number of units since 1970.
fn date(array: &ArrayRef, unit: TimeUnit, row: usize) -> Option<(Format, i64)> {
    Some(match unit {
        TimeUnit::Second => (Format::DateS, array.as_primitive_opt::<TimestampSecondType>()?.value(row)),
        TimeUnit::Millisecond => (Format::DateMs, array.as_primitive_opt::<TimestampMillisecondType>()?.value(row)),
        TimeUnit::Microsecond => (Format::DateUs, array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row)),
        TimeUnit::Nanosecond => (Format::DateNs, array.as_primitive_opt::<TimestampNanosecondType>()?.value(row)),
    })
}

impl Cell<'_> {
    /// Returns the value as JSON, as in JSON lines (spec 8).
    pub(crate) fn json(&self) -> Value {
        match self {
            Cell::Null => Value::Null,
            Cell::Signed(n) => (*n).into(),
            Cell::Unsigned(n) => (*n).into(),
            // The shortest digits of a single, which are not those of the equal double.
            Cell::Single(real) => {
                match real.is_finite().then(|| serde_json::from_str(&format!("{real:?}")).ok()).flatten() {
                    Some(number) => Value::Number(number),
                    None => serde_json::json!({ "hex": format!("{:08x}", real.to_bits()) }),
                }
            }
            Cell::Float(real) => match serde_json::Number::from_f64(*real) {
                Some(number) => Value::Number(number),
                None => serde_json::json!({ "hex": format!("{:016x}", real.to_bits()) }),
            },
            Cell::Bool(is) => (*is).into(),
            Cell::Text(text) => (*text).into(),
            Cell::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
            Cell::Date(date) => date.as_str().into(),
            Cell::List(items) => items.clone().into(),
            Cell::Object(members) => members.clone().into(),
        }
    }
}
