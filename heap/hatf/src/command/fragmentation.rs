//! `hatf fragmentation`: finds the blocks that keep pages from being freed.

use std::path::PathBuf;

use hatf_lab::fragmentation::PAGES;
use hatf_lab::history::Point;
use hatf_trace::Result;
use hatf_view::report::{Fragmentation as Report, FragmentationOptions};
use metatf_cli::OutputArgs;

use super::lab::{Source, draw};
use super::sites::Folded;
use super::symbols::{Symbols, print_problems};
use crate::command::output::show;

/// Find the blocks that keep memory pages from being freed.
///
/// A page is held while a live block has a byte on it. Bytes of held pages that no live block requested are wasted; the
/// waste on a page is divided equally among its blocks, so the shares of sites, threads and sizes add up to the exact
/// total. Addresses are taken from the trace. The trace is read once for the curve, and once more for each point in
/// time except the end.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf fragmentation perl.mtf
  hatf fragmentation perl.mtf --at end --page 2m --pin 4096
  hatf fragmentation perl.mtf --svg held.svg --map map.svg")]
pub(crate) struct Fragmentation {
    #[command(flatten)]
    source: Source,

    /// Points in time to inspect: a time such as 30s, mark:NAME for the first mark or phase with that name, the number
    /// of an event, peak (most pages held), worst (most bytes wasted on held pages), sparsest (most held pages per live
    /// byte), or end. For sparsest, only times with at least about half of the maximum number of held pages count; the
    /// exact threshold is a power of two. If several names lead to the same event, the event is printed once.
    #[arg(long, value_name = "TIME", value_delimiter = ',', default_value = "peak,worst,end")]
    at: Vec<Point>,

    /// Page size for attributing waste.
    #[arg(long, value_enum, default_value_t = Page::Small)]
    page: Page,

    /// Maximum number of live bytes on a page that counts as pinned [default: a sixteenth of a page].
    #[arg(long, value_name = "BYTES")]
    pin: Option<u64>,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputArgs,

    /// Also draw live bytes and bytes of held pages over events to this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Also draw a map of the address space, with the pages at the first point in time, to this SVG file.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
}

/// Page sizes.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Page {
    /// 4 KiB
    #[value(name = "4k")]
    Small,
    /// 64 KiB
    #[value(name = "64k")]
    Middle,
    /// 2 MiB
    #[value(name = "2m")]
    Huge,
}

pub(crate) fn run(options: &Fragmentation) -> Result<u8> {
    let Fragmentation { source, at, page, pin, folded, symbols, output, svg, map } = options;
    source.reread()?;
    let asked = FragmentationOptions { at: at.clone(), page: page.bytes(), pin: *pin, folding: folded.folding() };
    let name = source.trace.display().to_string();
    let (report, end) = Report::read(name, &asked, &mut |sink| source.read(sink), |stacks| {
        symbols.problems(stacks, 0, None).map(|problems| print_problems(&problems))
    })?;
    source.warn_of_sample(&end);
    if let Some(path) = svg {
        draw(path, report.curves())?;
    }
    if let (Some(path), Some(map)) = (map, report.map()) {
        draw(path, map)?;
    }
    show(&report, output)?;
    Ok(0)
}

impl Page {
    fn bytes(self) -> u64 {
        let [small, middle, huge] = PAGES;
        match self {
            Self::Small => small,
            Self::Middle => middle,
            Self::Huge => huge,
        }
    }
}
