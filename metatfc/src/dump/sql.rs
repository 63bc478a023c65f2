//! `--format sql`: statements that make a table for each type of record, for SQLite.

use super::csv::{Cells, is_optional};
use super::resolve::Resolver;
use super::select::Select;
use super::{Args, Printer};
use crate::fields::{self, Cursor};
use crate::roles::{self, Role};
use metatf::dynamic::{Item as Value, Schema, Trace};
use metatf::reader::{At, Event};
use metatf_parser::schema::{Format, Interpretation, Item, Leaf, LeafId, Record, Repeated};
use serde_json::Value as JsonValue;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::rc::Rc;

/// The column that each table has: in the order of this the records are those of their section.
const OFFSET: &str = "@offset";

/// Prints statements.
pub(super) struct Sql {
    /// Of this printer alone, as in `Text`.
    schema: Rc<Schema>,
    all: bool,
    resolver: Option<Resolver>,
    /// By section and record, in the order of the DTD.
    tables: Vec<((usize, u16), Table)>,
    by_kind: HashMap<(usize, u16), usize>,
    /// Literals of a row, used again.
    row: Vec<String>,
}

struct Table {
    name: String,
    columns: Vec<Column>,
    /// Which column stands first: that of the time.
    first: Option<usize>,
}

struct Column {
    name: String,
    kind: &'static str,
}

impl Sql {
    pub(super) fn new(schema: &Schema, select: &Select, args: &Args, resolver: Option<Resolver>) -> Self {
        let mut names = HashSet::new();
        let mut tables: Vec<((usize, u16), Table)> = Vec::new();
        for kind in select.kinds(schema) {
            let Some(record) = schema.record(kind.1) else { continue };
            let section = schema.section(kind.0).and_then(|section| section.name.as_deref());
            let mut columns = Vec::new();
            let time = roles::first(record, Role::Time);
            let mut first = None;
            let shown = Shown { record, all: args.all, resolves: resolver.is_some() };
            collect(shown, &record.items, "", &mut columns, &mut |column, id| {
                if Some(id) == time {
                    first = Some(column);
                }
            });
            columns.push(Column { name: OFFSET.to_owned(), kind: "INTEGER" });
            let mut known = HashSet::new();
            for column in &mut columns {
                column.name = unlike(&column.name, &mut known);
            }
            // SQLite keeps names that begin so to itself.
            let reserved = if record.name.to_ascii_lowercase().starts_with("sqlite_") { "t_" } else { "" };
            let taken = names.contains(&record.name.to_ascii_lowercase());
            let name = match section.filter(|_| taken) {
                Some(section) => format!("{reserved}{section}_{}", record.name),
                None => format!("{reserved}{}", record.name),
            };
            tables.push((kind, Table { name: unlike(&name, &mut names), columns, first }));
        }
        let by_kind = tables.iter().enumerate().map(|(place, (kind, _))| (*kind, place)).collect();
        Self { schema: Rc::new(schema.clone()), all: args.all, resolver, tables, by_kind, row: Vec::new() }
    }
}

/// Returns a name that is like none before, also if capital letters do not count, as in SQLite.
fn unlike(name: &str, known: &mut HashSet<String>) -> String {
    let mut unlike = name.to_owned();
    let mut number = 2;
    while !known.insert(unlike.to_ascii_lowercase()) {
        unlike = format!("{name}_{number}");
        number += 1;
    }
    unlike
}

/// What the columns of a record show.
#[derive(Clone, Copy)]
struct Shown<'r> {
    record: &'r Record,
    all: bool,
    /// Text stands in place of numbers.
    resolves: bool,
}

/// Collects the columns of a record. Items nest at most 32 deep (spec 3.5).
fn collect(
    shown: Shown<'_>,
    items: &[Item],
    prefix: &str,
    columns: &mut Vec<Column>,
    leaf_of: &mut dyn FnMut(usize, LeafId),
) {
    for item in items {
        match item {
            Item::Leaf(id) => {
                let Some(leaf) = fields::leaf(shown.record, *id).filter(|leaf| shown.all || !fields::hidden(leaf))
                else {
                    continue;
                };
                leaf_of(columns.len(), *id);
                columns.push(Column { name: format!("{prefix}{}", leaf.key), kind: shown.kind(leaf) });
            }
            Item::Nested { key, record: nested, items, .. } => match fields::vfield(nested, items) {
                Some((_, data)) => {
                    let kind = fields::leaf(shown.record, data).map_or("BLOB", kind);
                    columns.push(Column { name: format!("{prefix}{key}"), kind });
                }
                None => collect(shown, items, &format!("{prefix}{key}."), columns, leaf_of),
            },
            Item::Repeat { key, count, body } => {
                let leaf = optional_leaf(shown.record, *count, body);
                let kind = leaf.map_or("TEXT", |leaf| shown.kind(leaf));
                columns.push(Column { name: format!("{prefix}{key}"), kind });
            }
        }
    }
}

impl Shown<'_> {
    /// The type of a leaf's column. An item in place of an offset may be text; SQLite keeps numbers in such a column, too.
    fn kind(self, leaf: &Leaf) -> &'static str {
        let resolved = matches!(leaf.interpretation, Interpretation::SectionOffset(_))
            || matches!(roles::of(leaf), Some(Role::StringId | Role::Address | Role::Labelled));
        if self.resolves && resolved { "" } else { kind(leaf) }
    }
}

/// The leaf of an optional field.
fn optional_leaf<'r>(record: &'r Record, count: LeafId, body: &Repeated) -> Option<&'r Leaf> {
    let id = match body {
        _ if !is_optional(record, count, body) => return None,
        Repeated::Leaf(id) => *id,
        Repeated::Record { record, items, .. } => fields::vfield(record, items)?.1,
        Repeated::Group(_) => return None,
    };
    fields::leaf(record, id)
}

fn kind(leaf: &Leaf) -> &'static str {
    match leaf.format {
        Format::F64 => "REAL",
        _ if leaf.is_numeric() => "INTEGER",
        _ if leaf.format.text_of_bytes(b"").is_some() => "TEXT",
        _ => "BLOB",
    }
}

/// Gives what belongs to columns in the order of the table: that of the time first.
fn time_first<T>(all: &[T], first: Option<usize>) -> impl Iterator<Item = &T> {
    let others = all.iter().enumerate().filter(move |(place, _)| Some(*place) != first).map(|(_, other)| other);
    first.and_then(|first| all.get(first)).into_iter().chain(others)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Appends a value as SQL has it. Integers are SQLite's, of 64 bits with a sign.
fn literal(out: &mut String, leaf: &Leaf, value: Value<'_>) {
    match value {
        Value::Number(number) if leaf.format == Format::F64 => {
            let real = f64::from_bits(number);
            let _ = match real {
                _ if real.is_nan() => write!(out, "NULL"),
                _ if real.is_infinite() => write!(out, "{}9e999", if real < 0.0 { "-" } else { "" }),
                _ => write!(out, "{real:?}"),
            };
        }
        Value::Number(number) => {
            let _ = write!(out, "{}", number.cast_signed());
        }
        Value::Bytes(bytes) => match leaf.format.text_of_bytes(bytes) {
            Some(text) => text_literal(out, text),
            None => blob(out, bytes),
        },
    }
}

fn text_literal(out: &mut String, text: &str) {
    // A statement ends at a zero.
    if text.contains('\0') {
        out.push_str("CAST(");
        blob(out, text.as_bytes());
        out.push_str(" AS TEXT)");
    } else {
        out.extend(["'", &text.replace('\'', "''"), "'"]);
    }
}

fn blob(out: &mut String, bytes: &[u8]) {
    out.push_str("X'");
    fields::hex(out, bytes);
    out.push('\'');
}

impl Printer for Sql {
    fn resolver(&mut self) -> Option<&mut Resolver> {
        self.resolver.as_mut()
    }

    fn head(&mut self, out: &mut Vec<u8>) {
        let mut text = "BEGIN;\n".to_owned();
        for (_, Table { name, columns, first }) in &self.tables {
            let time = first.and_then(|first| columns.get(first));
            let others =
                columns.iter().enumerate().filter(|(place, _)| Some(*place) != *first).map(|(_, column)| column);
            let columns: Vec<String> = time
                .into_iter()
                .chain(others)
                .map(|column| format!("{} {}", quoted(&column.name), column.kind).trim_end().to_owned())
                .collect();
            let _ = writeln!(text, "CREATE TABLE {} ({});", quoted(name), columns.join(", "));
        }
        out.extend_from_slice(text.as_bytes());
    }

    fn foot(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"COMMIT;\n");
    }

    fn print(&mut self, trace: &mut Trace<'_>, event: Event, out: &mut Vec<u8>) -> metatf::Result<()> {
        let (Event::Record(at) | Event::Element(at, _)) = event else { return Ok(()) };
        let At { section, record: index, offset } = at;
        let schema = Rc::clone(&self.schema);
        let table = self.by_kind.get(&(section, index)).and_then(|place| self.tables.get(*place));
        let (Some((_, table)), Some(record)) = (table, schema.record(index)) else { return Ok(()) };
        self.row.clear();
        let resolved = self.resolver.as_ref().map(|resolver| resolver.record(trace, at, record)).transpose()?;
        let mut cells = Cells::new(Cursor::new(record, trace.record()), self.all, resolved.unwrap_or_default());
        row(&mut cells, &record.items, self.all, &mut self.row);
        self.row.push(offset.cast_signed().to_string());
        let mut line = format!("INSERT INTO {} VALUES(", quoted(&table.name));
        for (place, cell) in time_first(&self.row, table.first).enumerate() {
            line.extend([if place > 0 { "," } else { "" }, cell]);
        }
        line.push_str(");\n");
        out.extend_from_slice(line.as_bytes());
        Ok(())
    }
}

/// Appends the literals of a record, in the order of [`collect`].
fn row(cells: &mut Cells<'_>, items: &[Item], all: bool, row_of: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Leaf(id) => {
                let Some((leaf, literal)) = next(cells, *id) else { continue };
                if !fields::hidden(leaf) || all {
                    row_of.push(literal);
                }
            }
            Item::Nested { record, items, .. } => match fields::vfield(record, items) {
                Some((length, data)) => row_of.push(next_vfield(cells, length, data)),
                None => row(cells, items, all, row_of),
            },
            Item::Repeat { count, body, .. } => row_of.push(match (cells.optional(*count, body), body) {
                (Some(false), _) => "NULL".to_owned(),
                (Some(true), Repeated::Leaf(id)) => next(cells, *id).map_or_else(String::new, |(_, literal)| literal),
                (Some(true), Repeated::Record { record, items, .. })
                    if let Some((length, data)) = fields::vfield(record, items) =>
                {
                    next_vfield(cells, length, data)
                }
                _ => {
                    let mut text = String::new();
                    text_literal(&mut text, &cells.repeat(*count, body).to_string());
                    text
                }
            }),
        }
    }
}

/// Takes the next value of a record, and gives it as SQL has it.
fn next<'t>(cells: &mut Cells<'t>, id: LeafId) -> Option<(&'t Leaf, String)> {
    let (leaf, value, resolved) = cells.take(id)?;
    let mut text = String::new();
    match resolved {
        Some(JsonValue::String(resolved)) => text_literal(&mut text, &resolved),
        Some(JsonValue::Null) => text.push_str("NULL"),
        Some(JsonValue::Number(number)) => text.push_str(&number.to_string()),
        Some(element) => text_literal(&mut text, &element.to_string()),
        None => literal(&mut text, leaf, value),
    }
    Some((leaf, text))
}

fn next_vfield(cells: &mut Cells<'_>, length: LeafId, data: LeafId) -> String {
    let _ = cells.take(length);
    next(cells, data).map_or_else(String::new, |(_, literal)| literal)
}
