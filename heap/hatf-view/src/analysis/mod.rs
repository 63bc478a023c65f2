//! Reports on the heap of a program, computed in one pass over a trace.
//!
//! Memory use is bounded by the number of distinct stacks, because histograms, threads and the timeline are small or
//! have a fixed size. [`HeapTracker`](hatf_lab::HeapTracker) tracks the heap itself.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_trace::{Event, EventSink};
//! use hatf_view::analysis::ReportBuilder;
//!
//! let mut tracker = HeapTracker::new(ReportBuilder::new());
//! tracker.event(&Event { time: 10, ..Event::malloc(0x1000, 100) })?;
//! tracker.event(&Event { time: 20, ..Event::malloc(0x2000, 50) })?;
//! tracker.event(&Event { time: 30, ..Event::free(0x1000) })?;
//!
//! let report = tracker.observer().report(tracker.heap());
//! assert_eq!((report.totals.allocs, report.totals.frees), (2, 1));
//! assert_eq!((report.peak.bytes, report.peak.time), (150, 20));
//! assert_eq!((report.still_live.blocks, report.still_live.bytes), (1, 50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ending;
mod glance;
mod grown;
mod pages;
mod phases;
mod programs;
mod report;
mod sites;
mod threads;
mod usable;

pub use ending::{EndObserver, Ending, FailedRequest};
pub use glance::Glance;
pub use grown::{Grown, GrownBy};
pub use pages::{Following as PageFollower, Level, PageCalls, PagesReport};
pub use phases::{MarkReport, PhaseReport};
pub use programs::{OwnAllocator, ProgramReport, Programs, UnrecordedProgram};
pub use report::{CallCounts, Estimate, LargestBlock, Off, Peak, Quantiles, Report, ReportTotals, StillLive};
pub use sites::{SitesReport, TopSite};
pub use threads::ThreadReport;
pub use usable::UsableReport;

use hatf_lab::history::{LiveBySite, MostAndLast, Stretches};
use hatf_lab::sites::Counts;
use hatf_lab::statistics::Histogram;
use hatf_lab::{Cause, Change, Heap, Object, Observer};

use hatf_trace::event::{
    Call, Event, EventKind, Function, UNKNOWN_SIZE, UserMetadata, has_sizes_only, user_metadata_lines,
};
use phases::{Now, Phases};
use sites::Sites;
use threads::Threads;
use usable::Usable;

/// Live bytes over time.
pub type Timeline = Stretches<MostAndLast>;

/// An [`Observer`] that builds a [`Report`]. The [module documentation](self) contains an example.
#[derive(Clone, Debug, Default)]
pub struct ReportBuilder {
    totals: ReportTotals,
    calls: CallCounts,
    sizes: Histogram,
    lifetimes: Histogram,
    lifetimes_in_bytes: Histogram,
    threads: Threads,
    phases: Phases,
    programs: Programs,
    /// The peak of the current program.
    program_peak: u64,
    timeline: Timeline,
    pages: pages::Following,
    usable: Usable,
    peak: Peak,
    sites: Sites,
    /// Whether the trace contains no ends of blocks.
    sizes_only: bool,
    /// The size of the block that ended with the first half of a realloc.
    moved: Option<u64>,
    /// Bytes that were live when their program exited. The heap still counts them as live until another program
    /// follows.
    exited: u64,
    /// Bytes that were live after the last record.
    live: u64,
    /// Blocks and bytes that were live when their heap ended.
    left: StillLive,
    /// The periods in which recording was off, if any.
    off: Option<Off>,
    /// The time at which recording stopped, if it is off.
    off_since: Option<u64>,
    end: EndObserver,
    comments: Vec<String>,
    /// The latest time so far. The last timestamp may be earlier, because the clocks of threads differ slightly.
    now: u64,
}

/// Maximum number of comments kept for the report. Comments at the start describe the origin of the trace.
const COMMENTS: usize = 32;

impl ReportBuilder {
    /// Creates an empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the report on the trace so far.
    #[must_use]
    pub fn report(&self, heap: &Heap) -> Report {
        let (sites, total) = self.sites.report(heap);
        let estimate = heap.sampling.map(|mean| Estimate {
            mean,
            allocated: total.allocated,
            peak: total.peak,
            leaked: total.leaked,
        });
        let (marks, phases, left_out) = self.phases.report(self.state(heap));
        let mut still_live = self.left.clone();
        heap.objects.live().for_each(|object| still_live.add(&object));
        let mut programs = self.programs.clone();
        programs.set_peak(self.program_peak);
        Report {
            ending: self.end.ending(),
            is_complete: self.end.is_complete(),
            memory_limit: self.end.memory_limit(),
            last_failed: self.end.last_failed(),
            programs,
            comments: self.comments.clone(),
            totals: self.totals(heap),
            calls: self.calls.clone(),
            peak: self.peak.clone(),
            sizes: self.sizes.clone(),
            lifetime_quantiles: Quantiles::of(&self.lifetimes),
            lifetime_in_bytes_quantiles: Quantiles::of(&self.lifetimes_in_bytes),
            lifetimes: self.lifetimes.clone(),
            lifetimes_in_bytes: self.lifetimes_in_bytes.clone(),
            threads: self.threads.report(),
            marks,
            phases,
            marks_and_phases_left_out: left_out,
            still_live,
            timeline: self.timeline.clone(),
            duration: self.now,
            pages: self.pages.report().map(|pages| {
                let is_known = !self.sizes_only && estimate.is_none();
                let (live, private, samples) = (&self.timeline, &pages.timeline, pages.samples);
                let grown = is_known.then(|| Grown::new(live, private, self.now, samples)).flatten();
                PagesReport { grown, ..pages }
            }),
            usable: self.usable.report(),
            sites,
            off: self.off.map(|off| Off {
                at_end: self.off_since.is_some(),
                duration: off.duration.saturating_add(self.off_for()),
                frees: heap.objects.frees_of_unseen(),
                ..off
            }),
            estimate,
            sizes_only: self.sizes_only,
        }
    }

    /// Returns the totals so far.
    fn totals(&self, heap: &Heap) -> ReportTotals {
        let totals = heap.totals();
        ReportTotals {
            events: totals.events,
            allocs: totals.objects,
            bytes: totals.bytes,
            contradictions: totals.oddities.contradictions,
            ..self.totals.clone()
        }
    }

    /// Returns the allocations of each stack so far, indexed by stack number.
    #[must_use]
    pub fn site_counts(&self) -> Vec<Counts> {
        self.sites.counts()
    }

    /// Returns the live bytes of each stack over time so far.
    #[must_use]
    pub fn live_by_site(&self) -> LiveBySite {
        self.sites.live()
    }

    /// Returns the live bytes of programs that have not ended.
    #[inline]
    fn live_bytes(&self, heap: &Heap) -> u64 {
        heap.objects.live_bytes().saturating_sub(self.exited)
    }

    /// Returns the state of the heap for phases.
    fn state(&self, heap: &Heap) -> Now {
        let (allocs, bytes) = heap.objects.allocated();
        Now { time: self.now, allocs, bytes, live: self.live_bytes(heap) }
    }

    /// Handles the end of the program, or its replacement by another.
    fn end_program(&mut self, heap: &Heap) {
        // The heap may have processed the event already.
        let now = Now { live: self.live, ..self.state(heap) };
        self.phases.end_all(now);
        self.usable.all_ended();
    }

    /// Returns the time for which recording has been off.
    fn off_for(&self) -> u64 {
        self.off_since.map_or(0, |since| self.now.saturating_sub(since))
    }

    /// Handles the start of a pause in the recording.
    fn stop(&mut self) {
        self.off.get_or_insert_default().times += 1;
        self.off_since.get_or_insert(self.now);
    }

    /// Handles the end of a pause in the recording.
    fn go_on(&mut self) {
        let duration = self.off_for();
        self.off_since = None;
        let off = self.off.get_or_insert_default();
        off.duration = off.duration.saturating_add(duration);
    }

    /// Counts a block that the program freed.
    #[inline]
    fn freed(&mut self, event: &hatf_lab::ObjectEvent) {
        let Object { size, time, allocated, .. } = event.object;
        self.totals.frees += 1;
        self.threads.of(event.thread).freed(size);
        self.lifetimes.add(event.time.saturating_sub(time), size);
        self.lifetimes_in_bytes.add(self.totals.bytes.saturating_sub(allocated), size);
    }

    /// Handles a call by a thread that ends the block at an address, whether or not there is such a block.
    #[inline]
    fn ended(&mut self, thread: u64, address: u64) {
        self.usable.ended(address);
        // The thread was active even if the block is unknown.
        self.threads.of(thread);
    }

    /// Counts a call.
    #[inline]
    fn call(&mut self, thread: u64, call: &Call) {
        if call.old != 0 {
            self.realloc(thread, call);
        } else if call.address != 0 || self.sizes_only {
            *match call.function {
                Function::Malloc => &mut self.calls.malloc,
                Function::Calloc => &mut self.calls.calloc,
                // A sizes-only trace does not contain the block passed to a realloc.
                Function::Realloc | Function::Reallocarray if self.sizes_only => &mut self.calls.realloc,
                Function::Realloc | Function::Reallocarray => &mut self.calls.realloc_of_null,
                _ => &mut self.calls.aligned,
            } += 1;
            self.usable.began(call);
        }
    }

    /// Counts a realloc of an existing block.
    fn realloc(&mut self, thread: u64, call: &Call) {
        let Call { old, address, size, .. } = *call;
        if call.old_is_gone() {
            self.ended(thread, old);
        }
        if address == 0 {
            self.calls.free += u64::from(call.old_is_gone());
            return;
        }
        let before = self.moved.take();
        self.calls.realloc += 1;
        let size = if size == UNKNOWN_SIZE { before.unwrap_or(0) } else { size };
        self.calls.reallocs_in_place += u64::from(old == address);
        if let Some(before) = before {
            self.calls.reallocs_grown += u64::from(size > before);
            self.calls.reallocs_shrunk += u64::from(size < before);
            let copied = if old == address { 0 } else { size.min(before) };
            self.calls.realloc_bytes_copied = self.calls.realloc_bytes_copied.saturating_add(copied);
        }
        self.usable.began(call);
    }
}

impl Observer for ReportBuilder {
    #[inline]
    fn event(&mut self, event: &hatf_lab::ObjectEvent) -> hatf_lab::Result<()> {
        let object = &event.object;
        let size = object.size;
        match (event.change, event.cause) {
            (Change::Allocated, _) => {
                self.totals.bytes = self.totals.bytes.saturating_add(size);
                self.sizes.add(size, size);
                self.threads.of(event.thread).allocated(size);
            }
            // The event is not the real end of the block.
            (Change::Freed, _) if self.sizes_only => return self.sites.freed_unseen(object),
            (Change::Freed, Cause::Call) => self.freed(event),
            (Change::Freed, Cause::Realloc) => {
                self.moved = Some(size);
                self.freed(event);
            }
            (Change::Freed, Cause::Overlaid) => {}
            (Change::Freed, Cause::Left) => self.left.add(object),
            (Change::Freed, Cause::Exec) => {
                self.left.replaced_blocks += 1;
                self.left.replaced_bytes = self.left.replaced_bytes.saturating_add(size);
            }
            (Change::Freed, Cause::Resumed) => {
                let off = self.off.get_or_insert_default();
                off.forgotten_blocks += 1;
                off.forgotten_bytes = off.forgotten_bytes.saturating_add(size);
            }
        }
        self.sites.count(event)
    }

    fn sampled(&mut self, mean: u64) {
        self.sites.sampled(mean);
    }

    #[inline]
    fn record(&mut self, event: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.totals.records += 1;
        self.now = self.now.max(event.time);
        match event.kind {
            EventKind::Call(ref call) => self.call(event.thread, call),
            EventKind::Free { address } => {
                self.calls.free += 1;
                self.ended(event.thread, address);
            }
            EventKind::ReallocBegin { old } => self.ended(event.thread, old),
            EventKind::ReallocEnd(ref call) => {
                self.calls.realloc += 1;
                if call.address != 0 {
                    self.usable.began(call);
                }
            }
            _ => {
                self.end.record(event, heap)?;
                self.sites.other(event, heap)?;
                self.other(event, heap);
            }
        }
        let (bytes, blocks) = (self.live_bytes(heap), heap.objects.live_count());
        if self.peak.note(bytes, blocks, self.now, self.totals.records) {
            self.usable.peak();
        }
        self.live = bytes;
        self.phases.note(bytes);
        self.program_peak = self.program_peak.max(bytes);
        if event.time > 0 || self.now == 0 {
            self.timeline.note(self.now, bytes);
        }
        Ok(())
    }

    fn comment(&mut self, text: &str) {
        if self.comments.len() < COMMENTS {
            self.comments.push(text.to_owned());
        }
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.end.user_metadata(user_metadata);
        self.programs.user_metadata(user_metadata);
        self.sizes_only |= has_sizes_only(user_metadata);
        user_metadata_lines(user_metadata).iter().for_each(|line| self.comment(line));
    }
}

impl ReportBuilder {
    /// Handles a record that is not a call.
    fn other(&mut self, event: &Event<'_>, heap: &Heap) {
        let state = |this: &Self| this.state(heap);
        match event.kind {
            EventKind::CreateHeap => self.totals.heaps += 1,
            EventKind::Image { process, path } => {
                self.end_program(heap);
                self.exited = 0;
                self.totals.heaps += 1;
                self.pages.image();
                self.threads.image(path);
                self.programs.set_peak(std::mem::take(&mut self.program_peak));
                self.programs.image(path, self.now);
                let (image, path) = (self.totals.heaps, String::from_utf8_lossy(path));
                self.comment(&format!("image {image}: {path} (process {process})"));
            }
            EventKind::Exit { .. } | EventKind::Killed { .. } => {
                self.end_program(heap);
                self.exited = heap.objects.live_bytes();
            }
            EventKind::ThreadStart { creator, task } => self.threads.began(event, creator, task),
            EventKind::ThreadName { name } => self.threads.of(event.thread).name(name),
            EventKind::Pages(ref pages) => self.pages.call(pages, self.now),
            EventKind::Resident(ref resident) => self.pages.resident(resident, self.now),
            EventKind::ThreadEnd => self.threads.ended(event),
            EventKind::Failed(_) => self.calls.failed += 1,
            EventKind::Lost { events } => self.totals.lost = self.totals.lost.saturating_add(events),
            EventKind::Recording { on: false } => self.stop(),
            EventKind::Recording { on: true } => {
                self.go_on();
                self.exited = 0;
                self.usable.all_ended();
            }
            EventKind::Mark { name } => self.phases.mark(name, state(self)),
            EventKind::PhaseBegin { name } => self.phases.begin(name, state(self)),
            EventKind::PhaseEnd { name } => self.phases.end(name, state(self)),
            // The heap tracker handles these records.
            EventKind::Call(_)
            | EventKind::Free { .. }
            | EventKind::ReallocBegin { .. }
            | EventKind::ReallocEnd(_)
            | EventKind::DestroyHeap
            | EventKind::ModuleLoad { .. }
            | EventKind::ModuleUnload { .. }
            | EventKind::Source { .. }
            | EventKind::Symbol { .. } => {}
            EventKind::Accesses(_)
            | EventKind::LastAccess { .. }
            | EventKind::Untouched { .. }
            | EventKind::Enter { .. }
            | EventKind::Leave
            | EventKind::Processor { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
