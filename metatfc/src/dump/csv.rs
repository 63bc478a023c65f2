//! `--format csv`, which prints one table (RFC 4180, but with line feeds as line ends).

use super::columns::{Cell, Column, ColumnSink, Row, Table};
use super::{Args, thread_column};
use crate::fields;
use serde_json::Number;
use std::fmt::Write as _;

/// All tables, merged into a single table. Columns with the same name are merged.
pub(super) struct Csv {
    columns: Vec<String>,
    tables: Vec<Merged>,
    /// Whether each line starts with the record's section and name.
    several: bool,
    /// Whether the record's offset comes next.
    offsets: bool,
    /// Whether to mark text that a spreadsheet would evaluate as a formula.
    no_formulas: bool,
    /// The reused cells of a line.
    line: Vec<String>,
}

/// A table that was merged into the common table.
struct Merged {
    section: String,
    record: String,
    /// The position of each of the table's columns in the line.
    places: Vec<usize>,
}

impl ColumnSink for Csv {
    fn new(tables: &[Table], args: &Args) -> Self {
        let several = tables.len() != 1;
        let lead = [
            ("@section", several),
            ("@record", several),
            ("@offset", args.all),
            (thread_column::NAME, args.thread_column.is_some()),
        ];
        let mut columns: Vec<String> =
            lead.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name.to_owned()).collect();
        let mut place = |column: &Column| {
            let name = match column.unit.as_deref().filter(|_| args.units) {
                Some(unit) => format!("{} ({unit})", column.name),
                None => column.name.clone(),
            };
            columns.iter().position(|known| *known == name).unwrap_or_else(|| {
                columns.push(name);
                columns.len() - 1
            })
        };
        let tables = tables.iter().map(|table| Merged {
            section: table.section.clone().unwrap_or_default(),
            record: table.record.clone(),
            places: table.columns.iter().map(&mut place).collect(),
        });
        let tables = tables.collect();
        let line = vec![String::new(); columns.len()];
        Self { columns, tables, several, offsets: args.all, no_formulas: args.no_formulas, line }
    }

    fn head(&self, out: &mut Vec<u8>) {
        print(out, &self.columns);
    }

    fn row(&mut self, row: Row<'_>, out: &mut Vec<u8>) {
        let Some(Merged { section, record, places }) = self.tables.get(row.table) else { return };
        self.line.iter_mut().for_each(String::clear);
        let mut lead = self.line.iter_mut();
        let mut put = |value: &dyn std::fmt::Display| {
            if let Some(cell) = lead.next() {
                let _ = write!(cell, "{value}");
            }
        };
        if self.several {
            put(section);
            put(record);
        }
        if self.offsets {
            put(&row.offset);
        }
        if let Some(thread) = row.thread {
            put(&thread);
        }
        for (&place, value) in places.iter().zip(&row.cells) {
            if let Some(cell) = self.line.get_mut(place) {
                cell.clear();
                text(cell, value);
            }
        }
        if self.no_formulas {
            for cell in self.line.iter_mut().filter(|cell| is_formula(cell)) {
                cell.insert(0, '\'');
            }
        }
        print(out, &self.line);
    }
}

/// Appends a value. Strings are not quoted, and null is empty.
fn text(out: &mut String, value: &Cell<'_>) {
    let _ = match value {
        Cell::Null => Ok(()),
        Cell::Unsigned(n) => write!(out, "{n}"),
        Cell::Signed(n) => write!(out, "{n}"),
        Cell::Real(real) => match Number::from_f64(*real) {
            Some(number) => write!(out, "{number}"),
            None => write!(out, "{real}"),
        },
        Cell::Text(text) => out.write_str(text),
        Cell::Bytes(bytes) => {
            fields::hex(out, bytes);
            Ok(())
        }
        Cell::Json(value) => write!(out, "{value}"),
    };
}

/// Returns whether a spreadsheet would evaluate a cell as a formula. This depends on the first character, unless the
/// entire cell is a number.
fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err()
}

fn print(out: &mut Vec<u8>, cells: &[String]) {
    for (i, cell) in cells.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            out.push(b'"');
            out.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        } else {
            out.extend_from_slice(cell.as_bytes());
        }
    }
    out.push(b'\n');
}
