//! Values and their comparison.

use std::cmp::Ordering;

use metatf_parser::schema::{Format, Leaf};

/// A value of a row, or of a condition.
#[derive(Clone, Copy)]
pub enum Value<'v> {
    /// An integer.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// A byte string, which is UTF-8 for text.
    Bytes(&'v [u8]),
    /// An integer, and the function that returns the integer of a name.
    Named(i128, &'v dyn Fn(&str) -> Option<i128>),
    /// The name of a value.
    Name(&'v str),
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// At least one of these bits is set.
    Bits,
    /// The test of a field without an operator: its value must be neither zero nor empty.
    Set,
}

/// Converts a leaf's number to the integer to compare in conditions.
#[must_use]
pub fn integer(leaf: &Leaf, n: u64) -> i128 {
    if leaf.format == Format::Signed { n.cast_signed().into() } else { n.into() }
}

/// Returns the integer for a name or a word of a leaf, such as `zombie`, `true` or `10.0.0.1`.
#[must_use]
pub fn leaf_number(leaf: &Leaf, text: &str) -> Option<i128> {
    let number = leaf.names.value(text).or_else(|| leaf.format.number_of_word(text));
    number.map(|n| integer(leaf, n))
}

/// Replaces names with their numbers. Returns `None` if the other side does not define the name.
fn without_names<'v>(value: Value<'v>, other: Value<'v>) -> Option<Value<'v>> {
    match (value, other) {
        (Value::Named(n, _), _) => Some(Value::Integer(n)),
        (Value::Name(name), Value::Named(_, number)) => number(name).map(Value::Integer),
        (Value::Name(name), Value::Bytes(_)) => Some(Value::Bytes(name.as_bytes())),
        (Value::Name(_), _) => None,
        (value, _) => Some(value),
    }
}

/// Compares two values. An integer and a floating-point number are compared as floating-point numbers. A comparison of
/// a number with bytes is false.
pub(super) fn compare(left: Value<'_>, op: Op, right: Value<'_>) -> bool {
    let (Some(left), Some(right)) = (without_names(left, right), without_names(right, left)) else {
        return op == Op::NotEqual;
    };
    if let (Op::Bits, Value::Integer(a), Value::Integer(b)) = (op, left, right) {
        return a & b != 0;
    }
    #[allow(clippy::cast_precision_loss, reason = "a comparison with a floating-point number")]
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
