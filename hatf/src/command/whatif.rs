//! `hatf whatif`

use clap::builder::PossibleValuesParser;
use hatf::Result;
use hatf::lab::Calls;
use hatf_lab::simulate::Grid;
use hatf_lab::whatif::{NOW, WhatIf, simulations, text};

use super::Format;
use super::lab::{Shown, Source};
use crate::command::output::print;

/// Which allocator, and which settings, would save memory: a grid of simulations, ranked.
///
/// The trace's calls run through simulations of glibc's allocator, jemalloc, mimalloc and tcmalloc, each by itself and with some
/// settings, and through four models without a library. They are ranked by the most bytes of pages that they would hold. Beside
/// each stands what to set in practice, what it would save, and how far its simulator was off from measured replays.
///
/// A page is held if it has memory in it, or had some and was not given back to the system. Blocks are taken to be touched as a
/// whole. ops counts what an allocator does for an object; it is no time. `hatf replay` measures both.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf whatif perl.mtf                     against glibc's allocator with its defaults
  hatf whatif server.mtf --now jemalloc    against jemalloc
  hatf whatif perl.mtf --format json | jq '.predictions[0]'
  hatf simulate perl.mtf --allocator glibc,glibc:tcache=16,jemalloc:tcache_max=4096   another grid
  hatf replay perl.mtf --with system,mimalloc                                         measured")]
pub(crate) struct Whatif {
    #[command(flatten)]
    source: Source,

    /// The allocator that the program has now; what others save is compared with it.
    #[arg(long, value_name = "ALLOCATOR", default_value = "glibc", value_parser = PossibleValuesParser::new(NOW))]
    now: String,

    /// How to print the outcome.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(options: &Whatif) -> Result<u8> {
    let grid = Grid::new(simulations()?, options.source.threads())?;
    let mut calls = Calls::new(Shown::new(grid));
    let read = options.source.observe(&mut calls);
    let totals = calls.totals();
    let (.., shown) = calls.into_parts();
    let outcomes = shown.into_inner().finish()?;
    read?;
    let whatif = WhatIf::new(totals, &options.now, &outcomes);
    print(
        options.format,
        |out| {
            writeln!(out, "{}", options.source.trace.display())?;
            totals.text(out)?;
            text(&whatif, out)
        },
        || &whatif,
    )?;
    Ok(0)
}
