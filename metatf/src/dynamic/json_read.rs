//! Reading values from JSON lines (spec 8).

use super::strings::{bytes_of_string, c_string, has_words};
use super::{OwnedRecord, Schema};
use crate::encode::ArrayWriter;
use crate::format::{COMMENT, FormatRef, LeafKind, METADATA};
use crate::formula::evaluate;
use crate::reader::{self, Metadata};
use metatf_container::Order;
use metatf_parser::schema::{Format as Print, Interpretation, Item, Leaf, LeafId, Record, RecordId, Repeated, Section};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A parsed line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A data record or comment with its section index and record index. Its values are in the owned record.
    Record(usize, u16),
    /// An element of a stream section with its section index and whether it belongs to a shared table. Its values are
    /// in the owned record.
    Element(usize, bool),
    /// A metadata record of the section with this index.
    Metadata(usize, Metadata),
    /// A `section` record. The writer generates these records itself.
    Section,
    /// The start of a group.
    Group,
    /// A reset of the section's state.
    Reset(usize),
}

/// An error in a line. It names the invalid key and describes the expected value.
#[derive(Clone, PartialEq, Eq)]
pub struct LineError(pub String);

/// Prints like `Display`, so that a `main` that returns the error prints a readable message.
impl fmt::Debug for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LineError {}

impl LineError {
    /// Adds the column of the value that the message names.
    pub(super) fn in_line(self, line: &[u8]) -> Self {
        let mut names = self.0.split('`').skip(1).step_by(2);
        match names.find_map(|name| column_of(line, name)) {
            Some(column) => Self(format!("{} (column {column})", self.0)),
            None => self,
        }
    }
}

/// Returns the column of a member's value, counted in bytes from 1. The line must be a valid JSON object. If several
/// members have the key, the last one counts, as in reading.
fn column_of(line: &[u8], key: &str) -> Option<usize> {
    let (mut depth, mut at, mut found) = (0_usize, 0, None);
    while let Some(&byte) = line.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at;
                at += 1;
                while let Some(byte) = line.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                let space = |from: usize| from + line.iter().skip(from).take_while(|b| b.is_ascii_whitespace()).count();
                let colon = space(at + 1);
                if depth == 1 && line.get(colon) == Some(&b':') {
                    let name = serde_json::from_slice::<String>(line.get(start..=at).unwrap_or_default());
                    if name.is_ok_and(|name| name == key) {
                        found = Some(space(colon + 1) + 1);
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// A function that adds an element to a table unless the table contains it, and returns its offset.
pub(super) type Intern<'i, 'f> = &'i mut (dyn FnMut(usize, &OwnedRecord) -> std::result::Result<u64, String> + 'f);

type Result<T> = std::result::Result<T, LineError>;

fn error<T>(message: impl Into<String>) -> Result<T> {
    Err(LineError(message.into()))
}

impl Schema {
    /// Parses one JSON line for a little-endian trace. A record's values replace the contents of `owned`. Counts,
    /// `vfield` lengths, constants and fields with the interpretation `default` can be omitted.
    ///
    /// # Errors
    /// Returns an error if the text is not a JSON object, if it names an unknown section, record or field, if one of
    /// these is missing, or if a value is of the wrong type.
    pub fn read_json(&self, line: &[u8], owned: &mut OwnedRecord) -> Result<Line> {
        self.read_json_in(Order::Little, line, owned)
    }

    /// Parses one JSON line for a trace with this byte order, which also applies to records in byte arrays (spec 3.7).
    ///
    /// # Errors
    /// As for [`read_json`](Self::read_json).
    pub fn read_json_in(&self, order: Order, line: &[u8], owned: &mut OwnedRecord) -> Result<Line> {
        self.read_object(order, &object(line)?, owned).map_err(|error| error.in_line(line))
    }

    /// Parses the next line of a trace. Fields with the interpretation `stride` can be omitted as well: they continue
    /// from the lines before.
    ///
    /// # Errors
    /// As for [`read_json`](Self::read_json). After an error, `strides` is unchanged.
    ///
    /// # Examples
    ///
    /// ```
    /// use metatf::container::Order;
    /// use metatf::dynamic::{OwnedRecord, Schema, Strides};
    ///
    /// let dtd = "section log 1 { call: (tag, number) { tag.value = 4; number.interpretation = stride 0 1; } }";
    /// let schema = Schema::parse("log.dtd", dtd.as_bytes())?;
    /// let (mut owned, mut strides) = (OwnedRecord::default(), Strides::new(&schema));
    /// for expected in ["1", "2"] {
    ///     let line = br#"{"@section":"log","@record":"call"}"#;
    ///     schema.read_json_next(Order::Little, line, &mut owned, &mut strides)?;
    ///     assert_eq!(format!("{:?}", owned.get(0)), format!("Some(Number({expected}))"));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_json_next(
        &self,
        order: Order,
        line: &[u8],
        owned: &mut OwnedRecord,
        strides: &mut Strides,
    ) -> Result<Line> {
        self.read_object_next(order, &object(line)?, owned, strides).map_err(|error| error.in_line(line))
    }

    /// Parses a line given as a JSON object, which need not originate from JSON text. Bytes of any format may also be
    /// given as `{"hex": ..}`.
    ///
    /// # Errors
    /// As for [`read_json`](Self::read_json).
    pub fn read_object(&self, order: Order, object: &Map<String, Value>, owned: &mut OwnedRecord) -> Result<Line> {
        self.read_line(order, object, owned, (None, None))
    }

    /// Parses the next line of a trace given as a JSON object, like [`read_json_next`](Self::read_json_next).
    ///
    /// # Errors
    /// As for [`read_json_next`](Self::read_json_next).
    pub fn read_object_next(
        &self,
        order: Order,
        object: &Map<String, Value>,
        owned: &mut OwnedRecord,
        strides: &mut Strides,
    ) -> Result<Line> {
        self.read_with_strings(order, object, owned, strides, None)
    }

    pub(super) fn read_with_strings(
        &self,
        order: Order,
        object: &Map<String, Value>,
        owned: &mut OwnedRecord,
        strides: &mut Strides,
        intern: Option<Intern<'_, '_>>,
    ) -> Result<Line> {
        strides.undo.clear();
        let read = self.read_line(order, object, owned, (Some(strides), intern));
        if read.is_err() {
            strides.roll_back();
        }
        read
    }

    fn read_line(
        &self,
        order: Order,
        object: &Map<String, Value>,
        owned: &mut OwnedRecord,
        (strides, intern): (Option<&mut Strides>, Option<Intern<'_, '_>>),
    ) -> Result<Line> {
        owned.clear();
        if object.contains_key("@group") {
            return Ok(Line::Group);
        }
        if let Some(name) = object.get("@reset") {
            return Ok(Line::Reset(self.named_section(name)?));
        }
        let Some(section) = object.get("@section") else { return error("`@section` is missing") };
        let section = self.named_section(section)?;
        let Some(Value::String(name)) = object.get("@record") else { return error("`@record` (a string) is missing") };
        // A stream section does not list `section` records, but in a version 0 file, a `section` record ends the extent
        // of a stream section.
        if name == "section" {
            return Ok(Line::Section);
        }
        let (index, record) = self.named_record(section, name)?;
        match index {
            METADATA => Ok(Line::Metadata(section, metadata(object)?)),
            COMMENT => {
                let Some(text) = object.get("text") else { return error("the comment has no `text`") };
                let bytes = bytes(text, Print::Utf8).map_err(|e| LineError(format!("`text`: {e}")))?;
                owned.push_number(bytes.len() as u64);
                owned.push_bytes(&bytes);
                Ok(Line::Record(section, index))
            }
            _ => {
                let mut loader = Loader::new(self, order, (index, record), owned);
                loader.strides = strides.map(|strides| (strides, section));
                loader.intern = intern;
                loader.items(&record.items, object, true)?;
                let shared = object.get("@shared") == Some(&Value::Bool(true));
                let stream = self.section(section).is_some_and(|s| s.stream.is_some());
                Ok(if stream { Line::Element(section, shared) } else { Line::Record(section, index) })
            }
        }
    }

    fn named_section(&self, name: &Value) -> Result<usize> {
        let index = match name {
            Value::Null => Some(0),
            Value::String(name) => self.format.section_named(name),
            _ => None,
        };
        index.ok_or_else(|| LineError(format!("the DTD has no section {name}")))
    }

    /// Encodes these records of a section as a byte array.
    fn nested(&self, order: Order, number: u8, values: &[Value]) -> Result<Vec<u8>> {
        let Some(section) = self.format.section_index(number) else { return error("the DTD has no such section") };
        let mut array = ArrayWriter::new(FormatRef::Shared(Arc::clone(&self.format)), section, order);
        let mut strides = Strides::new(self);
        for value in values {
            let Value::Object(object) = value else { return error("expected an array of objects") };
            let Some(Value::String(name)) = object.get("@record") else {
                return error("`@record` (a string) is missing");
            };
            let (index, record) = self.named_record(section, name)?;
            if index <= METADATA && self.section(section).is_some_and(|s| s.stream.is_none()) {
                return error(format!("a byte array cannot contain a `{name}` record"));
            }
            let mut owned = OwnedRecord::default();
            let mut loader = Loader::new(self, order, (index, record), &mut owned);
            loader.strides = Some((&mut strides, section));
            loader.items(&record.items, object, true)?;
            let written = array.write(index, |row| owned.encode(row));
            written.map_err(|e| LineError(crate::explain(&self.format, &e).to_string()))?;
        }
        Ok(array.finish())
    }

    fn named_record(&self, section: usize, name: &str) -> Result<(u16, &Record)> {
        let records = self.format.sections.get(section).map_or(&[][..], |s| &s.records);
        let mut found = records.iter().filter_map(|&i| Some((i, self.record(i)?)));
        let found = found.find(|(_, r)| r.name == name);
        found.ok_or_else(|| LineError(format!("the section has no record `{name}`")))
    }
}

/// The previous values of the fields of a trace, from which fields with the interpretation `stride` continue if a line
/// omits them (spec 8). Unlike the state of a trace, they do not depend on groups, resets and metadata.
#[derive(Clone, Debug, Default)]
pub struct Strides {
    /// The cells of each section that contains such a field.
    sections: Vec<Vec<u64>>,
    /// The values that the current line has replaced, with their sections and cells.
    undo: Vec<(usize, usize, u64)>,
}

impl Strides {
    /// Returns the values at the start of a trace.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let strides = |record: &RecordId| {
            let leaves = schema.dtd.record(*record).map_or(&[][..], |record| &record.leaves);
            leaves.iter().any(|leaf| matches!(leaf.interpretation, Interpretation::Stride { .. }))
        };
        let cells = |section: &Section| match section.records.iter().any(strides) {
            true => section.cell_initials.clone(),
            false => Vec::new(),
        };
        Self { sections: schema.dtd.sections.iter().map(cells).collect(), undo: Vec::new() }
    }

    /// Returns the cell of a leaf.
    fn cell(&mut self, schema: &Schema, section: usize, record: u16, leaf: LeafId) -> Option<(usize, &mut u64)> {
        let cells = self.sections.get_mut(section).filter(|cells| !cells.is_empty())?;
        let declared = schema.dtd.sections.get(section)?;
        let listed = declared.records.iter().position(|listed| listed.0 == u32::from(record))?;
        let cell = *declared.cells.get(listed)?.get(usize::from(leaf.0))? as usize;
        Some((cell, cells.get_mut(cell)?))
    }

    fn roll_back(&mut self) {
        for (section, cell, value) in self.undo.drain(..).rev() {
            if let Some(changed) = self.sections.get_mut(section).and_then(|cells| cells.get_mut(cell)) {
                *changed = value;
            }
        }
    }
}

/// Parses a line as an object.
pub(super) fn object(line: &[u8]) -> Result<Map<String, Value>> {
    match serde_json::from_slice(line).map_err(|e| LineError(not_json(&e)))? {
        Value::Object(object) => Ok(object),
        _ => error("expected a JSON object"),
    }
}

/// Describes a syntax error without the line number, which only the caller knows.
fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("expected a JSON object: {what} (column {})", error.column())
}

fn metadata(object: &Map<String, Value>) -> Result<Metadata> {
    let get = |key: &str, most: u64| match object.get(key).map(|v| number(v, Print::Unset)) {
        Some(Ok(n)) if n <= most => Ok(n),
        Some(_) => error(format!("`{key}` must be an integer from 0 to {most}")),
        None => error(format!("the metadata record has no `{key}`")),
    };
    #[allow(clippy::cast_possible_truncation, reason = "checked above")]
    let (record, field, property) =
        (get("record", u32::MAX.into())? as u32, get("field", 255)? as u8, get("property", 255)? as u8);
    let count = [1, 0, 1, 1, 1, 1, 2, 2][usize::from(property & 7)];
    let mut values = [0; 2];
    for (value, key) in values.iter_mut().zip(["value", "value_2"]).take(usize::from(count)) {
        *value = get(key, u64::MAX)?;
    }
    Ok(Metadata { record, field, property, values, count })
}

/// Adds the members of an object to an owned record in the order of the leaves.
struct Loader<'l, 'f> {
    schema: &'l Schema,
    order: Order,
    index: u16,
    record: &'l Record,
    owned: &'l mut OwnedRecord,
    /// For each leaf, the index of its last number in the owned record, and whether the line contains that number. If
    /// it does not, the number is derived from other values.
    at: [Option<(usize, bool)>; 256],
    /// The number of items created although the line omits them.
    made: u64,
    /// The previous values in this section, if the line belongs to a sequence of lines.
    strides: Option<(&'l mut Strides, usize)>,
    /// Adds the strings that fields refer to.
    intern: Option<Intern<'l, 'f>>,
}

impl<'l> Loader<'l, '_> {
    fn new(schema: &'l Schema, order: Order, (index, record): (u16, &'l Record), owned: &'l mut OwnedRecord) -> Self {
        Self { schema, order, index, record, owned, at: [None; 256], made: 0, strides: None, intern: None }
    }

    /// Recursion is bounded, because items nest at most 32 levels deep (spec 3.5).
    fn items(&mut self, items: &[Item], object: &Map<String, Value>, top: bool) -> Result<()> {
        let mut known = 0;
        for item in items {
            match item {
                Item::Leaf(id) => known += usize::from(self.leaf(*id, object)?),
                Item::Nested { key, record, items, .. } => match object.get(key) {
                    Some(value) => {
                        self.nested(key, record, items, value)?;
                        known += 1;
                    }
                    None if are_implied(self.record, items) => self.items(items, &Map::new(), false)?,
                    None => return error(format!("`{key}` is missing")),
                },
                Item::Repeat { count, key, body } if !object.contains_key(key) && is_implied(self.record, body) => {
                    self.implied(*count, key, body)?;
                }
                Item::Repeat { count, key, body } if self.record.is_optional(*count) => {
                    let value = object.get(key);
                    self.repeat(*count, key, body, value.map_or(&[][..], std::slice::from_ref))?;
                    known += usize::from(value.is_some());
                }
                Item::Repeat { count, key, body } => {
                    let Some(Value::Array(values)) = object.get(key) else {
                        return error(format!("`{key}` is missing or not an array"));
                    };
                    self.repeat(*count, key, body, values)?;
                    known += 1;
                }
            }
        }
        let given = object.keys().filter(|k| !(top && k.starts_with('@'))).count();
        if given == known {
            return Ok(());
        }
        let strange = object.keys().find(|k| !(top && k.starts_with('@') || has_key(items, self.record, k)));
        error(format!("the record has no field `{}`", strange.map_or("?", |k| k.as_str())))
    }

    /// Appends the number of a leaf. `is_given` is false if the number is derived later.
    fn push(&mut self, id: LeafId, value: u64, is_given: bool) {
        self.at[usize::from(id.0)] = Some((self.owned.len(), is_given));
        self.owned.push_number(value);
        if is_given {
            self.note(id, value);
        }
    }

    /// Sets the number of a count that was derived from its items.
    fn derive(&mut self, id: LeafId, at: usize, value: u64) {
        self.owned.set_number(at, value);
        self.at[usize::from(id.0)] = Some((at, true));
        self.note(id, value);
    }

    /// Makes a value the previous value of its leaf.
    fn note(&mut self, id: LeafId, value: u64) {
        if let Some((strides, section)) = &mut self.strides
            && let Some((cell, previous)) = strides.cell(self.schema, *section, self.index, id)
        {
            let replaced = std::mem::replace(previous, value);
            strides.undo.push((*section, cell, replaced));
        }
    }

    /// Returns the value of a leaf that a line may omit because its interpretation implies the value.
    fn implied_value(&mut self, id: LeafId, leaf: &Leaf) -> Option<u64> {
        match leaf.interpretation {
            Interpretation::Default(value) if leaf.computed.is_none() => Some(value),
            Interpretation::Stride { stride, .. } => {
                let (strides, section) = self.strides.as_mut()?;
                let (_, previous) = strides.cell(self.schema, *section, self.index, id)?;
                Some(previous.wrapping_add(stride))
            }
            _ => None,
        }
    }

    fn repeat(&mut self, count: LeafId, key: &str, body: &Repeated, values: &[Value]) -> Result<()> {
        match self.at[usize::from(count.0)] {
            Some((at, true)) if self.owned.get(at) != Some(reader::Item::Number(values.len() as u64)) => {
                return error(format!("`{key}` has {} items, but its count field has a different value", values.len()));
            }
            Some((at, false)) => self.derive(count, at, values.len() as u64),
            _ => {}
        }
        for value in values {
            match body {
                Repeated::Leaf(id) => {
                    let Some(leaf) = self.record.leaves.get(usize::from(id.0)) else { continue };
                    self.value(*id, leaf, value).map_err(|e| LineError(format!("`{key}`: {e}")))?;
                }
                Repeated::Group(items) => self.nested(key, "", items, value)?,
                Repeated::Record { record, items, .. } => self.nested(key, record, items, value)?,
            }
        }
        Ok(())
    }

    /// Creates as many items as their count specifies. The items consist only of constants.
    fn implied(&mut self, count: LeafId, key: &str, body: &Repeated) -> Result<()> {
        /// The maximum number of items created per record.
        const MOST: u64 = 1 << 16;
        let last = |leaf: u8| match self.at[usize::from(leaf)].and_then(|(at, _)| self.owned.get(at)) {
            Some(reader::Item::Number(number)) => number,
            _ => 0,
        };
        let format = self.schema.format.records.get(usize::from(self.index));
        let items = match format.and_then(|record| record.leaves.get(usize::from(count.0))).map(|leaf| &leaf.kind) {
            Some(LeafKind::Computed(program)) => evaluate(program, last),
            _ => self.at[usize::from(count.0)].filter(|(_, is_given)| *is_given).map(|_| last(count.0)),
        };
        let Some(items) = items else { return error(format!("`{key}` and its count are missing")) };
        self.made = self.made.saturating_add(items);
        if self.made > MOST {
            return error(format!("`{key}` is missing, but at most {MOST} items of a record can be omitted"));
        }
        if let Some((at, _)) = self.at[usize::from(count.0)] {
            self.derive(count, at, items);
        }
        let (Repeated::Group(body) | Repeated::Record { items: body, .. }) = body else { return Ok(()) };
        (0..items).try_for_each(|_| self.items(body, &Map::new(), false))
    }

    fn nested(&mut self, key: &str, record: &str, items: &[Item], value: &Value) -> Result<()> {
        if let ([Item::Leaf(length), Item::Leaf(data)], "vfield") = (items, record) {
            let Some(leaf) = self.record.leaves.get(usize::from(data.0)) else { return Ok(()) };
            let bytes = self.bytes(leaf, value).map_err(|e| LineError(format!("`{key}`: {e}")))?;
            self.push(*length, bytes.len() as u64, true);
            self.owned.push_bytes(&bytes);
            return Ok(());
        }
        match value {
            Value::Object(object) => self.items(items, object, false),
            _ => error(format!("`{key}` is not an object")),
        }
    }

    /// Reads one leaf of an object. Returns false if the leaf is omitted, provided that it may be omitted.
    fn leaf(&mut self, id: LeafId, object: &Map<String, Value>) -> Result<bool> {
        let Some(leaf) = self.record.leaves.get(usize::from(id.0)) else { return Ok(false) };
        let given = object.get(&leaf.key);
        if leaf.is_tag() {
            return Ok(given.is_some());
        }
        match (given, leaf.constant) {
            (Some(value), _) => {
                self.value(id, leaf, value).map_err(|e| LineError(format!("`{}`: {e}", leaf.key)))?;
                Ok(true)
            }
            (None, Some(constant)) => {
                self.push(id, constant, true);
                Ok(false)
            }
            (None, None) if self.counts(id) => {
                self.push(id, 0, false);
                Ok(false)
            }
            (None, None) => match self.implied_value(id, leaf) {
                Some(value) => {
                    self.push(id, value, true);
                    Ok(false)
                }
                None => error(format!("`{}` is missing", leaf.key)),
            },
        }
    }

    /// Returns whether a leaf counts a repetition, so that its value follows from the items.
    fn counts(&self, id: LeafId) -> bool {
        fn within(items: &[Item], id: LeafId) -> bool {
            items.iter().any(|item| match item {
                Item::Leaf(_) => false,
                Item::Nested { items, .. } => within(items, id),
                Item::Repeat { count, body, .. } => {
                    *count == id
                        || match body {
                            Repeated::Leaf(_) => false,
                            Repeated::Group(items) | Repeated::Record { items, .. } => within(items, id),
                        }
                }
            })
        }
        within(&self.record.items, id)
    }

    fn value(&mut self, id: LeafId, leaf: &Leaf, value: &Value) -> std::result::Result<(), String> {
        if leaf.is_numeric() {
            let word = |word: &str| leaf.names.value(word).or_else(|| leaf.format.number_of_word(word));
            let number = match value {
                Value::Bool(value) if leaf.format == Print::Bool => u64::from(*value),
                Value::String(_) if let Some(section) = self.schema.strings_of(leaf) => self.string(section, value)?,
                Value::Object(object) if object.contains_key("hex") || object.contains_key("text") => {
                    match self.schema.strings_of(leaf) {
                        Some(section) => self.string(section, value)?,
                        None => number(value, leaf.format)?,
                    }
                }
                Value::String(text) => match word(text) {
                    Some(number) => number,
                    None if !has_words(leaf) => number(value, leaf.format)?,
                    None => return Err(format!("the field has no value with the name {text:?}")),
                },
                _ => number(value, leaf.format)?,
            };
            self.push(id, number, true);
        } else {
            let bytes = self.bytes(leaf, value)?;
            self.owned.push_bytes(&bytes);
        }
        Ok(())
    }

    /// Adds a string to a section of strings, and returns its offset.
    fn string(&mut self, section: usize, value: &Value) -> std::result::Result<u64, String> {
        let name = || self.schema.section(section).and_then(|section| section.name.as_deref()).unwrap_or_default();
        let Some(leaf) = self.schema.leaf_of_strings(section) else { return number(value, Print::Unset) };
        let bytes = match value {
            Value::String(text) => bytes_of_string(leaf, text)?,
            _ => bytes(value, leaf.format)?,
        };
        let Some(intern) = &mut self.intern else {
            return Err(format!("expected the offset of an element in section `{}`, found {value}", name()));
        };
        intern(section, &self.schema.string_element(section, &bytes))
    }

    /// Reads the bytes of an array, which may be given as records of a section.
    fn bytes(&self, leaf: &Leaf, value: &Value) -> std::result::Result<Vec<u8>, String> {
        match (leaf.section, value) {
            (Some(number), Value::Array(values)) => self.schema.nested(self.order, number, values).map_err(|e| e.0),
            (Some(_), _) => bytes(value, Print::Bytes),
            (None, _) => bytes(value, leaf.format),
        }
    }
}

/// Returns whether a line may omit the items of a repetition because they consist of constants. A constant leaf that is
/// itself the repeated item is printed, so it cannot be omitted.
#[doc(hidden)]
#[must_use]
pub fn is_implied(record: &Record, body: &Repeated) -> bool {
    match body {
        Repeated::Leaf(_) => false,
        Repeated::Group(items) | Repeated::Record { items, .. } => are_implied(record, items),
    }
}

/// Recursion is bounded, because items nest at most 32 levels deep (spec 3.5).
fn are_implied(record: &Record, items: &[Item]) -> bool {
    items.iter().all(|item| match item {
        Item::Leaf(id) => record.leaf(*id).is_some_and(Leaf::is_implied),
        Item::Nested { items, .. } => are_implied(record, items),
        Item::Repeat { body, .. } => is_implied(record, body),
    })
}

fn has_key(items: &[Item], record: &Record, wanted: &str) -> bool {
    items.iter().any(|item| match item {
        Item::Leaf(id) => record.leaves.get(usize::from(id.0)).is_some_and(|l| l.key == wanted),
        Item::Nested { key, .. } | Item::Repeat { key, .. } => key == wanted,
    })
}

/// Reads a number as printed according to spec 8. The number may be in an object, as the `offset` of a resolved offset
/// or as the `value` of a labeled value.
fn number(value: &Value, format: Print) -> std::result::Result<u64, String> {
    let expected = match format {
        Print::Signed => "an integer from -2^63 to 2^63-1",
        Print::F32 | Print::F64 => "a number, or {\"hex\":..}",
        _ => "an integer from 0 to 2^64-1",
    };
    let number = match (value, format) {
        (Value::Object(object), Print::F32 | Print::F64) => {
            let hex = object.get("hex").and_then(Value::as_str);
            let digits = |hex: &&str| object.len() == 1 && hex.bytes().all(|b| b.is_ascii_hexdigit());
            hex.filter(digits).and_then(|hex| u64::from_str_radix(hex, 16).ok())
        }
        (Value::Object(object), _) => object.get("offset").or_else(|| object.get("value")).and_then(Value::as_u64),
        (Value::Number(n), Print::Signed) => n.as_i64().map(i64::cast_unsigned),
        // The shortest digits of an `f64` with up to 15 digits are the digits that were written, so nothing is rounded
        // twice.
        (Value::Number(n), Print::F32) => {
            let float = n.as_f64().and_then(|n| n.to_string().parse::<f32>().ok());
            float.filter(|float| float.is_finite()).map(|float| float.to_bits().into())
        }
        (Value::Number(n), Print::F64) => n.as_f64().map(f64::to_bits),
        (Value::Number(n), _) => n.as_u64(),
        _ => None,
    };
    number.ok_or_else(|| format!("expected {expected}, found {value}"))
}

/// Reads a byte array as printed according to spec 8.
fn bytes(value: &Value, format: Print) -> std::result::Result<Vec<u8>, String> {
    let hex = |text: &str| {
        unhex(text)
            .ok_or_else(|| format!("expected a string of hex digits, two per byte, such as \"00ff\", found {text:?}"))
    };
    match (value, format) {
        (Value::String(text), Print::Utf8) => Ok(text.clone().into_bytes()),
        (Value::String(text), Print::CString) => c_string(text, &[0]),
        (Value::String(text), _) if format.bytes_of_word(text).is_some() => {
            Ok(format.bytes_of_word(text).map(Vec::from).unwrap_or_default())
        }
        (Value::String(text), _) => hex(text),
        (Value::Object(object), format) if format != Print::CString => match object.get("hex") {
            Some(Value::String(text)) if object.len() == 1 => hex(text),
            _ => Err("the object must have a single member, \"hex\"".to_owned()),
        },
        (Value::Object(object), Print::CString) => {
            let text = |key| object.get(key).and_then(Value::as_str);
            match (text("hex"), text("text"), text("tail"), object.len()) {
                (Some(digits), _, _, 1) => hex(digits),
                (None, Some(text), Some(tail), 2) => c_string(text, &hex(tail)?),
                _ => Err("the object must have the members \"text\" and \"tail\", or only \"hex\"".to_owned()),
            }
        }
        (Value::Array(items), _) => {
            let byte = |item: &Value| item.as_u64().and_then(|byte| u8::try_from(byte).ok());
            let bytes: Option<Vec<u8>> = items.iter().take(8).map(byte).collect();
            let digits: String = bytes.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
            let more = if items.len() > 8 { ".." } else { "" };
            let hex = match (bytes, format) {
                (None, _) => return Err(format!("expected {}, found an array", expected_bytes(format))),
                (Some(_), Print::Utf8 | Print::CString) => format!("{{\"hex\":\"{digits}{more}\"}}"),
                (Some(_), _) => format!("\"{digits}{more}\""),
            };
            Err(format!("expected bytes in hex, found an array of numbers: write {hex} instead"))
        }
        _ => Err(format!("expected {}, found {value}", expected_bytes(format))),
    }
}

fn expected_bytes(format: Print) -> &'static str {
    match format {
        Print::CString => "a string, or {\"text\":\"a\",\"tail\":\"00ff\"} if other bytes follow the text and its 0",
        Print::Utf8 => "a string, or {\"hex\":\"00ff\"} for bytes that are not text",
        _ => "a string of hex digits, two per byte, such as \"00ff\"",
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}
