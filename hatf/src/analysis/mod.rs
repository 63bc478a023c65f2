//! Analyses the heap of a program, in one pass over a trace.
//!
//! Memory is bounded by the blocks alive at once, and the stacks that differ: histograms, threads and the timeline have a
//! fixed or small size.

mod histogram;
mod live;
mod pages;
mod phases;
mod report;
mod sites;
mod threads;
mod timeline;
mod usable;

pub use histogram::{Bucket, Histogram};
pub use pages::{Level, PageCalls, PagesReport};
pub use phases::{MarkReport, PhaseReport};
pub use report::{Calls, Estimate, LargestBlock, Off, Peak, Quantiles, Report, StillLive, Totals};
pub use sites::{SitesReport, TopSite};
pub use threads::ThreadReport;
pub use timeline::{Point, Timeline};
pub use usable::UsableReport;

use crate::Result;
use crate::event::{
    Call, Event, EventKind, EventSink, Function, UNKNOWN_SIZE, UserMetadata, has_sizes_only, user_metadata_lines,
};
use crate::lab::sampling;
use live::{Block, Heaps, Live};
use phases::{Now, Phases};
use sites::Sites;
use threads::Threads;
use usable::Usable;

/// An [`EventSink`] that makes a [`Report`].
#[derive(Debug, Default)]
pub struct Analysis {
    live: Live,
    heaps: Heaps,
    totals: Totals,
    /// Blocks that were live when their program ended. They are never freed, unless another program follows.
    exited: u64,
    calls: Calls,
    sizes: Histogram,
    lifetimes: Histogram,
    lifetimes_in_bytes: Histogram,
    threads: Threads,
    phases: Phases,
    timeline: Timeline,
    pages: pages::Following,
    usable: Usable,
    peak: Peak,
    sites: Sites,
    /// Blocks are a sample.
    sampling: Option<u64>,
    /// It is not known when blocks end.
    sizes_only: bool,
    /// Blocks and bytes that were live when their heap ended: at the program's end, or at an exec.
    left: StillLive,
    /// Where recording was off.
    off: Option<Off>,
    /// Since when it is.
    off_since: Option<u64>,
    comments: Vec<String>,
    /// The largest time seen: clocks of threads may differ a little.
    now: u64,
}

/// Comments kept for the report: those at the start say where the trace comes from.
const COMMENTS: usize = 32;

impl Analysis {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the report.
    #[must_use]
    pub fn finish(mut self) -> Report {
        let now = self.now();
        let since = self.off_since;
        self.go_on();
        let off = self.off.map(|off| Off { at_end: since.is_some(), ..off });
        self.live.drain().for_each(|(address, block)| self.left.add(address, &block));
        let (marks, phases, left_out) = self.phases.finish(now);
        let (sites, total) = self.sites.finish();
        let estimate = self.sampling.map(|mean| Estimate {
            mean,
            allocated: total.allocated,
            peak: total.peak,
            leaked: total.leaked,
        });
        Report {
            comments: self.comments,
            totals: Totals { contradictions: self.live.contradictions(), ..self.totals },
            calls: self.calls,
            peak: self.peak,
            sizes: self.sizes,
            lifetime_quantiles: Quantiles::of(&self.lifetimes),
            lifetime_in_bytes_quantiles: Quantiles::of(&self.lifetimes_in_bytes),
            lifetimes: self.lifetimes,
            lifetimes_in_bytes: self.lifetimes_in_bytes,
            threads: self.threads.finish(),
            marks,
            phases,
            marks_and_phases_left_out: left_out,
            still_live: self.left,
            timeline: self.timeline,
            duration: self.now,
            pages: self.pages.finish(),
            usable: self.usable.finish(),
            sites,
            off,
            estimate,
            sizes_only: self.sizes_only,
        }
    }

    /// Returns the state of the heap for phases.
    fn now(&self) -> Now {
        Now { time: self.now, allocs: self.totals.allocs, bytes: self.totals.bytes, live: self.live.bytes() }
    }

    /// Ends the heap of a program that ended: what is live was never freed.
    fn end_program(&mut self) -> Result<()> {
        let now = self.now();
        self.phases.end_all(now);
        self.usable.all_ended();
        self.exited += self.live.blocks();
        for (address, block) in self.live.drain() {
            self.sites.left(block.size, block.site)?;
            self.left.add(address, &block);
        }
        Ok(())
    }

    /// Ends the heap of a program that another takes the place of, and all that is in it.
    fn replace_program(&mut self) -> Result<()> {
        let now = self.now();
        self.phases.end_all(now);
        self.usable.all_ended();
        self.totals.events += self.live.blocks() + std::mem::take(&mut self.exited);
        for (_, block) in self.live.drain() {
            self.sites.replaced(block.size, block.site)?;
            self.left.replaced_blocks += 1;
            self.left.replaced_bytes = self.left.replaced_bytes.saturating_add(block.size);
        }
        Ok(())
    }

    /// Recording stops.
    fn stop(&mut self) {
        self.off.get_or_insert_default().times += 1;
        self.off_since.get_or_insert(self.now);
    }

    /// Adds the time for which recording was off.
    fn go_on(&mut self) {
        let duration = self.off_since.take().map_or(0, |since| self.now.saturating_sub(since));
        if let Some(off) = &mut self.off {
            off.duration = off.duration.saturating_add(duration);
        }
    }

    /// Recording goes on: what was live may have ended meanwhile.
    fn forget(&mut self) -> Result<()> {
        self.go_on();
        self.usable.all_ended();
        let off = self.off.get_or_insert_default();
        self.totals.events += self.live.blocks() + std::mem::take(&mut self.exited);
        for (_, block) in self.live.drain() {
            self.sites.replaced(block.size, block.site)?;
            off.forgotten_blocks += 1;
            off.forgotten_bytes = off.forgotten_bytes.saturating_add(block.size);
        }
        Ok(())
    }

    #[inline]
    fn begin(&mut self, event: &Event<'_>, address: u64, size: u64) -> Result<()> {
        self.totals.allocs += 1;
        self.totals.events += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(size);
        self.sizes.add(size, size);
        self.threads.of(event.thread).allocated(size);
        let site = self.sites.number(event.stack);
        let heap = self.heaps.number(event.heap);
        let block = Block { size, time: event.time, before: self.totals.bytes, heap, site };
        if let Some(before) = self.live.insert(address, block) {
            self.totals.events += 1;
            self.sites.ended(address, before.size, before.site)?;
        }
        self.sites.began(address, size, site)
    }

    /// Ends a block; returns its size, or `None` if the block was not known.
    #[inline]
    fn end(&mut self, event: &Event<'_>, address: u64) -> Result<Option<u64>> {
        let Some(block) = self.live.remove(address) else {
            let off = self.off.as_mut().filter(|_| !self.live.was_freed(address));
            match off {
                Some(off) => off.frees += 1,
                None => self.live.missing(address),
            }
            self.threads.of(event.thread).freed(None);
            return Ok(None);
        };
        self.sites.ended(address, block.size, block.site)?;
        self.usable.ended(address);
        self.totals.frees += 1;
        self.totals.events += 1;
        self.threads.of(event.thread).freed(Some(block.size));
        self.lifetimes.add(event.time.saturating_sub(block.time), block.size);
        self.lifetimes_in_bytes.add(self.totals.bytes.saturating_sub(block.before), block.size);
        Ok(Some(block.size))
    }

    /// Counts what a call asked for, of whose block no more is known.
    fn asked(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        self.totals.allocs += 1;
        self.totals.events += 2;
        self.totals.bytes = self.totals.bytes.saturating_add(call.size);
        self.sizes.add(call.size, call.size);
        self.threads.of(event.thread).allocated(call.size);
        let site = self.sites.number(event.stack);
        self.sites.asked(call.size, site)
    }

    fn call(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        if call.old != 0 {
            self.realloc(event, call)?;
        } else if call.address != 0 || self.sizes_only {
            *match call.function {
                Function::Malloc => &mut self.calls.malloc,
                Function::Calloc => &mut self.calls.calloc,
                // Whether it was given a block is not known where sizes alone are.
                Function::Realloc | Function::Reallocarray if self.sizes_only => &mut self.calls.realloc,
                Function::Realloc | Function::Reallocarray => &mut self.calls.realloc_of_null,
                _ => &mut self.calls.aligned,
            } += 1;
            if self.sizes_only {
                return self.asked(event, call);
            }
            self.begin(event, call.address, call.size)?;
            self.usable.began(call);
        }
        Ok(())
    }

    /// Counts a realloc of a block.
    fn realloc(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        let Call { old, address, size, .. } = *call;
        if address == 0 {
            if call.old_is_gone() {
                self.calls.free += 1;
                self.end(event, old)?;
            }
            return Ok(());
        }
        self.calls.realloc += 1;
        let before = self.end(event, old)?;
        let size = if size == UNKNOWN_SIZE { before.unwrap_or(0) } else { size };
        self.calls.reallocs_in_place += u64::from(old == address);
        match before {
            Some(before) if size > before => {
                self.calls.reallocs_grown += 1;
                self.calls.realloc_bytes_copied += if old == address { 0 } else { before };
            }
            Some(before) => {
                self.calls.reallocs_shrunk += u64::from(size < before);
                self.calls.realloc_bytes_copied += if old == address { 0 } else { size };
            }
            None => {}
        }
        self.begin(event, address, size)?;
        self.usable.began(call);
        Ok(())
    }
}

impl EventSink for Analysis {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.totals.records += 1;
        self.now = self.now.max(event.time);
        match event.kind {
            EventKind::Call(ref call) => self.call(event, call)?,
            EventKind::Free { address } => {
                self.calls.free += 1;
                self.end(event, address)?;
            }
            EventKind::ReallocBegin { old } => drop(self.end(event, old)?),
            EventKind::ReallocEnd(ref call) => {
                self.calls.realloc += 1;
                if call.address != 0 {
                    self.begin(event, call.address, call.size)?;
                    self.usable.began(call);
                }
            }
            EventKind::CreateHeap => self.totals.heaps += 1,
            EventKind::Image { process, path } => {
                self.totals.heaps += 1;
                self.replace_program()?;
                self.pages.image();
                self.threads.image(path);
                self.sites.note(&event.kind);
                let (image, path) = (self.totals.heaps, String::from_utf8_lossy(path));
                self.comment(format!("image {image}: {path} (process {process})").as_bytes())?;
            }
            EventKind::DestroyHeap => {
                let heap = self.heaps.number(event.heap);
                for (address, block) in self.live.drain_heap(heap) {
                    self.totals.events += 1;
                    self.sites.left(block.size, block.site)?;
                    self.left.add(address, &block);
                }
            }
            EventKind::Exit { .. } | EventKind::Killed { .. } => self.end_program()?,
            EventKind::ThreadStart { creator, task } => self.threads.began(event, creator, task),
            EventKind::ThreadName { name } => self.threads.of(event.thread).name(name),
            EventKind::Pages(ref pages) => self.pages.call(pages, self.now),
            EventKind::Resident(ref resident) => self.pages.resident(resident, self.now),
            EventKind::ThreadEnd => self.threads.ended(event),
            EventKind::Failed(_) => self.calls.failed += 1,
            EventKind::Accesses(_)
            | EventKind::LastAccess { .. }
            | EventKind::Enter { .. }
            | EventKind::Leave
            | EventKind::Processor { .. } => {}
            EventKind::Lost { events } => self.totals.lost += events,
            EventKind::Recording { on: false } => self.stop(),
            EventKind::Recording { on: true } => self.forget()?,
            EventKind::Mark { name } => self.phases.mark(name, self.now()),
            EventKind::PhaseBegin { name } => self.phases.begin(name, self.now()),
            EventKind::PhaseEnd { name } => self.phases.end(name, self.now()),
            EventKind::ModuleLoad { .. }
            | EventKind::ModuleUnload { .. }
            | EventKind::Source { .. }
            | EventKind::Symbol { .. } => self.sites.note(&event.kind),
        }
        let (bytes, blocks) = (self.live.bytes(), self.live.blocks());
        if self.peak.note(bytes, blocks, self.now, self.totals.records) {
            self.usable.peak();
        }
        self.phases.note(bytes);
        if event.time > 0 || self.now == 0 {
            self.timeline.note(self.now, bytes);
        }
        Ok(())
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        if self.comments.len() < COMMENTS {
            self.comments.push(String::from_utf8_lossy(text).into_owned());
        }
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.sizes_only |= has_sizes_only(user_metadata);
        if let Some(mean) = sampling(user_metadata) {
            self.sampling = Some(mean);
            self.sites.sampled(mean);
        }
        user_metadata_lines(user_metadata).iter().try_for_each(|line| self.comment(line.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
