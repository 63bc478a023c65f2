//! Makes chunks ready ahead of the program's threads, and takes back those whose events are safe.
//!
//! It has a thread of its own, so that the program never waits for the trace to be written.

use std::collections::BTreeSet;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hatf_record::Spool;

use super::claim::Claim;
use super::spool_file::SpoolFile;

/// Chunks that are kept ready at first: 2 MiB.
pub(crate) const READY_FIRST: usize = 64;
/// Chunks that are kept ready at most: 32 MiB, which is what a program at its fastest fills in 50 ms.
const READY_MOST: usize = 1024;
/// How long it sleeps.
const PAUSE: Duration = Duration::from_millis(1);
/// How long it sleeps when there was nothing to do for a while.
const LONG_PAUSE: Duration = Duration::from_millis(5);
/// How long it does not ask for memory again where there was none.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// What the keeper and the reader share.
#[derive(Default)]
pub(crate) struct Returned {
    chunks: Mutex<Vec<usize>>,
    /// Chunks that threads have, as the keeper knows.
    used: AtomicUsize,
    stop: AtomicBool,
}

impl Returned {
    /// Gives chunks back whose events are safe.
    pub(crate) fn give(&self, mut chunks: Vec<usize>) {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).append(&mut chunks);
    }

    /// Ends the keeper.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the number of chunks that are with threads, or not given back yet.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Keeps chunks ready.
pub(crate) struct Keeper<'a> {
    file: &'a SpoolFile,
    spool: Spool<'a>,
    returned: &'a Returned,
    /// Chunks without memory, each once, whatever the states in the spool say.
    absent: BTreeSet<usize>,
    target: usize,
    full_since: Option<Instant>,
}

impl<'a> Keeper<'a> {
    /// Makes the first chunks ready: this many.
    pub(crate) fn new(file: &'a SpoolFile, spool: Spool<'a>, returned: &'a Returned, first: usize) -> Self {
        let absent = (0..spool.chunks()).filter(|chunk| spool.is_absent(*chunk)).collect();
        let mut keeper = Self { file, spool, returned, absent, target: first, full_since: None };
        keeper.tend();
        keeper
    }

    /// Runs until it is [stopped](Returned::stop). `beside` is called now and then with the process, which is 0 before it is known.
    pub(crate) fn run(mut self, mut beside: impl FnMut(u32)) {
        let mut quiet = 0;
        let _claim = Claim::of(self.spool.header());
        while !self.returned.stop.load(Ordering::Relaxed) {
            beside(self.spool.header().process.load(Ordering::Relaxed));
            quiet = if self.tend() { 0 } else { quiet + 1 };
            std::thread::sleep(if quiet > 20 { LONG_PAUSE } else { PAUSE });
        }
    }

    /// Does what there is to do; returns whether there was something.
    pub(crate) fn tend(&mut self) -> bool {
        let ready = self.spool.ready();
        // A program that takes many at a time gets more.
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

    /// Takes back a chunk: it is made ready again, or its memory is given back.
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

    /// Makes one more chunk ready; `false` if there is no memory.
    fn make_ready(&mut self) -> bool {
        // A program that could not map all of it takes none behind.
        let mapped = match self.spool.header().mapped.load(Ordering::Relaxed) {
            0 => usize::MAX,
            mapped => mapped as usize,
        };
        if self.full_since.is_some_and(|since| since.elapsed() < FULL_PAUSE) {
            return false;
        }
        let Some(chunk) = self.absent.first().copied().filter(|chunk| *chunk < mapped) else { return false };
        if self.file.reserve_chunk(chunk).is_err() {
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
        // SAFETY: a futex word in the mapped spool; waking reads and writes no memory.
        unsafe {
            libc::syscall(libc::SYS_futex, futex, libc::FUTEX_WAKE, i32::MAX, null::<u8>(), 0, 0);
        }
    }
}
