//! What the cross-crate tests of Meta-TF and the fuzz targets share: random formats and traces, a reference decoder,
//! and the bodies of the fuzz targets. The tests are in the `tests` folder beside this crate.
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

/// A leaf's value.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// Of a numeric leaf.
    Number(u64),
    /// Of a byte array.
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

/// One thing read from a trace, the same for every reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub what: What,
    /// Number of its section.
    pub section: u8,
    /// Name of its record; empty where it is none.
    pub record: String,
    /// Spec 8's `@offset`; 0 where there is none.
    pub offset: u64,
    /// The record's values, the tag apart. Of a metadata record: record, field, property, values.
    pub values: Vec<Value>,
}

/// What was seen.
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
    /// A `section` record; it starts the section of this number.
    Section(u8),
    /// A group begins.
    Group(u32),
    /// State of the section is reset.
    Reset,
}
