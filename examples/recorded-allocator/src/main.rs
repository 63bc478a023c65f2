//! A program with an allocator of its own, which `hatf record` cannot see from outside: `Recording` has it recorded, also where the
//! program is statically linked.
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

/// An allocator that gives small blocks out of one piece of memory and never takes them back, and leaves large ones to the system.
struct Bump;

/// Bytes of the piece.
const BYTES: usize = 1 << 20;
/// Blocks of more bytes are the system's.
const LARGE: usize = 1 << 10;

/// Memory that is aligned for anything.
#[repr(align(64))]
struct Memory(std::cell::UnsafeCell<[u8; BYTES]>);

// SAFETY: no two callers are given the same bytes.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(std::cell::UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: a block is of bytes that were never given out before, or of the system's.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size().next_multiple_of(64);
        if layout.size() <= LARGE && layout.align() <= 64 {
            let at = USED.fetch_add(bytes, Ordering::Relaxed);
            if at + bytes <= BYTES {
                return MEMORY.0.get().cast::<u8>().wrapping_add(at);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let ours = MEMORY.0.get() as usize..MEMORY.0.get() as usize + BYTES;
        if !ours.contains(&(block as usize)) {
            // SAFETY: the system's block, and the caller's promise.
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
                // One block of a size that is met nowhere else.
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
