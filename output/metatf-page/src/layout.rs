//! The layout of table columns in lines of text.

use std::ops::Range;

use crate::escape::shown;
use crate::shorten::{letters, shortened, without_middle};
use crate::table::Row;
use crate::{Table, Value, units};

/// The number of spaces between two columns.
const GAP: usize = 2;
/// The minimum number of characters per line, even if the terminal is narrower.
const LEAST: usize = 16;
/// The minimum width of text that is wrapped next to the numbers of its row rather than below them.
const BESIDE: usize = 24;
/// The indentation of lines below the first line of a row.
const BELOW: usize = 4;
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

    /// Returns the table in lines of at most this many characters. If the table does not fit, first shortens names and
    /// wraps the text of the last column. If that is not enough, prints the text below the numbers of its row or, in
    /// tables with key columns, moves columns to separate blocks.
    pub(crate) fn lines(mut self, width: Option<usize>) -> Vec<Line> {
        let mut lines = Vec::new();
        let all: Vec<usize> = (0..self.widths.len()).collect();
        let Some(width) = width else {
            self.widths = widths(&self.names, &self.rows, MOST);
            self.piece(&all, &mut lines);
            return lines;
        };
        self.shorten_middle_columns(width);
        if self.is_stacked(width) {
            self.stack(width, &mut lines);
            return lines;
        }
        for columns in self.pieces(all, width) {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            self.wrap(&columns, width);
            self.piece(&columns, &mut lines);
        }
        lines
    }

    /// Shortens text in columns before the last one to at most half of the width.
    fn shorten_middle_columns(&mut self, width: usize) {
        let most = (width / 2).max(LEAST);
        let last = self.widths.len().saturating_sub(1);
        for column in (0..last).filter(|column| self.wraps(*column)).collect::<Vec<_>>() {
            let texts = self.rows.iter_mut().filter_map(|(cells, _)| cells.get_mut(column)).flatten();
            for text in texts.filter(|text| letters(text) > most) {
                *text = without_middle(&shortened(text, most), most).into_owned();
            }
        }
        self.widths = widths(&self.names, &self.rows, usize::MAX);
    }

    /// Returns whether the text of the last column is printed below the other columns, because there is too little room
    /// next to them.
    fn is_stacked(&self, width: usize) -> bool {
        let Some((last, others)) = self.widths.split_last() else { return false };
        let column = others.len();
        let is_text = |row: &Row| matches!(row.cells.get(column), Some(Value::Text(_) | Value::Lines(_)));
        let has_keys = self.table.columns.iter().any(|column| column.key);
        if others.is_empty() || has_keys || !self.wraps(column) || !self.table.rows.iter().any(is_text) {
            return false;
        }
        let room = width.saturating_sub(others.iter().map(|width| width + GAP).sum::<usize>());
        if room >= BESIDE || *last <= room {
            return false;
        }
        let mut lines = self.rows.iter().filter_map(|(cells, _)| cells.get(column)).flatten();
        lines.any(|line| letters(&shortened(line, room)) > room)
    }

    /// Appends the rows with the text of the last column, without its name, below the other columns. These may take
    /// several lines, too.
    fn stack(&mut self, width: usize, lines: &mut Vec<Line>) {
        let last = self.widths.len().saturating_sub(1);
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let mut used = usize::MAX;
        for column in 0..last {
            let own = self.widths.get(column).copied().unwrap_or(0) + GAP;
            used = used.saturating_add(own);
            match pieces.last_mut() {
                Some(piece) if used <= width + GAP => piece.push(column),
                _ => {
                    used = own + if pieces.is_empty() { 0 } else { BELOW };
                    pieces.push(vec![column]);
                }
            }
        }
        let room = width.saturating_sub(BELOW).max(LEAST);
        for (cells, _) in &mut self.rows {
            cells.get_mut(last).into_iter().for_each(|lines| *lines = fitted(lines, room));
        }
        let indented = |number: usize, line: Line| match number {
            0 => line,
            _ => Line { text: format!("{:BELOW$}{}", "", line.text), ..line },
        };
        for (number, piece) in pieces.iter().enumerate() {
            lines.extend(self.header(piece).map(|line| indented(number, line)));
        }
        pieces.push(vec![last]);
        for row in &self.rows {
            for (number, piece) in pieces.iter().enumerate() {
                lines.extend(self.row(row, piece).map(|line| indented(number, line)).filter(|line| !line.is_blank()));
            }
        }
    }

    /// Divides the columns into blocks that fit, each starting with the key columns.
    fn pieces(&self, all: Vec<usize>, width: usize) -> Vec<Vec<usize>> {
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

    /// Shortens and wraps the text in the last of these columns.
    fn wrap(&mut self, columns: &[usize], width: usize) {
        let Some((last, others)) = columns.split_last() else { return };
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
                _ => fitted(lines, room),
            };
        }
    }

    /// Appends the lines of one block.
    fn piece(&self, columns: &[usize], lines: &mut Vec<Line>) {
        lines.extend(self.header(columns));
        self.rows.iter().for_each(|row| lines.extend(self.row(row, columns)));
    }

    /// Returns the line with the names of these columns, if any has a name.
    fn header(&self, columns: &[usize]) -> Option<Line> {
        let name = |column: usize| self.names.get(column).cloned().unwrap_or_default();
        let has_names = columns.iter().any(|column| !name(*column).is_empty());
        has_names.then(|| Line { text: self.line(columns, name), kind: Kind::Names })
    }

    /// Returns the lines of a row in these columns.
    fn row(&self, (cells, sum): &Cells, columns: &[usize]) -> impl Iterator<Item = Line> {
        let height = columns.iter().filter_map(|column| cells.get(*column)).map(Vec::len).max().unwrap_or(0).max(1);
        let kind = if *sum { Kind::Sum } else { Kind::Row };
        (0..height).map(move |number| {
            let get = |column: usize| cells.get(column).and_then(|lines| lines.get(number)).cloned();
            Line { text: self.line(columns, |column| get(column).unwrap_or_default()), kind }
        })
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

impl Line {
    fn is_blank(&self) -> bool {
        self.text.trim_start().is_empty()
    }
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

/// Returns the lines of a cell, shortened and wrapped to fit.
fn fitted(lines: &[String], room: usize) -> Vec<String> {
    lines.iter().flat_map(|line| wrapped(&shortened(line, room), room)).collect()
}

/// Wraps a line at spaces, or else within a name or a path, or anywhere if necessary. All pieces but the first are
/// indented.
///
/// # Examples
///
/// ```
/// use metatf_page::wrapped;
///
/// assert_eq!(wrapped("10.8 MiB were never freed", 14), ["10.8 MiB were", "    never", "    freed"]);
/// ```
#[must_use]
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let indent = line.len() - line.trim_start().len();
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > width {
        let cut = break_before(&rest, indent, width).unwrap_or(width.max(1));
        let behind = rest.split_off(cut);
        pieces.push(rest.iter().collect::<String>().trim_end().to_owned());
        let behind = behind.into_iter().skip_while(|c| *c == ' ');
        rest = std::iter::repeat_n(' ', (indent + 4).min(width / 2)).chain(behind).collect();
    }
    pieces.push(rest.into_iter().collect());
    pieces
}

/// Returns the position of the last space at which the line can be broken, or else the position after the last separator
/// in a name or a path.
fn break_before(line: &[char], indent: usize, width: usize) -> Option<usize> {
    let range: Range<usize> = (indent + 8).min(width)..width + 1;
    let is_space = |place: &usize| line.get(*place) == Some(&' ') && !is_before_unit(line, *place);
    let is_after_separator = |place: &usize| matches!(line.get(..*place), Some([.., ':', ':'] | [.., '/' | ',' | ';']));
    range.clone().rev().find(is_space).or_else(|| range.rev().find(is_after_separator))
}

/// Returns whether this space separates a number from its unit.
fn is_before_unit(line: &[char], space: usize) -> bool {
    let after_digit = space.checked_sub(1).and_then(|at| line.get(at)).is_some_and(char::is_ascii_digit);
    let word = line.get(space + 1..).unwrap_or_default().iter().take_while(|c| c.is_ascii_alphabetic()).take(4);
    after_digit && matches!(&*word.collect::<String>(), "B" | "KiB" | "MiB" | "GiB" | "ns" | "us" | "ms" | "s")
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
        let expected = concat!(
            " bytes         blocks  by stack\n",
            "11,403  75.0%     211  std::vector<int>::push_back(..)\n",
            "                         main (main.cpp:12)\n",
            "     2   0.0%       -  not known\n"
        );
        assert_eq!(text(&sites(), Some(55)), expected);
        let narrow = text(&sites(), Some(20));
        assert!(narrow.lines().all(|line| line.chars().count() <= 24), "{narrow}");
        assert_eq!(narrow.matches("11,403").count(), 3, "{narrow}");
    }

    #[test]
    fn names_are_printed_below_numbers() {
        let table = |columns: [Column; 5]| {
            let mut table = Table::new(columns);
            let stack = ["shop::Cart<shop::Item>::add", "<- main at /home/me/shop/main.cpp:12"].map(str::to_owned);
            let (count, time) = (Value::Count(11_403), Value::Time(1_500_000));
            table.row([count.clone(), Value::Part(3, 4), count, time, Value::Lines(stack.to_vec())]);
            table.row([Value::Count(2), Value::Blank, Value::Unknown, Value::Blank, Value::text("2 others")]);
            table
        };
        let columns = ["bytes", "", "blocks", "age", "function"].map(Column::new);
        let expected = concat!(
            " bytes         blocks      age\n",
            "11,403  75.0%  11,403  1.50 ms\n",
            "    shop::Cart<shop::Item>::add\n",
            "      <- main at main.cpp:12\n",
            "     2              -\n",
            "    2 others\n",
        );
        assert_eq!(text(&table(columns.clone()), Some(32)), expected);
        let expected = concat!(
            " bytes         blocks\n",
            "        age\n",
            "11,403  75.0%  11,403\n",
            "    1.50 ms\n",
            "    shop::Cart<..>::add\n",
            "      <- main at\n",
            "          main.cpp:12\n",
            "     2              -\n",
            "    2 others\n",
        );
        assert_eq!(text(&table(columns.clone()), Some(24)), expected);
        let [first, rest @ ..] = columns;
        let [second, third, fourth, fifth] = rest;
        let keyed = text(&table([Column { key: true, ..first }, second, third, fourth, fifth]), Some(24));
        assert!(keyed.lines().all(|line| line.chars().count() <= 24), "{keyed}");
        assert_eq!(keyed.matches("11,403").count(), 4, "{keyed}");
    }

    #[test]
    fn long_words_are_broken_in_names() {
        let wrapped = wrapped("a std::vector<int>::push_back", 20);
        assert_eq!(wrapped, ["a std::vector<int>::", "    push_back"]);
        assert_eq!(super::wrapped("it was at most 37.7 MiB", 20), ["it was at most", "    37.7 MiB"]);
        assert_eq!(super::wrapped(&"x".repeat(10), 6), ["xxxxxx", "   xxx", "   x"]);
    }
}
