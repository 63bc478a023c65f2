//! Prints the tables of the paper for arbitrary heap traces.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hatf_trace::forms::{First, Input, OpenOptions, first_raw32};
use hatf_trace::trace::Opening;
use hatf_trace::{Error, Result};
use indicatif::{ProgressBar, ProgressStyle};
use metatf_cli::{OutputArgs, OutputFile, number};
use metatf_paper::{Column, Measured, Options, Sizes, Step, chart, measure};

/// Measure trace size and speed in every encoding: the encodings in the paper's tables, and newer ones.
///
/// Converts the calls of each trace (function, size and addresses) to raw 32-byte records and writes them in every
/// encoding: those of the paper (tables 3, 4, 7 and 8; with --times, also 5 and 6) and those of this project. Sizes are
/// exact file sizes, including headers, index and DTD. Every file is read back and compared. Traces are held in memory,
/// 32 bytes per record. Times are medians of the CPU time of runs in memory, and writing includes planning. Generated
/// code reads and writes the encoding `heap`; the dynamic reader and writer handle all others.
#[derive(Parser)]
#[command(
    name = "metatf-paper",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  metatf-paper perl.mtf
  metatf-paper --format markdown --svg sizes.svg *.mtf > sizes.md
  metatf-paper --only heap,split,simple gawk.raw32.zst
  metatf-paper --times 5 perl.mtf
  metatf-paper --peer heaptrack=heaptrack.perl.1234.zst perl.mtf

Columns: simple32, simple, parquet, ascii, naive, small-size, same-size, combined-size,
base-offset-1, base-offset-2, best-base-offset, stride, best, split-stream, split-addr,
address-section, optimal, split, values, heap. simple32 needs addresses and sizes under 4 GiB;
parquet needs python3 with pyarrow; xz needs the command xz; the times of ASCII/Perl need perl."
)]
struct Paper {
    /// Traces in any form supported by hatf convert.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    printed: OutputArgs,

    /// Print only these columns.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    only: Vec<Column>,

    /// Measure the first N records of each trace. A million takes 90 seconds on one processor.
    #[arg(long, value_name = "N", default_value_t = 500_000, allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    records: u64,

    /// Also measure times: medians of RUNS runs.
    #[arg(long, value_name = "RUNS", allow_negative_numbers = true, value_parser = number(1..=usize::MAX))]
    times: Option<usize>,

    /// Number of threads for measuring sizes, one encoding each [default: the number of processors]. Times are measured
    /// afterwards by one thread.
    #[arg(long, value_name = "THREADS", default_value_t = 0, hide_default_value = true, allow_negative_numbers = true, value_parser = number(0..=1024_usize))]
    threads: usize,

    /// Compare with the file of another tool for the same run, for example heaptrack. If a name is repeated, its first file
    /// belongs to the first trace, its second file to the second trace, and so on.
    #[arg(long = "peer", value_name = "NAME=FILE", value_parser = peer)]
    peers: Vec<(String, PathBuf)>,

    /// Also draw a chart of sizes into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Parses `NAME=FILE`.
fn peer(text: &str) -> std::result::Result<(String, PathBuf), String> {
    let split = text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty());
    let (name, path) = split.ok_or("expected NAME=FILE, such as heaptrack=heaptrack.perl.1234.zst")?;
    Ok((name.to_owned(), path.into()))
}

/// The command's name in messages.
const COMMAND: &str = "metatf-paper";

fn main() -> ExitCode {
    match run(&Paper::parse()) {
        // Missing parts of a trace have already been reported.
        Ok(()) if metatf_cli::lost_records() => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            print_message(&error.to_string());
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn print_message(message: &str) {
    metatf_cli::print_message(COMMAND, message);
}

fn run(options: &Paper) -> Result<()> {
    let settings = Options { only: options.only.clone(), runs: options.times, threads: options.threads };
    let peers = peers(options)?;
    let bar = progress(settings.steps() * options.traces.len() as u64);
    let measured: Result<Vec<Measured>> = options
        .traces
        .iter()
        .zip(peers)
        .map(|(path, peers)| Ok(Measured { peers, ..one(path, options.records, &settings, &bar)? }))
        .collect();
    bar.finish_and_clear();
    let measured = measured?;
    if let Some(path) = &options.svg {
        let draw = || -> io::Result<()> {
            let (file, mut out) = OutputFile::create(path)?;
            chart(&measured, &mut out)?;
            file.keep(out)
        };
        draw().map_err(Error::system(path.display().to_string()))?;
    }
    metatf_cli::print(&Sizes { traces: measured }, &options.printed).map_err(Error::system(options.printed.place()))
}

/// Returns the sizes of other tools' files by trace and name. The first file with a name belongs to the first trace,
/// the second file to the second trace, and so on.
fn peers(options: &Paper) -> Result<Vec<BTreeMap<String, u64>>> {
    let mut peers = vec![BTreeMap::new(); options.traces.len()];
    for (name, path) in &options.peers {
        let Some(of) = peers.iter_mut().find(|of| !of.contains_key(name)) else {
            return Err(Error::Usage(format!("--peer {name} occurs more often than there are traces")));
        };
        let length = std::fs::metadata(path).map_err(Error::system(path.display().to_string()))?.len();
        of.insert(name.clone(), length);
    }
    Ok(peers)
}

/// Measures the first records of one trace. Prints the losses of the conversion to raw records.
fn one(path: &Path, records: u64, settings: &Options, bar: &ProgressBar) -> Result<Measured> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("-").to_owned();
    let opening = Opening {
        open: |path| metatf_cli::open_trace(path, false),
        opened: |reader, name| metatf_cli::watch_trace(reader, COMMAND, name),
    };
    let open = OpenOptions { form: None, note: print_message, opening };
    let First { raw, losses, is_all } = first_raw32(Input::open(path)?, &open, records)?;
    for (loss, count) in losses.iter() {
        bar.suspend(|| print_message(&format!("{}: omitted {}: {count}", path.display(), loss.text())));
    }
    let measured = measure(&name, &raw, settings, &|step| match step {
        Step::Begins(step) => bar.set_message(step.to_owned()),
        Step::Done => bar.inc(1),
    })?;
    Ok(Measured { is_all, ..measured })
}

/// Creates a progress bar that shows the current measurement if standard error is a terminal.
fn progress(steps: u64) -> ProgressBar {
    if !metatf_cli::stderr_is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}
