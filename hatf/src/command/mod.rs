//! The subcommands and their options.
//!
//! Over 400 lines, as most options stand here with their help, which is read side by side.

pub(crate) mod cc;
pub(crate) mod churn;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod fragmentation;
pub(crate) mod import;
mod infer;
pub(crate) mod man;
pub(crate) mod model;
pub(crate) mod paper;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod regions;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod simulate;
pub(crate) mod sites;
pub(crate) mod symbolize;
pub(crate) mod tour;
pub(crate) mod whatif;

mod lab;
mod output;
mod processes;
mod record_preset;
mod record_summary;
mod values;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatf::Error;
use hatf::forms::{FORMS, Form};
use hatf::heap::GROUP_RECORDS;
use hatf::paper::Column;
use hatf::record::Keep;
use lab::Source;
use metatf::recode::Preset;
use metatf_cli::{OutputArgs, number};
use record_preset::RecordPreset;
use values::{bytes, clock, keep, name, sample, signal};

/// The commands by what they are for. A test holds that each is here.
const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Record:
  record         Run a program, or attach to one, and write a trace of its heap
  recover        Make the trace of a recording that was cut off
  cc             Compile a program so that its loads and stores are counted
  symbolize      Write the functions of its stacks into a trace

Ask:
  report         What does the heap do?
  sites          Which code has the memory?
  flame          The same as a picture
  churn          Which blocks live shortly: would a buffer do?
  fragmentation  What keeps pages from being free?
  profile        What is each context like: sizes, lifetimes, overlaps?
  dump           What happened, record by record?

Compare:
  diff           What did a change to the program change?
  paper          How small is a trace in every encoding?

Try out:
  simulate       What would other allocators make of it?
  whatif         Which allocator, and which settings, would save memory?
  replay         And in truth: time and memory on real allocators
  regions        Could single frees go: which calls could have an arena?
  model          Can the workload be shared without the trace?

Convert:
  convert        The trace in another form
  import         The older name of convert --from

Help:
  tour           Record a program of this machine, report on it, and show what to try next
  completions    A completion script for a shell
  man            Manual pages
  help           The help of a command

Options:
{options}{after-help}
";

/// Heap allocation traces: record, report, convert and read them.
#[derive(clap::Parser)]
#[command(
    name = "hatf",
    version,
    help_template = HELP,
    after_help = "\
Examples:
  hatf tour                                    see it work on a program of this machine
  hatf record -o perl.mtf perl -e 'print 1'    record every malloc and free of a program
  hatf recover                                 recordings that were cut off
  hatf report perl.mtf                         what its heap did
  hatf report perl.mtf --format json | jq .peak
  hatf report perl.mtf --svg live.svg          live bytes over time, as a picture
  hatf convert perl.mtf perl.jsonl             the trace in another form
  hatf paper perl.mtf                          how small it is in every encoding
  hatf simulate perl.mtf                       what other allocators would make of it
  hatf whatif perl.mtf                         which of them, and which settings, would save memory
  hatf replay perl.mtf --with system,jemalloc  its requests on real allocators
  hatf symbolize perl.mtf                      the functions of its stacks, written into it
  hatf sites perl.sym.mtf                      where in the program memory is allocated
  hatf flame perl.sym.mtf                      the same as a picture
  hatf churn perl.sym.mtf                      blocks that live shortly, and what would do instead
  hatf diff before.sym.mtf after.sym.mtf       what a change to the program changed
  hatf dump perl.sym.mtf                       each record with its stack
  hatf fragmentation perl.mtf                  which blocks keep pages from being free
  hatf profile perl.sym.mtf                    sizes and lifetimes of each stack's blocks
  hatf model fit perl.mtf -m cdf               what a synthetic trace can be made of

A command takes at most half of the memory that is available, or what --max-memory SIZE says, as in
--max-memory 8GiB. Beyond that it ends with a message.

Exit status: 0 success, 1 a file is missing, damaged or wrong, 2 the command line is wrong. `hatf
record` ends with the program's status: 128 + N if signal N ended it. It ends with 125 if recording
failed, 126 if the program could not be run, 127 if it was not found."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) memory: metatf_cli::MemoryLimit,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Record(Record),
    Cc(cc::Cc),
    Recover(recover::Recover),
    Report(Report),
    Convert(Convert),
    Import(import::Import),
    Paper(Paper),
    Simulate(simulate::Simulate),
    Whatif(whatif::Whatif),
    Replay(replay::Replay),
    Regions(regions::Regions),
    Profile(profile::Profile),
    #[command(name = "__replay-worker", hide = true)]
    ReplayWorker(replay::ReplayWorker),
    Symbolize(symbolize::Symbolize),
    #[command(name = "__symbolize-helper", hide = true)]
    SymbolizeHelper(symbolize::SymbolizeHelper),
    Sites(sites::Sites),
    Flame(sites::Flame),
    Churn(churn::Churn),
    Diff(diff::Diff),
    Dump(dump::Dump),
    Fragmentation(fragmentation::Fragmentation),
    Model(model::Model),
    Tour(Tour),
    Completions(Completions),
    Man(Man),
}

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

    /// Approximate number of records in a group. A full group is safe on disk, and can be read without the groups before
    /// it; small groups make a large trace.
    #[arg(long, value_name = "RECORDS", default_value_t = GROUP_RECORDS, allow_negative_numbers = true, value_parser = number(1..=u64::MAX), help_heading = "Trace")]
    pub(crate) group: u64,

    /// Also end the group every SECONDS, so that a recorder that is killed loses at most that much. Traces of programs
    /// with fewer than a million events in that time get larger. For heap traces.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = number(1..=u64::MAX), conflicts_with = "no_trace", help_heading = "Trace")]
    pub(crate) flush: Option<u64>,

    /// Record the call stack of each allocation, of at most DEPTH frames. It needs unwind tables, which compilers make by
    /// default, glibc 2.35 and x86-64. hatf symbolize adds the names of functions to the trace.
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, require_equals = true, default_missing_value = "64", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256), help_heading = "What is recorded")]
    pub(crate) stacks: Option<usize>,

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

    /// Record only a sample: of the blocks that a thread allocates one for each so many bytes, such as 512KiB, chosen at random, and
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
    /// on or off, or to dump. It need not be there yet.
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
    #[arg(long, value_name = "N", default_value_t = hatf::record::FOLLOW_MOST, allow_negative_numbers = true, value_parser = number(1..=10_000_u32), help_heading = "Processes")]
    pub(crate) follow_most: u32,

    /// What the program does when events come faster than the trace is written for so long that the spool is full: wait (at
    /// most 5 s, then drop), drop (events are left out and counted where they are missing), or stop (recording ends).
    #[arg(long, value_enum, default_value_t = WhenFull::Wait, value_name = "POLICY", help_heading = "Spool")]
    pub(crate) when_full: WhenFull,

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

/// Report on a trace: events, peak, sizes, lifetimes, threads, blocks that were never freed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf report perl.mtf
  hatf report perl.mtf --format json > perl.json
  hatf report perl.mtf --svg perl.svg
  hatf report perl.mtf --with sites,fragmentation --format html -o perl.html")]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) source: Source,

    /// Also make these analyses, in the same pass over the trace; each is as its command makes it by default. JSON has each by its name.
    #[arg(long, value_enum, value_name = "ANALYSIS", value_delimiter = ',')]
    pub(crate) with: Vec<report::With>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Also draw live bytes over time into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Convert a trace from one form to another.
///
/// A line on standard error reports each kind of value that the new form cannot hold. Input compressed by zstd or gzip is
/// decompressed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf convert perl.mtf perl.jsonl
  hatf convert --to hatf1 perl.mtf perl.hatf
  hatf convert gawk.raw32.zst gawk.mtf
  hatf convert --from malloclab --to heap - - < short1.rep > short1.mtf")]
pub(crate) struct Convert {
    /// The form of the input [default: guessed from its first bytes or its name].
    #[arg(long, value_name = "FORM", value_parser = form())]
    pub(crate) from: Option<&'static Form>,

    /// The form of the output [default: guessed from its name; .mtf is heap]. For CSV see `metatfc dump --format csv`.
    #[arg(long, value_name = "FORM", value_parser = written_form())]
    pub(crate) to: Option<&'static Form>,

    /// Trade size for speed, for traces in Meta-TF: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    pub(crate) preset: Preset,

    /// Length of a tick of a heap trace's clock, 1ns to 1ms, or off [default: that of the input].
    #[arg(long, value_name = "TICK", value_parser = clock)]
    pub(crate) clock: Option<u64>,

    /// Approximate number of records in a group of a heap trace [default: a million]. Groups can be read in parallel, and
    /// without each other; small groups make a large trace.
    #[arg(long, value_name = "RECORDS", allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    pub(crate) group: Option<u64>,

    /// Write to hatf1, before each realloc, records of the malloc and free that it made, as the paper's Table 1 has them.
    #[arg(long)]
    pub(crate) inner_records: bool,

    /// End each block where it is last accessed, in a heap trace of a program that hatf cc built; the trace is read twice.
    #[arg(long)]
    pub(crate) free_at_last_access: bool,

    /// Exit with status 1 if something was lost.
    #[arg(long)]
    pub(crate) strict: bool,

    /// The trace; `-` is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The output [default: standard output, as for `-`].
    #[arg(value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

/// Where CSV comes from.
pub(crate) const CSV: &str = "CSV is written by another command: \
    metatfc dump --format csv --thread-column --record malloc TRACE > malloc.csv";

/// Parses the name of a row of a table, given by name and line of help.
fn row(rows: impl IntoIterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(rows.into_iter().map(|(name, about)| PossibleValue::new(name).help(about)))
}

/// Parses the name of a form.
fn form() -> impl TypedValueParser<Value = &'static Form> {
    row(FORMS.map(|form| (form.name, form.about))).try_map(|name| Form::of(&name).ok_or("not a form"))
}

/// Parses the name of a form of the output. One that has a command of its own is an error that names it.
fn written_form() -> impl TypedValueParser<Value = &'static Form> {
    let written = FORMS.into_iter().filter(|form| form.create.is_some());
    let names = written.map(|form| PossibleValue::new(form.name).help(form.about));
    let names = names.chain([PossibleValue::new("csv").hide(true)]);
    PossibleValuesParser::new(names).try_map(|name| Form::of(&name).ok_or(CSV))
}

/// Measure how small and how fast traces are in every encoding: the tables of the paper, and what came after it.
///
/// Takes the calls of each trace, with function, size and addresses, as raw records of 32 bytes, and writes them in every
/// encoding: the paper's (tables 3, 4, 7 and 8; with --times 5 and 6), and this project's. Sizes are exact sizes of whole files,
/// with headers, index and DTD; every file is read back and compared. Traces are held in memory, 32 bytes a
/// record. Times are medians of processor time, of runs in memory; those of
/// heap are of generated code, all others of the universal reader and writer. Writing includes planning.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf paper perl.mtf
  hatf paper --format markdown --svg sizes.svg *.mtf > sizes.md
  hatf paper --only heap,split,simple gawk.raw32.zst
  hatf paper --times 5 perl.mtf
  hatf paper --peer heaptrack=heaptrack.perl.1234.zst perl.mtf

Columns: simple32, simple, parquet, ascii, naive, small-size, same-size, combined-size,
base-offset-1, base-offset-2, best-base-offset, stride, best, split-stream, split-addr,
address-section, optimal, split, values, heap. simple32 needs addresses and sizes under 4 GiB;
parquet needs python3 with pyarrow; xz needs the command xz; the times of ASCII/Perl need perl.")]
pub(crate) struct Paper {
    /// Traces, in any form that hatf convert reads.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,

    /// How to print the tables.
    #[arg(long, value_enum, default_value_t = PaperFormat::Text)]
    pub(crate) format: PaperFormat,

    /// Only these columns.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) only: Vec<Column>,

    /// Measure the first N records of each trace. A million takes a minute and a half of one processor.
    #[arg(long, value_name = "N", default_value_t = 500_000, allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    pub(crate) records: u64,

    /// Also measure times: medians of RUNS runs.
    #[arg(long, value_name = "RUNS", allow_negative_numbers = true, value_parser = number(1..=usize::MAX))]
    pub(crate) times: Option<usize>,

    /// Number of threads that measure sizes, each of one encoding [default: the number of processors]. Times are measured
    /// afterwards, by one thread.
    #[arg(long, value_name = "THREADS", default_value_t = 0, hide_default_value = true, allow_negative_numbers = true, value_parser = number(0..=1024_usize))]
    pub(crate) threads: usize,

    /// Compare with another tool's file of the same run, such as heaptrack's. If a name is repeated, its first file is for the
    /// first trace, its second for the second, and so on.
    #[arg(long = "peer", value_name = "NAME=FILE", value_parser = peer)]
    pub(crate) peers: Vec<(String, PathBuf)>,

    /// Also draw sizes into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Forms of the tables.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PaperFormat {
    /// For people.
    Text,
    /// For documents.
    Markdown,
    /// Bytes, and nanoseconds a record.
    Json,
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
    /// Wait for space, at most 5 s; then drop.
    Wait,
    /// Leave events out until there is space.
    Drop,
    /// End the recording.
    Stop,
}

/// Parses a name and a file.
fn peer(text: &str) -> Result<(String, PathBuf), String> {
    let split = text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
    let (name, path) = split.ok_or("expected NAME=FILE, such as heaptrack=heaptrack.perl.1234.zst")?;
    Ok((name.to_owned(), path.into()))
}

/// Record a program of this machine, report on it, and show what to try next.
#[derive(clap::Args)]
pub(crate) struct Tour {
    /// The trace to write.
    #[arg(short, long, value_name = "TRACE", default_value = "tour.mtf")]
    pub(crate) output: PathBuf,
}

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf completions bash > ~/.local/share/bash-completion/completions/hatf
  hatf completions zsh > ~/.zfunc/_hatf
  hatf completions fish > ~/.config/fish/completions/hatf.fish")]
pub(crate) struct Completions {
    /// Which shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Write manual pages: one for hatf, and one for each of its commands.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf man ~/.local/share/man/man1
  man hatf-record")]
pub(crate) struct Man {
    /// The folder; it is made if it is missing.
    pub(crate) folder: PathBuf,
}

/// Prints a message to standard error. A message that cannot be printed is no reason to fail.
pub(crate) fn print_message(message: &str) {
    metatf_cli::print_message("hatf", message);
}

/// Returns how many threads may work at once, where nobody says.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Names the input in an error about it that does not.
pub(crate) fn about(input: &Path, error: Error) -> Error {
    let name = if input == Path::new("-") { "standard input".to_owned() } else { input.display().to_string() };
    match error {
        Error::Trace(error) if !error.to_string().starts_with(&name) => Error::Trace(format!("{name}: {error}").into()),
        other => other,
    }
}

/// Returns the exit status for an error.
pub(crate) fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Start(_, error) if error.kind() == io::ErrorKind::NotFound => 127,
        Error::Start(..) => 126,
        Error::System(..) | Error::Trace(_) => 1,
        Error::Usage(_) => 2,
    }
}
