//! A program with its own allocator, which `hatf record` cannot see from outside. Wrapping the allocator in `Recording`
//! makes it visible, even if the program is statically linked.
//!
//! ```sh
//! cargo build -p example-recorded-allocator
//! hatf record --report target/debug/example-recorded-allocator
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

// region: include
use hatf_record::Recording;

#[global_allocator]
static ALLOCATOR: Recording<Bump> = Recording::new(Bump);
// endregion

/// An allocator that carves small blocks out of a fixed memory area and never reuses them. It passes large requests on
/// to the system.
struct Bump;

/// Size of the memory area in bytes.
const BYTES: usize = 1 << 20;
/// Blocks larger than this many bytes come from the system.
const LARGE: usize = 1 << 10;

/// Memory with an alignment that suits any block.
#[repr(align(64))]
struct Memory(std::cell::UnsafeCell<[u8; BYTES]>);

// SAFETY: no two callers receive the same bytes.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(std::cell::UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: a block consists of bytes that have never been handed out before, or comes from the system.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size().next_multiple_of(64);
        if layout.size() <= LARGE && layout.align() <= 64 {
            let at = USED.fetch_add(bytes, Ordering::Relaxed);
            if at + bytes <= BYTES {
                return MEMORY.0.get().cast::<u8>().wrapping_add(at);
            }
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let ours = MEMORY.0.get() as usize..MEMORY.0.get() as usize + BYTES;
        if !ours.contains(&(block as usize)) {
            // SAFETY: the block comes from the system, and the caller guarantees the rest.
            unsafe { System.dealloc(block, layout) };
        }
    }
}

fn main() {
    let threads: Vec<_> = (1..=3_usize)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut words: Vec<String> = (0..1000).map(|n| format!("word {n} of {thread}")).collect();
                words.sort_unstable();
                // One block of a size that occurs nowhere else.
                let block = vec![1_u8; 700_000 + thread];
                words.len() + block.len()
            })
        })
        .collect();
    let sum: usize = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
    assert_eq!(sum, 3 * 701_000 + 6);
    let mut grown = vec![0_u8; 800_001];
    grown.reserve_exact(100_000);
    let kept = Box::leak(Box::new([7_u64; 100_001]));
    println!("{sum} {} {}", grown.capacity(), kept.len());
}
