//! Constants that columns are compared with, as Arrow's kernels want them: arrays of one value.

use std::sync::Arc;

use arrow_array::types as arrow;
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Float32Array, Float64Array, LargeStringArray, PrimitiveArray,
    StringArray, StringViewArray,
};
use arrow_schema::{DataType, TimeUnit};

use crate::Scalar;

/// Returns a value as one of a column's type.
///
/// # Errors
/// The type has no such value, or is none that is compared.
pub(crate) fn constant(value: &Scalar, data_type: &DataType) -> Result<ArrayRef, String> {
    Ok(match (data_type, value) {
        (DataType::Dictionary(_, values), _) => return constant(value, values),
        (DataType::Utf8, Scalar::Text(text)) => Arc::new(StringArray::from_iter_values([text])),
        (DataType::LargeUtf8, Scalar::Text(text)) => Arc::new(LargeStringArray::from_iter_values([text])),
        (DataType::Utf8View, Scalar::Text(text)) => Arc::new(StringViewArray::from_iter_values([text])),
        (DataType::Boolean, Scalar::Integer(n @ 0..=1)) => Arc::new(BooleanArray::from(vec![*n == 1])),
        #[expect(clippy::cast_possible_truncation, reason = "the nearest value of the column's type")]
        (DataType::Float32, Scalar::Float(n)) => Arc::new(Float32Array::from(vec![*n as f32])),
        (DataType::Float64, Scalar::Float(n)) => Arc::new(Float64Array::from(vec![*n])),
        #[expect(clippy::cast_precision_loss, reason = "the nearest value of the column's type")]
        (DataType::Float32, Scalar::Integer(n)) => Arc::new(Float32Array::from(vec![*n as f32])),
        #[expect(clippy::cast_precision_loss, reason = "the nearest value of the column's type")]
        (DataType::Float64, Scalar::Integer(n)) => Arc::new(Float64Array::from(vec![*n as f64])),
        (_, Scalar::Integer(n)) => return integer(*n, data_type),
        _ => return Err(format!("a column of {data_type} cannot be compared with {}", shown(value))),
    })
}

/// Returns a whole number as one of a column's type.
fn integer(n: i128, data_type: &DataType) -> Result<ArrayRef, String> {
    match data_type {
        DataType::Int8 => one::<arrow::Int8Type>(n, data_type),
        DataType::Int16 => one::<arrow::Int16Type>(n, data_type),
        DataType::Int32 => one::<arrow::Int32Type>(n, data_type),
        DataType::Int64 => one::<arrow::Int64Type>(n, data_type),
        DataType::UInt8 => one::<arrow::UInt8Type>(n, data_type),
        DataType::UInt16 => one::<arrow::UInt16Type>(n, data_type),
        DataType::UInt32 => one::<arrow::UInt32Type>(n, data_type),
        DataType::UInt64 => one::<arrow::UInt64Type>(n, data_type),
        DataType::Duration(TimeUnit::Second) => one::<arrow::DurationSecondType>(n, data_type),
        DataType::Duration(TimeUnit::Millisecond) => one::<arrow::DurationMillisecondType>(n, data_type),
        DataType::Duration(TimeUnit::Microsecond) => one::<arrow::DurationMicrosecondType>(n, data_type),
        DataType::Duration(TimeUnit::Nanosecond) => one::<arrow::DurationNanosecondType>(n, data_type),
        DataType::Timestamp(TimeUnit::Second, _) => one::<arrow::TimestampSecondType>(n, data_type),
        DataType::Timestamp(TimeUnit::Millisecond, _) => one::<arrow::TimestampMillisecondType>(n, data_type),
        DataType::Timestamp(TimeUnit::Microsecond, _) => one::<arrow::TimestampMicrosecondType>(n, data_type),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => one::<arrow::TimestampNanosecondType>(n, data_type),
        other => Err(format!("a column of {other} cannot be compared with {n}")),
    }
}

fn one<T: ArrowPrimitiveType<Native: TryFrom<i128>>>(n: i128, data_type: &DataType) -> Result<ArrayRef, String> {
    let n = T::Native::try_from(n).map_err(|_| format!("{n} is outside of the column's numbers, {data_type}"))?;
    Ok(Arc::new(PrimitiveArray::<T>::new(vec![n].into(), None).with_data_type(data_type.clone())))
}

fn shown(value: &Scalar) -> String {
    match value {
        Scalar::Integer(n) => n.to_string(),
        Scalar::Float(n) => n.to_string(),
        Scalar::Text(text) => format!("{text:?}"),
    }
}
