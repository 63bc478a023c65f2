//! Memory for the few allocations made while the real functions are being looked up.
//!
//! `dlsym` itself may allocate. What it gets then comes from here, is never given back, and is
//! recognised by its address when it is freed or resized.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 64 * 1024;
/// Before each block stands its length, in as many bytes as keep it aligned.
const HEAD: usize = 16;

#[repr(C, align(4096))]
struct Arena(UnsafeCell<[u8; BYTES]>);

// SAFETY: bytes are handed out once each, by an atomic addition.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory, or null when there is no more, or the alignment is over a page.
pub(crate) fn allocate(size: usize, align: usize) -> *mut c_void {
    let align = align.max(HEAD);
    let Some(need) = size.checked_add(HEAD + align) else { return null_mut() };
    let Ok(start) = USED
        .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| used.checked_add(need).filter(|end| *end <= BYTES))
    else {
        return null_mut();
    };
    let block = (start + HEAD).next_multiple_of(align);
    if align > 4096 {
        return null_mut();
    }
    // SAFETY: [start, start + need) is ours alone and inside the arena; the block with its head
    // lies within it, since rounding up adds less than `align`.
    unsafe {
        let block = ARENA.0.get().cast::<u8>().add(block);
        block.sub(HEAD).cast::<usize>().write(size);
        block.cast()
    }
}

/// Whether a block came from here.
#[inline]
pub(crate) fn owns(block: *mut c_void) -> bool {
    (block as usize).wrapping_sub(ARENA.0.get() as usize) < BYTES
}

/// The size a block was asked for.
///
/// # Safety
/// `block` came from [`allocate`].
pub(crate) unsafe fn size_of(block: *mut c_void) -> usize {
    // SAFETY: each block has its length before it.
    unsafe { block.cast::<u8>().sub(HEAD).cast::<usize>().read() }
}
