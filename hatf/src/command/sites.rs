//! `hatf sites` and `hatf flame`: what each stack allocated.

use std::io::Write as _;
use std::path::PathBuf;

use hatf::lab::Calls;
use hatf::report::{AllSites, SiteTables, Sites as SitesReport};
use hatf::stacks::{Location, Stacks};
use hatf::{Error, Result};
use hatf_lab::Totals;
use hatf_lab::flame::folded;
use hatf_lab::sites::{Counts, Measure, Sites as Counting};
use metatf_cli::{OutputArgs, Style, shown, stdout};
use metatf_page::units::count as count_of;
use metatf_page::{Flame as Graph, Unit};

use super::lab::{Shown, Source, draw, hint};
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

    /// Rows of a table.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,

    /// Lines of a stack.
    #[arg(long, value_name = "N", default_value_t = 8)]
    depth: usize,

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
fn count(source: &Source) -> Result<Counted> {
    let mut calls = Calls::of_sizes_too(Shown::new(Counting::new()));
    source.give(&mut calls)?;
    let (totals, sampling, sizes_only) = (calls.totals(), calls.sampling(), calls.has_sizes_only());
    let (_, stacks, counting) = calls.into_parts();
    hint(&source.trace, &stacks);
    Ok(Counted { totals, sampling, sizes_only, stacks, sites: counting.into_inner().finish() })
}

/// What a trace's stacks allocated.
struct Counted {
    totals: Totals,
    sampling: Option<u64>,
    /// It is not known when blocks end: only what was allocated means something.
    sizes_only: bool,
    stacks: Stacks,
    sites: Vec<Counts>,
}

impl Counted {
    fn knows(&self, measure: Measure) -> bool {
        match measure {
            Measure::Allocated => true,
            // The event behind an allocation is not the one that was behind it in the program.
            Measure::Temporary => self.sampling.is_none() && !self.sizes_only,
            Measure::Peak | Measure::Leaked => !self.sizes_only,
        }
    }
}

pub(crate) fn run(options: &Sites) -> Result<u8> {
    let counted = count(&options.source)?;
    let measures = options.by.iter().map(|by| by.measure()).filter(|measure| counted.knows(*measure)).collect();
    let Counted { totals, sampling, sizes_only, stacks, sites } = &counted;
    let report = SitesReport {
        title: options.source.trace.display().to_string(),
        trace: *totals,
        sampling: *sampling,
        sizes_only: *sizes_only,
        sites: AllSites { counts: sites, stacks },
        measures,
        tables: SiteTables { rows: options.rows, depth: options.depth, by_blocks: options.blocks },
    };
    show(&report, &options.output)?;
    Ok(0)
}

pub(crate) fn flame(options: &Flame) -> Result<u8> {
    let output = match (&options.output, options.folded) {
        (Some(output), _) => output.clone(),
        (None, true) => PathBuf::new(),
        (None, false) => options.source.sibling("svg")?,
    };
    let counted = count(&options.source)?;
    if !counted.knows(options.by.measure()) && counted.sizes_only {
        return Err(Error::Usage(format!(
            "{}: it was recorded with --sizes-only: only --by allocated can be drawn",
            options.source.trace.display()
        )));
    }
    options.source.say_contradictions(&counted.totals);
    let Counted { stacks, sites, .. } = counted;
    let (trace, by_blocks) = (&options.source.trace, options.blocks);
    let mut graph = Graph::new("", if by_blocks { Unit::Count } else { Unit::Bytes });
    for (site, counts) in (0..).zip(&sites) {
        let amount = counts.get(options.by.measure());
        let mut names: Vec<String> =
            stacks.get(site).flat_map(Location::names).map(|name| shown(&name).into_owned()).collect();
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
