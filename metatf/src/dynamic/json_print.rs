//! Printing a trace as JSON lines (spec 8).

use super::{Entry, Nested, OwnedRecord, Schema, Trace};
use crate::reader::{Event, Item as Value, Metadata};
use metatf_container::Result;
use metatf_parser::schema::{Format as Print, Item, Leaf, LeafId, Record, Repeated};
use std::io::Write as _;

/// Options for printing.
///
/// # Examples
///
/// ```
/// use metatf::container::WriteOptions;
/// use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Trace, Writer};
///
/// let dtd = br#"section tasks 1 { change: (tag, state) { tag.value = 4;
///     state.width = 1; state.interpretation = none; state.values = "0 running, 1 stopped"; } }"#;
/// let schema = Schema::parse("tasks.dtd", dtd)?;
/// let mut change = OwnedRecord::default();
/// change.push_number(1);
/// let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
/// writer.record(1, 3, &change)?;
/// let file = writer.finish()?;
///
/// let mut line = Vec::new();
/// let options = JsonOptions { names: true, ..JsonOptions::default() };
/// Trace::from_slice(&file)?.next_json(&mut line, options)?;
/// assert_eq!(line, b"{\"@section\":\"tasks\",\"@record\":\"change\",\"state\":\"stopped\"}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonOptions {
    /// Also prints tags, constants, comments, metadata, offsets and elements.
    pub all: bool,
    /// Prints the elements that `sectionOffset` leaves refer to.
    pub resolve: bool,
    /// With `all`, prints a line `{"@reset":..}` for each state reset inside a group. Spec 8 defines this line, but the
    /// conformance vectors omit it, so it has a separate option.
    pub resets: bool,
    /// Prints the names of values and flags instead of their numbers, and formatted values for formats such as `bool`
    /// and `uuid`. Unless `all` or `resolve` is set, strings are printed instead of references to them.
    pub names: bool,
}

/// Appends an entry as one line, or nothing if the entry is printed only with `all` and `all` is not set. `nested`
/// reads the records in byte arrays, and `resolve`, if given, resolves offsets (see [`Trace::resolve`]).
///
/// # Errors
/// Returns an error if an offset cannot be resolved.
pub fn print_json(
    out: &mut Vec<u8>,
    schema: &Schema,
    entry: Entry<'_>,
    options: JsonOptions,
    nested: &mut Nested,
    resolve: Resolve<'_>,
) -> Result<()> {
    if !options.all && !matches!(entry.event, Event::Record(_) | Event::Element(..)) {
        return Ok(());
    }
    match entry.event {
        Event::Group(group) => drop(writeln!(out, "{{\"@group\":{group}}}")),
        Event::Reset(_) if !options.resets => {}
        Event::Reset(section) => {
            let name = schema.section(section).and_then(|s| s.name.as_deref());
            out.extend_from_slice(b"{\"@reset\":");
            text(out, name);
            out.extend_from_slice(b"}\n");
        }
        Event::Record(at)
        | Event::Comment(at)
        | Event::Element(at, _)
        | Event::Metadata(at, _)
        | Event::Section(at, _) => {
            let Some(record) = schema.record(at.record) else { return Ok(()) };
            out.extend_from_slice(b"{\"@section\":");
            text(out, schema.section(at.section).and_then(|s| s.name.as_deref()));
            out.extend_from_slice(b",\"@record\":");
            text(out, Some(&record.name));
            if options.all {
                let _ = write!(out, ",\"@offset\":{}", at.offset);
            }
            body(out, (schema, record), entry, options, (nested, resolve))?;
            out.extend_from_slice(b"}\n");
        }
    }
    Ok(())
}

/// A function that prints the element at the offset in a leaf. It returns false if the leaf is not an offset.
pub type Resolve<'r> = &'r mut dyn FnMut(LeafId, u64, &mut Vec<u8>) -> Result<bool>;

fn body(
    out: &mut Vec<u8>,
    (schema, record): (&Schema, &Record),
    entry: Entry<'_>,
    options: JsonOptions,
    by: (&mut Nested, Resolve<'_>),
) -> Result<()> {
    match entry.event {
        Event::Metadata(_, metadata) => print_metadata(out, &metadata),
        Event::Section(_, number) => drop(write!(out, ",\"number\":{number}")),
        Event::Comment(_) => {
            out.extend_from_slice(b",\"text\":");
            let text = entry.record.iter().next_back();
            print_bytes(out, text.map_or(&[], Value::bytes), Print::Utf8);
        }
        _ => {
            if let Event::Element(_, true) = entry.event {
                out.extend_from_slice(b",\"@shared\":true");
            }
            let mut object = Printer::new(out, (schema, record), entry.record, options, by);
            object.items(&record.items, true)?;
        }
    }
    Ok(())
}

fn print_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    let Metadata { record, field, property, values: [first, second], count } = *metadata;
    let _ = write!(out, ",\"record\":{record},\"field\":{field},\"property\":{property}");
    if count > 0 {
        let _ = write!(out, ",\"value\":{first}");
    }
    if count > 1 {
        let _ = write!(out, ",\"value_2\":{second}");
    }
}

/// Prints the members of an element's object for a resolved offset.
pub(super) fn print_members(
    out: &mut Vec<u8>,
    of: (&Schema, &Record),
    owned: &OwnedRecord,
    nested: &mut Nested,
) -> Result<()> {
    let resolve: Resolve<'_> = &mut |_, _, _| Ok(false);
    Printer::new(out, of, owned, JsonOptions::default(), (nested, resolve)).items(&of.1.items, false)
}

/// Prints the records of a byte array. Prints nothing and returns false if the bytes do not consist of complete
/// records.
fn print_records(
    out: &mut Vec<u8>,
    schema: &Schema,
    array: (u8, &[u8]),
    options: JsonOptions,
    nested: &mut Nested,
) -> bool {
    let start = out.len();
    out.push(b'[');
    let whole = nested.read(schema, array, &mut |nested, record, owned| {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        print_nested(out, schema, record, owned, options, nested)
    });
    out.push(b']');
    if !whole {
        out.truncate(start);
    }
    whole
}

/// Prints a record inside a byte array.
fn print_nested(
    out: &mut Vec<u8>,
    schema: &Schema,
    record: u16,
    owned: &OwnedRecord,
    options: JsonOptions,
    nested: &mut Nested,
) -> Result<()> {
    let Some(record) = schema.record(record) else { return Ok(()) };
    out.extend_from_slice(b"{\"@record\":");
    text(out, Some(&record.name));
    // Only the offsets of records in the trace itself can be resolved.
    let resolve: Resolve<'_> = &mut |_, _, _| Ok(false);
    Printer::new(out, (schema, record), owned, options, (nested, resolve)).items(&record.items, true)?;
    out.push(b'}');
    Ok(())
}

/// A printer for the fields of a record, based on its owned values.
struct Printer<'p, 'r> {
    out: &'p mut Vec<u8>,
    schema: &'p Schema,
    record: &'p Record,
    owned: &'p OwnedRecord,
    next: usize,
    /// The last number printed for each leaf, from which counts are taken.
    last: [u64; 256],
    options: JsonOptions,
    nested: &'p mut Nested,
    resolve: Resolve<'r>,
}

impl<'p, 'r> Printer<'p, 'r> {
    fn new(
        out: &'p mut Vec<u8>,
        (schema, record): (&'p Schema, &'p Record),
        owned: &'p OwnedRecord,
        options: JsonOptions,
        (nested, resolve): (&'p mut Nested, Resolve<'r>),
    ) -> Self {
        Self { out, schema, record, owned, next: 0, last: [0; 256], options, nested, resolve }
    }

    /// Prints the members of an object. `comma` indicates whether a comma must precede the first member. Items nest at
    /// most 32 levels deep (spec 3.5).
    fn items(&mut self, items: &[Item], mut comma: bool) -> Result<()> {
        for item in items {
            match item {
                Item::Leaf(id) => {
                    let Some(leaf) = self.leaf(*id) else { continue };
                    let hidden = leaf.computed.is_some() || leaf.is_implied() && !self.options.all;
                    if hidden {
                        let _ = self.take(*id, leaf);
                        continue;
                    }
                    self.key(&leaf.key, &mut comma);
                    self.value(*id, leaf)?;
                }
                Item::Nested { key, record, items, .. } => {
                    self.key(key, &mut comma);
                    self.nested(record, items)?;
                }
                Item::Repeat { count, key, body } if self.record.is_optional(*count) => {
                    if self.last[usize::from(count.0)] > 0 {
                        self.key(key, &mut comma);
                        self.repeated(body)?;
                    }
                }
                Item::Repeat { count, key, body } => {
                    self.key(key, &mut comma);
                    self.repeat(*count, body)?;
                }
            }
        }
        Ok(())
    }

    fn repeat(&mut self, count: LeafId, body: &Repeated) -> Result<()> {
        self.out.push(b'[');
        for i in 0..self.last[usize::from(count.0)] {
            if i > 0 {
                self.out.push(b',');
            }
            self.repeated(body)?;
        }
        self.out.push(b']');
        Ok(())
    }

    /// Prints an item of a repetition, or an optional item.
    fn repeated(&mut self, body: &Repeated) -> Result<()> {
        match body {
            Repeated::Leaf(id) => match self.leaf(*id) {
                Some(leaf) => self.value(*id, leaf),
                None => Ok(()),
            },
            Repeated::Group(items) => self.object(items),
            Repeated::Record { record, items, .. } => self.nested(record, items),
        }
    }

    /// Prints a nested record as an object, or only the data if the record is a `vfield`.
    fn nested(&mut self, record: &str, items: &[Item]) -> Result<()> {
        match items {
            [Item::Leaf(length), Item::Leaf(data)] if record == "vfield" => {
                if let (Some(length_leaf), Some(data_leaf)) = (self.leaf(*length), self.leaf(*data)) {
                    let _ = self.take(*length, length_leaf);
                    self.value(*data, data_leaf)?;
                }
                Ok(())
            }
            _ => self.object(items),
        }
    }

    fn object(&mut self, items: &[Item]) -> Result<()> {
        self.out.push(b'{');
        self.items(items, false)?;
        self.out.push(b'}');
        Ok(())
    }

    fn leaf(&self, id: LeafId) -> Option<&'p Leaf> {
        self.record.leaves.get(usize::from(id.0))
    }

    fn key(&mut self, key: &str, comma: &mut bool) {
        if std::mem::replace(comma, true) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Returns the leaf's next value from the owned record. The tag, which the owned record does not contain, is
    /// returned as its constant.
    fn take(&mut self, id: LeafId, leaf: &Leaf) -> Value<'p> {
        if leaf.is_tag() {
            return Value::Number(self.record.tag.unwrap_or(0).into());
        }
        let value = self.owned.get(self.next).unwrap_or(Value::Number(0));
        self.next += 1;
        if let Value::Number(n) = value {
            self.last[usize::from(id.0)] = n;
        }
        value
    }

    /// Returns whether the number of a leaf may be printed as an element or as a string.
    fn resolves(&self, leaf: &Leaf) -> bool {
        (self.options.resolve || self.options.names) && !leaf.is_tag()
    }

    fn value(&mut self, id: LeafId, leaf: &Leaf) -> Result<()> {
        match self.take(id, leaf) {
            Value::Bytes(value) if let Some(number) = leaf.section => {
                if !print_records(self.out, self.schema, (number, value), self.options, self.nested) {
                    print_bytes(self.out, value, Print::Bytes);
                }
            }
            Value::Bytes(value) => match leaf.format.word_of_bytes(value).filter(|_| self.options.names) {
                Some(word) => text(self.out, Some(&word)),
                None => print_bytes(self.out, value, leaf.format),
            },
            Value::Number(n) if self.resolves(leaf) && (self.resolve)(id, n, self.out)? => {}
            Value::Number(n) if self.options.names => named(self.out, n, leaf),
            Value::Number(n) => print_number(self.out, n, leaf.format),
        }
        Ok(())
    }
}

/// Prints the name of a number, or the word that its format defines for it.
fn named(out: &mut Vec<u8>, value: u64, leaf: &Leaf) {
    match (leaf.names.text(value), leaf.format.word(value)) {
        (Some(name), _) => text(out, Some(&name)),
        (None, Some(word)) if leaf.format == Print::Bool => out.extend_from_slice(word.as_bytes()),
        (None, Some(word)) => text(out, Some(&word)),
        (None, None) => print_number(out, value, leaf.format),
    }
}

/// Prints a number in its leaf's format.
pub fn print_number(out: &mut Vec<u8>, value: u64, format: Print) {
    let _ = match format {
        Print::Signed => write!(out, "{}", value.cast_signed()),
        Print::F32 => match u32::try_from(value).map(f32::from_bits) {
            Ok(n) if n.is_finite() => serde_json::to_writer(&mut *out, &n).map_err(std::io::Error::from),
            Ok(_) => write!(out, "{{\"hex\":\"{value:08x}\"}}"),
            Err(_) => write!(out, "{{\"hex\":\"{value:016x}\"}}"),
        },
        Print::F64 => match f64::from_bits(value) {
            n if n.is_finite() => serde_json::to_writer(&mut *out, &n).map_err(std::io::Error::from),
            _ => write!(out, "{{\"hex\":\"{value:016x}\"}}"),
        },
        _ => write!(out, "{value}"),
    };
}

/// Prints a byte array in its leaf's format.
pub fn print_bytes(out: &mut Vec<u8>, bytes: &[u8], format: Print) {
    match (format, format.text_of_bytes(bytes), format.tail_of_bytes(bytes)) {
        (Print::Utf8, Some(string), _) | (Print::CString, Some(string), [0]) => text(out, Some(string)),
        (Print::CString, Some(string), tail) => {
            out.extend_from_slice(b"{\"text\":");
            text(out, Some(string));
            out.extend_from_slice(b",\"tail\":");
            hex(out, tail);
            out.push(b'}');
        }
        (Print::Utf8 | Print::CString, None, _) => {
            out.extend_from_slice(b"{\"hex\":");
            hex(out, bytes);
            out.push(b'}');
        }
        _ => hex(out, bytes),
    }
}

fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    out.push(b'"');
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'"');
}

pub(super) fn text(out: &mut Vec<u8>, text: Option<&str>) {
    // Writing to a vector cannot fail.
    let _ = serde_json::to_writer(out, &text);
}

impl Trace<'_> {
    /// Prints the next entry as JSON lines, resolving offsets if requested. Returns false at the end.
    ///
    /// # Errors
    /// Returns the first error in the trace. A dangling reference is not an error (spec 4).
    pub fn next_json(&mut self, out: &mut Vec<u8>, options: JsonOptions) -> Result<bool> {
        let Some(Entry { event, .. }) = self.next_entry()? else { return Ok(false) };
        match self.print_json(event, out, options) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.reader.stop();
                Err(error)
            }
        }
    }

    /// Prints the most recently decoded entry as JSON lines. Nothing is added to `out` on an error.
    ///
    /// # Errors
    /// Returns an error if offsets are to be resolved and an element is corrupt.
    pub fn print_json(&mut self, event: Event, out: &mut Vec<u8>, options: JsonOptions) -> Result<()> {
        let strings = options.names && !options.all && self.has_strings;
        if !options.resolve && !strings {
            let resolve: Resolve<'_> = &mut |_, _, _| Ok(false);
            let entry = Entry { event, record: &self.record };
            return print_json(out, &self.schema, entry, options, &mut self.nested, resolve);
        }
        let start = out.len();
        let owned = std::mem::take(&mut self.record);
        let schema = self.schema.clone();
        let at = Entry { event, record: &owned }.at();
        let mut nested = Nested::new(self.reader.order());
        let entry = Entry { event, record: &owned };
        let printed = print_json(out, &schema, entry, options, &mut nested, &mut |leaf, offset, out| match at {
            Some(at) if options.resolve => self.resolve(at, leaf, offset, out),
            Some(at) => self.print_string(at, leaf, offset, out),
            None => Ok(false),
        });
        self.record = owned;
        if printed.is_err() {
            out.truncate(start);
        }
        printed
    }
}
