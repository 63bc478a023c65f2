//! File names in the directory of a spool.

/// The file of events.
pub const EVENTS: &str = "events";
/// The file of stacks.
pub const STACKS: &str = "stacks";
/// A symbolic link whose target is the error number (`errno`) with which a program failed to open the events.
pub const REFUSED: &str = "refused";
/// The arguments of a followed process, each terminated by a zero byte.
pub const COMMAND: &str = "command";
/// In the first process's directory: the names of the programs to follow, one per line. If there is no such file, all
/// programs are followed.
pub const PROGRAMS: &str = "programs";
/// In the first process's directory: the names of the only threads whose blocks are recorded, one per line.
pub const ONLY_THREADS: &str = "only-threads";
/// In the first process's directory: the names of the only modules whose blocks are recorded, one per line.
pub const ONLY_MODULES: &str = "only-modules";
/// The prefix of a followed process's directory in the first process's directory. The prefix is followed by the process
/// ID, `-`, and the start time of the process in kernel ticks since boot.
pub const PROCESS: &str = "process-";
/// In the first process's directory: the functions of an allocator that is statically linked into the program, see
/// [`crate::linked`].
pub const LINKED: &str = "linked";
