//! `--format csv`: one table (RFC 4180, lines end in a line feed).

use super::resolve::{Resolved, Resolver};
use super::select::Select;
use super::{Args, Printer};
use crate::failure::{Result, usage};
use crate::fields::{self, Cursor};
use metatf::dynamic::{self, Schema, Trace};
use metatf::reader::{At, Event};
use metatf_parser::schema::{Format, Item, Leaf, LeafId, Record, Repeated};
use serde_json::{Map, Value};
use std::io::Write as _;
use std::rc::Rc;

/// A table of the records that can appear.
pub(crate) struct Csv {
    /// Of this printer alone, as in `Text`.
    schema: Rc<Schema>,
    columns: Vec<String>,
    /// For each record, the column of each of its cells.
    plans: Vec<Vec<usize>>,
    /// Columns that come before the fields.
    lead: usize,
    several: bool,
    all: bool,
    resolver: Option<Resolver>,
    /// Names in place of numbers.
    named: bool,
    thread: Option<ThreadColumn>,
    /// Texts that a spreadsheet would take for formulas are marked as texts.
    no_formulas: bool,
    /// The cells of a line, used again.
    row: Vec<String>,
}

impl Csv {
    pub(crate) fn new(schema: &Schema, select: &Select, args: &Args, resolver: Option<Resolver>) -> Result<Self> {
        let Args { all, names: named, units, no_formulas, .. } = *args;
        let kinds = select.kinds(schema);
        let thread = args.thread_column.as_ref().map(|name| ThreadColumn::new(schema, name, &kinds)).transpose()?;
        let several = kinds.len() != 1;
        let mut columns: Vec<String> = Vec::new();
        if several {
            columns.extend(["@section".to_owned(), "@record".to_owned()]);
        }
        if all {
            columns.push("@offset".to_owned());
        }
        if thread.is_some() {
            columns.push(THREAD.to_owned());
        }
        let lead = columns.len();
        let mut plans = vec![Vec::new(); schema.dtd.records.len()];
        for &(_, index) in &kinds {
            let Some(record) = schema.record(index) else { continue };
            let mut names = Vec::new();
            headings(record, &record.items, "", (all, units), &mut names);
            let plan = names.into_iter().map(|name| {
                columns.iter().position(|c| *c == name).unwrap_or_else(|| {
                    columns.push(name);
                    columns.len() - 1
                })
            });
            plans[usize::from(index)] = plan.collect();
        }
        let row = vec![String::new(); columns.len()];
        let schema = Rc::new(schema.clone());
        Ok(Self { schema, columns, plans, lead, several, all, resolver, named, thread, no_formulas, row })
    }
}

/// The column of `--thread-column`.
const THREAD: &str = "thread";

/// The thread that a record belongs to: what the last record that names one says.
pub(crate) struct ThreadColumn {
    /// Index of the record that names a thread, and where among its values the number stands.
    record: u16,
    place: usize,
    number: u64,
}

impl ThreadColumn {
    /// Finds the field by its name, `thread.id`. Before the first such record the thread is 1, as in `heap.dtd`.
    pub(crate) fn new(schema: &Schema, name: &str, kinds: &[(usize, u16)]) -> Result<Self> {
        let (record_name, field) = name.split_once('.').unwrap_or((name, ""));
        let records = (0_u16..).zip(&schema.dtd.records);
        // The tag is not among the values.
        let found = records.filter(|(_, record)| record.name == record_name).find_map(|(index, record)| {
            let plain = |item: &Item| matches!(item, Item::Leaf(_));
            let leaves = record.leaves.iter().filter(|leaf| !leaf.is_tag());
            let place = leaves.clone().position(|leaf| leaf.key == field && leaf.is_numeric())?;
            record.items.iter().all(plain).then_some((index, place))
        });
        let Some((record, place)) = found else {
            return usage(format!(
                "--thread-column: the DTD has no record `{record_name}` with a number `{field}`; name the field that tells the \
                 thread: --thread-column=RECORD.FIELD"
            ));
        };
        let clash = kinds.iter().filter_map(|&(_, index)| schema.record(index));
        if clash.flat_map(|record| &record.leaves).any(|leaf| leaf.key == THREAD) {
            return usage(format!("--thread-column: records have a field `{THREAD}` already"));
        }
        Ok(Self { record, place, number: 1 })
    }

    fn is_named_by(&self, event: Event) -> bool {
        matches!(event, Event::Record(at) if at.record == self.record)
    }
}

/// Collects the names of a record's cells, with their units if those are asked for. Items nest at most 32 deep (spec 3.5).
fn headings(record: &Record, items: &[Item], prefix: &str, (all, units): (bool, bool), names: &mut Vec<String>) {
    let heading = |key: &str, leaf: Option<&Leaf>| match leaf.and_then(|l| l.unit.as_deref()).filter(|_| units) {
        Some(unit) => format!("{prefix}{key} ({unit})"),
        None => format!("{prefix}{key}"),
    };
    for item in items {
        match item {
            Item::Leaf(id) => {
                let Some(leaf) = fields::leaf(record, *id).filter(|l| all || !fields::hidden(l)) else { continue };
                names.push(heading(&leaf.key, Some(leaf)));
            }
            Item::Nested { key, record: nested, items, .. } => match fields::vfield(nested, items) {
                Some((_, data)) => names.push(heading(key, fields::leaf(record, data))),
                None => headings(record, items, &format!("{prefix}{key}."), (all, units), names),
            },
            Item::Repeat { key, body, .. } => {
                let leaf = match body {
                    Repeated::Leaf(id) => fields::leaf(record, *id),
                    _ => None,
                };
                names.push(heading(key, leaf));
            }
        }
    }
}

impl Printer for Csv {
    fn head(&mut self, out: &mut Vec<u8>) {
        line(out, &self.columns);
    }

    fn resolver(&mut self) -> Option<&mut Resolver> {
        self.resolver.as_mut()
    }

    fn needs(&mut self, event: Event) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.is_named_by(event))
            || self.resolver.as_ref().is_some_and(|resolver| resolver.needs(event))
    }

    fn take(&mut self, trace: &Trace<'_>, event: Event) {
        if let Some(thread) = self.thread.as_mut().filter(|thread| thread.is_named_by(event))
            && let Some(dynamic::Item::Number(number)) = trace.record().get(thread.place)
        {
            thread.number = number;
        }
        if let Some(resolver) = &mut self.resolver {
            resolver.take(trace, event);
        }
    }

    fn print(&mut self, trace: &mut Trace<'_>, event: Event, out: &mut Vec<u8>) -> metatf::Result<()> {
        let (Event::Record(at) | Event::Element(at, _)) = event else { return Ok(()) };
        let At { section, record: index, offset } = at;
        let schema = Rc::clone(&self.schema);
        let Some(record) = schema.record(index) else { return Ok(()) };
        self.row.iter_mut().for_each(String::clear);
        let mut lead = Vec::new();
        if self.several {
            lead.push(schema.section(section).and_then(|s| s.name.clone()).unwrap_or_default());
            lead.push(record.name.clone());
        }
        if self.all {
            lead.push(offset.to_string());
        }
        if let Some(thread) = &self.thread {
            lead.push(thread.number.to_string());
        }
        for (cell, value) in self.row.iter_mut().take(self.lead).zip(lead) {
            *cell = value;
        }
        let resolved = self.resolver.as_ref().map(|resolver| resolver.record(trace, at, record)).transpose()?;
        let mut cells = Cells {
            cursor: Cursor::new(record, trace.record()),
            resolved: resolved.unwrap_or_default().into_iter(),
            all: self.all,
            named: self.named,
            plan: self.plans.get(usize::from(index)).map_or(&[][..], Vec::as_slice).iter(),
            row: &mut self.row,
        };
        cells.items(&record.items);
        if self.no_formulas {
            for cell in self.row.iter_mut().filter(|cell| is_formula(cell)) {
                cell.insert(0, '\'');
            }
        }
        line(out, &self.row);
        Ok(())
    }
}

/// Whether a spreadsheet would compute a cell: by its first character, as all of them do, unless the whole is a number.
fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err()
}

fn line(out: &mut Vec<u8>, cells: &[String]) {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let _ = if cell.contains([',', '"', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))
        } else {
            out.write_all(cell.as_bytes())
        };
    }
    out.push(b'\n');
}

/// Puts a record's values into the cells of a line.
pub(super) struct Cells<'t> {
    cursor: Cursor<'t>,
    resolved: std::vec::IntoIter<Option<Resolved>>,
    all: bool,
    named: bool,
    plan: std::slice::Iter<'t, usize>,
    row: &'t mut [String],
}

impl<'t> Cells<'t> {
    /// Makes one for the values alone.
    pub(super) fn new(cursor: Cursor<'t>, all: bool, resolved: Vec<Option<Resolved>>) -> Self {
        Self { cursor, resolved: resolved.into_iter(), all, named: false, plan: [].iter(), row: &mut [] }
    }

    /// Takes the next value, whether it is to be shown or not, and what stands in its place.
    pub(super) fn take(&mut self, id: LeafId) -> Option<(&'t Leaf, dynamic::Item<'t>, Option<Value>)> {
        let (leaf, item) = self.cursor.take(id)?;
        Some((leaf, item, self.resolved.next().flatten().map(Resolved::cell)))
    }

    /// Whether the count just taken is that of an optional field that is there, or not. `None` if it may be repeated.
    pub(super) fn optional(&self, count: LeafId, body: &Repeated) -> Option<bool> {
        is_optional(self.cursor.record, count, body)
            .then(|| self.cursor.count(count))
            .filter(|&n| n < 2)
            .map(|n| n == 1)
    }

    /// Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Leaf(id) => {
                    if let Some((true, value)) = self.value(*id) {
                        self.put(plain(value));
                    }
                }
                Item::Nested { record, items, .. } => match fields::vfield(record, items) {
                    Some((length, data)) => {
                        let value = self.vfield(length, data);
                        self.put(plain(value));
                    }
                    None => self.items(items),
                },
                Item::Repeat { count, body, .. } => {
                    let optional = self.optional(*count, body);
                    let value = self.repeat(*count, body);
                    self.put(match (optional, value) {
                        (Some(true), Value::Array(mut one)) => one.pop().map_or_else(String::new, plain),
                        (Some(_), _) => String::new(),
                        (None, value) => value.to_string(),
                    });
                }
            }
        }
    }

    fn put(&mut self, text: String) {
        if let Some(cell) = self.plan.next().and_then(|&column| self.row.get_mut(column)) {
            *cell = text;
        }
    }

    /// Formats what is repeated, as in JSON lines.
    pub(super) fn repeat(&mut self, count: LeafId, body: &Repeated) -> Value {
        let mut values = Vec::new();
        for _ in 0..self.cursor.count(count) {
            values.push(match body {
                Repeated::Leaf(id) => self.value(*id).map_or(Value::Null, |(_, v)| v),
                Repeated::Group(items) => self.object(items),
                Repeated::Record { record, items, .. } => match fields::vfield(record, items) {
                    Some((length, data)) => self.vfield(length, data),
                    None => self.object(items),
                },
            });
        }
        Value::Array(values)
    }

    fn object(&mut self, items: &[Item]) -> Value {
        let mut object = Map::new();
        for item in items {
            match item {
                Item::Leaf(id) => {
                    let key = fields::leaf(self.cursor.record, *id).map(|l| l.key.clone());
                    if let (Some(key), Some((true, value))) = (key, self.value(*id)) {
                        object.insert(key, value);
                    }
                }
                Item::Nested { key, record, items, .. } => {
                    let value = match fields::vfield(record, items) {
                        Some((length, data)) => self.vfield(length, data),
                        None => self.object(items),
                    };
                    object.insert(key.clone(), value);
                }
                Item::Repeat { count, key, body } => {
                    object.insert(key.clone(), self.repeat(*count, body));
                }
            }
        }
        Value::Object(object)
    }

    fn vfield(&mut self, length: LeafId, data: LeafId) -> Value {
        let _ = self.value(length);
        self.value(data).map_or(Value::Null, |(_, v)| v)
    }

    /// Formats the next value, as in JSON lines, and returns whether it is to be shown.
    fn value(&mut self, id: LeafId) -> Option<(bool, Value)> {
        let (leaf, item, resolved) = self.take(id)?;
        let shown = self.all || !fields::hidden(leaf);
        if let Some(value) = resolved {
            return Some((shown, value));
        }
        let named = match item {
            _ if !self.named => None,
            dynamic::Item::Number(n) => leaf.names.text(n).map(Into::into).or_else(|| leaf.format.word(n)),
            dynamic::Item::Bytes(bytes) => leaf.format.word_of_bytes(bytes),
        };
        if let Some(name) = named {
            return Some((shown, name.into()));
        }
        Some((shown, json(leaf, item)))
    }
}

fn json(leaf: &Leaf, item: dynamic::Item<'_>) -> Value {
    match item {
        dynamic::Item::Number(n) => match leaf.format {
            Format::Signed => n.cast_signed().into(),
            Format::F64 => {
                let float = f64::from_bits(n);
                serde_json::Number::from_f64(float).map_or_else(|| float.to_string().into(), Value::Number)
            }
            _ => n.into(),
        },
        dynamic::Item::Bytes(bytes) => match leaf.format.text_of_bytes(bytes) {
            Some(text) => text.into(),
            None => {
                let mut hex = String::new();
                fields::hex(&mut hex, bytes);
                hex.into()
            }
        },
    }
}

/// Whether a repetition is an optional field: one value, and a count with the format `bool`.
pub(super) fn is_optional(record: &Record, count: LeafId, body: &Repeated) -> bool {
    let one = match body {
        Repeated::Leaf(_) => true,
        Repeated::Record { record, items, .. } => fields::vfield(record, items).is_some(),
        Repeated::Group(_) => false,
    };
    one && fields::leaf(record, count).is_some_and(|leaf| leaf.format == Format::Bool)
}

/// Formats a cell: strings without quotes, and nothing for null.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
