//! How does a call become an event?
//!
//! In three steps, which `record` goes: the call is chosen (`choose/choice.rs`), described (`describe`), and pushed into the thread's chunk
//! (`spool/push.rs`); `finish` does the last two. `changes` records what is new since the thread's last call, and `pages` calls for pages.

mod changes;
mod describe;
mod finish;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
pub(crate) mod pages;
pub(crate) mod record;
