//! What fields are to the tools, by the annotation `role` (spec 2): the time of a record, its thread, labels of addresses, numbers of spans.
//! What an emitter fills in by `source` has the same role, unless another one is given.

use metatf_parser::schema::{Format, Leaf, LeafId, Record};

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
    /// The process that made it, or the trace that it comes from.
    Process,
    /// The number of a span.
    Span,
}

/// Returns an annotation of a leaf, without its quotes.
pub(crate) fn annotation<'l>(leaf: &'l Leaf, name: &str) -> Option<&'l str> {
    leaf.annotations.get(name).map(|text| text.trim_matches('"'))
}

/// Returns the role of a leaf.
pub(crate) fn of(leaf: &Leaf) -> Option<Role> {
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
        _ => None,
    }
}

/// Returns the nanoseconds in a step of a time: 1 of one that says nothing.
pub(crate) fn nanoseconds(leaf: &Leaf) -> u64 {
    match (leaf.unit.as_deref(), leaf.format) {
        (Some("us"), _) | (None, Format::TimeUs) => 1_000,
        (Some("ms"), _) => 1_000_000,
        (Some("s"), _) | (None, Format::TimeS) => 1_000_000_000,
        _ => 1,
    }
}

/// Returns the first leaf of a record with this role.
pub(crate) fn first(record: &Record, role: Role) -> Option<LeafId> {
    (0..=u8::MAX).map(LeafId).zip(&record.leaves).find(|(_, leaf)| of(leaf) == Some(role)).map(|(id, _)| id)
}

/// Returns the place of a leaf in the owned records of its record; `None` where that depends on a repetition, and of a tag.
pub(crate) fn place(record: &Record, id: LeafId) -> Option<usize> {
    let before = record.leaves.get(..usize::from(id.0))?;
    let leaf = record.leaf(id)?;
    let moves = leaf.repeated || before.iter().any(|leaf| leaf.repeated) || leaf.is_tag();
    (!moves).then(|| before.iter().filter(|leaf| !leaf.is_tag()).count())
}
