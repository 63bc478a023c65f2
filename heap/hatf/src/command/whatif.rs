//! `hatf whatif`: ranks allocators and settings.

use clap::builder::PossibleValuesParser;
use hatf_lab::HeapTracker;
use hatf_lab::whatif::NOW;
use hatf_trace::Result;
use hatf_view::whatif::{Predicted, Running};
use metatf_cli::OutputArgs;

use super::lab::Source;
use crate::command::output::show;

/// Rank the allocators and settings that would save memory, using a grid of simulations.
///
/// The trace's calls are run through simulations of glibc's allocator, jemalloc, mimalloc and tcmalloc, with default
/// and other settings, and through four models that match no library. Results are ranked by the maximum number of bytes
/// in held pages. Each row shows the setting to apply, the memory it would save, and how far its simulator was off from
/// measured replays.
///
/// A page is held if it contains memory, or contained some and was not returned to the system. Blocks are assumed to be
/// touched completely. ops counts an allocator's operations per object, not time. `hatf replay` measures both.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf whatif perl.mtf                     compared with the allocator it ran on
  hatf whatif server.mtf --now jemalloc    compared with jemalloc
  hatf whatif perl.mtf --format json | jq '.predictions[0]'
  hatf simulate perl.mtf --allocator glibc,glibc:tcache=16,jemalloc:tcache_max=4096   another grid
  hatf replay perl.mtf --with system,mimalloc                                         measured")]
pub(crate) struct Whatif {
    #[command(flatten)]
    source: Source,

    /// Allocator that the program uses now, as the baseline for savings [default: detected from the modules and
    /// statically linked allocators in the trace, or glibc].
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
