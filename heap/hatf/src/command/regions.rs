//! `hatf regions`: simulates scoped memory.

use std::path::PathBuf;

use hatf_research::regions::{
    Calls, Inter, Intra, Outcome, Oversize, Settings, Simulated, Simulation, Stacks, describe, describe_calls,
    over_block_sizes, over_time,
};
use hatf_research::scoped::simulate;
use hatf_trace::Result;
use hatf_trace::forms::Input;
use metatf_cli::{OutputArgs, Progress, number};
use metatf_page::{Chart, Intervals, Page};
use serde::Serialize;

use super::infer::{self, Infer};
use super::lab::draw;
use crate::command::OPENING;
use crate::command::output::show;

/// Simulate scoped memory: regions of blocks that a program enters and leaves, and their fragmentation.
///
/// The operations and models are those of Garbervetsky, Nakhli, Yovine and Zorgati, "Program Instrumentation and
/// Run-Time Analysis of Scoped Memory in Java". Traces use scoped.dtd; Rust programs write them with
/// hatf_research::scoped::ScopedMemory.
#[derive(clap::Args)]
pub(crate) struct Regions {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Simulate(Simulate),
    Infer(Infer),
}

/// Simulate memory managers on a trace, and show the fragmentation within and between regions.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf regions simulate example.mtf
  hatf regions simulate example.mtf --block 64,128,256 --intra first,best --inter capture,first,best
  hatf regions simulate example.mtf --block 64 --over-time figure5.svg
  hatf regions simulate example.mtf --block 64 --by method,region --calls
  hatf regions simulate example.mtf --block 32,64,128,256,512 --svg figure6.svg")]
struct Simulate {
    /// Trace to simulate.
    trace: PathBuf,

    /// Block sizes to simulate, in bytes.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [64, 128, 256, 512, 1024], value_parser = number(1..=1_u64 << 48))]
    block: Vec<u64>,

    /// Strategy for choosing the block within a region for an object.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [IntraName::First])]
    intra: Vec<IntraName>,

    /// Strategy for choosing the region for an object.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [InterName::Capture])]
    inter: Vec<InterName>,

    /// Treatment of objects larger than a block.
    #[arg(long, value_enum, default_value_t = OversizeName::Grow)]
    oversize: OversizeName,

    /// Also show totals per method or per region: objects, sizes, fragmentation.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,..")]
    by: Vec<Part>,

    /// Also show the call graph and the call tree (Figure 2 of the paper).
    #[arg(long)]
    calls: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Also draw the fragmentation of regions over block sizes (Figure 6 of the paper) to this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Also draw fragmentation over allocations (Figure 5) to this SVG file.
    #[arg(long, value_name = "FILE")]
    over_time: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Regions of each method combined
    Method,
    /// Individual regions, limited to the 1,000 regions whose blocks have the most bytes
    Region,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum IntraName {
    /// The first block with enough space
    First,
    /// The block with the least sufficient free space
    Best,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum InterName {
    /// The capturing region
    Capture,
    /// The first region with enough space, from the capturing one outwards
    First,
    /// The region whose block would have the least space left
    Best,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OversizeName {
    /// Use a larger block, with a size that is a multiple of the block size
    Grow,
    /// Report an error
    Error,
}

#[derive(Serialize)]
struct Report {
    #[serde(skip)]
    name: String,
    trace: Stacks,
    managers: Vec<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Calls>,
}

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.clone());
        describe(&self.trace, &self.managers, &mut page);
        self.calls.iter().for_each(|calls| describe_calls(calls, &mut page));
        page.figure(figure_5(&self.name, &self.managers));
        page.figure(figure_6(&self.name, &self.managers));
        page
    }
}

/// Returns a chart of fragmentation over allocations.
fn figure_5(name: &str, managers: &[Outcome]) -> Chart {
    over_time(format!("{name}: intra-region fragmentation over allocations"), managers)
}

/// Returns a chart of fragmentation over block sizes.
fn figure_6(name: &str, managers: &[Outcome]) -> Intervals {
    over_block_sizes(format!("{name}: intra-region fragmentation over block sizes"), managers)
}

pub(crate) fn run(options: &Regions) -> Result<u8> {
    match &options.command {
        Command::Simulate(options) => run_simulation(options),
        Command::Infer(options) => infer::run(options),
    }
}

fn run_simulation(options: &Simulate) -> Result<u8> {
    let oversize = match options.oversize {
        OversizeName::Grow => Oversize::Grow,
        OversizeName::Error => Oversize::Refuse,
    };
    let mut grid = Vec::new();
    for inter in &options.inter {
        for intra in &options.intra {
            let intra = match intra {
                IntraName::First => Intra::First,
                IntraName::Best => Intra::Best,
            };
            let inter = match inter {
                InterName::Capture => Inter::Capture,
                InterName::First => Inter::First,
                InterName::Best => Inter::Best,
            };
            grid.extend(options.block.iter().map(|&block| Settings { block, intra, inter, oversize }));
        }
    }
    let wanted = |part| options.by.contains(&part);
    let mut simulation = Simulation::new(grid)?.with_parts(wanted(Part::Method), wanted(Part::Region));
    if options.calls {
        simulation = simulation.with_calls();
    }
    let mut progress = Progress::new("operations");
    let input = Input::open(&options.trace)?.opening(OPENING);
    let names = simulate(input, &mut simulation, || progress.step())?;
    drop(progress);
    let Simulated { stacks: trace, outcomes: managers, calls } = simulation.finish(&names);

    let name = options.trace.display().to_string();
    if let Some(path) = &options.svg {
        draw(path, figure_6(&name, &managers))?;
    }
    if let Some(path) = &options.over_time {
        draw(path, figure_5(&name, &managers))?;
    }
    show(&Report { name, trace, managers, calls }, &options.output)?;
    Ok(0)
}
