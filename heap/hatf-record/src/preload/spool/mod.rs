//! The destination of events.
//!
//! Events go into a mapped spool (`mapping`) of the recording in progress (`session`), which provides each thread with
//! chunks (`chunks`) for as long as there is a reader (`reader`). `push` writes an event, which is the last of its
//! three steps. `create` creates spool files, and `shrink` unmaps a part of a spool. `word` selects the paths of hooks.

mod chunks;
pub(crate) mod create;
pub(crate) mod mapping;
pub(crate) mod push;
mod reader;
pub(crate) mod session;
mod shrink;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod word;
