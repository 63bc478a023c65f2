//! Reads the interpreter's memory if it is mapped. A chain of frames that is half written when a signal handler
//! inspects it may lead anywhere.
//!
//! A page is tested once by a system call, and the result is valid until the program unmaps memory.

use core::sync::atomic::{AtomicU64, Ordering};

use super::last_walk::{LocalWord, Word};
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

/// Reads memory for a walk, and notes each word that it has read, in the order of reading. If a walk reads the same
/// words, it finds the same stack.
pub(crate) struct Log<'l> {
    words: &'l [LocalWord],
    count: usize,
}

impl<'l> Log<'l> {
    /// Returns a log that notes nothing.
    pub(crate) fn none() -> Self {
        Self::new(&[])
    }

    /// Returns a log that notes words in this place.
    pub(super) fn new(words: &'l [LocalWord]) -> Self {
        Self { words, count: 0 }
    }

    pub(super) fn is_on(&self) -> bool {
        !self.words.is_empty()
    }

    /// Returns the number of words, which is larger than the place if they did not fit.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn note(&mut self, word: Word) {
        if let Some(place) = self.words.get(self.count) {
            place.set(word);
        }
        self.count += 1;
    }

    /// Reads an aligned word.
    #[inline]
    pub(super) fn word(&mut self, address: usize) -> Option<usize> {
        let value = word(address)?;
        self.note((address, value));
        Some(value)
    }

    /// Reads an aligned half word.
    #[inline]
    pub(super) fn half(&mut self, address: usize) -> Option<u32> {
        let shifted = self.word(address & !7)? >> (8 * (address & 7));
        u32::try_from(shifted & 0xffff_ffff).ok().filter(|_| address.is_multiple_of(4))
    }

    /// Reads a byte.
    #[inline]
    pub(super) fn byte(&mut self, address: usize) -> Option<u8> {
        u8::try_from(self.word(address & !7)? >> (8 * (address & 7)) & 0xff).ok()
    }

    /// Returns bytes of strings referenced by the thread's frames, which nobody changes while the thread is in its
    /// hook.
    #[inline]
    pub(super) fn bytes<'a>(&mut self, address: usize, length: usize) -> Option<&'a [u8]> {
        let end = address.checked_add(length)?;
        let mut page = address;
        while page < end {
            if !is_readable(page) {
                return None;
            }
            page = (page | (PAGE - 1)) + 1;
        }
        if self.is_on() {
            // Aligned words that contain the bytes are in the same pages.
            (address & !7..end).step_by(8).try_for_each(|address| self.word(address).map(drop))?;
        }
        // SAFETY: all of its pages can be read.
        (address != 0).then(|| unsafe { core::slice::from_raw_parts(address as *const u8, length) })
    }
}
