//! Recording of an allocator that is part of the program.
//!
//! `recording` is such an allocator, and `functions` contains the functions it calls.

mod functions;
#[cfg(feature = "allocator")]
pub(crate) mod recording;
