//! `hatf import`

use std::path::PathBuf;

use clap::Subcommand;
use hatf::heap::HeapOptions;
use hatf::{Error, Result};
use metatf::container::{FlushEvery, WriteOptions};
use metatf::recode::Preset;
use metatf_cli::OutputFile;

use super::{about, print_message};

/// Make a heap trace of another tool's log.
#[derive(clap::Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Mps(Mps),
}

/// Of a telemetry log of the Memory Pool System (event version 2.0.0, of a 64-bit little-endian machine).
///
/// PoolAlloc and PoolFree become allocations and frees, in the order of their clock. An object that is freed and was not
/// allocated in the log is there from the beginning, with the size that its end has. If another object ended at its place
/// before, it begins then. PoolFinish ends all objects of its pool. The rate of the log's clock, a cycle counter, is that
/// between its first and last EventClockSync. The log may also be a trace that `metatfc sort` or `metatfc recode` has made of
/// it. Memory: 40 bytes an event.
///
/// A damaged log is an error. `metatfc verify --raw --class 2 --order little --dtd mps --salvage whole.mtf LOG` writes what is whole of it as a
/// trace.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf import mps mps.log mps.mtf
  hatf report mps.mtf
  hatf simulate mps.mtf --allocator first,best")]
struct Mps {
    /// Trade size for speed: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    preset: Preset,

    /// The log.
    #[arg(value_name = "LOG")]
    input: PathBuf,

    /// The trace; `-` is standard output.
    #[arg(value_name = "OUT")]
    output: PathBuf,
}

pub(crate) fn run(options: &Import) -> Result<u8> {
    let What::Mps(options) = &options.what;
    let name = options.output.display().to_string();
    let problem = || Error::system(name.clone());
    let mut write = WriteOptions::default();
    options.preset.apply(&mut write);
    let (output, mut sink) = OutputFile::create(&options.output).map_err(problem())?;
    if output.appears_whole() {
        write.flush = FlushEvery::NEVER;
    }
    let imported = hatf::mps::convert(&options.input, &HeapOptions { write, ..HeapOptions::default() }, &mut sink);
    // Where the output failed, that is the cause, whatever became of it on the way.
    if let Some(error) = output.error() {
        return Err(problem()(error));
    }
    let imported = imported.map_err(|error| about(&options.input, error))?;
    output.keep(sink).map_err(problem())?;
    let hatf::mps::Imported { allocations, frees, before, between, with_pool, steps_per_second } = imported;
    print_message(&format!("{allocations} PoolAlloc and {frees} PoolFree; {with_pool} objects ended with their pool"));
    if before + between > 0 {
        print_message(&format!(
            "{} objects have no PoolAlloc: {before} lived before the log, {between} begin where another has ended",
            before + between
        ));
    }
    match steps_per_second {
        #[allow(clippy::cast_precision_loss, reason = "it is printed with few digits")]
        Some(steps) => print_message(&format!("the log's clock takes {} steps a microsecond", steps as f64 / 1e6)),
        None => print_message(
            "the log has no two EventClockSync, which give the rate of its clock: times are steps of the log's clock",
        ),
    }
    Ok(0)
}
