//! Records with repetitions, optional fields, references and computed lengths: the parameters and structs that hold
//! their values, and the code that stores them.
//!
//! Each repetition reserves room for its items before it stores them, so the code never writes past the buffer, whatever
//! the program passes.

use std::fmt::Write as _;

use metatf_parser::schema::{Comparison, Expr, ExprOp, Interpretation, Item, LeafId, Record, Repeated, Width};

use super::describe::{self, Field};
use super::emit::{c_type, comment, one};
use super::layout::{Encoding, Put, stored};
use super::names;
use crate::docs;
use crate::emitters::{Emitters, Event, Machine, PLAIN_MOST, first};
use crate::names::{Scope, snake};
use crate::uses::leaf;

/// The layout of a record that is not plain.
pub(crate) struct Nested {
    /// The definitions of the structs of items, inner structs first.
    pub(crate) structs: String,
    /// The record itself.
    pub(crate) body: Body,
    /// The fields, for debuggers.
    pub(crate) fields: Vec<Field>,
    /// Whether the tag is a field, because the record stands for all tags that no other record has.
    pub(crate) is_catch_all: bool,
}

/// The part of a record outside repetitions, or an item of a repetition.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) parameters: Vec<Parameter>,
    /// Declarations of byte arrays, which precede the code.
    locals: Vec<String>,
    code: Vec<String>,
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

/// The names of types and functions in a header.
pub(crate) struct Types {
    names: Scope,
    /// The section and the name of each table.
    tables: Vec<(u8, String)>,
}

impl Types {
    pub(crate) fn of(emitters: &Emitters) -> Self {
        let mut scope = Scope::default();
        for text in [super::DECLARATIONS, super::IMPLEMENTATION, super::SHARED, super::NESTED] {
            let words = text
                .split("pfx_")
                .skip(1)
                .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>());
            words.for_each(|word| drop(scope.take(&[word])));
        }
        let functions =
            emitters.events.iter().flat_map(|event| ["emit_", "store_"].map(|part| part.to_owned() + &event.name));
        let tables =
            emitters.tables.iter().flat_map(|event| ["intern_", "store_"].map(|part| part.to_owned() + &event.name));
        functions.chain(tables).for_each(|name| drop(scope.take(&[name])));
        let tables = emitters.tables.iter().map(|table| (table.section, table.name.clone())).collect();
        Self { names: scope, tables }
    }
}

/// The place of an item's values.
#[derive(Clone)]
enum Place {
    /// Variables or members with this prefix.
    Members(String),
    /// A single value, which has this name in the scope and is accessed by this expression.
    Only(String, String),
}

struct Builder<'a> {
    record: &'a Record,
    event: &'a Event,
    leaves: &'a [Put],
    types: &'a mut Types,
    structs: String,
    fields: Vec<Field>,
    /// The value of each leaf as a C expression of type `uint64_t`, if it is known.
    values: Vec<Option<String>>,
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
    fn put(&self, id: LeafId) -> Option<Put> {
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

    /// Adds a parameter for an argument, and returns the expression of its value.
    fn parameter(&self, index: usize, place: &Place, names: &mut Scope, c_type: &str, body: &mut Body) -> String {
        let argument = self.event.fields.get(index);
        let wanted = argument.map_or("", |argument| argument.name.as_str());
        let docs =
            argument.map_or_else(Vec::new, |argument| argument.docs.iter().map(|line| docs::plain(line)).collect());
        let (name, value) = match place {
            Place::Only(name, value) => (name.clone(), value.clone()),
            Place::Members(prefix) => {
                let name = names.take(&[names::argument(wanted)]);
                (name.clone(), format!("{prefix}{name}"))
            }
        };
        body.parameters.push(Parameter { name, c_type: c_type.to_owned(), docs });
        value
    }

    /// Adds the length of a byte array, and returns the expression of its value.
    fn length(place: &Place, names: &mut Scope, body: &mut Body) -> String {
        let name = body.parameters.last().map_or("", |bytes| bytes.name.as_str());
        let name = names.take(&[format!("{name}_length")]);
        body.parameters.push(Parameter { name: name.clone(), c_type: "size_t ".to_owned(), docs: Vec::new() });
        match place {
            Place::Members(prefix) => format!("{prefix}{name}"),
            Place::Only(..) => name,
        }
    }

    fn leaf(&mut self, id: LeafId, place: &Place, names: &mut Scope, body: &mut Body) -> Result<(), String> {
        let (Some(put), Some(l)) = (self.put(id), leaf(self.record, id)) else { return Ok(()) };
        body.size += stored(put).map_or(0, |(width, _)| usize::from(width));
        let mut value = None;
        if !matches!(put, Put::Computed) {
            let index = usize::from(id.0) - first(self.record);
            let length = match (&l.width, put) {
                (Width::Variable(expr), Put::Measured(_)) => Some(self.shown_value(expr)?),
                _ => None,
            };
            self.fields.push(Field { value: length, ..describe::field(put, index, self.leaves) });
        }
        match put {
            Put::Argument(index, machine) if machine.is_number() => {
                let given = self.parameter(index, place, names, &c_type(machine), body);
                value = Some(as_number(&given, machine));
                body.code.extend(one(put, &given, "0"));
            }
            Put::Argument(index, Machine::Array(bytes)) => {
                let given = self.parameter(index, place, names, "const void *", body);
                if bytes <= PLAIN_MOST {
                    body.size += usize::try_from(bytes).unwrap_or(0);
                } else {
                    body.locals.push(unless(&format!("pfx_take(&room, {bytes}, 1)")));
                }
                body.code.extend(one(put, &given, "0"));
            }
            Put::Argument(index, machine) => {
                let given = self.parameter(index, place, names, "const PFX_TEXT *", body);
                let read = match machine {
                    Machine::Text => format!("pfx_text({given})"),
                    _ => format!("pfx_array({given}, {})", Self::length(place, names, body)),
                };
                body.parameters
                    .iter_mut()
                    .for_each(|p| p.c_type = p.c_type.replace("PFX_TEXT", text_or_bytes(machine)));
                let local = format!("pfx_argument_{index}");
                body.locals.push(format!("const pfx_bytes {local} = {read};"));
                body.locals.push(unless(&format!("pfx_take(&room, (uint64_t){local}.length + {local}.mark, 1)")));
                body.code.extend(one(put, "", "0"));
            }
            Put::Count(index) => {
                let given = self.parameter(index, place, names, "size_t ", body);
                value = Some(format!("(uint64_t){given}"));
                body.code.extend(one(put, &given, "0"));
            }
            Put::Reference(index) => {
                let given = self.parameter(index, place, names, "uint32_t ", body);
                let tables = self.types.tables.iter();
                let table =
                    tables.filter(|(n, _)| l.interpretation == Interpretation::SectionOffset(*n)).map(|(_, name)| name);
                let docs = table.map(|name| format!("The result of pfx_intern_{name}."));
                if let Some(reference) = body.parameters.last_mut() {
                    reference.docs.extend(docs);
                }
                value = Some(format!("(uint64_t){given}"));
                body.code.push(unless(&format!("{given} != PFX_NO_ELEMENT")));
                body.code.extend(one(put, &given, "0"));
            }
            Put::Measured(index) => {
                let given = self.parameter(index, place, names, "const void *", body);
                let length = Self::length(place, names, body);
                let Width::Variable(expr) = &l.width else { return Ok(()) };
                let expected = expression(expr, "&room", &|id| self.value(id))?;
                body.code.push(unless(&format!(
                    "{length} == {expected} && pfx_take(&room, {length}, 1) && ({given} != NULL || {length} == 0)"
                )));
                body.code.push(format!("at = pfx_put_bytes(at, {given}, {length});"));
            }
            Put::Until(index, end) => {
                let given = self.parameter(index, place, names, "const void *", body);
                let length = Self::length(place, names, body);
                body.code.push(unless(&format!("pfx_take_until(&room, {given}, {length}, {end})")));
                body.code.push(format!("at = pfx_put8(pfx_put_bytes(at, {given}, {length}), {end});"));
            }
            Put::Encoded(index, Encoding { machine, base, width, is_signed, is_reference }) => {
                let given = self.parameter(index, place, names, &c_type(machine), body);
                if is_reference {
                    body.code.push(unless(&format!("{given} != PFX_NO_ELEMENT")));
                }
                let given = as_number(&given, machine);
                body.size += usize::from(width);
                let raw = if base == 0 { given.clone() } else { format!("{given} - UINT64_C({base})") };
                body.code.push(unless(&format!("pfx_fits({raw}, {width}, {is_signed})")));
                body.code.push(format!("at = pfx_put_number(at, {raw}, {width});"));
                value = Some(given);
            }
            Put::EncodedLength(index, width) => {
                let length = format!("(uint64_t)pfx_argument_{index}.length + pfx_argument_{index}.mark");
                body.size += usize::from(width);
                body.code.push(unless(&format!("pfx_fits({length}, {width}, false)")));
                body.code.push(format!("at = pfx_put_number(at, {length}, {width});"));
            }
            Put::Computed => {
                let computed = l.computed.as_ref();
                value = computed.map(|expr| expression(expr, "&room", &|id| self.value(id))).transpose()?;
            }
            Put::Constant(_, width) => {
                body.size += usize::from(width);
                value = l.constant.map(|constant| format!("UINT64_C({constant})"));
                body.code.extend(one(put, "", "0"));
            }
            Put::Thread => {
                value = Some("(uint64_t)emitter->thread".to_owned());
                body.code.extend(one(put, "", "0"));
            }
            _ => body.code.extend(one(put, "", "0")),
        }
        if let Some(known) = self.values.get_mut(usize::from(id.0)) {
            *known = value;
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

    fn value(&self, id: LeafId) -> Result<String, String> {
        let value = self.values.get(usize::from(id.0)).cloned().flatten();
        value.ok_or_else(|| format!("a length or a count depends on `{}`, which telemetry fills in", self.shown(id)))
    }

    /// Returns the expression that computes a value from the values of a description.
    fn shown_value(&self, expr: &Expr) -> Result<String, String> {
        expression(expr, "room", &|id| self.shown_leaf(id))
    }

    fn shown_leaf(&self, id: LeafId) -> Result<String, String> {
        match leaf(self.record, id).and_then(|l| l.constant) {
            Some(constant) => Ok(format!("UINT64_C({constant})")),
            None => Ok(format!("values[{}]", usize::from(id.0) - first(self.record))),
        }
    }
}

/// Returns a C expression of type `uint64_t`. Steps that may fail set `room->fails`.
fn expression(expr: &Expr, room: &str, value: &dyn Fn(LeafId) -> Result<String, String>) -> Result<String, String> {
    let mut stack: Vec<String> = Vec::new();
    for op in &expr.0 {
        let b = match op {
            ExprOp::Push(number) => {
                stack.push(format!("UINT64_C({number})"));
                continue;
            }
            ExprOp::Leaf(id) => {
                stack.push(value(*id)?);
                continue;
            }
            _ => stack.pop().unwrap_or_default(),
        };
        if let ExprOp::Bit(bit) = op {
            stack.push(format!("({b} >> {bit} & 1)"));
            continue;
        }
        let a = stack.pop().unwrap_or_default();
        let step = |sign: char| format!("pfx_step({room}, '{sign}', {a}, {b})");
        stack.push(match op {
            ExprOp::Compare(comparison) => format!("(uint64_t)({a} {} {b})", sign(*comparison)),
            ExprOp::Add => step('+'),
            ExprOp::Sub => step('-'),
            ExprOp::Mul => step('*'),
            ExprOp::Div => step('/'),
            _ => step('%'),
        });
    }
    Ok(stack.pop().unwrap_or_default())
}

fn text_or_bytes(machine: Machine) -> &'static str {
    if machine == Machine::Text { "char" } else { "void" }
}

/// Returns a statement that gives up unless a condition holds.
fn unless(condition: &str) -> String {
    format!("if (!({condition})) {{\n    return NULL;\n}}")
}

/// Returns the value of a number as an expression of type `uint64_t`.
fn as_number(value: &str, machine: Machine) -> String {
    match machine {
        Machine::Bool => format!("(uint64_t)({value} ? 1 : 0)"),
        Machine::F32 | Machine::F64 => format!("pfx_bits({value})"),
        _ => format!("(uint64_t){value}"),
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}
