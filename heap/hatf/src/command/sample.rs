//! `hatf sample`: samples the blocks of a trace.

use hatf::share::{SampleCounts, Sampler, SizesSeen, mean_for};
use hatf_trace::Result;
use metatf_cli::number;
use metatf_page::units::{bytes, count};

use super::lab::Source;
use super::values::sample as mean;
use super::written::Written;
use super::{about, print_message};

/// Write a sample of a trace's blocks, to make a large trace manageable.
///
/// Every allocated byte has the same small chance of selecting its block, as with `hatf record --sample`, so large
/// blocks are nearly always in the sample and small ones rarely are. A selected block is kept from its allocation to
/// its free. The trace is marked as a sample, so `hatf report`, `hatf sites` and the HTML report scale each block
/// up. Their totals are therefore correct on average.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf sample server.mtf -o small.mtf
  hatf sample server.mtf --blocks 100000 -o small.mtf
  hatf sample server.mtf --bytes 64KiB -o small.mtf
  hatf sites small.mtf

The total of a site with N sampled blocks of the same size has a relative error of about 1/sqrt(N):
10% for 100 blocks. `hatf simulate`, `hatf fragmentation` and `hatf replay` need every block; for
these commands, cut out part of the trace instead (hatf cut).")]
pub(crate) struct Sample {
    #[command(flatten)]
    source: Source,

    /// Average number of bytes per sampled block [default: the smallest power of two that yields at most --blocks].
    #[arg(long, value_name = "BYTES", value_parser = mean, conflicts_with = "blocks")]
    bytes: Option<u64>,

    /// Approximate maximum number of blocks; the trace is read twice.
    #[arg(long, value_name = "N", default_value_t = 250_000, value_parser = number(1..=u64::MAX))]
    blocks: u64,

    /// Seed of the random choice; the same seed gives the same sample.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    written: Written,
}

pub(crate) fn run(options: &Sample) -> Result<u8> {
    let Sample { source, written, .. } = options;
    written.check([&*source.trace])?;
    source.reread()?;
    let mean = match options.bytes {
        Some(mean) => mean,
        None => {
            let mut seen = SizesSeen::default();
            source.read(&mut seen)?;
            mean_for(&seen, options.blocks)
        }
    };
    let resolution = source.resolution()?;
    let counts = written.write(resolution, |sink| {
        let mut sampler = Sampler::new(mean, options.seed, sink);
        source.read(&mut sampler).map_err(|error| about(&source.trace, error))?;
        Ok(sampler.counts())
    })?;
    let SampleCounts { mean, blocks, bytes: sum, of_blocks, of_bytes } = counts;
    print_message(&format!(
        "{} of {} blocks, {} of {}: one block per {} on average",
        count(blocks),
        count(of_blocks),
        bytes(sum),
        bytes(of_bytes),
        bytes(mean)
    ));
    Ok(0)
}
