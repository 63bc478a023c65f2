//! The data to write for each leaf of a record: the value of an argument, a value that telemetry fills in, or a value
//! that follows from other values.

use metatf_parser::schema::{Interpretation, Leaf, LeafId, Record, Width};

use crate::emitters::{self, Event, Given, Machine, first};
use crate::uses::{Uses, leaf};

/// The data to write for a leaf.
#[derive(Clone, Copy)]
pub(crate) enum Put {
    /// A constant with this number of bytes.
    Constant(u64, u8),
    /// The length of the argument with this index.
    Length(usize),
    Argument(usize, Machine),
    Clock,
    Thread,
    Process,
    /// A value that the emitter provides: the number of dropped events, or the wall-clock time.
    Own,
    /// The ID of a string, its length, and the string itself.
    OwnId,
    OwnLength,
    OwnText,
    /// A computed count, which stores nothing.
    Computed,
    /// The argument with this index, which is the number of items of a repetition.
    Count(usize),
    /// The argument with this index, which is an offset in a table.
    Reference(usize),
    /// The argument with this index, which is a byte array whose length is computed from other values.
    Measured(usize),
    /// The argument with this index, which is a byte array that ends before this byte.
    Until(usize, u8),
    /// An element's argument with this index, in the encoding of the DTD.
    Encoded(usize, Encoding),
    /// The length of an element's argument with this index, in this number of bytes.
    EncodedLength(usize, u8),
}

/// The encoding of a number in an element. No metadata can change this encoding.
#[derive(Clone, Copy)]
pub(crate) struct Encoding {
    pub(crate) machine: Machine,
    pub(crate) base: u64,
    pub(crate) width: u8,
    pub(crate) is_signed: bool,
    /// Whether the number is an offset in a table.
    pub(crate) is_reference: bool,
}

/// Returns the data to write for each leaf after the tag. An error is the reason why the record cannot be emitted.
pub(super) fn puts(record: &Record, event: &Event) -> Result<Vec<Put>, String> {
    let uses = Uses::of(record);
    let leaves = (0..=u8::MAX).map(LeafId).zip(&record.leaves).skip(first(record));
    let all = leaves.zip(&event.given).map(|((id, l), given)| {
        let put = put(record, l, *given, event, uses.is_count(id))?;
        if record.tag.is_some() { Ok(put) } else { element(l, put) }
    });
    all.collect()
}

fn put(record: &Record, l: &Leaf, given: Given, event: &Event, is_count: bool) -> Result<Put, String> {
    let name = emitters::named(l);
    Ok(match given {
        Given::Constant(value) => match (&l.interpretation, &l.width) {
            (Interpretation::None, Width::Number(width)) => Put::Constant(value, *width),
            (Interpretation::BaseOffset(base), Width::Number(width)) => {
                Put::Constant(value.wrapping_sub(*base), *width)
            }
            (Interpretation::Default(_) | Interpretation::Stride { .. }, _) => Put::Constant(0, 0),
            _ => return Err(format!("the stored value of the constant `{name}` depends on the previous record")),
        },
        Given::Length(data) => {
            let given = usize::from(data.0).checked_sub(first(record)).and_then(|at| event.given.get(at));
            match given {
                Some(Given::Argument(index)) if leaf(record, data).is_some_and(|l| !l.is_numeric()) => {
                    Put::Length(*index)
                }
                Some(Given::OwnText) => Put::OwnLength,
                _ => return Err(format!("`{name}` is the length of a field that is neither a string nor bytes")),
            }
        }
        Given::Computed => Put::Computed,
        Given::Argument(index) => match (&l.width, l.interpretation) {
            (Width::Until(end), _) => Put::Until(index, *end),
            (Width::Variable(_), _) if !has_length(event, record, l) => Put::Measured(index),
            (_, Interpretation::SectionOffset(_)) => Put::Reference(index),
            _ => match event.fields.get(index).map_or(Machine::Bool, |argument| argument.machine) {
                Machine::Unsigned(_) if is_count => Put::Count(index),
                machine => Put::Argument(index, machine),
            },
        },
        Given::Clock => Put::Clock,
        Given::Thread => Put::Thread,
        Given::Process => Put::Process,
        Given::Own => Put::Own,
        Given::OwnId => Put::OwnId,
        Given::OwnText => Put::OwnText,
    })
}

/// Returns whether a leaf stores only the length of this byte array.
fn has_length(event: &Event, record: &Record, data: &Leaf) -> bool {
    let is_data = |id: LeafId| leaf(record, id).is_some_and(|l| std::ptr::eq(l, data));
    event.given.iter().any(|given| matches!(given, Given::Length(id) if is_data(*id)))
}

/// Returns the data to write for a leaf of an element, whose encoding no metadata can change.
fn element(l: &Leaf, put: Put) -> Result<Put, String> {
    let name = emitters::named(l);
    let width = match l.width {
        Width::Number(width) => width,
        _ => 0,
    };
    let encoded = |index, machine, base, width| {
        let is_signed = matches!(l.interpretation, Interpretation::BaseOffset(_));
        Put::Encoded(
            index,
            Encoding { machine, base, width, is_signed, is_reference: matches!(put, Put::Reference(_)) },
        )
    };
    match (put, l.interpretation) {
        (Put::Clock | Put::Thread | Put::Process, _) => {
            Err(format!("`{name}` has a `source`, but an element does not belong to an event"))
        }
        (Put::Length(index), Interpretation::None) => Ok(Put::EncodedLength(index, width)),
        (Put::Argument(_, machine), _) if !machine.is_number() => Ok(put),
        (Put::Argument(index, machine), Interpretation::None) => Ok(encoded(index, machine, 0, width)),
        (Put::Argument(index, machine), Interpretation::BaseOffset(base)) => Ok(encoded(index, machine, base, width)),
        (Put::Argument(index, machine), Interpretation::Default(value)) => Ok(encoded(index, machine, value, 0)),
        (Put::Count(index), Interpretation::None) => Ok(encoded(index, Machine::Unsigned(64), 0, width)),
        (Put::Reference(index), _) => Ok(encoded(index, Machine::Id, 0, width)),
        (Put::Argument(..) | Put::Count(_) | Put::Length(_), _) => {
            Err(format!("the stored value of `{name}` depends on the previous element"))
        }
        _ => Ok(put),
    }
}

/// Returns the number of bytes in which a number is stored, and whether the number is signed. The base of signed
/// numbers is 0.
pub(crate) fn stored(put: Put) -> Option<(u8, bool)> {
    Some(match put {
        Put::Argument(_, Machine::Unsigned(bits)) => (bits / 8, false),
        Put::Argument(_, Machine::Signed(bits)) => (bits / 8, bits < 64),
        Put::Argument(_, Machine::Bool) => (1, false),
        Put::Argument(_, Machine::Single) => (4, false),
        Put::Argument(_, Machine::F32 | Machine::F64) | Put::Clock | Put::Own => (8, false),
        Put::Argument(_, Machine::Text | Machine::Bytes | Machine::Array(_))
        | Put::Constant(..)
        | Put::OwnText
        | Put::Computed
        | Put::Measured(_)
        | Put::Until(..)
        | Put::Encoded(..)
        | Put::EncodedLength(..) => return None,
        Put::Length(_) | Put::OwnLength => (2, false),
        Put::Argument(_, Machine::Id) | Put::Thread | Put::Process | Put::OwnId | Put::Count(_) | Put::Reference(_) => {
            (4, false)
        }
    })
}

/// Returns the maximum number of bytes of a leaf of a plain record.
pub(super) fn most(put: Put) -> usize {
    match put {
        Put::Constant(_, width) => usize::from(width),
        Put::Argument(_, Machine::Text) | Put::OwnText => 255,
        Put::Argument(_, Machine::Bytes) => 1024,
        Put::Argument(_, Machine::Array(bytes)) => usize::try_from(bytes).unwrap_or(usize::MAX),
        other => stored(other).map_or(0, |(width, _)| usize::from(width)),
    }
}
