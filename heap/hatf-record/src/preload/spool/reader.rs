//! The process that reads the spool, and whether it is worth waiting for.

use core::sync::atomic::{AtomicU32, Ordering};

/// The number of consecutive chunks that must be ready before threads wait again, which amounts to 8 MiB of events.
const CAUGHT_UP: u32 = 256;
/// A state in which no chunks are left and nobody makes more ready.
const EXHAUSTED: u32 = u32::MAX;

/// A record that a thread has timed out waiting for chunks. No thread waits again until the reader has caught up: if
/// threads waited again after a single chunk, a nearly stalled reader would block the program repeatedly.
#[derive(Debug)]
pub(super) struct Stalled(AtomicU32);

impl Stalled {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Records that threads should not wait.
    pub(super) fn note(&self) {
        self.0.store(CAUGHT_UP, Ordering::Relaxed);
    }

    /// Records that there are no chunks left, and that nobody makes more ready.
    pub(super) fn note_exhausted(&self) {
        self.0.store(EXHAUSTED, Ordering::Relaxed);
    }

    /// Records that a chunk was ready immediately.
    pub(super) fn got_chunk(&self) {
        let left = self.0.load(Ordering::Relaxed);
        // If two threads do this simultaneously, one of the two chunks may not be counted.
        if left > 0 {
            let _ = self.0.compare_exchange(left, left.min(CAUGHT_UP) - 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Returns whether waiting for this reader is useless.
    pub(super) fn is_known(&self, reader: Reader) -> bool {
        match self.0.load(Ordering::Relaxed) {
            0 => false,
            EXHAUSTED => reader == Reader::Gone,
            _ => reader == Reader::There,
        }
    }
}

/// The reader of the spool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// `hatf record`, which makes chunks ready.
    There,
    /// The reader is gone; `hatf recover` reads the rest.
    Gone,
    /// There will never be a reader.
    Closed,
}
