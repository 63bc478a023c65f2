//! Converts Python columns to Arrow arrays, if all values are numbers, text or bytes of a single type.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, UInt64Array};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Converts the columns of a dict to a batch. Returns `None` if this fails for any column; the caller must then convert
/// all values of the dict one by one.
pub(crate) fn batch(columns: &Bound<'_, PyDict>) -> PyResult<Option<RecordBatch>> {
    let mut arrays = Vec::with_capacity(columns.len());
    for (name, column) in columns {
        let Some(array) = array(&column) else { return Ok(None) };
        arrays.push((name.cast::<PyString>()?.to_str()?.to_owned(), array));
    }
    Ok(RecordBatch::try_from_iter(arrays).ok())
}

/// Converts a list, a tuple, or an object with a contiguous buffer of numbers, such as a numpy array.
fn array(column: &Bound<'_, PyAny>) -> Option<ArrayRef> {
    if let Ok(list) = column.cast::<PyList>() {
        return of_values(list.get_item(0).ok().as_ref(), || list.iter());
    }
    if let Ok(tuple) = column.cast::<PyTuple>() {
        return of_values(tuple.get_item(0).ok().as_ref(), || tuple.iter());
    }
    let of_i64 = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    buffer::<i64>(column)
        .or_else(|| widened::<i32>(column))
        .or_else(|| widened::<u32>(column))
        .or_else(|| widened::<i16>(column))
        .or_else(|| widened::<u16>(column))
        .or_else(|| widened::<i8>(column))
        .map(of_i64)
        .or_else(|| buffer::<u64>(column).map(|values| Arc::new(UInt64Array::from(values)) as _))
        .or_else(|| buffer::<f64>(column).map(|values| Arc::new(Float64Array::from(values)) as _))
}

/// Returns the numbers of a one-dimensional contiguous buffer. Bytes are not converted.
fn buffer<T: Element>(column: &Bound<'_, PyAny>) -> Option<Vec<T>> {
    let buffer = PyBuffer::<T>::get(column).ok().filter(|buffer| buffer.dimensions() == 1)?;
    buffer.to_vec(column.py()).ok()
}

fn widened<T: Element + Into<i64>>(column: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    buffer::<T>(column).map(|values| values.into_iter().map(Into::into).collect())
}

/// Converts values if all have the type of the first value.
fn of_values<'py, I: Iterator<Item = Bound<'py, PyAny>>>(
    first: Option<&Bound<'py, PyAny>>,
    values: impl Fn() -> I,
) -> Option<ArrayRef> {
    let first = first?;
    if first.is_instance_of::<PyBool>() {
        let values = values().map(|value| Some(value.cast::<PyBool>().ok()?.is_true()));
        return Some(Arc::new(BooleanArray::from(values.collect::<Option<Vec<_>>>()?)));
    }
    if first.is_instance_of::<PyInt>() {
        // In Python, a boolean is also an integer; in a trace, it is not.
        let whole = |value: &Bound<'py, PyAny>| value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
        let numbers = values().map(|value| value.extract::<i64>().ok().filter(|_| whole(&value)));
        if let Some(numbers) = numbers.collect::<Option<Vec<_>>>() {
            return Some(Arc::new(Int64Array::from(numbers)));
        }
        let numbers = values().map(|value| value.extract::<u64>().ok().filter(|_| whole(&value)));
        return Some(Arc::new(UInt64Array::from(numbers.collect::<Option<Vec<_>>>()?)));
    }
    if first.is_instance_of::<PyFloat>() {
        let values = values().map(|value| Some(value.cast::<PyFloat>().ok()?.value()));
        return Some(Arc::new(Float64Array::from(values.collect::<Option<Vec<_>>>()?)));
    }
    if first.is_instance_of::<PyString>() {
        let mut texts = StringBuilder::new();
        for value in values() {
            texts.append_value(value.cast::<PyString>().ok()?.to_str().ok()?);
        }
        return Some(Arc::new(texts.finish()));
    }
    if first.is_instance_of::<PyBytes>() {
        let mut all = BinaryBuilder::new();
        for value in values() {
            all.append_value(value.cast::<PyBytes>().ok()?.as_bytes());
        }
        return Some(Arc::new(all.finish()));
    }
    None
}
