//! Reads the interpreter's memory if it is mapped. A chain of frames that is half written when a signal handler
//! inspects it may lead anywhere.
//!
//! A page is tested once by a system call, and the result is valid until the program unmaps memory.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::preload::platform::thread_state;

const PAGE: usize = 4096;
const PAGE_BITS: u32 = PAGE.trailing_zeros();
/// The number of remembered pages.
const PAGES: usize = 1 << 11;

/// The numbers of readable pages, each with the count of unmap operations at the time of the test.
static KNOWN: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];
static UNMAPPED: AtomicU64 = AtomicU64::new(1);

/// Discards the readable pages, because memory was unmapped.
pub(crate) fn forget() {
    UNMAPPED.fetch_add(1, Ordering::Relaxed);
}

#[inline]
fn is_readable(address: usize) -> bool {
    let page = (address >> PAGE_BITS) as u64;
    if page == 0 || page >> 35 != 0 {
        return false;
    }
    let tag = page | UNMAPPED.load(Ordering::Relaxed) << 35;
    let Some(known) = KNOWN.get(usize::try_from(page).unwrap_or_default() % PAGES) else { return false };
    if known.load(Ordering::Relaxed) == tag {
        return true;
    }
    let is_there = thread_state::is_readable(address);
    if is_there {
        known.store(tag, Ordering::Relaxed);
    }
    is_there
}

/// Reads an aligned word.
#[inline]
pub(super) fn word(address: usize) -> Option<usize> {
    // SAFETY: aligned, and its page can be read.
    (address.is_multiple_of(8) && is_readable(address)).then(|| unsafe { (address as *const usize).read_volatile() })
}

/// Reads an aligned half word.
#[inline]
pub(super) fn half(address: usize) -> Option<u32> {
    // SAFETY: aligned, and its page can be read.
    (address.is_multiple_of(4) && is_readable(address)).then(|| unsafe { (address as *const u32).read_volatile() })
}

/// Reads a byte.
#[inline]
pub(super) fn byte(address: usize) -> Option<u8> {
    // SAFETY: its page can be read.
    is_readable(address).then(|| unsafe { (address as *const u8).read_volatile() })
}

/// Returns bytes of strings referenced by the thread's frames, which nobody changes while the thread is in its hook.
#[inline]
pub(super) fn bytes<'a>(address: usize, length: usize) -> Option<&'a [u8]> {
    let end = address.checked_add(length)?;
    let mut page = address;
    while page < end {
        if !is_readable(page) {
            return None;
        }
        page = (page | (PAGE - 1)) + 1;
    }
    // SAFETY: all of its pages can be read.
    (address != 0).then(|| unsafe { core::slice::from_raw_parts(address as *const u8, length) })
}
