//! `hatf merge`: merges the traces of several processes.

use std::path::{Path, PathBuf};

use hatf::share::{Merged, merge};
use hatf_trace::calendar::seconds;
use hatf_trace::event::{EventSource as _, UserMetadata};
use hatf_trace::forms::{OpenOptions, TraceReader, open};
use hatf_trace::{Error, Result};
use metatf_page::units::{count, nanoseconds};

use super::print_message;
use super::written::Written;

/// Merge the traces of several processes into one, ordered by time.
///
/// The merged trace shows how much memory all processes used at any point in time, and which process used it: names of
/// threads, marks and phases are prefixed with the number of the trace and the name of the program. When a process
/// ends, its blocks and pages are removed from the totals, so the totals show the memory that the system had to
/// provide. The last process to end keeps its blocks and pages. Traces from one recording share a clock; other traces
/// are aligned by their start dates, to the second.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record --stacks -o gc.mtf git gc
  hatf merge gc.mtf gc.processes/*.mtf -o all.mtf
  hatf report all.mtf
  hatf cut all.mtf --process 2 -o second.mtf
  hatf merge one.mtf two.mtf --as-is -o both.mtf

A heap trace describes one process, so addresses of process N (starting at 1) get N - 1 in bits 48
and up, and threads are renumbered. The sizes, times, order, sites, threads and pages of each
process are exact. If exec replaces a program, frees are written for its blocks. Changes of the
program break are written as page calls. The kernel's memory statistics are summed, so pages shared
by several processes are counted once per process.")]
pub(crate) struct Merge {
    /// Traces, in any format that `hatf convert` reads.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Use times unchanged, without aligning the clocks of the traces.
    #[arg(long)]
    as_is: bool,

    #[command(flatten)]
    written: Written,
}

pub(crate) fn run(options: &Merge) -> Result<u8> {
    let Merge { traces, as_is, written } = options;
    written.check(traces.iter().map(PathBuf::as_path))?;
    if traces.iter().any(|trace| trace == Path::new("-")) {
        return Err(Error::Usage("input traces must be files, not standard input".to_owned()));
    }
    let opened = |path: &PathBuf| open(path, &OpenOptions { form: None, note: print_message });
    let opened = traces.iter().map(opened).collect::<Result<Vec<TraceReader>>>()?;
    let offsets = if *as_is { vec![0; traces.len()] } else { offsets(traces, &opened)? };
    // The output uses the finest clock resolution among the inputs.
    let resolution = opened.iter().map(|trace| trace.resolution()).min().unwrap_or(1);
    let latest = offsets.iter().copied().max().unwrap_or(0);
    let merged = traces.iter().zip(opened).zip(offsets);
    let merged = merged.map(|((path, trace), offset)| Merged { trace, name: path.display().to_string(), offset });
    written.write(resolution, |sink| merge(merged.collect(), sink))?;
    let shifted = if latest > 0 {
        format!(", the last of which began {} after the first", nanoseconds(latest))
    } else {
        String::new()
    };
    print_message(&format!("{} traces{shifted}", count(traces.len() as u64)));
    Ok(0)
}

/// Returns the delay of the start of each trace relative to the earliest trace.
fn offsets(paths: &[PathBuf], traces: &[TraceReader]) -> Result<Vec<u64>> {
    let recording = |about: &UserMetadata| {
        let recording = about.get("recording")?.as_str()?;
        Some(recording.split('/').next().unwrap_or(recording).to_owned())
    };
    let about: Vec<UserMetadata> = traces.iter().map(|trace| trace.user_metadata()).collect();
    let first = about.first().and_then(recording);
    if first.is_some() && about.iter().all(|about| recording(about) == first) {
        return Ok(vec![0; traces.len()]);
    }
    let begun = |(path, about): (&PathBuf, &UserMetadata)| {
        let start = about.get("start").and_then(|start| start.as_str()).and_then(seconds);
        start.ok_or_else(|| {
            let why = "the trace has no start date; to use its times unchanged, add --as-is";
            Error::Trace(format!("{}: {why}", path.display()).into())
        })
    };
    let starts = paths.iter().zip(&about).map(begun).collect::<Result<Vec<u64>>>()?;
    let earliest = starts.iter().copied().min().unwrap_or(0);
    Ok(starts.into_iter().map(|start| (start - earliest).saturating_mul(1_000_000_000)).collect())
}
