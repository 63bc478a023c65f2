//! Sizes and times of one trace in all encodings, and what it holds.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

use super::column::{Column, Packing};
use super::encoding::Encoding;
use super::simple::RECORD;
use crate::analysis::{Analysis, Report};
use crate::convert::RawSource;
use crate::event::copy;
use crate::{Error, Result};

/// What is to be measured.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// These columns; none: all.
    pub only: Vec<Column>,
    /// Times, too: the median of so many runs.
    pub runs: Option<usize>,
}

impl Options {
    /// The columns, in their order.
    pub fn columns(&self) -> impl Iterator<Item = Column> + '_ {
        Column::ALL.into_iter().filter(|column| self.only.is_empty() || self.only.contains(column))
    }
}

/// A trace's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// What the trace is called.
    pub name: String,
    /// What it holds.
    pub summary: Summary,
    /// Bytes of the whole file, by name of the column and packing.
    pub bytes: BTreeMap<&'static str, BTreeMap<Packing, usize>>,
    /// By name of the column; empty where times were not asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub times: BTreeMap<&'static str, Times>,
    /// Nanoseconds a record of copying the simple binary in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copying: Option<f64>,
}

/// What a trace holds: the paper's table 3.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// Records.
    pub records: u64,
    /// Calls that allocate, reallocs of a block apart.
    pub allocs: u64,
    /// Reallocs of a block.
    pub reallocs: u64,
    /// Calls of `free`.
    pub frees: u64,
    /// Bytes asked for, by all calls.
    pub bytes: u64,
    /// Most blocks at once.
    pub most_objects: u64,
    /// Most bytes at once.
    pub most_bytes: u64,
}

/// Nanoseconds a record: the medians.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// Reading what is not compressed.
    pub read: f64,
    /// Writing it.
    pub write: f64,
    /// Reading what is compressed, by [`Column::quick_packing`].
    pub read_packed: f64,
    /// Writing it.
    pub write_packed: f64,
}

impl Measured {
    /// Bytes a record.
    #[must_use]
    pub fn size(&self, column: Column, packing: Packing) -> Option<f64> {
        let bytes = *self.bytes.get(column.name())?.get(&packing)?;
        Some(ratio(bytes as u64, self.summary.records))
    }

    /// Bytes a record as the smallest of the packings makes it.
    #[must_use]
    pub fn smallest(&self, column: Column) -> Option<f64> {
        let bytes = self.bytes.get(column.name())?.values().min()?;
        Some(ratio(*bytes as u64, self.summary.records))
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn ratio(value: u64, of: u64) -> f64 {
    value as f64 / of.max(1) as f64
}

/// Measures a trace of raw records. `step` is told what comes next.
///
/// # Errors
/// What the encodings cannot hold; an encoding that does not give back what it was given.
pub fn measure(name: &str, raw: &[u8], options: &Options, step: &mut dyn FnMut(&str)) -> Result<Measured> {
    let summary = summary(raw)?;
    let mut bytes: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut times = BTreeMap::new();
    for column in options.columns() {
        let encoding = Encoding::new(column)?;
        for &packing in column.packings() {
            step(&format!("{name}: {column}, {}", packing.name()));
            let Some(file) = encoding.write(raw, packing)? else { continue };
            if packing != Packing::Xz && encoding.read(&file, packing)? != raw {
                return Err(Error::Trace(format!("{name}: {column} gives back other records").into()));
            }
            bytes.entry(column.name()).or_default().insert(packing, file.len());
        }
        if let Some(runs) = options.runs.filter(|_| column.is_timed()) {
            step(&format!("{name}: {column}, times"));
            times.insert(column.name(), timed(&encoding, column, raw, runs)?);
        }
    }
    let copying = options.runs.map(|runs| median(runs, raw, || Ok(raw.to_vec()))).transpose()?;
    Ok(Measured { name: name.to_owned(), summary, bytes, times, copying: copying.map(|(time, _)| time) })
}

fn summary(raw: &[u8]) -> Result<Summary> {
    let mut analysis = Analysis::new();
    copy(&mut RawSource::<_, RECORD>::new(raw), &mut analysis)?;
    let Report { calls, totals, peak, .. } = analysis.finish();
    Ok(Summary {
        records: (raw.len() / RECORD) as u64,
        allocs: calls.malloc + calls.calloc + calls.aligned + calls.realloc_of_null,
        reallocs: calls.realloc,
        frees: calls.free,
        bytes: totals.bytes,
        most_objects: peak.blocks,
        most_bytes: peak.bytes,
    })
}

fn timed(encoding: &Encoding, column: Column, raw: &[u8], runs: usize) -> Result<Times> {
    let both = |packing| -> Result<(f64, f64)> {
        let (write, file) = median(runs, raw, || encoding.write(raw, packing))?;
        let file = file.flatten().unwrap_or_default();
        let (read, _) = median(runs, raw, || encoding.read(&file, packing))?;
        Ok((read, write))
    };
    let (read, write) = both(Packing::Raw)?;
    let (read_packed, write_packed) = both(column.quick_packing())?;
    Ok(Times { read, write, read_packed, write_packed })
}

/// The median time of several runs, in nanoseconds a record, and what the last gave.
fn median<T>(runs: usize, raw: &[u8], mut run: impl FnMut() -> Result<T>) -> Result<(f64, Option<T>)> {
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        last = Some(black_box(run()?));
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or(0);
    Ok((ratio(u64::try_from(median).unwrap_or(u64::MAX), (raw.len() / RECORD) as u64), last))
}
