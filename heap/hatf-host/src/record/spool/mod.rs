//! Storage of events until they are in a trace: a directory that belongs to this user alone, with files that the
//! program maps, too. A keeper makes chunks ready for the program.
//!
//! Data that the program or other processes write there is not trusted: see dev/internals/recorder.md.

mod bus_error;
mod claim;
mod keeper;
mod mapping;
mod memory_limit;
mod naps;
mod own_folder;
mod spool_file;
mod stack_file;

pub(crate) use keeper::{Keeper, READY_FIRST, Returned};
pub use memory_limit::left as memory_left;
pub(crate) use memory_limit::{OomKills, limit as memory_limit};
pub(crate) use naps::Naps;
pub(crate) use own_folder::OwnFolder;
pub use spool_file::SPOOL_BYTES;
pub(crate) use spool_file::{CONTROL, LIBRARY, LIBRARY_FOLDER, ORIGIN, SpoolFile, WATCHED, left_behind};
pub(crate) use stack_file::{StackFile, create_stack_file};
