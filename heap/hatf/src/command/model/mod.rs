//! `hatf model`: models of allocation.

mod evaluate;
mod fit;
mod generate;

use std::path::Path;

use hatf_research::model::{Clock, Unfreed};
use hatf_trace::Result;

/// Fit allocation models to a trace, generate synthetic traces from them, and evaluate how realistic these are.
///
/// The models are those of Zorn and Grunwald, "Evaluating Models of Memory Allocation" (CU-CS-603-92).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf model fit perl.mtf -m cdf -o perl.json
  hatf model generate perl.json --seed 7 -o synthetic.mtf
  hatf model evaluate perl.mtf

Models:
  mean     uniform from 0 to twice the mean      mean-normal, mean-pareto
  cdf      histograms                            cdf-p2
  size     one process for each size             size-uniform, size-normal
  time     means for each time bucket            time-normal
  trans    depends on the previous size          trans-mean
  outline  live bytes and objects over time, in a file of at most 64 KiB; not from the paper
  mix:size=MODEL,iat=MODEL,ht=MODEL              models of size, interarrival, holding time")]
pub(crate) struct Model {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Fit(fit::Fit),
    Generate(generate::Generate),
    Evaluate(evaluate::Evaluate),
}

pub(crate) fn run(options: &Model) -> Result<u8> {
    match &options.action {
        Action::Fit(options) => fit::run(options),
        Action::Generate(options) => generate::run(options),
        Action::Evaluate(options) => evaluate::run(options),
    }
}

/// Options for measuring time.
#[derive(clap::Args)]
struct Measure {
    /// Unit of time.
    #[arg(long, value_enum, default_value_t = ClockName::Events)]
    clock: ClockName,

    /// Holding time of objects that are never freed.
    #[arg(long, value_enum, default_value_t = UnfreedName::End)]
    unfreed: UnfreedName,

    /// Number of time buckets, for time and time-normal.
    #[arg(long, value_name = "N", default_value_t = hatf_research::model::BUCKETS, allow_negative_numbers = true,
        value_parser = metatf_cli::number(1..=hatf_research::model::MOST_BUCKETS))]
    buckets: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ClockName {
    /// Allocations and frees.
    Events,
    /// Nanoseconds; the trace must have timestamps.
    Time,
    /// Bytes requested.
    Bytes,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum UnfreedName {
    /// Until the last event.
    End,
    /// Exclude these objects from holding times.
    Drop,
}

impl Measure {
    fn settings(&self, kinds: Vec<hatf_research::model::Kind>) -> hatf_research::model::Settings {
        let clock = match self.clock {
            ClockName::Events => Clock::Events,
            ClockName::Time => Clock::Time,
            ClockName::Bytes => Clock::Bytes,
        };
        let unfreed = match self.unfreed {
            UnfreedName::End => Unfreed::End,
            UnfreedName::Drop => Unfreed::Drop,
        };
        hatf_research::model::Settings { kinds, clock, unfreed, buckets: self.buckets }
    }
}

/// Returns the size of a file, or `None` for a pipe.
fn file_bytes(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
}
