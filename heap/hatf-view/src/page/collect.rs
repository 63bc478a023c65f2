//! Collects the data for the HTML report while a trace is read.

use std::collections::{BTreeMap, HashMap};

use hatf_lab::blocks::{Cell, Growths, Lifetimes};
use hatf_lab::fragmentation::Moment;
use hatf_lab::history::{Moments, SiteTimeline};
use hatf_lab::sites::{Amount, Counts, Measure, Weight};
use hatf_lab::{Cause, Change, Heap, ObjectEvent, Objects, Observer};
use serde::Serialize;

use super::grid::Grid;
use super::header::Header;
use crate::analysis::Report;
use hatf_trace::event::{Event, EventKind};

/// Maximum number of marks shown. A trace may contain a million marks.
const MOST_MARKS: usize = 200;
/// Maximum number of threads shown.
const MOST_THREADS: usize = 32;

/// An observer that collects the data of the HTML report that [`Report`] does not contain. The
/// [module documentation](super) contains an example.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    moments: Moments,
    growths: Growths,
    /// Time, tick and name.
    marks: Vec<(u64, u64, String)>,
    lifetimes: Lifetimes,
    /// Freed blocks, by allocating thread and freeing thread.
    threads: BTreeMap<(u64, u64), Amount>,
    last: (u64, u64),
    of_last: Amount,
    weight: Weight,
}

/// The data of a trace for the HTML report.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub(super) header: Header,
    pub(super) words: Words,
    pub(super) timeline: SiteTimeline,
    /// Allocations of each stack, indexed by stack number.
    pub(super) counts: Vec<Counts>,
    /// Measures that apply to this trace.
    pub(super) measures: Vec<Measure>,
    pub(super) grids: Vec<Grid>,
}

impl Recorded {
    /// Adds the pages held at a named point in time.
    pub fn add_pages(&mut self, name: &str, moment: &Moment) {
        self.grids.push(Grid::pages(name, moment));
    }
}

/// Non-numeric data of a trace for the report's script.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Words {
    name: String,
    /// Duration, or 0 if the trace has no times and events serve as the time axis.
    duration: u64,
    /// Memory limit of the program's control group in bytes, or 0 if the trace states none.
    limit: u64,
    /// Sentence about the end of the program, which the header states.
    ending: Option<String>,
    peak: u64,
    peak_blocks: u64,
    peak_time: u64,
    pub(super) sizes_only: bool,
    /// Time, event and name.
    marks: Vec<(u64, u64, String)>,
    series: Vec<Line>,
    /// Allocating thread, freeing thread, blocks and bytes.
    threads: Vec<(u64, u64, u64, u64)>,
    thread_names: HashMap<u64, String>,
}

/// A quantity over time in addition to live bytes.
#[derive(Clone, Debug, Serialize)]
struct Line {
    name: String,
    points: Vec<(u64, u64)>,
}

impl Collected {
    /// Creates an empty collector.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn freed(&mut self, event: &ObjectEvent) {
        let object = &event.object;
        let threads = (object.thread, event.thread);
        if threads != self.last {
            self.note_threads();
            self.last = threads;
        }
        self.of_last.sum(self.weight.amount(object.size));
    }

    /// Adds the blocks counted for the current pair of threads. If there are too many pairs, new pairs are combined
    /// into one.
    #[cold]
    fn note_threads(&mut self) {
        let noted = std::mem::take(&mut self.of_last);
        if noted.blocks == 0 {
            return;
        }
        let full = self.threads.len() >= MOST_THREADS * MOST_THREADS;
        let of = if full && !self.threads.contains_key(&self.last) { (u64::MAX, u64::MAX) } else { self.last };
        self.threads.entry(of).or_default().sum(noted);
    }

    /// Sums up the collected data; `objects` are the objects live at the end.
    ///
    /// # Errors
    /// Returns an error if a site number is too large.
    pub fn sum_up(mut self, objects: &Objects) -> hatf_lab::Result<Summed> {
        self.note_threads();
        Ok(Summed {
            timeline: self.moments.timeline(objects),
            lifetimes: self.lifetimes.finish(objects)?,
            growths: self.growths,
            marks: self.marks,
            threads: self.threads,
            weight: self.weight,
        })
    }
}

/// The collected data, summed up.
#[derive(Clone, Debug)]
pub struct Summed {
    timeline: SiteTimeline,
    lifetimes: Vec<Vec<(Cell, Amount)>>,
    growths: Growths,
    marks: Vec<(u64, u64, String)>,
    threads: BTreeMap<(u64, u64), Amount>,
    weight: Weight,
}

impl Summed {
    /// Returns the report data of the trace with this name. `counts` are the allocations of each stack, indexed by
    /// stack number.
    #[must_use]
    pub fn recorded(self, name: String, heap: &Heap, report: &Report, mut counts: Vec<Counts>) -> Recorded {
        let has_usable = self.growths.has_usable();
        let asked_for = [Measure::Copied].into_iter().chain(has_usable.then_some(Measure::Slack));
        let measures: Vec<Measure> =
            Measure::ALL.into_iter().chain(asked_for).filter(|measure| measure.is_known(heap)).collect();
        for (counts, growth) in counts.iter_mut().zip(self.growths.sites()) {
            (counts.copied, counts.slack) = (Some(growth.copied), Some(growth.slack));
        }
        // For a sampled trace, the report shows the estimates.
        let most = Amount { bytes: report.peak.bytes, blocks: report.peak.blocks_then };
        let most = report.estimate.as_ref().map_or(most, |all| all.peak);
        let thread_names = report.threads.iter().filter_map(|thread| Some((thread.thread, thread.name.clone()?)));
        // A trace without times has no lifetimes.
        let has_lifetimes = report.duration > 0 && !report.sizes_only;
        let grids = has_lifetimes.then(|| Grid::lifetimes(&self.lifetimes)).into_iter().collect();
        let weight = self.weight;
        let header = Header::new(report, &counts, most);
        let words = Words {
            name,
            duration: report.duration,
            limit: report.memory_limit.unwrap_or(0),
            ending: header.ending.clone(),
            peak: most.bytes,
            peak_blocks: most.blocks,
            peak_time: report.peak.time,
            sizes_only: report.sizes_only,
            marks: self.marks,
            series: series(report),
            threads: self.threads.iter().map(|((by, to), a)| (*by, *to, weight.whole(*a).blocks, a.bytes)).collect(),
            thread_names: thread_names.collect(),
        };
        Recorded { header, words, timeline: self.timeline, counts, measures, grids }
    }
}

/// Returns the quantities over time other than live bytes.
fn series(report: &Report) -> Vec<Line> {
    let Some(pages) = report.pages.as_ref().filter(|pages| pages.samples > 0) else { return Vec::new() };
    let step = pages.timeline.step;
    let ends = std::iter::successors(Some(step), |end| Some(end.saturating_add(step)));
    let points = ends.zip(pages.timeline.points.iter().map(|point| point.most)).collect();
    vec![Line { name: "resident and private pages".to_owned(), points }]
}

impl Observer for Collected {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        if event.change == Change::Freed && matches!(event.cause, Cause::Call | Cause::Realloc) {
            self.freed(event);
        }
        self.growths.event(event)?;
        self.lifetimes.event(event)?;
        self.moments.event(event)
    }

    fn sampled(&mut self, mean: u64) {
        self.moments.sampled(mean);
        self.lifetimes.sampled(mean);
        self.weight = Weight::sampled(mean);
    }

    /// Handles a record. Each mark adds a point in time.
    #[inline]
    fn record(&mut self, event: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.growths.record(event, heap)?;
        let name = match event.kind {
            EventKind::Mark { name } | EventKind::PhaseBegin { name } => String::from_utf8_lossy(name).into_owned(),
            EventKind::PhaseEnd { name } => format!("end of {}", String::from_utf8_lossy(name)),
            _ => return Ok(()),
        };
        self.moments.cut();
        if self.marks.len() < MOST_MARKS {
            self.marks.push((event.time, heap.objects.tick(), name));
        }
        Ok(())
    }
}
