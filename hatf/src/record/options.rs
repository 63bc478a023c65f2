//! How to record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hatf_record::{Clock, WhenFull};

use super::order::Keep;
use super::processes::{DumpInto, Follower};
use super::program::LinkedIn;
use super::spool::SPOOL_BYTES;
use crate::Result;

/// Further processes that are recorded at once, at most, unless it is said otherwise.
pub const FOLLOW_MOST: u32 = 128;

/// What takes such a trace: the first, the second and so on.
pub type TakeDump<'a> = &'a (dyn Fn(u32, DumpInto<'_>) + Sync);

/// How to record.
pub struct RecordOptions<'a> {
    /// How often the sink is flushed, if there is anything new.
    pub flush: Option<Duration>,
    /// Events after which the sink is flushed, so that the memory that holds them is free again.
    pub group: u64,
    /// Whether what the program writes to its standard output goes to standard error.
    pub output_to_error: bool,
    /// What to do once the program runs, before its first event is given. An error is as one of the sink.
    pub started: Option<&'a mut dyn FnMut() -> Result<()>>,
    /// The folder in which the spool is made; by default one in memory, or that of temporary files.
    pub spool: Option<PathBuf>,
    /// Bytes that the spool has at most. It has less where there is less room.
    pub spool_bytes: u64,
    /// What the program does where the spool is full.
    pub when_full: WhenFull,
    /// How long a thread of the program waits for space.
    pub patience: Duration,
    /// The clock that stamps events; by default the processor's, where the kernel goes by it.
    pub stamps: Option<Clock>,
    /// Of all blocks one is recorded for this many bytes, on average; 0: every block.
    pub sample: u64,
    /// The names of threads whose blocks alone are recorded, with a `*` at the end for any ending; where there are none, those of all.
    pub only_threads: Vec<String>,
    /// The names of modules (the program and its libraries, by their files) whose blocks alone are recorded, too.
    pub only_modules: Vec<String>,
    /// What was asked for is recorded, and not where blocks are, nor their ends.
    pub sizes_only: bool,
    /// Recording is off until somebody turns it on.
    pub start_off: bool,
    /// The signal that turns recording off and on: sent to a process, of that, sent to this one, of all.
    pub toggle_signal: Option<i32>,
    /// A file whose first line turns recording of all processes `on` or `off`, or sets a `mark` in their traces.
    pub control: Option<PathBuf>,
    /// Only the last part is kept, and given when the program ends.
    pub keep: Option<Keep>,
    /// Takes the last part when it is asked for while the program runs: the first time, the second and so on.
    pub dump: Option<TakeDump<'a>>,
    /// The signal that asks for it: sent to a process, of that, sent to this one, of all.
    pub dump_signal: Option<i32>,
    /// Whether arguments of programs and the name of the machine are left out of the trace.
    pub private: bool,
    /// What tells the trace from others: text by keys.
    pub labels: BTreeMap<String, String>,
    /// The most frames of a call's stack that are recorded; 0: no stacks.
    pub stacks: usize,
    /// It is recorded how many bytes blocks really have.
    pub usable: bool,
    /// Calls for pages are recorded, and what the kernel says of the process's memory.
    pub pages: bool,
    /// The kernel is asked what memory the process has, seldom enough that it costs nothing: see [`Self::pages`] for often.
    pub resident: bool,
    /// It is recorded on which processor each thread runs.
    pub processors: bool,
    /// Stacks have the frames of Python code, and Python is to take each object from `malloc`, unless the environment says otherwise.
    pub python: bool,
    /// The allocator that the program has linked in, to record its calls, too.
    pub linked_in: Option<&'a LinkedIn>,
    /// What is kept beside the spool, to make a trace of it later: see [`Spooled::about`](super::Spooled::about).
    pub about: serde_json::Value,
    /// Who takes the events of processes that the program makes; without, they are not recorded.
    pub follower: Option<&'a dyn Follower>,
    /// The most of them that are recorded at once.
    pub follow_most: u32,
    /// The names of programs that are followed; all are where there are none.
    pub follow_programs: Vec<String>,
}

impl Default for RecordOptions<'_> {
    fn default() -> Self {
        Self {
            flush: None,
            group: crate::heap::GROUP_RECORDS,
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
            linked_in: None,
            about: serde_json::Value::Null,
            follower: None,
            follow_most: FOLLOW_MOST,
            follow_programs: Vec::new(),
        }
    }
}
