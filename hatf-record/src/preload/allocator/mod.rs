//! How does an allocator in the program have itself recorded?
//!
//! `recording` is one, and `functions` are what it calls.

mod functions;
#[cfg(feature = "allocator")]
pub(crate) mod recording;
