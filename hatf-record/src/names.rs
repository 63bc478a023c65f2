//! Names in the folder of a spool.

/// The file of events.
pub const EVENTS: &str = "events";
/// The file of stacks.
pub const STACKS: &str = "stacks";
/// A symbolic link to the number of the error (`errno`) for which a program could not open the events.
pub const REFUSED: &str = "refused";
/// The arguments of a process that was followed, each with a zero behind it.
pub const COMMAND: &str = "command";
/// In the first process's folder: names of the programs that are followed, each with a line feed behind it. All are where there is no such
/// file.
pub const PROGRAMS: &str = "programs";
/// In the first process's folder: names of the threads whose blocks alone are recorded, each with a line feed behind it.
pub const ONLY_THREADS: &str = "only-threads";
/// In the first process's folder: names of the modules whose blocks alone are recorded, each with a line feed behind it.
pub const ONLY_MODULES: &str = "only-modules";
/// The folder of a followed process, in the first one's: this, the process, `-`, and when it began, in the kernel's ticks since boot.
pub const PROCESS: &str = "process-";
/// In the first process's folder: the functions of an allocator that its program has linked in, see [`crate::linked`].
pub const LINKED: &str = "linked";
