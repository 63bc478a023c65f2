//! The meaning of fields to the tools, as set by the annotation `role` (spec 2), such as the time or the thread of a
//! record, address labels and span numbers. Unless `role` is set, the annotation `source` of an emitter determines the
//! role.
//!
//! ```
//! use metatf::dynamic::{OwnedRecord, Schema};
//! use metatf_tools::roles::{Place, Role, first};
//!
//! let dtd = br#"section heap 1 {
//!     malloc: (tag, size, end) { tag.value = 4; size.width = 4; size.interpretation = none;
//!                                end.width = 8; end.interpretation = none; end.role = "time"; }
//! }"#;
//! let schema = Schema::parse("heap.dtd", dtd)?;
//! let mut owned = OwnedRecord::default();
//! schema.read_json(br#"{"@section":"heap","@record":"malloc","size":24,"end":1500}"#, &mut owned)?;
//!
//! // Records 0 to 2 are predefined.
//! let record = schema.record(3).ok_or("no such record")?;
//! let time = first(record, Role::Time).and_then(|id| Place::of(record, id)).ok_or("no time")?;
//! assert_eq!(time.number(&owned), Some(1500));
//! time.set_number(&mut owned, 1600);
//! assert_eq!(time.number(&owned), Some(1600));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::fields::Cursor;
use metatf::dynamic::{Item, OwnedRecord};
use metatf_parser::schema::{Leaf, LeafId, Occurrence, Record};
use std::sync::Arc;

/// The role of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The time of the record.
    Time,
    /// The ID of a string.
    StringId,
    /// The string whose ID is in the same record.
    String,
    /// An address labeled with the string whose ID is in the same record.
    Labelled,
    /// An address to show with its label.
    Address,
    /// The thread that wrote the record.
    Thread,
    /// The process that wrote the record, or the input trace that contained the record.
    Process,
    /// The number of a span.
    Span,
    /// The number of the parent span.
    Parent,
    /// The severity as a number; smaller numbers are more severe.
    Level,
    /// The part of the program that the record belongs to.
    Target,
    /// A source file.
    File,
    /// A line in the source file.
    Line,
    /// Comma-separated field names.
    Fields,
    /// The index of a field in the list of field names.
    Field,
    /// The value of a field.
    Value,
    /// The name of the thread.
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
    if leaf.is_time() {
        return Some(Role::Time);
    }
    let Some(role) = annotation(leaf, "role") else {
        return match annotation(leaf, "source")? {
            "thread" => Some(Role::Thread),
            "process" => Some(Role::Process),
            _ => None,
        };
    };
    match role {
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

/// Returns the record's first leaf with this role.
#[must_use]
pub fn first(record: &Record, role: Role) -> Option<LeafId> {
    (0..=u8::MAX).map(LeafId).zip(&record.leaves).find(|(_, leaf)| of(leaf) == Some(role)).map(|(id, _)| id)
}

/// The position of a leaf's value in the owned records of its record type. See the [module](crate::roles) for an
/// example.
#[derive(Clone, Debug)]
pub enum Place {
    /// The number of values before the leaf.
    Behind(usize),
    /// The number of values after the leaf, if a repetition precedes the leaf.
    Before(usize),
    /// A leaf between repetitions, whose position depends on the numbers of their items.
    Between(Arc<Record>, LeafId),
}

impl Place {
    /// Returns the position of a leaf that [occurs once](Record::occurrence). Returns `None` for other leaves and for a
    /// tag.
    #[must_use]
    pub fn of(record: &Record, id: LeafId) -> Option<Self> {
        record.leaf(id).filter(|leaf| !leaf.is_tag() && record.occurrence(id) == Occurrence::Once)?;
        let (before, behind) = record.leaves.split_at_checked(usize::from(id.0))?;
        let behind = behind.get(1..)?;
        let count = |leaves: &[Leaf]| {
            let fixed = !leaves.iter().any(|leaf| leaf.repeated);
            fixed.then(|| leaves.iter().filter(|leaf| !leaf.is_tag()).count())
        };
        let fixed = count(before).map(Self::Behind).or_else(|| count(behind).map(Self::Before));
        Some(fixed.unwrap_or_else(|| Self::Between(Arc::new(record.clone()), id)))
    }

    /// Returns the index among the values of a record.
    #[must_use]
    pub fn index(&self, owned: &OwnedRecord) -> Option<usize> {
        match self {
            Self::Behind(before) => Some(*before),
            Self::Before(behind) => owned.len().checked_sub(behind + 1),
            Self::Between(record, id) => Cursor::new(record, owned).index_of(*id),
        }
    }

    /// Returns the value.
    #[must_use]
    pub fn value<'o>(&self, owned: &'o OwnedRecord) -> Option<Item<'o>> {
        owned.get(self.index(owned)?)
    }

    /// Returns the value if it is a number.
    #[must_use]
    pub fn number(&self, owned: &OwnedRecord) -> Option<u64> {
        match self.value(owned)? {
            Item::Number(number) => Some(number),
            Item::Bytes(_) => None,
        }
    }

    /// Sets the value, which must be a number.
    pub fn set_number(&self, owned: &mut OwnedRecord, number: u64) {
        if let Some(index) = self.index(owned) {
            owned.set_number(index, number);
        }
    }
}
