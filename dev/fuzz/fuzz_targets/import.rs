#![no_main]
#![feature(alloc_error_hook)]

use std::alloc::{GlobalAlloc, Layout, System};

// Tests in the default build do not depend on the table crates, so the body is in the tests of the crate
// `metatf-arrow`.
#[path = "../../../tables/metatf-arrow/tests/it/any_table.rs"]
mod any_table;

/// The maximum number of bytes that a decoder may request in one allocation.
const MOST: usize = 64 << 20;

/// An allocator with a limit, like the allocator in the child process of `metatfc convert`.
struct Limited;

// SAFETY: every call is forwarded to the system allocator unchanged, or fails as an allocator may.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's guarantees are the requirements of the system allocator.
        if layout.size() > MOST { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static MEMORY: Limited = Limited;

/// Permits panics in decoders, which importing converts to errors, and panics on allocation failure. Other panics abort
/// the process.
fn allow_decoders_to_fail() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_decoder = |file: &str| file.contains("/arrow-") || file.contains("/parquet-");
        if !panic.location().is_some_and(|place| is_decoder(place.file())) {
            hook(panic);
        }
    }));
    std::alloc::set_alloc_error_hook(|_| std::panic::resume_unwind(Box::new("no memory")));
}

libfuzzer_sys::fuzz_target!(init: allow_decoders_to_fail(), |input: &[u8]| any_table::import(input));
