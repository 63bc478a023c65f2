//! Converts rows to JSON: table rows, and records of the dynamic reader.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::Write as _;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use metatf::dynamic::{Item as Stored, OwnedRecord, Schema};
use metatf_arrow::{OpenOptions, Scan, Table, open};
use metatf_parser::schema::{Format, Interpretation, Item, Leaf, LeafId, Names, Record, Repeated, Width};
use metatf_tools::fields::{Cursor, is_shown, vfield};
use serde_json::{Map, Value, json};

/// Creates a file with these bytes.
pub(crate) fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Opens the tables of a file with a schema.
pub(crate) fn tables(path: &std::path::Path, schema: &Schema, stored: bool) -> Vec<Arc<dyn Table>> {
    open(path, &OpenOptions { dtd: Some(schema.clone()), stored, ..OpenOptions::default() }).unwrap()
}

/// Returns the readable rows of a table, and the error after them.
pub(crate) fn rows(table: &dyn Table, scan: &Scan) -> (Vec<Map<String, Value>>, Option<String>) {
    let mut rows = Vec::new();
    for batch in table.scan(scan).unwrap() {
        match batch {
            Ok(batch) => rows.extend(of_batch(&batch)),
            Err(error) => return (rows, Some(error.to_string())),
        }
    }
    (rows, None)
}

/// Returns the rows of a batch.
pub(crate) fn of_batch(batch: &RecordBatch) -> impl Iterator<Item = Map<String, Value>> + '_ {
    (0..batch.num_rows()).map(|row| of_row(batch, row))
}

fn of_row(batch: &RecordBatch, row: usize) -> Map<String, Value> {
    let schema = batch.schema();
    let cells = schema.fields().iter().zip(batch.columns());
    cells.map(|(field, column)| (field.name().clone(), cell(column, row))).collect()
}

fn cell(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float32 => json!({ "bits": array.as_primitive::<Float32Type>().value(row).to_bits() }),
        DataType::Float64 => json!({ "bits": array.as_primitive::<Float64Type>().value(row).to_bits() }),
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::Binary => hex(array.as_binary::<i32>().value(row)).into(),
        DataType::Timestamp(unit, _) => json!({ "since 1970": match unit {
            TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row),
            TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row),
            TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
            TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row),
        } }),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|item| cell(&items, item)).collect()
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let text = |column: usize, at| cell(entries.column(column), at);
            let members = (0..entries.len()).map(|at| (text(0, at).as_str().unwrap().to_owned(), text(1, at)));
            Value::Object(members.collect())
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            Value::Object(columns.map(|(field, column)| (field.name().clone(), cell(column, row))).collect())
        }
        other => panic!("a column of {other}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a record of the dynamic reader as a row, or an error if a value does not fit its column.
pub(crate) fn expected(record: &Record, owned: &OwnedRecord, stored: bool) -> Result<Map<String, Value>, String> {
    let mut cursor = Cursor::new(record, owned);
    Expected { record, stored }.items(&record.items, "", &mut cursor)
}

struct Expected<'r> {
    record: &'r Record,
    stored: bool,
}

impl Expected<'_> {
    fn items(&self, items: &[Item], prefix: &str, cursor: &mut Cursor<'_>) -> Result<Map<String, Value>, String> {
        let mut row = Map::new();
        let mut wrong = None;
        for item in items {
            match item {
                Item::Leaf(id) => {
                    let leaf = self.record.leaf(*id).unwrap();
                    let value = self.leaf(*id, cursor);
                    if is_shown(leaf, false) {
                        row.insert(format!("{prefix}{}", leaf.key), keep(value, &mut wrong));
                    }
                }
                Item::Nested { key, record, items, .. } => match vfield(record, items) {
                    Some((length, data)) => {
                        let _ = cursor.take(length);
                        row.insert(format!("{prefix}{key}"), keep(self.leaf(data, cursor), &mut wrong));
                    }
                    None => match self.items(items, &format!("{prefix}{key}."), cursor) {
                        Ok(inner) => row.extend(inner),
                        Err(error) => wrong = wrong.or(Some(error)),
                    },
                },
                Item::Repeat { count, key, body } => {
                    let items: Vec<Value> =
                        (0..cursor.count(*count)).map(|_| keep(self.repeated(body, cursor), &mut wrong)).collect();
                    if !self.shows(body) {
                        continue;
                    }
                    let is_single = match body {
                        Repeated::Leaf(_) => true,
                        Repeated::Group(_) => false,
                        Repeated::Record { record, items, .. } => vfield(record, items).is_some(),
                    };
                    let is_bool = !self.stored && is_single && self.record.leaf(*count).unwrap().format == Format::Bool;
                    let value = if self.record.is_optional(*count) || is_bool {
                        if items.len() > 1 {
                            wrong = wrong.or(Some("several".to_owned()));
                        }
                        items.into_iter().next().unwrap_or(Value::Null)
                    } else {
                        Value::Array(items)
                    };
                    row.insert(format!("{prefix}{key}"), value);
                }
            }
        }
        wrong.map_or(Ok(row), Err)
    }

    fn repeated(&self, body: &Repeated, cursor: &mut Cursor<'_>) -> Result<Value, String> {
        match body {
            Repeated::Leaf(id) => self.leaf(*id, cursor),
            Repeated::Group(items) => self.items(items, "", cursor).map(Value::Object),
            Repeated::Record { record, items, .. } => match vfield(record, items) {
                Some((length, data)) => {
                    let _ = cursor.take(length);
                    self.leaf(data, cursor)
                }
                None => self.items(items, "", cursor).map(Value::Object),
            },
        }
    }

    /// Returns whether any part of a repeated item is visible.
    fn shows(&self, body: &Repeated) -> bool {
        match body {
            Repeated::Leaf(_) => true,
            Repeated::Group(items) => self.any(items),
            Repeated::Record { record, items, .. } => vfield(record, items).is_some() || self.any(items),
        }
    }

    fn any(&self, items: &[Item]) -> bool {
        items.iter().any(|item| match item {
            Item::Leaf(id) => is_shown(self.record.leaf(*id).unwrap(), false),
            Item::Nested { record, items, .. } => vfield(record, items).is_some() || self.any(items),
            Item::Repeat { body, .. } => self.shows(body),
        })
    }

    fn leaf(&self, id: LeafId, cursor: &mut Cursor<'_>) -> Result<Value, String> {
        let (leaf, value) = cursor.take(id).unwrap();
        match value {
            Stored::Number(n) => number(leaf, n, self.stored),
            Stored::Bytes(bytes) => self.bytes(leaf, bytes),
        }
    }

    fn bytes(&self, leaf: &Leaf, bytes: &[u8]) -> Result<Value, String> {
        match leaf.format {
            Format::Utf8 | Format::CString if !self.stored => {
                let text = leaf.format.text_of_bytes(bytes);
                text.map(Into::into).ok_or_else(|| format!("{bytes:?} is no text"))
            }
            Format::Ipv6 | Format::Uuid if !self.stored && leaf.width == Width::Array(16) => {
                Ok(leaf.format.word_of_bytes(bytes).unwrap().into())
            }
            _ => Ok(hex(bytes).into()),
        }
    }
}

fn keep(value: Result<Value, String>, wrong: &mut Option<String>) -> Value {
    value.unwrap_or_else(|error| {
        wrong.get_or_insert(error);
        Value::Null
    })
}

fn number(leaf: &Leaf, n: u64, stored: bool) -> Result<Value, String> {
    match leaf.format {
        Format::Signed => return Ok(n.cast_signed().into()),
        Format::F32 if n >> 32 != 0 => return Err(format!("{n:#x} has more than the 32 bits of an `f32`")),
        Format::F32 | Format::F64 => return Ok(json!({ "bits": n })),
        _ if stored => return Ok(n.into()),
        _ => {}
    }
    match &leaf.names {
        Names::Values(_) => return Ok(leaf.names.text(n).map_or_else(|| n.to_string(), Into::into).into()),
        Names::Flags(_) if n == 0 => return Ok(json!([])),
        Names::Flags(_) => {
            let text = leaf.names.text(n).map_or_else(|| format!("{n:#x}"), Into::into);
            return Ok(text.split('|').collect());
        }
        Names::None => {}
    }
    let is_offset = matches!(leaf.interpretation, Interpretation::SectionOffset(_));
    match leaf.format {
        Format::Bool if !is_offset => match n {
            0 | 1 => Ok((n == 1).into()),
            _ => Err(format!("{n} is no truth value")),
        },
        Format::DateNs | Format::DateUs | Format::DateMs | Format::DateS if !is_offset => {
            Ok(json!({ "since 1970": n.cast_signed() }))
        }
        Format::Chars | Format::CharsLe | Format::Char | Format::Ipv4 if !is_offset => {
            Ok(leaf.format.word(n).unwrap_or_else(|| format!("0x{n:016x}")).into())
        }
        Format::Hex if !is_offset => Ok(n.into()),
        Format::Unset | Format::Dec if !is_offset && leaf.width == Width::Number(8) && leaf.unit.is_none() => {
            Ok(n.into())
        }
        _ => i64::try_from(n).map(Into::into).map_err(|_| format!("{n} is too large")),
    }
}
