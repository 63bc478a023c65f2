//! What does the recorder have of the process that it runs in, without calls that its own hooks would see?
//!
//! Memory and files by system calls, what a thread keeps, and what the process is.

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
