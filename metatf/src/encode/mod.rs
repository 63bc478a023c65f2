//! Encodes one record: the mirror of `decode`. [`put_specialized`] and [`put`] take a record whose plans are all there is to
//! know, [`StatefulEncoder`] one that depends on streams, models and previous values, [`RowWriter`] every record.

mod array;
mod attempt;
mod general;
mod planned;
mod stateful;
mod streams;

pub(crate) use array::ArrayWriter;
pub(crate) use attempt::{Attempt, Misfit, Prediction, UNPREDICTED};
pub use general::RowWriter;
pub(crate) use planned::{PlannedEncoder, put, put_specialized};
pub(crate) use stateful::{Effects, StatefulEncoder};
pub(crate) use streams::{GivenElements, HELD_A_NUMBER, Numbers, StreamWriters};
