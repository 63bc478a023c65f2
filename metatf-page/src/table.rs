//! Tables.

use std::borrow::Cow;

use crate::{Note, Value};

/// Rows of values under names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What stands under the last row.
    pub(crate) rest: Option<Note>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) key: bool,
}

/// Values of a row, and whether it sums up others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Value>,
    pub(crate) sum: bool,
}

impl Column {
    /// A column with a name, which may be empty: a part in per cent stands beside what it is a part of.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), key: false }
    }

    /// A column that says which row it is. Where a table is too wide and is cut into several, each of them has it.
    pub fn key(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), key: true }
    }
}

impl Table {
    /// Starts a table. Numbers stand right in their column, and texts left.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), rest: None }
    }

    /// Starts a table whose columns have no names.
    #[must_use]
    pub fn unnamed(columns: usize) -> Self {
        Self::new((0..columns).map(|_| Column::new("")))
    }

    /// Adds a row. Values for which there is no column are left out, and columns without a value stay blank.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Value>) {
        self.add(cells, false);
    }

    /// Adds a row that sums up others, which readers see.
    pub fn sum(&mut self, cells: impl IntoIterator<Item = Value>) {
        self.add(cells, true);
    }

    fn add(&mut self, cells: impl IntoIterator<Item = Value>, sum: bool) {
        let mut cells: Vec<_> = cells.into_iter().take(self.columns.len()).collect();
        cells.resize(self.columns.len(), Value::Blank);
        self.rows.push(Row { cells, sum });
    }

    /// Says what is not shown, under the last row.
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

    /// Returns whether a column stands right: where any of its values is a number, and none has several lines.
    pub(crate) fn stands_right(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.cells.get(column));
        cells.any(Value::is_number)
    }
}
