//! The layout of table columns in lines of text.

use std::ops::Range;

use crate::escape::shown;
use crate::table::Row;
use crate::{Table, Value, units};

/// The number of spaces between two columns.
const GAP: usize = 2;
/// The minimum number of characters per line, even if the terminal is narrower.
const LEAST: usize = 16;
/// The maximum width to which cells of a column are padded if lines may have any length.
const MOST: usize = 200;

/// The lines of each cell in a row, and whether the row is a sum.
type Cells = (Vec<Vec<String>>, bool);

/// A table laid out as text: the lines of each cell, and the column widths.
pub(crate) struct Layout<'t> {
    table: &'t Table,
    names: Vec<String>,
    rows: Vec<Cells>,
    widths: Vec<usize>,
    right: Vec<bool>,
}

impl<'t> Layout<'t> {
    /// Measures a table.
    pub(crate) fn new(table: &'t Table) -> Self {
        let names: Vec<_> = table.columns.iter().map(|column| shown(&column.name).into_owned()).collect();
        let lines = |row: &Row| (row.cells.iter().map(lines).collect::<Vec<_>>(), row.sum);
        let rows: Vec<_> = table.rows.iter().map(lines).collect();
        let widths = widths(&names, &rows, usize::MAX);
        let right = (0..table.columns.len()).map(|column| table.stands_right(column)).collect();
        Self { table, names, rows, widths, right }
    }

    /// Returns the table in lines of at most this many characters. If the table does not fit, first wraps the text of
    /// the last column, and then moves columns to separate blocks.
    pub(crate) fn lines(mut self, width: Option<usize>) -> Vec<Line> {
        if width.is_none() {
            self.widths = widths(&self.names, &self.rows, MOST);
        }
        let mut lines = Vec::new();
        for columns in self.pieces(width) {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            self.wrap(&columns, width);
            self.piece(&columns, &mut lines);
        }
        lines
    }

    /// Divides the columns into blocks that fit, each starting with the key columns.
    fn pieces(&self, width: Option<usize>) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.widths.len()).collect();
        let Some(width) = width else { return vec![all] };
        let is_key = |column: &usize| self.table.columns.get(*column).is_some_and(|column| column.key);
        let keys: Vec<usize> = all.iter().copied().filter(is_key).collect();
        let mut pieces = Vec::new();
        let mut piece = keys.clone();
        for column in all.iter().copied().filter(|column| !is_key(column)) {
            piece.push(column);
            piece.sort_unstable();
            if piece.len() > keys.len() + 1 && self.least(&piece) > width {
                piece.retain(|other| *other != column);
                pieces.push(std::mem::replace(&mut piece, keys.clone()));
                piece.push(column);
                piece.sort_unstable();
            }
        }
        pieces.push(piece);
        pieces
    }

    /// Returns the minimum width of these columns, given that text in the last one can be wrapped.
    fn least(&self, columns: &[usize]) -> usize {
        let width = |column: &usize| self.widths.get(*column).copied().unwrap_or(0);
        let (last, others) = columns.split_last().map_or((0, columns), |(last, others)| {
            (if self.wraps(*last) { width(last).min(LEAST) } else { width(last) }, others)
        });
        others.iter().map(|column| width(column) + GAP).sum::<usize>() + last
    }

    fn wraps(&self, column: usize) -> bool {
        !self.right.get(column).copied().unwrap_or(false)
    }

    /// Wraps the text in the last of these columns.
    fn wrap(&mut self, columns: &[usize], width: Option<usize>) {
        let (Some(width), Some((last, others))) = (width, columns.split_last()) else { return };
        if !self.wraps(*last) {
            return;
        }
        let others: usize = others.iter().filter_map(|column| self.widths.get(*column)).map(|width| width + GAP).sum();
        let room = width.saturating_sub(others).max(LEAST);
        if self.widths.get(*last).is_none_or(|width| *width <= room) {
            return;
        }
        for ((cells, _), row) in self.rows.iter_mut().zip(&self.table.rows) {
            let Some(lines) = cells.get_mut(*last) else { continue };
            *lines = match row.cells.get(*last) {
                Some(Value::Bar(part, most)) => vec![units::bar(*part, *most, room as u64)],
                _ => lines.iter().flat_map(|line| wrapped(line, room)).collect(),
            };
        }
    }

    /// Appends the lines of one block.
    fn piece(&self, columns: &[usize], lines: &mut Vec<Line>) {
        let get = |cells: &[Vec<String>], column: usize, line: usize| -> String {
            cells.get(column).and_then(|lines| lines.get(line)).cloned().unwrap_or_default()
        };
        if columns.iter().any(|column| self.names.get(*column).is_some_and(|name| !name.is_empty())) {
            let name = |column: usize| self.names.get(column).cloned().unwrap_or_default();
            lines.push(Line { text: self.line(columns, name), kind: Kind::Names });
        }
        for (cells, sum) in &self.rows {
            let height = columns.iter().filter_map(|column| cells.get(*column)).map(Vec::len).max().unwrap_or(0).max(1);
            for number in 0..height {
                let kind = if *sum { Kind::Sum } else { Kind::Row };
                lines.push(Line { text: self.line(columns, |column| get(cells, column, number)), kind });
            }
        }
    }

    /// Returns one line of these columns.
    fn line(&self, columns: &[usize], cell: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for (n, column) in columns.iter().enumerate() {
            let (cell, width) = (cell(*column), self.widths.get(*column).copied().unwrap_or(0));
            let space = " ".repeat(width.saturating_sub(letters(&cell)));
            let (before, after) = if self.right.get(*column).copied().unwrap_or(false) {
                (space, String::new())
            } else {
                (String::new(), space)
            };
            text.extend(["", " ".repeat(GAP).as_str()].get(usize::from(n > 0)).copied());
            text.extend([before, cell, after]);
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// A line of a table.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) kind: Kind,
}

/// The kind of a line in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Column names.
    Names,
    /// Values.
    #[default]
    Row,
    /// Sums of values.
    Sum,
}

/// Returns the column widths, ignoring lines longer than `most` characters.
fn widths(names: &[String], rows: &[Cells], most: usize) -> Vec<usize> {
    let mut widths: Vec<_> = names.iter().map(|name| letters(name)).collect();
    for (cells, _) in rows {
        for (width, lines) in widths.iter_mut().zip(cells) {
            *width = lines.iter().map(|line| letters(line)).filter(|letters| *letters <= most).fold(*width, usize::max);
        }
    }
    widths
}

/// Returns the lines of a cell; all but the first are indented.
fn lines(cell: &Value) -> Vec<String> {
    match cell {
        Value::Lines(lines) => {
            let first = lines.first().map(|line| shown(line).into_owned()).into_iter();
            first.chain(lines.iter().skip(1).map(|line| format!("  {}", shown(line)))).collect()
        }
        cell => vec![shown(&cell.to_string()).into_owned()],
    }
}

/// Wraps a line at spaces, or anywhere if necessary; all pieces but the first are indented.
pub(crate) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let indent = line.len() - line.trim_start().len();
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > width {
        let cut = space_before(&rest, indent, width).unwrap_or(width.max(1));
        let behind = rest.split_off(cut);
        pieces.push(rest.iter().collect::<String>().trim_end().to_owned());
        let behind = behind.into_iter().skip_while(|c| *c == ' ');
        rest = std::iter::repeat_n(' ', (indent + 4).min(width / 2)).chain(behind).collect();
    }
    pieces.push(rest.into_iter().collect());
    pieces
}

/// Returns the position of the last space at which the line can be broken.
fn space_before(line: &[char], indent: usize, width: usize) -> Option<usize> {
    let range: Range<usize> = (indent + 8).min(width)..width + 1;
    range.rev().find(|place| line.get(*place) == Some(&' '))
}

pub(crate) fn letters(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    fn text(table: &Table, width: Option<usize>) -> String {
        Layout::new(table).lines(width).into_iter().map(|line| line.text + "\n").collect()
    }

    fn sites() -> Table {
        let mut table =
            Table::new([Column::key("bytes"), Column::new(""), Column::new("blocks"), Column::new("by stack")]);
        let stack = ["std::vector<int>::push_back(int const&)", "main (main.cpp:12)"].map(str::to_owned);
        table.row([Value::Count(11_403), Value::Part(3, 4), Value::Count(211), Value::Lines(stack.to_vec())]);
        table.row([Value::Count(2), Value::Part(0, 4), Value::Unknown, Value::text("not known")]);
        table
    }

    #[test]
    fn as_wide_as_it_is() {
        let expected = concat!(
            " bytes         blocks  by stack\n",
            "11,403  75.0%     211  std::vector<int>::push_back(int const&)\n",
            "                         main (main.cpp:12)\n",
            "     2   0.0%       -  not known\n"
        );
        assert_eq!(text(&sites(), None), expected);
    }

    #[test]
    fn very_long_cells_fill_up_no_others() {
        let mut table = Table::unnamed(2);
        table.row([Value::text("a"), Value::text("b")]);
        table.row([Value::text("c".repeat(1000)), Value::text("d")]);
        assert_eq!(text(&table, None), format!("a  b\n{}  d\n", "c".repeat(1000)));
    }

    #[test]
    fn texts_go_on_and_columns_are_cut() {
        let table = text(&sites(), Some(48));
        assert!(table.lines().all(|line| line.chars().count() <= 48), "{table}");
        assert!(
            table.starts_with(" bytes         blocks  by stack\n11,403  75.0%     211  std::vector<int>::push_"),
            "{table}"
        );
        let narrow = text(&sites(), Some(20));
        assert!(narrow.lines().all(|line| line.chars().count() <= 24), "{narrow}");
        assert_eq!(narrow.matches("11,403").count(), 3, "{narrow}");
    }
}
