//! Maps the fields of a record to columns and their types.
//!
//! Columns have the same names as in CSV and SQL: the JSON keys, with dots before the names of nested fields.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};
use metatf::dynamic::Schema;
use metatf_parser::schema::{Format, Interpretation, Item, Leaf, LeafId, Names, Record, Repeated, Width};
use metatf_tools::fields;
use metatf_tools::roles::{self, Role};

/// The conversion of a leaf to a column value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number in two's complement.
    Signed,
    /// A number that must fit in 63 bits.
    Count,
    /// A 64-bit number.
    Unsigned,
    /// The bits of a floating-point number.
    Single,
    Float,
    /// A boolean: 0 or 1.
    Bool,
    /// A time, as the number of units since 1970.
    Date(TimeUnit),
    /// The name of the number, or its decimal digits if it has no name.
    Named,
    /// The names of the bits that are set.
    Flags,
    /// A number in the text form of its format, such as an IPv4 address, or `0x` and 16 digits if the format has no
    /// text form.
    Word,
    /// The offset of a text element, in the section with this index. If no element begins there, the value is null.
    Reference(usize),
    /// A byte array.
    Bytes,
    /// UTF-8 text.
    Text,
    /// Text up to the first zero byte.
    CString,
    /// 16 bytes in the text form of the format.
    WordOfBytes,
}

impl Kind {
    /// Returns whether a value may be null although the record contains the field.
    fn is_nullable(self) -> bool {
        matches!(self, Self::Reference(_))
    }
}

/// The structure of a column's values.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Value(Kind, LeafId),
    List(Box<Shape>),
    /// A value that may be missing.
    Optional(Box<Shape>),
    Struct(Vec<(String, Shape)>),
}

/// The destinations of a record's values, in record order. Column indices are relative to the enclosing object.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A value without a column.
    Hidden(LeafId),
    /// A value and its column.
    Value(LeafId, usize),
    /// A repetition.
    Repeat { count: LeafId, steps: Vec<Step>, column: Option<usize> },
}

/// The columns of a record.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) fields: Vec<Field>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) steps: Vec<Step>,
}

impl Layout {
    pub(crate) fn new(schema: &Schema, record: &Record, stored: bool) -> Self {
        let mut object = Object { schema, record, stored, fields: Vec::new(), shapes: Vec::new(), steps: Vec::new() };
        object.items(&record.items, "");
        let Object { fields, shapes, steps, .. } = object;
        Self { fields, shapes, steps }
    }

    /// Returns the leaf of each column and of each field of a structure, except for references that are shown as text.
    pub(crate) fn leaves(&self, record: &Record) -> Vec<(String, Arc<Leaf>)> {
        let mut leaves = Vec::new();
        for (field, shape) in self.fields.iter().zip(&self.shapes) {
            shape.leaves(record, field.name().clone(), &mut leaves);
        }
        leaves
    }

    /// Returns whether each column has exactly one value per record.
    pub(crate) fn is_flat(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step, Step::Repeat { .. }))
    }
}

impl Shape {
    /// Adds the leaves of the shape. Types nest as deep as a DTD's records, at most 32 (spec 3.5), so this recursion is
    /// bounded.
    fn leaves(&self, record: &Record, name: String, leaves: &mut Vec<(String, Arc<Leaf>)>) {
        match self {
            Self::Value(Kind::Reference(_), _) => {}
            Self::Value(_, id) => leaves.extend(fields::leaf(record, *id).map(|leaf| (name, Arc::new(leaf.clone())))),
            Self::List(item) | Self::Optional(item) => item.leaves(record, name, leaves),
            Self::Struct(members) => {
                for (member, shape) in members {
                    shape.leaves(record, format!("{name}.{member}"), leaves);
                }
            }
        }
    }

    /// Returns whether the shape contains references to text elements.
    pub(crate) fn refers(&self) -> bool {
        match self {
            Self::Value(kind, _) => matches!(kind, Kind::Reference(_)),
            Self::List(item) | Self::Optional(item) => item.refers(),
            Self::Struct(fields) => fields.iter().any(|(_, shape)| shape.refers()),
        }
    }
}

/// The columns of an object that have been collected so far.
struct Object<'s> {
    schema: &'s Schema,
    record: &'s Record,
    stored: bool,
    fields: Vec<Field>,
    shapes: Vec<Shape>,
    steps: Vec<Step>,
}

impl Object<'_> {
    /// Adds the columns of items. Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn items(&mut self, items: &[Item], prefix: &str) {
        for item in items {
            match item {
                Item::Leaf(id) => match fields::leaf(self.record, *id) {
                    Some(leaf) if fields::is_shown(leaf, false) => {
                        self.value(*id, leaf, format!("{prefix}{}", leaf.key))
                    }
                    _ => self.steps.push(Step::Hidden(*id)),
                },
                Item::Nested { key, record, items, .. } => self.nested(record, items, format!("{prefix}{key}"), "."),
                Item::Repeat { count, key, body } => self.repeat(*count, body, format!("{prefix}{key}")),
            }
        }
    }

    fn value(&mut self, id: LeafId, leaf: &Leaf, name: String) {
        let kind = kind(self.schema, leaf, self.stored);
        self.steps.push(Step::Value(id, self.fields.len()));
        self.fields.push(Field::new(name, data_type(kind), kind.is_nullable()).with_metadata(metadata(leaf, kind)));
        self.shapes.push(Shape::Value(kind, id));
    }

    /// Adds the fields of a nested record, or only the data of a `vfield`.
    fn nested(&mut self, record: &str, items: &[Item], name: String, dot: &str) {
        match fields::vfield(record, items) {
            Some((length, data)) => {
                self.steps.push(Step::Hidden(length));
                if let Some(leaf) = fields::leaf(self.record, data) {
                    self.value(data, leaf, name);
                }
            }
            None => self.items(items, &format!("{name}{dot}")),
        }
    }

    fn repeat(&mut self, count: LeafId, body: &Repeated, name: String) {
        let mut of = Object { fields: Vec::new(), shapes: Vec::new(), steps: Vec::new(), ..*self };
        let is_single = match body {
            Repeated::Leaf(id) => {
                if let Some(leaf) = fields::leaf(self.record, *id) {
                    of.value(*id, leaf, "item".to_owned());
                }
                true
            }
            Repeated::Group(items) => {
                of.items(items, "");
                false
            }
            Repeated::Record { record, items, .. } if fields::vfield(record, items).is_some() => {
                of.nested(record, items, "item".to_owned(), "");
                true
            }
            Repeated::Record { items, .. } => {
                of.items(items, "");
                false
            }
        };
        let Object { fields: inner, mut shapes, steps, .. } = of;
        let is_bool = |leaf: &Leaf| !self.stored && is_single && leaf.format == Format::Bool;
        let is_optional = self.record.is_optional(count) || fields::leaf(self.record, count).is_some_and(is_bool);
        // Items without visible values have no column.
        let column = (!inner.is_empty()).then_some(self.fields.len());
        self.steps.push(Step::Repeat { count, steps, column });
        if column.is_none() {
            return;
        }
        let metadata = inner.first().filter(|_| is_single).map(|field| field.metadata().clone()).unwrap_or_default();
        let is_nullable = is_single && inner.first().is_some_and(Field::is_nullable);
        let (item, shape) = if is_single {
            (inner.first().map_or(DataType::Null, |field| field.data_type().clone()), shapes.pop())
        } else {
            let named = inner.iter().map(|field| field.name().clone()).zip(shapes);
            let shape = Shape::Struct(named.collect());
            (DataType::Struct(inner.into()), Some(shape))
        };
        let Some(shape) = shape else { return };
        let field = match is_optional {
            true => Field::new(name, item, true),
            false => Field::new(name, DataType::List(Arc::new(Field::new("item", item, is_nullable))), false),
        };
        self.fields.push(field.with_metadata(metadata));
        self.shapes.push(if is_optional { Shape::Optional(Box::new(shape)) } else { Shape::List(Box::new(shape)) });
    }
}

/// Returns the conversion of a leaf.
fn kind(schema: &Schema, leaf: &Leaf, stored: bool) -> Kind {
    let is_number = leaf.is_numeric();
    match leaf.format {
        Format::Signed if is_number => Kind::Signed,
        Format::F32 if is_number => Kind::Single,
        Format::F64 if is_number => Kind::Float,
        _ if stored => {
            if is_number {
                Kind::Unsigned
            } else {
                Kind::Bytes
            }
        }
        _ if is_number => number_kind(schema, leaf),
        Format::Utf8 => Kind::Text,
        Format::CString => Kind::CString,
        Format::Ipv6 | Format::Uuid if leaf.width == Width::Array(16) => Kind::WordOfBytes,
        _ => Kind::Bytes,
    }
}

fn number_kind(schema: &Schema, leaf: &Leaf) -> Kind {
    match leaf.names {
        Names::Values(_) => return Kind::Named,
        Names::Flags(_) => return Kind::Flags,
        Names::None => {}
    }
    if let Interpretation::SectionOffset(number) = leaf.interpretation {
        let section = schema.format.section_index(number).filter(|&section| schema.string_leaf(section).is_some());
        return section.map_or(Kind::Count, Kind::Reference);
    }
    match leaf.format {
        Format::Bool => Kind::Bool,
        Format::DateNs => Kind::Date(TimeUnit::Nanosecond),
        Format::DateUs => Kind::Date(TimeUnit::Microsecond),
        Format::DateMs => Kind::Date(TimeUnit::Millisecond),
        Format::DateS => Kind::Date(TimeUnit::Second),
        Format::Chars | Format::CharsLe | Format::Char | Format::Ipv4 => Kind::Word,
        Format::Hex => Kind::Unsigned,
        // A parent number with all bits set means no parent. Parents are span numbers, so both are unsigned.
        Format::Unset | Format::Dec if matches!(roles::of(leaf), Some(Role::Span | Role::Parent)) => Kind::Unsigned,
        // An 8-byte number without a unit may be a hash or a random number.
        Format::Unset | Format::Dec if leaf.width == Width::Number(8) && leaf.unit.is_none() => Kind::Unsigned,
        _ => Kind::Count,
    }
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Signed | Kind::Count => DataType::Int64,
        Kind::Unsigned => DataType::UInt64,
        Kind::Single => DataType::Float32,
        Kind::Float => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Date(unit) => DataType::Timestamp(unit, Some("UTC".into())),
        Kind::Flags => DataType::List(Arc::new(Field::new("item", DataType::Utf8, false))),
        Kind::Bytes => DataType::Binary,
        Kind::Named | Kind::Word | Kind::Reference(_) | Kind::Text | Kind::CString | Kind::WordOfBytes => {
            DataType::Utf8
        }
    }
}

/// Returns the metadata of a column's field: documentation, unit, and the format if the type does not imply it.
fn metadata(leaf: &Leaf, kind: Kind) -> HashMap<String, String> {
    let unit = leaf.unit.clone().or_else(|| {
        let unit = match leaf.format {
            Format::TimeNs | Format::DurationNs => "ns",
            Format::TimeUs => "us",
            Format::TimeS => "s",
            _ => return None,
        };
        Some(unit.to_owned())
    });
    let format =
        Some(leaf.format.name()).filter(|name| !name.is_empty() && matches!(kind, Kind::Count | Kind::Unsigned));
    let entries = [("doc", leaf.doc.clone()), ("unit", unit), ("format", format.map(str::to_owned))];
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
