//! The process that reads the spool, and whether waiting for it is useful.

use core::sync::atomic::{AtomicU32, Ordering};

/// Chunks that have to be ready one after the other before threads wait again: 8 MiB of events.
const CAUGHT_UP: u32 = 256;
/// Nobody makes chunks ready any more, and there are none left.
const EXHAUSTED: u32 = u32::MAX;

/// True after a wait for chunks timed out. No thread waits again until the reader has caught up: if threads waited again after a single chunk, a reader that is nearly stalled
/// would hold the program up again and again.
#[derive(Debug)]
pub(super) struct Stalled(AtomicU32);

impl Stalled {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Notes that no thread should wait.
    pub(super) fn note(&self) {
        self.0.store(CAUGHT_UP, Ordering::Relaxed);
    }

    /// Notes that there are no chunks left, and nobody who makes others.
    pub(super) fn note_exhausted(&self) {
        self.0.store(EXHAUSTED, Ordering::Relaxed);
    }

    /// Notes that a chunk was ready at once.
    pub(super) fn got_chunk(&self) {
        let left = self.0.load(Ordering::Relaxed);
        // If two threads do so at once, one of the two chunks may not be counted.
        if left > 0 {
            let _ = self.0.compare_exchange(left, left.min(CAUGHT_UP) - 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Returns whether it is of no use to wait for this reader.
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
    /// No reader is left; `hatf recover` reads the rest.
    Gone,
    /// Nobody ever.
    Closed,
}
