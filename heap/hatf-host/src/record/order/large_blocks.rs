//! The live large blocks of a running program, and the untouched pages found when its memory was last sampled.
//!
//! The program itself records the untouched pages of blocks that it frees and, if it exits, of the other blocks. These
//! samples are for a program that is killed.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hatf_record::{Kind, SpoolEvent};

use super::merge::effect;

/// The minimum size of a large block, as in the recorder.
const LEAST: u64 = 64 << 10;
/// Maximum number of blocks that are sampled.
const MOST: usize = 1 << 16;
/// Maximum number of pages examined per sample, which takes about a millisecond. Further blocks follow in the next
/// sample.
const PAGES: u64 = 1 << 16;
/// The bytes of an entry of `/proc/PID/pagemap`.
const ENTRY: usize = 8;
/// The bits of an entry whose page is in memory or in the swap.
const TOUCHED: u64 = 3 << 62;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LargeBlock {
    /// The stamp of its allocation.
    begun: u64,
    size: u64,
    /// The bytes of its untouched whole pages, if they were sampled.
    untouched: Option<u64>,
}

/// The live large blocks by address, shared by the reader of events and the sampler.
#[derive(Debug, Default)]
pub(crate) struct LargeBlocks(Mutex<BTreeMap<u64, LargeBlock>>);

impl LargeBlocks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, LargeBlock>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows an event. `known` contains the addresses of the blocks, so that most events need no lock.
    #[cold]
    fn note(&self, event: &SpoolEvent, known: &mut HashSet<u64>) {
        // All blocks end.
        if matches!(event.kind, Kind::Image | Kind::Start) {
            known.clear();
            return self.lock().clear();
        }
        let (ends, begins) = effect(event, None);
        if let Some(address) = ends
            && known.remove(&address)
        {
            self.lock().remove(&address);
        }
        let SpoolEvent { size, time: begun, .. } = *event;
        if let Some(address) = begins
            && (LEAST..u64::MAX - address).contains(&size)
            && event.about.stack != 0
            && known.len() < MOST
        {
            known.insert(address);
            self.lock().insert(address, LargeBlock { begun, size, untouched: None });
        }
    }

    /// Returns the addresses and the untouched bytes of the live blocks that were sampled.
    pub(crate) fn untouched(&self) -> Vec<(u64, u64)> {
        self.lock().iter().filter_map(|(address, block)| Some((*address, block.untouched?))).collect()
    }
}

/// The addresses of the live large blocks according to the events read so far.
#[derive(Debug, Default)]
pub(crate) struct KnownBlocks(HashSet<u64>);

impl KnownBlocks {
    /// Follows an event, which may begin or end a large block.
    #[inline]
    pub(crate) fn follow(&mut self, event: &SpoolEvent, blocks: Option<&LargeBlocks>) {
        if (event.size >= LEAST || !self.0.is_empty())
            && let Some(blocks) = blocks
        {
            blocks.note(event, &mut self.0);
        }
    }
}

/// A sampler of the untouched pages of a process's large blocks.
#[derive(Debug, Default)]
pub(super) struct UntouchedSampler {
    /// The process's `/proc/PID/pagemap`, if it can be read.
    file: Option<File>,
    /// The address of the last examined block, if some blocks were left for the next sample.
    last: Option<u64>,
}

impl UntouchedSampler {
    /// Examines the pages of live blocks.
    pub(super) fn sample(&mut self, process: u32, page: u64, blocks: &LargeBlocks) {
        let after = self.last.take().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut left, mut chosen) = (PAGES, Vec::new());
        for (address, block) in blocks.lock().range((after, Bound::Unbounded)) {
            if left == 0 {
                break;
            }
            let pages = (block.size / page).min(left);
            left -= pages;
            chosen.push((*address, *block, pages));
            self.last = (left == 0).then_some(*address);
        }
        if chosen.is_empty() {
            return;
        }
        if self.file.is_none() {
            self.file = File::open(format!("/proc/{process}/pagemap")).ok();
        }
        let Some(file) = &self.file else { return };
        for (address, LargeBlock { begun, size, .. }, pages) in chosen {
            let Some(untouched) = untouched(file, page, address, size, pages) else { continue };
            // The block may have ended, and another may have begun at its address.
            if let Some(block) = blocks.lock().get_mut(&address).filter(|block| block.begun == begun) {
                block.untouched = Some(untouched);
            }
        }
    }
}

/// Returns the bytes of the untouched pages among the last `most` whole pages of a block. Returns `None` if the kernel
/// does not describe them.
fn untouched(file: &File, page: u64, address: u64, size: u64, most: u64) -> Option<u64> {
    let end = address.checked_add(size)? / page;
    let first = address.div_ceil(page).max(end.saturating_sub(most));
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(first)).ok()?.checked_mul(ENTRY)?];
    file.read_exact_at(&mut bytes, first.checked_mul(ENTRY as u64)?).ok()?;
    let (entries, _) = bytes.as_chunks::<ENTRY>();
    let untouched = entries.iter().filter(|entry| u64::from_ne_bytes(**entry) & TOUCHED == 0).count();
    Some(untouched as u64 * page)
}

#[cfg(test)]
mod tests {
    use hatf_record::About;

    use super::*;

    const PAGE: u64 = 4096;

    fn event(kind: Kind, time: u64, address: u64, size: u64) -> SpoolEvent {
        let about = About { stack: 1, spare: 0 };
        SpoolEvent { address, size, about, ..SpoolEvent::new(kind, 1, time) }
    }

    /// The pages of a block of this process, of which one of ten is touched.
    #[test]
    fn blocks_of_this_process() {
        let mut block = memmap2::MmapMut::map_anon(1 << 20).unwrap();
        block.advise(memmap2::Advice::NoHugePage).unwrap();
        let address = block.as_ptr() as u64;
        block.chunks_mut(40960).for_each(|ten| ten[0] = 1);
        let touched = (1_u64 << 20).div_ceil(40960) * PAGE;

        let (blocks, mut known) = (LargeBlocks::default(), KnownBlocks::default());
        let mut follow = |event: SpoolEvent| known.follow(&event, Some(&blocks));
        let mut sampler = UntouchedSampler::default();
        let mut sample = || {
            sampler.sample(std::process::id(), PAGE, &blocks);
            blocks.untouched()
        };
        assert_eq!(sample(), []);
        follow(event(Kind::Malloc, 1, address, 1 << 20));
        // A small block, a block without a stack, and nonsense.
        follow(event(Kind::Malloc, 2, address + 64, 100));
        follow(SpoolEvent { about: About::default(), ..event(Kind::Malloc, 3, address + 16, 1 << 20) });
        follow(event(Kind::Malloc, 3, u64::MAX, u64::MAX));
        follow(event(Kind::Free, 4, 77, 0));
        assert_eq!(sample(), [(address, (1 << 20) - touched)]);
        // A realloc begins another block, which has not been sampled yet.
        follow(SpoolEvent { old: address, ..event(Kind::Realloc, 5, address, 1 << 19) });
        assert_eq!(blocks.untouched(), []);
        assert_eq!(sample(), [(address, (1 << 19) - (1_u64 << 19).div_ceil(40960) * PAGE)]);
        follow(event(Kind::Free, 6, address, 0));
        assert_eq!(sample(), []);
        // After exec, the block no longer exists.
        follow(event(Kind::Malloc, 7, address, 1 << 20));
        assert_eq!(sample().len(), 1);
        follow(event(Kind::Image, 8, 0, 0));
        assert_eq!(sample(), []);
    }

    /// A sample examines a bounded number of pages, and the next sample continues.
    #[test]
    fn many_pages() {
        let block = memmap2::MmapOptions::new().len(1 << 30).no_reserve_swap().map_anon().unwrap();
        let address = block.as_ptr() as u64;
        let (blocks, mut known) = (LargeBlocks::default(), KnownBlocks::default());
        for number in 0..4_u64 {
            known.follow(&event(Kind::Malloc, number, address + (number << 28), 1 << 28), Some(&blocks));
        }
        let mut sampler = UntouchedSampler::default();
        for samples in 1..=4 {
            sampler.sample(std::process::id(), PAGE, &blocks);
            assert_eq!(blocks.untouched().len(), samples);
        }
        assert!(blocks.untouched().iter().all(|(_, bytes)| *bytes == 1 << 28));
        // A block larger than a sample: only its last pages are examined.
        known.follow(&event(Kind::Malloc, 9, address, 1 << 30), Some(&blocks));
        sampler.last = None;
        sampler.sample(std::process::id(), PAGE, &blocks);
        assert_eq!(blocks.untouched()[0], (address, PAGES * PAGE));
    }
}
