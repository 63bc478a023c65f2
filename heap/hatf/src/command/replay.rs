//! `hatf replay`: replays traces on real allocators.

use std::io::{self, Write as _};
use std::path::PathBuf;

use hatf_host::replay::{Allocator, Compiler, Cut, Look, ReplayReport, Task, Touch, Worker, compare, replay};
use hatf_trace::Error;
use metatf_cli::{OutputArgs, Progress, Style, memory_limit, number, stdout};
use metatf_page::units::bytes;

use super::lab::{Source, draw};
use crate::command::output::show;

/// Replay a trace's requests on real allocators, and measure the time they take and the memory they hold.
///
/// Each run preloads an allocator into a new process, which makes the calls of the trace. Each thread keeps its own
/// order, and calls on the same block are made in trace order. An allocator is system, jemalloc, mimalloc, tcmalloc or
/// the path of a library; write its environment variables before its name.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf replay perl.mtf
  hatf replay perl.mtf --with system,jemalloc,mimalloc,tcmalloc
  hatf replay perl.mtf --with system --with 'GLIBC_TUNABLES=glibc.malloc.tcache_count=0 system'
  hatf replay perl.mtf --with jemalloc --with 'MALLOC_CONF=narenas:1,dirty_decay_ms:0 jemalloc'
  hatf replay perl.mtf --with system,mimalloc --svg memory.svg
  hatf replay server.mtf --records 1000000..2000000 --touch first

A trace in which a block is freed twice or an address is returned twice is rejected, unless --repair
is given. valloc and pvalloc are replayed as aligned allocations, and reallocarray as realloc.")]
pub(crate) struct Replay {
    #[command(flatten)]
    source: Source,

    /// Allocators to measure, each preceded by its environment variables.
    #[arg(short = 'w', long = "with", value_name = "[VAR=VALUE ..] NAME", default_value = "system", value_parser = allocators)]
    allocators: Vec<Allocators>,

    /// Part of each block to touch, so that the system backs it with memory.
    #[arg(long, value_enum, default_value_t = Touch::Pages)]
    touch: Touch,

    /// Wait between calls as the program did, scaled by FACTOR [default: do not wait; 1 if no factor is given].
    #[arg(long, value_name = "FACTOR", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = factor)]
    think: Option<f64>,

    /// Replay the calls of all threads on one thread, in trace order.
    #[arg(long)]
    one_thread: bool,

    /// Replay only these records, numbered from 1: 1000000..2000000; either end can be omitted. Blocks live at the
    /// first record are allocated beforehand.
    #[arg(long, alias = "events", value_name = "FIRST..LAST", value_parser = records)]
    records: Option<(Option<u64>, Option<u64>)>,

    /// Repair calls that no correct program makes, and report how many calls were repaired.
    #[arg(long)]
    repair: bool,

    /// Number of timed runs per allocator.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = number(1..=1000_usize))]
    runs: usize,

    #[command(flatten)]
    output: OutputArgs,

    /// Also draw live bytes and memory over operations to this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The allocators of one `--with` option.
type Allocators = Vec<Allocator>;

/// Replay operations in this process and print the results as JSON.
#[derive(clap::Args)]
pub(crate) struct ReplayWorker {
    #[command(flatten)]
    task: Task,

    /// Operations to replay.
    operations: PathBuf,
}

/// Parses comma-separated names, or a single name preceded by environment variables, whose values may contain commas.
fn allocators(text: &str) -> Result<Allocators, String> {
    if text.contains('=') { Ok(vec![text.parse()?]) } else { text.split(',').map(str::parse).collect() }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| (0.0..=1e6).contains(factor));
    factor.ok_or_else(|| "expected a number from 0 to 1000000".to_owned())
}

/// Parses a range of records, numbered from 1.
pub(super) fn records(text: &str) -> Result<(Option<u64>, Option<u64>), String> {
    let wrong = || "expected the numbers of two records, such as 1000..2000".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let record = |text: &str| match text {
        "" => Ok(None),
        _ => text.parse().ok().filter(|record| *record > 0).map(Some).ok_or_else(wrong),
    };
    Ok((record(from)?, record(to)?))
}

pub(crate) fn run(options: &Replay) -> hatf_trace::Result<u8> {
    let Replay { one_thread, think, repair, .. } = *options;
    let (from, to) = options.records.unwrap_or_default();
    let mut compiler = Compiler::new(Cut { from, to, one_thread, think, repair })?;
    options.source.read(&mut compiler)?;
    let operations = compiler.finish()?;
    fits(options, operations.summary.most_live_bytes)?;
    let program = std::env::current_exe().map_err(Error::system("this program's path"))?;
    let worker = Worker::new(program, vec!["__replay-worker".into()]);
    let task = Task { look: Look::Total, touch: options.touch, nothing: false };
    let allocators = options.allocators.concat();
    let mut progress = Progress::new("replays");
    let comparison = compare(&worker, &operations, &allocators, options.runs, task, || progress.step())?;
    drop(progress);

    let name = options.source.trace.display().to_string();
    let report = ReplayReport { name, comparison };
    if let Some(path) = &options.svg {
        draw(path, report.chart())?;
    }
    show(&report, &options.output)?;
    Ok(0)
}

/// Checks that the live blocks fit in the available memory, because a replay allocates as much as the trace claims.
fn fits(options: &Replay, most_live: u64) -> hatf_trace::Result<()> {
    let allowed = memory_limit();
    if most_live <= allowed || !matches!(options.touch, Touch::Pages | Touch::Usable) {
        return Ok(());
    }
    let (trace, live, allowed) = (options.source.trace.display(), bytes(most_live), bytes(allowed));
    let advice = "increase --max-memory, or do not touch blocks (--touch none)";
    Err(Error::Trace(
        format!(
            "{trace}: the replay would touch up to {live} of live blocks, more than the limit of {allowed}: {advice}"
        )
        .into(),
    ))
}

pub(crate) fn work(options: &ReplayWorker) -> hatf_trace::Result<u8> {
    let run = replay(&options.operations, options.task)?;
    let mut out = stdout(Style::Json);
    serde_json::to_writer(&mut out, &run).map_err(io::Error::from)?;
    out.flush()?;
    Ok(0)
}
