//! Encoding one record: the mirror of `decode`.

mod attempt;
mod general;
mod planned;
mod streamed;
mod streams;
mod two_pass;

pub(crate) use attempt::{Attempt, Misfit, Noted, UNPREDICTED};
pub use general::RowWriter;
pub(crate) use planned::{CHANGED, FORMULA, GATHERED, Left, PlannedEncoder, STORED, put, put_specialized};
pub(crate) use streamed::StreamedEncoder;
pub(crate) use streams::{HELD_A_NUMBER, Numbers, Segment, StreamWriters};
pub(crate) use two_pass::SecondPass;
