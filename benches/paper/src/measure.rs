//! Sizes and times of one trace in all encodings, and what it holds.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hatf_lab::HeapTracker;
use serde::Serialize;

use super::column::{Column, Packing};
use super::encoding::{Encoding, Files};
use super::simple::{self, RECORD};
use super::tools;
use hatf::analysis::{Report, ReportBuilder};
use hatf_trace::event::copy;
use hatf_trace::forms::RawSource;
use hatf_trace::{Error, Result};

/// The measurements to make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// These columns; none: all.
    pub only: Vec<Column>,
    /// Times, too: the median of this many runs.
    pub runs: Option<usize>,
    /// Sizes are found out by this many threads; 0: one for each processor. Times are measured by one, and when sizes are known.
    pub threads: usize,
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// This is being measured now.
    Begins(&'a str),
    /// One of [`Options::steps`] is done.
    Done,
}

impl Options {
    /// Returns the columns, in their order.
    pub fn columns(&self) -> impl Iterator<Item = Column> + '_ {
        Column::ALL.into_iter().filter(|column| self.only.is_empty() || self.only.contains(column))
    }

    /// Returns the columns of which times are wanted.
    fn timed(&self) -> impl Iterator<Item = Column> + '_ {
        self.columns().filter(|column| self.runs.is_some() && column.is_timed())
    }

    /// Steps of measuring a trace.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let sizes = self.columns().map(|column| column.packings().len() as u64);
        sizes.sum::<u64>() + self.timed().map(|_| 1).sum::<u64>()
    }
}

/// A trace's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The name of the trace.
    pub name: String,
    /// The content of what was measured of it.
    pub summary: Summary,
    /// Whether that is all of it, and not its first records only.
    pub is_all: bool,
    /// Bytes of the whole file, by name of the column and packing.
    pub bytes: BTreeMap<&'static str, BTreeMap<Packing, usize>>,
    /// By name of the column; empty where times were not asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub times: BTreeMap<&'static str, Times>,
    /// Why a column is not there, or not in every packing, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<&'static str, &'static str>,
    /// Bytes of other tools' files of the same run, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, u64>,
    /// Nanoseconds a record of copying the simple binary in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copying: Option<f64>,
    /// The paper's ASCII/Perl, where perl is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ascii_perl: Option<Perl>,
}

/// Nanoseconds of processor time a record that perl takes, its start included.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Perl {
    /// Splitting lines of text into numbers.
    pub read: f64,
    /// Printing such lines, of raw records.
    pub write: f64,
}

/// The content of a trace: the paper's table 3.
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

/// Nanoseconds of processor time a record: the medians. Writing takes in planning.
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
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn ratio(value: u64, of: u64) -> f64 {
    value as f64 / of.max(1) as f64
}

/// Measures a trace of raw records.
///
/// # Errors
/// What the encodings cannot hold; an encoding that does not give back what it was given.
pub fn measure(name: &str, raw: &[u8], options: &Options, step: &(dyn Fn(Step<'_>) + Sync)) -> Result<Measured> {
    let summary = summary(raw)?;
    let columns: Vec<_> = options.columns().map(|c| Ok((c, Encoding::new(c)?))).collect::<Result<_>>()?;
    let mut bytes: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut absent = BTreeMap::new();
    for (column, packing, size) in sizes(name, raw, &columns, options.threads, step)? {
        match size {
            Some(size) => drop(bytes.entry(column.name()).or_default().insert(packing, size)),
            None => drop(absent.insert(column.name(), column.absence(packing))),
        }
    }
    let mut times = BTreeMap::new();
    for (column, encoding) in &columns {
        let Some(runs) = options.runs.filter(|_| column.is_timed()) else { continue };
        step(Step::Begins(&format!("{name}: {column}, times")));
        if let Some(measured) = timed(encoding, *column, raw, runs)? {
            times.insert(column.name(), measured);
        }
        step(Step::Done);
    }
    let copying = options.runs.map(|runs| median(runs, raw, processor_time, || Ok(raw.to_vec()))).transpose()?;
    let copying = copying.map(|(time, _)| time);
    let mut ascii_perl = None;
    if let Some(runs) = options.timed().find(|&column| column == Column::Ascii).and(options.runs) {
        ascii_perl = perl(raw, runs)?;
        if ascii_perl.is_none() {
            absent.insert("ascii-perl", "perl is not there");
        }
    }
    Ok(Measured {
        name: name.to_owned(),
        summary,
        is_all: true,
        bytes,
        times,
        absent,
        peers: BTreeMap::new(),
        copying,
        ascii_perl,
    })
}

/// Bytes of every file that can be made here, by several threads. The dearest columns stand last, and are begun first, so that
/// no thread is left alone with one.
fn sizes(
    name: &str,
    raw: &[u8],
    columns: &[(Column, Encoding)],
    threads: usize,
    step: &(dyn Fn(Step<'_>) + Sync),
) -> Result<Vec<(Column, Packing, Option<usize>)>> {
    let jobs: Vec<(Column, &Encoding, Packing)> = columns
        .iter()
        .rev()
        .flat_map(|both| {
            let packings = both.0.packings().iter().rev();
            packings.map(|&packing| (both.0, &both.1, packing))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(&(column, encoding, packing)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            step(Step::Begins(&format!("{name}: {column}, {}", packing.name())));
            match size(encoding, raw, packing) {
                Ok(size) => found.push((column, packing, size)),
                Err(error) => {
                    // Nobody begins another.
                    next.store(jobs.len(), Ordering::Relaxed);
                    return Err(Error::Trace(format!("{name}: {column}: {error}").into()));
                }
            }
            step(Step::Done);
        }
        Ok(found)
    };
    let threads = if threads == 0 { thread::available_parallelism().map_or(1, usize::from) } else { threads };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(jobs.len())).map(|_| scope.spawn(work)).collect();
        let mut found = work()?;
        for other in others {
            let other = other.join().map_err(|_| Error::Trace("a thread that measures sizes panicked".into()))?;
            found.extend(other?);
        }
        Ok(found)
    })
}

/// Bytes of the files; `None` where what makes them is not there.
fn size(encoding: &Encoding, raw: &[u8], packing: Packing) -> Result<Option<usize>> {
    let Some(files) = encoding.write(raw, packing)? else { return Ok(None) };
    match encoding.read(&files, packing)? {
        Some(again) if again != raw => Err(Error::Trace("gives back other records".into())),
        _ => Ok(Some(files.iter().map(Vec::len).sum())),
    }
}

fn summary(raw: &[u8]) -> Result<Summary> {
    let mut analysis = HeapTracker::new(ReportBuilder::new());
    copy(&mut RawSource::<_, RECORD>::new(raw), &mut analysis)?;
    let Report { calls, totals, peak, .. } = analysis.observer().report(analysis.heap());
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

/// `None` where nothing is written.
fn timed(encoding: &Encoding, column: Column, raw: &[u8], runs: usize) -> Result<Option<Times>> {
    let both = |packing| -> Result<Option<(f64, f64)>> {
        let (write, files) = median(runs, raw, processor_time, || encoding.write(raw, packing))?;
        let Some(files): Option<Files> = files.flatten() else { return Ok(None) };
        let (read, _) = median(runs, raw, processor_time, || encoding.read(&files, packing))?;
        Ok(Some((read, write)))
    };
    let (Some((read, write)), Some((read_packed, write_packed))) = (both(Packing::Raw)?, both(column.quick_packing())?)
    else {
        return Ok(None);
    };
    Ok(Some(Times { read, write, read_packed, write_packed }))
}

/// Times perl, and compares what it writes and reads with ours.
fn perl(raw: &[u8], runs: usize) -> Result<Option<Perl>> {
    let text = simple::to_ascii(raw);
    let (write, written) = median(runs, raw, children_time, || tools::perl_ascii(raw))?;
    let (read, fields) = median(runs, raw, children_time, || tools::perl_fields(&text))?;
    let (Some(written), Some(fields)) = (written.flatten(), fields.flatten()) else { return Ok(None) };
    if written != text || fields != simple::fields_together(raw).as_bytes() {
        return Err(Error::Trace("perl has other records".into()));
    }
    Ok(Some(Perl { read, write }))
}

/// Measures the median processor time of several runs, in nanoseconds a record; also returns the last result. Not the time that a clock on the
/// wall tells: machines are shared.
fn median<T>(
    runs: usize,
    raw: &[u8],
    clock: impl Fn() -> u64,
    mut run: impl FnMut() -> Result<T>,
) -> Result<(f64, Option<T>)> {
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..runs.max(1) {
        let start = clock();
        last = Some(black_box(run()?));
        times.push(clock().saturating_sub(start));
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or(0);
    Ok((ratio(median, (raw.len() / RECORD) as u64), last))
}

/// Nanoseconds that all threads of this process took.
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}

/// Nanoseconds that commands took that have ended.
fn children_time() -> u64 {
    // SAFETY: numbers, for which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a place for the answer; this process can always ask for its children.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let microseconds = |time: libc::timeval| {
        time.tv_sec.cast_unsigned().wrapping_mul(1_000_000).wrapping_add(time.tv_usec.cast_unsigned())
    };
    1000 * (microseconds(usage.ru_utime) + microseconds(usage.ru_stime))
}
