//! Memory for the few allocations made while the real functions are being looked up.
//!
//! `dlsym` itself may allocate. Blocks that it allocates come from an arena. Their memory is never reused, and they are
//! recognized by their addresses when they are freed or resized.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 64 * 1024;
/// The alignment of an arena, which limits the alignment of its blocks.
const MAX_ALIGN: usize = 4096;
/// Bytes before each block. They contain the block's length and keep the block aligned.
const HEAD: usize = 16;

/// An arena: 64 KiB of memory, handed out from the front.
#[repr(C, align(4096))]
pub(crate) struct Arena {
    bytes: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
    /// The number of blocks that have not been released.
    live: AtomicUsize,
}

// SAFETY: each byte is handed out at most once, by an atomic addition.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) const fn new() -> Self {
        Self { bytes: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0), live: AtomicUsize::new(0) }
    }

    /// Returns zeroed memory, or null if not enough is left or the alignment exceeds a page.
    ///
    /// Any size and alignment can be requested. As in glibc's `memalign`, an alignment that is not a power of two is
    /// rounded up to the next power of two. A rejected request consumes no memory.
    pub(crate) fn allocate(&self, size: usize, align: usize) -> *mut c_void {
        let Some(align) = align.max(HEAD).checked_next_power_of_two().filter(|align| *align <= MAX_ALIGN) else {
            return null_mut();
        };
        let mut block = 0;
        let reserved = self.used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            block = used.checked_add(HEAD)?.checked_next_multiple_of(align)?;
            block.checked_add(size).filter(|end| *end <= BYTES)
        });
        if reserved.is_err() {
            return null_mut();
        }
        self.live.fetch_add(1, Ordering::SeqCst);
        // SAFETY: [block - HEAD, block + size) is inside the arena and was not handed out before. The head is aligned
        // for a `usize`, because `block` and HEAD are multiples of 16.
        unsafe {
            let block = self.bytes.get().cast::<u8>().add(block);
            block.sub(HEAD).cast::<usize>().write(size);
            block.cast()
        }
    }

    /// Releases a block, whose memory is not reused. Returns whether it was the last one.
    pub(crate) fn release(&self) -> bool {
        self.live.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Returns whether any block has not been released.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(crate) fn has_blocks(&self) -> bool {
        self.live.load(Ordering::SeqCst) != 0
    }

    /// Returns whether the arena allocated a block.
    #[inline]
    pub(crate) fn owns(&self, block: *mut c_void) -> bool {
        (block as usize).wrapping_sub(self.bytes.get() as usize) < BYTES
    }

    /// Returns the requested size of a block.
    ///
    /// # Safety
    /// `block` must come from [`Arena::allocate`].
    pub(crate) unsafe fn size_of(&self, block: *mut c_void) -> usize {
        // SAFETY: the length of each block is stored before it.
        unsafe { block.cast::<u8>().sub(HEAD).cast::<usize>().read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alignment() {
        let arena = Box::new(Arena::new());
        let mut end = 0;
        for align in (0..200).chain([255, 256, 257, 1000, 2047, 2048, 4000, 4096]) {
            let block = arena.allocate(7, align);
            assert!(arena.owns(block));
            let address = block as usize;
            assert!(address.is_multiple_of(align.max(16).next_power_of_two()), "{align}");
            // The head is right after the previous block, and is aligned for a `usize`.
            assert!(address - HEAD >= end, "{align}");
            // SAFETY: a block in this arena, whose 7 bytes belong to this test.
            unsafe {
                assert_eq!(arena.size_of(block), 7);
                assert_eq!(core::slice::from_raw_parts(block.cast::<u8>(), 7), [0; 7]);
                block.cast::<u8>().write_bytes(0xff, 7);
            }
            end = address + 7;
        }
    }

    #[test]
    fn requests_that_cannot_be_met_use_nothing_up() {
        let arena = Box::new(Arena::new());
        for size in [usize::MAX, usize::MAX - 15, usize::MAX / 2, BYTES, BYTES - HEAD + 1] {
            assert!(arena.allocate(size, 16).is_null(), "{size}");
        }
        for align in [4097, 1 << 16, usize::MAX / 2 + 1, usize::MAX / 2 + 2, usize::MAX - 16, usize::MAX] {
            assert!(arena.allocate(1, align).is_null(), "{align}");
        }
        let all = arena.allocate(BYTES - HEAD, 16);
        assert!(!all.is_null() && arena.owns(all));
        assert!(arena.allocate(0, 1).is_null() && !arena.owns(null_mut()));
        assert!(arena.has_blocks() && arena.release() && !arena.has_blocks());
    }
}
