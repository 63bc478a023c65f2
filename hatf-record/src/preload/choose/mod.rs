//! Is this call recorded, and how?
//!
//! `choice` answers. It asks `switch` whether recording is on, `sample` and `by_thread` and `by_module` whether a block is one of those to be
//! recorded, and `recorded_blocks` whether one that ends was.

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod by_module;
pub(crate) mod by_thread;
pub(crate) mod call;
pub(crate) mod choice;
mod name_list;
mod recorded_blocks;
mod sample;
pub(crate) mod settings;
pub(crate) mod switch;
