//! `--format sql`, which prints SQLite statements that create a table for each record type.

use super::Args;
use super::columns::{Cell, ColumnSink, Kind, Row, Table};
use crate::fields;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Write as _;

/// A column of every table. It sorts the records of a section in their original order.
const OFFSET: &str = "@offset";

/// A printer of SQL statements.
pub(super) struct Sql {
    tables: Vec<Statements>,
}

/// The statements of a table.
struct Statements {
    create: String,
    /// The beginning of each INSERT statement.
    insert: String,
    /// The column to put first, which contains the time.
    first: Option<usize>,
}

impl ColumnSink for Sql {
    fn new(tables: &[Table], _: &Args) -> Self {
        let mut names = HashSet::new();
        Self { tables: tables.iter().map(|table| Statements::new(table, &mut names)).collect() }
    }

    fn head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"BEGIN;\n");
        for table in &self.tables {
            out.extend_from_slice(table.create.as_bytes());
        }
    }

    fn row(&mut self, row: Row<'_>, out: &mut Vec<u8>) {
        let Some(table) = self.tables.get(row.table) else { return };
        let mut line = table.insert.clone();
        for cell in time_first(&row.cells, table.first) {
            literal(&mut line, cell);
            line.push(',');
        }
        let _ = writeln!(line, "{});", row.offset.cast_signed());
        out.extend_from_slice(line.as_bytes());
    }

    fn foot(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"COMMIT;\n");
    }
}

impl Statements {
    /// Creates the statements of a table. `names` contains the names of earlier tables.
    fn new(table: &Table, names: &mut HashSet<String>) -> Self {
        let record = &table.record;
        // SQLite reserves names with this prefix.
        let reserved = if record.to_ascii_lowercase().starts_with("sqlite_") { "t_" } else { "" };
        let taken = names.contains(&record.to_ascii_lowercase());
        let name = match table.section.as_ref().filter(|_| taken) {
            Some(section) => format!("{reserved}{section}_{record}"),
            None => format!("{reserved}{record}"),
        };
        let name = quoted(&unlike(&name, names));
        let mut known = HashSet::new();
        let mut definition =
            |name: &str, kind: &str| format!("{} {kind}", quoted(&unlike(name, &mut known))).trim_end().to_owned();
        let columns: Vec<String> =
            table.columns.iter().map(|column| definition(&column.name, word(column.kind))).collect();
        let offset = definition(OFFSET, "INTEGER");
        let columns: Vec<&str> =
            time_first(&columns, table.time).map(String::as_str).chain([offset.as_str()]).collect();
        Self {
            create: format!("CREATE TABLE {name} ({});\n", columns.join(", ")),
            insert: format!("INSERT INTO {name} VALUES("),
            first: table.time,
        }
    }
}

/// Returns the type of a column. Columns without a type can also store numbers.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Unsigned | Kind::Signed => "INTEGER",
        Kind::Real => "REAL",
        Kind::Text | Kind::Json => "TEXT",
        Kind::Bytes => "BLOB",
        Kind::Any => "",
    }
}

/// Returns a name that differs from all earlier names, ignoring case like SQLite.
fn unlike(name: &str, known: &mut HashSet<String>) -> String {
    let mut unlike = name.to_owned();
    let mut number = 2;
    while !known.insert(unlike.to_ascii_lowercase()) {
        unlike = format!("{name}_{number}");
        number += 1;
    }
    unlike
}

/// Returns column items in the order of the table, with the time first.
fn time_first<T>(all: &[T], first: Option<usize>) -> impl Iterator<Item = &T> {
    let others = all.iter().enumerate().filter(move |(place, _)| Some(*place) != first).map(|(_, other)| other);
    first.and_then(|first| all.get(first)).into_iter().chain(others)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Appends a value in SQL syntax. SQLite integers are signed 64-bit numbers.
fn literal(out: &mut String, cell: &Cell<'_>) {
    let _ = match cell {
        Cell::Null => out.write_str("NULL"),
        Cell::Real(real) if real.is_nan() => out.write_str("NULL"),
        Cell::Real(real) if real.is_infinite() => write!(out, "{}9e999", if *real < 0.0 { "-" } else { "" }),
        Cell::Real(real) => write!(out, "{real:?}"),
        Cell::Unsigned(number) => write!(out, "{}", number.cast_signed()),
        Cell::Signed(number) => write!(out, "{number}"),
        Cell::Text(text) => return text_literal(out, text),
        Cell::Bytes(bytes) => return blob(out, bytes),
        Cell::Json(Value::Number(number)) => write!(out, "{number}"),
        Cell::Json(value) => return text_literal(out, &value.to_string()),
    };
}

fn text_literal(out: &mut String, text: &str) {
    // A NUL character would end the statement.
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
