//! Options of a recording.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hatf_record::{Clock, WhenFull};

use super::order::Keep;
use super::processes::{DumpInto, Follower};
use super::program::LinkedIn;
use super::spool::SPOOL_BYTES;
use hatf_trace::Result;

/// Default maximum number of further processes that are recorded at the same time.
pub const FOLLOW_MOST: u32 = 128;

/// A function that writes a trace of the last part. The first argument is the number of the trace, counted from 1.
pub type TakeDump<'a> = &'a (dyn Fn(u32, DumpInto<'_>) + Sync);

/// Options of a recording.
///
/// # Examples
///
/// ```
/// use hatf_host::record::{RecordOptions, SPOOL_BYTES, WhenFull};
///
/// let options = RecordOptions { sample: 512 << 10, stacks: 32, ..RecordOptions::default() };
/// // By default, the program waits if the spool of 1 GiB is full, and its child processes are not recorded.
/// assert_eq!((options.when_full, options.spool_bytes), (WhenFull::Wait, SPOOL_BYTES));
/// assert_eq!(SPOOL_BYTES, 1 << 30);
/// assert!(options.follower.is_none());
/// ```
pub struct RecordOptions<'a> {
    /// The interval at which the sink is flushed if there are new events.
    pub flush: Option<Duration>,
    /// The number of events after which the sink is flushed, so that their chunks can be reused.
    pub group: u64,
    /// Whether the program's standard output is redirected to standard error.
    pub output_to_error: bool,
    /// A function called once the program runs, before its first event is passed on. Its errors are handled like errors
    /// of the sink.
    pub started: Option<&'a mut dyn FnMut() -> Result<()>>,
    /// The directory for the spool. By default, the spool is created in memory or in the directory for temporary files.
    pub spool: Option<PathBuf>,
    /// Maximum size of the spool in bytes. The spool is smaller if there is less room.
    pub spool_bytes: u64,
    /// The behavior of the program when the spool is full.
    pub when_full: WhenFull,
    /// The time for which a thread of the program waits for space.
    pub patience: Duration,
    /// The clock that stamps events. The default is the CPU's cycle counter if the kernel itself relies on this
    /// counter, and `CLOCK_MONOTONIC` otherwise.
    pub stamps: Option<Clock>,
    /// The mean number of bytes between recorded blocks; 0 records every block.
    pub sample: u64,
    /// The names of the threads whose blocks are recorded. A trailing `*` matches any suffix. If the list is empty, the
    /// blocks of all threads are recorded.
    pub only_threads: Vec<String>,
    /// The file names of the modules (the program and its libraries) whose blocks are recorded. If the list is empty,
    /// the blocks of all modules are recorded.
    pub only_modules: Vec<String>,
    /// Whether only requested sizes are recorded, without the addresses and the ends of blocks.
    pub sizes_only: bool,
    /// Whether recording is off until it is turned on.
    pub start_off: bool,
    /// The signal that turns recording off and on. Sent to a recorded process, it affects that process; sent to this
    /// process, it affects all recorded processes.
    pub toggle_signal: Option<i32>,
    /// A file whose first line turns recording of all processes `on` or `off`, or sets a `mark` in their traces.
    pub control: Option<PathBuf>,
    /// The size of the last part, if only the last part is kept and passed on when the program ends.
    pub keep: Option<Keep>,
    /// The function that writes a trace of the last part each time a trace is requested while the program runs.
    pub dump: Option<TakeDump<'a>>,
    /// The signal that requests a trace of the last part. Sent to a recorded process, it requests a trace of that
    /// process; sent to this process, it requests traces of all recorded processes.
    pub dump_signal: Option<i32>,
    /// Whether the trace omits program arguments and the name of the machine.
    pub private: bool,
    /// Labels that identify the trace: strings by key.
    pub labels: BTreeMap<String, String>,
    /// Maximum number of recorded stack frames per call; 0 records no stacks.
    pub stacks: usize,
    /// Whether the usable sizes of blocks are recorded.
    pub usable: bool,
    /// Whether page requests and frequent samples of the process's memory use are recorded.
    pub pages: bool,
    /// Whether the process's memory use is sampled, so rarely that the cost is negligible. For frequent samples, see
    /// [`Self::pages`].
    pub resident: bool,
    /// Whether the CPU that each thread runs on is recorded.
    pub processors: bool,
    /// Whether stacks contain the frames of Python code. Memory that Python maps for its objects and frames is then
    /// recorded as blocks.
    pub python: bool,
    /// Whether Python allocates each object with `malloc`, unless the environment specifies otherwise, so that each
    /// object is recorded.
    pub python_objects: bool,
    /// The program's statically linked allocator, which the trace names.
    pub linked_in: Option<&'a LinkedIn>,
    /// Whether calls to statically linked allocators are recorded, too, in each process.
    pub record_linked_in: bool,
    /// Data stored next to the spool, for use when a trace is made later: see
    /// [`Spooled::about`](super::Spooled::about).
    pub about: serde_json::Value,
    /// The receiver of events from processes that the program creates. Without it, these processes are not recorded.
    pub follower: Option<&'a dyn Follower>,
    /// Maximum number of further processes recorded at the same time.
    pub follow_most: u32,
    /// The names of programs to follow. If the list is empty, all programs are followed.
    pub follow_programs: Vec<String>,
}

impl Default for RecordOptions<'_> {
    fn default() -> Self {
        Self {
            flush: None,
            group: hatf_trace::heap::GROUP_RECORDS,
            output_to_error: false,
            started: None,
            spool: None,
            spool_bytes: SPOOL_BYTES,
            when_full: WhenFull::Wait,
            patience: Duration::from_secs(5),
            stamps: None,
            sample: 0,
            only_threads: Vec::new(),
            only_modules: Vec::new(),
            sizes_only: false,
            start_off: false,
            toggle_signal: None,
            control: None,
            keep: None,
            dump: None,
            dump_signal: None,
            private: false,
            labels: BTreeMap::new(),
            stacks: 0,
            usable: false,
            processors: false,
            pages: false,
            resident: false,
            python: false,
            python_objects: false,
            linked_in: None,
            record_linked_in: false,
            about: serde_json::Value::Null,
            follower: None,
            follow_most: FOLLOW_MOST,
            follow_programs: Vec::new(),
        }
    }
}
