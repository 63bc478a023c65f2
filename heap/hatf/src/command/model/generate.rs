//! `hatf model generate`: generates synthetic traces.

use hatf_research::synthetic::write_synthetic;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hatf_lab::ObjectEvent;
use hatf_research::model::{GENERATOR, Generator, Limits, Model};
use hatf_trace::event::UserMetadata;
use hatf_trace::heap::HeapOptions;
use hatf_trace::{Error, Result};
use metatf::container::FlushEvery;
use metatf_cli::{OutputFile, number};
use metatf_page::units::count;
use metatf_tools::recode::Preset;
use serde_json::json;

use crate::command::record::trace_output::is_plain;
use crate::command::{cores, print_message};
use metatf_cli::Progress;

/// Generate a synthetic trace from a model.
///
/// The trace uses heap.dtd and is identical on every machine for the same model, seed and number of events. A simulated
/// allocator (bsd) places its blocks. The trace has timestamps if the model's unit of time is `time`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf model generate perl.json -o synthetic.mtf
  hatf model generate perl.json --events 100000000 --seed 7 -o long.mtf
  hatf model generate perl.json -o - | hatf simulate -")]
pub(crate) struct Generate {
    /// Model from `hatf model fit`; `-` is standard input.
    #[arg(value_name = "MODEL.json")]
    model: PathBuf,

    /// Number of allocations and frees [default: until the clock passes the end of the original trace].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    events: Option<u64>,

    /// Seed of the random choices. A different seed generates a different trace.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Trade size for speed: fast, default, archive or columns. `fast` stores addresses and times uncompressed: it requires a
    /// fifth of the time of `default`, and two to three times the space. The trace can be regenerated from the model
    /// and the seed.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Fast)]
    preset: Preset,

    /// Number of worker threads; the trace does not depend on it [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,

    /// Trace to write; `-` is standard output.
    #[arg(short, long, value_name = "TRACE", default_value = "synthetic.mtf")]
    output: PathBuf,
}

pub(crate) fn run(options: &Generate) -> Result<u8> {
    let path = &options.model;
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(Error::system(path.display().to_string()))?)
    };
    let about_model = |error: hatf_lab::Error| Error::Trace(format!("{}: {error}", path.display()).into());
    let model = Model::read(input).map_err(about_model)?;
    let seed = options.seed;
    let synthetic = json!({"model": model.kind(), "seed": seed, "generator": GENERATOR});
    let about: UserMetadata = [("synthetic".to_owned(), synthetic)].into_iter().collect();
    let generator = Generator::new(&model, seed, 0, Limits { events: options.events, live: None });

    let problem = || Error::system(options.output.display().to_string());
    let (output, mut sink) = OutputFile::create(&options.output).map_err(problem())?;
    let mut heap = HeapOptions { plain: is_plain(options.preset), ..HeapOptions::default() };
    options.preset.apply(&mut heap.write);
    heap.write.threads = options.threads.unwrap_or_else(cores);
    if output.appears_whole() {
        heap.write.flush = FlushEvery::NEVER;
    }
    let totals = write_synthetic(&mut *sink, &heap, &about, |writer| {
        let mut progress = Progress::new("events");
        generator.run(&mut |event: &ObjectEvent| {
            progress.step();
            writer.event(event)
        })
    });
    // If the output failed, report its error as the cause.
    if let Some(error) = output.error() {
        return Err(problem()(error));
    }
    let totals = totals?;
    output.keep(sink).map_err(problem())?;
    if options.output != Path::new("-") {
        let name = options.output.display();
        print_message(&format!("{name}: {} events, {} objects", count(totals.events), count(totals.objects)));
    }
    Ok(0)
}
