//! Records with repetitions, optional fields, references and computed lengths: the parameters and structs that hold
//! their values, and the code that stores them.
//!
//! Each repetition reserves room for its items before it stores them, so the code never writes past the buffer, whatever
//! the program passes.

use metatf_parser::schema::{Expr, Item, LeafId, Record, Repeated};

use super::expression::expression;
use super::fields::Field;
use super::names;
use super::put::Put;
use super::statements::comment;
use super::types::Types;
use crate::docs;
use crate::emitters::{Event, Machine, first};
use crate::names::{Scope, snake};
use crate::uses::leaf;
use std::fmt::Write as _;

/// The layout of a record that is not plain.
pub(crate) struct Nested {
    /// The definitions of the structs of items, inner structs first.
    pub(crate) structs: String,
    /// The record itself.
    pub(crate) body: Body,
    /// The fields, for debuggers.
    pub(crate) fields: Vec<Field>,
    /// Whether the tag is a field, because the record has all tags without another record.
    pub(crate) is_catch_all: bool,
}

/// The part of a record outside repetitions, or an item of a repetition.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) parameters: Vec<Parameter>,
    /// Declarations of byte arrays, which precede the code.
    pub(super) locals: Vec<String>,
    pub(super) code: Vec<String>,
    /// The number of bytes of the fields whose size is fixed.
    pub(crate) size: usize,
}

impl Body {
    /// Returns the statements, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        self.locals.iter().chain(&self.code)
    }
}

/// A parameter of a function, or a member of a struct.
#[derive(Clone)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// The type, which ends in a space or `*`.
    pub(crate) c_type: String,
    pub(crate) docs: Vec<String>,
}

/// The place of an item's values.
#[derive(Clone)]
pub(super) enum Place {
    /// Variables or members with this prefix.
    Members(String),
    /// A single value, which has this name in the scope and is accessed by this expression.
    Only(String, String),
}

/// A walk through the items of a record that collects its code.
pub(super) struct Builder<'a> {
    pub(super) record: &'a Record,
    pub(super) event: &'a Event,
    pub(super) leaves: &'a [Put],
    pub(super) types: &'a mut Types,
    pub(super) structs: String,
    pub(super) fields: Vec<Field>,
    /// The value of each leaf as a C expression of type `uint64_t`, if it is known.
    pub(super) values: Vec<Option<String>>,
    repetitions: usize,
}

impl Nested {
    /// Returns the layout of a record. `taken` contains the tags of the other records in its section. An error is the
    /// reason why the record cannot be emitted.
    pub(crate) fn of(
        (record, taken): (&Record, &[u32]),
        event: &Event,
        leaves: &[Put],
        types: &mut Types,
    ) -> Result<Self, String> {
        let values = vec![None; record.leaves.len()];
        let mut builder = Builder {
            record,
            event,
            leaves,
            types,
            structs: String::new(),
            fields: Vec::new(),
            values,
            repetitions: 0,
        };
        let mut body = Body::default();
        let items = record.items.get(first(record)..).unwrap_or_default();
        let mut names = Scope::with(&["emitter", "trace", "at", "room"]);
        builder.items(items, &Place::Members(String::new()), &mut names, &mut body)?;
        if let Some(tag) = body.parameters.first().filter(|_| record.catch_all) {
            let others: Vec<_> = taken.iter().map(|taken| format!("{} != {taken}", tag.name)).collect();
            body.locals.insert(0, unless(&others.join(" && ")));
        }
        Ok(Self { structs: builder.structs, body, fields: builder.fields, is_catch_all: record.catch_all })
    }
}

impl Builder<'_> {
    /// Returns how a leaf is stored.
    pub(super) fn put(&self, id: LeafId) -> Option<Put> {
        self.leaves.get(usize::from(id.0).checked_sub(first(self.record))?).copied()
    }

    fn items(&mut self, items: &[Item], place: &Place, names: &mut Scope, body: &mut Body) -> Result<(), String> {
        for item in items {
            match item {
                Item::Leaf(id) => self.leaf(*id, place, names, body)?,
                Item::Nested { items, .. } => self.items(items, place, names, body)?,
                Item::Repeat { count, key, body: repeated } => {
                    self.repeat(*count, key, repeated, (place, names), body)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a repetition. An optional value is a parameter, and any other repetition is a pointer to its items.
    fn repeat(
        &mut self,
        count: LeafId,
        key: &str,
        repeated: &Repeated,
        (place, names): (&Place, &mut Scope),
        body: &mut Body,
    ) -> Result<(), String> {
        let only;
        let (items, record) = match repeated {
            Repeated::Leaf(id) => {
                only = [Item::Leaf(*id)];
                (&only[..], None)
            }
            Repeated::Group(items) => (&items[..], None),
            Repeated::Record { items, record, .. } => (&items[..], Some(record)),
        };
        let times = self.value(count)?;
        let computed = leaf(self.record, count).and_then(|l| l.computed.as_ref());
        let shown = match computed {
            Some(expr) => self.shown_value(expr)?,
            None => self.shown_leaf(count)?,
        };
        let at = self.fields.len();
        self.fields.push(Field { kind: 'r', leaf: 0, bytes: 0, value: Some(shown) });
        let is_optional = self.record.is_optional(count);
        let parameters = self.parameters(items);
        self.repetitions += 1;
        let (left, item) = (format!("pfx_left_{}", self.repetitions), format!("pfx_item_{}", self.repetitions));
        let mut checks = Vec::new();
        let mut inner = Body::default();
        // The only value has the name of the repetition, and that of a struct's member may be taken.
        let take = |names: &mut Scope| match place {
            Place::Members(_) => names.take(&[names::argument(&snake(key))]),
            Place::Only(name, _) => name.clone(),
        };
        let access = |name: &str| match place {
            Place::Members(prefix) => format!("{prefix}{name}"),
            Place::Only(_, value) => value.clone(),
        };
        let mut pointer = None;
        if is_optional && parameters == 1 {
            let name = take(names);
            let value = access(&name);
            self.items(items, &Place::Only(name, value), names, &mut inner)?;
            let condition = format!("Stored only if {} is not 0.", self.shown(count));
            inner.parameters.iter_mut().for_each(|parameter| parameter.docs.push(condition.clone()));
            body.parameters.append(&mut inner.parameters);
        } else if parameters == 0 {
            self.items(items, place, names, &mut inner)?;
        } else {
            let name = take(names);
            if computed.is_some() && !is_optional {
                let given = names.take(&[format!("{name}_count")]);
                body.parameters.push(Parameter { name: given.clone(), c_type: "size_t ".to_owned(), docs: Vec::new() });
                checks.push(format!("{left} == {}", access(&given)));
            }
            let inner_place = match parameters {
                1 => Place::Only(name.clone(), format!("(*{item})")),
                _ => Place::Members(format!("{item}->")),
            };
            self.items(items, &inner_place, &mut Scope::default(), &mut inner)?;
            let item_type = match &inner.parameters[..] {
                [single] => single.c_type.clone(),
                _ => self.define(key, record, &inner.parameters),
            };
            let item_type =
                if item_type.ends_with('*') { format!("{item_type}const *") } else { format!("const {item_type}*") };
            checks.push(format!("({left} == 0 || {item} != NULL)"));
            pointer = Some(format!("{item_type}{item} = {};", access(&name)));
            let docs = vec![format!("{} items.", self.shown(count))];
            body.parameters.push(Parameter { name, c_type: item_type, docs });
        }
        let inside = self.fields.len() - at - 1;
        if let Some(repetition) = self.fields.get_mut(at) {
            repetition.bytes = inside;
        }
        checks.insert(0, format!("pfx_take(&room, {left}, {})", inner.size));
        body.code.push("{".to_owned());
        body.code.push(format!("    uint64_t {left} = {times};"));
        body.code.extend(pointer.iter().map(|pointer| format!("    {pointer}")));
        body.code.extend(unless(&checks.join(" && ")).lines().map(|line| format!("    {line}")));
        let step = if pointer.is_some() { format!(", {item}++") } else { String::new() };
        if inner.lines().next().is_some() {
            body.code.push(match is_optional {
                true => format!("    if ({left} > 0) {{"),
                false => format!("    for (; {left} > 0; {left}--{step}) {{"),
            });
            let lines = inner.lines().flat_map(|text| text.lines());
            body.code.extend(lines.map(|line| format!("        {line}")));
            body.code.push("    }".to_owned());
        }
        body.code.push("}".to_owned());
        Ok(())
    }

    /// Returns the number of parameters for the values of some items.
    fn parameters(&self, items: &[Item]) -> usize {
        items
            .iter()
            .map(|item| match item {
                Item::Leaf(id) => match self.put(*id) {
                    Some(Put::Argument(_, Machine::Bytes) | Put::Measured(_) | Put::Until(..)) => 2,
                    Some(Put::Argument(..) | Put::Count(_) | Put::Reference(_) | Put::Encoded(..)) => 1,
                    _ => 0,
                },
                Item::Nested { items, .. } => self.parameters(items),
                Item::Repeat { count, body, .. } => {
                    let inner = match body {
                        Repeated::Leaf(id) => self.parameters(&[Item::Leaf(*id)]),
                        Repeated::Group(items) | Repeated::Record { items, .. } => self.parameters(items),
                    };
                    let computed = leaf(self.record, *count).and_then(|l| l.computed.as_ref());
                    match inner {
                        0 => 0,
                        _ if computed.is_some() && !self.record.is_optional(*count) => 2,
                        _ => 1,
                    }
                }
            })
            .sum()
    }

    /// Defines the struct of an item, and returns its name as a type.
    fn define(&mut self, key: &str, record: Option<&String>, members: &[Parameter]) -> String {
        let names =
            [record.map_or(key, String::as_str), key].map(|name| format!("{}_{}", self.event.name, snake(name)));
        let name = self.types.names.take(&names);
        let out = &mut self.structs;
        let _ = writeln!(out, "typedef struct pfx_{name} {{");
        for Parameter { name, c_type, docs } in members {
            let docs: Vec<_> = docs.iter().filter(|line| !line.is_empty()).map(|line| comment(line)).collect();
            if !docs.is_empty() {
                let _ = writeln!(out, "    /* {} */", docs.join("\n       "));
            }
            let _ = writeln!(out, "    {c_type}{name};");
        }
        let _ = writeln!(out, "}} pfx_{name};\n");
        format!("pfx_{name} ")
    }

    /// Describes a count for a comment.
    fn shown(&self, count: LeafId) -> String {
        let name = leaf(self.record, count).map_or("", |l| l.name.as_str());
        docs::plain(&comment(name))
    }

    pub(super) fn value(&self, id: LeafId) -> Result<String, String> {
        let value = self.values.get(usize::from(id.0)).cloned().flatten();
        value.ok_or_else(|| format!("a length or a count depends on `{}`, which telemetry fills in", self.shown(id)))
    }

    /// Returns the expression that computes a value from the values of a description.
    pub(super) fn shown_value(&self, expr: &Expr) -> Result<String, String> {
        expression(expr, "room", &|id| self.shown_leaf(id))
    }

    fn shown_leaf(&self, id: LeafId) -> Result<String, String> {
        match leaf(self.record, id).and_then(|l| l.constant) {
            Some(constant) => Ok(format!("UINT64_C({constant})")),
            None => Ok(format!("values[{}]", usize::from(id.0) - first(self.record))),
        }
    }
}

/// Returns a statement that gives up unless a condition holds.
pub(super) fn unless(condition: &str) -> String {
    format!("if (!({condition})) {{\n    return NULL;\n}}")
}
