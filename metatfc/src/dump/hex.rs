//! `--format hex`, which prints every field with its offset, bytes and value, and the metadata record that set its
//! encoding.

use super::Printer;
use crate::fields;
use metatf::container::Order;
use metatf::dynamic::{OwnedRecord, Schema, Trace};
use metatf::format::{Interpretation, METADATA, SECTION};
use metatf::reader::{At, Event, Metadata};
use metatf_parser::schema::{Format, Leaf, LeafId, Width};
use std::collections::HashMap;
use std::io::Write as _;
use std::ops::Range;

/// Number of bytes per line.
const BYTES: usize = 8;
/// Number of columns for the name of a field.
const NAME: usize = 16;

/// Prints annotated bytes.
pub(crate) struct Hex {
    schema: Schema,
    /// The names of all leaves, by record.
    names: Vec<Vec<String>>,
    /// The position at which the encoding of a leaf was last set, by section, record and leaf.
    set_at: HashMap<(usize, u16, u8), String>,
    /// The fields of the decoded record, as the leaf, the range in `bytes`, and the value if it is a number.
    fields: Vec<(u8, Range<usize>, Option<u64>)>,
    bytes: Vec<u8>,
    owned: OwnedRecord,
}

impl Hex {
    pub(crate) fn new(schema: &Schema) -> Self {
        let names = schema.dtd.records.iter().map(|record| {
            let mut names = vec![String::new(); record.leaves.len()];
            for (id, name) in fields::names(record) {
                if let Some(place) = names.get_mut(usize::from(id.0)) {
                    *place = name;
                }
            }
            names
        });
        Self {
            names: names.collect(),
            schema: schema.clone(),
            set_at: HashMap::new(),
            fields: Vec::new(),
            bytes: Vec::new(),
            owned: OwnedRecord::default(),
        }
    }

    /// Stores the position of a metadata record for each leaf that it changes. The reader has validated the record.
    fn note_metadata(&mut self, at: At, metadata: &Metadata, place: &str) {
        let Some(section) = self.schema.format.sections.get(at.section) else { return };
        let record = |&index: &u16| Some((index, self.schema.record(index)?));
        let records: Vec<_> = section.records.iter().filter_map(record).collect();
        let named = records.iter().find(|(_, r)| r.tag == Some(metadata.record));
        let named = named.or_else(|| records.iter().find(|(_, r)| r.catch_all));
        let Some((index, leaf)) = named.and_then(|(i, r)| Some((*i, fields::leaf(r, LeafId(metadata.field))?))) else {
            return;
        };
        if !metadata.all() {
            self.set_at.insert((at.section, index, metadata.field), place.to_owned());
            return;
        }
        let settable = |l: &Leaf| l.name == leaf.name && l.is_numeric() && fields::is_shown(l, false);
        for (index, record) in &records {
            for (i, _) in (0_u8..=254).zip(&record.leaves).filter(|(_, l)| settable(l)) {
                self.set_at.insert((at.section, *index, i), place.to_owned());
            }
        }
    }

    fn record(&self, trace: &Trace<'_>, out: &mut Vec<u8>, at: At, start: u64, order: Order) {
        let Some(record) = self.schema.record(at.record) else { return };
        let mut offset = start;
        if let Some(tag) = record.tag.filter(|_| !record.catch_all) {
            let mut bytes = Vec::new();
            order.write(tag.into(), usize::from(self.schema.dtd.tag_width), &mut bytes);
            row(out, offset, &bytes, "tag", &tag.to_string());
            offset += bytes.len() as u64;
        }
        let mut value = String::new();
        for (index, range, number) in &self.fields {
            value.clear();
            let bytes = self.bytes.get(range.clone()).unwrap_or_default();
            let leaf = record.leaves.get(usize::from(*index));
            match (number, leaf) {
                (Some(n), Some(leaf)) => fields::number(&mut value, leaf, *n),
                (None, Some(leaf)) if matches!(leaf.format, Format::Utf8 | Format::CString) => {
                    let text = bytes.get(..bytes.len() - leaf.format.tail_of_bytes(bytes).len()).unwrap_or_default();
                    value = format!("{:?}", String::from_utf8_lossy(text));
                }
                _ => value = format!("{} bytes", bytes.len()),
            }
            if let Some(Interpretation::Predicted(model)) = trace.reader().interpretation(at, *index)
                && let Some(model) = self.schema.format.models.get(usize::from(model))
            {
                let code = order.read(bytes);
                value.push_str(&format!("   [code {code}: {}]", model.code_in_words(code)));
            }
            if let Some(place) = self.set_at.get(&(at.section, at.record, *index)) {
                value.push_str("   [set by the metadata record at ");
                value.push_str(place);
                value.push(']');
            }
            let names = self.names.get(usize::from(at.record));
            let name = names.and_then(|n| n.get(usize::from(*index))).map_or("?", String::as_str);
            // A byte array is followed by its terminator.
            let end = leaf.and_then(|leaf| match leaf.width {
                Width::Until(end) => Some(end),
                _ => None,
            });
            let stored: Vec<u8> = bytes.iter().copied().chain(end).collect();
            row(out, offset, &stored, name, &value);
            offset += stored.len() as u64;
        }
    }

    /// Prints the line above the fields of a record. Returns the offset of its first byte.
    fn title(&self, trace: &Trace<'_>, at: At, out: &mut Vec<u8>) -> u64 {
        let section = self.schema.section(at.section).and_then(|s| s.name.as_deref());
        let record = self.schema.record(at.record).map_or("?", |r| &r.name);
        match section {
            Some(section) => put(out, format_args!("{section} {record}")),
            None => put(out, format_args!("{record}")),
        }
        let place = trace.reader().bytes_of(at).map(|(place, _)| place);
        match place.map(|p| (p.content, p.offset)) {
            Some((Some(content), chunk)) => {
                put(out, format_args!(" at {content} of the content of the chunk at {chunk}\n"));
                content
            }
            Some((None, offset)) => {
                put(out, format_args!(" at {offset}\n"));
                offset
            }
            None => {
                put(out, format_args!(" at {}\n", at.offset));
                at.offset
            }
        }
    }
}

impl Printer for Hex {
    fn note(&mut self, trace: &Trace<'_>, event: Event) {
        match event {
            Event::Metadata(at, metadata) => {
                let place = trace.reader().bytes_of(at).map(|(place, _)| place);
                let place = place.map_or(at.offset, |p| p.content.unwrap_or(p.offset)).to_string();
                self.note_metadata(at, &metadata, &place);
            }
            Event::Group(_) => self.set_at.clear(),
            Event::Reset(section) => self.set_at.retain(|key, _| key.0 != section),
            _ => {}
        }
    }

    fn decode(&mut self, trace: &mut Trace<'_>, event: Event) -> metatf::Result<()> {
        self.fields.clear();
        self.bytes.clear();
        self.owned.clear();
        let (Event::Record(_) | Event::Comment(_) | Event::Element(..)) = event else { return Ok(()) };
        let (fields, all, owned) = (&mut self.fields, &mut self.bytes, &mut self.owned);
        trace.reader_mut().decode(|row| {
            row.walk_fields(&mut |leaf, bytes, number| {
                let start = all.len();
                all.extend_from_slice(bytes);
                fields.push((leaf, start..all.len(), number));
                match number {
                    Some(n) => owned.push_number(n),
                    None => owned.push_bytes(bytes),
                }
            })
        })
    }

    fn owned<'t>(&'t self, _: &'t Trace<'_>) -> &'t OwnedRecord {
        &self.owned
    }

    fn print(&mut self, trace: &mut Trace<'_>, event: Event, out: &mut Vec<u8>) -> metatf::Result<()> {
        let order = trace.reader().container().header().order;
        let tag_width = usize::from(self.schema.dtd.tag_width);
        match event {
            Event::Record(at) | Event::Comment(at) | Event::Element(at, _) => {
                let start = self.title(trace, at, out);
                self.record(trace, out, at, start, order);
            }
            Event::Metadata(at, metadata) => {
                let start = self.title(trace, at, out);
                let bytes = trace.reader().bytes_of(at).map_or(&[][..], |(_, b)| b);
                let rest = bytes.len().saturating_sub(2 * tag_width + 2) / usize::from(metadata.count.max(1));
                let [first, second] = metadata.values;
                let values = [
                    ("tag", tag_width, self.schema.format.tag(METADATA).into()),
                    ("record", tag_width, metadata.record.into()),
                    ("field", 1, metadata.field.into()),
                    ("property", 1, metadata.property.into()),
                    ("value", rest, first),
                    ("value_2", rest, second),
                ];
                parts(out, start, bytes, values.iter().take(4 + usize::from(metadata.count)));
            }
            Event::Section(at, number) => {
                let start = self.title(trace, at, out);
                let mut bytes = Vec::new();
                let tag = self.schema.format.tag(SECTION).into();
                order.write(tag, tag_width, &mut bytes);
                bytes.push(number);
                parts(out, start, &bytes, [("tag", tag_width, tag), ("number", 1, number.into())].iter());
            }
            Event::Group(group) => put(out, format_args!("group {group}\n")),
            Event::Reset(section) => {
                let name = self.schema.section(section).and_then(|s| s.name.as_deref());
                put(out, format_args!("reset of {}\n", name.unwrap_or("the global section")));
            }
        }
        Ok(())
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

/// Prints consecutive fields. Each field consists of a name, a width and a value.
fn parts<'p>(out: &mut Vec<u8>, start: u64, bytes: &[u8], fields: impl Iterator<Item = &'p (&'p str, usize, u64)>) {
    let mut at = 0;
    for (name, width, value) in fields {
        let part = bytes.get(at..at + width).unwrap_or_default();
        row(out, start + at as u64, part, name, &value.to_string());
        at += width;
    }
}

/// Prints `offset  bytes  name  value`; if there are many bytes, the row continues on the following lines.
fn row(out: &mut Vec<u8>, offset: u64, bytes: &[u8], name: &str, value: &str) {
    let mut lines = bytes.chunks(BYTES);
    put(out, format_args!("  {offset:>10}  "));
    let start = out.len();
    hex(out, lines.next().unwrap_or_default());
    out.resize((start + 3 * BYTES + 1).max(out.len()), b' ');
    let start = out.len();
    out.extend_from_slice(name.as_bytes());
    out.resize((start + NAME).max(out.len()), b' ');
    out.push(b' ');
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
    for (i, bytes) in lines.enumerate() {
        put(out, format_args!("  {:>10}  ", offset + ((i + 1) * BYTES) as u64));
        hex(out, bytes);
        out.push(b'\n');
    }
}

fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        out.extend(fields::hex_digits(*byte));
    }
}
