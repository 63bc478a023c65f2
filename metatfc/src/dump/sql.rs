//! `--format sql`: statements that make a table for each type of record, for SQLite.

use super::csv::Cells;
use super::select::Select;
use super::{Args, Printer};
use crate::fields::{self, Cursor};
use crate::roles::{self, Role};
use metatf::dynamic::{Item as Value, Schema, Trace};
use metatf::reader::{At, Event};
use metatf_parser::schema::{Format, Item, Leaf, LeafId, Record};
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
    pub(super) fn new(schema: &Schema, select: &Select, args: &Args) -> Self {
        let mut names = HashSet::new();
        let mut tables: Vec<((usize, u16), Table)> = Vec::new();
        for kind in select.kinds(schema) {
            let Some(record) = schema.record(kind.1) else { continue };
            let section = schema.section(kind.0).and_then(|section| section.name.as_deref());
            let mut columns = Vec::new();
            let time = roles::first(record, Role::Time);
            let mut first = None;
            collect(record, &record.items, "", args.all, &mut columns, &mut |column, id| {
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
        Self { schema: Rc::new(schema.clone()), all: args.all, tables, by_kind, row: Vec::new() }
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

/// Collects the columns of a record. Items nest at most 32 deep (spec 3.5).
fn collect(
    record: &Record,
    items: &[Item],
    prefix: &str,
    all: bool,
    columns: &mut Vec<Column>,
    leaf_of: &mut dyn FnMut(usize, LeafId),
) {
    for item in items {
        match item {
            Item::Leaf(id) => {
                let Some(leaf) = fields::leaf(record, *id).filter(|leaf| all || !fields::hidden(leaf)) else {
                    continue;
                };
                leaf_of(columns.len(), *id);
                columns.push(Column { name: format!("{prefix}{}", leaf.key), kind: kind(leaf) });
            }
            Item::Nested { key, record: nested, items, .. } => match fields::vfield(nested, items) {
                Some((_, data)) => {
                    let kind = fields::leaf(record, data).map_or("BLOB", kind);
                    columns.push(Column { name: format!("{prefix}{key}"), kind });
                }
                None => collect(record, items, &format!("{prefix}{key}."), all, columns, leaf_of),
            },
            Item::Repeat { key, .. } => columns.push(Column { name: format!("{prefix}{key}"), kind: "TEXT" }),
        }
    }
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
    fn head(&mut self, out: &mut Vec<u8>) {
        let mut text = "BEGIN;\n".to_owned();
        for (_, Table { name, columns, first }) in &self.tables {
            let time = first.and_then(|first| columns.get(first));
            let others =
                columns.iter().enumerate().filter(|(place, _)| Some(*place) != *first).map(|(_, column)| column);
            let columns: Vec<String> = time
                .into_iter()
                .chain(others)
                .map(|column| format!("{} {}", quoted(&column.name), column.kind))
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
        let mut cells = Cells::new(Cursor::new(record, trace.record()), self.all);
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
        let mut text = String::new();
        match item {
            Item::Leaf(id) => {
                let Some((leaf, value)) = cells.take(*id) else { continue };
                if fields::hidden(leaf) && !all {
                    continue;
                }
                literal(&mut text, leaf, value);
            }
            Item::Nested { record, items, .. } => match fields::vfield(record, items) {
                Some((length, data)) => {
                    let _ = cells.take(length);
                    if let Some((leaf, value)) = cells.take(data) {
                        literal(&mut text, leaf, value);
                    }
                }
                None => {
                    row(cells, items, all, row_of);
                    continue;
                }
            },
            Item::Repeat { count, body, .. } => text_literal(&mut text, &cells.repeat(*count, body).to_string()),
        }
        row_of.push(text);
    }
}
