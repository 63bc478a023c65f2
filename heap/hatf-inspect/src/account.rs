//! The resident memory of a process, divided by kind.

use serde::Serialize;

use crate::glibc::{Chunk, Place, Region, State};
use crate::mapping::OF_NO_FILE;
use crate::memory::PAGE;
use crate::{Heap, Mapping, Thread};

/// A kind of resident memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The content of live blocks.
    Live,
    /// Free memory that `malloc_trim(0)` would return to the system.
    Trimmable,
    /// Other free memory between live blocks.
    Pinned,
    /// Free memory at the end of arenas other than the main arena, which `malloc_trim` does not return.
    ArenaEnds,
    /// Freed blocks in the caches of threads.
    Caches,
    /// Headers of blocks, arenas and the caches themselves.
    Overhead,
    /// The heap segment, if its blocks were not read.
    Segment,
    /// Stacks of threads.
    Stacks,
    /// Programs, libraries and other files.
    Files,
    /// Memory shared with other processes that belongs to no file.
    Shared,
    /// Anonymous memory outside of malloc.
    Anonymous,
    /// Mappings with names other than those of files.
    Named,
}

impl Kind {
    /// All kinds, in the order of the report.
    pub(crate) const ALL: [Self; 12] = [
        Self::Live,
        Self::Trimmable,
        Self::Pinned,
        Self::ArenaEnds,
        Self::Caches,
        Self::Overhead,
        Self::Segment,
        Self::Stacks,
        Self::Files,
        Self::Shared,
        Self::Anonymous,
        Self::Named,
    ];
}

/// The resident memory of a process by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    bytes: [u64; Kind::ALL.len()],
}

/// The size of a free block's header and links, which `malloc_trim` keeps.
const KEPT: u64 = 48;
/// The number of bytes that `malloc_trim` keeps at the end of the main arena.
const KEPT_AT_TOP: u64 = 33;

impl Account {
    /// Divides the resident memory of a process. The sum of the kinds is the sum of the mappings' resident bytes.
    #[must_use]
    pub fn new(heap: Option<&Heap>, mappings: &[Mapping], threads: &[Thread]) -> Self {
        let mut account = Self::default();
        let regions = heap.map_or(&[][..], |heap| &heap.regions);
        regions.iter().for_each(|region| account.add_region(region));
        for mapping in mappings {
            let from = regions.partition_point(|region| region.end <= mapping.start);
            let within = regions.iter().skip(from).take_while(|region| region.start < mapping.end);
            let bounds = |region: &Region| (region.start.max(mapping.start), region.end.min(mapping.end));
            let of_regions: u64 = within
                .map(|region| {
                    let (start, end) = bounds(region);
                    region.pages.resident(start, end)
                })
                .sum();
            let rest = mapping.resident.saturating_sub(of_regions);
            // The kernel does not count pages that were only read and contain zeros. They are in large live blocks.
            let zeros = of_regions.saturating_sub(mapping.resident);
            account.set(Kind::Live, account.get(Kind::Live).saturating_sub(zeros));
            account.add(kind(mapping, threads), rest);
        }
        account
    }

    /// Returns the number of resident bytes of a kind.
    #[must_use]
    pub fn get(&self, kind: Kind) -> u64 {
        self.bytes.get(kind as usize).copied().unwrap_or_default()
    }

    /// Returns the sum of all kinds.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    fn set(&mut self, kind: Kind, bytes: u64) {
        if let Some(place) = self.bytes.get_mut(kind as usize) {
            *place = bytes;
        }
    }

    fn add(&mut self, kind: Kind, bytes: u64) {
        self.set(kind, self.get(kind).saturating_add(bytes));
    }

    fn add_region(&mut self, region: &Region) {
        let first = region.chunks.first().map_or(region.end, |chunk| chunk.address);
        let resident = |start, end| region.pages.resident(start, end);
        let last = region.chunks.last().map_or(region.end, |chunk| chunk.end());
        self.add(Kind::Overhead, resident(region.start, first) + resident(last, region.end));
        let is_free = |chunk: &Chunk| matches!(chunk.state(), State::Free | State::Fast | State::Top);
        let mut chunks = &region.chunks[..];
        while let [first, after @ ..] = chunks {
            chunks = after;
            let all = resident(first.address, first.end());
            match first.state() {
                State::Internal => self.add(Kind::Overhead, all),
                State::Cached => self.add(Kind::Caches, all),
                State::Live => {
                    let header = resident(first.address, first.address + 16).min(region.header(*first));
                    self.add(Kind::Overhead, header);
                    self.add(Kind::Live, all - header);
                }
                State::Free | State::Fast | State::Top => {
                    // Trimming first merges the blocks of fast bins with free blocks next to them.
                    let more = after.iter().take_while(|chunk| is_free(chunk)).count();
                    let (run, after) = after.split_at(more);
                    chunks = after;
                    let last = run.last().unwrap_or(first);
                    let all = resident(first.address, last.end());
                    let is_top = last.state() == State::Top;
                    let (start, end) = trimmable(first.address, last.end(), is_top);
                    let kind = if is_top && region.place != Place::Main { Kind::ArenaEnds } else { Kind::Pinned };
                    let trimmable = if kind == Kind::ArenaEnds { 0 } else { resident(start, end) };
                    self.add(Kind::Trimmable, trimmable);
                    self.add(kind, all - trimmable);
                }
            }
        }
    }
}

/// Returns the pages of free memory that `malloc_trim(0)` returns to the system.
fn trimmable(start: u64, end: u64, is_top: bool) -> (u64, u64) {
    if is_top {
        let size = (end - start).saturating_sub(KEPT_AT_TOP) & !(PAGE - 1);
        return (end - size, end);
    }
    let first = start.saturating_add(KEPT + PAGE - 1) & !(PAGE - 1);
    (first, (end & !(PAGE - 1)).max(first))
}

/// Returns the kind of a mapping's memory outside of malloc.
fn kind(mapping: &Mapping, threads: &[Thread]) -> Kind {
    let name = &*mapping.name;
    let is_stack = || threads.iter().any(|thread| mapping.contains(thread.stack_pointer));
    if name.starts_with("[stack") || (!mapping.is_file() && mapping.is_writable && is_stack()) {
        Kind::Stacks
    } else if name == "[heap]" {
        Kind::Segment
    } else if !mapping.is_private && (!mapping.is_file() || OF_NO_FILE.iter().any(|start| name.starts_with(start))) {
        Kind::Shared
    } else if mapping.is_file() {
        Kind::Files
    } else if name.is_empty() {
        Kind::Anonymous
    } else {
        Kind::Named
    }
}
