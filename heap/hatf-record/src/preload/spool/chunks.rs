//! Provides chunks for threads to write to. If none is ready, threads wait for one, allocate one, or do without.

use core::ptr::null;
use core::sync::atomic::Ordering;

use super::reader::Reader;
use super::session::{Session, end, stop};
use super::shrink;
use crate::bell::Work;
use crate::clock::nanoseconds;
use crate::layout::{CHUNK_BYTES, KEEPER_GONE};
use crate::preload::platform::memory;
use crate::reasons::{Stop, WhenFull};
use crate::spool::Chunk;

/// The maximum time in nanoseconds that a thread waits for a chunk even if it should not wait for space, because more
/// chunks are usually ready within this time.
const SHORT: u64 = 50_000_000;

/// The part of the chunks that may be in use if more memory is requested after `hatf` was killed.
const GONE_PART: usize = 8;
/// The number of chunks that may be in use in any case, which amounts to 64 MiB.
const GONE_LEAST: usize = (64 << 20) / CHUNK_BYTES;

impl Session {
    /// Returns whether the recorded events have no reader and never will.
    #[cfg(feature = "preload")]
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reader() != Reader::There
    }

    fn reader(&self) -> Reader {
        match self.spool.header().closed.load(Ordering::Relaxed) {
            0 if self.recorder_is_gone() => Reader::Gone,
            0 => Reader::There,
            _ => Reader::Closed,
        }
    }

    fn recorder_is_gone(&self) -> bool {
        if self.recorder == 0 {
            return true;
        }
        let keeper = self.spool.header().keeper.load(Ordering::Acquire);
        if keeper != 0 {
            return keeper & KEEPER_GONE != 0;
        }
        // Nobody makes chunks ready yet, or any more.
        // SAFETY: calls that change nothing but `errno`, which the caller preserves.
        unsafe {
            if self.is_child {
                // A child created by `vfork` shares our memory but has a different parent.
                let (process, parent) = (libc::getpid().cast_unsigned(), libc::getppid().cast_unsigned());
                return process == self.process && parent != self.recorder;
            }
            libc::kill(self.recorder.cast_signed(), 0) != 0 && *libc::__errno_location() == libc::ESRCH
        }
    }

    /// Takes a chunk, waiting for one if configured. Preserves `errno`.
    #[cold]
    pub(crate) fn chunk(&self) -> Option<Chunk<'static>> {
        let taken = self.spool.take();
        for work in [Work::Chunks, Work::Events] {
            self.spool.header().ring(work);
        }
        if let Some(chunk) = taken {
            self.stalled.got_chunk();
            return self.use_chunk(chunk);
        }
        // SAFETY: `errno` of this thread.
        let errno = unsafe { *libc::__errno_location() };
        let chunk = self.chunk_where_none_is_ready();
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        chunk
    }

    /// Records that a thread writes to a chunk that it has taken.
    fn use_chunk(&self, chunk: usize) -> Option<Chunk<'static>> {
        shrink::use_chunk(chunk);
        self.spool.chunk(chunk)
    }

    /// Records that the chunk at an address no longer belongs to any thread of this process.
    pub(crate) fn leave_chunk(&self, address: usize) {
        shrink::leave_chunk(&self.spool, address);
    }

    fn chunk_where_none_is_ready(&self) -> Option<Chunk<'static>> {
        let reader = self.reader();
        if self.stalled.is_known(reader) {
            if reader == Reader::There {
                self.stalled.note();
            }
            return None;
        }
        self.spool.header().waits.fetch_add(1, Ordering::Relaxed);
        let begun = nanoseconds();
        while self.is_live() {
            match self.reader() {
                Reader::There => {}
                Reader::Gone => {
                    let chunk = self.absent_chunk();
                    if chunk.is_none() {
                        self.stalled.note_exhausted();
                    }
                    return chunk;
                }
                Reader::Closed => {
                    end();
                    return None;
                }
            }
            // Even if threads should not wait for space, they wait briefly: during a burst of events, `hatf` may not
            // have had time to make chunks ready.
            let patience = match self.when_full {
                WhenFull::Wait => self.patience,
                WhenFull::Drop | WhenFull::Stop => SHORT,
            };
            if nanoseconds().wrapping_sub(begun) >= patience {
                if self.when_full == WhenFull::Stop {
                    stop(Stop::Full);
                }
                self.stalled.note();
                return None;
            }
            // Another thread has waited as long as the limit permits.
            if self.stalled.is_known(Reader::There) {
                return None;
            }
            self.wait_on_futex();
            if let Some(chunk) = self.spool.take() {
                return self.use_chunk(chunk);
            }
        }
        // Either a signal handler has forked and this is the child, or the recording was stopped.
        None
    }

    /// Takes a chunk that nobody has made ready, and allocates its memory, because touching it on a full disk would
    /// kill the process.
    fn absent_chunk(&self) -> Option<Chunk<'static>> {
        // The memory stays in use until the user calls `hatf recover`, which may be never.
        if self.spool.taken().count() >= (self.spool.chunks() / GONE_PART).max(GONE_LEAST) {
            return None;
        }
        let number = self.spool.take_absent()?;
        let chunk = self.use_chunk(number)?;
        let memory = core::ptr::from_ref(chunk.head()).cast_mut().cast::<libc::c_void>();
        // SAFETY: a chunk of the mapping; the advice changes no byte. Kernels before 5.14 reject it.
        let present = unsafe { memory::advise(memory, CHUNK_BYTES, libc::MADV_POPULATE_WRITE) } == 0;
        if !present {
            self.leave_chunk(memory as usize);
            self.spool.give_back(number);
        }
        present.then_some(chunk)
    }

    /// Waits for a limited time until a chunk may be ready.
    fn wait_on_futex(&self) {
        let header = self.spool.header();
        header.waiting.fetch_add(1, Ordering::SeqCst);
        let wakeups = header.wakeups.load(Ordering::SeqCst);
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        if self.spool.ready() == 0 {
            // SAFETY: a futex word that stays mapped, a timeout on the stack, and no other pointers. The word is in
            // memory shared by two processes: not a private futex.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    header.wakeups.as_ptr(),
                    libc::FUTEX_WAIT,
                    wakeups,
                    &raw const timeout,
                    null::<u32>(),
                    0,
                );
            }
        }
        header.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
