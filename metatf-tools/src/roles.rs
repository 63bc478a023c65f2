//! What fields are to the tools, by the annotation `role` (spec 2): the time of a record, its thread, labels of addresses, numbers of spans.
//! What an emitter fills in by `source` has the same role, unless another one is given.

use metatf::dynamic::{Item, OwnedRecord};
use metatf_parser::schema::{Leaf, LeafId, Record};

/// The role of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
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
    /// The process that made it, or the trace that it comes from.
    Process,
    /// The number of a span.
    Span,
    /// The number of the span above.
    Parent,
    /// How severe it is: a number, the smaller the more.
    Level,
    /// The part of the program that it is of.
    Target,
    /// A file of the source.
    File,
    /// A line of that.
    Line,
    /// Names of fields, with commas between.
    Fields,
    /// The number of a field among these.
    Field,
    /// The value of a field.
    Value,
    /// What the thread is called.
    ThreadName,
}

/// Returns an annotation of a leaf, without its quotes.
#[must_use]
pub fn annotation<'l>(leaf: &'l Leaf, name: &str) -> Option<&'l str> {
    leaf.annotations.get(name).map(|text| text.trim_matches('"'))
}

/// Returns the role of a leaf.
#[must_use]
pub fn of(leaf: &Leaf) -> Option<Role> {
    let Some(role) = annotation(leaf, "role") else {
        return match annotation(leaf, "source")? {
            "clock" => Some(Role::Time),
            "thread" => Some(Role::Thread),
            "process" => Some(Role::Process),
            _ => None,
        };
    };
    match role {
        "time" => Some(Role::Time),
        "string_id" => Some(Role::StringId),
        "string" => Some(Role::String),
        "labelled" => Some(Role::Labelled),
        "address" => Some(Role::Address),
        "thread" => Some(Role::Thread),
        "process" => Some(Role::Process),
        "span" => Some(Role::Span),
        "parent" => Some(Role::Parent),
        "level" => Some(Role::Level),
        "target" => Some(Role::Target),
        "file" => Some(Role::File),
        "line" => Some(Role::Line),
        "fields" => Some(Role::Fields),
        "field" => Some(Role::Field),
        "value" => Some(Role::Value),
        "thread_name" => Some(Role::ThreadName),
        _ => None,
    }
}

/// Returns the first leaf of a record with this role.
#[must_use]
pub fn first(record: &Record, role: Role) -> Option<LeafId> {
    (0..=u8::MAX).map(LeafId).zip(&record.leaves).find(|(_, leaf)| of(leaf) == Some(role)).map(|(id, _)| id)
}

/// Where the value of a leaf is in the owned records of its record.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// This many values are before it.
    Behind(usize),
    /// A repetition is before it, and this many values are behind it.
    Before(usize),
}

impl Place {
    /// Returns the place of a leaf; `None` where repetitions stand on both sides, of a repeated leaf, and of a tag.
    #[must_use]
    pub fn of(record: &Record, id: LeafId) -> Option<Self> {
        record.leaf(id).filter(|leaf| !leaf.is_tag() && !leaf.repeated)?;
        let (before, behind) = record.leaves.split_at_checked(usize::from(id.0))?;
        let behind = behind.get(1..)?;
        let count = |leaves: &[Leaf]| {
            let fixed = !leaves.iter().any(|leaf| leaf.repeated);
            fixed.then(|| leaves.iter().filter(|leaf| !leaf.is_tag()).count())
        };
        count(before).map(Self::Behind).or_else(|| count(behind).map(Self::Before))
    }

    /// Returns the place among the values of a record.
    #[must_use]
    pub fn index(self, owned: &OwnedRecord) -> Option<usize> {
        match self {
            Self::Behind(before) => Some(before),
            Self::Before(behind) => owned.len().checked_sub(behind + 1),
        }
    }

    /// Returns the value.
    #[must_use]
    pub fn value(self, owned: &OwnedRecord) -> Option<Item<'_>> {
        owned.get(self.index(owned)?)
    }

    /// Returns the value if it is a number.
    #[must_use]
    pub fn number(self, owned: &OwnedRecord) -> Option<u64> {
        match self.value(owned)? {
            Item::Number(number) => Some(number),
            Item::Bytes(_) => None,
        }
    }

    /// Changes the value, which is a number.
    pub fn set_number(self, owned: &mut OwnedRecord, number: u64) {
        if let Some(index) = self.index(owned) {
            owned.set_number(index, number);
        }
    }
}
