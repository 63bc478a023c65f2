//! What a trace says about a program's heap, found in one pass.
//!
//! Memory is bounded by the blocks alive at once: histograms, threads and the timeline have a fixed
//! or small size.

mod histogram;
mod live;
mod report;
mod threads;
mod timeline;

pub use histogram::{Bucket, Histogram};
pub use report::{Calls, LargestBlock, Peak, Report, StillLive, Totals};
pub use threads::ThreadReport;
pub use timeline::{Point, Timeline};

use crate::{EventSink, Record, Result, What};
use live::{Block, Live};
use threads::Threads;

/// An [`EventSink`] that makes a [`Report`].
#[derive(Debug, Default)]
pub struct Analysis {
    live: Live,
    totals: Totals,
    calls: Calls,
    sizes: Histogram,
    lifetimes: Histogram,
    lifetimes_in_bytes: Histogram,
    threads: Threads,
    timeline: Timeline,
    peak: Peak,
    /// Blocks and bytes that were live when their heap ended: at the program's end, or at an exec.
    left: StillLive,
    comments: Vec<String>,
    /// The largest time seen: clocks of threads may differ a little.
    now: u64,
}

/// Comments kept for the report: the head of a trace says where it comes from.
const COMMENTS: usize = 32;

impl Analysis {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was seen.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.left.add_all(self.live.drain());
        Report {
            comments: self.comments,
            totals: self.totals,
            calls: self.calls,
            peak: self.peak,
            sizes: self.sizes,
            lifetimes: self.lifetimes,
            lifetimes_in_bytes: self.lifetimes_in_bytes,
            threads: self.threads.finish(),
            still_live: self.left,
            timeline: self.timeline,
            duration: self.now,
        }
    }

    fn begin(&mut self, record: &Record<'_>, address: u64, size: u64) {
        self.totals.allocs += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(size);
        self.sizes.add(size, size);
        self.threads.of(record.thread).allocated(size);
        let block = Block { size, time: record.time, before: self.totals.bytes, heap: record.heap };
        if self.live.insert(address, block).is_some() {
            self.totals.allocs_of_live_blocks += 1;
        }
    }

    /// A block ends; its size, or `None` if it was not known.
    fn end(&mut self, record: &Record<'_>, address: u64) -> Option<u64> {
        let Some(block) = self.live.remove(address) else {
            self.totals.unmatched_frees += 1;
            self.threads.of(record.thread).freed(None);
            return None;
        };
        self.totals.frees += 1;
        self.threads.of(record.thread).freed(Some(block.size));
        self.lifetimes.add(record.time.saturating_sub(block.time), block.size);
        self.lifetimes_in_bytes.add(self.totals.bytes.saturating_sub(block.before), block.size);
        Some(block.size)
    }

    fn realloc(&mut self, record: &Record<'_>, old: u64, address: u64) {
        self.calls.realloc += 1;
        let before = self.end(record, old);
        let size = record.attributes().number("size").or(before).unwrap_or(0);
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
        self.begin(record, address, size);
    }

    fn count_alloc(&mut self, record: &Record<'_>) {
        let name = record.attributes().words().next().unwrap_or_default();
        *match name {
            b"" => &mut self.calls.malloc,
            b"calloc" => &mut self.calls.calloc,
            b"realloc" | b"reallocarray" => &mut self.calls.realloc_of_null,
            _ => &mut self.calls.aligned,
        } += 1;
    }
}

impl EventSink for Analysis {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        self.totals.records += 1;
        self.now = self.now.max(record.time);
        match record.what {
            What::Alloc { size, address } => {
                self.count_alloc(record);
                self.begin(record, address, size);
            }
            What::Free { address } => {
                self.calls.free += 1;
                self.end(record, address);
            }
            What::Realloc { old, address } => self.realloc(record, old, address),
            What::CreateHeap => self.totals.heaps += 1,
            What::DestroyHeap => self.left.add_all(self.live.drain_heap(record.heap)),
            What::CreateThread => self.threads.began(record),
            What::DestroyThread => self.threads.ended(record),
        }
        let (bytes, blocks) = (self.live.bytes(), self.live.blocks());
        self.peak.note(bytes, blocks, self.now, self.totals.records);
        if record.time > 0 || self.now == 0 {
            self.timeline.note(self.now, bytes);
        }
        Ok(())
    }

    fn comment(&mut self, text: &str) -> Result<()> {
        if self.comments.len() < COMMENTS {
            self.comments.push(text.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
