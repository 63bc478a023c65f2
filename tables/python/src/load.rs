//! Converts Python values to values of a record according to the rules of JSON lines (spec 8).

use metatf_parser::schema::{Interpretation, Item, Record};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// Maximum nesting depth of values, which exceeds the maximum nesting depth of record items (spec 3.5).
const DEEPEST: usize = 64;

/// Converts a value to the form used in JSON lines. Named tuples become objects, other sequences arrays, and bytes
/// `{"hex": ..}`.
pub(crate) fn value(from: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(from, DEEPEST)
}

fn nested(from: &Bound<'_, PyAny>, deep: usize) -> PyResult<Value> {
    let Some(deep) = deep.checked_sub(1) else { return Err(PyTypeError::new_err("a value is nested too deeply")) };
    if from.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = from.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if from.is_instance_of::<PyInt>() {
        return match (from.extract::<u64>(), from.extract::<i64>()) {
            (Ok(number), _) => Ok(number.into()),
            (_, Ok(number)) => Ok(number.into()),
            _ => Err(crate::error::plain(format!("{from} does not fit in 64 bits"))),
        };
    }
    if from.is_instance_of::<PyFloat>() {
        let number: f64 = from.extract()?;
        let finite = Number::from_f64(number).map(Value::Number);
        return Ok(finite.unwrap_or_else(|| hex(&number.to_bits().to_be_bytes())));
    }
    if let Ok(text) = from.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = from.cast::<PyBytes>() {
        return Ok(hex(bytes.as_bytes()));
    }
    if let Ok(bytes) = from.cast::<PyByteArray>() {
        return Ok(hex(&bytes.to_vec()));
    }
    if let Ok(dict) = from.cast::<PyDict>() {
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let key = key.cast::<PyString>()?.to_str()?.to_owned();
            PyResult::Ok((key, nested(&value, deep)?))
        };
        return dict.iter().map(entry).collect::<PyResult<Map<_, _>>>().map(Value::Object);
    }
    if from.is_instance_of::<PyTuple>() && from.hasattr("_asdict")? {
        return nested(&from.call_method0("_asdict")?, deep);
    }
    // Accept numpy integers and other integer types.
    if let Ok(number) = from.call_method0("__index__") {
        return nested(&number, deep);
    }
    let items = from.try_iter().map_err(|_| {
        let kind = from.get_type();
        PyTypeError::new_err(format!(
            "expected a number, a string, bytes, a dict or a list as a record value, found {kind}"
        ))
    })?;
    items.map(|item| nested(&item?, deep)).collect::<PyResult<Vec<_>>>().map(Value::Array)
}

fn hex(bytes: &[u8]) -> Value {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Value::Object(Map::from_iter([("hex".to_owned(), Value::String(digits))]))
}

/// Returns the number of the stream section that a field of a record refers to.
pub(crate) fn target(record: &Record, key: &str) -> Option<u8> {
    record.items.iter().find_map(|item| match item {
        Item::Leaf(id) => {
            let leaf = record.leaf(*id).filter(|leaf| leaf.key == key)?;
            match leaf.interpretation {
                Interpretation::SectionOffset(number) => Some(number),
                _ => None,
            }
        }
        _ => None,
    })
}

/// Returns the key of a record's only field, or `None` if the record does not have exactly one field.
pub(crate) fn only_key(record: &Record) -> Option<&str> {
    let shown = |item: &&Item| match item {
        Item::Leaf(id) => record.leaf(*id).is_some_and(|leaf| !leaf.is_implied()),
        _ => true,
    };
    let mut items = record.items.iter().filter(shown);
    let (first, second) = (items.next()?, items.next());
    if second.is_some() {
        return None;
    }
    match first {
        Item::Leaf(id) => record.leaf(*id).map(|leaf| &*leaf.key),
        Item::Nested { key, .. } | Item::Repeat { key, .. } => Some(key),
    }
}
