//! Writes CSV (RFC 4180 with line feeds).

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::cell::{Cell, cell};

/// A writer of rows as CSV lines.
pub(crate) struct CsvWriter<W> {
    output: W,
    text: Vec<u8>,
    /// Whether to mark text that a spreadsheet would evaluate as a formula.
    pub(crate) no_formulas: bool,
}

impl<W: Write> CsvWriter<W> {
    /// Creates a writer and writes the column names.
    pub(crate) fn new(output: W, schema: &Schema) -> io::Result<Self> {
        let mut writer = Self { output, text: Vec::new(), no_formulas: false };
        for (column, field) in schema.fields().iter().enumerate() {
            writer.put(column, field.name(), false);
        }
        writer.text.push(b'\n');
        writer.spill()?;
        Ok(writer)
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for (column, array) in batch.columns().iter().enumerate() {
                text.clear();
                let cell = cell(array, row).map_err(io::Error::other)?;
                if self.no_formulas && cell.is_formula() {
                    text.push('\'');
                }
                cell.write(&mut text);
                // Quotes distinguish an empty text from a missing value.
                let is_quoted = cell == Cell::Text("") || matches!(cell, Cell::Bytes([]));
                self.put(column, &text, is_quoted);
            }
            self.text.push(b'\n');
        }
        self.spill()
    }

    /// Appends a cell.
    fn put(&mut self, column: usize, cell: &str, is_quoted: bool) {
        if column > 0 {
            self.text.push(b',');
        }
        if is_quoted || cell.contains([',', '"', '\n', '\r']) {
            self.text.push(b'"');
            self.text.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
            self.text.push(b'"');
        } else {
            self.text.extend_from_slice(cell.as_bytes());
        }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.output.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    pub(crate) fn finish(self) -> W {
        self.output
    }
}

impl Cell<'_> {
    /// Returns whether a spreadsheet would evaluate a text as a formula. This depends on the first character, unless the
    /// entire text is a number.
    fn is_formula(&self) -> bool {
        matches!(self, Cell::Text(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err())
    }

    /// Appends the value as the text of a cell.
    fn write(&self, out: &mut String) {
        use std::fmt::Write as _;
        // Writing to a string does not fail.
        let _ = match self {
            Cell::Null => Ok(()),
            Cell::Signed(n) => write!(out, "{n}"),
            Cell::Unsigned(n) => write!(out, "{n}"),
            // Only the canonical NaN is written as a word.
            Cell::Single(real) if real.is_nan() && real.to_bits() != f32::NAN.to_bits() => {
                write!(out, "{}", self.json())
            }
            Cell::Single(real) => write!(out, "{real:?}"),
            Cell::Float(real) if real.is_nan() && real.to_bits() != f64::NAN.to_bits() => {
                write!(out, "{}", self.json())
            }
            Cell::Float(real) => write!(out, "{real:?}"),
            Cell::Bool(is) => write!(out, "{is}"),
            Cell::Text(text) => out.write_str(text),
            Cell::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
            Cell::Date(date) => out.write_str(date),
            Cell::List(_) | Cell::Object(_) => write!(out, "{}", self.json()),
        };
    }
}
