//! `hatf run`: finds the lines of code that hold memory in one command.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use clap::Parser as _;
use hatf_lab::HeapTracker;
use hatf_lab::sites::Counts;
use hatf_trace::event::shell_words;
use hatf_trace::{Error, Result};
use hatf_view::analysis::ReportBuilder;
use hatf_view::calls::{GroupBy, Groups, Places};
use hatf_view::page::{Collected, HeapPage, Section, Side};
use hatf_view::report::{Grouped, Overview};
use hatf_view::verdict::Facts;
use metatf_cli::{Style, stderr, stderr_width};
use metatf_page::{Form, Note, Page, Report as _, Value, render};

use super::lab::Source;
use super::processes::peaks;
use super::record::options::PythonBlocks;
use super::record::summary::hides_its_objects;
use super::record::trace_output::folder_of;
use super::record::trace_output::free_name;
use super::report::write_page;
use super::sites::Folded;
use super::symbols::{Symbols, allocated};
use super::{Cli, Command, messages_after_answer, print_message, record, warn_last};

/// Run a program and show which of its functions hold memory, on one screen and in an HTML report.
///
/// The recording includes the call stack of each allocation, with Python functions if the program is Python. Python
/// places small objects in arenas, each of which is recorded as one block; `--python=objects` records each object,
/// which takes several times as long. If the program starts other processes, the process with the highest peak is
/// shown. The exit status is that of the program.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf run perl -e '$x{$_} = 1 for 1..100000'
  hatf run --open ./server --port 8080
  hatf run -o gcc.mtf gcc -O2 -c big.c

This command combines `hatf record --stacks`, `hatf report --html` and `hatf sites`, which have
more options.")]
pub(crate) struct Run {
    /// Trace to write [default: PROGRAM.mtf, or PROGRAM.1.mtf and so on]. The HTML report is written next to it, with
    /// the extension .html.
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,

    /// Open the report in a browser.
    #[arg(long)]
    open: bool,

    /// Record Python functions and lines: see `hatf record --python` [default: arenas if the name of the program begins
    /// with `python`].
    #[arg(long, value_enum, value_name = "BLOCKS", num_args = 0..=1, require_equals = true, default_missing_value = "arenas")]
    python: Option<PythonBlocks>,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    symbols: Symbols,

    /// Program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Maximum number of lines including warnings, if the table has more than the minimum number of rows.
const LINES: usize = 30;
/// Minimum and maximum number of functions in the table.
const ROWS: (usize, usize) = (2, 8);
/// Maximum number of suggested commands.
const SUGGESTIONS: usize = 3;

pub(crate) fn run(options: &Run) -> Result<u8> {
    let program = options.command.first().map(|program| Path::new(program).file_name().unwrap_or(program));
    let program = program.unwrap_or(OsStr::new("trace"));
    let trace = options.output.clone().unwrap_or_else(|| free_name(program));
    let mut arguments: Vec<OsString> = ["hatf", "record", "--stacks", "-q", "-o"].map(OsString::from).into();
    arguments.push(trace.clone().into());
    let is_python = program.to_string_lossy().starts_with("python");
    let python = options.python.or(is_python.then_some(PythonBlocks::Arenas));
    arguments.extend(python.map(|blocks| blocks.option().into()));
    arguments.push("--".into());
    arguments.extend(options.command.iter().cloned());
    let parsed = Cli::try_parse_from(arguments).map_err(|error| Error::Usage(error.to_string()))?;
    let Command::Record(record) = parsed.command else { return Ok(0) };
    warn_last();
    let has_arenas = hides_its_objects(&record) && record.python.is_some();
    let status = record::run(&record)?;
    if !trace.is_file() {
        return Ok(status);
    }
    let (shown, process) = largest(&trace);
    show(options, &shown, process, has_arenas)?;
    Ok(status)
}

/// Returns the trace of the process with the highest peak, and a sentence about this process if there are others. The
/// recorded program may be a launcher that allocates little, because another program does the work.
fn largest(trace: &Path) -> (PathBuf, Option<String>) {
    let folder = folder_of(trace);
    let processes = if folder.is_dir() { peaks(&folder).unwrap_or_default() } else { Vec::new() };
    let highest = processes.iter().max_by_key(|process| (process.bytes, std::cmp::Reverse(process.number)));
    let Some(highest) = highest.filter(|_| processes.len() > 1) else { return (trace.to_owned(), None) };
    let sum = processes.iter().fold(0_u64, |sum, process| sum.saturating_add(process.bytes));
    let text = format!(
        "{} processes were recorded; this is process {}, `{}`, whose peak is {} of {} in total.",
        Value::Count(processes.len() as u64),
        highest.number,
        shortened(&highest.command),
        Value::Bytes(highest.bytes),
        Value::Bytes(sum)
    );
    // The list names the program's own trace relative to its directory.
    let is_own = highest.trace.parent() != Some(&folder);
    (if is_own { trace.to_owned() } else { highest.trace.clone() }, Some(text))
}

/// Returns a command without the directory of its program, shortened to [`COMMAND_MAX`] characters.
fn shortened(command: &str) -> String {
    let program = command.split(' ').next().unwrap_or_default().len();
    let start = command.get(..program).and_then(|program| program.rfind('/')).map_or(0, |slash| slash + 1);
    cut(command.get(start..).unwrap_or(command), COMMAND_MAX)
}

/// Maximum number of characters of a command in a sentence.
const COMMAND_MAX: usize = 60;
/// Maximum number of characters of the command in the title.
const TITLE_MAX: usize = 160;

/// Truncates a string to this many characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// Prints the sentences, a table of functions and the next commands, and writes the HTML report. `has_arenas` states that arenas contain Python's small objects.
fn show(options: &Run, trace: &Path, process: Option<String>, has_arenas: bool) -> Result<()> {
    let source = Source::new(trace.to_owned(), None, None);
    let mut tracker = HeapTracker::new((ReportBuilder::new(), Collected::new()));
    source.read(&mut tracker)?;
    let (mut heap, (analysis, collected)) = tracker.into_parts();
    if heap.totals().objects == 0 {
        print_message(&format!("{}: no allocations were recorded", trace.display()));
        return Ok(());
    }
    let counts = analysis.site_counts();
    let (summed, named) = source.both(
        || collected.sum_up(&heap.objects),
        || options.symbols.name(trace, &mut heap.stacks, None, allocated(&counts)),
    )?;
    named?;
    let summed = summed?;
    let name = trace.display().to_string();
    let ((report, recorded), (places, groups)) = source.both(
        || {
            let report = analysis.report(&heap);
            let recorded = summed.recorded(name.clone(), &heap, &report, counts.clone());
            (report, recorded)
        },
        || {
            let places = Places::new(&heap.stacks, &options.folded.folding(), GroupBy::Function);
            let groups = Groups::new(&places, &counts);
            (places, groups)
        },
    )?;
    let page = trace.with_extension("html");
    let live = &analysis.live_by_site();
    let facts = Facts { report: &report, places: &places, groups: &groups, counts: &counts, live };
    let (sentences, below) = (facts.sentences(), &[Section::report(report.page())]);
    let growths = facts.growths();
    let sides = &[Side { recorded: &recorded, places: &places, groups: &groups }];
    let said = sentences.clone();
    let threads = source.threads();
    write_page(&page, &HeapPage { title: &name, sides, sentences, has_functions: true, below, threads })?;

    let mut total = Counts::default();
    counts.iter().for_each(|site| total.add(site));
    let command = shell_words(options.command.iter().map(|word| word.to_string_lossy()));
    let mut top = Page::new(cut(&command, TITLE_MAX));
    let has_others = process.is_some();
    process.into_iter().for_each(|process| top.note(process));
    said.into_iter().for_each(|sentence| top.note(sentence.text));
    let grouped = Grouped { places: &places, groups: &groups, inclusive: false };
    let overview = Overview::new(grouped, &growths, report.is_complete);
    let screen = |rows: usize, suggestions: usize| {
        let mut screen = top.clone();
        screen.subheading("");
        Some(overview.table(rows)).filter(|table| !table.is_empty()).into_iter().for_each(|table| screen.push(table));
        places.wrappers_sentence().into_iter().for_each(|folded| screen.push(folded));
        screen.heading("NEXT");
        screen.push(Note::new("{}: HTML report over time and by call").with([Value::text(page.display().to_string())]));
        if has_arenas {
            let command = if command.len() > COMMAND_MAX { ".." } else { &command };
            screen.note(format!(
                "hatf run --python=objects {command}: records each small object, which takes several times as long"
            ));
        }
        let next = next(&total, overview.has_growth(), has_others, &name);
        let count = suggestions - usize::from(has_arenas);
        next.into_iter().take(count).for_each(|(command, why)| screen.note(format!("{command}: {why}")));
        screen
    };
    print_fitting(screen)?;
    if options.open {
        open(&page);
    }
    Ok(())
}

/// Prints the page with as many rows, and then as many suggestions, as fit [`LINES`] together with the messages after it.
fn print_fitting(page: impl Fn(usize, usize) -> Page) -> Result<()> {
    let (least, most) = ROWS;
    let printed = |rows, suggestions| {
        let mut text = Vec::new();
        render(&page(rows, suggestions), Form::text(stderr_width()), &mut text)?;
        std::io::Result::Ok(text)
    };
    let lines_per_message = match stderr_width() {
        None => 1,
        Some(120..) => 2,
        Some(_) => 3,
    };
    let lines = LINES.saturating_sub(messages_after_answer() * lines_per_message);
    let mut text = printed(most, SUGGESTIONS)?;
    let fewer = (least..most).rev().map(|rows| (rows, SUGGESTIONS));
    for (rows, suggestions) in fewer.chain((1..SUGGESTIONS).rev().map(|suggestions| (least, suggestions))) {
        if text.iter().filter(|byte| **byte == b'\n').count() <= lines {
            break;
        }
        text = printed(rows, suggestions)?;
    }
    Ok(stderr(Style::Text).write_all(&text)?)
}

/// Returns commands that answer the questions raised by notable findings, and the reasons, most important first.
fn next(total: &Counts, has_growth: bool, has_others: bool, trace: &str) -> Vec<(String, &'static str)> {
    let folder = Path::new(trace).parent().filter(|folder| folder.extension() == Some(OsStr::new("processes")));
    let recording = folder.map_or_else(|| trace.to_owned(), |folder| folder.display().to_string());
    let leaks = total.leaked.bytes > total.peak.bytes / 4 || has_growth;
    let all = [
        (has_others, "processes", &*recording, "all recorded processes"),
        (leaks, "leaks", trace, "memory live at the end, its growth"),
        (total.short.blocks > total.allocated.blocks / 10, "churn", trace, "how to avoid short-lived blocks"),
        (true, "sites", trace, "all functions, with callers"),
        (true, "whatif", trace, "allocators that would save memory"),
    ];
    let asked = all.into_iter().filter(|(is_asked, ..)| *is_asked);
    asked.map(|(_, name, of, why)| (shell_words(["hatf", name, of]), why)).collect()
}

/// Opens the HTML report in the default browser.
fn open(page: &Path) {
    let started =
        Process::new("xdg-open").arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = started {
        print_message(&format!("could not run xdg-open: {error}; open {} in a browser", page.display()));
    }
}
