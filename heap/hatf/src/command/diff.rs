//! `hatf diff`: compares two traces.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hatf_lab::HeapTracker;
use hatf_lab::sites::{Amount, AmountChange, Limit, ranked_pairs};
use hatf_trace::forms::Form;
use hatf_trace::{Error, Result};
use hatf_view::analysis::ReportBuilder;
use hatf_view::calls::{Groups, Places, function_pairs};
use hatf_view::compare::{Comparison, Counting, Matching, Summary};
use hatf_view::page::{Collected, HeapPage, Recorded, Section, Side};
use hatf_view::report::Difference;
use hatf_view::symbolize::of_weight;
use hatf_view::verdict::of_changes;
use metatf_cli::OutputArgs;
use metatf_page::Report as _;
use metatf_page::units::{count, count_change, percent_change};

use super::lab::{Source, Tables, hint};
use super::output::show;
use super::print_message;
use super::report::write_page;
use super::sites::{By, Folded, text};
use super::symbols::{Symbols, allocated, print_problems};

/// Compare two traces to find the stacks, sizes and threads that allocate more or less.
///
/// Stacks are matched by function and module, not by address or line, so you can rebuild the program between the
/// traces. To name the functions of the trace before the change, keep the old program or record its symbols (hatf
/// record --symbolize). Traces without function names are matched by build ID and offset.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf diff before.mtf after.mtf
  hatf diff before.mtf after.mtf --by leaked --rows 20
  hatf diff before.mtf after.mtf --format json | jq '.sites[0]'
  hatf diff before.mtf after.mtf --by peak --fail-over 5%    in CI
  hatf diff before.mtf after.mtf --html change.html

Exit status: 0 on success, 1 if a trace is missing or corrupt or if a total grew by more than
--fail-over, 2 for a usage error.")]
pub(crate) struct Diff {
    /// Trace before the change, in any format that `hatf convert` reads; `-` is standard input.
    before: PathBuf,

    /// Trace after the change.
    after: PathBuf,

    /// Format of both traces [default: detected from the first bytes or the name of each].
    #[arg(long, value_name = "FORMAT", value_parser = super::form())]
    from: Option<&'static Form>,

    /// Measures to compare: blocks live at the peak, live at the end (leaked), allocated in total, freed by the next
    /// event (temporary), or freed within 1 ms and 64 KiB of allocations (short).
    #[arg(
        long,
        alias = "measure",
        value_parser = compared(),
        value_name = "MEASURE",
        value_delimiter = ',',
        default_value = "peak,leaked,allocated,temporary"
    )]
    by: Vec<By>,

    /// Rank by number of blocks instead of bytes.
    #[arg(long)]
    blocks: bool,

    #[command(flatten)]
    tables: Tables,

    /// Exit with status 1 if the total of a --by measure grew by more than this limit: a percentage, a number of bytes
    /// such as 64KiB, or a number of blocks with --blocks.
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    fail_over: Option<Limit>,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputArgs,

    /// Also write an HTML report: both traces over time, and the differences between them by call and function at any
    /// points in time.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Number of worker threads; the result does not depend on it [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
}

/// Parses a measure to compare.
fn compared() -> impl TypedValueParser<Value = By> {
    let names = PossibleValuesParser::new(["peak", "leaked", "allocated", "temporary", "short"]);
    names.try_map(|name| <By as clap::ValueEnum>::from_str(&name, false))
}

pub(super) fn limit(text: &str) -> std::result::Result<Limit, String> {
    text.parse().map_err(|error: hatf_lab::Error| error.to_string())
}

pub(crate) fn run(options: &Diff) -> Result<u8> {
    if options.before == Path::new("-") && options.after == Path::new("-") {
        return Err(Error::Usage("only one of the traces can be standard input".to_owned()));
    }
    let (mut before, of_before) = summary(&options.before, options)?;
    let (mut after, of_after) = summary(&options.after, options)?;
    let mut problems = Vec::new();
    for side in [&mut before, &mut after] {
        let found = options.symbols.problems(&mut side.stacks, 0, None)?;
        problems.extend(of_weight(found, &side.stacks, 1..side.stacks.count(), allocated(&side.sites)));
    }
    // Most problems with symbols occur in both traces, but each problem is printed only once.
    let mut told = HashSet::new();
    problems.retain(|problem| told.insert((problem.path.clone(), problem.why.clone())));
    print_problems(&problems);
    let comparison = Comparison::new(&before, &after);
    match comparison.matching {
        Matching::Functions => {}
        Matching::Offsets => {
            print_message("stacks are matched by build ID and offset, so stacks of different builds do not match");
        }
        Matching::Nothing => print_message("stacks are not compared, because a trace has no stacks"),
    }
    let tables = options.tables.by(options.blocks);
    let measures: Vec<_> = options.by.iter().map(|by| by.measure()).collect();
    let title = format!("{} -> {}", options.before.display(), options.after.display());
    let folding = options.folded.folding();
    let has_functions = comparison.matching == Matching::Functions;
    let [places_before, places_after] = Places::of_two([&before.stacks, &after.stacks], &folding);
    options.folded.check(&[&places_before, &places_after], &options.after)?;
    let groups_before = Groups::new(&places_before, &before.sites);
    let groups_after = Groups::new(&places_after, &after.sites);
    let functions = if has_functions {
        function_pairs((&places_before, &groups_before), (&places_after, &groups_after))
    } else {
        Vec::new()
    };
    let folded = if has_functions { places_after.wrappers_sentence() } else { None };
    let difference = Difference { title, comparison: &comparison, functions, folded, measures, tables };
    if let (Some(path), Some(of_before), Some(of_after)) = (&options.html, &of_before, &of_after) {
        let sides = &[
            Side { recorded: of_before, places: &places_before, groups: &groups_before },
            Side { recorded: of_after, places: &places_after, groups: &groups_after },
        ];
        let (sentences, below) = (of_changes(&difference.verdicts()), &[Section::report(difference.page())]);
        let has_functions = comparison.matching != Matching::Nothing;
        let threads = options.threads.unwrap_or_else(super::cores);
        write_page(path, &HeapPage { title: &difference.title, sides, sentences, has_functions, below, threads })?;
    }
    show(&difference, &options.output)?;
    let Some(limit) = options.fail_over else { return Ok(0) };
    let failed = options.by.iter().filter(|by| grew(&comparison, **by, limit, options)).count();
    Ok(u8::from(failed > 0))
}

/// Reads a trace and returns its summary, along with the data for the HTML report if the report is requested.
fn summary(trace: &Path, options: &Diff) -> Result<(Summary, Option<Recorded>)> {
    let source = Source::new(trace.to_owned(), options.from, options.threads);
    let beside = options.html.is_some().then(|| (ReportBuilder::new(), Collected::new()));
    let mut tracker = HeapTracker::new((Counting::new(), beside));
    source.read(&mut tracker)?;
    let (heap, (counting, beside)) = tracker.into_parts();
    let finish = |(report, collected): (ReportBuilder, Collected)| {
        let counts = report.site_counts();
        let summed = collected.sum_up(&heap.objects)?;
        Ok::<_, Error>(summed.recorded(trace.display().to_string(), &heap, &report.report(&heap), counts))
    };
    let recorded = beside.map(finish).transpose()?;
    let summary = counting.finish(heap);
    if summary.totals.objects > 0 {
        hint(trace, &summary.stacks);
    }
    Ok((summary, recorded))
}

/// Returns whether the total of a measure grew by more than the limit. If so, prints a message that names the stack
/// that grew most.
fn grew(comparison: &Comparison<'_>, by: By, limit: Limit, options: &Diff) -> bool {
    let of = |amount: Amount| if options.blocks { amount.blocks } else { amount.bytes };
    let (all, measure) = (&comparison.all, by.measure());
    let (before, after) = (of(all.before.get(measure)), of(all.after.get(measure)));
    if !limit.is_exceeded(before, after) {
        return false;
    }
    let unit = if options.blocks { "blocks" } else { "bytes" };
    print_message(&format!(
        "{}: {unit} {} grew from {} to {} ({}), more than the limit of {limit}",
        options.after.display(),
        text(by.measure()),
        count(before),
        count(after),
        percent_change(before, after)
    ));
    let growth = |change: AmountChange| if options.blocks { change.blocks } else { change.bytes };
    let rows = ranked_pairs(&comparison.sites, measure, options.blocks);
    let most = rows.iter().find(|(_, change)| growth(*change) > 0);
    if let Some((pair, change)) = most
        && let Some(stack) = pair.key.after
    {
        let (grown, stack) = (count_change(growth(*change)), comparison.after.stacks.name(stack, 4));
        print_message(&format!("largest contribution: {grown} {unit} by {stack}"));
    }
    true
}
