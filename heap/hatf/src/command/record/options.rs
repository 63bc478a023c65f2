//! Options of `hatf record`, with their help.

use std::ffi::OsString;
use std::path::PathBuf;

use hatf_host::record::{FOLLOW_MOST, Keep};
use hatf_trace::heap::GROUP_RECORDS;
use hatf_view::analyses::time;
use metatf_cli::number;
use metatf_tools::recode::Preset;

use super::preset::RecordPreset;
use crate::command::values::{bytes, clock, keep, name, sample, signal};

/// Default maximum number of frames per stack.
const DEPTH: usize = 64;

/// Run a program and record its heap allocations in a trace.
///
/// Records every malloc, calloc, realloc, reallocarray, free, memalign, posix_memalign, aligned_alloc, valloc and
/// pvalloc of every thread, with the thread and the time. The program needs no changes: a recorder is preloaded into
/// it, so it must be dynamically linked. If the program calls exec, recording continues in the same trace. Every
/// process that the program creates gets its own trace in the directory PROGRAM.processes next to the trace;
/// processes.jsonl in that directory lists the processes.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record perl -e '$x{$_} = 1 for 1..10000'
  hatf record -o sort.mtf -- sort -u words.txt
  hatf record --report --no-trace python3 -c 'print(1)'
  hatf record --clock 100us -o big.mtf PROGRAM       coarser timestamps, smaller trace
  hatf record --sample 512KiB --stacks PROGRAM       low overhead, for long runs
  hatf record --start-off --control ctl PROGRAM      start paused; `echo on > ctl` starts recording
  hatf record --keep 60s --dump-signal USR1 PROGRAM  a flight recorder
  hatf record --rotate 1h --retain 24h -o DIR PROGRAM  the last day, in segments of an hour
  hatf record --follow=cc1,cc1plus -- make -j2       record only the compiler processes
  hatf record --pid 1234 -o server.mtf               attach to a running process; Ctrl-C stops
  LD_PRELOAD=libjemalloc.so.2 hatf record PROGRAM    record a program that uses another allocator")]
pub(crate) struct Record {
    /// Trace to write [default: PROGRAM.mtf, or PROGRAM.1.mtf and so on]. With `-`, the trace goes to standard output
    /// and the program's own output goes to standard error.
    #[arg(short, long, value_name = "TRACE", help_heading = "Trace")]
    pub(crate) output: Option<PathBuf>,

    /// Also print a report to standard error when the program ends.
    #[arg(long, help_heading = "Trace")]
    pub(crate) report: bool,

    /// Print a report and write no trace.
    #[arg(long, conflicts_with = "output", help_heading = "Trace")]
    pub(crate) no_trace: bool,

    /// DTD of the trace.
    #[arg(long, value_enum, default_value_t = TraceFormat::Heap, conflicts_with = "no_trace", help_heading = "Trace")]
    pub(crate) format: TraceFormat,

    /// Clock resolution of the trace, from 1ns to 1ms, or `off` for a trace without timestamps. Finer resolutions make
    /// larger traces. (hatf10 always uses nanoseconds.)
    #[arg(long, value_name = "TICK", default_value = "1us", value_parser = clock, help_heading = "Trace")]
    pub(crate) clock: u64,

    /// Trade trace size for recording speed: fast, default, archive or columns. `fast` uses the least CPU time because
    /// it stores addresses and times uncompressed: 4 to 8 bytes per event, compared with 0.1 to 0.6 for `default`.
    /// `hatf convert` compresses such a trace afterwards, and `hatf convert --preset archive` shrinks any trace
    /// further, without slowing the program down. `debug` is `default` plus --stacks, --usable and --pages, for finding
    /// out where memory goes; it uses a third more CPU time and 1.5 times the space.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = RecordPreset::Trace(Preset::Default), conflicts_with = "no_trace", help_heading = "Trace")]
    pub(crate) preset: RecordPreset,

    /// Approximate number of records per group. A complete group is in the file even if the recorder is killed, and it
    /// can be read without the groups before it. Small groups make the trace larger.
    #[arg(long, value_name = "RECORDS", default_value_t = GROUP_RECORDS, allow_negative_numbers = true, value_parser = number(1..=u64::MAX), help_heading = "Trace")]
    pub(crate) group: u64,

    /// Also end the current group every SECONDS, so that at most SECONDS of events are lost if the recorder is killed.
    /// This makes the trace larger if the program produces fewer than a million events in that time. Heap traces only.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = number(1..=u64::MAX), conflicts_with = "no_trace", help_heading = "Trace")]
    pub(crate) flush: Option<u64>,

    /// Record the call stack of each allocation, up to DEPTH frames. This requires x86-64, glibc 2.35 and unwind
    /// tables, which compilers emit by default. Commands that print stacks look up function names in the program and
    /// its shared objects.
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, require_equals = true, default_missing_value = "64", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256), help_heading = "What to record")]
    pub(crate) stacks: Option<usize>,

    /// Record stacks (--stacks), and write function names into the trace when the program ends, as `hatf symbolize`
    /// does. The trace can then be read on machines that lack the programs, or after they have changed. Traces of child
    /// processes are symbolized too.
    #[arg(long, conflicts_with = "no_trace", help_heading = "What to record")]
    pub(crate) symbolize: bool,

    /// Record stacks (--stacks) that show Python functions and lines instead of the interpreter functions that execute
    /// them. Works with CPython 3.11, 3.12 and 3.13. Python places objects of up to 512 bytes in arenas of 1 MiB; by
    /// default, each arena is recorded as one block. With --python=objects, Python allocates every object with malloc
    /// (PYTHONMALLOC=malloc, unless that variable is already set), so each object is recorded; this takes several times
    /// as long.
    #[arg(long, value_enum, value_name = "BLOCKS", num_args = 0..=1, require_equals = true, default_missing_value = "arenas", help_heading = "What to record")]
    pub(crate) python: Option<PythonBlocks>,

    /// Record the actual size of each block, as returned by malloc_usable_size. The report shows how much larger blocks
    /// are than requested.
    #[arg(long, help_heading = "What to record")]
    pub(crate) usable: bool,

    /// Record the CPU that each thread runs on whenever it changes, so that `hatf profile` can count blocks freed on a
    /// different CPU from the one that allocated them.
    #[arg(long, help_heading = "What to record")]
    pub(crate) processors: bool,

    /// Record page-level calls (mmap, munmap, mremap, brk, madvise), and sample the kernel's memory statistics for the
    /// program every 10 ms. Calls made inside the C library's malloc are not recorded, but the program break is
    /// tracked.
    #[arg(long, help_heading = "What to record")]
    pub(crate) pages: bool,

    /// Do not record the kernel's memory statistics for the program. Without --pages, they are sampled every 10 ms at
    /// first, and less often the longer the program runs.
    #[arg(long, conflicts_with = "pages", help_heading = "What to record")]
    pub(crate) no_resident: bool,

    /// Record a random sample of blocks, on average one block per BYTES that a thread allocates, such as 512KiB. The
    /// frees of these blocks are recorded too. Reports by site scale the sampled figures up.
    #[arg(long, value_name = "BYTES", value_parser = sample, help_heading = "What to record")]
    pub(crate) sample: Option<u64>,

    /// Record only blocks allocated by threads with these names, and the frees of those blocks. A trailing `*` matches
    /// any suffix. The kernel truncates thread names to 15 bytes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name, help_heading = "What to record")]
    pub(crate) only_threads: Vec<String>,

    /// Record only blocks allocated by code in these modules, and the frees of those blocks. A module is the program or
    /// a library, given by file name; a trailing `*` matches any suffix. A call that the C library or a C++ library
    /// makes on behalf of a module counts as a call by that module. Has the same requirements as --stacks.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name, help_heading = "What to record")]
    pub(crate) only_modules: Vec<String>,

    /// Record the size, function, thread, time and stack of each request, but not addresses or frees. The trace is
    /// small; `report` and `sites` show what was allocated, but not what was live.
    #[arg(long, conflicts_with = "format", help_heading = "What to record")]
    pub(crate) sizes_only: bool,

    /// Do not record calls to an allocator linked into the program, such as jemalloc in Rust. By default, these calls
    /// are recorded by patching a jump into the start of the allocator's functions.
    #[arg(long, help_heading = "What to record")]
    pub(crate) no_linked_in: bool,

    /// Record nothing until recording is turned on by --toggle-signal, --control or the program (hatf_start).
    #[arg(long, help_heading = "When to record")]
    pub(crate) start_off: bool,

    /// Signal that turns recording off and on, such as USR2. Send it to a recorded process to affect that process, or
    /// to `hatf record` to affect all processes. The program must not use the signal itself.
    #[arg(long, value_name = "SIGNAL", value_parser = signal, help_heading = "When to record")]
    pub(crate) toggle_signal: Option<i32>,

    /// File to watch while the program runs. Recording of all processes is turned on or off when the file's first word
    /// changes to `on` or `off`; `dump` writes the part kept by --keep, and `mark NAME` sets a mark in all traces. The
    /// file does not have to exist yet.
    #[arg(long, value_name = "FILE", help_heading = "When to record")]
    pub(crate) control: Option<PathBuf>,

    /// Keep only the most recent part of the recording, such as 60s, 5min or 64MiB (16 bytes per event), in memory. The
    /// trace is encoded and written when the program ends or is killed. To write TRACE.dump1.mtf while the program
    /// runs, use --dump-signal, the dump command of --control, or hatf_dump in the program. Blocks allocated before the
    /// kept part are unknown.
    #[arg(long, value_name = "PART", value_parser = keep, conflicts_with = "flush", help_heading = "When to record")]
    pub(crate) keep: Option<Keep>,

    /// Write the trace in segments, and begin a new one after this time or size, such as 1h or 256MiB. The output is
    /// then a directory [default: PROGRAM.segments] that other commands read like a trace; the traces of processes
    /// that the program creates are directories, too. Each segment begins with the live blocks, so it is complete by
    /// itself. If the directory is not empty, the recording goes to a directory with a number.
    #[arg(long, value_name = "PART", value_parser = keep, conflicts_with_all = ["keep", "no_trace", "symbolize"], help_heading = "When to record")]
    pub(crate) rotate: Option<Keep>,

    /// Delete the oldest segments of --rotate that are older than this time, such as 24h, or beyond this total size,
    /// such as 2GiB. If the disk is full, the oldest segments are deleted earlier. Applies to each process separately.
    #[arg(long, value_name = "PART", value_parser = keep, requires = "rotate", help_heading = "When to record")]
    pub(crate) retain: Option<Keep>,

    /// Signal that writes the part kept by --keep, such as USR1. Send it to a recorded process to affect that process,
    /// or to `hatf record` to affect all processes. The program must not use the signal itself.
    #[arg(long, value_name = "SIGNAL", value_parser = signal, requires = "keep", help_heading = "When to record")]
    pub(crate) dump_signal: Option<i32>,

    /// Store a label in the trace to distinguish it from other traces, as in --label service=web --label version=1.7.
    /// Reports and the table `traces` show labels. Can be repeated; the last value for a key wins.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label, help_heading = "Trace")]
    pub(crate) label: Vec<(String, String)>,

    /// Omit program arguments and the host name from the trace. Paths of programs and libraries are still included.
    #[arg(long, help_heading = "Trace")]
    pub(crate) private: bool,

    /// Record only child processes that run one of these programs, given by file name.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', require_equals = true, help_heading = "Processes")]
    pub(crate) follow: Vec<String>,

    /// Do not record the processes that the program creates.
    #[arg(long, conflicts_with_all = ["follow", "follow_most"], help_heading = "Processes")]
    pub(crate) no_follow: bool,

    /// Maximum number of processes to record at the same time, in addition to the program itself. Further processes are
    /// only counted.
    #[arg(long, value_name = "N", default_value_t = FOLLOW_MOST, allow_negative_numbers = true, value_parser = number(1..=10_000_u32), help_heading = "Processes")]
    pub(crate) follow_most: u32,

    /// Action to take when the spool is full because events arrive faster than the trace is written [default: wait;
    /// drop with --pid or --sample]. `wait` makes the program wait for space; after --patience, events are dropped
    /// until hatf catches up. `drop` drops events, and the trace records where events are missing and how many. `stop`
    /// ends the recording.
    #[arg(long, value_enum, value_name = "POLICY", help_heading = "Spool")]
    pub(crate) when_full: Option<WhenFull>,

    /// Maximum time that the program waits for space in the spool.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time, help_heading = "Spool")]
    pub(crate) patience: u64,

    /// Directory for the spool, which holds events until they are written to the trace [default: /dev/shm, or the
    /// directory for temporary files].
    #[arg(long, value_name = "DIR", help_heading = "Spool")]
    pub(crate) spool: Option<PathBuf>,

    /// Maximum size of the spool, such as 64MiB. An event takes 16 bytes.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bytes, help_heading = "Spool")]
    pub(crate) spool_size: u64,

    /// Print only errors and warnings to standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Record a running process, given by its PID, until it ends or hatf is interrupted; after that, the process
    /// continues unrecorded. Blocks allocated earlier are unknown, and processes that it creates are not recorded. The
    /// process must belong to the same user and use the same C library.
    #[arg(long, value_name = "PID", value_parser = number(1..=u32::MAX), conflicts_with_all = ["command", "follow", "no_follow", "follow_most"], help_heading = "Processes")]
    pub(crate) pid: Option<u32>,

    /// Process ID of the `hatf agent` that started this recording. The recording ends with the agent, and its outcome is
    /// printed to standard output as a JSON object.
    #[arg(long, hide = true, requires = "pid", value_name = "PID")]
    pub(crate) agent: Option<u32>,

    /// Program and its arguments.
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
}

/// DTDs for recordings.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TraceFormat {
    /// heap.dtd: small, and distinguishes all functions.
    Heap,
    /// HATF10.dtd: the DTD from the paper.
    Hatf10,
}

/// The blocks that are recorded for small Python objects.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PythonBlocks {
    /// The arenas of many small objects.
    Arenas,
    /// Each object.
    Objects,
}

impl PythonBlocks {
    /// Returns the option that selects these blocks.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Arenas => "--python=arenas",
            Self::Objects => "--python=objects",
        }
    }
}

/// Policies for a full spool.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WhenFull {
    /// Wait up to --patience for space, then drop events until hatf catches up.
    Wait,
    /// Drop events until there is space.
    Drop,
    /// End the recording.
    Stop,
}

impl Record {
    fn is_debug(&self) -> bool {
        self.preset == RecordPreset::Debug
    }

    /// Returns the maximum number of frames per stack, or 0 if stacks are not recorded.
    pub(crate) fn stacks(&self) -> usize {
        self.stacks.unwrap_or(if self.is_debug() || self.python.is_some() || self.symbolize { DEPTH } else { 0 })
    }

    /// Returns the policy for a full spool. By default, an attached or sampled process does not wait, because it may be
    /// a service.
    pub(crate) fn when_full(&self) -> WhenFull {
        let is_service = self.pid.is_some() || self.sample.is_some();
        self.when_full.unwrap_or(if is_service { WhenFull::Drop } else { WhenFull::Wait })
    }

    /// Returns whether the actual sizes of blocks are recorded.
    pub(crate) fn usable(&self) -> bool {
        self.usable || self.is_debug()
    }

    /// Returns whether pages are recorded.
    pub(crate) fn pages(&self) -> bool {
        self.pages || self.is_debug()
    }
}

/// Parses a label, which consists of a key (letters, digits, `_`, `-` and `.`) and a value.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
        return Err("a key may contain only letters, digits, `_`, `-` and `.`".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}
