//! The subcommands and their options.

pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod tour;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use hatf::Error;

/// Heap allocation traces: record, report and read them.
#[derive(clap::Parser)]
#[command(
    name = "hatf",
    version,
    after_help = "\
Examples:
  hatf tour                                    see it work on a program of this machine
  hatf record -o perl.mtf perl -e 'print 1'    record every malloc and free of a program
  hatf report perl.mtf                         what its heap did
  hatf report perl.mtf --format json | jq .peak
  hatf report perl.mtf --svg live.svg          live bytes over time, as a picture

Exit status: 0 well; 1 a trace could not be read or written; 2 wrong usage. `hatf record` ends as
the program does: with its status, 128 + N if signal N ended it, 125 if recording failed, 126 if
the program could not be run, 127 if it was not found."
)]
pub(crate) enum Command {
    Record(Record),
    Report(Report),
    Tour(Tour),
}

/// Run a program and write a trace of its heap.
///
/// Every malloc, calloc, realloc, reallocarray, free, memalign, posix_memalign, aligned_alloc, valloc
/// and pvalloc of all threads, with thread and time. The program is not changed: a recorder is
/// preloaded into it. It must be dynamically linked. Its child processes are not recorded; a
/// program that it turns into (exec) is.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record perl -e '$x{$_} = 1 for 1..10000'
  hatf record -o sort.mtf -- sort -u words.txt
  hatf record --report --no-trace python3 -c 'print(1)'
  LD_PRELOAD=libjemalloc.so.2 hatf record PROGRAM    record it with another allocator")]
pub(crate) struct Record {
    /// The trace to write; without it PROGRAM.mtf, or PROGRAM.1.mtf and so on, here.
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: Option<PathBuf>,

    /// Also report on standard error when the program has ended.
    #[arg(long)]
    pub(crate) report: bool,

    /// Write no trace.
    #[arg(long, requires = "report", conflicts_with = "output")]
    pub(crate) no_trace: bool,

    /// Say nothing on standard error but what went wrong.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// Say what a trace shows: events, peak, sizes, lifetimes, threads, what was never freed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf report perl.mtf
  hatf report perl.mtf --format json > perl.json
  hatf report perl.mtf --svg perl.svg")]
pub(crate) struct Report {
    /// The trace.
    pub(crate) trace: PathBuf,

    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Also draw live bytes over time into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Record a program of this machine, report on it, and show what to try next.
#[derive(clap::Args)]
pub(crate) struct Tour {
    /// Where the trace is put.
    #[arg(short, long, value_name = "TRACE", default_value = "tour.mtf")]
    pub(crate) output: PathBuf,
}

/// Forms of a report.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// The exit status for an error.
pub(crate) fn exit_code(error: &Error) -> u8 {
    match error {
        Error::Start(_, error) if error.kind() == io::ErrorKind::NotFound => 127,
        Error::Start(..) => 126,
        Error::System(..) | Error::Trace(_) => 1,
    }
}
