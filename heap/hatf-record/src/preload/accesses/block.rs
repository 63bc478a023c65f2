//! A block whose accesses are counted, and its head.

use core::sync::atomic::{AtomicU32, Ordering};

use super::shadow;

/// The number of times that all existing blocks were marked as reached in one step. A block created before the last of
/// these steps counts as reached.
pub(super) static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Bytes in a head.
pub(super) const HEAD: usize = 32;

/// The head of a block.
#[repr(C)]
pub(super) struct Head {
    /// The address of the real allocator's block that contains this block.
    pub(super) base: usize,
    /// The requested size in bytes.
    pub(super) size: usize,
    /// The value of `EPOCH` when the block was created.
    pub(super) epoch: u32,
    /// The flags that state what is known about the accesses to the block.
    pub(super) state: AtomicU32,
    /// The last scan that visited the block.
    pub(super) scan: AtomicU32,
}

const _: () = assert!(size_of::<Head>() <= HEAD);
/// The application code allocated the block. Without this flag, some accesses are not counted.
const KNOWN: u32 = 1;
/// Uninstrumented code has the address of the block, or could find it.
const REACHED: u32 = 2;

/// A live block with a head.
pub(super) struct Block {
    pub(super) address: usize,
    pub(super) head: &'static Head,
}

impl Block {
    /// Returns the block that begins at an address. The block must not end while the result is in use.
    pub(super) fn at(address: usize) -> Option<Self> {
        // SAFETY: a mark states that a block begins here, and therefore its head exists.
        shadow::is_marked(address).then(|| Self { address, head: unsafe { &*((address - HEAD) as *const Head) } })
    }

    /// Returns the block that contains an address or ends at it.
    pub(super) fn around(address: usize) -> Option<Self> {
        let block = Self::at(shadow::begins_before(address)?)?;
        (address - block.address <= block.head.size).then_some(block)
    }

    pub(super) fn size(&self) -> usize {
        self.head.size
    }

    /// Records that the application code allocated the block.
    pub(super) fn make_known(&self) {
        self.head.state.fetch_or(KNOWN, Ordering::Relaxed);
    }

    /// Marks the block as reached. Returns whether it was already marked.
    pub(super) fn reach(&self) -> bool {
        self.head.state.fetch_or(REACHED, Ordering::Relaxed) & REACHED != 0
    }

    /// Returns whether uncounted accesses are possible.
    pub(super) fn is_reached(&self) -> bool {
        self.head.state.load(Ordering::Relaxed) != KNOWN || self.head.epoch != EPOCH.load(Ordering::Relaxed)
    }

    /// Returns whether a scan visits the block for the first time.
    pub(super) fn meet(&self, scan: u32) -> bool {
        self.head.scan.swap(scan, Ordering::Relaxed) != scan
    }
}
