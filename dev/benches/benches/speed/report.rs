//! The result tables in Markdown.

use crate::machine;
use metatf_bench::Result;
use std::fmt::Write as _;
use std::path::Path;

/// The lines of the page that enclose the tables.
const BEGIN: &str = "<!-- begin: cargo bench -p metatf-bench -->";
const END: &str = "<!-- end -->";

/// A table cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    /// Not measured.
    None,
    /// Millions of records per second.
    Rate(f64),
    /// A ratio of two rates.
    Ratio(f64),
    /// Gigabytes per second, or bytes per record.
    Number(f64),
}

impl Cell {
    /// Scales the rate, if each measured record represents several records.
    pub(crate) fn times(self, records: f64) -> Self {
        match self {
            Self::Rate(rate) => Self::Rate(rate * records),
            other => other,
        }
    }

    /// Returns the ratio to the rate `base`.
    pub(crate) fn ratio(self, base: Self) -> Self {
        match (self, base) {
            (Self::Rate(a), Self::Rate(b)) => Self::Ratio(a / b),
            _ => Self::None,
        }
    }
}

/// A table with a header and rows.
#[derive(Debug)]
pub(crate) struct Table {
    title: &'static str,
    head: &'static [&'static str],
    rows: Vec<(String, Vec<Cell>)>,
}

impl Table {
    /// Creates a table without rows. `head` contains the column names, starting with the name of the column of row
    /// names.
    pub(crate) fn new(title: &'static str, head: &'static [&'static str]) -> Self {
        Self { title, head, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, name: impl Into<String>, cells: impl Into<Vec<Cell>>) {
        self.rows.push((name.into(), cells.into()));
    }
}

/// Formats all tables, preceded by a line that describes the input and the environment.
pub(crate) fn text(tables: &[Table], events: &str) -> String {
    let mut out = format!("\n{events}. {}\n", machine::description());
    for table in tables.iter().filter(|table| !table.rows.is_empty()) {
        let _ = write!(out, "\n### {}\n\n| {} |\n", table.title, table.head.join(" | "));
        let _ = writeln!(out, "| --- {}|", "| ---: ".repeat(table.head.len() - 1));
        for (name, cells) in &table.rows {
            let _ = write!(out, "| {name} |");
            for cell in cells {
                let _ = match *cell {
                    Cell::None => write!(out, " |"),
                    Cell::Rate(rate) if rate < 10.0 => write!(out, " {rate:.2} |"),
                    Cell::Rate(rate) => write!(out, " {rate:.0} |"),
                    Cell::Ratio(ratio) | Cell::Number(ratio) => write!(out, " {ratio:.2} |"),
                };
            }
            out.push('\n');
        }
    }
    out
}

/// Writes the tables to the page.
pub(crate) fn bless(text: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let page = std::fs::read_to_string(&path)?;
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or("docs/performance.md does not contain the lines that enclose the tables")?;
    std::fs::write(path, format!("{before}{BEGIN}\n{text}\n{END}{after}"))?;
    Ok(())
}
