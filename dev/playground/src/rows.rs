//! Records and all other entries of a trace, with their fields and bytes.

use crate::Result;
use crate::open::File;
use crate::plan::in_words;
use metatf::container::{Loss, Order};
use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Trace};
use metatf::format::{Interpretation, METADATA, SECTION};
use metatf::reader::{At, Event, Metadata};
use metatf::{Change, reader::VisitField};
use metatf_parser::schema::{Format, Leaf, Record, Width};
use serde::Serialize;
use std::collections::HashMap;

/// Maximum number of rows in a response.
pub const MOST_ROWS: usize = 500;
/// Maximum number of bytes per record. The response contains the number of omitted bytes.
const MOST_BYTES: usize = 2048;
const MOST_FIELDS: usize = 400;
const MOST_JSON: usize = 8192;
const MOST_VALUE: usize = 400;

/// A range of the entries of a trace.
#[derive(Serialize, Default)]
pub struct Rows {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Whether these are the last rows.
    pub end: bool,
    /// Description of damage in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// Number of the first lost row, set when damage is first found. The lost row may precede these rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_lost: Option<u64>,
}

/// A record or another entry.
#[derive(Serialize, Default)]
pub struct Row {
    /// Number of the entry among all entries of the trace, from 0.
    pub number: u64,
    /// `record`, `comment`, `element`, `metadata`, `section`, `group`, `reset`, or `lost` for bytes that could not be
    /// read.
    pub kind: &'static str,
    /// Index of the record's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u16>,
    /// Names of the section and the record.
    pub title: String,
    /// Offset of the chunk that contains the entry, or `None` if its bytes are stored in the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u64>,
    /// Offset of the entry's first byte in the content of the chunk or in the file.
    pub offset: u64,
    /// Bytes of the entry in hexadecimal.
    pub bytes: String,
    /// Number of omitted bytes.
    pub more_bytes: usize,
    /// The line that `metatfc dump --format jsonl --all` prints for the entry.
    pub json: String,
    /// Number of omitted bytes of the JSON line.
    pub more_json: usize,
    /// Description of a loss, or of the property that a metadata record sets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sets: String,
    /// Fields of the record, in byte order.
    pub fields: Vec<Field>,
    /// Number of omitted fields.
    pub more_fields: usize,
}

/// A field of a record, as stored.
#[derive(Serialize, Default)]
pub struct Field {
    /// Index of the leaf, or `None` for a part of a metadata record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<u8>,
    /// Name of the field, if it is not a leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// Start of the field's byte range.
    pub from: usize,
    /// End of the field's byte range (exclusive).
    pub to: usize,
    /// Value of the field.
    pub value: String,
    /// Interpretation of the field, if it is a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpretation: Option<String>,
    /// Meaning of the code, if the field is predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Number of the metadata row that set the field's width.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width_set: Option<u64>,
    /// Number of the metadata row that set the field's interpretation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpretation_set: Option<u64>,
}

/// Reads `count` rows, starting at row `from`. Once damage has been found, also reads the undamaged parts after it, and
/// adds a row for each loss.
///
/// # Errors
/// Returns an error if the file cannot be opened. The rows contain later errors.
pub fn rows(file: &mut File, from: u64, count: usize) -> Result<Rows> {
    let (found, _) = read(file, from, count)?;
    if !(found.end && found.damage.is_some() && file.read_on()) {
        return Ok(found);
    }
    let (found, first_lost) = read(file, from, count)?;
    Ok(Rows { first_lost, ..found })
}

/// Reads the rows and returns them with the number of the first lost row.
fn read(file: &File, from: u64, count: usize) -> Result<(Rows, Option<u64>)> {
    let mut trace = file.trace()?;
    trace.reader_mut().set_all(true);
    let mut printer = Printer { schema: &file.schema, set: HashMap::new() };
    let mut found = Rows { damage: file.damage(), ..Rows::default() };
    let most = count.min(MOST_ROWS);
    let (mut number, mut losses, mut first_lost) = (0, 0, None);
    loop {
        let event = match trace.reader_mut().next_event() {
            Ok(event) => event,
            Err(error) => return Ok((found.failed(file.explain(&error)), first_lost)),
        };
        // Add rows for the losses before this event.
        let lost = trace.reader().container().loss_report().map_or(&[][..], |report| &report.losses);
        for loss in lost.iter().skip(losses) {
            first_lost.get_or_insert(number);
            if number >= from {
                if found.rows.len() >= most {
                    return Ok((found, first_lost));
                }
                found.rows.push(lost_row(file, number, loss));
            }
            number += 1;
        }
        losses = lost.len();
        let Some(event) = event else { break };
        printer.note(number, event);
        if number >= from {
            if found.rows.len() >= most {
                return Ok((found, first_lost));
            }
            match printer.row(&mut trace, number, event) {
                Ok(row) => found.rows.push(row),
                Err(error) => return Ok((found.failed(file.explain(&error)), first_lost)),
            }
        }
        number += 1;
    }
    if let Some(report) = trace.reader().container().loss_report().filter(|report| !report.is_empty()) {
        found.damage = Some(file.summed_up(report));
    }
    Ok((Rows { end: true, ..found }, first_lost))
}

impl Rows {
    /// Adds an error that ends the rows.
    fn failed(self, error: String) -> Self {
        Self { end: true, damage: Some(error), ..self }
    }
}

/// Returns a row for a loss, with the lost bytes.
fn lost_row(file: &File, number: u64, loss: &Loss) -> Row {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(file.bytes().len());
    let mut row = Row { number, kind: "lost", title: "lost".to_owned(), offset: loss.start, ..Row::default() };
    put_bytes(file.bytes().get(place(loss.start)..place(loss.end)).unwrap_or_default(), &mut row);
    row.sets = loss.to_string();
    row
}

/// A property of a leaf that a metadata record sets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Set {
    Width,
    Interpretation,
}

struct Printer<'s> {
    schema: &'s Schema,
    /// Number of the row that last set a property of a leaf, by section, record and leaf.
    set: HashMap<(usize, u16, u8, Set), u64>,
}

impl Printer<'_> {
    /// Tracks events that change how later records are read.
    fn note(&mut self, number: u64, event: Event) {
        match event {
            Event::Metadata(at, metadata) => self.note_metadata(number, at, &metadata),
            Event::Group(_) => self.set.clear(),
            Event::Reset(section) => self.set.retain(|key, _| key.0 != section),
            _ => {}
        }
    }

    /// Describes the property that a metadata record sets.
    fn in_words(&self, at: At, metadata: &Metadata) -> String {
        let Some((record, kind)) = record_of(self.schema, at, metadata.record) else { return String::new() };
        let leaf = kind.leaves.get(usize::from(metadata.field)).map(|leaf| leaf.path.join(".")).unwrap_or_default();
        let all = if metadata.all() { ", for all fields with this name" } else { "" };
        match metadata.change() {
            Ok(Change::Width(width)) => format!("{}.{leaf}{all}: width {width}", kind.name),
            Ok(Change::Interpretation(is)) => {
                format!("{}.{leaf}{all}: {}", kind.name, in_words(self.schema, record, metadata.field, is))
            }
            Err(_) => String::new(),
        }
    }

    /// Remembers the leaves that a metadata record changes. The reader has already checked the record.
    fn note_metadata(&mut self, number: u64, at: At, metadata: &Metadata) {
        let what = match metadata.change() {
            Ok(Change::Width(_)) => Set::Width,
            _ => Set::Interpretation,
        };
        let Some((index, record)) = record_of(self.schema, at, metadata.record) else { return };
        let Some(leaf) = record.leaves.get(usize::from(metadata.field)) else { return };
        if !metadata.all() {
            self.set.insert((at.section, index, metadata.field, what), number);
            return;
        }
        let schema = self.schema;
        let Some(section) = schema.format.sections.get(at.section) else { return };
        for &index in section.records.iter() {
            let Some(record) = schema.record(index) else { continue };
            let same = |leaf_of: &Leaf| leaf_of.name == leaf.name && leaf_of.is_numeric() && !leaf_of.is_implied();
            for (of, _) in (0_u8..=254).zip(&record.leaves).filter(|(_, leaf_of)| same(leaf_of)) {
                self.set.insert((at.section, index, of, what), number);
            }
        }
    }

    fn row(&self, trace: &mut Trace<'_>, number: u64, event: Event) -> metatf::Result<Row> {
        let mut row = Row { number, ..Row::default() };
        let order = trace.reader().order();
        match event {
            Event::Record(at) | Event::Comment(at) | Event::Element(at, _) => {
                row.kind = match event {
                    Event::Record(_) => "record",
                    Event::Comment(_) => "comment",
                    _ => "element",
                };
                self.record(trace, at, event, order, &mut row)?;
            }
            Event::Metadata(at, metadata) => {
                row.kind = "metadata";
                self.place(trace, at, &mut row);
                row.sets = self.in_words(at, &metadata);
                self.metadata(&metadata, &mut row);
                print(self.schema, event, &OwnedRecord::default(), order, &mut row)?;
            }
            Event::Section(at, section) => {
                row.kind = "section";
                self.place(trace, at, &mut row);
                let width = usize::from(self.schema.dtd.tag_width);
                if row.bytes.is_empty() {
                    let mut bytes = Vec::new();
                    order.write(self.schema.format.tag(SECTION).into(), width, &mut bytes);
                    bytes.push(section);
                    put_bytes(&bytes, &mut row);
                }
                let tag = self.schema.format.tag(SECTION).to_string();
                part("tag", 0..width, tag, &mut row);
                part("number", width..width + 1, section.to_string(), &mut row);
                print(self.schema, event, &OwnedRecord::default(), order, &mut row)?;
            }
            Event::Group(group) => {
                (row.kind, row.title) = ("group", format!("group {group}"));
                print(self.schema, event, &OwnedRecord::default(), order, &mut row)?;
            }
            Event::Reset(section) => {
                let name = self.schema.section(section).and_then(|section| section.name.as_deref());
                (row.kind, row.title) = ("reset", format!("reset of {}", name.unwrap_or("the global section")));
                print(self.schema, event, &OwnedRecord::default(), order, &mut row)?;
            }
        }
        Ok(row)
    }

    /// Stores the position and bytes of a record in its row, as far as they were read.
    fn place(&self, trace: &Trace<'_>, at: At, row: &mut Row) {
        let section = self.schema.section(at.section).and_then(|section| section.name.as_deref());
        let record = self.schema.record(at.record).map_or("?", |record| &record.name);
        row.record = Some(at.record);
        row.title = section.map_or_else(|| record.to_owned(), |section| format!("{section} {record}"));
        match trace.reader().bytes_of(at) {
            Some((place, bytes)) => {
                (row.chunk, row.offset) = match place.content {
                    Some(content) => (Some(place.offset), content),
                    None => (None, place.offset),
                };
                put_bytes(bytes, row);
            }
            None => row.offset = at.offset,
        }
    }

    /// Decodes a record with the positions of its fields.
    fn record(&self, trace: &mut Trace<'_>, at: At, event: Event, order: Order, row: &mut Row) -> metatf::Result<()> {
        let mut fields: Vec<(u8, usize, Option<u64>, Vec<u8>)> = Vec::new();
        let mut owned = OwnedRecord::default();
        let mut more = 0;
        trace.reader_mut().decode(|of| {
            let visit: VisitField<'_, '_> = &mut |leaf, bytes, number| {
                match number {
                    Some(number) => owned.push_number(number),
                    None => owned.push_bytes(bytes),
                }
                match fields.len() < MOST_FIELDS {
                    true => fields.push((
                        leaf,
                        bytes.len(),
                        number,
                        bytes.get(..bytes.len().min(MOST_VALUE)).unwrap_or_default().to_vec(),
                    )),
                    false => more += 1,
                }
            };
            of.walk_fields(visit)
        })?;
        self.place(trace, at, row);
        row.more_fields = more;
        let Some(record) = self.schema.record(at.record) else { return Ok(()) };
        let mut from = 0;
        if let Some(tag) = record.tag.filter(|_| !record.catch_all) {
            from = usize::from(self.schema.dtd.tag_width);
            row.fields.push(Field { leaf: Some(0), from: 0, to: from, value: tag.to_string(), ..Field::default() });
        }
        for (leaf, length, number, bytes) in fields {
            let declared = record.leaves.get(usize::from(leaf));
            // The byte that terminates a text is stored, but is not part of the value.
            let ends = usize::from(declared.is_some_and(|leaf| matches!(leaf.width, Width::Until(_))));
            let to = from + length + ends;
            let interpretation = number.and_then(|_| trace.reader().interpretation(at, leaf));
            let code = match interpretation {
                Some(Interpretation::Predicted(model)) => {
                    self.schema.format.models.get(usize::from(model)).map(|model| {
                        let code = order.read(&bytes);
                        format!("{code}: {}", model.code_in_words(code))
                    })
                }
                _ => None,
            };
            let set = |what| self.set.get(&(at.section, at.record, leaf, what)).copied();
            row.fields.push(Field {
                leaf: Some(leaf),
                name: None,
                from,
                to,
                value: declared.map_or_else(String::new, |leaf| value(leaf, number, &bytes, length)),
                interpretation: interpretation.map(|is| in_words(self.schema, at.record, leaf, is)),
                code,
                width_set: set(Set::Width),
                interpretation_set: set(Set::Interpretation),
            });
            from = to;
        }
        print(self.schema, event, &owned, order, row)
    }

    /// Adds the parts of a metadata record (spec 4.1).
    fn metadata(&self, metadata: &Metadata, row: &mut Row) {
        let tag = usize::from(self.schema.dtd.tag_width);
        let length = row.bytes.len() / 2 + row.more_bytes;
        let rest = length.saturating_sub(2 * tag + 2) / usize::from(metadata.count.max(1));
        let [first, second] = metadata.values;
        let values = [
            ("tag", tag, self.schema.format.tag(METADATA).into()),
            ("record", tag, u64::from(metadata.record)),
            ("field", 1, metadata.field.into()),
            ("property", 1, metadata.property.into()),
            ("value", rest, first),
            ("value_2", rest, second),
        ];
        let mut from = 0;
        for (name, width, value) in values.into_iter().take(4 + usize::from(metadata.count)) {
            part(name, from..from + width, value.to_string(), row);
            from += width;
        }
    }
}

/// Returns the record with a tag in a section, and its index.
fn record_of(schema: &Schema, at: At, tag: u32) -> Option<(u16, &Record)> {
    let section = schema.format.sections.get(at.section)?;
    let records = || section.records.iter().filter_map(|&index| Some((index, schema.record(index)?)));
    records().find(|(_, record)| record.tag == Some(tag)).or_else(|| records().find(|(_, record)| record.catch_all))
}

fn part(name: &'static str, bytes: std::ops::Range<usize>, value: String, row: &mut Row) {
    row.fields.push(Field { name: Some(name), from: bytes.start, to: bytes.end, value, ..Field::default() });
}

/// Prints the entry as a JSON line, like `metatfc dump`.
fn print(schema: &Schema, event: Event, owned: &OwnedRecord, order: Order, row: &mut Row) -> metatf::Result<()> {
    let options = JsonOptions { all: true, resets: true, ..JsonOptions::default() };
    let entry = metatf::dynamic::Entry { event, record: owned };
    let mut out = Vec::new();
    let mut nested = metatf::dynamic::Nested::new(order);
    metatf::dynamic::print_json(&mut out, schema, entry, options, &mut nested, &mut |_, _, _| Ok(false))?;
    let line = String::from_utf8_lossy(&out);
    let line = line.trim_end();
    let kept = line.floor_char_boundary(MOST_JSON);
    row.json = line.get(..kept).unwrap_or_default().to_owned();
    row.more_json = line.len() - kept;
    Ok(())
}

fn put_bytes(bytes: &[u8], row: &mut Row) {
    let shown = bytes.get(..bytes.len().min(MOST_BYTES)).unwrap_or_default();
    row.bytes = hex(shown);
    row.more_bytes = bytes.len() - shown.len();
}

fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or('?');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Formats a value. `length` is the total number of bytes of the value.
fn value(leaf: &Leaf, number: Option<u64>, bytes: &[u8], length: usize) -> String {
    let mut out = String::new();
    match number {
        Some(number) => match leaf.names.text(number) {
            Some(name) => out.push_str(&name),
            None => {
                leaf.format.write_number(&mut out, number);
                let has_unit = leaf.format.is_time() || leaf.format == Format::DurationNs;
                if let Some(unit) = leaf.unit.as_ref().filter(|_| !has_unit) {
                    out.push(' ');
                    out.push_str(unit);
                }
            }
        },
        None if matches!(leaf.format, Format::Utf8 | Format::CString) => {
            out = format!("{:?}", String::from_utf8_lossy(bytes));
        }
        None => out = leaf.format.word_of_bytes(bytes).map_or_else(|| hex(bytes), |word| word.to_string()),
    }
    if length > bytes.len() {
        out.push_str(&format!(" … {} more bytes", length - bytes.len()));
    }
    out
}
