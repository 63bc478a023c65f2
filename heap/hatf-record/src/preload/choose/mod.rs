//! The decision whether, and in what detail, a call is recorded.
//!
//! `choice` makes the decision. It queries `switch` for whether recording is on, `sample`, `by_thread` and `by_module`
//! for whether a block should be recorded, and `recorded_blocks` for whether an ending block was recorded.
//! `large_blocks` contains the blocks whose untouched pages are recorded when they end.

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod by_module;
pub(crate) mod by_thread;
pub(crate) mod call;
pub(crate) mod choice;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod large_blocks;
mod name_list;
pub(crate) mod recorded_blocks;
pub(crate) mod sample;
pub(crate) mod settings;
pub(crate) mod switch;
