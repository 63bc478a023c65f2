//! Checks, before a program runs, what can be recorded: whether it will load the recorder, which sanitizer it uses, and
//! which allocator is statically linked.

mod executable;
mod linked;
mod not_recorded;
mod plans;
mod sanitizer;
mod symbols;

pub use linked::{LinkedIn, linked_in};
pub(crate) use not_recorded::has_address_sanitizer;
pub use not_recorded::{NotRecorded, NotRecordedReason, not_recorded};
pub(crate) use plans::Plans;
pub(crate) use sanitizer::{ADDRESS_OPTIONS, behind_another};
pub(crate) use symbols::Symbols;
