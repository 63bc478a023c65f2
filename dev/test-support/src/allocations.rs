//! Counts the allocations of a program. The counters belong to the process, so a test that uses them runs
//! [alone](crate::alone()).

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A wrapper of the system allocator that counts allocations.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
///
/// let (text, allocations) = ALLOCATOR.count(|| String::from("a text"));
/// assert_eq!((text.len(), allocations), (6, 1));
/// ```
#[derive(Debug)]
pub struct Counting {
    allocations: AtomicUsize,
    /// Bytes currently allocated.
    now: AtomicUsize,
    /// The maximum of `now` since the last reset.
    most: AtomicUsize,
}

impl Counting {
    /// Creates an allocator with zero counts.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a static requires a const function")]
    pub const fn new() -> Self {
        Self { allocations: AtomicUsize::new(0), now: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// Returns the result of `run` and its number of allocations. A reallocation that grows a block counts as one.
    pub fn count<T>(&self, run: impl FnOnce() -> T) -> (T, usize) {
        let before = self.allocations.load(Relaxed);
        let result = run();
        (result, self.allocations.load(Relaxed) - before)
    }

    /// Returns the maximum number of bytes allocated at any time during `run`, not counting earlier allocations.
    pub fn peak(&self, run: impl FnOnce()) -> usize {
        let before = self.now.load(Relaxed);
        self.most.store(before, Relaxed);
        run();
        self.most.load(Relaxed) - before
    }

    fn add(&self, bytes: usize) {
        self.allocations.fetch_add(1, Relaxed);
        self.most.fetch_max(self.now.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }
}

// SAFETY: every call is forwarded to the system allocator unchanged; the counters do not affect it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    /// Counts the old and the new block at the same time until the old block is freed, as if the content had been
    /// copied. This is the worst case.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.add(size);
        self.now.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps `realloc`'s contract.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
