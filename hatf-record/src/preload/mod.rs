//! The interposed functions. Built into the shared object that is preloaded, and nowhere else.
//!
//! Modules from the lowest to the highest: `memo` (stacks that were walked), `thread_state` and `real` use nothing here; `unwind` walks stacks, and `stack` numbers them; `session` is the recording in
//! progress, `push` puts events into its spool, `follow` makes the spool of a process that is not the first, `sample` chooses blocks, `attach` begins the session,
//! `control` turns recording off and on, `log` records calls; `fork`, `exec`, `exit`, `confine`, `jump`, `threads`, `alloc`, `cxx` and `marks` are the interposed functions, and
//! `load` runs when the object is loaded.

mod alloc;
mod attach;
mod confine;
mod control;
#[cfg(target_arch = "x86_64")]
mod cxx;
mod exec;
mod exit;
mod follow;
mod fork;
mod jump;
mod load;
mod log;
mod mapping;
mod marks;
#[cfg(target_arch = "x86_64")]
mod memo;
mod path;
mod push;
mod real;
mod sample;
mod session;
#[cfg(target_arch = "x86_64")]
mod stack;
mod thread_state;
mod threads;
#[cfg(target_arch = "x86_64")]
mod unwind;
