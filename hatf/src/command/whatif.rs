//! `hatf whatif`

use clap::builder::PossibleValuesParser;
use hatf::Result;
use hatf::whatif::{Predicted, Running};
use hatf_lab::HeapTracker;
use hatf_lab::whatif::NOW;
use metatf_cli::OutputArgs;

use super::lab::Source;
use crate::command::output::show;

/// Which allocator, and which settings, would save memory: a grid of simulations, ranked.
///
/// The trace's calls run through simulations of glibc's allocator, jemalloc, mimalloc and tcmalloc, each by itself and with some
/// settings, and through four models without a library. They are ranked by the most bytes of pages that they would hold. Beside
/// each stands what to set in practice, what it would save, and how far its simulator was off from measured replays.
///
/// A page is held if it has memory in it, or had some and was not given back to the system. Blocks are taken to be touched as a
/// whole. ops counts what an allocator does for an object; it is not time. `hatf replay` measures both.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf whatif perl.mtf                     against the allocator that it ran on
  hatf whatif server.mtf --now jemalloc    against jemalloc
  hatf whatif perl.mtf --format json | jq '.predictions[0]'
  hatf simulate perl.mtf --allocator glibc,glibc:tcache=16,jemalloc:tcache_max=4096   another grid
  hatf replay perl.mtf --with system,mimalloc                                         measured")]
pub(crate) struct Whatif {
    #[command(flatten)]
    source: Source,

    /// The allocator that the program has now; what others save is compared with it [default: what the trace says of modules and of
    /// what the program has linked in; glibc if it says nothing].
    #[arg(long, value_name = "ALLOCATOR", value_parser = PossibleValuesParser::new(NOW))]
    now: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(options: &Whatif) -> Result<u8> {
    let mut tracker = HeapTracker::new(Running::new(options.source.threads())?);
    let read = options.source.observe(&mut tracker);
    let (heap, running) = tracker.into_parts();
    let whatif = running.finish(heap.totals(), options.now.clone(), read)?;
    show(&Predicted { name: options.source.trace.display().to_string(), whatif }, &options.output)?;
    Ok(0)
}
