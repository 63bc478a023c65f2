//! Converts exported files back to records, using the names of tables and columns.
//!
//! Rows of numbers and byte arrays are encoded [column by column](BatchEncoder). Other rows are converted to JSON lines
//! (spec 8), whose reader fills in counts, lengths and constants, and accepts value names.

use std::path::{Path, PathBuf};

use metatf::container::Sink;
use metatf::dynamic::{Line, OwnedRecord, Schema, Strides, Writer, is_implied};
use metatf_parser::schema::{Format, Item, Leaf, LeafId, Names, Record, Repeated, Width};
use metatf_tools::fields;
use serde_json::{Map, Value, json};

use super::rows::{Row, Rows};
use crate::encode::nameless;
use crate::record_table::{NUMBER, OFFSET, SECTION, TableName, names};
use crate::{BatchEncoder, Error, Result};

/// Number of rows between two calls of the progress callback.
const TOLD: u64 = 4096;

/// Writes the rows of files to a trace, ordered by their column `@number`; files without this column are written one
/// after the other. The file name without extension is the name of the table; for a single file, `record` overrides it.
/// Returns the number of rows.
///
/// `reading` is called with the path of a file before a part of it is decoded, and every few thousand rows. The decoder
/// of a corrupt file may loop forever or use any amount of memory. Therefore, run the import in a separate process, and
/// limit its resources between two calls of `reading`.
///
/// Tables of strings that records refer to are skipped, because the record tables contain these strings. Column types
/// may drop information, so export stored values to get identical bytes in every field.
///
/// # Errors
/// Returns an error if a file cannot be read, the DTD does not declare a record or field, or a value does not fit (the
/// error contains the file and the row).
pub fn import<S: Sink>(
    schema: &Schema,
    files: &[PathBuf],
    record: Option<&str>,
    writer: &mut Writer<S>,
    reading: &mut dyn FnMut(&Path),
) -> Result<u64> {
    let tables = names(schema);
    let mut inputs = Vec::new();
    for path in files {
        reading(path);
        inputs.extend(Input::open(schema, &tables, path, record)?);
    }
    let (mut owned, mut strides) = (OwnedRecord::default(), Strides::new(schema));
    let mut count = 0_u64;
    // The number of open files is small, so a linear search is sufficient.
    while let Some(input) = inputs.iter_mut().filter(|input| input.next.is_some()).min_by_key(|input| input.number) {
        input.write(schema, writer, (&mut owned, &mut strides))?;
        count += 1;
        if input.rows.decodes_next() || count.is_multiple_of(TOLD) {
            reading(&input.path);
        }
        input.read()?;
    }
    Ok(count)
}

/// A file and its next row.
struct Input<'s> {
    path: PathBuf,
    rows: Rows,
    next: Option<Row>,
    /// The number of the next row. Rows without a number come first.
    number: Option<u64>,
    record: &'s Record,
    index: u16,
    sections: Vec<usize>,
}

impl<'s> Input<'s> {
    /// Opens a file. Returns `None` for a table of strings that records refer to, because the record tables contain
    /// these strings.
    fn open(schema: &'s Schema, tables: &[TableName], path: &Path, record: Option<&str>) -> Result<Option<Self>> {
        let fail = |message: String| Error::new(path, message);
        let name = record.or_else(|| path.file_stem()?.to_str()).unwrap_or_default();
        let table = tables.iter().find(|table| table.name == name).ok_or_else(|| {
            let known: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
            fail(format!("the DTD has no record `{name}`; available records: {}", known.join(", ")))
        })?;
        let record = schema.record(table.record).ok_or_else(|| fail("the DTD has no such record".to_owned()))?;
        let index = table.record;
        let rows = match *table.sections {
            [section] => {
                let schema = schema.clone();
                Rows::open(path, Box::new(move |batch| BatchEncoder::new(&schema, section, index, batch)))?
            }
            _ => Rows::open(path, Box::new(|_| None))?,
        };
        let mut known = Vec::new();
        columns(record, &record.items, "", &mut known);
        let strange = |name: &&String| !known.contains(*name) && ![NUMBER, SECTION].contains(&name.as_str());
        let strange: Vec<&str> = rows.names().iter().filter(strange).map(String::as_str).collect();
        if strange.contains(&OFFSET) {
            let is_text = table.sections.iter().any(|&section| schema.string_leaf(section).is_some());
            return if is_text {
                Ok(None)
            } else {
                let why = "its rows are elements that other records refer to by offset, but the offsets are different \
                           in a new trace";
                Err(fail(format!("{why}; omit this table and the columns that refer to it")))
            };
        }
        if !strange.is_empty() {
            return Err(fail(format!(
                "the record `{}` has no column {}; available columns: {}",
                table.name,
                strange.join(", "),
                known.join(", ")
            )));
        }
        let (path, sections) = (path.to_owned(), table.sections.clone());
        let mut input = Self { path, rows, next: None, number: None, record, index, sections };
        input.read()?;
        Ok(Some(input))
    }

    /// Returns an error about the row that was returned last.
    fn fail(&self, message: impl std::fmt::Display) -> Error {
        Error::new(&self.path, format!("row {}: {message}", self.rows.given))
    }

    /// Reads the next row.
    fn read(&mut self) -> Result<()> {
        self.next = self.rows.next().map_err(|message| self.fail(format!("cannot read the next row: {message}")))?;
        let (is_there, number) = match &self.next {
            None => (false, None),
            Some(Row::Encoded(_, number)) => (number.is_some(), number.and_then(|number| u64::try_from(number).ok())),
            Some(Row::Values(row)) => match row.get(NUMBER) {
                None => (false, None),
                Some(Value::String(text)) => (true, text.parse().ok()),
                Some(number) => (true, number.as_u64()),
            },
        };
        self.number = number;
        if is_there && number.is_none() {
            return Err(self.fail(format!("{NUMBER} must be a nonnegative integer")));
        }
        Ok(())
    }

    /// Writes the current row.
    fn write<S: Sink>(
        &mut self,
        schema: &Schema,
        writer: &mut Writer<S>,
        (owned, strides): (&mut OwnedRecord, &mut Strides),
    ) -> Result<()> {
        let mut row = match self.next.take() {
            Some(Row::Values(row)) => row,
            Some(Row::Encoded(row, _)) => {
                let written = self.rows.encoder().map(|encoder| encoder.write(row, writer, owned));
                let written = written.transpose();
                return written.map(drop).map_err(|error| self.fail(metatf::explain(&schema.format, &error)));
            }
            None => return Ok(()),
        };
        row.remove(NUMBER);
        let section = match row.remove(SECTION).as_ref().and_then(Value::as_str) {
            Some(name) => {
                let of_name =
                    |&section: &usize| schema.section(section).and_then(|s| s.name.as_deref()).unwrap_or("") == name;
                let found = self.sections.iter().copied().find(of_name);
                found.ok_or_else(|| self.fail(format!("section `{name}` does not contain this record")))?
            }
            None => self.sections.first().copied().unwrap_or(0),
        };
        let mut object = Map::new();
        object.insert("@section".to_owned(), schema.section(section).and_then(|s| s.name.clone()).into());
        object.insert("@record".to_owned(), self.record.name.clone().into());
        let mut made = Maker { schema, record: self.record, texts: self.rows.are_texts() };
        made.items(&self.record.items, "", &mut row, &mut object).map_err(|message| self.fail(message))?;
        let line = Value::Object(object).to_string();
        let line = writer.read_json(line.as_bytes(), owned, strides).map_err(|error| self.fail(error))?;
        debug_assert!(matches!(line, Line::Record(_, index) if index == self.index), "it is a record of this type");
        writer.write(&line, owned).map_err(|error| self.fail(metatf::explain(&schema.format, &error)))
    }
}

/// Collects the column names of a record. Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
fn columns(record: &Record, items: &[Item], prefix: &str, names: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Leaf(id) => names.extend(
                record
                    .leaf(*id)
                    .filter(|leaf| fields::is_shown(leaf, false))
                    .map(|leaf| format!("{prefix}{}", leaf.key)),
            ),
            Item::Nested { key, record: nested, items, .. } if fields::vfield(nested, items).is_none() => {
                columns(record, items, &format!("{prefix}{key}."), names);
            }
            Item::Nested { key, .. } | Item::Repeat { key, .. } => names.push(format!("{prefix}{key}")),
        }
    }
}

/// Converts rows to JSON.
struct Maker<'m> {
    schema: &'m Schema,
    record: &'m Record,
    /// Whether all values are strings from CSV cells.
    texts: bool,
}

impl Maker<'_> {
    /// Moves the members of an object from a row to the object. Items nest at most 32 deep (spec 3.5), so this
    /// recursion is bounded.
    fn items(
        &mut self,
        items: &[Item],
        prefix: &str,
        row: &mut Map<String, Value>,
        object: &mut Map<String, Value>,
    ) -> Result<(), String> {
        for item in items {
            match item {
                Item::Leaf(id) => {
                    let Some(leaf) = self.record.leaf(*id).filter(|leaf| fields::is_shown(leaf, false)) else {
                        continue;
                    };
                    let name = format!("{prefix}{}", leaf.key);
                    if let Some(value) = take(row, &name) {
                        object.insert(leaf.key.clone(), self.leaf(*id, value).map_err(|e| format!("{name}: {e}"))?);
                    }
                }
                Item::Nested { key, record, items, .. } => {
                    let name = format!("{prefix}{key}");
                    match fields::vfield(record, items) {
                        Some((_, data)) => {
                            if let Some(value) = take(row, &name) {
                                object.insert(key.clone(), self.leaf(data, value).map_err(|e| format!("{name}: {e}"))?);
                            }
                        }
                        None => {
                            let mut inner = Map::new();
                            self.items(items, &format!("{name}."), row, &mut inner)?;
                            object.insert(key.clone(), inner.into());
                        }
                    }
                }
                Item::Repeat { count, key, body } => {
                    let name = format!("{prefix}{key}");
                    let value = take(row, &name);
                    // Items that consist of constants have no column and may be missing from JSON lines.
                    if value.is_none() && is_implied(self.record, body) {
                        continue;
                    }
                    let repeated = self.repeat(*count, body, value).map_err(|e| format!("{name}: {e}"))?;
                    object.extend(repeated.map(|value| (key.clone(), value)));
                }
            }
        }
        Ok(())
    }

    fn repeat(&mut self, count: LeafId, body: &Repeated, value: Option<Value>) -> Result<Option<Value>, String> {
        let is_single = match body {
            Repeated::Leaf(_) => true,
            Repeated::Group(_) => false,
            Repeated::Record { record, items, .. } => fields::vfield(record, items).is_some(),
        };
        let value = match value {
            // A repetition is stored as JSON. If it consists of single values, a text that is not a list is the value
            // itself.
            Some(Value::String(text)) if self.texts && (!is_single || text.starts_with('[')) => {
                Some(serde_json::from_str(&text).map_err(|_| format!("expected JSON, found {text:?}"))?)
            }
            value => value,
        };
        if self.record.is_optional(count) {
            return value.map(|value| self.item(body, value)).transpose();
        }
        let items = match value {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(single) => vec![single],
        };
        let items = items.into_iter().map(|item| self.item(body, item)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(items.into()))
    }

    fn item(&mut self, body: &Repeated, value: Value) -> Result<Value, String> {
        match body {
            Repeated::Leaf(id) => self.leaf(*id, value),
            Repeated::Group(items) => self.object(items, value),
            Repeated::Record { record, items, .. } => match fields::vfield(record, items) {
                Some((_, data)) => self.leaf(data, value),
                None => self.object(items, value),
            },
        }
    }

    fn object(&mut self, items: &[Item], value: Value) -> Result<Value, String> {
        let Value::Object(mut row) = value else { return Err(format!("expected an object, found {value}")) };
        let mut object = Map::new();
        let texts = std::mem::replace(&mut self.texts, false);
        let made = self.items(items, "", &mut row, &mut object);
        self.texts = texts;
        made.map(|()| object.into())
    }

    /// Converts a value to JSON.
    fn leaf(&mut self, id: LeafId, value: Value) -> Result<Value, String> {
        let Some(leaf) = self.record.leaf(id) else { return Ok(value) };
        if !leaf.is_numeric() {
            return Ok(bytes(leaf, value));
        }
        // The writer adds the strings that a field refers to.
        if value.is_string() && self.schema.refers_to_strings(leaf) {
            return Ok(value);
        }
        number(leaf, value)
    }
}

/// Removes a value from a row. Returns `None` for null.
fn take(row: &mut Map<String, Value>, name: &str) -> Option<Value> {
    row.remove(name).filter(|value| !value.is_null())
}

/// Converts a number to JSON. Names and words that JSON lines accept are kept; other values were exported as numbers.
fn number(leaf: &Leaf, value: Value) -> Result<Value, String> {
    let flags = |names: &[Value]| {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        if names.is_empty() {
            Ok(0.into())
        } else {
            leaf.names.value(&names.join("|")).map(Value::from).ok_or("the field defines no such flags")
        }
    };
    Ok(match value {
        Value::Array(names) => flags(&names)?,
        Value::Bool(is) => u64::from(is).into(),
        Value::String(text) if matches!(leaf.names, Names::Flags(_)) => match serde_json::from_str::<Value>(&text) {
            Ok(Value::Array(names)) => flags(&names)?,
            _ => text.parse::<u64>().map_or(Value::String(text), Into::into),
        },
        Value::String(text) if leaf.names.value(&text).is_some() => Value::String(text),
        Value::String(text) if nameless(leaf, &text).is_some() => nameless(leaf, &text).into(),
        Value::String(text) if leaf.format.number_of_word(&text).is_none() => {
            match (text.strip_prefix("0x"), leaf.format) {
                (Some(hex), _) if hex.len() == 16 => {
                    u64::from_str_radix(hex, 16).map_or(Value::String(text), Into::into)
                }
                (_, Format::F32) => match serde_json::from_str::<Value>(&text) {
                    Ok(object @ Value::Object(_)) => object,
                    _ => match text.parse::<f32>() {
                        Ok(real) => json!({ "hex": format!("{:08x}", real.to_bits()) }),
                        Err(_) => Value::String(text),
                    },
                },
                (_, Format::F64) => match serde_json::from_str::<Value>(&text) {
                    Ok(object @ Value::Object(_)) => object,
                    _ => match text.parse::<f64>() {
                        Ok(real) => json!({ "hex": format!("{:016x}", real.to_bits()) }),
                        Err(_) => Value::String(text),
                    },
                },
                (_, Format::Signed) => text.parse::<i64>().map_or(Value::String(text), Into::into),
                (_, format) if format.is_time() => {
                    let signed = text.parse::<i64>().map(i64::cast_unsigned);
                    signed.or_else(|_| text.parse()).map_or(Value::String(text), |n: u64| n.into())
                }
                _ => text.parse::<u64>().map_or(Value::String(text), Into::into),
            }
        }
        value => value,
    })
}

/// Converts bytes to JSON: text remains text, and bytes use the notation of the format.
fn bytes(leaf: &Leaf, value: Value) -> Value {
    let is_text = leaf.section.is_none() && matches!(leaf.format, Format::Utf8 | Format::CString);
    match (value, &leaf.width) {
        (Value::Object(mut object), _) if !is_text => object.remove("hex").unwrap_or(Value::Null),
        // Text in a fixed-length field is padded with zeros; terminated text is not.
        (Value::String(text), Width::Array(length)) if leaf.format == Format::CString => {
            let length = usize::try_from(*length).unwrap_or(usize::MAX).max(text.len());
            let zeros = "00".repeat((length - text.len()).min(1 << 20));
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            json!({ "hex": format!("{hex}{zeros}") })
        }
        (Value::String(text), Width::Until(_)) if leaf.format == Format::CString => {
            json!({ "hex": text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>() })
        }
        (value, _) => value,
    }
}
