//! `hatf run`: finds the lines of code that hold memory in one command.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use clap::Parser as _;
use hatf_lab::HeapTracker;
use hatf_lab::sites::{Counts, Measure};
use hatf_trace::{Error, Result};
use hatf_view::analysis::ReportBuilder;
use hatf_view::calls::{GroupBy, Groups, Places};
use hatf_view::page::{Collected, HeapPage, Section, Side};
use hatf_view::report::Grouped;
use hatf_view::verdict::Facts;
use metatf_cli::{Style, print_into, stderr};
use metatf_page::{Note, Page, Report, Value};
use serde::Serialize;

use super::lab::{Source, Tables};
use super::processes::peaks;
use super::record::options::PythonBlocks;
use super::record::processes::folder_of;
use super::record::summary::hides_its_objects;
use super::record::trace_output::free_name;
use super::report::write_page;
use super::sites::Folded;
use super::symbols::{Symbols, allocated};
use super::{Cli, Command, print_message, record};

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

/// Maximum number of rows per table, so that the output fits on one screen.
const ROWS: usize = 5;

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
    let command = command.get(start..).unwrap_or(command);
    match command.char_indices().nth(COMMAND_MAX) {
        Some((end, _)) => format!("{}..", command.get(..end).unwrap_or(command)),
        None => command.to_owned(),
    }
}

/// Maximum number of characters of a command in a sentence.
const COMMAND_MAX: usize = 60;

/// Prints the tables and writes the HTML report. `has_arenas` states that arenas contain Python's small objects.
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
    let facts =
        Facts { report: &report, places: &places, groups: &groups, counts: &counts, timeline: recorded.timeline() };
    let (sentences, below) = (facts.sentences(), &[Section::report(report.page())]);
    let sides = &[Side { recorded: &recorded, places: &places, groups: &groups }];
    let said = sentences.clone();
    let threads = source.threads();
    write_page(&page, &HeapPage { title: &name, sides, sentences, has_functions: true, below, threads })?;

    let mut total = Counts::default();
    counts.iter().for_each(|site| total.add(site));
    let mut screen = Page::new(options.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "));
    process.into_iter().for_each(|process| screen.note(process));
    said.into_iter().for_each(|sentence| screen.note(sentence.text));
    let grouped = Grouped { places: &places, groups: &groups, inclusive: false };
    let tables = Tables { rows: ROWS, ..Tables::default() }.by(false);
    for measure in [Measure::Peak, Measure::Leaked].into_iter().filter(|measure| measure.is_known(&heap)) {
        let amount = total.get(measure);
        // Omit the blocks live at the end if their amount is the same as at the peak.
        if amount.blocks > 0 && (measure == Measure::Peak || total.peak != total.leaked) {
            grouped.describe(measure, amount, tables, &mut screen);
        }
    }
    places.wrappers_sentence().into_iter().for_each(|folded| screen.push(folded));
    screen.heading("NEXT");
    screen.push(
        Note::new("{}: HTML report over time and by call; open it in a browser")
            .with([Value::text(page.display().to_string())]),
    );
    if has_arenas {
        let command = options.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        screen.note(format!(
            "hatf run --python=objects {command}: records each small object instead of arenas of 1 MiB, which takes several times as long"
        ));
    }
    next(&total, &groups, &name, &mut screen);
    print_into(&Screen { page: screen }, &mut stderr(Style::Text))?;
    if options.open {
        open(&page);
    }
    Ok(())
}

/// Suggests commands that show more details of notable findings.
fn next(total: &Counts, groups: &Groups, trace: &str, screen: &mut Page) {
    let mut command = |command: &str, why: &str| screen.note(format!("{command}: {why}"));
    if total.leaked.bytes > total.peak.bytes / 4 {
        command(&format!("hatf leaks {trace}"), "memory that is live at the end, its age and its growth");
    }
    if total.short.blocks > total.allocated.blocks / 4 {
        command(&format!("hatf churn {trace}"), "short-lived blocks, and how to avoid them");
    }
    if groups.groups.len() > ROWS {
        command(&format!("hatf sites {trace}"), "all functions; --of NAME shows a function's callers and callees");
    }
    if let Some(folder) = Path::new(trace).parent().filter(|folder| folder.extension() == Some(OsStr::new("processes")))
    {
        command(&format!("hatf processes {}", folder.display()), "all recorded processes");
    }
    command(&format!("hatf whatif {trace}"), "allocators and settings that would save memory");
}

/// Opens the HTML report in the default browser.
fn open(page: &Path) {
    let started =
        Process::new("xdg-open").arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = started {
        print_message(&format!("could not run xdg-open: {error}; open {} in a browser", page.display()));
    }
}

/// The printed output.
#[derive(Serialize)]
struct Screen {
    #[serde(skip)]
    page: Page,
}

impl Report for Screen {
    fn page(&self) -> Page {
        self.page.clone()
    }
}
