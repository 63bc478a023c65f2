//! Makes chunks ready before the program's threads need them, and takes back chunks whose events are safe.
//!
//! The keeper has its own thread, so the program never waits for the trace to be written.

use std::collections::BTreeSet;
use std::io;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hatf_record::Spool;

use super::claim::Claim;
use super::spool_file::SpoolFile;

/// The initial number of chunks kept ready: 2 MiB.
pub(crate) const READY_FIRST: usize = 64;
/// Maximum number of chunks kept ready: 32 MiB, which the fastest program fills in 50 ms.
const READY_MOST: usize = 1024;
/// The time between two iterations.
const PAUSE: Duration = Duration::from_millis(1);
/// The time between two iterations after a while with nothing to do.
const LONG_PAUSE: Duration = Duration::from_millis(5);
/// The time before memory is requested again after a request failed.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// The state shared by the keeper and the reader.
#[derive(Default)]
pub(crate) struct Returned {
    chunks: Mutex<Vec<usize>>,
    /// The number of chunks that threads own, as of the keeper's last iteration.
    used: AtomicUsize,
    /// The error number of the last failed request for memory, or 0.
    refused: AtomicI32,
    stop: AtomicBool,
}

impl Returned {
    /// Returns chunks whose events are safe.
    pub(crate) fn give(&self, mut chunks: Vec<usize>) {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).append(&mut chunks);
    }

    /// Ends the keeper.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the number of chunks that threads own or that were not returned yet.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the reason why the spool could not grow, if it could not.
    pub(crate) fn refused(&self) -> Option<io::Error> {
        let number = self.refused.load(Ordering::Relaxed);
        (number != 0).then(|| io::Error::from_raw_os_error(number))
    }
}

/// The keeper, which keeps chunks ready.
pub(crate) struct Keeper<'a> {
    file: &'a SpoolFile,
    spool: Spool<'a>,
    returned: &'a Returned,
    /// Chunks without memory. Each occurs once, regardless of the states in the spool.
    absent: BTreeSet<usize>,
    target: usize,
    full_since: Option<Instant>,
}

impl<'a> Keeper<'a> {
    /// Creates a keeper and makes the first `first` chunks ready.
    pub(crate) fn new(file: &'a SpoolFile, spool: Spool<'a>, returned: &'a Returned, first: usize) -> Self {
        let absent = (0..spool.chunks()).filter(|chunk| spool.is_absent(*chunk)).collect();
        let mut keeper = Self { file, spool, returned, absent, target: first, full_since: None };
        keeper.tend();
        keeper
    }

    /// Runs until [stopped](Returned::stop). Calls `beside` periodically with the process ID, or with 0 while the
    /// process ID is unknown.
    pub(crate) fn run(mut self, mut beside: impl FnMut(u32)) {
        let mut quiet = 0;
        let _claim = Claim::of(self.spool.header());
        while !self.returned.stop.load(Ordering::Relaxed) {
            beside(self.spool.header().process.load(Ordering::Relaxed));
            quiet = if self.tend() { 0 } else { quiet + 1 };
            std::thread::sleep(if quiet > 20 { LONG_PAUSE } else { PAUSE });
        }
    }

    /// Performs all pending work. Returns whether there was work to do.
    pub(crate) fn tend(&mut self) -> bool {
        let ready = self.spool.ready();
        // If the program takes many chunks at a time, more are kept ready.
        if ready < self.target / 2 {
            self.target = (self.target * 2).min(READY_MOST);
        }
        let returned = std::mem::take(&mut *self.returned.chunks.lock().unwrap_or_else(PoisonError::into_inner));
        let mut did = !returned.is_empty();
        for chunk in returned {
            did |= self.take_back(chunk);
        }
        while self.spool.ready() < self.target && self.make_ready() {
            did = true;
        }
        let used = self.spool.chunks() - self.absent.len();
        self.returned.used.store(used.saturating_sub(self.spool.ready()), Ordering::Relaxed);
        if self.spool.wakes() {
            self.wake();
        }
        did
    }

    /// Takes a chunk back: makes it ready again or releases its memory.
    fn take_back(&mut self, chunk: usize) -> bool {
        if !self.spool.is_taken(chunk) {
            return false;
        }
        if self.spool.ready() >= self.target && self.file.punch_chunk(chunk) {
            self.spool.give_back(chunk);
            self.absent.insert(chunk);
            return true;
        }
        if let Some(view) = self.spool.chunk(chunk) {
            view.clear();
        }
        self.spool.give_back(chunk);
        self.spool.make_ready(chunk)
    }

    /// Makes one more chunk ready. Returns false if no memory is available.
    fn make_ready(&mut self) -> bool {
        // A program that could map only a part of the spool takes no chunks after that part.
        let mapped = match self.spool.header().mapped.load(Ordering::Relaxed) {
            0 => usize::MAX,
            mapped => mapped as usize,
        };
        if self.full_since.is_some_and(|since| since.elapsed() < FULL_PAUSE) {
            return false;
        }
        let Some(chunk) = self.absent.first().copied().filter(|chunk| *chunk < mapped) else { return false };
        if let Err(error) = self.file.reserve_chunk(chunk) {
            self.returned.refused.store(error.raw_os_error().unwrap_or_default(), Ordering::Relaxed);
            self.full_since = Some(Instant::now());
            return false;
        }
        self.full_since = None;
        self.absent.remove(&chunk);
        self.spool.make_ready(chunk)
    }

    /// Wakes threads that wait because no chunk was ready.
    fn wake(&self) {
        let futex = self.spool.header().wakeups.as_ptr();
        // SAFETY: this is a futex word in the mapped spool; waking accesses no other memory.
        unsafe {
            libc::syscall(libc::SYS_futex, futex, libc::FUTEX_WAKE, i32::MAX, null::<u8>(), 0, 0);
        }
    }
}
