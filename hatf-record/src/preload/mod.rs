//! Recording from inside of a program: the interposed functions of the shared object that is preloaded (feature `preload`), and the allocator
//! of a Rust program (feature `allocator`). What both use is the rest.
//!
//! Modules from the lowest to the highest: `frame` (what a walk of a stack meets), `last_walk` and `memo` (stacks that were walked), `memory` (system calls for pages), `program_break`, `thread_name`, `thread_state` and `real` use nothing above them.
//! `segments` has the program tables of modules, `unwind` walks stacks, `loaded` records the modules that it meets, and `stack` numbers stacks; `accesses` has the counters of loads and stores; `session` is the recording in progress, and `push` puts events into its spool.
//! `follow` makes the spool of a process that is not the first, `stale` sees that the recorder's file is gone, and `standalone` makes that of a first one which nobody records.
//! `sample` and `only` choose blocks, `kept` knows which were chosen, `attach` begins the session, `control` turns recording off and on, and `log` records calls.
//! `fork`, `exec`, `exit`, `confine`, `jump`, `threads`, `alloc`, `pages`, `cxx` and `marks` are the interposed functions.
//! `inject` begins to record a process that runs already, `modules` has its calls come here, `got` changes and reads their tables, `jump_on` has a function jump to the real one,
//! `linked` records an allocator of the program's own, and `deep_bind` sees libraries loaded that need that.
//! `load` runs when the object is loaded, `functions` is what an allocator calls, and `recording` is one.

#![cfg_attr(
    not(feature = "preload"),
    allow(dead_code, reason = "an allocator needs not all of what the interposed functions do")
)]

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod accesses;
#[cfg(feature = "preload")]
mod alloc;
mod attach;
#[cfg(feature = "preload")]
mod confine;
mod control;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod cxx;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod deep_bind;
#[cfg(feature = "preload")]
mod exec;
#[cfg(feature = "preload")]
mod exit;
mod follow;
mod forever;
mod fork;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod frame;
mod functions;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod got;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod inject;
#[cfg(feature = "preload")]
mod jump;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod jump_on;
mod kept;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod last_walk;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
mod limits;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod linked;
#[cfg(feature = "preload")]
mod load;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod loaded;
mod log;
mod mapping;
mod marks;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod memo;
mod memory;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod modules;
mod only;
mod own;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod own_stack;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
mod pages;
mod path;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
mod program_break;
mod push;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod python;
#[cfg(feature = "preload")]
mod real;
#[cfg(feature = "allocator")]
pub(crate) mod recording;
mod sample;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod segments;
mod session;
mod shrink;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod stack;
mod stale;
mod standalone;
mod thread_end;
mod thread_name;
mod thread_state;
#[cfg(feature = "preload")]
mod threads;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod unwind;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod vfork;
