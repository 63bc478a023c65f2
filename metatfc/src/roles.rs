//! What fields are to the tools, by the annotation `role` (spec 2): the time of a record, its thread, labels of addresses, numbers of spans.

use metatf::dynamic::{Item, OwnedRecord};
use metatf_parser::schema::{Leaf, LeafId, Record};

/// The role of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// When the record was.
    Time,
    /// The number of a string.
    StringId,
    /// The string with the number that is in the same record.
    String,
    /// An address that gets the string whose number is in the same record as its label.
    Labelled,
    /// An address that is shown with its label.
    Address,
    /// The thread that made the record.
    Thread,
    /// The number of a span.
    Span,
}

/// Returns the role of a leaf.
pub(crate) fn of(leaf: &Leaf) -> Option<Role> {
    match leaf.annotations.get("role")?.trim_matches('"') {
        "time" => Some(Role::Time),
        "string_id" => Some(Role::StringId),
        "string" => Some(Role::String),
        "labelled" => Some(Role::Labelled),
        "address" => Some(Role::Address),
        "thread" => Some(Role::Thread),
        "span" => Some(Role::Span),
        _ => None,
    }
}

/// Returns the first leaf of a record with this role.
pub(crate) fn first(record: &Record, role: Role) -> Option<LeafId> {
    (0..=u8::MAX).map(LeafId).zip(&record.leaves).find(|(_, leaf)| of(leaf) == Some(role)).map(|(id, _)| id)
}

/// Where the value of a leaf is in the owned records of its record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// So many values are before it.
    Behind(usize),
    /// A repetition is before it, and so many values are behind it.
    Before(usize),
}

impl Place {
    /// Returns the place of a leaf; `None` where repetitions stand on both sides, of a repeated leaf, and of a tag.
    pub(crate) fn of(record: &Record, id: LeafId) -> Option<Self> {
        record.leaf(id).filter(|leaf| !leaf.is_tag() && !leaf.repeated)?;
        let (before, behind) = record.leaves.split_at_checked(usize::from(id.0))?;
        let behind = behind.get(1..)?;
        let count = |leaves: &[Leaf]| {
            let fixed = !leaves.iter().any(|leaf| leaf.repeated);
            fixed.then(|| leaves.iter().filter(|leaf| !leaf.is_tag()).count())
        };
        count(before).map(Self::Behind).or_else(|| count(behind).map(Self::Before))
    }

    /// Returns the value.
    pub(crate) fn value(self, owned: &OwnedRecord) -> Option<Item<'_>> {
        match self {
            Self::Behind(before) => owned.get(before),
            Self::Before(behind) => owned.get(owned.len().checked_sub(behind + 1)?),
        }
    }

    /// Returns the value if it is a number.
    pub(crate) fn number(self, owned: &OwnedRecord) -> Option<u64> {
        match self.value(owned)? {
            Item::Number(number) => Some(number),
            Item::Bytes(_) => None,
        }
    }
}
