//! The interposed functions. Built into the shared object that is preloaded, and nowhere else.
//!
//! Modules from the lowest to the highest: `thread_state` and `real` use nothing here; `session` is the recording in
//! progress, `push` puts events into its ring, `attach` begins it, `log` records calls; `fork`, `threads`, `alloc` and `marks`
//! are the interposed functions, and `load` runs when the object is loaded.

mod alloc;
mod attach;
mod fork;
mod load;
mod log;
mod marks;
mod push;
mod real;
mod session;
mod thread_state;
mod threads;
