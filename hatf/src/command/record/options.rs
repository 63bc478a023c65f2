//! The options of `hatf record`, with their help.

use std::ffi::OsString;
use std::path::PathBuf;

use hatf::heap::GROUP_RECORDS;
use hatf::record::{FOLLOW_MOST, Keep};
use metatf_cli::number;
use metatf_tools::recode::Preset;

use super::preset::RecordPreset;
use crate::command::values::{bytes, clock, keep, name, sample, signal, time};

/// Frames of a stack, unless it is said otherwise.
const DEPTH: usize = 64;

/// Run a program and write a trace of its heap.
///
/// Records every malloc, calloc, realloc, reallocarray, free, memalign, posix_memalign, aligned_alloc, valloc and pvalloc of all
/// threads, with thread and time. A recorder is preloaded into the program, which stays as it is but must be dynamically linked.
/// If the program calls exec, the new program is recorded in the same trace. Each process that it makes is recorded in a trace of its own, in a
/// folder beside the trace: PROGRAM.processes, with a list in processes.jsonl.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record perl -e '$x{$_} = 1 for 1..10000'
  hatf record -o sort.mtf -- sort -u words.txt
  hatf record --report --no-trace python3 -c 'print(1)'
  hatf record --clock 100us -o big.mtf PROGRAM       coarser times, a smaller trace
  hatf record --sample 512KiB --stacks PROGRAM       what can be left on for long
  hatf record --start-off --control ctl PROGRAM      nothing yet; echo on > ctl starts it
  hatf record --keep 60s --dump-signal USR1 PROGRAM  a flight recorder
  hatf record --follow=cc1,cc1plus -- make -j2       of its processes, the compilers
  hatf record --pid 1234 -o server.mtf               one that runs; Ctrl-C ends it
  LD_PRELOAD=libjemalloc.so.2 hatf record PROGRAM    record it with another allocator")]
pub(crate) struct Record {
    /// The trace to write [default: PROGRAM.mtf, or PROGRAM.1.mtf and so on]. `-` is standard output; what the program
    /// prints goes to standard error then.
    #[arg(short, long, value_name = "TRACE", help_heading = "Trace")]
    pub(crate) output: Option<PathBuf>,

    /// Also print a report to standard error when the program has ended.
    #[arg(long, help_heading = "Trace")]
    pub(crate) report: bool,

    /// Write no trace, and print a report.
    #[arg(long, conflicts_with = "output", help_heading = "Trace")]
    pub(crate) no_trace: bool,

    /// The DTD of the trace.
    #[arg(long, value_enum, default_value_t = TraceFormat::Heap, conflicts_with = "no_trace", help_heading = "Trace")]
    pub(crate) format: TraceFormat,

    /// Length of a tick of the trace's clock, 1ns to 1ms, or off for a trace without times. The finer the clock, the
    /// larger the trace. (hatf10 always has nanoseconds.)
    #[arg(long, value_name = "TICK", default_value = "1us", value_parser = clock, help_heading = "Trace")]
    pub(crate) clock: u64,

    /// Trade size for speed: fast, default or archive. fast stores addresses and times as they are, which takes the least of the
    /// processor and 4 to 8 bytes an event, where default takes 0.1 to 0.6; `hatf convert` makes such a trace small afterwards. `hatf convert --preset archive` makes
    /// any trace smaller, and does not slow the program down. debug is default with --stacks, --usable and --pages, to find
    /// out where memory goes: it takes a third more processor time, and half more space.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = RecordPreset::Trace(Preset::Default), conflicts_with = "no_trace", help_heading = "Trace")]
    pub(crate) preset: RecordPreset,

    /// Approximate number of records in a group. A full group is in the file even if the recorder is killed, and
    /// can be read without the groups before it; small groups make a large trace.
    #[arg(long, value_name = "RECORDS", default_value_t = GROUP_RECORDS, allow_negative_numbers = true, value_parser = number(1..=u64::MAX), help_heading = "Trace")]
    pub(crate) group: u64,

    /// Also end the group every SECONDS, so that a recorder that is killed loses at most that much. Traces of programs
    /// with fewer than a million events in that time get larger. For heap traces.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = number(1..=u64::MAX), conflicts_with = "no_trace", help_heading = "Trace")]
    pub(crate) flush: Option<u64>,

    /// Record the call stack of each allocation, of at most DEPTH frames. It needs unwind tables, which compilers make by
    /// default, glibc 2.35 and x86-64. Commands that print stacks look functions up in the programs and shared objects.
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, require_equals = true, default_missing_value = "64", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256), help_heading = "What is recorded")]
    pub(crate) stacks: Option<usize>,

    /// Record stacks (--stacks), and write the names of functions into the trace when the program has ended, as hatf symbolize does:
    /// the trace can then be read where the programs are not, or have changed. So it is for the traces of other processes.
    #[arg(long, conflicts_with = "no_trace", help_heading = "What is recorded")]
    pub(crate) symbolize: bool,

    /// Record stacks (--stacks) with the functions and lines of Python code, in place of the interpreter's function that runs them:
    /// of CPython 3.11, 3.12 and 3.13. Python then takes each object from malloc (PYTHONMALLOC=malloc), unless PYTHONMALLOC is set.
    #[arg(long, help_heading = "What is recorded")]
    pub(crate) python: bool,

    /// Record how many bytes each block really has, as malloc_usable_size says: the report tells how much more that is than
    /// was asked for.
    #[arg(long, help_heading = "What is recorded")]
    pub(crate) usable: bool,

    /// Record on which processor each thread runs, where that changes: hatf profile then counts blocks that are freed on another
    /// processor than they were allocated on.
    #[arg(long, help_heading = "What is recorded")]
    pub(crate) processors: bool,

    /// Record calls for pages (mmap, munmap, mremap, brk, madvise), and what the kernel says of the memory that the program
    /// has, each 10 ms. Calls that the C library's malloc makes itself are not seen, except for where the program break is.
    #[arg(long, help_heading = "What is recorded")]
    pub(crate) pages: bool,

    /// Do not record what the kernel says of the memory that the program has. Without --pages it is asked each 10 ms, and less often
    /// the longer the program runs.
    #[arg(long, conflicts_with = "pages", help_heading = "What is recorded")]
    pub(crate) no_resident: bool,

    /// Record only a sample: of the blocks of a thread one for each BYTES that it allocates, such as 512KiB, chosen at random, and
    /// its end. Reports by site multiply what was sampled.
    #[arg(long, value_name = "BYTES", value_parser = sample, help_heading = "What is recorded")]
    pub(crate) sample: Option<u64>,

    /// Record only blocks that threads of these names allocate, and where they end. A `*` at the end of a name stands for anything; of
    /// a name the kernel keeps 15 bytes
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name, help_heading = "What is recorded")]
    pub(crate) only_threads: Vec<String>,

    /// Record only blocks that code of these modules allocates, and where they end: of the program or of libraries, by the names of
    /// their files, with a `*` at the end for anything. A call that the C library or a library of C++ makes for a module is the
    /// module's. It needs what --stacks needs
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name, help_heading = "What is recorded")]
    pub(crate) only_modules: Vec<String>,

    /// Record what was asked for, with its function, thread, time and stack, but not where blocks are, nor when they end. The trace is
    /// small; report and sites tell from it what was allocated, but not what was live
    #[arg(long, conflicts_with = "format", help_heading = "What is recorded")]
    pub(crate) sizes_only: bool,

    /// Do not record calls of an allocator that the program has linked in, such as jemalloc in Rust. They are recorded by a jump at the beginning of its functions
    #[arg(long, help_heading = "What is recorded")]
    pub(crate) no_linked_in: bool,

    /// Record nothing until recording is turned on: by --toggle-signal, --control, or the program (hatf_start).
    #[arg(long, help_heading = "When")]
    pub(crate) start_off: bool,

    /// The signal that turns recording off and on, such as USR2: sent to a recorded process, of that one, sent to hatf record,
    /// of all. The program must not use the signal itself.
    #[arg(long, value_name = "SIGNAL", value_parser = signal, help_heading = "When")]
    pub(crate) toggle_signal: Option<i32>,

    /// A file to look at while the program runs: recording of all processes is turned on or off when its first word changes to
    /// on or off. dump has the last part written, and mark NAME sets a mark in all traces. It need not be there yet.
    #[arg(long, value_name = "FILE", help_heading = "When")]
    pub(crate) control: Option<PathBuf>,

    /// Keep only the last part in memory, such as 60s, 5min or 64MiB (an event takes 16 bytes), and write it when the program
    /// ends, or is killed. --dump-signal, --control (dump) and the program (hatf_dump) have it written while the program goes
    /// on, as TRACE.dump1.mtf. Nothing is encoded until then. Blocks from before it are not known.
    #[arg(long, value_name = "PART", value_parser = keep, conflicts_with = "flush", help_heading = "When")]
    pub(crate) keep: Option<Keep>,

    /// The signal that has the last part written, such as USR1: sent to a recorded process, of that one, sent to hatf record,
    /// of all. The program must not use the signal itself.
    #[arg(long, value_name = "SIGNAL", value_parser = signal, requires = "keep", help_heading = "When")]
    pub(crate) dump_signal: Option<i32>,

    /// Keep this in the trace, to tell it from those of others: --label service=web --label version=1.7. The table `traces` has the
    /// labels, and reports show them. May be repeated; the last of one key counts.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, help_heading = "Trace")]
    pub(crate) label: Vec<(String, String)>,

    /// Leave arguments of programs and the name of the machine out of the trace. Paths of programs and libraries are in it.
    #[arg(long, help_heading = "Trace")]
    pub(crate) private: bool,

    /// Of the processes that the program makes, record only those that run these programs, by the names of their files.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', require_equals = true, help_heading = "Processes")]
    pub(crate) follow: Vec<String>,

    /// Do not record the processes that the program makes.
    #[arg(long, conflicts_with_all = ["follow", "follow_most"], help_heading = "Processes")]
    pub(crate) no_follow: bool,

    /// Number of processes beside the program that are recorded at once, at most. Others are counted.
    #[arg(long, value_name = "N", default_value_t = FOLLOW_MOST, allow_negative_numbers = true, value_parser = number(1..=10_000_u32), help_heading = "Processes")]
    pub(crate) follow_most: u32,

    /// Reaction to a full spool, when events come faster than the trace is written [default: wait; drop with --pid or --sample]:
    /// wait (the program waits for space; if none is free within --patience, events are dropped until hatf has caught up),
    /// drop (events are left out, and counted where they are missing), or stop (recording ends).
    #[arg(long, value_enum, value_name = "POLICY", help_heading = "Spool")]
    pub(crate) when_full: Option<WhenFull>,

    /// Maximum time that the program waits for space in the spool.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time, help_heading = "Spool")]
    pub(crate) patience: u64,

    /// Folder of the spool, which holds events until they are in the trace [default: /dev/shm, or one for temporary files].
    #[arg(long, value_name = "FOLDER", help_heading = "Spool")]
    pub(crate) spool: Option<PathBuf>,

    /// Bytes that the spool has at most, such as 64MiB. An event takes 16.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bytes, help_heading = "Spool")]
    pub(crate) spool_size: u64,

    /// Print only errors and warnings to standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Record a process that runs already, by its number, until it ends or hatf is interrupted; then it goes on as before. What was allocated before is not known,
    /// and processes that it makes are not recorded. It must be of the same user and have the same C library.
    #[arg(long, value_name = "PROCESS", value_parser = number(1..=u32::MAX), conflicts_with_all = ["command", "follow", "no_follow", "follow_most"], help_heading = "Processes")]
    pub(crate) pid: Option<u32>,

    /// The program and its arguments.
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
}

/// The DTDs that a program can be recorded by.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TraceFormat {
    /// heap.dtd: distinguishes all functions; small.
    Heap,
    /// HATF10.dtd: the paper's.
    Hatf10,
}

/// Policies for a full spool.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WhenFull {
    /// Wait for space within --patience; then drop until hatf has caught up.
    Wait,
    /// Leave events out until there is space.
    Drop,
    /// End the recording.
    Stop,
}

impl Record {
    fn is_debug(&self) -> bool {
        self.preset == RecordPreset::Debug
    }

    /// Returns the most frames of a stack; 0: no stacks.
    pub(crate) fn stacks(&self) -> usize {
        self.stacks.unwrap_or(if self.is_debug() || self.python || self.symbolize { DEPTH } else { 0 })
    }

    /// Returns the reaction to a full spool. Who attaches to a process, or samples one for a long time, does not want it to stand still.
    pub(crate) fn when_full(&self) -> WhenFull {
        let is_service = self.pid.is_some() || self.sample.is_some();
        self.when_full.unwrap_or(if is_service { WhenFull::Drop } else { WhenFull::Wait })
    }

    /// Returns whether it is recorded what blocks really have.
    pub(crate) fn usable(&self) -> bool {
        self.usable || self.is_debug()
    }

    /// Returns whether pages are recorded.
    pub(crate) fn pages(&self) -> bool {
        self.pages || self.is_debug()
    }
}

/// Reads a label: a key of letters, digits, `_`, `-` and `.`, and text.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
        return Err("a key has letters, digits, `_`, `-` and `.`".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}
