//! The conversion of a call to an event.
//!
//! The conversion has three steps, which are performed by `record`: the call is chosen (`choose/choice.rs`), described
//! (`describe`), and pushed into the thread's chunk (`spool/push.rs`); `finish` contains the last two. `changes`
//! records changes since the thread's last call, `pages` records page requests, and
//! `arenas` records Python's memory, and `untouched` the untouched pages of large blocks.

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod arenas;
mod changes;
mod describe;
mod finish;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
pub(crate) mod pages;
pub(crate) mod record;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod untouched;
