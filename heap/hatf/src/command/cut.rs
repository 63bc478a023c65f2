//! `hatf cut`: extracts part of a trace, or a sample of its blocks.

use clap::ArgGroup;
use hatf::share::{Cut as Cutting, CutCounts, Records, SampleCounts, Sampler, SizesSeen, Subset, Wanted, mean_for};
use hatf_lab::HeapTracker;
use hatf_lab::history::{Kept, Point};
use hatf_trace::event::{Call, Event, EventKind, EventSink, UserMetadata};
use hatf_trace::{Error, Result};
use metatf_cli::number;
use metatf_page::units::{bytes, count};

use super::lab::Source;
use super::points::{range, settled};
use super::values::sample;
use super::written::Written;
use super::{about, print_message, replay};

/// The options that select a part.
const PARTS: [&str; 7] = ["between", "records", "phase", "thread", "process", "sample", "sample_blocks"];

/// Extract part of a trace: a range of time or records, a phase, a thread, a process, or a sample of the blocks.
///
/// The output also contains the state at the start of the part. Each live block appears as the call that allocated it,
/// with its stack, size, thread and time. The program, modules, symbols, threads, open phases and pages are included
/// too. Times are unchanged. For any point in time within the part, a report on the part therefore shows the same live
/// bytes, sites and ages as a report on the complete trace. Blocks allocated and freed before the part are not
/// included.
///
/// A sample makes a large trace manageable. Every allocated byte has the same small chance of selecting its block, as
/// with `hatf record --sample`, so large blocks are nearly always in the sample and small ones rarely are. A selected
/// block is kept from its allocation to its free. The trace is marked as a sample, so `hatf report`, `hatf sites` and
/// the HTML report scale each block up. Their totals are therefore correct on average.
#[derive(clap::Args)]
#[command(
    group = ArgGroup::new("part").required(true).multiple(true).args(PARTS),
    override_usage = "hatf cut [OPTIONS] --output <TRACE> <TRACE>",
    after_help = "\
Examples:
  hatf cut server.mtf --between 10s..60s -o minute.mtf
  hatf cut server.mtf --between mark:ready..end -o ready.mtf
  hatf cut server.mtf --phase load -o load.mtf
  hatf cut server.mtf --records 1000000..2000000 -o part.mtf
  hatf cut server.mtf --thread 3 -o worker.mtf
  hatf cut all.mtf --process 2 -o child.mtf
  hatf cut server.mtf --between 10s.. -o - | hatf sites -
  hatf cut server.mtf --sample 64KiB -o small.mtf
  hatf cut server.mtf --sample-blocks 250000 -o small.mtf

The user metadata `cut` contains the number and size of the blocks that were live at the start;
`hatf report` prints it. To count only blocks allocated within the part, use --live-between with the
same range.

In a sample, the total of a site with N sampled blocks of the same size has a relative error of
about 1/sqrt(N): 10% for 100 blocks. `hatf simulate`, `hatf fragmentation` and `hatf replay` need
every block; for these commands, extract another part instead."
)]
pub(crate) struct Cut {
    #[command(flatten)]
    source: Source,

    /// Range between two points in time, each a time such as 10s, mark:NAME for the first mark or phase with that name,
    /// peak, or end. If the first is omitted, the range begins at the start; if the second is omitted, it extends to
    /// the end.
    #[arg(long, value_name = "A..B", value_parser = range, conflicts_with_all = ["records", "phase"])]
    between: Option<(Point, Point)>,

    /// Range of records, numbered from 1 as in `hatf dump`: 1000000..2000000. Either end can be omitted.
    #[arg(long, value_name = "FIRST..LAST", value_parser = replay::records, conflicts_with = "phase")]
    records: Option<(Option<u64>, Option<u64>)>,

    /// First phase with this name.
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,

    /// Blocks allocated by this thread, their frees by any thread, and the thread's other events. Marks, modules and
    /// pages belong to the process, so they are kept too.
    #[arg(long, value_name = "N")]
    thread: Option<u64>,

    /// One process of a trace that `hatf convert` merged from several, by its number, starting at 1.
    #[arg(long, value_name = "N", conflicts_with = "thread")]
    process: Option<u64>,

    /// A sample of the blocks, with one block per this many bytes on average.
    #[arg(long, value_name = "BYTES", value_parser = sample, group = "sampling")]
    sample: Option<u64>,

    /// A sample of at most about this many blocks, with the smallest possible power of two as the number of bytes per
    /// block. The trace is read twice.
    #[arg(long, value_name = "N", value_parser = number(1..=u64::MAX), group = "sampling")]
    sample_blocks: Option<u64>,

    /// Seed of the sample; the same seed gives the same sample.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sampling")]
    seed: u64,

    #[command(flatten)]
    written: Written,
}

/// A sink that forwards the events of one thread.
struct OfThread {
    thread: u64,
    is_there: bool,
}

impl Wanted for OfThread {
    fn block(&mut self, event: &Event<'_>, _: &Call) -> bool {
        self.is_there |= event.thread == self.thread;
        event.thread == self.thread
    }

    fn other(&mut self, event: &Event<'_>) -> bool {
        match event.kind {
            EventKind::ThreadStart { .. } => {
                self.is_there |= event.thread == self.thread;
                true
            }
            EventKind::Enter { .. } | EventKind::Leave | EventKind::Processor { .. } => event.thread == self.thread,
            _ => true,
        }
    }

    fn failed(&mut self, event: &Event<'_>) -> bool {
        event.thread == self.thread
    }
}

pub(crate) fn run(options: &Cut) -> Result<u8> {
    let Cut { source, written, .. } = options;
    written.check([&*source.trace])?;
    source.reread()?;
    let records = records(options)?;
    let mut mean = options.sample;
    if let Some(blocks) = options.sample_blocks {
        let mut seen = SizesSeen::default();
        part(options, records, &mut seen)?;
        mean = Some(mean_for(&seen, blocks));
    }
    let said = written.write(source.resolution()?, |sink| {
        let Some(mean) = mean else { return part(options, records, sink) };
        let mut sampler = Sampler::new(mean, options.seed, sink);
        part(options, records, &mut sampler)?;
        let SampleCounts { mean, blocks, bytes: sum, of_blocks, of_bytes } = sampler.counts();
        let [blocks, of_blocks] = [blocks, of_blocks].map(count);
        let [sum, of_bytes, mean] = [sum, of_bytes, mean].map(bytes);
        Ok(format!("{blocks} of {of_blocks} blocks, {sum} of {of_bytes}: one block per {mean} on average"))
    })?;
    print_message(&said);
    Ok(0)
}

/// Passes the part that the options select to a sink. Returns a description of the part.
fn part(options: &Cut, records: Records, sink: &mut dyn EventSink) -> Result<String> {
    let source = &options.source;
    match (options.thread, options.process) {
        (Some(thread), _) => {
            let mut subset = Subset::new(OfThread { thread, is_there: false }, sink);
            cut(source, records, &mut subset)?;
            if subset.wanted().is_there {
                let [(blocks, sum), _] = subset.counts();
                return Ok(format!("thread {thread} allocated {} blocks, {}", count(blocks), bytes(sum)));
            }
            let name = source.trace.display();
            Err(Error::Usage(format!(
                "{name}: thread {thread} allocates nothing in this part; hatf report lists the threads"
            )))
        }
        (None, Some(process)) => of_process(source, records, process, sink),
        (None, None) => cut(source, records, sink).map(say),
    }
}

/// Returns a description of what a part contains.
fn say(counts: CutCounts) -> String {
    let CutCounts { records, carried_records, carried_blocks, carried_bytes } = counts;
    format!(
        "{} records, preceded by {} records that restore the initial state with {} live blocks ({})",
        count(records),
        count(carried_records),
        count(carried_blocks),
        bytes(carried_bytes)
    )
}

/// Passes part of the trace to a sink.
fn cut(source: &Source, records: Records, sink: &mut dyn EventSink) -> Result<CutCounts> {
    if records == (Records { first: 1, last: None }) {
        let mut counted = Whole { sink, records: 0 };
        source.read(&mut counted)?;
        return Ok(CutCounts { records: counted.records, ..CutCounts::default() });
    }
    let mut cutting = Cutting::new(records, sink);
    let read = source.read(&mut cutting);
    // Ignore the error by which the reader reports an early stop.
    if !cutting.is_over() {
        read?;
    }
    cutting.finish().map_err(|error| about(&source.trace, error))
}

/// A sink that forwards all records.
struct Whole<'s> {
    sink: &'s mut dyn EventSink,
    records: u64,
}

impl EventSink for Whole<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.records += 1;
        self.sink.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        // Remove the number of events, because it counts all events of the input trace.
        let mut user_metadata = user_metadata.clone();
        user_metadata.remove("events");
        self.sink.user_metadata(&user_metadata)
    }
}

/// Passes part of the events of one process in a merged trace to a sink.
fn of_process(source: &Source, records: Records, process: u64, sink: &mut dyn EventSink) -> Result<String> {
    let mut about_merged = Merged::default();
    source.read(&mut about_merged)?;
    let of = about_merged.0.get("merged").and_then(|merged| merged.as_array()).cloned().unwrap_or_default();
    let name = source.trace.display();
    let found = of.iter().find(|one| one["number"].as_u64() == Some(process));
    let Some(found) = found else {
        let why = if of.is_empty() {
            "the trace describes only one process; hatf convert A.mtf B.mtf BOTH.mtf merges traces".to_owned()
        } else {
            format!("there is no process {process}: the trace contains processes 1 to {}", of.len())
        };
        return Err(Error::Usage(format!("{name}: {why}")));
    };
    let mut own = hatf::share::OfProcess::new(process, found, sink);
    cut(source, records, &mut own)?;
    Ok(format!("process {process}: {} records", count(own.records())))
}

/// The user metadata of a merged trace.
#[derive(Default)]
struct Merged(UserMetadata);

impl EventSink for Merged {
    fn event(&mut self, _: &Event<'_>) -> Result<()> {
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.0.extend(user_metadata.clone());
        Ok(())
    }
}

/// Returns the range of records that the options select.
fn records(options: &Cut) -> Result<Records> {
    if let Some((first, last)) = options.records {
        let first = first.unwrap_or(1);
        if last.is_some_and(|last| last < first) {
            return Err(Error::Usage(format!(
                "empty range: there are no records from {first} to {}",
                last.unwrap_or(0)
            )));
        }
        return Ok(Records { first, last });
    }
    let phase = |name: &String| (Point::Mark(name.clone()), Point::Mark(format!("end of {name}")));
    let Some((from, to)) = options.between.clone().or_else(|| options.phase.as_ref().map(phase)) else {
        return Ok(Records { first: 1, last: None });
    };
    let [from, to] = settled(&options.source, [from, to])?;
    let to_end = to == Point::End;
    let mut kept = HeapTracker::new(Kept::new(from, to)).with_sizes_only();
    options.source.read(&mut kept)?;
    let found = kept.observer().report().map_err(|error| about(&options.source.trace, error.into()))?;
    Ok(Records { first: found.from.record + 1, last: (!to_end).then_some(found.to.record) })
}
