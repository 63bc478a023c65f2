//! Encodes a single record, mirroring `decode`. [`put_specialized`] and [`put`] handle records that depend only on
//! their plans, [`StatefulEncoder`] handles records that also depend on streams, models and previous values, and
//! [`RowWriter`] handles all records.

mod array;
mod attempt;
mod general;
mod planned;
mod stateful;
mod streams;
mod time;

pub(crate) use array::ArrayWriter;
pub(crate) use attempt::{Attempt, Misfit, Prediction, UNPREDICTED};
pub(crate) use general::NOT_LAST;
pub use general::RowWriter;
pub(crate) use planned::{PlannedEncoder, put, put_specialized};
pub(crate) use stateful::{Effects, StatefulEncoder};
pub(crate) use streams::{GivenElements, HELD_A_NUMBER, Numbers, StreamWriters};
pub(crate) use time::add_time;
