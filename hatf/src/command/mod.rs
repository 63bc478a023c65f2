//! The subcommands and their options.
//!
//! Over 400 lines, as most options stand here with their help, which is read side by side.

pub(crate) mod anonymize;
pub(crate) mod cc;
pub(crate) mod churn;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod cut;
pub(crate) mod diff;
pub(crate) mod dump;
#[cfg(feature = "export")]
pub(crate) mod export;
pub(crate) mod fragmentation;
pub(crate) mod import;
mod infer;
pub(crate) mod leaks;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod model;
pub(crate) mod processes;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod regions;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod simulate;
pub(crate) mod sites;
pub(crate) mod sql;
pub(crate) mod symbolize;
mod symbols;
pub(crate) mod tour;
#[cfg(feature = "watch")]
pub(crate) mod watch;
pub(crate) mod whatif;

mod lab;
mod output;
mod values;
mod written;

use std::io;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatf::Error;
use hatf::forms::{FORMS, Form};
use lab::Source;
use metatf_cli::{OutputArgs, number};
use metatf_tools::recode::Preset;
use values::clock;

/// The commands by what they are for. A test holds that each is here.
const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Record:
  run            Run a program, and see which of its functions have memory
  record         Run a program, or attach to one, and write a trace of its heap
  watch          See its heap on the screen while it runs
  recover        Make the trace of a recording that was cut off
  cc             Compile a program so that its loads and stores are counted
  symbolize      Write the functions of its stacks into a trace, for others

Ask:
  report         What does the heap do?
  sites          Which code has the memory?
  flame          The same as a picture
  processes      Which process has the memory, and who frees blocks of other threads?
  leaks          What leaks: since when, and does it grow?
  churn          Which blocks live shortly: would a buffer do?
  fragmentation  What keeps pages from being free?
  profile        What is each context like: sizes, lifetimes, overlaps?
  dump           What happened, record by record?
  sql            Anything else, in SQL

Compare:
  diff           What did a change to the program change?

Try out:
  simulate       What would other allocators make of it?
  whatif         Which allocator, and which settings, would save memory?
  replay         And in truth: time and memory on real allocators
  regions        Could single frees go: which calls could have an arena?
  model          Can the workload be shared without the trace?

Make traces of traces:
  cut            A part: of time, records, a phase, a thread, a process
  merge          Several processes as one trace
  sample         Some of the blocks of a large trace
  anonymize      Without names, for others

Convert:
  convert        The trace in another form
  export         Tables for SQL and data frames: objects, sites, stacks, a timeline
  import         The older name of convert --from

Help:
  tour           Record a program of this machine, report on it, and show what to try next
  completions    A completion script for a shell
  man            Manual pages
  help           The help of a command

Options:
{options}{after-help}
";

/// Returns the help without the commands that this build lacks.
fn help() -> String {
    let lacks = [("export", cfg!(feature = "export")), ("watch", cfg!(feature = "watch"))];
    let is_here =
        |line: &&str| lacks.iter().all(|(name, is_built)| *is_built || line.split_whitespace().next() != Some(name));
    HELP.lines().filter(is_here).flat_map(|line| [line, "\n"]).collect()
}

/// Heap allocation traces: record, report, convert and read them.
#[derive(clap::Parser)]
#[command(
    name = "hatf",
    version,
    help_template = help(),
    after_help = "\
Examples:
  hatf tour                                    see it work on a program of this machine
  hatf run ./program --its arguments           its functions with memory, one screen and a page
  hatf watch ./program --its arguments         its functions with memory, while it runs
  hatf record -o perl.mtf perl -e 'print 1'    record every malloc and free of a program
  hatf recover                                 recordings that were cut off
  hatf report perl.mtf                         what its heap did
  hatf report perl.mtf --format json | jq .peak
  hatf report perl.mtf --svg live.svg          live bytes over time, as a picture
  hatf convert perl.mtf perl.jsonl             the trace in another form
  hatf simulate perl.mtf                       what other allocators would make of it
  hatf whatif perl.mtf                         which of them, and which settings, would save memory
  hatf replay perl.mtf --with system,jemalloc  its requests on real allocators
  hatf record --stacks -o perl.mtf perl        its call stacks, too
  hatf sites perl.mtf                          where in the program memory is allocated
  hatf flame perl.mtf                          the same as a picture
  hatf leaks perl.mtf                          what is live at the end, how old it is, and whether it grows
  hatf churn perl.mtf                          blocks that live shortly, and what would do instead
  hatf processes build.mtf                     the processes that a program made, in one table
  hatf diff before.mtf after.mtf               what a change to the program changed
  hatf dump perl.mtf                           each record with its stack
  hatf symbolize perl.mtf                      the functions of its stacks, written into it for others
  hatf cut perl.mtf --between 10s..60s -o part.mtf
  hatf anonymize perl.mtf -o shared.mtf --check   without names, for others
  hatf export perl.mtf --to parquet -o tables  tables for SQL and data frames
  hatf fragmentation perl.mtf                  which blocks keep pages from being free
  hatf profile perl.mtf                        sizes and lifetimes of each stack's blocks
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
    Run(run::Run),
    Record(record::Record),
    #[cfg(feature = "watch")]
    Watch(watch::Watch),
    Cc(cc::Cc),
    Recover(recover::Recover),
    Report(Report),
    Convert(Convert),
    Import(import::Import),
    Cut(cut::Cut),
    Merge(merge::Merge),
    Sample(sample::Sample),
    Anonymize(anonymize::Anonymize),
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
    Sql(sql::Ask),
    Flame(sites::Flame),
    Processes(processes::Processes),
    Leaks(leaks::Leaks),
    Churn(churn::Churn),
    Diff(diff::Diff),
    Dump(dump::Dump),
    #[cfg(feature = "export")]
    Export(export::Export),
    Fragmentation(fragmentation::Fragmentation),
    Model(model::Model),
    Tour(Tour),
    Completions(Completions),
    Man(Man),
}

/// Report on a trace: events, peak, sizes, lifetimes, threads, blocks that were never freed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf report perl.mtf
  hatf report perl.mtf --format json > perl.json
  hatf report perl.mtf --svg perl.svg
  hatf report perl.mtf --html perl.html
  hatf report perl.mtf --with sites,fragmentation --format html -o perl.html")]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) source: Source,

    /// Also make these analyses, in the same pass over the trace; each is as its command makes it by default. JSON has each by its name.
    #[arg(long, value_enum, value_name = "ANALYSIS", value_delimiter = ',')]
    pub(crate) with: Vec<report::With>,

    #[command(flatten)]
    pub(crate) symbols: symbols::Symbols,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Also draw live bytes over time into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Also make a page that a browser opens without a network: live bytes over time, and which code has what at any moment or in any range.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) folded: sites::Folded,
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
    let read = FORMS.into_iter().filter(|form| form.open.is_some());
    row(read.map(|form| (form.name, form.about))).try_map(|name| Form::of(&name).ok_or("not a form"))
}

/// Parses the name of a form of the output. One that has a command of its own is an error that names it.
fn written_form() -> impl TypedValueParser<Value = &'static Form> {
    let written = FORMS.into_iter().filter(|form| form.create.is_some());
    let names = written.map(|form| PossibleValue::new(form.name).help(form.about));
    let names = names.chain([PossibleValue::new("csv").hide(true)]);
    PossibleValuesParser::new(names).try_map(|name| Form::of(&name).ok_or(CSV))
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

/// Returns the command for a file that was given without one.
pub(crate) fn for_file(path: &Path) -> String {
    let command = if hatf::forms::is_program(path) { "hatf run" } else { "hatf report" };
    format!("{command} {}", path.display())
}

/// Prints a message to standard error. A message that cannot be printed is not a reason to fail.
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
