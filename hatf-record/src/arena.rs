//! Memory for the few allocations made while the real functions are being looked up.
//!
//! `dlsym` itself may allocate. What it gets then comes from an arena, is never given back, and is recognised by its address
//! when it is freed or resized.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 64 * 1024;
/// The alignment of an arena, which no block can exceed.
const MAX_ALIGN: usize = 4096;
/// Before each block stands its length, in as many bytes as keep it aligned.
const HEAD: usize = 16;

/// 64 KiB that are handed out from the front.
#[repr(C, align(4096))]
pub(crate) struct Arena {
    bytes: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

// SAFETY: bytes are handed out once each, by an atomic addition.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) const fn new() -> Self {
        Self { bytes: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) }
    }

    /// Hands out zeroed memory; null if there is not enough left, or the alignment is over a page.
    ///
    /// Any size and alignment may be asked for. As in glibc's `memalign`, an alignment that is not a power of two is rounded up to
    /// one. A request that is refused uses nothing up.
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
        // SAFETY: [block - HEAD, block + size) is inside the arena and was not handed out before. The head is aligned for a
        // `usize`, as `block` and HEAD are multiples of 16.
        unsafe {
            let block = self.bytes.get().cast::<u8>().add(block);
            block.sub(HEAD).cast::<usize>().write(size);
            block.cast()
        }
    }

    /// Returns whether a block came from here.
    #[inline]
    pub(crate) fn owns(&self, block: *mut c_void) -> bool {
        (block as usize).wrapping_sub(self.bytes.get() as usize) < BYTES
    }

    /// Returns the size a block was asked for.
    ///
    /// # Safety
    /// `block` came from [`Arena::allocate`].
    pub(crate) unsafe fn size_of(&self, block: *mut c_void) -> usize {
        // SAFETY: each block has its length before it.
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
            // The head is behind the block before, and is where a `usize` may be.
            assert!(address - HEAD >= end, "{align}");
            // SAFETY: a block of this arena; its 7 bytes are this test's.
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
    }
}
