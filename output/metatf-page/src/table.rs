//! Tables.

use std::borrow::Cow;

use crate::{Note, Value};

/// Rows of values below column names.
///
/// # Examples
///
/// ```
/// use metatf_page::{Column, Form, Note, Page, Table, Value, render};
///
/// let mut table = Table::new([Column::key("size"), Column::new("blocks")]);
/// table.row([Value::text("16 bytes"), Value::Count(1200)]);
/// table.row([Value::text("48 bytes"), Value::Count(34)]);
/// table.sum([Value::text("all"), Value::Count(1234)]);
/// table.rest(Note::new("and {} more sizes").with([Value::Count(2)]));
/// let mut page = Page::default();
/// page.push(table);
///
/// let mut out = Vec::new();
/// render(&page, Form::text(None), &mut out)?;
/// let text = "  size      blocks\n  16 bytes   1,200\n  48 bytes      34\n  all        1,234\n  and 2 more sizes\n";
/// assert_eq!(String::from_utf8(out)?, text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Note below the last row.
    pub(crate) rest: Option<Note>,
}

/// A column of a table. See the example of [`Table`](Table#examples).
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) key: bool,
}

/// The values of a row, and whether it is a sum.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Value>,
    pub(crate) sum: bool,
}

impl Column {
    /// Creates a column. The name may be empty, for example for percentages next to the values they refer to.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), key: false }
    }

    /// Creates a column that identifies the row. If a table is too wide and is split, every part contains this column.
    pub fn key(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), key: true }
    }
}

impl Table {
    /// Creates a table. Numbers are aligned to the right, text to the left.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), rest: None }
    }

    /// Creates a table whose columns have no names.
    #[must_use]
    pub fn unnamed(columns: usize) -> Self {
        Self::new((0..columns).map(|_| Column::new("")))
    }

    /// Adds a row. Surplus values are dropped, and missing values are left blank.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Value>) {
        self.add(cells, false);
    }

    /// Adds a row of sums, which is emphasized.
    pub fn sum(&mut self, cells: impl IntoIterator<Item = Value>) {
        self.add(cells, true);
    }

    fn add(&mut self, cells: impl IntoIterator<Item = Value>, sum: bool) {
        let mut cells: Vec<_> = cells.into_iter().take(self.columns.len()).collect();
        cells.resize(self.columns.len(), Value::Blank);
        self.rows.push(Row { cells, sum });
    }

    /// Sets the note below the last row, for example about omitted rows.
    pub fn rest(&mut self, rest: impl Into<Note>) {
        self.rest = Some(rest.into());
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns whether any column has a name.
    pub(crate) fn has_names(&self) -> bool {
        self.columns.iter().any(|column| !column.name.is_empty())
    }

    /// Returns whether a column contains a number and is therefore aligned to the right.
    pub(crate) fn stands_right(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.cells.get(column));
        cells.any(Value::is_number)
    }
}
