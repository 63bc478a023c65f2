//! The bells in a spool's header, with which a recorded process wakes the sleeping threads of `hatf`.
//!
//! A bell is a futex word that counts its rings in steps of two. It is odd while a thread of `hatf` sleeps, or is about
//! to. Such a thread makes the word odd, looks for work once more, and waits until the word changes. A process that has
//! new work rings the bell only if the word is odd. Both sides access the work and the word in opposite orders, with a
//! fence in between, so at least one of them notices the other.
//!
//! A hook in the plain case has no fence and does not read the word. Instead, the sleeping thread sets
//! [`Conditions::BELL`], with which the next hook takes the slow path and rings. A hook that has already read the
//! conditions rings no bell, so `hatf` continues to look for a few milliseconds after it has set the bit.
//!
//! A system call filter may kill a process for ringing a bell. Such a process is silent, and `hatf` looks for its work
//! at short intervals.

use core::ptr::null;
use core::time::Duration;

use crate::conditions::Conditions;
use crate::layout::Header;
use crate::sync::{AtomicU32, Ordering, fence};

/// The longest sleep if the process is silent.
const SILENT_NAP: Duration = Duration::from_millis(10);

/// The work for which a thread of `hatf` sleeps. Each kind of work has one bell, and at most one sleeping thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use hatf_record::{Header, Work};
///
/// let header = Header::default();
/// let word = header.lie_down(Work::Chunks);
/// // Another thread or process would do this.
/// header.ring(Work::Chunks);
/// assert!(header.sleep(Work::Chunks, word, Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The process has recorded an event.
    Events,
    /// A thread has taken a chunk.
    Chunks,
    /// A process was created, or has created its spool. Used only in the first process's spool.
    Processes,
}

impl Work {
    /// All kinds of work.
    pub const ALL: [Self; 3] = [Self::Events, Self::Chunks, Self::Processes];
}

impl Header {
    fn bell(&self, work: Work) -> &AtomicU32 {
        let [events, chunks, processes] = &self.bells;
        match work {
            Work::Events => events,
            Work::Chunks => chunks,
            Work::Processes => processes,
        }
    }

    /// Announces that the calling thread of `hatf` will [sleep](Self::sleep) until there is work of this kind. The
    /// caller must look for such work once more before it sleeps. Returns the value to pass to [`Self::sleep`].
    #[must_use]
    pub fn lie_down(&self, work: Work) -> u32 {
        let word = self.bell(work).fetch_or(1, Ordering::SeqCst) | 1;
        fence(Ordering::SeqCst);
        word
    }

    /// Makes the next call to a hook ring the bell for [events](Work::Events), after the caller has
    /// [lain down](Self::lie_down). If only some calls are recorded, each recorded call rings the bell, so that the
    /// other calls stay as fast as they are.
    pub fn bell_for_calls(&self) {
        if !self.conditions().has_any(Conditions::PART) && self.silent.load(Ordering::Relaxed) == 0 {
            self.set(Conditions::BELL);
        }
    }

    /// Sleeps until the bell has rung since the caller lay down, or until `timeout` has elapsed. Returns whether the
    /// bell has rung. May return earlier if a signal arrives.
    #[must_use]
    pub fn sleep(&self, work: Work, word: u32, timeout: Duration) -> bool {
        let bell = self.bell(work);
        let is_silent = self.silent.load(Ordering::SeqCst) != 0;
        let timeout = if is_silent { timeout.min(SILENT_NAP) } else { timeout };
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().cast_signed().into(),
        };
        // SAFETY: a futex word that the caller's reference keeps mapped, a timeout on the stack, and no other pointers.
        // The word is in memory shared by two processes: not a private futex.
        unsafe {
            libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAIT, word, &raw const timeout, null::<u32>(), 0)
        };
        bell.load(Ordering::SeqCst) != word
    }

    /// Takes back what [`Self::lie_down`] announced, because the calling thread will not sleep.
    pub fn get_up(&self, work: Work, word: u32) {
        let _ = self.bell(work).compare_exchange(word, word.wrapping_add(1), Ordering::SeqCst, Ordering::Relaxed);
        if work == Work::Events {
            self.clear(Conditions::BELL);
        }
    }

    /// Wakes the thread that sleeps until there is work of this kind, if there is one. The work must already be
    /// visible. Preserves `errno`.
    pub fn ring(&self, work: Work) {
        fence(Ordering::SeqCst);
        if self.is_asleep(work) && self.silent.load(Ordering::SeqCst) == 0 {
            self.ring_in_any_case(work);
        }
    }

    /// Makes the process silent, before a system call filter may forbid it to ring bells.
    pub fn silence(&self) {
        self.silent.store(1, Ordering::SeqCst);
        Work::ALL.into_iter().filter(|work| self.is_asleep(*work)).for_each(|work| self.ring_in_any_case(work));
    }

    /// Returns whether the process rings no bells.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.silent.load(Ordering::SeqCst) != 0
    }

    /// Returns whether a thread sleeps until there is work of this kind. Unlike [`Self::ring`], may miss a thread that
    /// has just lain down.
    #[inline]
    #[must_use]
    pub fn is_asleep(&self, work: Work) -> bool {
        self.bell(work).load(Ordering::Relaxed) & 1 != 0
    }

    /// Wakes the thread that sleeps, or is about to sleep, until there is work of this kind, even if the process has
    /// overwritten the word. Preserves `errno`.
    #[cold]
    pub fn ring_in_any_case(&self, work: Work) {
        let next = |word: u32| Some((word | 1).wrapping_add(1));
        let rung = self.bell(work).fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        if work == Work::Events {
            self.clear(Conditions::BELL);
        }
        // Another thread may have rung the bell in between, and has woken the thread.
        if rung.is_ok() {
            wake(self.bell(work));
        }
    }
}

/// Wakes the threads that wait on a futex word.
#[cfg(not(all(loom, test)))]
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: `errno` of this thread; a futex word that stays mapped during the call, and no other pointers.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, null::<u8>(), null::<u32>(), 0);
        *errno = before;
    }
}

/// Does nothing, because nobody sleeps in a model.
#[cfg(all(loom, test))]
pub(crate) fn wake(_: &AtomicU32) {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_ring_wakes_the_sleeper_of_its_kind() {
        let header = Header::default();
        for work in Work::ALL {
            let word = header.lie_down(work);
            let begun = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(20));
                    Work::ALL.iter().filter(|other| **other != work).for_each(|other| header.ring(*other));
                    assert!(header.is_asleep(work));
                    header.ring(work);
                });
                while !header.sleep(work, word, LONG) {}
            });
            assert!(begun.elapsed() < LONG && !header.is_asleep(work));
        }
    }

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let header = Header::default();
        // Nobody sleeps.
        header.ring(Work::Events);
        let word = header.lie_down(Work::Events);
        assert!(!header.sleep(Work::Events, word, Duration::from_millis(1)));
        header.ring(Work::Events);
        assert!(header.sleep(Work::Events, word, LONG));
        let word = header.lie_down(Work::Events);
        header.get_up(Work::Events, word);
        assert!(!header.is_asleep(Work::Events));
        // Even if the process overwrites the word, `hatf` can wake its own threads.
        header.bells[0].store(u32::MAX, Ordering::Relaxed);
        header.ring_in_any_case(Work::Events);
        let word = header.lie_down(Work::Events);
        header.bells[0].store(0, Ordering::Relaxed);
        header.ring_in_any_case(Work::Events);
        assert!(header.sleep(Work::Events, word, LONG));
    }

    #[test]
    fn a_silent_process_rings_no_bell() {
        let header = Header::default();
        let word = header.lie_down(Work::Chunks);
        header.silence();
        assert!(header.sleep(Work::Chunks, word, LONG));
        let word = header.lie_down(Work::Chunks);
        header.ring(Work::Chunks);
        // The sleep is short instead.
        let begun = Instant::now();
        assert!(!header.sleep(Work::Chunks, word, LONG) && begun.elapsed() < LONG);
    }

    #[test]
    fn hooks_ring_only_if_all_calls_are_recorded() {
        let header = Header::default();
        let word = header.lie_down(Work::Events);
        header.bell_for_calls();
        assert!(header.conditions().has(Conditions::BELL));
        header.ring(Work::Events);
        assert!(!header.conditions().has(Conditions::BELL) && header.sleep(Work::Events, word, LONG));
        header.set(Conditions::SAMPLE);
        header.bell_for_calls();
        assert!(!header.conditions().has(Conditions::BELL));
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::sync::model::{Share as _, model, spawn};

    /// Two threads have new work while `hatf` goes to sleep: it finds the work, or the bell rings.
    #[test]
    fn no_work_is_left_to_a_sleeper() {
        let header: &'static Header = std::boxed::Box::leak(std::boxed::Box::default());
        model(3, move || {
            header.bells.share();
            header.conditions.share();
            header.dumps.share();
            let workers = [(); 2].map(|()| {
                spawn(move || {
                    header.dumps.fetch_add(1, Ordering::Relaxed);
                    header.ring(Work::Events);
                })
            });
            let sleeper = spawn(move || {
                let word = header.lie_down(Work::Events);
                header.bell_for_calls();
                (word, header.dumps.load(Ordering::Relaxed))
            });
            for worker in workers {
                worker.join().unwrap();
            }
            let (word, found) = sleeper.join().unwrap();
            let sleeps = header.bells[0].load(Ordering::SeqCst) == word;
            assert!(!sleeps || found == 2, "{found} of 2 pieces of work were found");
        });
    }
}
