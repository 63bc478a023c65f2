//! The language of conditions on the fields of a row, used by `--where`, SQL predicates and Python's `where`.
//!
//! ```text
//! or         = and { ( "||" | "or" ) and } ;
//! and        = not { ( "&&" | "and" ) not } ;
//! not        = ( "!" | "not" ) not | "(" or ")" | comparison ;
//! comparison = operand [ operator operand | [ "not" ] "in" "(" operand { "," operand } ")" ] ;
//! operator   = "==" | "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" | "&" ;
//! operand    = field | number | string | name of a value ;
//! ```
//!
//! A field name alone tests that the value is neither zero nor empty. If a row contains several values of a field, a
//! comparison holds if it holds for at least one value; if the row contains no value, the comparison is false.
//!
//! ```
//! use metatf_tools::condition::{Condition, Fields, Kinds, Row, Value};
//!
//! struct Columns;
//! impl Fields for Columns {
//!     type Field = usize;
//!     fn find(&self, name: &str) -> Option<usize> {
//!         self.names().iter().position(|known| known == name)
//!     }
//!     fn kinds(&self, _: &usize) -> Kinds {
//!         Kinds { numbers: true, bytes: false }
//!     }
//!     fn has_name(&self, _: &usize, _: &str) -> bool {
//!         false
//!     }
//!     fn names(&self) -> Vec<String> {
//!         vec!["size".to_owned(), "thread".to_owned()]
//!     }
//! }
//!
//! struct Numbers([i128; 2]);
//! impl Row<usize> for Numbers {
//!     fn any(&self, column: &usize, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
//!         self.0.get(*column).is_some_and(|&n| test(Value::Integer(n)))
//!     }
//! }
//!
//! let condition = Condition::parse("size >= 4096 && thread not in (1, 2)", &Columns)?;
//! assert!(condition.holds(&Numbers([5000, 3])));
//! assert!(!condition.holds(&Numbers([5000, 2])));
//!
//! let error = Condition::parse("sise > 1", &Columns).unwrap_err().to_string();
//! assert!(error.starts_with("unknown field `sise`; available fields: size, thread"));
//! # Ok::<(), metatf_tools::condition::ConditionError>(())
//! ```

mod limits;
mod parse;
mod value;

pub use value::{Value, integer, leaf_number};

use std::fmt;

use metatf::container::TimeRange;
use parse::Name;
use value::{Op, compare};

/// A condition whose fields, of type `F`, have been found. See the [module](crate::condition) for an example.
#[derive(Clone, Debug)]
pub struct Condition<F>(Expr<F>);

/// The fields that a condition can use.
pub trait Fields {
    /// A field, found by its name.
    type Field;

    /// Returns the field of this name.
    fn find(&self, name: &str) -> Option<Self::Field>;

    /// Returns the kinds of values that a field can have.
    fn kinds(&self, field: &Self::Field) -> Kinds;

    /// Returns whether `text`, such as `zombie` or `true`, names a value of the field.
    fn has_name(&self, field: &Self::Field, text: &str) -> bool;

    /// Returns the names of all fields, for messages.
    fn names(&self) -> Vec<String>;
}

/// The values of one row.
pub trait Row<F> {
    /// Returns whether `test` holds for at least one value of a field.
    fn any(&self, field: &F, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool;
}

/// The kinds of values that a field can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Integers or floating-point numbers.
    pub numbers: bool,
    /// Byte strings, including text.
    pub bytes: bool,
}

/// A mistake in a condition. `Display` prints the condition with a mark under the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    text: String,
    /// The byte offset of the mistake in the text.
    at: usize,
    message: String,
}

/// An expression. The parser bounds its depth.
#[derive(Clone, Debug, PartialEq)]
enum Expr<F> {
    Or(Box<Expr<F>>, Box<Expr<F>>),
    And(Box<Expr<F>>, Box<Expr<F>>),
    Not(Box<Expr<F>>),
    Compare(Operand<F>, Op, Operand<F>),
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
enum Operand<F> {
    Field(F),
    Integer(i128),
    Float(f64),
    Bytes(Vec<u8>),
    /// The name of a value of the field on the other side. The parser reads such a name as a field or as a string.
    Name(String),
}

impl<F> Condition<F> {
    /// Parses a condition and finds its fields.
    ///
    /// # Errors
    /// The syntax is wrong, a field is unknown, or a number is compared with a string.
    pub fn parse(text: &str, fields: &impl Fields<Field = F>) -> Result<Self, ConditionError> {
        let resolve = |expr: Expr<Name>| expr.map(&mut |operands| sides(operands, fields));
        match parse::parse(text).and_then(resolve) {
            Ok(expr) => Ok(Self(expr)),
            Err(mistake) => Err(ConditionError { text: text.to_owned(), at: mistake.at, message: mistake.message }),
        }
    }

    /// Returns whether the condition holds for a row.
    pub fn holds(&self, row: &impl Row<F>) -> bool {
        self.0.holds(row)
    }

    /// Returns the times for which the condition can hold, so that rows with other times need not be read. Every field
    /// for which `is_time` is true must be the time, of which a row contains at most one. `named` returns the number of
    /// a name or word.
    ///
    /// ```
    /// # use metatf_tools::condition::{Condition, Fields, Kinds};
    /// # struct Columns;
    /// # impl Fields for Columns {
    /// #     type Field = String;
    /// #     fn find(&self, name: &str) -> Option<String> { Some(name.to_owned()) }
    /// #     fn kinds(&self, _: &String) -> Kinds { Kinds { numbers: true, bytes: false } }
    /// #     fn has_name(&self, _: &String, _: &str) -> bool { false }
    /// #     fn names(&self) -> Vec<String> { Vec::new() }
    /// # }
    /// let condition = Condition::parse("time >= 10 && size > 5 && (time < 20 || time == 30)", &Columns)?;
    /// let times = condition.times(&|field| field == "time", &|_, _| None);
    /// assert_eq!((times.lowest, times.highest), (10, 30));
    /// # Ok::<(), metatf_tools::condition::ConditionError>(())
    /// ```
    pub fn times(&self, is_time: &dyn Fn(&F) -> bool, named: &dyn Fn(&F, &str) -> Option<i128>) -> TimeRange {
        const MOST: i128 = u64::MAX as i128;
        let (lowest, highest) = limits::of(&self.0, is_time, named);
        let time = |n: i128| u64::try_from(n.clamp(0, MOST)).unwrap_or(u64::MAX);
        match lowest > highest || highest < 0 || lowest > MOST {
            true => TimeRange::EMPTY,
            false => TimeRange { lowest: time(lowest), highest: time(highest) },
        }
    }

    /// Calls `f` with each field of the condition.
    pub fn for_each_field(&self, mut f: impl FnMut(&F)) {
        self.0.for_each_field(&mut f);
    }
}

impl<F> Expr<F> {
    fn holds(&self, row: &impl Row<F>) -> bool {
        match self {
            Self::Or(a, b) => a.holds(row) || b.holds(row),
            Self::And(a, b) => a.holds(row) && b.holds(row),
            Self::Not(a) => !a.holds(row),
            Self::Compare(left, op, right) => left.any(row, &mut |l| right.any(row, &mut |r| compare(l, *op, r))),
        }
    }

    fn for_each_field(&self, f: &mut impl FnMut(&F)) {
        match self {
            Self::Or(a, b) | Self::And(a, b) => {
                a.for_each_field(f);
                b.for_each_field(f);
            }
            Self::Not(a) => a.for_each_field(f),
            Self::Compare(left, _, right) => {
                for operand in [left, right] {
                    if let Operand::Field(field) = operand {
                        f(field);
                    }
                }
            }
        }
    }

    /// Replaces the operands of every comparison by the result of `sides`.
    fn map<G>(self, sides: &mut impl FnMut(Sides<F>) -> parse::Result<Sides<G>>) -> parse::Result<Expr<G>> {
        Ok(match self {
            Self::Or(a, b) => Expr::Or(Box::new(a.map(sides)?), Box::new(b.map(sides)?)),
            Self::And(a, b) => Expr::And(Box::new(a.map(sides)?), Box::new(b.map(sides)?)),
            Self::Not(a) => Expr::Not(Box::new(a.map(sides)?)),
            Self::Compare(left, op, right) => {
                let (left, op, right) = sides((left, op, right))?;
                Expr::Compare(left, op, right)
            }
        })
    }
}

impl<F> Operand<F> {
    fn any(&self, row: &impl Row<F>, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
        match self {
            Self::Field(field) => row.any(field, test),
            Self::Integer(n) => test(Value::Integer(*n)),
            Self::Float(f) => test(Value::Float(*f)),
            Self::Bytes(bytes) => test(Value::Bytes(bytes)),
            Self::Name(name) => test(Value::Name(name)),
        }
    }

    fn kinds(&self, fields: &impl Fields<Field = F>) -> Kinds {
        match self {
            Self::Field(field) => fields.kinds(field),
            Self::Integer(_) | Self::Float(_) => Kinds { numbers: true, bytes: false },
            Self::Bytes(_) => Kinds { numbers: false, bytes: true },
            Self::Name(_) => Kinds { numbers: true, bytes: true },
        }
    }
}

/// Returns whether a name in a condition denotes the field at this path, because the name equals the path or its end
/// after a dot.
#[must_use]
pub fn names_field(name: &str, path: &str) -> bool {
    path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

/// A comparison.
type Sides<F> = (Operand<F>, Op, Operand<F>);

/// Resolves the fields of a comparison and the names of their values.
fn sides<T: Fields>((left, op, right): Sides<Name>, fields: &T) -> parse::Result<Sides<T::Field>> {
    let described = [describe(&left), describe(&right)];
    let names = [named(&left, &right, fields), named(&right, &left, fields)];
    let is_named = [names[0], names[1] && !names[0]];
    let at = [&left, &right].into_iter().find_map(|side| match side {
        Operand::Field(name) => Some(name.at),
        _ => None,
    });
    let [left, right] = [(left, is_named[0]), (right, is_named[1])].map(|(side, is_name)| find(side, is_name, fields));
    let (left, right) = (left?, right?);
    let (a, b) = (left.kinds(fields), right.kinds(fields));
    if op == Op::Set || (a.numbers && b.numbers) || (a.bytes && b.bytes) {
        return Ok((left, op, right));
    }
    let [left, right] = [(&described[0], a), (&described[1], b)]
        .map(|(text, kinds)| format!("{text} ({})", if kinds.numbers { "a number" } else { "a string" }));
    parse::fail(at.unwrap_or(0), format!("cannot compare {left} with {right}"))
}

/// Returns whether an operand is the name of a value of the field on the other side. The operand may be a string or an
/// unknown field.
fn named<T: Fields>(operand: &Operand<Name>, other: &Operand<Name>, fields: &T) -> bool {
    let text = match operand {
        Operand::Field(name) if fields.find(&name.text).is_none() => Some(name.text.as_str()),
        Operand::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    let (Some(text), Operand::Field(other)) = (text, other) else { return false };
    fields.find(&other.text).is_some_and(|field| fields.has_name(&field, text))
}

fn find<T: Fields>(operand: Operand<Name>, is_name: bool, fields: &T) -> parse::Result<Operand<T::Field>> {
    Ok(match operand {
        Operand::Field(name) if is_name => Operand::Name(name.text),
        Operand::Bytes(bytes) if is_name => Operand::Name(String::from_utf8_lossy(&bytes).into_owned()),
        Operand::Field(name) => match fields.find(&name.text) {
            Some(field) => Operand::Field(field),
            None => {
                let mut known = fields.names();
                known.truncate(30);
                let message = format!("unknown field `{}`; available fields: {}", name.text, known.join(", "));
                return parse::fail(name.at, message);
            }
        },
        Operand::Integer(n) => Operand::Integer(n),
        Operand::Float(f) => Operand::Float(f),
        Operand::Bytes(bytes) => Operand::Bytes(bytes),
        Operand::Name(name) => Operand::Name(name),
    })
}

/// Formats an operand for messages.
fn describe(operand: &Operand<Name>) -> String {
    match operand {
        Operand::Field(name) => format!("`{}`", name.text),
        Operand::Integer(n) => format!("`{n}`"),
        Operand::Float(f) => format!("`{f}`"),
        Operand::Bytes(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Operand::Name(name) => format!("{name:?}"),
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text.get(..self.at).map_or(0, |before| before.chars().count());
        let text = self.text.replace(['\n', '\r', '\t'], " ");
        // Not a width: formatting panics beyond 65535.
        write!(f, "{}\n    {text}\n    {}^", self.message, " ".repeat(column))
    }
}

impl std::error::Error for ConditionError {}
