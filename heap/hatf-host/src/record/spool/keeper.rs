//! Makes chunks ready before the program's threads need them, and takes back chunks whose events are safe.
//!
//! The keeper has its own thread, so the program never waits for the trace to be written. It sleeps while no thread
//! takes a chunk.

use std::collections::BTreeSet;
use std::io;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hatf_record::{Header, Spool, Work};

use super::claim::Claim;
use super::naps::Naps;
use super::spool_file::SpoolFile;

/// The initial number of chunks kept ready: 2 MiB.
pub(crate) const READY_FIRST: usize = 64;
/// Maximum number of chunks kept ready: 32 MiB, which the fastest program fills in 50 ms.
const READY_MOST: usize = 1024;
/// The time between two iterations.
const PAUSE: Duration = Duration::from_millis(1);
/// The number of iterations without work after which the keeper sleeps until a thread takes a chunk.
const QUIET: u32 = 20;
/// The time before memory is requested again after a request failed.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// The state shared by the keeper and the reader.
pub(crate) struct Returned<'a> {
    header: &'a Header,
    chunks: Mutex<Vec<usize>>,
    /// The number of chunks that threads own, as of the keeper's last iteration.
    used: AtomicUsize,
    /// The error number of the last failed request for memory, or 0.
    refused: AtomicI32,
    stop: AtomicBool,
}

impl<'a> Returned<'a> {
    pub(crate) fn new(header: &'a Header) -> Self {
        Self {
            header,
            chunks: Mutex::default(),
            used: AtomicUsize::new(0),
            refused: AtomicI32::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Returns chunks whose events are safe.
    pub(crate) fn give(&self, mut chunks: Vec<usize>) {
        if chunks.is_empty() {
            return;
        }
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).append(&mut chunks);
        self.wake();
    }

    /// Wakes the keeper if it sleeps.
    pub(crate) fn wake(&self) {
        self.header.ring_in_any_case(Work::Chunks);
    }

    /// Ends the keeper.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
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
    returned: &'a Returned<'a>,
    /// Chunks without memory. Each occurs once, regardless of the states in the spool.
    absent: BTreeSet<usize>,
    target: usize,
    full_since: Option<Instant>,
}

impl<'a> Keeper<'a> {
    /// Creates a keeper and makes the first `first` chunks ready.
    pub(crate) fn new(file: &'a SpoolFile, spool: Spool<'a>, returned: &'a Returned<'a>, first: usize) -> Self {
        let absent = (0..spool.chunks()).filter(|chunk| spool.is_absent(*chunk)).collect();
        let mut keeper = Self { file, spool, returned, absent, target: first, full_since: None };
        keeper.tend();
        keeper
    }

    /// Runs until [stopped](Returned::stop). Calls `beside` in each iteration with the process ID, or with 0 while the
    /// process ID is unknown, and with whether somebody has woken the keeper. `beside` returns the time after which it
    /// must be called again, if it must.
    pub(crate) fn run(mut self, mut beside: impl FnMut(u32, bool) -> Option<Duration>) {
        let (mut quiet, mut woken, mut naps) = (0, false, Naps::new());
        let header = self.spool.header();
        let _claim = Claim::of(header);
        while !self.is_stopped() {
            let due = beside(header.process.load(Ordering::Relaxed), woken);
            woken = false;
            if self.tend() {
                quiet = 0;
            }
            quiet += 1;
            if quiet <= QUIET {
                naps = Naps::new();
                std::thread::sleep(PAUSE);
                continue;
            }
            let word = header.lie_down(Work::Chunks);
            // Work may have arrived before that.
            if self.tend() || self.is_stopped() {
                header.get_up(Work::Chunks, word);
                quiet = 0;
                continue;
            }
            let nap = naps.next_length();
            woken = header.sleep(Work::Chunks, word, due.map_or(nap, |due| due.min(nap)));
            if woken {
                naps = Naps::new();
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.returned.stop.load(Ordering::SeqCst)
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
