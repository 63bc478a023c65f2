//! Sizes and times of one trace in all encodings, and a summary of the trace.

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
use hatf_trace::event::copy;
use hatf_trace::forms::RawSource;
use hatf_trace::{Error, Result};
use hatf_view::analysis::{Report, ReportBuilder};

/// The measurements to make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The columns to measure; all of them if empty.
    pub only: Vec<Column>,
    /// The number of runs from which median times are computed. `None` means that times are not measured.
    pub runs: Option<usize>,
    /// The number of threads that measure sizes, or 0 for one per CPU. Afterwards, a single thread measures times.
    pub threads: usize,
}

/// The progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// This measurement begins.
    Begins(&'a str),
    /// One of [`Options::steps`] is done.
    Done,
}

impl Options {
    /// Returns the columns in order.
    pub fn columns(&self) -> impl Iterator<Item = Column> + '_ {
        Column::ALL.into_iter().filter(|column| self.only.is_empty() || self.only.contains(column))
    }

    /// Returns the columns whose times are measured.
    fn timed(&self) -> impl Iterator<Item = Column> + '_ {
        self.columns().filter(|column| self.runs.is_some() && column.is_timed())
    }

    /// Returns the number of steps for measuring a trace.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let sizes = self.columns().map(|column| column.packings().len() as u64);
        sizes.sum::<u64>() + self.timed().map(|_| 1).sum::<u64>()
    }
}

/// The figures for a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The name of the trace.
    pub name: String,
    /// The summary of the measured part.
    pub summary: Summary,
    /// Whether the entire trace was measured rather than only its first records.
    pub is_all: bool,
    /// File sizes in bytes by column name and packing.
    pub bytes: BTreeMap<&'static str, BTreeMap<Packing, usize>>,
    /// Times by column name; empty unless requested.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub times: BTreeMap<&'static str, Times>,
    /// By column name, the reason why the column is missing entirely or in some packing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<&'static str, &'static str>,
    /// Sizes of other tools' files from the same run in bytes, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, u64>,
    /// Nanoseconds per record for copying the simple binary in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copying: Option<f64>,
    /// The times of the paper's ASCII/Perl, if perl is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ascii_perl: Option<Perl>,
}

/// CPU time of perl in nanoseconds per record, including its startup.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Perl {
    /// Time for splitting lines of text into numbers.
    pub read: f64,
    /// Time for printing lines of text from raw records.
    pub write: f64,
}

/// The summary of a trace, as in table 3 of the paper.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// The number of records.
    pub records: u64,
    /// The number of allocating calls, except for reallocs of a block.
    pub allocs: u64,
    /// Reallocs of a block.
    pub reallocs: u64,
    /// Calls to `free`.
    pub frees: u64,
    /// Bytes requested by all calls.
    pub bytes: u64,
    /// The maximum number of simultaneously live blocks.
    pub most_objects: u64,
    /// The maximum number of simultaneously live bytes.
    pub most_bytes: u64,
}

/// Median CPU times in nanoseconds per record. Writing includes planning.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// Reading uncompressed data.
    pub read: f64,
    /// Writing uncompressed data.
    pub write: f64,
    /// Reading data compressed with [`Column::quick_packing`].
    pub read_packed: f64,
    /// Writing compressed data.
    pub write_packed: f64,
}

impl Measured {
    /// Returns the bytes per record.
    #[must_use]
    pub fn size(&self, column: Column, packing: Packing) -> Option<f64> {
        let bytes = *self.bytes.get(column.name())?.get(&packing)?;
        Some(ratio(bytes as u64, self.summary.records))
    }
}

#[allow(clippy::cast_precision_loss, reason = "the number is for display")]
pub(super) fn ratio(value: u64, of: u64) -> f64 {
    value as f64 / of.max(1) as f64
}

/// Measures a trace of raw records.
///
/// # Errors
/// Fails if an encoding cannot represent the records or does not reproduce them.
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
            absent.insert("ascii-perl", "perl is not available");
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

/// Returns the size of every file that can be created on this machine, using several threads. The slowest columns are
/// last in the list and are started first, so that no thread still processes one of them when the others have finished.
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
                    // Keep all threads from starting another job.
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

/// Returns the total size of the files in bytes, or `None` if the program that creates them is not installed.
fn size(encoding: &Encoding, raw: &[u8], packing: Packing) -> Result<Option<usize>> {
    let Some(files) = encoding.write(raw, packing)? else { return Ok(None) };
    match encoding.read(&files, packing)? {
        Some(again) if again != raw => Err(Error::Trace("the decoded records differ".into())),
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

/// Measures the times of a column. Returns `None` if no file can be written.
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

/// Measures the times of perl, and compares its output and results with those of this crate.
fn perl(raw: &[u8], runs: usize) -> Result<Option<Perl>> {
    let text = simple::to_ascii(raw);
    let (write, written) = median(runs, raw, children_time, || tools::perl_ascii(raw))?;
    let (read, fields) = median(runs, raw, children_time, || tools::perl_fields(&text))?;
    let (Some(written), Some(fields)) = (written.flatten(), fields.flatten()) else { return Ok(None) };
    if written != text || fields != simple::fields_together(raw).as_bytes() {
        return Err(Error::Trace("the records from perl differ".into()));
    }
    Ok(Some(Perl { read, write }))
}

/// Measures the median CPU time of several runs in nanoseconds per record, and returns it with the last result.
/// Wall-clock time is not used because machines are shared.
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

/// Returns the CPU time of all threads in this process in nanoseconds.
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable that receives the result; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}

/// Returns the CPU time of finished child processes in nanoseconds.
fn children_time() -> u64 {
    // SAFETY: the structure consists of numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local variable that receives the result; a process can always query its children.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let microseconds = |time: libc::timeval| {
        time.tv_sec.cast_unsigned().wrapping_mul(1_000_000).wrapping_add(time.tv_usec.cast_unsigned())
    };
    1000 * (microseconds(usage.ru_utime) + microseconds(usage.ru_stime))
}
