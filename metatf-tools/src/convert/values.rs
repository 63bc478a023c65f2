//! Converts the values of a record to the layout of another record.

use super::fields::{FieldSources, Origin};
use super::{ConvertError, at_record};
use crate::value_indices::ValueIndices;
use metatf::container::ErrorKind;
use metatf::dynamic::{OwnedRecord, Trace};
use metatf::format::{LeafKind, Record, Steps};
use metatf::internals::evaluate;
use metatf::reader::{At, Item};

/// Maximum length of a byte array that has no source field and is filled with zeros.
const LONGEST: u64 = 64 << 20;

/// Maximum number of repeated items in a record whose count is computed because it has no source field.
const MOST_MADE: u64 = 1 << 20;

pub(super) enum Problem {
    /// A value does not fit in the target record.
    Values(ErrorKind),
    /// An offset cannot be converted.
    Moving(ConvertError),
}

impl Problem {
    /// Adds the location of a record to the error.
    pub(super) fn at(self, trace: &Trace<'_>, at: At) -> ConvertError {
        match self {
            Self::Values(kind) => ConvertError::Read(at_record(trace, at, kind)),
            Self::Moving(error) => error,
        }
    }
}

/// Converts an offset, given the section and offset in the source and the section in the target.
pub(super) type Offset<'o, 'a> = &'o mut dyn FnMut(&mut Trace<'a>, (usize, u64, usize)) -> Result<u64, ConvertError>;

/// Fills `out` with the values of a target record, converted from the values of a source record.
pub(super) fn fill<'a>(
    out: &mut OwnedRecord,
    record: &Record,
    fields: &FieldSources,
    (read, indices): (&OwnedRecord, &ValueIndices),
    seen: &mut Seen,
    trace: &mut Trace<'a>,
    offset: Offset<'_, 'a>,
) -> Result<(), Problem> {
    out.clear();
    seen.next.clear();
    seen.next.resize(indices.leaves(), 0);
    seen.made = 0;
    seen.last.clear();
    seen.last.resize(record.leaves.len(), 0);
    record.walk(record.first_value(), &mut FieldFiller { out, record, fields, read, indices, seen, trace, offset })
}

/// The progress of converting a record. Its memory is reused for the next record.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The number of values consumed from each source leaf.
    next: Vec<usize>,
    /// The last value of each target leaf.
    last: Vec<u64>,
    /// The number of repeated items whose count has no source field and is computed by an expression of the target.
    made: u64,
}

struct FieldFiller<'f, 'a> {
    out: &'f mut OwnedRecord,
    record: &'f Record,
    fields: &'f FieldSources,
    read: &'f OwnedRecord,
    indices: &'f ValueIndices,
    seen: &'f mut Seen,
    trace: &'f mut Trace<'a>,
    offset: Offset<'f, 'a>,
}

impl Steps for FieldFiller<'_, '_> {
    type Error = Problem;

    fn number(&mut self, leaf: u8) -> Result<(), Problem> {
        let value = self.number_of(leaf)?;
        if let Some(last) = self.seen.last.get_mut(usize::from(leaf)) {
            *last = value;
        }
        self.out.push_number(value);
        Ok(())
    }

    fn bytes(&mut self, leaf: u8) -> Result<(), Problem> {
        if let Origin::Field(source) = self.origin(leaf) {
            let item = self.take(source)?;
            self.out.push_bytes(item.bytes());
            return Ok(());
        }
        let length = match self.record.leaves.get(usize::from(leaf)).map(|l| &l.kind) {
            Some(LeafKind::Array(n)) => Some(u64::from(*n)),
            Some(LeafKind::Variable(program)) => evaluate(program, |l| self.last(l)),
            _ => Some(0),
        };
        let length = length.ok_or(Problem::Values(ErrorKind::Expression))?;
        match usize::try_from(length) {
            Ok(n) if length <= LONGEST => self.out.push_bytes(&vec![0; n]),
            _ => return Err(Problem::Values(ErrorKind::Length(length))),
        }
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64, Problem> {
        let items = self.last(count);
        if self.origin(count) == Origin::Computed {
            self.seen.made = self.seen.made.saturating_add(items);
            if self.seen.made > MOST_MADE {
                return Err(Problem::Values(ErrorKind::TooManyItems(self.seen.made)));
            }
        }
        Ok(items)
    }
}

impl<'f> FieldFiller<'f, '_> {
    /// Returns the last value of a target leaf.
    fn last(&self, leaf: u8) -> u64 {
        self.seen.last.get(usize::from(leaf)).copied().unwrap_or(0)
    }

    fn origin(&self, leaf: u8) -> Origin {
        self.fields.origin(leaf)
    }

    fn number_of(&mut self, leaf: u8) -> Result<u64, Problem> {
        match self.origin(leaf) {
            Origin::Field(source) => self.take_number(source),
            Origin::Offset { leaf, from, to } => {
                let value = self.take_number(leaf)?;
                (self.offset)(self.trace, (from, value, to)).map_err(Problem::Moving)
            }
            Origin::LengthOf(source) => {
                let place = self.seen.next.get(usize::from(source)).and_then(|&next| self.indices.of(source).get(next));
                let item = place.and_then(|&place| self.read.get(place));
                Ok(item.map_or(0, |item| item.bytes().len() as u64))
            }
            Origin::Value(value) => Ok(value),
            Origin::Computed => self.computed(leaf),
        }
    }

    /// Returns the value of a computed count.
    fn computed(&self, leaf: u8) -> Result<u64, Problem> {
        let value = match self.record.leaves.get(usize::from(leaf)).map(|l| &l.kind) {
            Some(LeafKind::Computed(program)) => evaluate(program, |l| self.last(l)),
            _ => None,
        };
        value.ok_or(Problem::Values(ErrorKind::Expression))
    }

    fn take_number(&mut self, source: u8) -> Result<u64, Problem> {
        match self.take(source)? {
            Item::Number(n) => Ok(n),
            Item::Bytes(_) => Err(Problem::Values(ErrorKind::Usage("expected a number, found a byte array"))),
        }
    }

    /// Returns the next value of a source leaf.
    fn take(&mut self, source: u8) -> Result<Item<'f>, Problem> {
        let (indices, read) = (self.indices, self.read);
        let item = self.seen.next.get_mut(usize::from(source)).and_then(|next| {
            *next += 1;
            indices.of(source).get(*next - 1).and_then(|&place| read.get(place))
        });
        item.ok_or(Problem::Values(ErrorKind::Usage("the record repeats a field too few times for the target")))
    }
}
