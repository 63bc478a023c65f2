//! Code shared by the cross-crate tests of Meta-TF and the fuzz targets: random formats and traces, a reference
//! decoder, and the bodies of the fuzz targets. The tests are in the `tests` directory next to this crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test that goes wrong has to panic"
)]

pub mod attached;
pub mod buffers;
pub mod columns;
pub mod conformance;
pub mod editing;
pub mod example;
pub mod experiments;
pub mod fuzzed;
pub mod generated;
pub mod golden;
pub mod heap_forms;
pub mod importing;
pub mod merging;
pub mod models;
pub mod oracle;
pub mod random;
pub mod recoding;
pub mod runtime;
mod sharing;
pub mod spools;
pub mod suppressing;
pub mod symbolizing;
pub mod targets;
pub mod views;

/// Value of a leaf.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// Value of a numeric leaf.
    Number(u64),
    /// Value of a byte array.
    Bytes(Vec<u8>),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Bytes(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

/// One item read from a trace, represented the same way for every reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Kind of the item.
    pub what: What,
    /// Number of its section.
    pub section: u8,
    /// Name of its record, or empty if the item is not a record.
    pub record: String,
    /// `@offset` of spec 8, or 0 if there is none.
    pub offset: u64,
    /// Values of the record without the tag. For a metadata record: record, field, property, values.
    pub values: Vec<Value>,
}

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A data record or a comment.
    Record,
    /// An element of a stream section.
    Element,
    /// An element of a shared table.
    Shared,
    /// A metadata record.
    Metadata,
    /// A `section` record, which starts the section of this number.
    Section(u8),
    /// Start of a group.
    Group(u32),
    /// Reset of the section's state.
    Reset,
}
