//! Tables of typed columns, and the trait for tabular output formats. A tabular format receives rows of typed values
//! and is independent of records.

use super::Args;
use super::select::Select;
use crate::fields;
use metatf::dynamic::Schema;
use metatf_parser::schema::{Format, Interpretation, Item, Leaf, LeafId, Names, Record, Repeated};
use metatf_tools::roles::{self, Role};
use serde_json::Value;
use std::borrow::Cow;

/// A tabular output format. Each method appends to the output.
pub(super) trait ColumnSink {
    /// Creates the format for these tables, in the order of the DTD. All rows have the columns of their tables.
    fn new(tables: &[Table], args: &Args) -> Self;

    /// Writes the beginning of the output. The beginning and the end are written only once, even if several threads
    /// print groups.
    fn head(&self, out: &mut Vec<u8>);

    /// Appends a row.
    fn row(&mut self, row: Row<'_>, out: &mut Vec<u8>);

    /// Writes the end of the output.
    fn foot(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
}

/// The table of one record type in one section.
pub(super) struct Table {
    /// The name of the section; `None` for the global section.
    pub(super) section: Option<String>,
    pub(super) record: String,
    pub(super) columns: Vec<Column>,
    /// The column that contains the time of the record.
    pub(super) time: Option<usize>,
}

/// A field. Its name is the JSON key, prefixed with the names of the enclosing fields. Dots separate the names.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) unit: Option<String>,
    /// Whether the value may be missing, because it is repeated by a count of format `bool`. If this count nevertheless
    /// exceeds 1, the cell is JSON.
    pub(super) is_optional: bool,
}

/// The type of the cells in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    Real,
    /// Text, or bytes if they are not UTF-8.
    Text,
    Bytes,
    /// Repeated values.
    Json,
    /// Numbers, some of which may be replaced by names, labels, strings or elements.
    Any,
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'t> {
    Null,
    Unsigned(u64),
    Signed(i64),
    Real(f64),
    Text(Cow<'t, str>),
    Bytes(&'t [u8]),
    /// A repetition, an element, or a number if it is the only value of an element.
    Json(Value),
}

/// A record as a row of its table.
pub(super) struct Row<'r> {
    /// The index of the table.
    pub(super) table: usize,
    /// The offset of the record, as `--all` prints it.
    pub(super) offset: u64,
    /// The thread that the record belongs to, with `--thread-column`.
    pub(super) thread: Option<u64>,
    /// The cells, in the order of the table's columns.
    pub(super) cells: Vec<Cell<'r>>,
}

/// Options for printing values.
#[derive(Clone, Copy)]
pub(super) struct Show {
    /// Whether to also print tags and constants.
    pub(super) all: bool,
    /// Whether to print names instead of numbers.
    pub(super) named: bool,
}

impl Table {
    /// Checks whether the cells match the columns of the table.
    pub(super) fn takes(&self, cells: &[Cell<'_>]) -> bool {
        self.columns.len() == cells.len() && self.columns.iter().zip(cells).all(|(column, cell)| column.takes(cell))
    }
}

impl Column {
    fn takes(&self, cell: &Cell<'_>) -> bool {
        match (cell, self.kind) {
            (_, Kind::Any) => true,
            (Cell::Null | Cell::Json(_), _) if self.is_optional => true,
            (Cell::Unsigned(_), kind) => kind == Kind::Unsigned,
            (Cell::Signed(_), kind) => kind == Kind::Signed,
            (Cell::Real(_), kind) => kind == Kind::Real,
            (Cell::Text(_), kind) => kind == Kind::Text,
            (Cell::Bytes(_), kind) => matches!(kind, Kind::Text | Kind::Bytes),
            (Cell::Json(_), kind) => kind == Kind::Json,
            (Cell::Null, _) => false,
        }
    }
}

/// Defines the tables of all records that may be printed, each with its section and record. With `resolves`, names and
/// elements replace numbers.
pub(super) fn tables(schema: &Schema, select: &Select, show: Show, resolves: bool) -> Vec<((usize, u16), Table)> {
    let table = |kind: (usize, u16)| {
        let record = schema.record(kind.1)?;
        let section = schema.section(kind.0).and_then(|section| section.name.clone());
        let mut definition = Definition { record, show, resolves, columns: Vec::new(), time: None };
        definition.items(&record.items, "");
        let Definition { columns, time, .. } = definition;
        Some((kind, Table { section, record: record.name.clone(), columns, time }))
    };
    select.kinds(schema).into_iter().filter_map(table).collect()
}

/// The columns of a record defined so far.
struct Definition<'r> {
    record: &'r Record,
    show: Show,
    /// Whether resolved values replace numbers.
    resolves: bool,
    columns: Vec<Column>,
    time: Option<usize>,
}

impl Definition<'_> {
    /// Items nest at most 32 levels deep (spec 3.5), which bounds this recursion.
    fn items(&mut self, items: &[Item], prefix: &str) {
        let record = self.record;
        let time = roles::first(record, Role::Time);
        for item in items {
            match item {
                Item::Leaf(id) => {
                    let shown = |leaf: &&Leaf| fields::is_shown(leaf, self.show.all);
                    let Some(leaf) = fields::leaf(record, *id).filter(shown) else { continue };
                    if Some(*id) == time {
                        self.time = Some(self.columns.len());
                    }
                    self.push(prefix, &leaf.key, self.kind(leaf), Some(leaf));
                }
                Item::Nested { key, record: nested, items, .. } => match fields::vfield(nested, items) {
                    Some((_, data)) => {
                        let leaf = fields::leaf(record, data);
                        self.push(prefix, key, leaf.map_or(Kind::Bytes, |leaf| kind(leaf, self.show)), leaf);
                    }
                    None => self.items(items, &format!("{prefix}{key}.")),
                },
                Item::Repeat { key, count, body } => {
                    let optional = optional_leaf(record, *count, body);
                    let leaf = match body {
                        Repeated::Leaf(id) => fields::leaf(record, *id),
                        _ => None,
                    };
                    self.push(prefix, key, optional.map_or(Kind::Json, |leaf| self.kind(leaf)), leaf);
                    if let Some(column) = self.columns.last_mut() {
                        column.is_optional = optional.is_some() || record.is_optional(*count);
                    }
                }
            }
        }
    }

    fn push(&mut self, prefix: &str, key: &str, kind: Kind, leaf: Option<&Leaf>) {
        let unit = leaf.and_then(|leaf| leaf.unit.clone());
        self.columns.push(Column { name: format!("{prefix}{key}"), kind, unit, is_optional: false });
    }

    fn kind(&self, leaf: &Leaf) -> Kind {
        let resolved = matches!(leaf.interpretation, Interpretation::SectionOffset(_))
            || matches!(roles::of(leaf), Some(Role::StringId | Role::Address | Role::Labelled));
        if self.resolves && resolved { Kind::Any } else { kind(leaf, self.show) }
    }
}

fn kind(leaf: &Leaf, show: Show) -> Kind {
    use Format::{Bool, Char, F64, Ipv4, Ipv6, Signed, Uuid};
    let has_names = leaf.names != Names::None || matches!(leaf.format, Bool | Char | Ipv4 | Ipv6 | Uuid);
    match leaf.format {
        _ if show.named && has_names => Kind::Any,
        F64 => Kind::Real,
        Signed => Kind::Signed,
        _ if leaf.is_numeric() => Kind::Unsigned,
        _ if leaf.format.text_of_bytes(b"").is_some() => Kind::Text,
        _ => Kind::Bytes,
    }
}

/// Returns the leaf of an optional field, which is a single value whose count is at most 1 or has the format `bool`.
pub(super) fn optional_leaf<'r>(record: &'r Record, count: LeafId, body: &Repeated) -> Option<&'r Leaf> {
    let id = match body {
        Repeated::Leaf(id) => *id,
        Repeated::Record { record, items, .. } => fields::vfield(record, items)?.1,
        Repeated::Group(_) => return None,
    };
    let is_bool = |leaf: &Leaf| leaf.format == Format::Bool;
    (record.is_optional(count) || fields::leaf(record, count).is_some_and(is_bool)).then_some(())?;
    fields::leaf(record, id)
}
