//! Decoding a single record. Each tier has its own row type. They range from a row that uses the most compile-time
//! knowledge to a row that handles any record.

mod array;
mod decoding;
mod general;
mod log;
mod planned;
mod run;
mod scan;
mod specialized;
mod stateful;
mod tag;

pub(crate) use array::ArrayReader;
pub(crate) use decoding::Decoding;
pub use general::ContentRow;
#[cfg(test)]
pub(crate) use log::logged;
pub(crate) use log::{DecodedBy, log};
pub(crate) use planned::{PlannedRow, stops_silently};
pub(crate) use run::Run;
pub(crate) use specialized::{SpecializedRow, WINDOW};
pub(crate) use stateful::StatefulRow;
pub(crate) use tag::tag;

/// A row that knows the position of the next leaf.
pub(crate) trait Placed {
    fn position(&self) -> usize;
}
