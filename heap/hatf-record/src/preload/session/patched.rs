//! The functions of a statically linked allocator that are patched in this program image. A forked child inherits them.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::layout::Header;

static PATCHED: AtomicU32 = AtomicU32::new(0);

/// Stores the number of patched functions, also in the header of a spool.
pub(crate) fn set(header: &Header, functions: u32) {
    PATCHED.store(functions, Ordering::Relaxed);
    note(header);
}

/// Stores the number of patched functions in the header of a spool.
pub(crate) fn note(header: &Header) {
    let functions = PATCHED.load(Ordering::Relaxed);
    header.linked.store(functions, Ordering::Relaxed);
    header.linked_images.fetch_add((functions > 0).into(), Ordering::Relaxed);
}
