//! The call stacks of the program.
//!
//! `unwind` walks the stack frame by frame (`frame`), using the thread's own stack for work that needs more room
//! (`own_stack`). `memo` and `last_walk` are caches of each thread that reduce walking. `capture` obtains a call's
//! stack, including the frames of `python`, which uses `python_cache` and `python_memory`, and `tree` assigns its
//! number. `met_modules` records the modules that contain frames.

pub(crate) mod capture;
pub(crate) mod frame;
mod last_walk;
pub(crate) mod memo;
pub(crate) mod met_modules;
mod own_stack;
pub(crate) mod python;
mod python_cache;
mod python_memory;
pub(crate) mod tree;
pub(crate) mod unwind;
