//! Reduces the address space of a spool while threads use it. Chunks past a limit are retired and unmapped, except for
//! chunks that threads own.

use core::sync::atomic::{AtomicU64, Ordering};

use super::mapping;
use crate::layout::{CHUNK_BYTES, CHUNKS_MAX};
use crate::preload::platform::{large, permanent};
use crate::spool::{Spool, offset_of};

/// The minimum number of mapped chunks, however little address space there may be.
const FEWEST: usize = 8;
/// The maximum number of chunks past the limit that threads may own.
const BEHIND: usize = 500;

/// The chunks to which threads of this process write. The states in the spool contain this information, too, but other
/// processes can modify them, so unmapping relies on this set.
static USED: [AtomicU64; CHUNKS_MAX / 64] = [const { AtomicU64::new(0) }; CHUNKS_MAX / 64];

/// Records that a thread is about to write to a chunk.
pub(crate) fn use_chunk(chunk: usize) {
    if let Some(word) = USED.get(chunk / 64) {
        word.fetch_or(1 << (chunk % 64), Ordering::SeqCst);
    }
}

/// Records that no thread writes to the chunk at an address any more.
pub(crate) fn leave_chunk(spool: &Spool<'_>, address: usize) {
    let Some(chunk) = spool.number_at(address) else { return };
    if let Some(word) = USED.get(chunk / 64) {
        word.fetch_and(!(1 << (chunk % 64)), Ordering::SeqCst);
    }
}

/// Resets the set for a new spool.
pub(crate) fn forget_chunks() {
    USED.iter().filter(|word| word.load(Ordering::Relaxed) != 0).for_each(|word| word.store(0, Ordering::Relaxed));
}

fn is_used(chunk: usize) -> bool {
    USED.get(chunk / 64).is_some_and(|word| word.load(Ordering::SeqCst) >> (chunk % 64) & 1 != 0)
}

/// Retires chunks so that the spool has at most this many bytes of address space. Returns the remaining spool, and the
/// chunks after it that threads own, which stay mapped. Returns `None` if there is nothing to do.
pub(crate) fn take_out_of_use(
    spool: &Spool<'static>,
    behind: &[u32],
    bytes: usize,
) -> Option<(Spool<'static>, &'static [u32])> {
    let area = offset_of(spool.chunks(), 0);
    let chunks = (bytes.saturating_sub(area) / CHUNK_BYTES).max(FEWEST);
    if chunks >= spool.mapped() {
        return None;
    }
    // Threads may take a few more of these chunks before the chunks are examined individually.
    if (chunks..spool.mapped()).filter(|chunk| is_used(*chunk)).count() + behind.len() > BEHIND / 2 {
        return None;
    }
    let header = spool.header();
    header.mapped.store(u32::try_from(chunks).unwrap_or(u32::MAX), Ordering::SeqCst);
    let mut kept = [0; BEHIND];
    let mut count = 0;
    let taken = (chunks..spool.mapped()).filter(|chunk| is_used(*chunk) || !spool.give_up(*chunk));
    for chunk in taken.filter_map(|chunk| u32::try_from(chunk).ok()).chain(behind.iter().copied()) {
        *kept.get_mut(count)? = chunk;
        count += 1;
    }
    let kept = permanent::keep(kept)?;
    Some((spool.of_first(chunks), kept.get(..count)?))
}

/// Unmaps the chunks retired by [`take_out_of_use`].
pub(crate) fn unmap_behind(spool: &Spool<'static>, smaller: &Spool<'static>, kept: &[u32]) {
    let is_kept = |chunk: usize| kept.iter().any(|kept| *kept as usize == chunk);
    let mut from = smaller.mapped();
    for chunk in smaller.mapped()..=spool.mapped() {
        if chunk < spool.mapped() && !is_kept(chunk) {
            continue;
        }
        if chunk > from {
            // SAFETY: chunks of the mapping that nobody has, and nobody can take any more.
            unsafe { large::unmap(spool.place(from).cast(), (chunk - from) * CHUNK_BYTES) };
        }
        from = chunk + 1;
    }
    mapping::forget_rest(smaller);
}
