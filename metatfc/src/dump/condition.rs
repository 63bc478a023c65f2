//! `--where`: a condition on the fields of a record.

use super::parse::{self, Expr, Op, Operand};
use crate::failure::{Failure, Result, usage};
use crate::fields;
use metatf::dynamic::{Item, OwnedRecord, Schema};
use metatf::format::{Format, Record, Steps};
use metatf::reader::At;
use metatf_parser::schema;
use std::cmp::Ordering;
use std::convert::Infallible;
use std::sync::Arc;

/// A condition with its names looked up.
#[derive(Clone)]
pub(crate) struct Condition {
    expr: Expr,
    /// The meaning of each field's name, in the order of the condition.
    names: Vec<Name>,
    format: Arc<Format>,
    schema: Arc<schema::Dtd>,
    /// Which leaf each value in the owned record is of.
    leaves: Vec<u8>,
}

/// The meaning of a name in the condition.
#[derive(Clone)]
enum Name {
    Section,
    Record,
    Offset,
    /// For each record: the leaves of this name.
    Leaves(Vec<Vec<u8>>),
}

/// A value to be compared.
#[derive(Clone, Copy)]
enum Value<'v> {
    Integer(i128),
    Float(f64),
    Bytes(&'v [u8]),
    /// A number whose values have names.
    Named(u64, &'v schema::Leaf),
    Name(&'v str),
}

impl Condition {
    pub(crate) fn new(schema: &Schema, text: &str) -> Result<Self> {
        let fail = |at: usize, message: &str| {
            let column = text.get(..at).map_or(0, |t| t.chars().count());
            Failure::Usage(format!("--where: {message}\n    {text}\n    {}^", " ".repeat(column)))
        };
        let mut expr = parse::parse(text).map_err(|e| fail(e.at, &e.message))?;
        let mut names = Vec::new();
        resolve(&mut expr, &mut |[left, right]| {
            name_values(schema, left, right);
            for operand in [left, right] {
                if let Operand::Field(name, at) = operand {
                    names.push(look_up(schema, name).ok_or_else(|| fail(*at, &unknown(schema, name)))?);
                    *at = names.len() - 1;
                }
            }
            Ok(())
        })?;
        let (format, schema) = (Arc::clone(&schema.format), Arc::clone(&schema.dtd));
        let condition = Self { expr, names, format, schema, leaves: Vec::new() };
        condition.check_kinds(&condition.expr)?;
        Ok(condition)
    }

    /// Returns whether it holds for the record of the owned record.
    pub(crate) fn holds(&mut self, at: At, owned: &OwnedRecord) -> bool {
        let Some(record) = self.format.records.get(usize::from(at.record)) else { return false };
        self.leaves.clear();
        order(record, owned, &mut self.leaves);
        self.eval(&self.expr, at, owned)
    }

    /// Evaluates an expression. The parser bounds the depth.
    fn eval(&self, expr: &Expr, at: At, owned: &OwnedRecord) -> bool {
        match expr {
            Expr::Or(a, b) => self.eval(a, at, owned) || self.eval(b, at, owned),
            Expr::And(a, b) => self.eval(a, at, owned) && self.eval(b, at, owned),
            Expr::Not(a) => !self.eval(a, at, owned),
            Expr::Compare(left, op, right) => {
                self.any(left, at, owned, &mut |l| self.any(right, at, owned, &mut |r| compare(l, *op, r)))
            }
        }
    }

    /// Returns whether the test holds for one of the values of an operand.
    fn any(&self, operand: &Operand, at: At, owned: &OwnedRecord, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
        match operand {
            Operand::Integer(n) => test(Value::Integer(*n)),
            Operand::Float(f) => test(Value::Float(*f)),
            Operand::Bytes(bytes) => test(Value::Bytes(bytes)),
            Operand::Name(name) => test(Value::Name(name)),
            Operand::Field(_, index) => match self.names.get(*index) {
                Some(Name::Offset) => test(Value::Integer(at.offset.into())),
                Some(Name::Section) => {
                    let section = self.schema.sections.get(at.section).and_then(|s| s.name.as_deref());
                    test(Value::Bytes(section.unwrap_or_default().as_bytes()))
                }
                Some(Name::Record) => {
                    let record = self.schema.records.get(usize::from(at.record)).map(|r| r.name.as_str());
                    test(Value::Bytes(record.unwrap_or_default().as_bytes()))
                }
                Some(Name::Leaves(records)) => {
                    let wanted = records.get(usize::from(at.record)).map_or(&[][..], Vec::as_slice);
                    let record = self.schema.records.get(usize::from(at.record));
                    let mut values = self.leaves.iter().zip(owned.iter()).filter(|(leaf, _)| wanted.contains(leaf));
                    !wanted.is_empty()
                        && values.any(|(leaf, item)| {
                            let leaf = record.and_then(|r| r.leaves.get(usize::from(*leaf)));
                            test(match (leaf, item) {
                                (Some(leaf), Item::Number(n)) if leaf.format != schema::Format::F64 => {
                                    Value::Named(n, leaf)
                                }
                                _ => value(leaf.map_or(schema::Format::Unset, |l| l.format), item),
                            })
                        })
                }
                None => false,
            },
        }
    }

    /// Rejects comparisons of a number with bytes: they are never equal.
    fn check_kinds(&self, expr: &Expr) -> Result<()> {
        match expr {
            Expr::Or(a, b) | Expr::And(a, b) => self.check_kinds(a).and_then(|()| self.check_kinds(b)),
            Expr::Not(a) => self.check_kinds(a),
            Expr::Compare(_, Op::Set, _) => Ok(()),
            Expr::Compare(a, _, b) => {
                let (left, right) = (self.kinds(a), self.kinds(b));
                if left.iter().any(|kind| right.contains(kind)) {
                    return Ok(());
                }
                let name = |o: &Operand| match o {
                    Operand::Field(name, _) => {
                        format!("{name} ({})", if self.kinds(o).contains(&true) { "a number" } else { "bytes" })
                    }
                    Operand::Integer(n) => format!("{n}"),
                    Operand::Float(f) => format!("{f}"),
                    Operand::Bytes(_) | Operand::Name(_) => "a string".to_owned(),
                };
                usage(format!("--where: {} cannot be compared with {}", name(a), name(b)))
            }
        }
    }

    /// Returns whether an operand can be a number (true), bytes (false), or both.
    fn kinds(&self, operand: &Operand) -> Vec<bool> {
        match operand {
            Operand::Integer(_) | Operand::Float(_) => vec![true],
            Operand::Bytes(_) => vec![false],
            Operand::Name(_) => vec![true, false],
            Operand::Field(_, index) => match self.names.get(*index) {
                Some(Name::Offset) => vec![true],
                Some(Name::Leaves(records)) => {
                    let records = records.iter().zip(&self.schema.records);
                    let leaves = records.flat_map(|(ids, r)| ids.iter().filter_map(|&i| r.leaves.get(usize::from(i))));
                    leaves.map(schema::Leaf::is_numeric).collect()
                }
                _ => vec![false],
            },
        }
    }
}

/// Resolves the operands of every comparison.
fn resolve(expr: &mut Expr, find: &mut dyn FnMut([&mut Operand; 2]) -> Result<()>) -> Result<()> {
    match expr {
        Expr::Or(a, b) | Expr::And(a, b) => resolve(a, find).and_then(|()| resolve(b, find)),
        Expr::Not(a) => resolve(a, find),
        Expr::Compare(a, _, b) => find([a, b]),
    }
}

/// Replaces what is not a field, or a string, by the name of a value where the field on the other side has such a name.
fn name_values(schema: &Schema, left: &mut Operand, right: &mut Operand) {
    let named = |operand: &Operand, other: &Operand| -> Option<String> {
        let text = match operand {
            Operand::Field(name, _) if look_up(schema, name).is_none() => name,
            Operand::Bytes(bytes) => std::str::from_utf8(bytes).ok()?,
            _ => return None,
        };
        let Operand::Field(field, _) = other else { return None };
        let Some(Name::Leaves(records)) = look_up(schema, field) else { return None };
        let mut leaves = records
            .iter()
            .zip(&schema.dtd.records)
            .flat_map(|(ids, record)| ids.iter().filter_map(|&id| record.leaves.get(usize::from(id))));
        leaves.any(|leaf| number_of(leaf, text).is_some()).then(|| text.to_owned())
    };
    match (named(left, right), named(right, left)) {
        (Some(name), _) => *left = Operand::Name(name),
        (_, Some(name)) => *right = Operand::Name(name),
        (None, None) => {}
    }
}

fn look_up(schema: &Schema, name: &str) -> Option<Name> {
    match name {
        "@section" => return Some(Name::Section),
        "@record" => return Some(Name::Record),
        "@offset" => return Some(Name::Offset),
        _ => {}
    }
    let matches = |path: &str| path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    let of_record = |record: &schema::Record| -> Vec<u8> {
        let names = fields::names(record).into_iter();
        names.filter(|(id, path)| matches(path) && !is_tag(record, *id)).map(|(id, _)| id.0).collect()
    };
    // The fields of the three predefined records are none of a data record.
    let records: Vec<Vec<u8>> =
        schema.dtd.records.iter().enumerate().map(|(i, r)| if i < 3 { Vec::new() } else { of_record(r) }).collect();
    records.iter().any(|r| !r.is_empty()).then_some(Name::Leaves(records))
}

fn is_tag(record: &schema::Record, id: schema::LeafId) -> bool {
    fields::leaf(record, id).is_some_and(schema::Leaf::is_tag)
}

fn unknown(schema: &Schema, name: &str) -> String {
    let mut known: Vec<String> = Vec::new();
    for record in schema.dtd.records.iter().skip(3) {
        for (id, path) in fields::names(record) {
            if !is_tag(record, id) && !known.contains(&path) {
                known.push(path);
            }
        }
    }
    known.truncate(30);
    format!("no record has a field `{name}`; there are: {}", known.join(", "))
}

fn value(format: schema::Format, item: Item<'_>) -> Value<'_> {
    match item {
        Item::Bytes(bytes) => {
            Value::Bytes(bytes.get(..bytes.len() - format.tail_of_bytes(bytes).len()).unwrap_or_default())
        }
        Item::Number(n) => match format {
            schema::Format::F64 => Value::Float(f64::from_bits(n)),
            _ => integer(format, n),
        },
    }
}

/// Returns the number that a name or a word stands for: `zombie`, `true`, `10.0.0.1`.
fn number_of(leaf: &schema::Leaf, text: &str) -> Option<u64> {
    leaf.names.value(text).or_else(|| leaf.format.number_of_word(text))
}

fn integer(format: schema::Format, n: u64) -> Value<'static> {
    Value::Integer(if format == schema::Format::Signed { n.cast_signed().into() } else { n.into() })
}

/// Puts numbers in place of names: both sides are then compared as they are. `None` where the field knows no such name.
fn without_names<'v>(value: Value<'v>, other: Value<'v>) -> Option<Value<'v>> {
    match (value, other) {
        (Value::Named(n, leaf), _) => Some(integer(leaf.format, n)),
        (Value::Name(name), Value::Named(_, leaf)) => Some(integer(leaf.format, number_of(leaf, name)?)),
        (Value::Name(name), Value::Bytes(_)) => Some(Value::Bytes(name.as_bytes())),
        (Value::Name(_), _) => None,
        (value, _) => Some(value),
    }
}

/// Numbers of different kinds are compared as floating point; numbers and bytes are never anything to each other.
fn compare(left: Value<'_>, op: Op, right: Value<'_>) -> bool {
    let (Some(left), Some(right)) = (without_names(left, right), without_names(right, left)) else {
        return op == Op::NotEqual;
    };
    if let (Op::Bits, Value::Integer(a), Value::Integer(b)) = (op, left, right) {
        return a & b != 0;
    }
    #[allow(clippy::cast_precision_loss, reason = "a comparison with a floating point number")]
    let ordering = match (left, right) {
        (Value::Bytes(a), Value::Integer(_)) if op == Op::Set => return !a.is_empty(),
        (Value::Float(a), Value::Integer(_)) if op == Op::Set => return a != 0.0,
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(&b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b),
        (Value::Integer(a), Value::Float(b)) => (a as f64).partial_cmp(&b),
        (Value::Float(a), Value::Integer(b)) => a.partial_cmp(&(b as f64)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        _ => return false,
    };
    match op {
        Op::Equal => ordering == Some(Ordering::Equal),
        Op::NotEqual | Op::Set => ordering != Some(Ordering::Equal),
        Op::Less => ordering == Some(Ordering::Less),
        Op::LessEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        Op::Greater => ordering == Some(Ordering::Greater),
        Op::GreaterEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
        Op::Bits => false,
    }
}

/// Which leaf each value in the owned record is of.
fn order(record: &Record, owned: &OwnedRecord, leaves: &mut Vec<u8>) {
    let Ok(()) = record.walk(record.first_value(), &mut Named { owned, leaves, last: [0; 256] });
}

/// An owned record whose values are found by their leaves.
struct Named<'o> {
    owned: &'o OwnedRecord,
    leaves: &'o mut Vec<u8>,
    /// By leaf.
    last: [u64; 256],
}

impl Steps for Named<'_> {
    type Error = Infallible;

    fn number(&mut self, leaf: u8) -> Result<(), Infallible> {
        if let Some(Item::Number(n)) = self.owned.get(self.leaves.len()) {
            self.last[usize::from(leaf)] = n;
        }
        self.bytes(leaf)
    }

    fn bytes(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.leaves.push(leaf);
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64, Infallible> {
        Ok(self.last[usize::from(count)])
    }
}
