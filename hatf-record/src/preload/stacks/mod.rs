//! Through which calls did the program get here?
//!
//! `unwind` walks the stack, frame by frame (`frame`), on a stack of the thread's own where it needs room (`own_stack`). `memo` and `last_walk` are what a
//! thread keeps, so that it walks less. `capture` has a call's stack walked, with the frames of `python`, and `tree` numbers it. `met_modules` records
//! the modules that frames are in.

pub(crate) mod capture;
pub(crate) mod frame;
mod last_walk;
pub(crate) mod memo;
pub(crate) mod met_modules;
mod own_stack;
pub(crate) mod python;
pub(crate) mod tree;
pub(crate) mod unwind;
