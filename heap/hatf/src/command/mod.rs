//! The subcommands and their options.
//!
//! This file is long because it contains the help texts of many options, which are easier to compare side by side.

pub(crate) mod agent;
pub(crate) mod analyses;
pub(crate) mod anonymize;
pub(crate) mod cc;
pub(crate) mod convert;
pub(crate) mod cut;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod fragmentation;
mod infer;
pub(crate) mod inspect;
pub(crate) mod leaks;
pub(crate) mod model;
pub(crate) mod processes;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod regions;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod sites;
pub(crate) mod sql;
pub(crate) mod symbolize;
mod symbols;
pub(crate) mod tour;
#[cfg(feature = "watch")]
pub(crate) mod watch;

mod lab;
mod output;
mod points;
mod values;
mod written;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatf_trace::Error;
use hatf_trace::forms::{FORMS, Form, OpenOptions};
use hatf_trace::trace::Opening;
use hatf_view::analyses::{ANALYSES, Analysis};
use lab::Source;
use metatf_cli::OutputArgs;
use values::clock;

/// The commands, grouped by purpose. A test checks that the list is complete.
const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Record:
  run            Run a program and show which of its functions hold memory
  record         Run a program, or attach to one, and record its heap in a trace
  watch          Watch a program's heap live while it runs
  inspect        Show what the memory of a running process consists of, without a recording
  agent          Record running processes by policy, and upload their traces
  recover        Complete the trace of an interrupted recording
  cc             Compile a program so that its loads and stores are counted
  symbolize      Write function names into a trace, so that it can be read elsewhere

Analyze:
  report         What does the heap do?
  @analyses
  processes      Which process uses the memory, and which frees cross threads?
  dump           What happened, record by record?
  sql            Any other question, in SQL

Compare:
  diff           What did a change to the program change?

Experiment:
  simulate       How would other allocators handle these requests?
  replay         How much time and memory do real allocators take?
  regions        Could arenas replace individual frees, and in which calls?
  model          Can the workload be shared without the trace?

Derive traces:
  cut            Extract a time range, a record range, a phase, a thread, a process or a sample
  convert        Write traces in other formats, profiles and tables, or merge traces
  anonymize      Remove names, so that the trace can be shared

Help:
  tour           Record a program on this machine, report on it and suggest next steps
  help           Print help for a command

Options:
{options}{after-help}
";

/// Returns the help text, with the analyses but without the commands that this build lacks.
fn help() -> String {
    let analyses = ANALYSES.iter().map(|analysis| format!("  {:<14} {}", analysis.name, analysis.question));
    let help = HELP.replace("  @analyses", &analyses.collect::<Vec<_>>().join("\n"));
    let is_here = |line: &&str| cfg!(feature = "watch") || !line.starts_with("  watch ");
    help.lines().filter(is_here).flat_map(|line| [line, "\n"]).collect()
}

/// Record, analyze and convert heap allocation traces.
#[derive(clap::Parser)]
#[command(
    name = "hatf",
    version,
    help_template = help(),
    after_help = "\
Examples:
  hatf tour                                    try it on a program on this machine
  hatf run ./program --its arguments           functions that hold memory, and an HTML report
  hatf watch ./program --its arguments         functions that hold memory, live
  hatf record -o perl.mtf perl -e 'print 1'    record every malloc and free of a program
  hatf inspect 1234                            resident memory of a process: live, free, pinned
  hatf recover                                 list interrupted recordings
  hatf report perl.mtf                         summarize the heap
  hatf report perl.mtf --format json | jq .peak
  hatf report perl.mtf --svg live.svg          chart of live bytes over time
  hatf convert perl.mtf perl.jsonl             the trace in another format
  hatf simulate perl.mtf                       simulate other allocators
  hatf whatif perl.mtf                         allocators and settings that would save memory
  hatf replay perl.mtf --with system,jemalloc  replay the requests on real allocators
  hatf record --stacks -o perl.mtf perl        record call stacks, too
  hatf sites perl.mtf                          code that allocates memory
  hatf sites perl.mtf --format svg -o perl.svg the same, as a flame graph
  hatf leaks perl.mtf                          blocks live at the end, their age and growth
  hatf churn perl.mtf                          short-lived blocks, and how to avoid them
  hatf processes build.mtf                     all processes of a recording, in one table
  hatf diff before.mtf after.mtf               effect of a change to the program
  hatf dump perl.mtf                           each record with its stack
  hatf symbolize perl.mtf                      write function names into the trace
  hatf cut perl.mtf --between 10s..60s -o part.mtf
  hatf anonymize perl.mtf -o shared.mtf --check   remove names before sharing
  hatf convert perl.mtf tables --to parquet    tables for SQL and data frames
  hatf fragmentation perl.mtf                  blocks that keep pages from being freed
  hatf profile perl.mtf                        sizes and lifetimes of each stack's blocks
  hatf model fit perl.mtf -m cdf               fit a model for synthetic traces

Each command uses at most half of the available memory, or at most --max-memory SIZE, such as
--max-memory 8GiB. A command that needs more stops with an error message.

Exit status: 0 on success, 1 if a file is missing, corrupt or invalid, 2 for a usage error. `hatf
record` exits with the program's status, or 128 + N if signal N killed the program. It exits with
125 if recording failed, 126 if the program could not be run and 127 if it was not found."
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
    Inspect(inspect::Inspect),
    Agent(agent::Agent),
    Cc(cc::Cc),
    Recover(recover::Recover),
    Report(Report),
    Convert(convert::Convert),
    Cut(cut::Cut),
    Anonymize(anonymize::Anonymize),
    Simulate(simulate::Simulate),
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
    Processes(processes::Processes),
    Leaks(leaks::Leaks),
    #[command(flatten)]
    Analyze(analyses::Analyze),
    Diff(diff::Diff),
    Dump(dump::Dump),
    Fragmentation(fragmentation::Fragmentation),
    Model(model::Model),
    Tour(Tour),
}

/// Summarize a trace: events, peak, sizes, lifetimes, threads and blocks never freed.
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

    /// Also run these analyses in the same pass over the trace, each with the default settings of its command. JSON
    /// output contains each analysis under its name.
    #[arg(long, value_name = "ANALYSIS", value_delimiter = ',', value_parser = report::with())]
    pub(crate) with: Vec<&'static Analysis>,

    #[command(flatten)]
    pub(crate) symbols: symbols::Symbols,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Also draw live bytes over time to this SVG file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Also write an HTML report that a browser opens without network access: live bytes over time, and which code
    /// holds memory at any point in time or over any range.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) folded: sites::Folded,
}

/// The functions with which `hatf` opens Meta-TF traces: they print warnings, and lost records change the exit status.
pub(crate) const OPENING: Opening = Opening {
    open: |path| metatf_cli::open_trace(path, false),
    opened: |reader, name| metatf_cli::watch_trace(reader, "hatf", name),
};

/// Returns the options with which this command opens traces.
pub(crate) fn open_options(form: Option<&'static Form>, note: fn(&str)) -> OpenOptions {
    OpenOptions { form, note, opening: OPENING }
}

/// Returns a parser for the row names of a table, given as (name, help) pairs.
fn row(rows: impl IntoIterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(rows.into_iter().map(|(name, about)| PossibleValue::new(name).help(about)))
}

/// Returns a parser for the name of an input format.
fn form() -> impl TypedValueParser<Value = &'static Form> {
    let read = FORMS.into_iter().filter(|form| form.open.is_some());
    row(read.map(|form| (form.name, form.about))).try_map(|name| Form::of(&name).ok_or("unknown format"))
}

/// Record a program on this machine, report on it and suggest next steps.
#[derive(clap::Args)]
pub(crate) struct Tour {
    /// Trace to write.
    #[arg(short, long, value_name = "TRACE", default_value = "tour.mtf")]
    pub(crate) output: PathBuf,
}

/// Returns the command to suggest if the user specifies a file without a command.
pub(crate) fn for_file(path: &Path) -> String {
    let command = if hatf_trace::forms::is_program(path) { "hatf run" } else { "hatf report" };
    format!("{command} {}", path.display())
}

/// A message that is composed when it is printed.
type Message = Box<dyn FnOnce() -> String + Send>;

/// Messages to print after the answer of the command.
static MESSAGES: Mutex<Vec<Message>> = Mutex::new(Vec::new());

/// Stores a message that [`print_messages`] prints after the answer of the command.
pub(crate) fn print_after_answer(message: String) {
    compose_after_answer(move || message);
}

/// Stores a message like [`print_after_answer`], but delays slow work, such as running another program, until the answer
/// has been printed.
pub(crate) fn compose_after_answer(message: impl FnOnce() -> String + Send + 'static) {
    if let Ok(mut messages) = MESSAGES.lock() {
        messages.push(Box::new(message));
    }
}

/// Returns the number of messages that will be printed after the answer of the command.
pub(crate) fn messages_after_answer() -> usize {
    MESSAGES.lock().map_or(0, |messages| messages.len())
}

/// Prints the messages for the end of the command, wrapped like the answer.
pub(crate) fn print_messages() {
    let messages = MESSAGES.lock().map(|mut messages| std::mem::take(&mut *messages));
    let width = metatf_cli::stderr_width().map(|width| width.saturating_sub("hatf: ".len()));
    for message in messages.into_iter().flatten().map(|message| message()) {
        print_message(&width.map_or(message.clone(), |width| metatf_page::wrapped(&message, width).join("\n")));
    }
}

/// Whether warnings are printed after the answer of the command.
static WARNS_LAST: AtomicBool = AtomicBool::new(false);

/// Makes [`print_warning`] print warnings after the answer of the command.
pub(crate) fn warn_last() {
    WARNS_LAST.store(true, Ordering::Relaxed);
}

/// Prints a warning, either immediately or after the answer of the command.
pub(crate) fn print_warning(message: &str) {
    if WARNS_LAST.load(Ordering::Relaxed) { print_after_answer(message.to_owned()) } else { print_message(message) }
}

/// Prints a message to standard error. Failure to print is ignored.
pub(crate) fn print_message(message: &str) {
    metatf_cli::print_message("hatf", message);
}

/// Returns the default number of worker threads.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Adds the name of the input to an error that lacks it.
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
