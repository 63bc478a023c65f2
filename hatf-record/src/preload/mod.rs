//! The interposed functions. Built into the shared object that is preloaded, and nowhere else.

mod alloc;
mod arena;
mod attach;
mod log;
mod marks;
mod real;
mod thread_state;
mod threads;
