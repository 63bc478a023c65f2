//! `--format text`, which prints one line per record.

use super::Printer;
use super::resolve::{Resolved, Resolver};
use crate::fields::{self, Cursor};
use crate::output;
use metatf::dynamic::{Item as Value, Nested, Schema, Trace};
use metatf::reader::{At, Event, Metadata};
use metatf_cli::Style;
use metatf_parser::schema::{Item, Leaf, LeafId, Repeated};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

/// Maximum width of a column; longer values do not widen the column.
const WIDEST: usize = 28;

/// Maximum width to which labels are padded.
const MOST_LABEL: usize = 64;

/// The end of a column in a line, where padding is inserted.
#[derive(Clone, Copy)]
pub(crate) struct Gap {
    /// The offset in the text.
    at: usize,
    record: u16,
    column: usize,
    /// The number of characters in the value.
    width: usize,
    /// Whether this is the last column, which is not padded.
    last: bool,
}

/// The column widths of each record type, which are the widths of the longest values so far.
pub(crate) struct Widths(Vec<Vec<usize>>);

impl Widths {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self(vec![Vec::new(); schema.dtd.records.len()])
    }

    /// Widens the column to fit a value, and returns the number of spaces to insert after the value.
    fn fill(&mut self, gap: &Gap) -> usize {
        let Some(widths) = self.0.get_mut(usize::from(gap.record)) else { return 0 };
        if widths.len() <= gap.column {
            widths.resize(gap.column + 1, 0);
        }
        let Some(widest) = widths.get_mut(gap.column) else { return 0 };
        *widest = (*widest).max(gap.width.min(WIDEST));
        if gap.last { 0 } else { widest.saturating_sub(gap.width) }
    }

    /// Appends text and inserts its omitted padding.
    pub(crate) fn put(&mut self, text: &[u8], gaps: &[Gap], out: &mut Vec<u8>) {
        let mut from = 0;
        for gap in gaps {
            let fill = self.fill(gap);
            if fill > 0 {
                out.extend_from_slice(text.get(from..gap.at).unwrap_or_default());
                out.resize(out.len() + fill, b' ');
                from = gap.at;
            }
        }
        out.extend_from_slice(text.get(from..).unwrap_or_default());
    }
}

/// A printer of lines `section record  field=value ..`. Columns are as wide as the widest value so far.
pub(crate) struct Text {
    /// The schema. It is not shared with other printers, because threads that update its reference count for every
    /// record would wait for each other.
    schema: Rc<Schema>,
    all: bool,
    resolver: Option<Resolver>,
    /// A reader for byte arrays that contain records, created at the first record.
    nested: Option<Nested>,
    colours: bool,
    /// The width of the label.
    label: usize,
    widths: Widths,
    /// The omitted gaps; `None` if padding is not omitted.
    left: Option<Vec<Gap>>,
    /// The line being printed.
    line: String,
    /// The ends of the line's columns.
    gaps: Vec<Gap>,
    /// The beginnings of lines, by section and record.
    starts: HashMap<(usize, u16), String>,
}

impl Text {
    pub(crate) fn new(schema: &Schema, all: bool, resolver: Option<Resolver>) -> Self {
        let mut text = Self {
            schema: Rc::new(schema.clone()),
            all,
            resolver,
            nested: None,
            colours: output::style_out() == Style::Coloured,
            label: 0,
            widths: Widths::new(schema),
            left: None,
            line: String::new(),
            gaps: Vec::new(),
            starts: HashMap::new(),
        };
        for (section, s) in schema.format.sections.iter().enumerate().filter(|(_, s)| all || !s.stream) {
            for &record in s.records.iter().filter(|&&r| all || r > 2) {
                let label = text.label(At { section, record, offset: 0 });
                text.label = text.label.max(label.len().min(MOST_LABEL));
            }
        }
        text
    }

    fn label(&self, at: At) -> String {
        let record = self.schema.record(at.record).map_or("", |r| &r.name);
        match self.schema.section(at.section).and_then(|s| s.name.as_deref()) {
            Some(section) => format!("{section} {record}"),
            None => record.to_owned(),
        }
    }

    /// Starts a line with the label and, with `--all`, the offset.
    fn start(&mut self, at: At) {
        self.line.clear();
        if self.all {
            let _ = write!(self.line, "{:>10}  ", at.offset);
        }
        if !self.starts.contains_key(&(at.section, at.record)) {
            let label = self.label(at);
            let (on, off) = if self.colours { ("\x1b[1;36m", "\x1b[0m") } else { ("", "") };
            let fill = " ".repeat(self.label.saturating_sub(label.len()));
            self.starts.insert((at.section, at.record), format!("{on}{label}{off}{fill}"));
        }
        self.line.extend(self.starts.get(&(at.section, at.record)).map(String::as_str));
    }

    /// Prints a metadata record in DTD syntax.
    fn metadata(&mut self, at: At, metadata: &Metadata) {
        let section = self.schema.section(at.section);
        let record = section.and_then(|s| self.schema.dtd.tagged(s, metadata.record)).map(|(_, record)| record);
        let leaf = record.and_then(|r| fields::leaf(r, LeafId(metadata.field)));
        let name = match (record, leaf) {
            (_, Some(leaf)) if metadata.all() => leaf.name.clone(),
            (Some(record), Some(leaf)) => format!("{}.{}", record.name, leaf.path.join(".")),
            _ => format!("{}.{}", metadata.record, metadata.field),
        };
        let [first, second] = metadata.values;
        let _ = match metadata.property & 7 {
            0 => write!(self.line, "  {name}.width = {first}"),
            1 => write!(self.line, "  {name}.interpretation = none"),
            2 => write!(self.line, "  {name}.interpretation = baseOffset {first:#x}"),
            3 => write!(self.line, "  {name}.interpretation = delta {first:#x}"),
            4 => write!(self.line, "  {name}.interpretation = default {first}"),
            5 => write!(self.line, "  {name}.interpretation = sectionOffset {first}"),
            6 => write!(self.line, "  {name}.interpretation = stride {first:#x} {}", second.cast_signed()),
            _ => write!(self.line, "  {name}.interpretation = sectionStride {first} {second}"),
        };
        if metadata.all() {
            self.line.push_str("  (in all records)");
        }
    }

    /// Prints a record and remembers the ends of its columns.
    fn record(&mut self, trace: &mut Trace<'_>, at: At) -> metatf::Result<()> {
        let schema = Rc::clone(&self.schema);
        let Some(record) = schema.record(at.record) else { return Ok(()) };
        let resolved = self.resolver.as_ref().map(|resolver| resolver.record(trace, at, record)).transpose()?;
        let nested = self.nested.get_or_insert_with(|| Nested::new(trace.reader().order()));
        let mut values = Values {
            arrays: (&schema, nested),
            cursor: Cursor::new(record, trace.record()),
            resolved: resolved.unwrap_or_default().into_iter(),
            all: self.all,
            colours: if self.colours { ("\x1b[2m", "\x1b[0m") } else { ("", "") },
            record: at.record,
            prefix: String::new(),
            object: None,
            out: &mut self.line,
            gaps: &mut self.gaps,
        };
        values.cells(&record.items);
        if let Some(last) = self.gaps.last_mut() {
            last.last = true;
        }
        Ok(())
    }
}

impl Printer for Text {
    fn resolver(&mut self) -> Option<&mut Resolver> {
        self.resolver.as_mut()
    }

    fn leave_gaps(&mut self) {
        self.left = Some(Vec::new());
    }

    fn gaps(&mut self) -> Vec<Gap> {
        self.left.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn print(&mut self, trace: &mut Trace<'_>, event: Event, out: &mut Vec<u8>) -> metatf::Result<()> {
        self.gaps.clear();
        match event {
            Event::Record(at) | Event::Element(at, _) => {
                self.start(at);
                self.record(trace, at)?;
            }
            Event::Comment(at) => {
                self.start(at);
                let text = trace.record().iter().next_back().map_or(&[][..], Value::bytes);
                let _ = write!(self.line, "  {:?}", String::from_utf8_lossy(text));
            }
            Event::Metadata(at, metadata) => {
                self.start(at);
                self.metadata(at, &metadata);
            }
            Event::Section(at, number) => {
                self.start(At { section: 0, ..at });
                let section = self.schema.dtd.section(number).and_then(|s| s.name.as_deref());
                let _ = write!(self.line, "  {}", section.unwrap_or("?"));
            }
            Event::Group(group) => {
                self.line.clear();
                let _ = write!(self.line, "-- group {group}");
            }
            Event::Reset(section) => {
                self.line.clear();
                let name = self.schema.section(section).and_then(|s| s.name.as_deref());
                let _ = write!(self.line, "-- reset {}", name.unwrap_or("of the global section"));
            }
        }
        self.line.push('\n');
        match &mut self.left {
            Some(left) => {
                left.extend(self.gaps.iter().map(|gap| Gap { at: out.len() + gap.at, ..*gap }));
                out.extend_from_slice(self.line.as_bytes());
            }
            None => self.widths.put(self.line.as_bytes(), &self.gaps, out),
        }
        Ok(())
    }
}

/// Formats the values of a record.
struct Values<'t> {
    /// The schema and the reader for byte arrays that contain records.
    arrays: (&'t Schema, &'t mut Nested),
    cursor: Cursor<'t>,
    resolved: std::vec::IntoIter<Option<Resolved>>,
    all: bool,
    /// The escape sequences before and after a key.
    colours: (&'static str, &'static str),
    record: u16,
    /// The enclosing keys, each followed by a dot.
    prefix: String,
    /// Whether no value of the repeated object has been printed yet; `None` outside of repeated objects.
    object: Option<bool>,
    out: &'t mut String,
    gaps: &'t mut Vec<Gap>,
}

impl<'t> Values<'t> {
    /// Formats the fields of an object as keys and values. Items nest at most 32 levels deep (spec 3.5).
    fn cells(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Leaf(id) => {
                    if let Some((leaf, value, resolved)) = self.take(*id) {
                        let from = self.key(&leaf.key);
                        self.value(leaf, value, resolved);
                        self.end(from);
                    }
                }
                Item::Nested { key, record, items, .. } => match fields::vfield(record, items) {
                    Some((length, data)) => {
                        let from = self.key(key);
                        self.vfield(length, data);
                        self.end(from);
                    }
                    None => {
                        let outer = self.prefix.len();
                        self.prefix.extend([key.as_str(), "."]);
                        self.cells(items);
                        self.prefix.truncate(outer);
                    }
                },
                Item::Repeat { count, key, body } if self.cursor.record.is_optional(*count) => {
                    let from = self.key(key);
                    if self.cursor.count(*count) == 0 {
                        self.out.push('-');
                    } else {
                        self.repeated(body);
                    }
                    self.end(from);
                }
                Item::Repeat { count, key, body } => {
                    let from = self.key(key);
                    self.repeat(*count, body);
                    self.end(from);
                }
            }
        }
    }

    /// Prints a key and returns the offset of its value.
    fn key(&mut self, key: &str) -> usize {
        let ((on, off), before) = match &mut self.object {
            None => (self.colours, "  "),
            Some(is_first) => (("", ""), if std::mem::take(is_first) { "" } else { " " }),
        };
        self.out.extend([before, on, &self.prefix, key, "=", off]);
        self.out.len()
    }

    /// Remembers the end of a column.
    fn end(&mut self, from: usize) {
        if self.object.is_none() {
            let width = self.out.get(from..).map_or(0, |value| value.chars().count());
            let (at, column) = (self.out.len(), self.gaps.len());
            self.gaps.push(Gap { at, record: self.record, column, width, last: false });
        }
    }

    fn repeat(&mut self, count: LeafId, body: &Repeated) {
        self.out.push('[');
        for i in 0..self.cursor.count(count) {
            if i > 0 {
                self.out.push(' ');
            }
            self.repeated(body);
        }
        self.out.push(']');
    }

    /// Prints a repeated item or the value of an optional field.
    fn repeated(&mut self, body: &Repeated) {
        match body {
            Repeated::Leaf(id) => {
                if let Some((leaf, value, resolved)) = self.take(*id) {
                    self.value(leaf, value, resolved);
                }
            }
            Repeated::Group(items) => self.object(items),
            Repeated::Record { record, items, .. } => match fields::vfield(record, items) {
                Some((length, data)) => self.vfield(length, data),
                None => self.object(items),
            },
        }
    }

    fn object(&mut self, items: &[Item]) {
        let (outer, prefix) = (self.object.replace(true), std::mem::take(&mut self.prefix));
        self.out.push('{');
        self.cells(items);
        self.out.push('}');
        (self.object, self.prefix) = (outer, prefix);
    }

    fn vfield(&mut self, length: LeafId, data: LeafId) {
        let _ = self.take(length);
        if let Some((leaf, value, resolved)) = self.take(data) {
            self.value(leaf, value, resolved);
        }
    }

    /// Consumes the next value, and returns the value if it should be printed.
    fn take(&mut self, id: LeafId) -> Option<(&'t Leaf, Value<'t>, Option<Resolved>)> {
        let (leaf, value) = self.cursor.take(id)?;
        let resolved = self.resolved.next().flatten();
        fields::is_shown(leaf, self.all).then_some((leaf, value, resolved))
    }

    fn value(&mut self, leaf: &Leaf, value: Value<'_>, resolved: Option<Resolved>) {
        match resolved {
            Some(resolved) => self.out.push_str(&resolved.line()),
            None if self.records(leaf, value) => {}
            None => fields::text(self.out, leaf, value),
        }
    }

    /// Prints the records in a byte array (spec 3.7), each as a name and an object. If the bytes are not complete
    /// records, prints nothing and returns false. Sections nest at most 8 levels deep.
    fn records(&mut self, leaf: &Leaf, value: Value<'_>) -> bool {
        let (Some(number), Value::Bytes(bytes)) = (leaf.section, value) else { return false };
        let start = self.out.len();
        let (schema, nested) = &mut self.arrays;
        let (schema, all, number_of, out, gaps) = (*schema, self.all, self.record, &mut *self.out, &mut *self.gaps);
        out.push('[');
        let whole = nested.read(schema, (number, bytes), &mut |nested, record, owned| {
            let Some(record) = schema.record(record) else { return Ok(()) };
            if !out.ends_with('[') {
                out.push(' ');
            }
            out.push_str(&record.name);
            Values {
                arrays: (schema, nested),
                cursor: Cursor::new(record, owned),
                resolved: Vec::new().into_iter(),
                all,
                colours: ("", ""),
                record: number_of,
                prefix: String::new(),
                object: None,
                out,
                gaps,
            }
            .object(&record.items);
            Ok(())
        });
        out.push(']');
        if !whole {
            out.truncate(start);
        }
        whole
    }
}
