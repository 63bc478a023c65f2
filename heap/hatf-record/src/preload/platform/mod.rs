//! Access to the surrounding process without calls that the recorder's own hooks would see.
//!
//! This covers memory and files by system calls, per-thread data, and the identity of the process.

pub(crate) mod confined;
pub(crate) mod files;
pub(crate) mod kept_pages;
pub(crate) mod large;
pub(crate) mod memory;
pub(crate) mod own_range;
pub(crate) mod own_stack;
pub(crate) mod path;
pub(crate) mod permanent;
pub(crate) mod process;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
pub(crate) mod program_break;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod stack;
pub(crate) mod thread_key;
pub(crate) mod thread_name;
pub(crate) mod thread_state;
