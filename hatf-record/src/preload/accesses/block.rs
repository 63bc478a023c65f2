//! A block whose accesses are counted, and its head.

use core::sync::atomic::{AtomicU32, Ordering};

use super::shadow;

/// How often all blocks were reached at once: blocks of before are not known.
pub(super) static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Bytes of a head.
pub(super) const HEAD: usize = 32;

/// The head of a block.
#[repr(C)]
pub(super) struct Head {
    /// Where the real allocator's block begins.
    pub(super) base: usize,
    /// Bytes asked for.
    pub(super) size: usize,
    /// The number of times by then that all blocks were reached.
    pub(super) epoch: u32,
    /// What is known of its accesses.
    pub(super) state: AtomicU32,
    /// The last scan that has met it.
    pub(super) scan: AtomicU32,
}

const _: () = assert!(size_of::<Head>() <= HEAD);
/// The program's own code allocated it; otherwise accesses are made that are not seen.
const KNOWN: u32 = 1;
/// Code that is not instrumented has, or could find, its address.
const REACHED: u32 = 2;

/// A live block with a head.
pub(super) struct Block {
    pub(super) address: usize,
    pub(super) head: &'static Head,
}

impl Block {
    /// Returns the block that begins here. It is not to end as long as it is used.
    pub(super) fn at(address: usize) -> Option<Self> {
        // SAFETY: it is noted that a block begins here, and so there is its head.
        shadow::is_marked(address).then(|| Self { address, head: unsafe { &*((address - HEAD) as *const Head) } })
    }

    /// Returns the block that an address is in, or just behind.
    pub(super) fn around(address: usize) -> Option<Self> {
        let block = Self::at(shadow::begins_before(address)?)?;
        (address - block.address <= block.head.size).then_some(block)
    }

    pub(super) fn size(&self) -> usize {
        self.head.size
    }

    /// Notes that the program's own code allocated it.
    pub(super) fn make_known(&self) {
        self.head.state.fetch_or(KNOWN, Ordering::Relaxed);
    }

    /// Notes that it was reached; returns whether it was before.
    pub(super) fn reach(&self) -> bool {
        self.head.state.fetch_or(REACHED, Ordering::Relaxed) & REACHED != 0
    }

    /// Returns whether accesses may have been made that were not counted.
    pub(super) fn is_reached(&self) -> bool {
        self.head.state.load(Ordering::Relaxed) != KNOWN || self.head.epoch != EPOCH.load(Ordering::Relaxed)
    }

    /// Returns whether a scan meets it for the first time.
    pub(super) fn meet(&self, scan: u32) -> bool {
        self.head.scan.swap(scan, Ordering::Relaxed) != scan
    }
}
