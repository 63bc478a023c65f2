//! `hatf fragmentation`

use std::path::PathBuf;

use hatf::Result;
use hatf::report::{Fragmentation as Report, FragmentationOptions, When};
use hatf_lab::fragmentation::PAGES;
use metatf_cli::OutputArgs;

use super::lab::{Source, draw};
use super::sites::Folded;
use super::symbols::{Symbols, print_problems};
use crate::command::output::show;

/// Find out which blocks keep pages of memory from being free.
///
/// A page is held while a live block has a byte on it. Bytes of held pages that no live block asked for are wasted; each
/// page's are shared equally among its blocks, so that the shares of sites, threads and sizes sum to the total exactly.
/// The addresses are those in the trace. It is read once for the curve, and once more for each moment but the end.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf fragmentation perl.mtf
  hatf fragmentation perl.mtf --at end --page 2m --pin 4096
  hatf fragmentation perl.mtf --svg held.svg --map map.svg")]
pub(crate) struct Fragmentation {
    #[command(flatten)]
    source: Source,

    /// Moments to look at: peak (most pages held), worst (most bytes of them wasted), sparsest (most pages for each live byte, while at
    /// least half of the most are held, or more exactly a power of two of them), end, or the number of an event. What comes to the same
    /// event is printed once.
    #[arg(long, value_name = "WHEN", value_delimiter = ',', default_value = "peak,worst,end")]
    at: Vec<When>,

    /// The pages whose waste is attributed.
    #[arg(long, value_enum, default_value_t = Page::Small)]
    page: Page,

    /// A page with at most this many live bytes counts as pinned [default: a sixteenth of a page].
    #[arg(long, value_name = "BYTES")]
    pin: Option<u64>,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputArgs,

    /// Also draw live bytes and bytes of held pages over events into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Also draw the pages of the first moment into this file, as a map of the address space.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
}

/// Sizes of pages.
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
