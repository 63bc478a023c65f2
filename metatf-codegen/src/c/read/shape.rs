//! The structs of a DTD's records, with the steps that decode and print each of them.

use metatf_parser::schema::{Dtd, Expr, Format, Item, Leaf, LeafId, Record, Repeated, Width};

use super::names;
use crate::docs;
use crate::names::{Scope, snake};
use crate::options::Lookup;

/// Names of the header without its prefix, and members of the union of records.
const TAKEN: &[&str] = &[
    "bytes",
    "close",
    "comment",
    "describe_error",
    "error",
    "error_kind",
    "group",
    "metadata",
    "next",
    "number",
    "open_array",
    "open_file",
    "open_memory",
    "print",
    "reader",
    "record",
    "record_kind",
    "section",
];

/// All structs. Structs of nested records precede the structs that contain them.
pub(super) struct Shape {
    pub(super) structs: Vec<Struct>,
    /// For each record of the DTD, the index of its struct; `None` for predefined records.
    pub(super) of_record: Vec<Option<usize>>,
}

/// A struct for a record, a nested record, or an item of a repeated group.
pub(super) struct Struct {
    /// The name of the type without the prefix.
    pub(super) name: String,
    /// Whether this is a top record, which is a member of the union.
    pub(super) top: bool,
    pub(super) docs: Vec<String>,
    pub(super) fields: Vec<Field>,
    pub(super) steps: Vec<Step>,
}

/// A member of a struct.
pub(super) struct Field {
    /// The C type, with a space unless it ends in `*`.
    pub(super) ty: String,
    pub(super) name: String,
    pub(super) docs: Vec<String>,
}

/// A part of a record, in the order of the bytes.
pub(super) enum Step {
    /// The tag, which has been read.
    Tag { key: String, value: u64 },
    /// A computed count.
    Count { leaf: u8, value: Expr },
    /// A value.
    One { field: Option<String>, key: String, value: Value },
    /// A nested record.
    Nested { field: String, key: String, of: usize },
    /// A repetition. `count` is the leaf with the number of items; `field` is `None` for constants.
    Repeat { count: u8, times: Times, field: Option<String>, key: String, body: Body },
}

/// The field with the number of items.
pub(super) enum Times {
    /// A flag of an optional part.
    Flag(String),
    /// The field of the count in the same struct.
    Field(String),
    /// A separate field.
    Separate(String),
}

/// The repeated part of a repetition.
pub(super) enum Body {
    One(Value),
    Nested(usize),
}

/// The value of a leaf, or of a `vfield`.
pub(super) struct Value {
    pub(super) leaf: u8,
    /// The leaf with the length of a `vfield`, which is decoded first.
    pub(super) length: Option<u8>,
    pub(super) kind: Kind,
}

/// The kind of a value.
pub(super) enum Kind {
    Unsigned,
    Signed,
    Float,
    Double,
    Constant(u64),
    Array { length: Length, format: Format, section: Option<u8> },
}

/// The length of a byte array.
pub(super) enum Length {
    Fixed(u32),
    Computed(Expr),
    Until(u8),
}

impl Kind {
    fn of(leaf: &Leaf) -> Self {
        let length = match &leaf.width {
            Width::Array(bytes) => Length::Fixed(*bytes),
            Width::Variable(expr) => Length::Computed(expr.clone()),
            Width::Until(end) => Length::Until(*end),
            // The generator refuses `rest`.
            Width::Unset | Width::Number(_) | Width::Rest => {
                return match (leaf.constant, leaf.format) {
                    (Some(value), _) => Self::Constant(value),
                    (None, Format::Signed) => Self::Signed,
                    (None, Format::F32) => Self::Float,
                    (None, Format::F64) => Self::Double,
                    (None, _) => Self::Unsigned,
                };
            }
        };
        Self::Array { length, format: leaf.format, section: leaf.section }
    }

    /// Returns the C type of a field.
    pub(super) const fn ty(&self) -> &'static str {
        match self {
            Self::Unsigned | Self::Constant(_) => "uint64_t ",
            Self::Signed => "int64_t ",
            Self::Float => "float ",
            Self::Double => "double ",
            Self::Array { .. } => "pfx_bytes ",
        }
    }
}

/// Returns the structs of a DTD.
pub(super) fn shape(dtd: &Dtd, lookup: &Lookup<'_>) -> Shape {
    let mut out = Shape { structs: Vec::new(), of_record: vec![None; dtd.records.len()] };
    let mut types = Scope::with(TAKEN);
    let names: Vec<String> = dtd.records.iter().skip(3).map(|record| name(dtd, record, lookup, &mut types)).collect();
    for ((index, record), name) in dtd.records.iter().enumerate().skip(3).zip(names) {
        let docs = docs::or(docs::lines(record.doc.as_deref()), || format!("The record `{}`.", record.name));
        let mut shaper = Shaper { dtd, record, lookup, types: &mut types, structs: &mut out.structs };
        let of = shaper.make(name, docs, &record.items, &record.name);
        if let Some(made) = out.structs.get_mut(of) {
            made.top = true;
        }
        if let Some(slot) = out.of_record.get_mut(index) {
            *slot = Some(of);
        }
    }
    out
}

/// Chooses the name of a record's struct: its own, or with the name of its section if the name is taken.
fn name(dtd: &Dtd, record: &Record, lookup: &Lookup<'_>, types: &mut Scope) -> String {
    let section = record.section.and_then(|id| dtd.sections.get(usize::from(id.0))).and_then(|s| s.name.as_deref());
    let long = format!("{}_{}", section.unwrap_or("global"), record.name);
    let renamed = lookup.rename(&[record.name.clone(), format!("{}.{}", section.unwrap_or("global"), record.name)]);
    let own = renamed.unwrap_or_else(|| record.name.clone());
    types.take(&[snake(&own), snake(&long), snake(&format!("{long}_record"))])
}

struct Shaper<'s, 'd> {
    dtd: &'d Dtd,
    record: &'d Record,
    lookup: &'s Lookup<'s>,
    types: &'s mut Scope,
    structs: &'s mut Vec<Struct>,
}

/// A struct without a name.
#[derive(Default)]
struct Draft {
    names: Scope,
    fields: Vec<Field>,
    steps: Vec<Step>,
    /// The fields of unsigned leaves, which may be counts.
    numbers: Vec<(LeafId, String)>,
    /// The name of the struct, from which the names of nested structs are derived.
    stem: String,
    /// The path of the struct in options.
    path: String,
}

impl<'d> Shaper<'_, 'd> {
    /// Adds a struct with these items, and returns its index.
    fn make(&mut self, name: String, docs: Vec<String>, items: &'d [Item], path: &str) -> usize {
        let mut draft = Draft { stem: name.clone(), path: path.to_owned(), ..Draft::default() };
        items.iter().for_each(|item| self.item(&mut draft, item));
        let Draft { fields, steps, .. } = draft;
        self.structs.push(Struct { name, top: false, docs, fields, steps });
        self.structs.len() - 1
    }

    fn nested(&mut self, draft: &Draft, key: &str, items: &'d [Item], docs: Vec<String>) -> usize {
        let name = self.types.take(&[snake(&format!("{}_{key}", draft.stem))]);
        self.make(name, docs, items, &format!("{}.{key}", draft.path))
    }

    fn field(&self, draft: &mut Draft, ty: &str, key: &str, docs: Vec<String>) -> String {
        let renamed = self.lookup.rename(&[format!("{}.{key}", draft.path)]);
        let name = draft.names.take(&[names::argument(renamed.as_deref().unwrap_or(key))]);
        draft.fields.push(Field { ty: ty.to_owned(), name: name.clone(), docs });
        name
    }

    fn leaf(&self, id: LeafId) -> Option<&'d Leaf> {
        self.record.leaves.get(usize::from(id.0))
    }

    fn item(&mut self, draft: &mut Draft, item: &'d Item) {
        match item {
            Item::Leaf(id) => {
                let Some(leaf) = self.leaf(*id) else { return };
                self.one(draft, *id, leaf);
            }
            Item::Nested { key, record, doc, items } => match self.vfield(record, items) {
                Some((value, docs)) => {
                    let field = self.field(draft, value.kind.ty(), key, docs);
                    draft.steps.push(Step::One { field: Some(field), key: key.clone(), value });
                }
                None => {
                    let docs = docs::under(doc.as_deref(), format!("The nested record `{record}`."));
                    let of = self.nested(draft, key, items, docs.clone());
                    let ty = format!("pfx_{} ", self.structs.get(of).map_or("", |s| s.name.as_str()));
                    let field = self.field(draft, &ty, key, docs);
                    draft.steps.push(Step::Nested { field, key: key.clone(), of });
                }
            },
            Item::Repeat { count, key, body } => self.repeat(draft, *count, key, body),
        }
    }

    fn one(&self, draft: &mut Draft, id: LeafId, leaf: &Leaf) {
        if leaf.is_tag() {
            draft.steps.push(Step::Tag { key: leaf.key.clone(), value: u64::from(self.record.tag.unwrap_or(0)) });
        } else if let Some(value) = &leaf.computed {
            draft.steps.push(Step::Count { leaf: id.0, value: value.clone() });
        } else {
            let value = Value { leaf: id.0, length: None, kind: Kind::of(leaf) };
            let docs = docs::of_leaf(self.dtd, self.record, leaf, false);
            let field = match value.kind {
                Kind::Constant(_) => None,
                _ => Some(self.field(draft, value.kind.ty(), &leaf.key, docs)),
            };
            if let (Kind::Unsigned, Some(field)) = (&value.kind, &field) {
                draft.numbers.push((id, field.clone()));
            }
            draft.steps.push(Step::One { field, key: leaf.key.clone(), value });
        }
    }

    /// Returns the value of a `vfield`, which is its data.
    fn vfield(&self, record: &str, items: &[Item]) -> Option<(Value, Vec<String>)> {
        let (&[Item::Leaf(length), Item::Leaf(data)], "vfield") = (items, record) else { return None };
        let leaf = self.leaf(data).filter(|leaf| leaf.constant.is_none())?;
        let docs = docs::of_vfield(record, leaf.doc.as_deref(), self.leaf(length)?, false);
        Some((Value { leaf: data.0, length: Some(length.0), kind: Kind::of(leaf) }, docs))
    }

    fn repeat(&mut self, draft: &mut Draft, count: LeafId, key: &str, body: &'d Repeated) {
        let is_optional = self.record.is_optional(count);
        let computed = self.leaf(count).filter(|leaf| leaf.computed.is_some()).map(|leaf| format!(": `{}`", leaf.key));
        let computed = computed.unwrap_or_default();
        let known = draft.numbers.iter().find(|(leaf, _)| *leaf == count).map(|(_, field)| field.clone());
        let times = if is_optional {
            let docs = vec![format!("Whether `{key}` is present{computed}.")];
            Times::Flag(self.field(draft, "bool ", &format!("has_{key}"), docs))
        } else if let Some(known) = known {
            Times::Field(known)
        } else {
            let docs = vec![format!("The number of items of `{key}`{computed}.")];
            Times::Separate(self.field(draft, "uint64_t ", &format!("{key}_count"), docs))
        };
        let (body, ty, docs) = match body {
            Repeated::Leaf(id) => {
                let Some(leaf) = self.leaf(*id) else { return };
                let kind = Kind::of(leaf);
                let ty = kind.ty().to_owned();
                let docs = docs::of_leaf(self.dtd, self.record, leaf, !is_optional);
                (Body::One(Value { leaf: id.0, length: None, kind }), ty, docs)
            }
            Repeated::Record { record, doc, items } => match self.vfield(record, items) {
                Some((value, docs)) => {
                    let ty = value.kind.ty().to_owned();
                    (Body::One(value), ty, docs)
                }
                None => {
                    self.structure(draft, key, items, docs::under(doc.as_deref(), format!("The record `{record}`.")))
                }
            },
            Repeated::Group(items) => self.structure(draft, key, items, vec![format!("An item of `{key}`.")]),
        };
        let field = match &body {
            Body::One(Value { kind: Kind::Constant(_), .. }) => None,
            _ if is_optional => Some(self.field(draft, &ty, key, docs)),
            _ => Some(self.field(draft, &format!("const {ty}*"), key, docs)),
        };
        draft.steps.push(Step::Repeat { count: count.0, times, field, key: key.to_owned(), body });
    }

    fn structure(
        &mut self,
        draft: &Draft,
        key: &str,
        items: &'d [Item],
        docs: Vec<String>,
    ) -> (Body, String, Vec<String>) {
        let of = self.nested(draft, key, items, docs.clone());
        (Body::Nested(of), format!("pfx_{} ", self.structs.get(of).map_or("", |s| s.name.as_str())), docs)
    }
}
