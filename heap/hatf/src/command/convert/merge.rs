//! Merges the traces of several processes.

use std::path::PathBuf;

use hatf::share::{Merged, merge};
use hatf_trace::calendar::seconds;
use hatf_trace::event::{EventSource as _, UserMetadata};
use hatf_trace::forms::{self, CreateOptions, Form, OpenOptions, TraceReader};
use hatf_trace::loss::Losses;
use hatf_trace::{Error, Result};
use metatf::container::Sink;
use metatf_page::units::{count, nanoseconds};

use crate::command::print_message;

/// Opens the traces, and aligns their clocks unless `as_is` is set.
pub(super) fn open(paths: &[PathBuf], as_is: bool, options: &OpenOptions) -> Result<Vec<Merged>> {
    let opened = paths.iter().map(|path| forms::open(path, options)).collect::<Result<Vec<_>>>()?;
    let offsets = if as_is { vec![0; paths.len()] } else { offsets(paths, &opened)? };
    let merged = paths.iter().zip(opened).zip(offsets);
    Ok(merged.map(|((path, trace), offset)| Merged { trace, name: path.display().to_string(), offset }).collect())
}

/// Writes the merged trace. Returns counts of the event data that the format cannot store.
pub(super) fn write(traces: Vec<Merged>, to: &Form, create: &CreateOptions, output: &mut dyn Sink) -> Result<Losses> {
    let begin = to.create.ok_or_else(|| Error::Usage(format!("{} is a read-only format", to.name)))?;
    let (number, latest) = (traces.len(), traces.iter().map(|trace| trace.offset).max().unwrap_or(0));
    // By default, the output uses the finest clock resolution among the inputs.
    let resolution = create.resolution.or_else(|| traces.iter().map(|trace| trace.trace.resolution()).min());
    let mut writer = begin(output, &CreateOptions { resolution, ..create.clone() })?;
    if let Err(error) = merge(traces, &mut *writer) {
        writer.abandon();
        return Err(error);
    }
    let losses = writer.finish()?;
    let shifted = if latest > 0 {
        format!(", the last of which began {} after the first", nanoseconds(latest))
    } else {
        String::new()
    };
    print_message(&format!("{} traces{shifted}", count(number as u64)));
    Ok(losses)
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
