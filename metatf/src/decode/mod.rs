//! Decoding one record: a row for each tier, from the one that knows most when the program is compiled to the one that takes
//! every record as it comes.

mod array;
mod decoding;
mod general;
mod log;
mod planned;
mod run;
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

/// A row that knows where the leaf after those that were read begins.
pub(crate) trait Placed {
    fn position(&self) -> usize;
}
