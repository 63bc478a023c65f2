#![no_main]
#![feature(alloc_error_hook)]

use std::alloc::{GlobalAlloc, Layout, System};

// The tests of the default build do without the crates of tables, so the body is in the tests of the crate `metatf-arrow`.
#[path = "../../metatf-arrow/tests/it/any_table.rs"]
mod any_table;

/// Bytes that a decoder may request at once.
const MOST: usize = 64 << 20;

/// An allocator with a limit, as the child process of `metatfc import` has one.
struct Limited;

// SAFETY: every call goes to the system's allocator as it is, or fails as an allocator may.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the system's conditions.
        if layout.size() > MOST { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static MEMORY: Limited = Limited;

/// Lets decoders panic, which importing makes an error of, and lets what gets no memory panic. Panics elsewhere end the process.
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
