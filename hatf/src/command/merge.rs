//! `hatf merge`

use std::path::{Path, PathBuf};

use hatf::event::{EventSource as _, UserMetadata};
use hatf::forms::{OpenOptions, TraceReader, open};
use hatf::share::{Merged, merge};
use hatf::{Error, Result};
use metatf_page::units::{count, nanoseconds};

use super::print_message;
use super::written::Written;

/// Write the traces of several processes as one trace, in the order of their times.
///
/// So it shows what all of them had at any moment, and which of them had it: threads, marks and phases have the number of the trace and
/// the program before their names. When a process ends, its blocks and pages end with it, unless it is the last: the sum
/// is what the system had to give. Traces of one recording have one clock; others are put at their starts by the calendar, to the second.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record --stacks -o gc.mtf git gc
  hatf merge gc.mtf gc.processes/*.mtf -o all.mtf
  hatf report all.mtf
  hatf cut all.mtf --process 2 -o second.mtf
  hatf merge one.mtf two.mtf --as-is -o both.mtf

A heap trace has one process, so addresses of process N, from 1, get N - 1 as their bits from 48
on, and threads get new numbers. Sizes, times, order, sites, threads and pages of each are exact.
The end of a program by exec is written as frees of its blocks, a break as calls for pages, and
what the kernel says of memory is summed: pages that processes share count for each.")]
pub(crate) struct Merge {
    /// The traces, in any form that hatf convert reads.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Take times as they are, whatever the traces say about their clocks.
    #[arg(long)]
    as_is: bool,

    #[command(flatten)]
    written: Written,
}

pub(crate) fn run(options: &Merge) -> Result<u8> {
    let Merge { traces, as_is, written } = options;
    written.check(traces.iter().map(PathBuf::as_path))?;
    if traces.iter().any(|trace| trace == Path::new("-")) {
        return Err(Error::Usage("traces that are merged are files, not standard input".to_owned()));
    }
    let opened = |path: &PathBuf| open(path, &OpenOptions { form: None, note: print_message });
    let opened = traces.iter().map(opened).collect::<Result<Vec<TraceReader>>>()?;
    let offsets = if *as_is { vec![0; traces.len()] } else { offsets(traces, &opened)? };
    // The finest clock is the new one's.
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

/// Returns how much later each trace began than the first one.
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
            let why = "it does not say when it began: --as-is takes its times as they are";
            Error::Trace(format!("{}: {why}", path.display()).into())
        })
    };
    let starts = paths.iter().zip(&about).map(begun).collect::<Result<Vec<u64>>>()?;
    let earliest = starts.iter().copied().min().unwrap_or(0);
    Ok(starts.into_iter().map(|start| (start - earliest).saturating_mul(1_000_000_000)).collect())
}

/// Returns seconds since 1970 of `2000-02-29T12:00:00Z`.
fn seconds(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, between| -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> = text.split(between).map(|number| number.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Count in years that begin in March, so that the day that comes and goes is the last one.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_dates() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00Z", Some(951_825_600)),
            ("2026-11-26T18:48:38Z", Some(1_795_718_918)),
            ("2026-13-26T18:48:38Z", None),
            ("2026-11-26", None),
            ("x", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
