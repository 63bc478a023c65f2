//! Where do events go?
//!
//! Into a spool that is mapped (`mapping`), by the recording in progress (`session`), which gives each thread chunks (`chunks`), as long as somebody reads them (`reader`). `push` writes an event,
//! the last of its three steps. `create` makes the file of a spool, and `shrink` unmaps a part of it.

mod chunks;
pub(crate) mod create;
pub(crate) mod mapping;
pub(crate) mod push;
mod reader;
pub(crate) mod session;
mod shrink;
