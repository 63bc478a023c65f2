//! `hatf leaks`: reports on blocks live at the end or at another point in time.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use hatf_lab::history::{Kept, Point};
use hatf_lab::leaks::{Leaked, Leaks as Collecting};
use hatf_lab::sites::Limit;
use hatf_lab::{Heap, HeapTracker, Until};
use hatf_trace::{Error, Result};
use hatf_view::analysis::{EndObserver, Ending};
use hatf_view::calls::{GroupBy, Places};
use hatf_view::report::{Leaks as LeaksReport, LeaksOf, Startup};
use hatf_view::suppress::{SuppressionForm, Suppressions, write};
use metatf_cli::{OutputArgs, OutputFile};
use metatf_page::units::count;

use super::lab::{Source, Tables};
use super::output::show;
use super::points::settled;
use super::print_message;
use super::sites::Folded;
use super::symbols::Symbols;

/// Find leaks: the functions that hold blocks at the end, the age of these blocks, and whether they keep growing.
///
/// A function is reported as growing if its live memory after startup grows with 95% confidence. Blocks that the C
/// library, the C++ library and CPython are known to keep are listed in a separate table. The trace does not show
/// whether the program still has a pointer to a block.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record --stacks -o perl.mtf perl -e '$x{$_} = 1 for 1..10000'
  hatf leaks perl.mtf
  hatf leaks perl.mtf --at 30s --startup mark:ready
  hatf leaks perl.mtf --write-suppressions perl.supp
  hatf leaks perl.mtf --suppressions perl.supp --fail-over 64KiB    in CI
  hatf leaks perl.mtf --format json | jq '.groups[] | select(.growth.direction == \"growing\")'

Exit status: 0 on success, 1 if a file is missing or corrupt or if the remaining leaks exceed
--fail-over, 2 for a usage error.")]
pub(crate) struct Leaks {
    #[command(flatten)]
    source: Source,

    /// Point in time to inspect: a time such as 30s, mark:NAME for the first mark or phase with that name, the number
    /// of an event, peak (most bytes live), worst (most bytes wasted on held pages), sparsest (most held pages per live
    /// byte), or end.
    #[arg(long, value_name = "TIME", default_value = "end", hide_default_value = true)]
    at: Point,

    /// End of the startup, in the syntax of --at [default: after the first 5% of events].
    #[arg(long, value_name = "TIME")]
    startup: Option<Point>,

    /// Exclude leaks that match the suppressions in this file, in the format of Valgrind (Memcheck:Leak) or
    /// LeakSanitizer (leak:PATTERN). Can be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Suppressions")]
    suppressions: Vec<PathBuf>,

    /// Write suppressions for the remaining leaks to this file.
    #[arg(long, value_name = "FILE", help_heading = "Suppressions")]
    write_suppressions: Option<PathBuf>,

    /// Format of the suppressions to write.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, help_heading = "Suppressions")]
    suppression_form: WrittenForm,

    /// Do not list blocks that libraries and interpreters are known to keep.
    #[arg(long)]
    hide_known: bool,

    /// Exit with status 1 if the remaining leaks, excluding suppressed and known ones, exceed this limit: a number of
    /// bytes such as 64KiB, or a number of blocks with --blocks.
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    fail_over: Option<Limit>,

    /// Rank by number of blocks instead of bytes.
    #[arg(long)]
    blocks: bool,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputArgs,
}

/// Format of suppressions on the command line.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum WrittenForm {
    /// One block per stack, for Valgrind
    #[default]
    Valgrind,
    /// One line per function, for LeakSanitizer
    Lsan,
}

/// Parses the limit for remaining leaks.
fn limit(text: &str) -> std::result::Result<Limit, String> {
    match super::diff::limit(text) {
        Ok(limit @ Limit::Amount(_)) => Ok(limit),
        _ => Err("expected an amount, such as 64KiB or 1000".to_owned()),
    }
}

pub(crate) fn run(options: &Leaks) -> Result<u8> {
    let mut suppressions = Suppressions::default();
    options.suppressions.iter().try_for_each(|path| suppressions.read(path))?;
    let Read { mut heap, leaked, startup, ending } = read(options)?;
    let sites = leaked.sites();
    let weight = |site: u64| sites.get(&site).map_or(0, |amount| amount.bytes);
    let shown = Some((sites.keys().copied().collect(), options.tables.depth));
    options.symbols.name(&options.source.trace, &mut heap.stacks, shown, weight)?;
    let places = Places::new(&heap.stacks, &options.folded.folding(), GroupBy::Function);
    options.folded.check(&[&places], &options.source.trace)?;
    let (name, known) = (options.source.trace.display().to_string(), Suppressions::known());
    let of = LeaksOf {
        name: &name,
        heap: &heap,
        leaked: &leaked,
        is_end: options.at == Point::End,
        ending,
        places: &places,
        startup,
        suppressions: &suppressions,
        known: &known,
    };
    let report = LeaksReport::new(of, options.tables.by(options.blocks));
    for (unused, why) in report.unused() {
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        print_message(&format!("{}:{}: {} suppresses nothing{why}", unused.file, unused.line, unused.name));
    }
    if suppressions.others > 0 {
        print_message(&format!(
            "{} suppressions were ignored because they are not for leaks",
            count(suppressions.others)
        ));
    }
    if let Some(path) = &options.write_suppressions {
        write_suppressions(path, &report, options)?;
    }
    let left = report.left();
    let report = if options.hide_known { report.without_known() } else { report };
    show(&report, &options.output)?;
    let (left, unit) = if options.blocks { (left.blocks, "blocks") } else { (left.bytes, "bytes") };
    let Some(limit) = options.fail_over.filter(|limit| limit.is_exceeded(0, left)) else { return Ok(0) };
    print_message(&format!("{name}: {} {unit} remain, more than the limit of {limit}", count(left)));
    Ok(1)
}

/// The data collected by reading a trace.
struct Read {
    heap: Heap,
    leaked: Leaked,
    startup: Startup,
    ending: Ending,
}

/// Reads the trace up to the chosen time.
fn read(options: &Leaks) -> Result<Read> {
    let source = &options.source;
    let startup = options.startup.clone().unwrap_or(Point::Start);
    let [at, startup] = settled(source, [options.at.clone(), startup])?;
    let at = match at {
        Point::End => None,
        Point::Tick(tick) if options.at != at => Some(tick),
        at => {
            source.reread()?;
            let mut tracker = HeapTracker::new(Kept::new(Point::Start, at));
            source.read(&mut tracker)?;
            Some(tracker.observer().report().map_err(|error| about(source, &error))?.to.tick)
        }
    };
    let kept = options.startup.as_ref().map(|_| Kept::new(startup, Point::End));
    // Stop after the first event at the earliest, even if the chosen time is before it.
    let until = at.map(|tick| Until::new(tick.max(1)));
    let mut tracker = HeapTracker::new(((Collecting::new(), EndObserver::new()), (kept, until)));
    let read = source.read(&mut tracker);
    let (heap, ((leaks, end), (kept, until))) = tracker.into_parts();
    // Ignore the error by which the reader reports an early stop.
    if !until.is_some_and(|until| until.reached()) {
        read?;
    }
    let leaked = leaks.report(&heap);
    let startup = match kept {
        Some(kept) => {
            let end = kept.report().map_err(|error| about(source, &error))?.from;
            Startup { end, is_guess: false }
        }
        None => Startup::guess(&leaked),
    };
    Ok(Read { heap, leaked, startup, ending: end.ending() })
}

fn about(source: &Source, error: &hatf_lab::Error) -> Error {
    Error::Usage(format!("{}: {error}", source.trace.display()))
}

fn write_suppressions(path: &Path, report: &LeaksReport<'_>, options: &Leaks) -> Result<()> {
    let form = match options.suppression_form {
        WrittenForm::Valgrind => SuppressionForm::Valgrind,
        WrittenForm::Lsan => SuppressionForm::Lsan,
    };
    let title = format!("Leaks found by hatf leaks in {}", options.source.trace.display());
    let (text, left_out) = write(&title, &report.entries(), form);
    let written = || {
        let (file, mut out) = OutputFile::create(path)?;
        out.write_all(text.as_bytes())?;
        file.keep(out)
    };
    written().map_err(Error::system(path.display().to_string()))?;
    if left_out > 0 {
        let why = "they have no stack, or the format cannot distinguish allocations by main itself from all others";
        print_message(&format!(
            "{}: could not write suppressions for {} stacks: {why}",
            path.display(),
            count(left_out)
        ));
    }
    Ok(())
}
