//! The heap of a process that nobody recorded, read from outside or from a core file.
//!
//! The structures of glibc's allocator have no stable layout, so they are found by their shape and verified by the
//! relations between them. [`read_heap`] returns either a heap in which everything adds up, or the address at which
//! something does not.
//!
//! A process must not run while it is read. `hatf_host::record::while_stopped` stops all of its threads.
//!
//! # Examples
//!
//! ```
//! use hatf_inspect::{Mapping, ProcessMemory, read_heap};
//!
//! // This process has blocks, but it changes them while it reads itself.
//! let process = std::process::id();
//! let mappings = Mapping::parse(&std::fs::read(format!("/proc/{process}/smaps"))?);
//! match read_heap(&ProcessMemory::open(process)?, &mappings, &[]) {
//!     Ok(Some(heap)) => assert!(heap.live().count() > 0),
//!     Ok(None) => println!("glibc's malloc is not used"),
//!     Err(inconsistency) => println!("not consistent {inconsistency}"),
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod account;
mod core;
mod glibc;
mod inconsistency;
mod mapping;
mod memory;
mod report;
mod snapshot;

pub use account::{Account, Kind};
pub use core::{CoreError, CoreFile};
pub use glibc::{Block, Heap, Thread, read_heap};
pub use inconsistency::{Inconsistency, Result};
pub use mapping::Mapping;
pub use memory::{Memory, Page, ProcessMemory};
pub use report::{Inspection, Origin, SizeCount};
pub use snapshot::write_snapshot;
