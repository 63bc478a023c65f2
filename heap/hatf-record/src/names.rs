//! File names in the directory of a spool.
//!
//! # Examples
//!
//! ```
//! use std::path::Path;
//! use hatf_record::names::{EVENTS, PROCESS};
//!
//! let first = Path::new("/dev/shm/hatf-1");
//! let (process, start) = (4242, 99);
//! let followed = first.join(format!("{PROCESS}{process}-{start}"));
//! assert_eq!(followed.join(EVENTS), Path::new("/dev/shm/hatf-1/process-4242-99/events"));
//! ```

/// The file that contains the events.
pub const EVENTS: &str = "events";
/// The file that contains the stacks.
pub const STACKS: &str = "stacks";
/// A symbolic link whose target is the error number (`errno`) with which a program failed to open the events.
pub const REFUSED: &str = "refused";
/// The arguments of a followed process, each terminated by a zero byte.
pub const COMMAND: &str = "command";
/// A list of the programs to follow, one name per line, in the first process's directory. If the file does not exist,
/// all programs are followed.
pub const PROGRAMS: &str = "programs";
/// A list of the only threads whose blocks are recorded, one name per line, in the first process's directory.
pub const ONLY_THREADS: &str = "only-threads";
/// A list of the only modules whose blocks are recorded, one name per line, in the first process's directory.
pub const ONLY_MODULES: &str = "only-modules";
/// The prefix of a followed process's directory in the first process's directory. The prefix is followed by the process
/// ID, `-`, and the start time of the process in kernel ticks since boot.
pub const PROCESS: &str = "process-";
/// The prefix of a file in the first process's directory that contains the plan for the statically linked allocator of a
/// program: see [`crate::linked`]. The prefix is followed by [the numbers](crate::linked::Source::numbers) that identify
/// the program, separated by `-`.
pub const LINKED: &str = "linked-";
