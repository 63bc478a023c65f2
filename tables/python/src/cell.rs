//! Converts values of Arrow arrays to Python values.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::error;

/// Returns the value in a row of a column. Times and durations are numbers in the column's unit; structs and maps are
/// dicts.
pub(crate) fn value(py: Python<'_>, array: &dyn Array, row: usize) -> PyResult<Py<PyAny>> {
    if row >= array.len() || array.is_null(row) {
        return Ok(py.None());
    }
    match array.data_type() {
        DataType::Null => Ok(py.None()),
        DataType::Boolean => array.as_boolean().value(row).into_py_any(py),
        DataType::Int8 => number::<Int8Type>(py, array, row),
        DataType::Int16 => number::<Int16Type>(py, array, row),
        DataType::Int32 => number::<Int32Type>(py, array, row),
        DataType::Int64 => number::<Int64Type>(py, array, row),
        DataType::UInt8 => number::<UInt8Type>(py, array, row),
        DataType::UInt16 => number::<UInt16Type>(py, array, row),
        DataType::UInt32 => number::<UInt32Type>(py, array, row),
        DataType::UInt64 => number::<UInt64Type>(py, array, row),
        DataType::Float32 => number::<Float32Type>(py, array, row),
        DataType::Float64 => number::<Float64Type>(py, array, row),
        DataType::Timestamp(TimeUnit::Second, _) => number::<TimestampSecondType>(py, array, row),
        DataType::Timestamp(TimeUnit::Millisecond, _) => number::<TimestampMillisecondType>(py, array, row),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number::<TimestampMicrosecondType>(py, array, row),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => number::<TimestampNanosecondType>(py, array, row),
        DataType::Duration(TimeUnit::Second) => number::<DurationSecondType>(py, array, row),
        DataType::Duration(TimeUnit::Millisecond) => number::<DurationMillisecondType>(py, array, row),
        DataType::Duration(TimeUnit::Microsecond) => number::<DurationMicrosecondType>(py, array, row),
        DataType::Duration(TimeUnit::Nanosecond) => number::<DurationNanosecondType>(py, array, row),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into_py_any(py),
        DataType::Utf8View => array.as_string_view().value(row).into_py_any(py),
        DataType::Binary => bytes(py, array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(py, array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(py, array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => bytes(py, array.as_fixed_size_binary().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys().get(row).copied().unwrap_or(usize::MAX);
            value(py, dictionary.values().as_ref(), key)
        }
        DataType::List(_) => list(py, &array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(py, &array.as_list::<i64>().value(row)),
        DataType::Map(..) => {
            let (entries, dict) = (array.as_map().value(row), PyDict::new(py));
            for at in 0..entries.len() {
                let [key, of] = [0, 1].map(|column| value(py, entries.column(column).as_ref(), at));
                dict.set_item(key?, of?)?;
            }
            dict.into_py_any(py)
        }
        DataType::Struct(_) => {
            let (fields, dict) = (array.as_struct(), PyDict::new(py));
            for (name, column) in fields.column_names().iter().zip(fields.columns()) {
                dict.set_item(name, value(py, column.as_ref(), row)?)?;
            }
            dict.into_py_any(py)
        }
        other => Err(error::plain(format!("columns of type {other} cannot be converted to Python values"))),
    }
}

fn number<'py, T>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Py<PyAny>>
where
    T: ArrowPrimitiveType,
    T::Native: IntoPyObject<'py>,
{
    array.as_primitive::<T>().value(row).into_py_any(py)
}

fn bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    PyBytes::new(py, bytes).into_py_any(py)
}

/// Converts a list. Lists nest only as deeply as the schema.
fn list(py: Python<'_>, items: &ArrayRef) -> PyResult<Py<PyAny>> {
    let values = (0..items.len()).map(|row| value(py, items.as_ref(), row));
    PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_py_any(py)
}
