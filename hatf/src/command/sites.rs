//! `hatf sites` and `hatf flame`: what each stack allocated.

use std::io::Write as _;
use std::path::PathBuf;

use hatf::report::{AllSites, Sites as SitesReport};
use hatf::stacks::Location;
use hatf::{Error, Result};
use hatf_lab::flame::folded;
use hatf_lab::sites::{Counts, Measure, Sites as Counting};
use hatf_lab::{Heap, HeapTracker};
use metatf_cli::{OutputArgs, Style, shown, stdout};
use metatf_page::units::count as count_of;
use metatf_page::{Flame as Graph, Unit};

use super::lab::{Source, Tables, draw, hint};
use crate::command::output::show;

/// Find out where in the program memory is allocated: tables by call stack.
///
/// The trace needs stacks (hatf record --stacks), and names of functions where frames shall not be numbers (hatf symbolize).
/// `realloc` ends a block of the stack that allocated it, and begins one of its own stack.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record --stacks -o perl.mtf perl -e '$x{$_} = 1 for 1..10000'
  hatf symbolize perl.mtf -o perl.sym.mtf
  hatf sites perl.sym.mtf
  hatf sites perl.sym.mtf --by leaked --rows 20 --depth 30
  hatf sites perl.sym.mtf --format json | jq '.sites[0]'")]
pub(crate) struct Sites {
    #[command(flatten)]
    source: Source,

    /// Tables to print: blocks live at the peak, live at the end (leaked), allocated in all, or freed by the event that
    /// follows their allocation (temporary).
    #[arg(
        long,
        value_enum,
        value_name = "MEASURE",
        value_delimiter = ',',
        default_value = "peak,leaked,allocated,temporary"
    )]
    by: Vec<By>,

    /// Rank by blocks, not by bytes.
    #[arg(long)]
    blocks: bool,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    output: OutputArgs,
}

/// Draw a flame graph of what each stack allocated.
///
/// Boxes are functions, as wide as the bytes that they and those they called allocated; main is at the bottom.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf flame perl.sym.mtf -o peak.svg
  hatf flame perl.sym.mtf --by temporary --blocks -o temporary.svg
  hatf flame perl.sym.mtf --folded | less")]
pub(crate) struct Flame {
    #[command(flatten)]
    source: Source,

    /// What is shared among the stacks, as for hatf sites.
    #[arg(long, value_enum, value_name = "MEASURE", default_value = "peak")]
    by: By,

    /// Count blocks, not bytes.
    #[arg(long)]
    blocks: bool,

    /// Write the picture to this file [default: TRACE.svg].
    #[arg(short, long, value_name = "FILE", conflicts_with = "folded")]
    output: Option<PathBuf>,

    /// Print a line for each stack instead, which other tools for flame graphs read.
    #[arg(long)]
    folded: bool,
}

/// A measure, as the command line names it.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum By {
    Peak,
    Leaked,
    Allocated,
    Temporary,
}

impl By {
    pub(crate) fn measure(self) -> Measure {
        match self {
            Self::Peak => Measure::Peak,
            Self::Leaked => Measure::Leaked,
            Self::Allocated => Measure::Allocated,
            Self::Temporary => Measure::Temporary,
        }
    }

    /// Returns which bytes or blocks it counts.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Peak => "live at the peak",
            Self::Leaked => "live at the end",
            Self::Allocated => "allocated",
            Self::Temporary => "freed at once",
        }
    }
}

/// Reads a trace.
fn count(source: &Source) -> Result<(Heap, Vec<Counts>)> {
    let mut tracker = HeapTracker::new(Counting::new()).with_sizes_only();
    source.read(&mut tracker)?;
    let (heap, counting) = tracker.into_parts();
    hint(&source.trace, &heap.stacks);
    Ok((heap, counting.report()))
}

/// Returns whether a measure means something.
fn knows(heap: &Heap, measure: Measure) -> bool {
    let sizes_only = heap.has_sizes_only();
    match measure {
        Measure::Allocated => true,
        // The event behind an allocation is not the one that was behind it in the program.
        Measure::Temporary => heap.sampling.is_none() && !sizes_only,
        // It is not known when blocks end.
        Measure::Peak | Measure::Leaked => !sizes_only,
    }
}

/// Returns the report of what each stack allocated, ranked by bytes, with a table of each measure.
pub(super) fn report<'s>(title: String, heap: &'s Heap, counts: &'s [Counts], tables: Tables) -> SitesReport<'s> {
    SitesReport {
        title,
        trace: heap.totals(),
        sampling: heap.sampling,
        sizes_only: heap.has_sizes_only(),
        sites: AllSites { counts, stacks: &heap.stacks },
        measures: Measure::ALL.into_iter().filter(|measure| knows(heap, *measure)).collect(),
        tables: tables.by(false),
    }
}

pub(crate) fn run(options: &Sites) -> Result<u8> {
    let (heap, counts) = count(&options.source)?;
    let measures = options.by.iter().map(|by| by.measure()).filter(|measure| knows(&heap, *measure)).collect();
    let title = options.source.trace.display().to_string();
    let all = report(title, &heap, &counts, options.tables);
    show(&SitesReport { measures, tables: options.tables.by(options.blocks), ..all }, &options.output)?;
    Ok(0)
}

pub(crate) fn flame(options: &Flame) -> Result<u8> {
    let output = match (&options.output, options.folded) {
        (Some(output), _) => output.clone(),
        (None, true) => PathBuf::new(),
        (None, false) => options.source.sibling("svg")?,
    };
    let (heap, counts) = count(&options.source)?;
    if !knows(&heap, options.by.measure()) && heap.has_sizes_only() {
        return Err(Error::Usage(format!(
            "{}: it was recorded with --sizes-only: only --by allocated can be drawn",
            options.source.trace.display()
        )));
    }
    options.source.warn_of_contradictions(&heap.totals());
    let (trace, by_blocks) = (&options.source.trace, options.blocks);
    let mut graph = Graph::new("", if by_blocks { Unit::Count } else { Unit::Bytes });
    for (site, counts) in (0..).zip(&counts) {
        let amount = counts.get(options.by.measure());
        let mut names: Vec<String> =
            heap.stacks.get(site).flat_map(Location::names).map(|name| shown(&name).into_owned()).collect();
        names.reverse();
        graph.add(names, if by_blocks { amount.blocks } else { amount.bytes });
    }
    if options.folded {
        let mut out = stdout(Style::Text);
        folded(&graph, &mut out)?;
        out.flush()?;
        return Ok(0);
    }
    let (total, unit, measure) =
        (count_of(graph.root.total), if by_blocks { "blocks" } else { "bytes" }, options.by.text());
    graph.title = format!("{}: {total} {unit} {measure}", trace.display());
    draw(&output, graph)?;
    Ok(0)
}
