//! The mapping of Arrow types to DuckDB types.

use arrow_schema::{DataType, TimeUnit};
use libduckdb_sys as duckdb;

use crate::api::{LogicalType, Result};

/// Returns the DuckDB type for values of an Arrow type.
///
/// Durations become numbers in their unit, as in Parquet, because DuckDB's intervals have microsecond resolution and
/// would lose nanoseconds.
///
/// # Errors
/// Returns an error if DuckDB has no such type.
pub(crate) fn logical(arrow: &DataType) -> Result<LogicalType> {
    let number = match arrow {
        DataType::Boolean => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN,
        DataType::Int8 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_TINYINT,
        DataType::Int16 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT,
        DataType::Int32 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_INTEGER,
        DataType::Int64 | DataType::Duration(_) => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT,
        DataType::UInt8 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT,
        DataType::UInt16 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT,
        DataType::UInt32 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER,
        DataType::UInt64 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT,
        DataType::Float32 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_FLOAT,
        DataType::Float64 => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE,
        DataType::Timestamp(TimeUnit::Second, _) => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_S,
        DataType::Timestamp(TimeUnit::Millisecond, _) => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_MS,
        DataType::Timestamp(TimeUnit::Microsecond, _) => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_NS,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => duckdb::DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            duckdb::DUCKDB_TYPE_DUCKDB_TYPE_BLOB
        }
        DataType::Dictionary(_, values) => return logical(values),
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            return Ok(LogicalType::list(&logical(element.data_type())?));
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return Err("the map type has no entries".to_owned());
            };
            let [keys, values] = fields.as_ref() else { return Err("the map type has no keys and values".to_owned()) };
            return Ok(LogicalType::map(&logical(keys.data_type())?, &logical(values.data_type())?));
        }
        DataType::Struct(fields) => {
            let fields: Result<Vec<_>> =
                fields.iter().map(|field| Ok((field.name().clone(), logical(field.data_type())?))).collect();
            return Ok(LogicalType::structure(&fields?));
        }
        other => return Err(format!("DuckDB has no type for {other}")),
    };
    Ok(LogicalType::new(number))
}
